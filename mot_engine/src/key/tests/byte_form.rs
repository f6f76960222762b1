//! The byte form of definitions, and the numbers in it.
use super::rows::definition_of;
use super::*;
use crate::ids::FileKey;

/// The stored numbers of the kinds: lines are only added.
const NUMBERS: [(u8, KeyKind); 40] = [
    (1, KeyKind::Bool),
    (2, KeyKind::Int2),
    (3, KeyKind::Int4),
    (4, KeyKind::Int8),
    (5, KeyKind::Oid),
    (6, KeyKind::Float4),
    (7, KeyKind::Float8),
    (8, KeyKind::Date),
    (9, KeyKind::Time),
    (10, KeyKind::Timestamp),
    (11, KeyKind::TimestampTz),
    (12, KeyKind::TimeTz),
    (13, KeyKind::Interval),
    (14, KeyKind::Uuid),
    (15, KeyKind::Numeric),
    (16, KeyKind::Text),
    (17, KeyKind::Bpchar),
    (18, KeyKind::Bytea),
    (19, KeyKind::Char),
    (20, KeyKind::Name),
    (21, KeyKind::Money),
    (22, KeyKind::Unsigned8),
    (23, KeyKind::Macaddr),
    (24, KeyKind::Macaddr8),
    (25, KeyKind::Inet),
    (26, KeyKind::VarBit),
    (27, KeyKind::Enum),
    (28, KeyKind::Tid),
    (29, KeyKind::OidVector),
    (30, KeyKind::Jsonb),
    (31, KeyKind::TsVector),
    (32, KeyKind::TsQuery),
    (33, KeyKind::Hstore),
    (34, KeyKind::Ltree),
    (35, KeyKind::Cube),
    (36, KeyKind::Seg),
    (37, KeyKind::Vector),
    (38, KeyKind::HalfVector),
    (39, KeyKind::SparseVector),
    (40, KeyKind::Label),
];

/// The stored numbers of the kinds and the byte form never change.
#[test]
fn byte_form_is_stable() {
    for (number, kind) in NUMBERS {
        assert_eq!(kind.number(), number);
    }
    let known = |number: u8| {
        let (_, kind) = NUMBERS.iter().find(|(known, _)| *known == number % 64)?;
        let element = ElementKind::of(*kind).expect("holds no others");
        Some(match number {
            0..64 => *kind,
            64..128 => KeyKind::Range(element),
            128..192 => KeyKind::Array(element),
            192.. => KeyKind::Multirange(element),
        })
    };
    for number in 0..=u8::MAX {
        assert_eq!(KeyKind::from_number(number), known(number));
        if let Some(kind) = known(number) {
            assert_eq!(kind.number(), number);
        }
    }
    let mut bytes = Vec::new();
    definition_of(&[KeyKind::Int4, KeyKind::Text])
        .write_bytes(&mut bytes)
        .expect("valid");
    assert_eq!(
        bytes,
        [
            1, 1, 77, 0, 0, 0, 2, 0, 2, 0, // header
            1, 0, 3, 4, 2, 0, 16, 7, // columns
            4, 0, 4, 1, 0xFF, 0xFF, 4, 0, // attributes
        ]
    );
    assert_eq!(
        bytes.len(),
        definition_of(&[KeyKind::Int4, KeyKind::Text]).bytes_len()
    );
}

/// The form of an index of a table of the access method never changes either; without names both
/// are one.
#[test]
fn byte_form_with_a_file_is_stable() {
    let without_file = definition_of(&[KeyKind::Int4, KeyKind::Text]);
    let definition = IndexDefinition {
        file: FileKey {
            tablespace: 0x0102,
            relation: 0x0304_0506,
        },
        ..without_file.clone()
    };
    let mut bytes = Vec::new();
    definition.write_bytes(&mut bytes).expect("valid");
    assert_eq!(
        bytes,
        [
            2, 1, 77, 0, 0, 0, 2, 0, 2, 0, // header
            2, 1, 0, 0, 6, 5, 4, 3, // file
            1, 0, 3, 4, 2, 0, 16, 7, // columns
            4, 0, 4, 1, 0xFF, 0xFF, 4, 0, // attributes
        ]
    );
    assert_eq!(bytes.len(), definition.bytes_len());
    assert_eq!(
        IndexDefinition::from_bytes(&bytes).expect("reads"),
        definition
    );
    for end in 0..bytes.len() {
        assert!(IndexDefinition::from_bytes(&bytes[..end]).is_err());
    }
    let mut unnamed = Vec::new();
    without_names(&bytes, &mut unnamed).expect("is whole");
    let nameless = IndexDefinition {
        relation: 0,
        ..without_file
    };
    assert_eq!(
        IndexDefinition::from_bytes(&unnamed).expect("reads"),
        nameless
    );
    // A file without a number is none: there is one form for each definition.
    bytes[14..18].fill(0);
    assert!(IndexDefinition::from_bytes(&bytes).is_err());
    let no_number = FileKey {
        tablespace: 5,
        relation: 0,
    };
    let wrong = IndexDefinition {
        file: no_number,
        ..nameless
    };
    assert!(wrong.validate().is_err());
}
