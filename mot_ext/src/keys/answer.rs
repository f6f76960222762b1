//! How exactly an index answers a comparison of its column with a value.
use super::column::IndexColumn;
use super::{converts, lies_near};
use mot_engine::key::{KeyColumn, KeyKind};
use pgrx::pg_sys;

/// Which rows an index finds for a condition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Exactly those that pass.
    Exact,
    /// Others, too: core tests each row.
    Roughly,
}

impl IndexColumn {
    /// How an index that has `column` answers `=`, or a list, with values of a type. `None`: it
    /// does not, or the column has labels, for which the scan looks itself (`index_am/labels.rs`).
    /// May raise.
    pub fn answer_to_equality(self, column: &KeyColumn, argument: pg_sys::Oid) -> Option<Answer> {
        if column.kind == KeyKind::Label {
            return None;
        }
        let is_known = self.is_alike(argument) || converts(self.input, argument);
        (is_known && self.has_row_type_of(column)).then_some(Answer::Exact)
    }

    /// Whether the catalog still has the row type for which keys were made. If not, and no index
    /// was built anew for the change, core tests row by row.
    fn has_row_type_of(self, column: &KeyColumn) -> bool {
        let is_stored = |is_computed| self.kind_in(is_computed) == Some(column.kind);
        column.kind.record().is_none() || is_stored(true) || is_stored(false)
    }

    /// How an index that has `column` answers `<`, `<=`, `>=` and `>` with a value of a type.
    /// `None`: as above. May raise.
    pub fn answer_to_range(self, column: &KeyColumn, argument: pg_sys::Oid) -> Option<Answer> {
        if column.kind == KeyKind::Label || !self.is_ordered_as(column) {
            return None;
        }
        let is_alike = self.is_alike(argument);
        let lies_near = !is_alike && lies_near(self.input, argument);
        if !(is_alike || lies_near || converts(self.input, argument)) {
            return None;
        }
        Some(match lies_near || column.orders_roughly() {
            true => Answer::Roughly,
            false => Answer::Exact,
        })
    }
}
