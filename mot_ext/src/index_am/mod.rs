//! The index access method `mot_index`: the engine's indexes, as core calls them.
//!
//! Owns: what core may ask of an index, and what core is shown of it meanwhile (`flips`,
//! `access_method`). Called by core, and for the latter by `plan_nodes`, `planner` and `ddl`; calls
//! `access`, `storage` and `table_am`.
pub mod access_method;
mod cost;
pub mod flips;
mod handler;
mod keys;
mod labels;
mod rows;
mod scan;
mod short_range;
mod skip;
mod uniqueness;
