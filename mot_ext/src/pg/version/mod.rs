//! Calls whose arguments, and fields whose places, differ between major versions of PostgreSQL: one
//! function for each, so that no other file asks which version this is.
//!
//! | file | what differs |
//! |---|---|
//! | `bitmap` | the pages of a bitmap, and the callbacks that read them |
//! | `catalog` | definitions: rights, columns, indexes |
//! | `collation` | what the catalog says of a locale |
//! | `decoding` | logical decoding's changes, and the files that they name |
//! | `executor` | statements that run, and the hook that runs them |
//! | `index_am` | index access methods, and what core asks of them |
//! | `planner` | queries and paths |
//! | `process` | processes, their transactions and locks, replication slots |
//! | `table_am` | table access methods, files, statistics |
//! | `tree` | walks over queries and expressions |
//!
//! Where a version lacks something as a whole, a constant says so. The code for it is built for all
//! versions, and the compiler leaves out what none of its calls reaches. A callback whose arguments
//! differ is a function of a trait here (`Pages`, `Blocks`) or is made by a macro (`run_hook`). So
//! what is called for each row or statement is called directly.
pub mod bitmap;
mod catalog;
mod collation;
mod decoding;
mod executor;
pub mod index_am;
mod planner;
mod process;
pub mod table_am;
pub mod tree;

pub use catalog::*;
pub use collation::*;
pub use decoding::*;
pub use executor::*;
pub use planner::*;
pub use process::*;
