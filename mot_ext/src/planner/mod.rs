//! What core's planner is told of memory-optimized tables.
pub mod costs;
