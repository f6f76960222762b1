//! Index keys on PostgreSQL's side: which types can be keys, and from a Datum to a key value.
//!
//! A key column's kind comes from its operator class's input type, so binary-coercible types and domains need no case of
//! their own: varchar is text, a domain is its base type, regclass is oid.
//!
//! `value` copies nothing: it points into the datum. Only a compressed or out-of-line varlena is expanded, in the current
//! memory context; index bounds from constants and parameters rarely are.
use crate::pg::version;
use mot_engine::key::{KeyKind, KeyValue};
use pgrx::pg_sys;

/// The key kind of an operator class's input type; None when the type cannot be a key.
pub fn kind(input_type: pg_sys::Oid) -> Option<KeyKind> {
    Some(match input_type {
        pg_sys::BOOLOID => KeyKind::Bool,
        pg_sys::INT2OID => KeyKind::Int2,
        pg_sys::INT4OID => KeyKind::Int4,
        pg_sys::INT8OID => KeyKind::Int8,
        pg_sys::OIDOID => KeyKind::Oid,
        pg_sys::FLOAT4OID => KeyKind::Float4,
        pg_sys::FLOAT8OID => KeyKind::Float8,
        pg_sys::DATEOID => KeyKind::Date,
        pg_sys::TIMEOID => KeyKind::Time,
        pg_sys::TIMESTAMPOID => KeyKind::Timestamp,
        pg_sys::TIMESTAMPTZOID => KeyKind::TimestampTz,
        pg_sys::TIMETZOID => KeyKind::TimeTz,
        pg_sys::INTERVALOID => KeyKind::Interval,
        pg_sys::UUIDOID => KeyKind::Uuid,
        pg_sys::NUMERICOID => KeyKind::Numeric,
        pg_sys::TEXTOID => KeyKind::Text,
        pg_sys::BPCHAROID => KeyKind::Bpchar,
        pg_sys::BYTEAOID => KeyKind::Bytea,
        pg_sys::CHAROID => KeyKind::Char,
        pg_sys::NAMEOID => KeyKind::Name,
        pg_sys::MONEYOID => KeyKind::Money,
        pg_sys::PG_LSNOID | pg_sys::XID8OID => KeyKind::Unsigned8,
        pg_sys::MACADDROID => KeyKind::Macaddr,
        pg_sys::MACADDR8OID => KeyKind::Macaddr8,
        pg_sys::INETOID => KeyKind::Inet,
        pg_sys::BITOID | pg_sys::VARBITOID => KeyKind::VarBit,
        _ => return None,
    })
}

/// Whether a datum of the kind holds the value itself (on the 64-bit servers this library runs on).
pub const fn is_by_value(kind: KeyKind) -> bool {
    matches!(
        kind,
        KeyKind::Bool
            | KeyKind::Int2
            | KeyKind::Int4
            | KeyKind::Int8
            | KeyKind::Oid
            | KeyKind::Float4
            | KeyKind::Float8
            | KeyKind::Date
            | KeyKind::Time
            | KeyKind::Timestamp
            | KeyKind::TimestampTz
            | KeyKind::Char
            | KeyKind::Money
            | KeyKind::Unsigned8
    )
}

const _: () = assert!(
    size_of::<pg_sys::Datum>() == 8,
    "8-byte values must be passed by value"
);

/// A datum of the kind's own type as a key value.
///
/// The value points into the datum, or into an expanded copy in the current memory context: it must not outlive them.
#[inline]
pub unsafe fn value<'a>(kind: KeyKind, datum: pg_sys::Datum, is_null: bool) -> KeyValue<'a> {
    if is_null {
        return KeyValue::Null;
    }
    if is_by_value(kind) {
        return KeyValue::Fixed(datum.value() as u64);
    }
    // SAFETY: the datum points to a value of the kind's type, by contract.
    unsafe {
        match kind.width() {
            -1 => KeyValue::Bytes(varlena_payload(datum.cast_mut_ptr())),
            width => KeyValue::Bytes(std::slice::from_raw_parts(
                datum.cast_mut_ptr::<u8>(),
                width as usize,
            )),
        }
    }
}

/// The bytes of a varlena after its header.
#[inline]
unsafe fn varlena_payload<'a>(pointer: *mut pg_sys::varlena) -> &'a [u8] {
    // SAFETY: a varlena, by contract; pg_detoast_datum_packed returns plain ones as they are.
    unsafe {
        let packed = if pgrx::varatt_is_1b_e(pointer) || pgrx::varatt_is_4b_c(pointer) {
            pg_sys::pg_detoast_datum_packed(pointer)
        } else {
            pointer
        };
        std::slice::from_raw_parts(
            pgrx::vardata_any(packed).cast::<u8>(),
            pgrx::varsize_any_exhdr(packed),
        )
    }
}

/// An integer of one width as a bound for a column of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerBound {
    /// The column can hold the value.
    Within(u64),
    /// Smaller than every value of the column.
    Below,
    /// Larger than every value of the column.
    Above,
}

/// Converts the argument of a cross-type integer comparison (`int4 column < int8 argument`) to the column's width.
pub fn integer_bound(column: KeyKind, argument: KeyKind, datum: pg_sys::Datum) -> IntegerBound {
    let bits = datum.value() as u64;
    let value = match argument {
        KeyKind::Int2 => i64::from(bits as i16),
        KeyKind::Int4 => i64::from(bits as i32),
        _ => bits as i64,
    };
    let (low, high) = match column {
        KeyKind::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        KeyKind::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    if value < low {
        IntegerBound::Below
    } else if value > high {
        IntegerBound::Above
    } else {
        IntegerBound::Within(value as u64)
    }
}

/// Whether an index's byte order is the collation's order: C, POSIX, and columns without a collation. Under any other
/// collation an index answers equality only.
pub fn is_key_order_collation(collation: pg_sys::Oid) -> bool {
    if collation == pg_sys::InvalidOid {
        return true;
    }
    version::orders_by_bytes(collation)
}
