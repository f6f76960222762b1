//! Reading many rows: in slot order, or through an index.
//!
//! A scan is pinned only inside `next`. Between two calls it holds slots and keys, never pointers: a slot reused meanwhile is judged by the
//! scan's snapshot like any other row, and the new row is younger than the snapshot. To one that sees younger rows (`Now`) it may be another row:
//! its key is compared.

mod index_scan;
mod points;
mod range;
mod row_scan;
mod shared;

pub use index_scan::IndexScan;
pub use mot_index::Direction;
pub use range::KeyRange;
pub use row_scan::RowScan;
pub use shared::SharedRowScan;
