//! Index keys on PostgreSQL's side: which types have an encoding, and from a Datum to a key value.
//!
//! A key column's kind comes from its operator class's input type, so binary-coercible types and
//! domains need no case of their own: varchar is text, a domain is its base type, regclass is oid.
//! A column whose values have no encoding ([`IndexColumn::has_encoding`]) gets labels instead
//! (`storage/labels.rs`). `mot_engine/src/key/kind.rs` lists what it takes to add a type.
//!
//! - **Collations.** Keys lie in the order of the collation (`mot_engine/src/collation/README.md`).
//!   Where they cannot, `planner/index_order.rs` has the planner use another operator family.
//! - **Arrays and ranges.** The kind follows from the column's own type, because the operator class
//!   takes any. Elements must lie in memory as the built-in type's do.
//! - **Row types.** A ROW() in a query first gets the column's form. Where core's comparison would
//!   raise at some row, the scan raises.
//!
//! | file | what |
//! |---|---|
//! | `column` | a key column as the catalog has it: its kind, collation and order |
//! | `answer` | whether an index answers a comparison exactly, roughly or not at all |
//! | `known_types` | types that are not core's, known by their comparison function |
//! | `row_types`, `text_order`, `folding`, `enum_order` | what orders follow from the catalog |
//!
//! `value` copies nothing: it points into the datum. Only a compressed or out-of-line varlena is
//! expanded, in the current memory context; index bounds from constants and parameters rarely are.
//!
//! May be called by all rooms above; calls `errors` and `pg`.
mod answer;
mod column;
mod enum_order;
mod folding;
mod known_types;
mod row_types;
mod text_order;

pub use answer::Answer;
pub use column::{IndexColumn, is_polymorphic};
pub use enum_order::{enum_values, init};
pub use text_order::{TextOrder, text_order, use_locale};

use known_types::{KnownType, is_core, known_type};
use mot_engine::key::{KeyKind, KeyValue};
use pgrx::pg_sys;
use std::ffi::CStr;

/// The key kind of an operator class's input type; `None`: its values have no encoding. May raise.
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
        pg_sys::ANYENUMOID => KeyKind::Enum,
        pg_sys::TIDOID => KeyKind::Tid,
        pg_sys::OIDVECTOROID => KeyKind::OidVector,
        pg_sys::JSONBOID => KeyKind::Jsonb,
        pg_sys::TSVECTOROID => KeyKind::TsVector,
        pg_sys::TSQUERYOID => KeyKind::TsQuery,
        other => match known_type(other)? {
            KnownType::Folded if folding::folding().is_some() => KeyKind::Text,
            KnownType::Kind(kind) => kind,
            _ => return None,
        },
    })
}

const _: () = assert!(
    size_of::<pg_sys::Datum>() == 8,
    "8-byte values must be passed by value"
);

