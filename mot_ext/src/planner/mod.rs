//! What the planner is offered for memory-optimized tables beyond core's own paths.
pub mod aggregate;
