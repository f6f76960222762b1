//! Reading many rows: in the order of row ids, or through an index.
//!
//! | file | what |
//! |---|---|
//! | `row_scan`, `shared` | all rows; the same by several processes |
//! | `index_scan`, `range`, `points` | rows of a key range; ranges; many whole keys at once |
//! | `grouped` | an index that orders its values only roughly: rows in exact order |
//! | `found`, `pending` | rows that were looked up; entries whose rows are prefetched |
//!
//! A scan is pinned only inside `next`. Between two calls it holds row ids and keys, and versions
//! that its registered snapshot sees and keeps.
//!
//! A row id may be reused meanwhile. Then the new row is younger than the snapshot, and the scan
//! passes over it like over any row that it does not see. `Now` sees younger rows and keeps
//! nothing, so a scan with it compares the row's key, and reads no row before it is asked for
//! it.

mod found;
mod grouped;
mod index_scan;
mod pending;
mod points;
mod range;
mod row_scan;
mod shared;

pub use grouped::GroupedScan;
pub use index_scan::IndexScan;
pub use mot_index::Direction;
pub use range::KeyRange;
pub use row_scan::{ROWS_MAX as GROUP_ROWS_MAX, RowScan};
pub use shared::SharedRowScan;

use crate::errors::EngineError;

/// Makes room for more.
fn reserve<T>(of: &mut Vec<T>, more: usize) -> Result<(), EngineError> {
    of.try_reserve(more)
        .map_err(|_| EngineError::OutOfProcessMemory)
}
