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
//! 1. Here: a line of [`KeyKind`] in `kinds!`; [`KeyKind::is_ordered`] and [`KeyKind::has_texts`],
//!    if it is an exception.
//! 2. `encode/`: its bytes, in `encode_datum` if a datum holds the value itself, and in
//!    `encode_bytes`; a long form gets a file of its own. A string also needs `string_of` and
//!    `push_string_start`. README.md lists the forms.
//! 3. `tests/`: its number in `byte_form.rs`, its order against a model, a value in `rows.rs`
//!    (`row_value`; an integer in `FIXED_AND_OTHERS`, too) and in `missing.rs`. The first kind of a
//!    width gets values in `containers/held.rs`.
//! 4. `mot_ext/src/keys.rs`: `kind`, from the type to the kind; `converts`, if values of other
//!    types are compared with its own. `keys/known_types.rs`: a type of an extension is known by
//!    its comparison function; `OF_CORE` has core's functions, for types that borrow them.
//! 5. `mot_ext/src/executor/filter/operators.rs`, for conditions that scans evaluate themselves.
//! 6. SQL against a heap table: `sql/key_types.sql`, or `am_key_types.sql` for types of extensions;
//!    `am_missing_values.sql`. `ha/t/052_key_kinds.pl` replays keys, `proof/src/queries/types.rs`
//!    makes random ones. `sql/am_key_encodings.sql` lists which types have an encoding, and
//!    compares the lines here with `pg_type`.
//!
//! An index that exists keeps the kind, or the labels, with which it was built.

mod form;

pub(super) use form::InKey;

use super::definition::AttributeLayout;
use super::record::Record;
use crate::errors::EngineError;
use InKey::{Other, SameLength, Signed, Unsigned};
use form::{Form, by_reference, by_value, varlena};

/// The number of a record. Its columns are said elsewhere.
const RECORD: u8 = 63;

/// The number of a kind that holds others is one of these and the number of those.
const RANGES: u8 = 64;
const ARRAYS: u8 = 128;
const MULTIRANGES: u8 = 192;

const _: () = assert!(SCALARS.len() < RECORD as usize && RECORD < RANGES);

macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $number:literal, $form:expr;)+) => {
        /// A type's order.
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        pub enum KeyKind {
            $($(#[$doc])+ $kind,)+
            /// A range: an empty one first, then by the lower bounds, then by the upper ones.
            Range(ElementKind),
            /// An array: by the elements, then by their number, the dimensions and the lower
            /// bounds.
            Array(ElementKind),
            /// A multirange: by the ranges, then by their number.
            Multirange(ElementKind),
            /// A value of a row type: by its columns.
            Record(Record),
        }

        /// The kinds that hold no others, each at its number less one.
        const SCALARS: &[KeyKind] = &[$(KeyKind::$kind,)+];

        impl KeyKind {
            /// The number that is stored.
            pub const fn number(self) -> u8 {
                match self {
                    $(KeyKind::$kind => $number,)+
                    KeyKind::Range(element) => RANGES + element.number(),
                    KeyKind::Array(element) => ARRAYS + element.number(),
                    KeyKind::Multirange(element) => MULTIRANGES + element.number(),
                    KeyKind::Record(_) => RECORD,
                }
            }

            #[inline]
            const fn form(self) -> Form {
                match self {
                    $(KeyKind::$kind => $form,)+
                    KeyKind::Range(held) | KeyKind::Array(held) | KeyKind::Multirange(held) => {
                        varlena(if held.align() == 8 { 8 } else { 4 })
                    }
                    KeyKind::Record(_) => varlena(8),
                }
            }
        }
    };
}

// Kind, stored number, typlen and typalign of `pg_type.dat`. Lines are only added, at the end, up
// to `RECORD`: none ever gets another number.
kinds! {
    /// boolean: false before true.
    Bool = 1, by_value(1, SameLength);
    /// smallint.
    Int2 = 2, by_value(2, Signed);
    /// integer.
    Int4 = 3, by_value(4, Signed);
    /// bigint.
    Int8 = 4, by_value(8, Signed);
    /// oid, regclass and other unsigned 32-bit types.
    Oid = 5, by_value(4, Unsigned);
    /// real: -0 equals 0, NaN is largest.
    Float4 = 6, by_value(4, SameLength);
    /// double precision: -0 equals 0, NaN is largest.
    Float8 = 7, by_value(8, SameLength);
    /// date.
    Date = 8, by_value(4, Signed);
    /// time without time zone.
    Time = 9, by_value(8, Signed);
    /// timestamp without time zone.
    Timestamp = 10, by_value(8, Signed);
    /// timestamp with time zone.
    TimestampTz = 11, by_value(8, Signed);
    /// time with time zone: by instant, then by zone.
    TimeTz = 12, by_reference(12, 8, Other);
    /// interval: by its length with 30-day months and 24-hour days.
    Interval = 13, by_reference(16, 8, Other);
    /// uuid.
    Uuid = 14, by_reference(16, 1, SameLength);
    /// numeric: by value, whatever the display scale.
    Numeric = 15, varlena(4);
    /// text, varchar: byte order (the C collation).
    Text = 16, varlena(4);
    /// char(n): byte order without trailing blanks.
    Bpchar = 17, varlena(4);
    /// bytea.
    Bytea = 18, varlena(4);
    /// "char": one unsigned byte.
    Char = 19, by_value(1, SameLength);
    /// name: at most 63 bytes, ended by a zero byte.
    Name = 20, by_reference(64, 1, Other);
    /// money.
    Money = 21, by_value(8, Signed);
    /// pg_lsn, xid8: unsigned 64 bits.
    Unsigned8 = 22, by_value(8, Unsigned);
    /// macaddr.
    Macaddr = 23, by_reference(6, 4, SameLength);
    /// macaddr8.
    Macaddr8 = 24, by_reference(8, 4, SameLength);
    /// inet and cidr.
    Inet = 25, varlena(4);
    /// bit(n) and bit varying.
    VarBit = 26, varlena(4);
    /// An enum: by the values' oids, which is not the order of the type.
    Enum = 27, by_value(4, Unsigned);
    /// tid: by block, then by offset.
    Tid = 28, by_reference(6, 2, Other);
    /// oidvector: by length, then by the oids.
    OidVector = 29, varlena(4);
    /// jsonb: by the tree's types, numbers of elements and values.
    Jsonb = 30, varlena(4);
    /// tsvector: by length, number of lexemes, and lexemes.
    TsVector = 31, varlena(4);
    /// tsquery: by number of nodes, length, and nodes.
    TsQuery = 32, varlena(4);
    /// hstore: by the texts of all keys and values, and where they are cut.
    Hstore = 33, varlena(4);
    /// ltree: by levels.
    Ltree = 34, varlena(4);
    /// cube, in indexes of earlier builds (new ones give cubes labels): by dimensions, smaller and
    /// larger ends. The type itself has no order of several dimensions.
    Cube = 35, varlena(8);
    /// seg: by lower and upper end, their marks and digits.
    Seg = 36, by_reference(12, 4, Other);
    /// vector: by the numbers, then by how many there are.
    Vector = 37, varlena(4);
    /// halfvec: as a vector.
    HalfVector = 38, varlena(4);
    /// sparsevec: as a vector.
    SparseVector = 39, varlena(4);
    /// Any type, by the labels that writers gave its values (`label.rs`).
    Label = 40, varlena(4);
}

const _: () = {
    let mut at = 0;
    while at < SCALARS.len() {
        assert!(
            SCALARS[at].number() as usize == at + 1,
            "numbers have no gaps"
        );
        at += 1;
    }
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
        match kind {
            KeyKind::Range(_) | KeyKind::Array(_) | KeyKind::Multirange(_) => None,
            KeyKind::Record(record) => Some(ElementKind(Held::Record(record))),
            scalar => Some(ElementKind(Held::Scalar(scalar.number()))),
        }
    }

    fn from_number(number: u8) -> Option<ElementKind> {
        (1..=SCALARS.len() as u8)
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
        self.kind().layout().align
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

    /// Whether keys lie in the order of the type's own class. The order of texts is not considered:
    /// it follows from the collation. Nor are the columns of a record.
    pub fn is_ordered(self) -> bool {
        match self {
            KeyKind::Range(held) | KeyKind::Array(held) | KeyKind::Multirange(held) => {
                held.kind().is_ordered()
            }
            kind => !matches!(kind, KeyKind::Enum | KeyKind::Cube),
        }
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

    /// How values of the type lie in a tuple: pg_type's typlen, typalign and typbyval.
    #[inline]
    pub const fn layout(self) -> AttributeLayout {
        self.form().in_row
    }

    /// Width of the value in a tuple, or -1 for a varlena: pg_type's typlen.
    #[inline]
    pub const fn width(self) -> i16 {
        self.layout().len
    }

    /// What a key has of a value.
    pub(super) const fn in_key(self) -> InKey {
        self.form().in_key
    }
}
