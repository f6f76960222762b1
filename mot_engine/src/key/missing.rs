//! Values of key columns that a row ends before.
//!
//! `ALTER TABLE ... ADD COLUMN ... DEFAULT` writes no row: PostgreSQL keeps the value that older
//! rows have in its catalog. A key must not depend on a catalog: replay and loading have none, and
//! a rewrite takes the value out unseen by an access method. So the index's definition
//! holds these values.
//!
//! Contract: the values are a part of the definition's byte form, ordered by attribute, each once.
//! Each one can be encoded, which decoding checks.

use super::body::{Attribute, BodyReader};
use super::buffer::KeyBuffer;
use super::definition::{INDEX_COLUMNS_MAX, IndexDefinition, KeyColumn, corrupt};
use super::encode::{KeyValue, encode_value};
use crate::errors::EngineError;

/// Bytes before the values: how many there are.
const COUNT_BYTES: usize = 2;
/// Bytes before a value: its attribute and its length.
const HEADER_BYTES: usize = 4;

/// Most bytes of one: its length takes two.
pub const MISSING_BYTES_MAX: usize = u16::MAX as usize;

/// What a key column is in rows that end before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingValue {
    /// Attribute number in the table, from 1.
    pub attnum: u16,
    /// The value as a row holds it: the fixed width, or the varlena's payload without header.
    pub bytes: Box<[u8]>,
}

/// A key column's value in a row; `None` is NULL.
#[inline]
pub(super) fn value_of<'a>(
    definition: &'a IndexDefinition,
    column: &KeyColumn,
    reader: &mut BodyReader<'a>,
) -> Result<Option<&'a [u8]>, EngineError> {
    Ok(match reader.attribute(column.attnum)? {
        Attribute::Bytes(bytes) => Some(bytes),
        Attribute::Null => None,
        Attribute::Beyond => beyond(definition, column.attnum),
    })
}

/// The value of an attribute that a row ends before.
#[inline(never)]
fn beyond(definition: &IndexDefinition, attnum: u16) -> Option<&[u8]> {
    let mut missing = definition.missing.iter();
    missing
        .find(|missing| missing.attnum == attnum)
        .map(|missing| &*missing.bytes)
}

/// Appends the byte form of a definition's missing values: nothing if there are none.
pub(super) fn write(missing: &[MissingValue], out: &mut Vec<u8>) {
    if missing.is_empty() {
        return;
    }
    out.extend_from_slice(&(missing.len() as u16).to_le_bytes());
    for value in missing {
        out.extend_from_slice(&value.attnum.to_le_bytes());
        out.extend_from_slice(&(value.bytes.len() as u16).to_le_bytes());
        out.extend_from_slice(&value.bytes);
    }
}

/// Length of the byte form.
pub(super) fn bytes_len(missing: &[MissingValue]) -> usize {
    let bytes = |value: &MissingValue| HEADER_BYTES + value.bytes.len();
    match missing {
        [] => 0,
        values => COUNT_BYTES + values.iter().map(bytes).sum::<usize>(),
    }
}

/// Reads a byte form that fills `bytes` exactly; it has at least one value.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<MissingValue>, EngineError> {
    let cut = || corrupt("missing value is cut");
    let (count, mut rest) = bytes.split_first_chunk().ok_or_else(cut)?;
    let count = usize::from(u16::from_le_bytes(*count));
    if count == 0 || count > INDEX_COLUMNS_MAX {
        return Err(corrupt("definition has no or too many missing values"));
    }
    let mut missing = Vec::new();
    missing
        .try_reserve(count)
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    for _ in 0..count {
        let ([a, b, c, d], behind) = rest.split_first_chunk().ok_or_else(cut)?;
        let length = usize::from(u16::from_le_bytes([*c, *d]));
        let (value, behind) = behind.split_at_checked(length).ok_or_else(cut)?;
        rest = behind;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(length)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        bytes.extend_from_slice(value);
        missing.push(MissingValue {
            attnum: u16::from_le_bytes([*a, *b]),
            bytes: bytes.into_boxed_slice(),
        });
    }
    if !rest.is_empty() {
        return Err(corrupt("definition has bytes after its end"));
    }
    Ok(missing)
}

/// Checks that the values are of key columns, in order, and can be encoded.
pub(super) fn validate(definition: &IndexDefinition) -> Result<(), EngineError> {
    let mut last = 0;
    for value in &definition.missing {
        if value.attnum <= last {
            return Err(corrupt("missing values are not in order"));
        }
        last = value.attnum;
        if value.bytes.len() > MISSING_BYTES_MAX {
            return Err(corrupt("missing value is too long"));
        }
        let mut columns = definition.columns.iter();
        let column = columns
            .find(|column| column.attnum == value.attnum)
            .ok_or_else(|| corrupt("missing value is of no key column"))?;
        let mut key = KeyBuffer::new();
        encode_value(column, KeyValue::Bytes(&value.bytes), &mut key)?;
    }
    Ok(())
}
