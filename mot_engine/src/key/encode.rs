//! From values to keys.
//!
//! A key is its columns' encodings, one after the other:
//! - a nullable column starts with a byte that orders NULL against values (`nulls_first`), a NOT
//!   NULL one does not;
//! - the value's bytes follow; for a descending column each is complemented (the code is
//!   prefix-free, so the complement reverses the order exactly).
//!
//! Contract: `encode_row` and `encode_value` give the same bytes for the same value. A key longer
//! than `KEY_BYTES_MAX` is `KeyTooLong`; after any error the buffer's content is unspecified.

mod compressed;
mod containers;
mod extensions;
mod jsonb;
mod kinds;
mod numbers;
mod records;
mod strings;
mod text_search;
mod vectors;

pub(crate) use strings::STRING_END;

use super::KEY_BYTES_MAX;
use super::body::BodyReader;
use super::buffer::KeyBuffer;
use super::computed;
use super::definition::{IndexDefinition, KeyColumn};
use super::missing::value_of;
use crate::errors::EngineError;
use kinds::{corrupt, encode_bytes, encode_datum};
use strings::{folded, may_be_overlong, push_collation, push_overlong, string_of};

/// Null bytes: NULL first sorts below `TAG_VALUE`, NULL last above it.
const TAG_NULL_FIRST: u8 = 0;
pub(crate) const TAG_VALUE: u8 = 1;
const TAG_NULL_LAST: u8 = 2;

/// Whether any key column is NULL.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HasNull(pub bool);

/// A value for a key column, as the glue has it.
#[derive(Copy, Clone, Debug)]
pub enum KeyValue<'a> {
    /// NULL.
    Null,
    /// A by-value datum: its low bytes.
    Fixed(u64),
    /// A varlena's payload without header, or a by-reference fixed-width value.
    Bytes(&'a [u8]),
}

/// Appends one column's encoding.
#[inline]
pub fn encode_value(
    column: &KeyColumn,
    value: KeyValue<'_>,
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    push_value(column, value, key)?;
    check_length(key)
}

/// Fills an empty buffer with a column's encoding as one end of a range: as `encode_value` has it,
/// but of a value that is longer than any key the first `KEY_BYTES_MAX` bytes. No key's column
/// begins with those (it would have to go on behind them), so a key lies on the side of them on
/// which it lies of the value.
///
/// Where texts are ordered only roughly ([`KeyColumn::orders_roughly`]) it is what all keys begin
/// with that lie beside the value's.
pub fn encode_end(
    column: &KeyColumn,
    value: KeyValue<'_>,
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    debug_assert!(key.is_empty());
    match value {
        KeyValue::Bytes(bytes) if column.orders_roughly() => {
            let start = begin_value(column, key)?;
            if let Some(collation) = column.collation {
                let mut place = KeyBuffer::new();
                let string = folded(collation, string_of(column.kind, bytes)?, &mut place)?;
                push_collation(column.collation, string, key)?;
            }
            end_value(column, start, key);
        }
        KeyValue::Bytes(bytes) if may_be_overlong(column.kind, column.collation, bytes) => {
            let start = begin_value(column, key)?;
            push_overlong(column.kind, column.collation, bytes, key)?;
            end_value(column, start, key);
        }
        KeyValue::Fixed(_) if column.orders_roughly() => {
            let start = begin_value(column, key)?;
            end_value(column, start, key);
        }
        _ => push_value(column, value, key)?,
    }
    key.truncate(KEY_BYTES_MAX);
    Ok(())
}

/// `encode_value`, however long the key.
#[inline]
fn push_value(
    column: &KeyColumn,
    value: KeyValue<'_>,
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    if let KeyValue::Null = value {
        if !column.nullable {
            return Err(corrupt("NULL in a NOT NULL key column"));
        }
        return key.push_array([if column.nulls_first {
            TAG_NULL_FIRST
        } else {
            TAG_NULL_LAST
        }]);
    }
    let start = begin_value(column, key)?;
    match value {
        KeyValue::Fixed(datum) => encode_datum(column.kind, datum, key)?,
        KeyValue::Bytes(bytes) => encode_bytes(column.kind, column.collation, bytes, key)?,
        KeyValue::Null => {}
    }
    end_value(column, start, key);
    Ok(())
}

/// Says that a value follows, where it can be NULL. Returns where it begins.
#[inline(always)]
fn begin_value(column: &KeyColumn, key: &mut KeyBuffer) -> Result<usize, EngineError> {
    if column.nullable {
        key.push_array([TAG_VALUE])?;
    }
    Ok(key.len())
}

/// Turns the order round from where the value begins, where the largest comes first.
#[inline(always)]
fn end_value(column: &KeyColumn, start: usize, key: &mut KeyBuffer) {
    if column.descending {
        key.complement_from(start);
    }
}

