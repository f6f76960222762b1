//! Types as keys know them: by their order.
//!
//! Contract: a kind's number is stored in definitions. None ever means another kind.
//!
//! # To add a kind
//!
//! A type without a kind has labels (`label.rs`), for which scans and writers call functions of its
//! class. Keys of a kind are compared as bytes. They should lie as the class orders the values;
//! README.md ("Rough orders") has the exceptions.
//!
//! 1. Here: a variant, its place at the end of [`SCALARS`], [`KeyKind::width`], and
//!    [`ElementKind::align`] unless that is 4.
//! 2. `encode/kinds.rs`: its bytes, in `encode_datum` if a datum holds the value itself, and in
//!    `encode_bytes`; a long form gets a file beside it. README.md lists the forms.
//! 3. `length.rs`, if values have one width, for scans that skip; `fixed.rs`, if they are integers,
//!    for faster loads.
//! 4. `tests/`: its number in `byte_form.rs`, its order against a model, a value in `rows.rs` and
//!    `missing.rs`.
//! 5. `mot_ext/src/keys.rs`: `kind`, from the type to the kind, and `is_by_value`. A type of an
//!    extension is known by its comparison function: `keys/foreign_types.rs`.
//! 6. SQL against a heap table: `sql/key_types.sql`; `am_key_types.sql` for types of extensions.
//!
//! An index that exists keeps the kind, or the labels, with which it was built.

use super::record::Record;
use crate::errors::EngineError;

/// How many kinds hold no others.
const SCALAR_COUNT: usize = 40;

/// The number of a record. Its columns are said elsewhere.
const RECORD: u8 = 63;

/// The number of a kind that holds others is one of these and the number of those.
const RANGES: u8 = 64;
const ARRAYS: u8 = 128;
const MULTIRANGES: u8 = 192;

const _: () = assert!(SCALAR_COUNT < RECORD as usize && RECORD < RANGES);

/// A type's order.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum KeyKind {
    /// boolean: false before true.
    Bool,
    /// smallint.
    Int2,
    /// integer.
    Int4,
    /// bigint.
    Int8,
    /// oid, regclass and other unsigned 32-bit types.
    Oid,
    /// real: -0 equals 0, NaN is largest.
    Float4,
    /// double precision: -0 equals 0, NaN is largest.
    Float8,
    /// date.
    Date,
    /// time without time zone.
    Time,
    /// timestamp without time zone.
    Timestamp,
    /// timestamp with time zone.
    TimestampTz,
    /// time with time zone: by instant, then by zone.
    TimeTz,
    /// interval: by its length with 30-day months and 24-hour days.
    Interval,
    /// uuid.
    Uuid,
    /// numeric: by value, whatever the display scale.
    Numeric,
    /// text, varchar: byte order (the C collation).
    Text,
    /// char(n): byte order without trailing blanks.
    Bpchar,
    /// bytea.
    Bytea,
    /// "char": one unsigned byte.
    Char,
    /// name: at most 63 bytes, ended by a zero byte.
    Name,
    /// money.
    Money,
    /// pg_lsn, xid8: unsigned 64 bits.
    Unsigned8,
    /// macaddr.
    Macaddr,
    /// macaddr8.
    Macaddr8,
    /// inet and cidr.
    Inet,
    /// bit(n) and bit varying.
    VarBit,
    /// An enum: by the values' oids, which is not the order of the type.
    Enum,
    /// tid: by block, then by offset.
    Tid,
    /// oidvector: by length, then by the oids.
    OidVector,
    /// jsonb: by the tree's types, numbers of elements and values.
    Jsonb,
    /// tsvector: by length, number of lexemes, and lexemes.
    TsVector,
    /// tsquery: by number of nodes, length, and nodes.
    TsQuery,
    /// hstore: by the texts of all keys and values, and where they are cut.
    Hstore,
    /// ltree: by labels.
    Ltree,
    /// cube, in indexes of earlier builds (new ones give cubes labels): by dimensions, smaller and
    /// larger ends. The type itself has no order of several dimensions.
    Cube,
    /// seg: by lower and upper end, their marks and digits.
    Seg,
    /// vector: by the numbers, then by how many there are.
    Vector,
    /// halfvec: as a vector.
    HalfVector,
    /// sparsevec: as a vector.
    SparseVector,
    /// Any type, by the labels that writers gave its values (`label.rs`).
    Label,
    /// A range: an empty one first, then by the lower bounds, then by the upper ones.
    Range(ElementKind),
    /// An array: by the elements, then by their number, the dimensions and the lower bounds.
    Array(ElementKind),
    /// A multirange: by the ranges, then by their number.
    Multirange(ElementKind),
    /// A value of a row type: by its columns.
    Record(Record),
}

