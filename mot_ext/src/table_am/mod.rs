//! The table access method `mot`: README.md.
//!
//! Owns: tuple ids, what core sees of rows, heapam's answers to changes. May be called by core and
//! `index_am`; calls `storage`, and of `fdw` what both kinds of table share (`write`,
//! `serializable`, `tuple`, `row_slot`).
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
mod target;
pub mod tid;
mod unfinished;
mod update;
pub mod upon;
pub mod view;

pub use handler::is_routine;
pub use lock::note_locked;
pub use relation::BecomesHeap;
pub use scan::end as end_scan;
pub use statistics::{RowCounts, row_deleted, row_inserted, row_updated, rows_read, scan_begins};
pub use target::check_row_id;