/// Replaces `key` by the key of the row with this `body`. A column that the row ends before has
/// the value that the definition names, or is NULL.
///
/// A computed key is in the row's tail (`computed.rs`). A row has none if the tail says that it
/// is outside a partial index: `key` is left empty.
///
/// A row with NULL in a NOT NULL key column has no key: `key` is left empty, which no key is, and
/// the row has no entry in the index. Such states exist beside the index, not under it: older than
/// the NOT NULL (an index is built over chains that may still hold them), or younger than the drop
/// of an index whose transaction is not resolved yet.
#[inline]
pub fn encode_row(
    definition: &IndexDefinition,
    body: &[u8],
    key: &mut KeyBuffer,
) -> Result<HasNull, EngineError> {
    encode_columns(definition, body, key, |_| ())
}

/// As [`encode_row`]; `ended` is called behind each column, with the key's length so far.
#[inline]
pub(crate) fn encode_columns(
    definition: &IndexDefinition,
    body: &[u8],
    key: &mut KeyBuffer,
    mut ended: impl FnMut(usize),
) -> Result<HasNull, EngineError> {
    if let Some(number) = definition.computed {
        return computed::take((definition, number), body, key, ended);
    }
    key.clear();
    let mut reader = BodyReader::new(&definition.layout, body)?;
    let mut has_null = false;
    for column in &definition.columns {
        let value = match value_of(definition, column, &mut reader)? {
            None if !column.nullable => {
                key.clear();
                return Ok(HasNull(true));
            }
            None => {
                has_null = true;
                KeyValue::Null
            }
            Some(bytes) => KeyValue::Bytes(bytes),
        };
        encode_value(column, value, key)?;
        ended(key.len());
    }
    Ok(HasNull(has_null))
}

/// Replaces `key` by the first columns of a row's key, or by the whole of it, and says where they
/// end. `None`: the row has no key.
pub(crate) fn encode_first_columns(
    definition: &IndexDefinition,
    count: usize,
    body: &[u8],
    key: &mut KeyBuffer,
) -> Result<Option<usize>, EngineError> {
    if definition.computed.is_some() {
        let (mut columns, mut end) = (0, None);
        encode_columns(definition, body, key, |at| {
            columns += 1;
            if columns == count {
                end = Some(at);
            }
        })?;
        return Ok(end);
    }
    key.clear();
    let mut reader = BodyReader::new(&definition.layout, body)?;
    for column in &definition.columns[..count] {
        let value = match value_of(definition, column, &mut reader)? {
            None if !column.nullable => return Ok(None),
            None => KeyValue::Null,
            Some(bytes) => KeyValue::Bytes(bytes),
        };
        encode_value(column, value, key)?;
    }
    Ok(Some(key.len()))
}

/// As [`encode_row`], for a row that the index need not have accepted: a row whose key is too long,
/// or not known, has none.
///
/// A writer whose row has a key too long for an index is refused, and so is an index if a row has
/// such a key. But there are such states beside an index: older ones, which were replaced when it
/// was made, and younger ones, if it was dropped and is not gone yet. On a standby a snapshot may
/// still see the older ones. Such a snapshot does not use the index
/// (`Session::indexes_kept_from_older`).
#[inline]
pub fn encode_row_if_any(
    definition: &IndexDefinition,
    body: &[u8],
    key: &mut KeyBuffer,
) -> Result<HasNull, EngineError> {
    let encoded = encode_row(definition, body, key);
    none_if_too_long(encoded, key)
}

/// No key, where encoding it has found that there is none: it is too long, or not known.
#[inline]
pub(crate) fn none_if_too_long(
    encoded: Result<HasNull, EngineError>,
    key: &mut KeyBuffer,
) -> Result<HasNull, EngineError> {
    match encoded {
        Err(
            EngineError::KeyTooLong { .. }
            | EngineError::KeyNotComputed
            | EngineError::NoOrder { .. }
            | EngineError::RowTypeChanged { .. },
        ) => {
            key.clear();
            Ok(HasNull(false))
        }
        other => other,
    }
}

/// Whether two images surely have the same key: every key attribute has the same bytes. `false`
/// means only "encode both and compare" (numeric 1.0 and 1.00 differ in bytes, not in key).
pub fn key_attributes_unchanged(
    definition: &IndexDefinition,
    old: &[u8],
    new: &[u8],
) -> Result<bool, EngineError> {
    if let Some(number) = definition.computed {
        let note = computed::note_of(old, number)?;
        if note.is_none() || note != computed::note_of(new, number)? {
            return Ok(false);
        }
        if !definition.is_of_columns() {
            return Ok(true);
        }
    }
    let mut old = BodyReader::new(&definition.layout, old)?;
    let mut new = BodyReader::new(&definition.layout, new)?;
    for column in &definition.columns {
        if value_of(definition, column, &mut old)? != value_of(definition, column, &mut new)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[inline(always)]
fn check_length(key: &KeyBuffer) -> Result<(), EngineError> {
    if key.is_too_long() {
        return Err(EngineError::KeyTooLong {
            bytes: key.len(),
            max: KEY_BYTES_MAX,
        });
    }
    Ok(())
}
