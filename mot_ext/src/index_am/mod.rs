//! The index access method `mot_index`: the engine's indexes, as core calls them.
//!
//! Owns: what core may ask of an index. May be called by core alone; calls `storage` and
//! `table_am`.
pub mod access_method;
mod cost;
pub mod flips;
mod handler;
mod keys;
mod rows;
mod scan;
mod short_range;