/// The kinds that hold no others, each at its number less one. What is stored hangs on the order:
/// only add, up to [`RECORD`].
const SCALARS: [KeyKind; SCALAR_COUNT] = [
    KeyKind::Bool,
    KeyKind::Int2,
    KeyKind::Int4,
    KeyKind::Int8,
    KeyKind::Oid,
    KeyKind::Float4,
    KeyKind::Float8,
    KeyKind::Date,
    KeyKind::Time,
    KeyKind::Timestamp,
    KeyKind::TimestampTz,
    KeyKind::TimeTz,
    KeyKind::Interval,
    KeyKind::Uuid,
    KeyKind::Numeric,
    KeyKind::Text,
    KeyKind::Bpchar,
    KeyKind::Bytea,
    KeyKind::Char,
    KeyKind::Name,
    KeyKind::Money,
    KeyKind::Unsigned8,
    KeyKind::Macaddr,
    KeyKind::Macaddr8,
    KeyKind::Inet,
    KeyKind::VarBit,
    KeyKind::Enum,
    KeyKind::Tid,
    KeyKind::OidVector,
    KeyKind::Jsonb,
    KeyKind::TsVector,
    KeyKind::TsQuery,
    KeyKind::Hstore,
    KeyKind::Ltree,
    KeyKind::Cube,
    KeyKind::Seg,
    KeyKind::Vector,
    KeyKind::HalfVector,
    KeyKind::SparseVector,
    KeyKind::Label,
];

/// Every kind there is without records.
const KINDS: [KeyKind; 4 * SCALAR_COUNT] = {
    let mut kinds = [KeyKind::Bool; 4 * SCALAR_COUNT];
    let mut at = 0;
    while at < SCALAR_COUNT {
        let element = ElementKind(Held::Scalar(at as u8 + 1));
        kinds[at] = SCALARS[at];
        kinds[SCALAR_COUNT + at] = KeyKind::Range(element);
        kinds[2 * SCALAR_COUNT + at] = KeyKind::Array(element);
        kinds[3 * SCALAR_COUNT + at] = KeyKind::Multirange(element);
        at += 1;
    }
    kinds
};

/// The kind of what an array, a range or a multirange holds. It is none of these itself.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct ElementKind(Held);

#[derive(Copy, Clone, PartialEq, Eq, Hash)]
enum Held {
    /// Its number.
    Scalar(u8),
    Record(Record),
}

impl ElementKind {
    /// Of a kind that is no array, range or multirange.
    pub fn of(kind: KeyKind) -> Option<ElementKind> {
        if let KeyKind::Record(record) = kind {
            return Some(ElementKind(Held::Record(record)));
        }
        let place = SCALARS.iter().position(|scalar| *scalar == kind)?;
        Some(ElementKind(Held::Scalar(place as u8 + 1)))
    }

    fn from_number(number: u8) -> Option<ElementKind> {
        (1..=SCALAR_COUNT as u8)
            .contains(&number)
            .then_some(ElementKind(Held::Scalar(number)))
    }

    const fn number(self) -> u8 {
        match self.0 {
            Held::Scalar(number) => number,
            Held::Record(_) => RECORD,
        }
    }

    /// The kind itself.
    pub const fn kind(self) -> KeyKind {
        match self.0 {
            Held::Scalar(number) => SCALARS[number as usize - 1],
            Held::Record(record) => KeyKind::Record(record),
        }
    }

    /// Alignment of its values in bytes: pg_type's typalign.
    pub const fn align(self) -> u8 {
        match self.kind() {
            KeyKind::Bool | KeyKind::Char | KeyKind::Uuid | KeyKind::Name => 1,
            KeyKind::Int2 | KeyKind::Tid => 2,
            KeyKind::Int8
            | KeyKind::Float8
            | KeyKind::Time
            | KeyKind::Timestamp
            | KeyKind::TimestampTz
            | KeyKind::TimeTz
            | KeyKind::Interval
            | KeyKind::Money
            | KeyKind::Unsigned8
            | KeyKind::Cube
            | KeyKind::Record(_) => 8,
            _ => 4,
        }
    }
}

impl std::fmt::Debug for ElementKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kind().fmt(formatter)
    }
}

impl KeyKind {
    /// The kind with this stored number; none of one that has records.
    pub fn from_number(number: u8) -> Option<KeyKind> {
        let element = ElementKind::from_number(number % RANGES)?;
        Some(KeyKind::holding(number, element))
    }

