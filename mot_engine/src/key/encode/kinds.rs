//! One value's bytes, kind by kind: prefix-free, and ordered as PostgreSQL's default btree
//! comparison of the type orders the values.
//!
//! These are the bytes of an ascending column. `encode.rs` adds NULL and descending order.

use super::containers::{self, Element};
use super::extensions::{encode_cube, encode_hstore, encode_ltree, encode_seg};
use super::jsonb::encode_jsonb;
use super::numbers::{
    encode_inet, encode_interval, encode_oidvector, encode_tid, encode_timetz, order_f32, order_f64,
};
use super::records::encode_record;
use super::strings::{BYTES_END, encode_varbit, folded, push_escaped, push_text, string_of};
use super::text_search::{encode_tsquery, encode_tsvector};
use super::vectors::{encode_halfvec, encode_sparsevec, encode_vector};
use crate::collation::Collation;
use crate::errors::EngineError;
use crate::key::buffer::KeyBuffer;
use crate::key::kind::KeyKind;
use crate::key::numeric;

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

#[cold]
pub(super) fn corrupt(what: &'static str) -> EngineError {
    EngineError::Corrupt { what }
}
