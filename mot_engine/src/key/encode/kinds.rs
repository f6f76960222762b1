//! One value's bytes, kind by kind: prefix-free, and ordered as PostgreSQL's default btree
//! comparison of the type orders the values.
//!
//! These are the bytes of an ascending column. `encode.rs` adds NULL and descending order.

use super::containers::{self, Element};
use super::extensions::{encode_cube, encode_hstore, encode_ltree, encode_seg};
use super::jsonb::encode_jsonb;
use super::records::encode_record;
use super::text_search::{encode_tsquery, encode_tsvector};
use super::vectors::{encode_halfvec, encode_sparsevec, encode_vector};
use crate::collation::Collation;
use crate::errors::EngineError;
use crate::key::buffer::KeyBuffer;
use crate::key::kind::KeyKind;
use crate::key::{KEY_BYTES_MAX, numeric};

/// Ends a string that cannot contain a zero byte.
pub(crate) const STRING_END: u8 = 0;
/// A zero byte inside a bytea, and the bytea's end: the end is smaller than any continuation.
const BYTES_ZERO: [u8; 2] = [0x00, 0xFF];
const BYTES_END: [u8; 2] = [0x00, 0x01];

/// Before the oids of an oidvector: three fields of an array, its length, and its lower bound.
const OIDVECTOR_HEADER_BYTES: usize = 20;

/// How many bytes one byte of a text may become in lower case.
const FOLDED_GROWTH_MAX: usize = 12;

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
const MICROSECONDS_PER_DAY: i128 = 86_400_000_000;
const DAYS_PER_MONTH: i64 = 30;

