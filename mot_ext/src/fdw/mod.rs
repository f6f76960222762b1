//! The foreign-data wrapper `mot`: how PostgreSQL's planner and executor reach memory-optimized tables.
//!
//! Files follow the order of `FdwRoutine`: `handler`; planning (`size`, `short_range`, `paths`, `conditions`, `by_row`, `plan`, `relation_info`); scanning (`scan`,
//! `bounds`, `prefixes`, `aggregate`, `parallel`, `serializable`, `commit_order`); changing rows (`modify`, `write`, `duplicate`, `direct_modify`, `patch`, `upsert`, `triggers`, `routing`); `lock_rows`;
//! `explain`; `analyze`; `truncate`. `private` is what the planner tells the executor, `tuple` and `row_slot` are between rows and slots.
//!
//! - Rows are handed out in place: a slot points into the arena. The statement's registered snapshot keeps every version it can
//!   see, so nothing is copied and nothing is pinned between two calls.
//! - Every callback is guarded: an error PostgreSQL raises below unwinds as a panic, so destructors run. What outlives a
//!   callback and owns process memory hangs on a memory context (`leak_and_drop_on_delete`), which also goes at an error.
//! - The engine never waits; the loops in `write` and `lock_rows` wait and call it again, as heapam does.
mod aggregate;
mod analyze;
pub mod bounds;
mod by_row;
pub mod commit_order;
mod conditions;
mod direct_modify;
pub mod duplicate;
mod explain;
mod handler;
pub mod lock_rows;
mod modify;
mod parallel;
mod patch;
mod paths;
mod plan;
mod prefixes;
pub mod private;
pub mod relation_info;
mod routing;
pub mod row_slot;
mod scan;
pub mod serializable;
mod short_range;
pub mod size;
mod triggers;
mod truncate;
pub mod tuple;
mod upsert;
pub mod write;

pub use crate::executor::expressions::{Value, evaluate, passes, project, project_to};
pub use crate::executor::filter::{Filter, Verdict};
pub use aggregate::end as end_aggregate;
pub use conditions::{Test, membership};
pub use direct_modify::{Change, check_columns};
pub use handler::is_handler;
pub use lock_rows::{
    For as LockFor, Outcome as LockOutcome, lock as lock_row, policy as wait_policy,
    strength as lock_strength,
};
pub use patch::Patch;
pub use private::{Key, Private, items, list};
pub use routing::note as note_routing;
pub use scan::{Scan, state as scan_state};
pub use serializable::emptied as check_readers_of_all;
pub use write::{Inserted, Target};