/// A datum of the kind's own type as a key value.
///
/// The value points into the datum, or into an expanded copy in the current memory context: it must
/// not outlive them.
#[inline]
pub unsafe fn value<'a>(kind: KeyKind, datum: pg_sys::Datum, is_null: bool) -> KeyValue<'a> {
    if is_null {
        return KeyValue::Null;
    }
    let layout = kind.layout();
    if layout.by_value {
        return KeyValue::Fixed(datum.value() as u64);
    }
    // SAFETY: the datum points to a value of the kind's type, by contract.
    unsafe {
        match layout.len {
            -1 => {
                let bytes = varlena_payload(datum.cast_mut_ptr());
                KeyValue::Bytes(match kind {
                    KeyKind::Record(record) => row_types::own_form(record, datum, bytes),
                    _ => bytes,
                })
            }
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
    // SAFETY: a varlena, by contract.
    let is_packed = unsafe { pgrx::varatt_is_1b_e(pointer) || pgrx::varatt_is_4b_c(pointer) };
    let packed = match is_packed {
        // SAFETY: as above.
        true => unsafe { pg_sys::pg_detoast_datum_packed(pointer) },
        false => pointer,
    };
    // SAFETY: a plain varlena, or one with a short header, has so many bytes after its header.
    unsafe {
        std::slice::from_raw_parts(
            pgrx::vardata_any(packed).cast::<u8>(),
            pgrx::varsize_any_exhdr(packed),
        )
    }
}

/// A value of another type as a column's values are compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Converted {
    /// It compares as this value of the column's type does.
    Same(u64),
    /// It equals no value of the column: it is between this one and the next smaller one.
    JustBelow(u64),
    /// Smaller than every value of the column.
    Below,
    /// Larger than every value of the column.
    Above,
}

const fn is_integer(kind: KeyKind) -> bool {
    matches!(kind, KeyKind::Int2 | KeyKind::Int4 | KeyKind::Int8)
}

/// Whether values of a type can stand for values of a key column's type where btree's family
/// compares the two: [`converted`] says how, and [`name_as_text`].
///
/// Only core's own types: what operators of other types do with them is unknown. Types are
/// excluded where the operator sees the column's values in another order than the column's own.
/// Taken as times with zone, two values of `timestamp`, or two dates, may be equal, or the later
/// one earlier. [`lies_near`] is for these.
pub fn converts(column: pg_sys::Oid, argument: pg_sys::Oid) -> bool {
    use KeyKind::{Date, Float4, Float8, Name, Text, Timestamp, TimestampTz};
    if !(is_core(column) && is_core(argument)) {
        return false;
    }
    match (kind(column), kind(argument)) {
        (Some(column), Some(argument)) if is_integer(column) => is_integer(argument),
        (Some(column), Some(argument)) => matches!(
            (column, argument),
            (Float4, Float8)
                | (Float8, Float4)
                | (Date, Timestamp)
                | (Timestamp, Date)
                | (TimestampTz, Date | Timestamp)
                | (Text, Name)
        ),
        _ => false,
    }
}

/// The text that a name is.
///
/// # Safety
/// A name.
pub unsafe fn name_as_text<'a>(name: pg_sys::Datum) -> KeyValue<'a> {
    // SAFETY: a name ends with a zero byte (caller).
    let text = unsafe { CStr::from_ptr(name.cast_mut_ptr()) };
    KeyValue::Bytes(text.to_bytes())
}

/// Whether a comparison with a value of this type can be answered by a range of the key column that
/// holds few other values: [`earlier`] and [`later`] give its ends.
///
/// A time without zone is compared as the instant that it is in the session's time zone. That
/// instant differs from it by no more than the zone's offset.
pub fn lies_near(column: pg_sys::Oid, argument: pg_sys::Oid) -> bool {
    match (kind(column), kind(argument)) {
        (Some(of), Some(value)) if is_core(column) && is_core(argument) => {
            kind_lies_near(of, value)
        }
        _ => false,
    }
}

/// As [`lies_near`], of kinds.
pub fn kind_lies_near(column: KeyKind, argument: KeyKind) -> bool {
    use KeyKind::{Date, Timestamp, TimestampTz};
    matches!((column, argument), (Timestamp | Date, TimestampTz))
}

/// More than the offset of any time zone: POSIX allows 167 hours and the rest of one, and summer
/// time another.
const ZONE_OFFSET_MAX: i64 = 8 * MICROSECONDS_PER_DAY;

/// A time without zone before all those that are this instant, or a later one, in whatever zone.
pub fn earlier(instant: pg_sys::Datum) -> pg_sys::Datum {
    moved(instant, -ZONE_OFFSET_MAX)
}

/// A time without zone behind all those that are this instant, or an earlier one.
pub fn later(instant: pg_sys::Datum) -> pg_sys::Datum {
    moved(instant, ZONE_OFFSET_MAX)
}

fn moved(instant: pg_sys::Datum, by: i64) -> pg_sys::Datum {
    let moved = match instant.value() as i64 {
        infinite @ (TIME_FIRST | TIME_LAST) => infinite,
        finite => finite.saturating_add(by),
    };
    pg_sys::Datum::from(moved)
}

/// Converts the argument of a comparison with a column of another kind; [`converts`] said that it
/// can be. It depends on the session's time zone, as the comparison itself does.
pub unsafe fn converted(column: KeyKind, argument: KeyKind, datum: pg_sys::Datum) -> Converted {
    use KeyKind::{Date, Float4, Float8, Timestamp, TimestampTz};
    let bits = datum.value() as u64;
    let mut overflow = 0;
    match (column, argument) {
        (Float4, Float8) => float4(f64::from_bits(bits)),
        (Float8, Float4) => Converted::Same(f64::from(f32::from_bits(bits as u32)).to_bits()),
        (Date, Timestamp) => date(bits as i64),
        // SAFETY: pure functions of a date, or of a time, and the session's time zone; what
        // overflows they say instead of raising.
        (Timestamp, Date) => unsafe {
            let converted = pg_sys::date2timestamp_opt_overflow(bits as i32, &raw mut overflow);
            instant(converted, overflow)
        },
        // SAFETY: as above.
        (TimestampTz, Date) => unsafe {
            let converted = pg_sys::date2timestamptz_opt_overflow(bits as i32, &raw mut overflow);
            instant(converted, overflow)
        },
        // SAFETY: as above.
        (TimestampTz, Timestamp) => unsafe {
            let converted =
                pg_sys::timestamp2timestamptz_opt_overflow(bits as i64, &raw mut overflow);
            instant(converted, overflow)
        },
        _ => integer(column, argument, bits),
    }
}

fn integer(column: KeyKind, argument: KeyKind, bits: u64) -> Converted {
    debug_assert!(is_integer(column) && is_integer(argument));
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
        Converted::Below
    } else if value > high {
        Converted::Above
    } else {
        Converted::Same(value as u64)
    }
}

