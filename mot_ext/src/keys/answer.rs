//! How exactly an index answers a comparison of its column with a value.
use super::column::IndexColumn;
use super::{converts, lies_near};
use mot_engine::key::{KeyColumn, KeyKind};
use pgrx::pg_sys;

/// What the rows are that an index finds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Those that pass.
    Exact,
    /// Others may be among them: core tests each.
    Roughly,
}

impl IndexColumn {
    /// The answer to `=`, or to a list, with values of a type, of an index that has the column so.
    /// `None`: there is none, or the values' labels are to be looked for. May raise.
    pub fn answer_to_equality(self, column: &KeyColumn, argument: pg_sys::Oid) -> Option<Answer> {
        if column.kind == KeyKind::Label {
            return None;
        }
        let is_known = self.is_alike(argument) || converts(self.input, argument);
        (is_known && self.has_row_type_of(column)).then_some(Answer::Exact)
    }

    /// Whether the catalog has the row type that keys were made for. One that was changed
    /// in a way that builds no index anew is looked for row by row.
    fn has_row_type_of(self, column: &KeyColumn) -> bool {
        let is_stored = |is_computed| self.kind_in(is_computed) == Some(column.kind);
        column.kind.record().is_none() || is_stored(true) || is_stored(false)
    }

    /// The answer to `<`, `<=`, `>=` and `>` with a value of a type, of an index that has the
    /// column so. `None`: as above. May raise.
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