    /// The kind with this stored number, which has this record; none of one that has none.
    pub(super) fn of_record(number: u8, record: Record) -> Option<KeyKind> {
        let element = ElementKind(Held::Record(record));
        KeyKind::names_record(number).then(|| KeyKind::holding(number, element))
    }

    /// Whether a stored number is of a kind that has records.
    pub(super) const fn names_record(number: u8) -> bool {
        number % RANGES == RECORD
    }

    const fn holding(number: u8, element: ElementKind) -> KeyKind {
        match number - number % RANGES {
            RANGES => KeyKind::Range(element),
            ARRAYS => KeyKind::Array(element),
            MULTIRANGES => KeyKind::Multirange(element),
            _ => element.kind(),
        }
    }

    /// The record that the values are or hold.
    pub fn record(self) -> Option<Record> {
        match self {
            KeyKind::Record(record) => Some(record),
            KeyKind::Range(held) | KeyKind::Array(held) | KeyKind::Multirange(held) => {
                held.kind().record()
            }
            _ => None,
        }
    }

    /// The same with another record in its place.
    fn with_record(self, record: Record) -> KeyKind {
        KeyKind::of_record(self.number(), record).unwrap_or(self)
    }

    /// The same of records whose texts lie by their bytes.
    ///
    /// # Errors
    /// `OutOfProcessMemory`.
    pub fn without_collations(self) -> Result<KeyKind, EngineError> {
        match self.record() {
            Some(record) => Ok(self.with_record(record.without_collations()?)),
            None => Ok(self),
        }
    }

    /// The number that is stored.
    pub fn number(self) -> u8 {
        match self {
            KeyKind::Range(element) => RANGES + element.number(),
            KeyKind::Array(element) => ARRAYS + element.number(),
            KeyKind::Multirange(element) => MULTIRANGES + element.number(),
            scalar => ElementKind::of(scalar)
                .expect("every such kind is listed")
                .number(),
        }
    }

    /// Whether keys lie in the order of the type's own class. The order of texts is not considered:
    /// it follows from the collation.
    pub fn is_ordered(self) -> bool {
        !matches!(self, KeyKind::Enum | KeyKind::Cube)
    }

    /// Whether the values are texts.
    pub fn is_text(self) -> bool {
        matches!(self, KeyKind::Text | KeyKind::Bpchar | KeyKind::Name)
    }

    /// Whether a collation says in which order the values lie: texts, and what holds them. Records
    /// have collations of their own.
    pub fn has_texts(self) -> bool {
        match self {
            KeyKind::Range(held) | KeyKind::Array(held) | KeyKind::Multirange(held) => {
                held.kind().has_texts()
            }
            KeyKind::Jsonb => true,
            kind => kind.is_text(),
        }
    }

    /// Every kind there is without records.
    pub fn all() -> &'static [KeyKind] {
        &KINDS
    }

    /// Width of the value in a tuple, or -1 for a varlena: pg_type's typlen.
    pub const fn width(self) -> i16 {
        match self {
            KeyKind::Bool | KeyKind::Char => 1,
            KeyKind::Int2 => 2,
            KeyKind::Int4 | KeyKind::Oid | KeyKind::Float4 | KeyKind::Date | KeyKind::Enum => 4,
            KeyKind::Int8
            | KeyKind::Float8
            | KeyKind::Time
            | KeyKind::Timestamp
            | KeyKind::TimestampTz
            | KeyKind::Money
            | KeyKind::Unsigned8
            | KeyKind::Macaddr8 => 8,
            KeyKind::Macaddr | KeyKind::Tid => 6,
            KeyKind::TimeTz | KeyKind::Seg => 12,
            KeyKind::Interval | KeyKind::Uuid => 16,
            KeyKind::Name => 64,
            KeyKind::Numeric
            | KeyKind::Text
            | KeyKind::Bpchar
            | KeyKind::Bytea
            | KeyKind::Inet
            | KeyKind::VarBit
            | KeyKind::OidVector
            | KeyKind::Jsonb
            | KeyKind::TsVector
            | KeyKind::TsQuery
            | KeyKind::Hstore
            | KeyKind::Ltree
            | KeyKind::Cube
            | KeyKind::Vector
            | KeyKind::HalfVector
            | KeyKind::SparseVector
            | KeyKind::Label
            | KeyKind::Range(_)
            | KeyKind::Array(_)
            | KeyKind::Multirange(_)
            | KeyKind::Record(_) => -1,
        }
    }
}
