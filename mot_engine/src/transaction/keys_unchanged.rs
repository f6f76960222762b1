//! Updates of columns that no index has.

use crate::errors::EngineError;
use crate::ids::TableId;
use crate::session::Session;
use crate::sync::is_broken;
use crate::table::TableRef;
use std::sync::atomic::Ordering;

/// The fact that an update assigns only to columns that no index of the table has, and when that
/// was true.
///
/// It is checked under the pin under which the new state is published. An index that is begun
/// beside writers raises the number, then waits for all that are pinned. So a writer that still
/// finds the old number has its state in the row's chain when the index is filled.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct KeysUnchanged {
    table: TableId,
    published: u32,
}

impl KeysUnchanged {
    /// Of the indexes that the table has now. The caller reads them, under the same pin.
    fn now(table: TableRef) -> KeysUnchanged {
        KeysUnchanged {
            table: table.id(),
            published: table.storage().indexes_published.load(Ordering::Acquire),
        }
    }

    /// Whether it holds of this table as it is now. The caller is pinned.
    #[inline]
    pub(super) fn is_still(self, table: TableRef) -> bool {
        self == KeysUnchanged::now(table) || is_broken("updates of no key: an index that came")
    }
}

impl Session {
    /// If no index that writers of the table maintain has a column that `is_meant`, by its number
    /// in the table: what
    /// [`Transaction::update_non_key`](crate::Transaction::update_non_key) wants to know.
    pub fn keys_unchanged(
        &self,
        table: TableRef,
        is_meant: impl Fn(u16) -> bool,
    ) -> Result<Option<KeysUnchanged>, EngineError> {
        let _pin = self.local.pin();
        // Ahead of the list: an index that is not in it yet is told by the number.
        let unchanged = KeysUnchanged::now(table);
        for index in table.all_indexes() {
            let columns = &self.definition(index)?.columns;
            if index.is_computed() || columns.iter().any(|column| is_meant(column.attnum)) {
                return Ok(None);
            }
        }
        Ok(Some(unchanged))
    }
}