/// A by-value datum; only its low `width` bytes count (PostgreSQL sign-extends or not).
#[inline(always)]
pub(super) fn encode_datum(
    kind: KeyKind,
    datum: u64,
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    match kind {
        KeyKind::Bool => key.push_array([u8::from(datum as u8 != 0)]),
        KeyKind::Char => key.push_array([datum as u8]),
        KeyKind::Int2 => key.push_array((datum as u16 ^ 1 << 15).to_be_bytes()),
        KeyKind::Int4 | KeyKind::Date => key.push_array((datum as u32 ^ 1 << 31).to_be_bytes()),
        KeyKind::Oid | KeyKind::Enum => key.push_array((datum as u32).to_be_bytes()),
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
pub(super) fn order_f32(bits: u32) -> u32 {
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

pub(super) fn order_f64(bits: u64) -> u64 {
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
pub(super) fn encode_bytes(
    kind: KeyKind,
    collation: Option<Collation>,
    bytes: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    match kind {
        KeyKind::Bool | KeyKind::Char => {
            encode_datum(kind, u64::from(exactly::<1>(bytes)?[0]), key)
        }
        KeyKind::Int2 => encode_datum(kind, u64::from(u16::from_le_bytes(exactly(bytes)?)), key),
        KeyKind::Int4 | KeyKind::Oid | KeyKind::Float4 | KeyKind::Date | KeyKind::Enum => {
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
        KeyKind::Text | KeyKind::Bpchar | KeyKind::Name | KeyKind::Label => {
            let string = string_of(kind, bytes)?;
            match collation {
                Some(collation) if collation.folding().is_some() => {
                    let mut place = KeyBuffer::new();
                    push_text(Some(collation), folded(collation, string, &mut place)?, key)
                }
                _ => push_text(collation, string, key),
            }
        }
        KeyKind::Bytea => {
            push_escaped(bytes, key)?;
            key.push_array(BYTES_END)
        }
        KeyKind::Numeric => numeric::encode(bytes, key),
        KeyKind::Inet => encode_inet(bytes, key),
        KeyKind::VarBit => encode_varbit(bytes, key),
        KeyKind::Tid => encode_tid(exactly(bytes)?, key),
        KeyKind::OidVector => encode_oidvector(bytes, key),
        KeyKind::Jsonb => encode_jsonb(bytes, collation, key),
        KeyKind::TsVector => encode_tsvector(bytes, key),
        KeyKind::TsQuery => encode_tsquery(bytes, key),
        KeyKind::Hstore => encode_hstore(bytes, key),
        KeyKind::Ltree => encode_ltree(bytes, key),
        KeyKind::Cube => encode_cube(bytes, key),
        KeyKind::Seg => encode_seg(exactly(bytes)?, key),
        KeyKind::Vector => encode_vector(bytes, key),
        KeyKind::HalfVector => encode_halfvec(bytes, key),
        KeyKind::SparseVector => encode_sparsevec(bytes, key),
        KeyKind::Range(kind) => containers::encode_range(Element { kind, collation }, bytes, key),
        KeyKind::Array(kind) => containers::encode_array(Element { kind, collation }, bytes, key),
        KeyKind::Multirange(kind) => {
            containers::encode_multirange(Element { kind, collation }, bytes, key)
        }
        KeyKind::Record(record) => encode_record(record, bytes, key),
    }
}

/// A text that needs no folding, and its end.
#[inline(always)]
fn push_text(
    collation: Option<Collation>,
    string: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    if collation.is_some_and(|collation| !collation.equates()) {
        // Before the library reads what can only be refused.
        refuse_overlong(string.len(), key)?;
    }
    push_collation(collation, string, key)?;
    if collation.is_some_and(Collation::equates) {
        return Ok(());
    }
    push_string(string, key)?;
    key.push_array([STRING_END])
}

/// What of a text is ordered, in a place for it.
#[inline(never)]
pub(super) fn folded<'a>(
    collation: Collation,
    string: &[u8],
    place: &'a mut KeyBuffer,
) -> Result<&'a [u8], EngineError> {
    collation.fold(string, |piece| place.push(piece))?;
    Ok(place.as_slice())
}

/// As [`encode_bytes`], of a value that another one holds. Of a string longer than any key it is
/// the beginning, which makes the key too long.
#[inline(never)]
pub(super) fn encode_held(
    kind: KeyKind,
    collation: Option<Collation>,
    bytes: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    if may_be_overlong(kind, collation, bytes) {
        push_overlong(kind, collation, bytes, key)
    } else {
        encode_bytes(kind, collation, bytes, key)
    }
}

/// Whether it is a string longer than any key, or may become one by folding.
pub(super) fn may_be_overlong(kind: KeyKind, collation: Option<Collation>, bytes: &[u8]) -> bool {
    let longest = match collation.and_then(Collation::folding) {
        Some(_) => KEY_BYTES_MAX / FOLDED_GROWTH_MAX,
        None => KEY_BYTES_MAX,
    };
    bytes.len() > longest && string_of(kind, bytes).is_ok_and(|string| string.len() > longest)
}

/// As [`encode_bytes`], of a string that may be longer than any key: of one that is it has the
/// beginning, which makes the key too long.
#[cold]
pub(super) fn push_overlong(
    kind: KeyKind,
    collation: Option<Collation>,
    bytes: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    let mut place = KeyBuffer::new();
    let string = match collation {
        Some(collation) => folded(collation, string_of(kind, bytes)?, &mut place)?,
        None => string_of(kind, bytes)?,
    };
    if collation.is_some() && string.len() <= KEY_BYTES_MAX {
        return push_text(collation, string, key);
    }
    push_collation(collation, string, key)?;
    if collation.is_some_and(Collation::equates) {
        return Ok(());
    }
    push_string_start(kind, &string[..KEY_BYTES_MAX.min(string.len())], key)
}

/// The string that a value is, as far as it counts.
#[inline(always)]
pub(super) fn string_of(kind: KeyKind, bytes: &[u8]) -> Result<&[u8], EngineError> {
    match kind {
        KeyKind::Text | KeyKind::Bytea | KeyKind::Label => Ok(bytes),
        KeyKind::Bpchar => Ok(without_blanks(bytes)),
        KeyKind::Name => {
            let bytes = exactly_64(bytes)?;
            let length = bytes.iter().position(|byte| *byte == 0);
            Ok(&bytes[..length.unwrap_or(bytes.len())])
        }
        // Behind the number of bits.
        KeyKind::VarBit => bytes
            .get(4..)
            .ok_or_else(|| corrupt("bit string is malformed")),
        _ => Err(no_string()),
    }
}

fn exactly_64(bytes: &[u8]) -> Result<&[u8; 64], EngineError> {
    bytes
        .try_into()
        .map_err(|_| corrupt("key value has a wrong width"))
}

/// What a collation puts ahead of a string: bytes in its order, and their end.
#[inline(always)]
pub(super) fn push_collation(
    collation: Option<Collation>,
    string: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    match collation {
        Some(collation) if collation.provider().is_some() => push_collated(collation, string, key),
        _ => Ok(()),
    }
}

#[inline(never)]
fn push_collated(
    collation: Collation,
    string: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    if string.contains(&0) {
        return Err(corrupt("string holds a zero byte"));
    }
    collation.sort_key(string, |bytes| {
        debug_assert!(!bytes.contains(&STRING_END), "the end is behind the bytes");
        key.push(bytes)
    })?;
    key.push(&[STRING_END])
}

/// How the encoding of every string that begins with these bytes begins.
fn push_string_start(
    kind: KeyKind,
    bytes: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    match kind {
        KeyKind::Text | KeyKind::Bpchar | KeyKind::Name | KeyKind::Label => push_string(bytes, key),
        KeyKind::Bytea | KeyKind::VarBit => push_escaped(bytes, key),
        _ => Err(no_string()),
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

/// ItemPointerCompare: the block, whose upper half is first, then the offset.
fn encode_tid(bytes: [u8; 6], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let [a, b, c, d, e, f] = bytes;
    key.push_array([b, a, d, c, f, e])
}

/// btoidvectorcmp: the number of oids, then the oids.
fn encode_oidvector(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("oidvector is malformed");
    let (header, oids) = bytes
        .split_first_chunk::<OIDVECTOR_HEADER_BYTES>()
        .ok_or_else(malformed)?;
    let [.., d0, d1, d2, d3, _, _, _, _] = *header;
    let count = u32::from_le_bytes([d0, d1, d2, d3]);
    if oids.len() % 4 != 0 || u32::try_from(oids.len() / 4) != Ok(count) {
        return Err(malformed());
    }
    key.push_array(count.to_be_bytes())?;
    for oid in oids.chunks_exact(4) {
        key.push_array([oid[3], oid[2], oid[1], oid[0]])?;
        if key.is_too_long() {
            break;
        }
    }
    Ok(())
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
    corrupt("the kind is not a string's")
}

#[cold]
pub(super) fn corrupt(what: &'static str) -> EngineError {
    EngineError::Corrupt { what }
}
