//! The index access method `mot_index`: the engine's indexes, as core calls them. README.md has its
//! rules, and says what each file holds.
//!
//! Owns: what core may ask of an index, and which access method core sees (`access_method`,
//! `flips`). Called by core; the latter two also by `plan_nodes`, `planner`, `compiled` and `ddl`.
//! Calls `access`, `storage` and `table_am`.
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