/// Among the values of `float4`, which are compared as the `float8` they are.
fn float4(value: f64) -> Converted {
    let nearest = value as f32;
    let same = f64::from(nearest);
    let bits = |value: f32| u64::from(value.to_bits());
    if same == value || value.is_nan() {
        Converted::Same(bits(nearest))
    } else if same > value {
        Converted::JustBelow(bits(nearest))
    } else {
        Converted::JustBelow(bits(nearest.next_up()))
    }
}

/// The infinite dates and times, which btree orders before and behind all others: the extreme
/// integers.
const DATE_FIRST: i32 = i32::MIN;
const DATE_LAST: i32 = i32::MAX;
const TIME_FIRST: i64 = i64::MIN;
const TIME_LAST: i64 = i64::MAX;
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// Among dates, which are compared as the time when they begin.
fn date(time: i64) -> Converted {
    let same = |date: i32| Converted::Same(date as u32 as u64);
    match time {
        TIME_FIRST => same(DATE_FIRST),
        TIME_LAST => same(DATE_LAST),
        _ => {
            // Far from the ends of i32: times are less than 300,000 years from the epoch.
            let day = time.div_euclid(MICROSECONDS_PER_DAY) as i32;
            if time.rem_euclid(MICROSECONDS_PER_DAY) == 0 {
                same(day)
            } else {
                Converted::JustBelow((day + 1) as u32 as u64)
            }
        }
    }
}

/// Among times: what overflows is beyond all finite ones, and not beyond the infinite ones.
fn instant(time: i64, overflow: i32) -> Converted {
    match overflow {
        0 => Converted::Same(time as u64),
        1.. => Converted::JustBelow(TIME_LAST as u64),
        _ => Converted::JustBelow((TIME_FIRST + 1) as u64),
    }
}

/// Families that compare texts by their bytes, whatever the collation.
const BYTE_FAMILIES: [pg_sys::Oid; 2] = [
    pg_sys::TEXT_PATTERN_BTREE_FAM_OID,
    pg_sys::BPCHAR_PATTERN_BTREE_FAM_OID,
];

/// Whether an operator family compares texts of a type by their bytes, or by those of their lower
/// case, whatever the collation. May raise.
pub fn compares_bytes(family: pg_sys::Oid, input: pg_sys::Oid) -> bool {
    BYTE_FAMILIES.contains(&family) || known_types::compares_folded_bytes(family, input)
}
