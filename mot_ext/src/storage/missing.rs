//! Values that key columns have in rows from before them.
//!
//! ADD COLUMN ... DEFAULT writes the value into `pg_attribute` and no row. An index's definition
//! takes it from there when the index is built. It holds for as long as there are such rows. Core
//! takes it out of the catalog only when it writes all rows anew, into another file.
use crate::pg::relation::Relation;
use crate::{errors, keys};
use mot_engine::EngineError;
use mot_engine::key::{
    KeyBuffer, KeyColumn, KeyKind, KeyValue, MISSING_BYTES_MAX, MissingValue, encode_value,
};
use pgrx::pg_sys;

/// The missing values of key columns, which the table has, in the form of an index's definition.
/// Raises 54000 where one is too long for a key.
pub fn missing_values(heap: Relation<'_>, columns: &[KeyColumn]) -> Vec<MissingValue> {
    let mut missing = Vec::new();
    for column in columns {
        let Some(bytes) = missing_value(heap, column) else {
            continue;
        };
        let mut key = KeyBuffer::new();
        match encode_value(column, KeyValue::Bytes(&bytes), &mut key) {
            Ok(()) => {}
            Err(EngineError::KeyTooLong { bytes, max }) => refuse(heap, column, bytes, max),
            Err(error) => errors::raise(error),
        }
        // An array may hold more blanks than a definition has room for.
        if bytes.len() > MISSING_BYTES_MAX {
            refuse(heap, column, bytes.len(), MISSING_BYTES_MAX)
        }
        missing.push(MissingValue {
            attnum: column.attnum,
            bytes: bytes.into(),
        });
    }
    missing.sort_by_key(|value| value.attnum);
    // A column may be in a key twice.
    missing.dedup_by_key(|value| value.attnum);
    missing
}

/// A column's value in rows that end before it, as a row holds it; `None` is NULL.
fn missing_value(heap: Relation<'_>, column: &KeyColumn) -> Option<Vec<u8>> {
    let mut is_null = false;
    assert!((1..=heap.description().columns().len()).contains(&usize::from(column.attnum)));
    // SAFETY: the table has the column; its row type owns the value.
    let value = unsafe {
        let number = column.attnum.into();
        let datum = pg_sys::getmissingattr(heap.row_type(), number, &raw mut is_null);
        keys::value(column.kind, datum, is_null)
    };
    match value {
        KeyValue::Null => None,
        KeyValue::Fixed(datum) => {
            let width = column.kind.width() as usize;
            Some(datum.to_le_bytes()[..width].to_vec())
        }
        // Trailing blanks are no part of a key, and there may be millions.
        KeyValue::Bytes(bytes) if column.kind == KeyKind::Bpchar => {
            let last = bytes.iter().rposition(|byte| *byte != b' ');
            Some(bytes[..last.map_or(0, |last| last + 1)].to_vec())
        }
        KeyValue::Bytes(bytes) => Some(bytes.to_vec()),
    }
}

/// Raises 54000 for a value of so many bytes.
fn refuse(heap: Relation<'_>, column: &KeyColumn, bytes: usize, max: usize) -> ! {
    let name = column_name(heap, column);
    errors::missing_value_too_long(&name, &heap.name_text(), bytes, max)
}

fn column_name(heap: Relation<'_>, column: &KeyColumn) -> String {
    // SAFETY: core raises for a column that is not there; the name is a palloc'd string.
    unsafe {
        let name = pg_sys::get_attname(heap.oid(), column.attnum as i16, false);
        crate::pg::text::from_c(name)
    }
}
