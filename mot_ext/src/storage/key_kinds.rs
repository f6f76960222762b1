//! What tests ask about keys. Only in builds with debug assertions (`checked`).
//!
//! - `mot.index_key_kinds(index)`: the kind of each key column, as the index has it. `Label`:
//!   its values have no encoding.
//! - `mot.key_kind(type)`: the kind that values of a type have under its own class, and how such
//!   values lie in a row. No row: they have labels.
use super::{definition_of, with_index_and_table};
use crate::keys::IndexColumn;
use mot_engine::key::{AttributeLayout, KeyKind};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// A kind without what tells one row type from another.
fn name(kind: KeyKind) -> String {
    match kind {
        KeyKind::Range(held) => format!("Range({})", name(held.kind())),
        KeyKind::Array(held) => format!("Array({})", name(held.kind())),
        KeyKind::Multirange(held) => format!("Multirange({})", name(held.kind())),
        KeyKind::Record(_) => "Record".to_owned(),
        scalar => format!("{scalar:?}"),
    }
}

#[pg_extern(stable, strict)]
fn index_key_kinds(index: pg_sys::Oid) -> Option<Vec<String>> {
    // SAFETY: a catalog look-up, and locks to the transaction's end.
    unsafe {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        pg_sys::LockRelationOid(pg_sys::IndexGetRelation(index, false), lock);
        pg_sys::LockRelationOid(index, lock);
    }
    let definition = with_index_and_table(index, |_, index| definition_of(index))??;
    let columns = definition.columns.iter();
    Some(columns.map(|column| name(column.kind)).collect())
}

#[pg_extern(stable, strict)]
fn key_kind(
    of_type: pg_sys::Oid,
) -> TableIterator<
    'static,
    (
        name!(kind, String),
        name!(bytes, i16),
        name!(alignment, i32),
        name!(is_by_value, bool),
    ),
> {
    let column = IndexColumn::of_type(of_type, pg_sys::DEFAULT_COLLATION_OID);
    let rows = column.has_encoding(false).then(|| column.kind()).flatten();
    let rows = rows.map(|kind| {
        let AttributeLayout {
            len,
            align,
            by_value,
        } = kind.layout();
        (name(kind), len, i32::from(align), by_value)
    });
    TableIterator::new(rows)
}
