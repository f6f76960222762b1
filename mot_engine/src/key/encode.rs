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

use super::body::{Attribute, BodyReader};
use super::buffer::KeyBuffer;
use super::definition::{IndexDefinition, KeyColumn, KeyKind};
use super::{KEY_BYTES_MAX, numeric};
use crate::errors::EngineError;

/// Null bytes: NULL first sorts below `TAG_VALUE`, NULL last above it.
const TAG_NULL_FIRST: u8 = 0;
pub(super) const TAG_VALUE: u8 = 1;
const TAG_NULL_LAST: u8 = 2;

/// Ends a string that cannot contain a zero byte.
const STRING_END: u8 = 0;
/// A zero byte inside a bytea, and the bytea's end: the end is smaller than any continuation.
const BYTES_ZERO: [u8; 2] = [0x00, 0xFF];
const BYTES_END: [u8; 2] = [0x00, 0x01];

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
const MICROSECONDS_PER_DAY: i128 = 86_400_000_000;
const DAYS_PER_MONTH: i64 = 30;

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

/// Fills an empty buffer with a column's encoding as one end of a range: as `encode_value` has it, but of a value that is longer than any key the
/// first `KEY_BYTES_MAX` bytes. No key's column begins with those (it would have to go on behind them), so a key lies on the side of them on which it
/// lies of the value.
pub fn encode_end(
    column: &KeyColumn,
    value: KeyValue<'_>,
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    debug_assert!(key.is_empty());
    let string = match value {
        KeyValue::Bytes(bytes) => match column.kind {
            KeyKind::Text | KeyKind::Bytea => Some(bytes),
            KeyKind::Bpchar => Some(without_blanks(bytes)),
            // Behind the number of bits.
            KeyKind::VarBit => bytes.get(4..),
            _ => None,
        },
        _ => None,
    };
    match string {
        Some(bytes) if bytes.len() > KEY_BYTES_MAX => {
            push_start(column, &bytes[..KEY_BYTES_MAX], key)?;
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
    let start = match value {
        KeyValue::Null => {
            if !column.nullable {
                return Err(corrupt("NULL in a NOT NULL key column"));
            }
            key.push_array([if column.nulls_first {
                TAG_NULL_FIRST
            } else {
                TAG_NULL_LAST
            }])?;
            return Ok(());
        }
        _ if column.nullable => {
            key.push_array([TAG_VALUE])?;
            key.len()
        }
        _ => key.len(),
    };
    match value {
        KeyValue::Fixed(datum) => encode_datum(column.kind, datum, key)?,
        KeyValue::Bytes(bytes) => encode_bytes(column.kind, bytes, key)?,
        KeyValue::Null => {}
    }
    if column.descending {
        key.complement_from(start);
    }
    Ok(())
}

/// Replaces `key` by the key of the row with this `body`.
///
/// A row with NULL in a NOT NULL key column has no key: `key` is left empty, which no key is, and the row has no entry in the index. Such
/// states exist beside the index, not under it: older than the NOT NULL (an index is built over chains that may still hold them), or
/// younger than the drop of an index whose transaction is not settled yet.
#[inline]
pub fn encode_row(
    definition: &IndexDefinition,
    body: &[u8],
    key: &mut KeyBuffer,
) -> Result<HasNull, EngineError> {
    key.clear();
    let mut reader = BodyReader::new(&definition.layout, body)?;
    let mut has_null = false;
    for column in &definition.columns {
        let value = match reader.attribute(column.attnum)? {
            Attribute::Null if !column.nullable => {
                key.clear();
                return Ok(HasNull(true));
            }
            Attribute::Null => {
                has_null = true;
                KeyValue::Null
            }
            Attribute::Bytes(bytes) => KeyValue::Bytes(bytes),
        };
        encode_value(column, value, key)?;
    }
    Ok(HasNull(has_null))
}

/// As [`encode_row`], of a row that the index need not have taken: where the key is too long, the row has none, either.
///
/// A writer that would give a row a key too long for one of its indexes is refused. But there are such rows beside the index: older ones, which were
/// gone for everybody on the server that made it, and which a start or replay has again; and younger ones, of an index that was dropped and is
/// not gone yet. On a standby somebody may still see the older ones: from him replay keeps the index (`Session::indexes_kept_from_older`).
#[inline]
pub fn encode_row_if_any(
    definition: &IndexDefinition,
    body: &[u8],
    key: &mut KeyBuffer,
) -> Result<HasNull, EngineError> {
    let encoded = encode_row(definition, body, key);
    none_if_too_long(encoded, key)
}

/// No key, where encoding it has found that it is too long.
#[inline]
pub(crate) fn none_if_too_long(
    encoded: Result<HasNull, EngineError>,
    key: &mut KeyBuffer,
) -> Result<HasNull, EngineError> {
    match encoded {
        Err(EngineError::KeyTooLong { .. }) => {
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
    let mut old = BodyReader::new(&definition.layout, old)?;
    let mut new = BodyReader::new(&definition.layout, new)?;
    for column in &definition.columns {
        if old.attribute(column.attnum)? != new.attribute(column.attnum)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Appends the start of a string column's encoding: a byte prefix of every key whose column starts
/// with `prefix` (and of no other). For `LIKE 'abc%'` and `^@`. Text, Bpchar, Name and Bytea only.
pub fn encode_string_prefix(
    column: &KeyColumn,
    prefix: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    if column.kind == KeyKind::VarBit {
        return Err(no_string());
    }
    push_start(column, prefix, key)?;
    check_length(key)
}

/// How the encoding of every string that begins with these bytes begins.
fn push_start(column: &KeyColumn, bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    if column.nullable {
        key.push_array([TAG_VALUE])?;
    }
    let start = key.len();
    match column.kind {
        KeyKind::Text | KeyKind::Bpchar | KeyKind::Name => push_string(bytes, key)?,
        KeyKind::Bytea | KeyKind::VarBit => push_escaped(bytes, key)?,
        _ => return Err(no_string()),
    }
    if column.descending {
        key.complement_from(start);
    }
    Ok(())
}

#[inline(always)]
fn check_length(key: &KeyBuffer) -> Result<(), EngineError> {
    if key.len() > KEY_BYTES_MAX {
        return Err(EngineError::KeyTooLong {
            bytes: key.len(),
            max: KEY_BYTES_MAX,
        });
    }
    Ok(())
}

/// A by-value datum; only its low `width` bytes count (PostgreSQL sign-extends or not).
#[inline(always)]
fn encode_datum(kind: KeyKind, datum: u64, key: &mut KeyBuffer) -> Result<(), EngineError> {
    match kind {
        KeyKind::Bool => key.push_array([u8::from(datum as u8 != 0)]),
        KeyKind::Char => key.push_array([datum as u8]),
        KeyKind::Int2 => key.push_array((datum as u16 ^ 1 << 15).to_be_bytes()),
        KeyKind::Int4 | KeyKind::Date => key.push_array((datum as u32 ^ 1 << 31).to_be_bytes()),
        KeyKind::Oid => key.push_array((datum as u32).to_be_bytes()),
        KeyKind::Int8
        | KeyKind::Time
        | KeyKind::Timestamp
        | KeyKind::TimestampTz
        | KeyKind::Money => key.push_array((datum ^ 1 << 63).to_be_bytes()),
        KeyKind::Unsigned8 => key.push_array(datum.to_be_bytes()),
        KeyKind::Float4 => key.push_array(order_f32(datum as u32).to_be_bytes()),
        KeyKind::Float8 => key.push_array(order_f64(datum).to_be_bytes()),
        _ => Err(corrupt("key value is not by value")),
    }
}

/// Bits that order, as unsigned numbers, like PostgreSQL orders the floats.
fn order_f32(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    if value.is_nan() {
        u32::MAX
    } else if value == 0.0 {
        1 << 31
    } else if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    }
}

fn order_f64(bits: u64) -> u64 {
    let value = f64::from_bits(bits);
    if value.is_nan() {
        u64::MAX
    } else if value == 0.0 {
        1 << 63
    } else if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

#[inline(always)]
fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], EngineError> {
    bytes
        .try_into()
        .map_err(|_| corrupt("key value has a wrong width"))
}

#[inline]
fn encode_bytes(kind: KeyKind, bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    match kind {
        KeyKind::Bool | KeyKind::Char => {
            encode_datum(kind, u64::from(exactly::<1>(bytes)?[0]), key)
        }
        KeyKind::Int2 => encode_datum(kind, u64::from(u16::from_le_bytes(exactly(bytes)?)), key),
        KeyKind::Int4 | KeyKind::Oid | KeyKind::Float4 | KeyKind::Date => {
            encode_datum(kind, u64::from(u32::from_le_bytes(exactly(bytes)?)), key)
        }
        KeyKind::Int8
        | KeyKind::Float8
        | KeyKind::Time
        | KeyKind::Timestamp
        | KeyKind::TimestampTz
        | KeyKind::Money
        | KeyKind::Unsigned8 => encode_datum(kind, u64::from_le_bytes(exactly(bytes)?), key),
        KeyKind::Uuid => key.push_array(exactly::<16>(bytes)?),
        KeyKind::Macaddr => key.push_array(exactly::<6>(bytes)?),
        KeyKind::Macaddr8 => key.push_array(exactly::<8>(bytes)?),
        KeyKind::TimeTz => encode_timetz(exactly(bytes)?, key),
        KeyKind::Interval => encode_interval(exactly(bytes)?, key),
        KeyKind::Name => {
            let bytes = exactly::<64>(bytes)?;
            let length = bytes
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(bytes.len());
            push_string(&bytes[..length], key)?;
            key.push_array([STRING_END])
        }
        KeyKind::Text => {
            push_string(bytes, key)?;
            key.push_array([STRING_END])
        }
        KeyKind::Bpchar => {
            push_string(without_blanks(bytes), key)?;
            key.push_array([STRING_END])
        }
        KeyKind::Bytea => {
            push_escaped(bytes, key)?;
            key.push_array(BYTES_END)
        }
        KeyKind::Numeric => numeric::encode(bytes, key),
        KeyKind::Inet => encode_inet(bytes, key),
        KeyKind::VarBit => encode_varbit(bytes, key),
    }
}

/// By instant, then by zone: timetz_cmp_internal.
fn encode_timetz(bytes: [u8; 12], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let [time @ .., z0, z1, z2, z3] = bytes;
    let zone = i32::from_le_bytes([z0, z1, z2, z3]);
    let instant = i64::from_le_bytes(time)
        .wrapping_add(i64::from(zone).wrapping_mul(MICROSECONDS_PER_SECOND));
    key.push_array((instant as u64 ^ 1 << 63).to_be_bytes())?;
    key.push_array((zone as u32 ^ 1 << 31).to_be_bytes())
}

/// The span in microseconds as interval_cmp_value computes it. It is below 2^75 in magnitude, so 80
/// bits hold it.
fn encode_interval(bytes: [u8; 16], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let [
        t0,
        t1,
        t2,
        t3,
        t4,
        t5,
        t6,
        t7,
        d0,
        d1,
        d2,
        d3,
        m0,
        m1,
        m2,
        m3,
    ] = bytes;
    let time = i64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
    let day = i32::from_le_bytes([d0, d1, d2, d3]);
    let month = i32::from_le_bytes([m0, m1, m2, m3]);
    let days = i64::from(month) * DAYS_PER_MONTH + i64::from(day);
    let span = i128::from(time) + i128::from(days) * MICROSECONDS_PER_DAY;
    let biased = (span + (1 << 79)) as u128;
    let mut ordered = [0; 10];
    ordered.copy_from_slice(&biased.to_be_bytes()[6..]);
    key.push_array(ordered)
}

/// network_cmp: family, the network's bits, their number, the whole address.
fn encode_inet(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("inet is malformed");
    let [family, bits, address @ ..] = bytes else {
        return Err(malformed());
    };
    // PGSQL_AF_INET = 2 (AF_INET), PGSQL_AF_INET6 = 3.
    let width = match family {
        2 => 4,
        3 => 16,
        _ => return Err(malformed()),
    };
    if address.len() != width || usize::from(*bits) > width * 8 {
        return Err(malformed());
    }
    key.push_array([*family])?;
    for (index, byte) in address.iter().enumerate() {
        let covered = usize::from(*bits).saturating_sub(index * 8).min(8);
        // The upper `covered` bits.
        let mask = !(0xFF_u16 >> covered) as u8;
        key.push_array([byte & mask])?;
    }
    key.push_array([*bits])?;
    key.push(address)
}

/// bit_cmp: the bytes, then the number of bits.
fn encode_varbit(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("bit string is malformed");
    let (length, bits) = bytes.split_first_chunk::<4>().ok_or_else(malformed)?;
    let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| malformed())?;
    if bits.len() != length.div_ceil(8) {
        return Err(malformed());
    }
    push_escaped(bits, key)?;
    key.push_array(BYTES_END)?;
    // Only bit strings of the same number of bytes get here equal.
    key.push_array([(length % 8) as u8 + if length % 8 == 0 { 8 } else { 0 }])
}

/// What counts of a char(n).
fn without_blanks(bytes: &[u8]) -> &[u8] {
    let length = bytes
        .iter()
        .rposition(|byte| *byte != b' ')
        .map_or(0, |last| last + 1);
    &bytes[..length]
}

/// A string without zero bytes, without its end.
#[inline]
fn push_string(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    refuse_overlong(bytes.len(), key)?;
    if bytes.contains(&0) {
        return Err(corrupt("string holds a zero byte"));
    }
    key.push(bytes)
}

/// A byte string with its zero bytes escaped, without its end.
fn push_escaped(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    refuse_overlong(bytes.len(), key)?;
    let mut pieces = bytes.split(|byte| *byte == 0);
    if let Some(first) = pieces.next() {
        key.push(first)?;
    }
    for piece in pieces {
        key.push_array(BYTES_ZERO)?;
        key.push(piece)?;
    }
    Ok(())
}

/// Before copying what can only be refused.
#[inline(always)]
fn refuse_overlong(bytes: usize, key: &KeyBuffer) -> Result<(), EngineError> {
    if bytes > KEY_BYTES_MAX {
        return Err(EngineError::KeyTooLong {
            bytes: key.len() + bytes,
            max: KEY_BYTES_MAX,
        });
    }
    Ok(())
}

#[cold]
fn no_string() -> EngineError {
    corrupt("only strings have prefixes")
}

#[cold]
fn corrupt(what: &'static str) -> EngineError {
    EngineError::Corrupt { what }
}
