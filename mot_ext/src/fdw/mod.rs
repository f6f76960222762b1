//! Row functions that the access methods and compiled statements share (README.md).
//!
//! - Rows are handed out in place: a slot points into the arena. The statement's registered snapshot keeps every version it can
//!   see, so nothing is copied and nothing is pinned between two calls.
//! - The engine never waits; the loops in `write` and `lock_rows` wait and call it again, as heapam does.
pub mod bounds;
pub mod commit_order;
mod conditions;
mod direct_modify;
pub mod duplicate;
pub mod lock_rows;
mod prefixes;
pub mod row_slot;
mod scan;
pub mod search;
pub mod serializable;
pub mod tuple;
pub mod write;

pub use crate::executor::expressions::{Value, evaluate, passes, project, project_to};
pub use crate::executor::filter::{Filter, Verdict};
pub use conditions::{Test, membership};
pub use direct_modify::{Change, check_columns, patch};
pub use lock_rows::{
    Outcome as LockOutcome, lock as lock_row, policy as wait_policy, strength as lock_strength,
};
pub use scan::Scan;
pub use search::{Key, Search};
pub use serializable::emptied as check_readers_of_all;
pub use write::{Inserted, Target};
