//! Reading many rows: in slot order, or through an index.
//!
//! A scan is pinned only inside `next`. Between two calls it holds slots and keys, and versions
//! that its registered snapshot sees and keeps: a slot reused meanwhile is judged by the scan's
//! snapshot like any other row, and the new row is younger than the snapshot. To one that sees
//! younger rows (`Now`), which keeps nothing, it may be another row: its key is compared, and no
//! row is judged before it is asked for.

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
