//! The table access method `mot`. README.md has its rules, and says what each file holds.
//!
//! Owns: heapam's answers to what core asks of rows. May be called by core and the rooms above;
//! calls `storage`, `rows`, `serializable` and `transaction`.
pub mod bitmap;
mod failure;
pub mod fetch;
mod handler;
mod insert;
mod lock;
mod parallel;
pub mod relation;
mod resolve;
mod rewrite;
mod sample;
pub mod scan;
pub mod slot;
pub mod speculative;
mod statistics;
pub mod target;
pub mod transient;
mod unfinished;
mod update;
mod vacuum;
pub mod view;

pub use lock::note_locked;
pub use relation::BecomesHeap;
pub use scan::end as end_scan;
pub use statistics::{RowChange, RowCounts, first_row_changed, rows_read, scan_begins};
pub use target::check_row_id;
