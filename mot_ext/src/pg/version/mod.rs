//! Calls whose arguments, and fields whose places, differ between major versions of PostgreSQL: one
//! function for each, so that nobody else asks which version this is.
//!
//! What an executor's hook looks like is said where the hook is (`compiled/hooks.rs`).
pub mod bitmap;
mod catalog;
mod collation;
mod executor;
pub mod index_am;
mod planner;
mod process;
pub mod table_am;
pub mod tree;

pub use catalog::*;
pub use collation::*;
pub use executor::*;
pub use planner::*;
pub use process::*;
