//! Values of columns that a row ends before.

use super::containers::holding;
use super::order::oidvector;
use super::rows::{build_body, definition_of};
use super::*;
use crate::ids::FileKey;

/// A value of a kind, as a row holds it.
fn a_value(kind: KeyKind) -> Vec<u8> {
    match kind {
        KeyKind::Range(element) | KeyKind::Array(element) | KeyKind::Multirange(element) => {
            holding(kind, &a_value(element.kind()))
        }
        // A short numeric: 1.
        KeyKind::Numeric => vec![0, 0x80, 1, 0],
        // IPv4, 8 bits of network.
        KeyKind::Inet => vec![2, 8, 10, 0, 0, 0],
        // Three bits.
        KeyKind::VarBit => vec![3, 0, 0, 0, 0xA0],
        KeyKind::OidVector => oidvector(&[5]),
        // An array without elements.
        KeyKind::Jsonb => vec![0, 0, 0, 0x40],
        // Nothing: no lexemes, nodes, labels, dimensions, numbers.
        KeyKind::TsVector
        | KeyKind::TsQuery
        | KeyKind::Ltree
        | KeyKind::Cube
        | KeyKind::Vector
        | KeyKind::HalfVector => vec![0; 4],
        KeyKind::SparseVector => vec![0; 12],
        KeyKind::Hstore => vec![0, 0, 0, 0x80],
        // Two digits at each end, no marks.
        KeyKind::Seg => vec![0, 0, 0x80, 0x3F, 0, 0, 0, 0x40, 2, 2, 0, 0],
        KeyKind::Name => {
            let mut name = vec![0; 64];
            name[0] = b'n';
            name
        }
        _ => match usize::try_from(kind.width()) {
            Ok(width) => vec![1; width],
            Err(_) => b"abc".to_vec(),
        },
    }
}

/// Gives the columns of these bits a value in rows that end before them.
pub(super) fn add_missing(definition: &mut IndexDefinition, bits: u32) {
    definition.missing = definition
        .columns
        .iter()
        .enumerate()
        .filter(|(position, _)| bits & (1 << position) != 0)
        .map(|(_, column)| MissingValue {
            attnum: column.attnum,
            bytes: a_value(column.kind).into(),
        })
        .collect();
}

/// A row that ends before a column has the key of one that holds the column's value.
#[test]
fn a_row_before_a_column_has_the_missing_value() {
    for kind in all_kinds() {
        for nullable in [false, true] {
            let mut definition = definition_of(&[KeyKind::Int4, kind, KeyKind::Int8, kind]);
            for column in &mut definition.columns {
                column.nullable = nullable;
            }
            // The last column has none: it is NULL, which needs a mark.
            definition.columns[3].nullable = true;
            add_missing(&mut definition, 0b0110);
            let (number, value, long) = ([1; 4], a_value(kind), a_value(KeyKind::Int8));
            let whole = [Some(&number[..]), Some(&value), Some(&long), None];
            let keys: Vec<_> = (1..=4)
                .map(|columns| {
                    let body = build_body(&definition.layout, &whole[..columns], true);
                    let mut key = KeyBuffer::new();
                    encode_row(&definition, &body, &mut key).expect("encodes");
                    let mut numbers = Vec::new();
                    prefix_numbers(&definition, &body, &mut KeyBuffer::new(), |number| {
                        numbers.push(number);
                        Ok(())
                    })
                    .expect("encodes");
                    let other = build_body(&definition.layout, &whole, false);
                    let is_same = key_attributes_unchanged(&definition, &body, &other);
                    assert!(is_same.expect("reads"));
                    (key.as_slice().to_vec(), numbers)
                })
                .collect();
            assert!(keys.iter().all(|key| *key == keys[0]));
            assert!(!keys[0].0.is_empty());
        }
    }
}

/// A stored NULL is no missing value.
#[test]
fn null_in_a_row_stays_null_beside_a_missing_value() {
    let mut definition = definition_of(&[KeyKind::Int4, KeyKind::Int8]);
    add_missing(&mut definition, 0b10);
    let null = build_body(&definition.layout, &[Some(&[1; 4]), None], true);
    let short = build_body(&definition.layout, &[Some(&[1; 4])], true);
    let mut key = KeyBuffer::new();
    assert!(encode_row(&definition, &null, &mut key).expect("encodes").0);
    assert!(
        !encode_row(&definition, &short, &mut key)
            .expect("encodes")
            .0
    );
    assert!(!key_attributes_unchanged(&definition, &null, &short).expect("reads"));
    // Numbers at fixed places are not made of a row that lacks one.
    let fixed = FixedKey::of(&definition).expect("of numbers");
    assert!(!fixed.encode(&short, &mut key));
}

#[test]
fn missing_values_are_checked() {
    let definition = definition_of(&[KeyKind::Int4, KeyKind::Text, KeyKind::Bpchar]);
    let with = |missing: &[(u16, Vec<u8>)]| IndexDefinition {
        missing: missing
            .iter()
            .map(|(attnum, bytes)| MissingValue {
                attnum: *attnum,
                bytes: bytes[..].into(),
            })
            .collect(),
        ..definition.clone()
    };
    let text = |length: usize| vec![b'a'; length];
    assert!(with(&[(1, vec![1; 4]), (2, text(0))]).validate().is_ok());
    // With its mark and its end a text is two bytes longer in the key.
    assert!(with(&[(2, text(KEY_BYTES_MAX - 2))]).validate().is_ok());
    assert!(with(&[(3, vec![b' '; 65535])]).validate().is_ok());
    for wrong in [
        vec![(2, text(1)), (1, vec![1; 4])],
        vec![(2, text(1)), (2, text(1))],
        vec![(1, vec![1; 5])],
        vec![(0, vec![1; 4])],
        vec![(4, vec![1; 4])],
        vec![(2, text(KEY_BYTES_MAX - 1))],
        vec![(3, vec![b' '; 65536])],
    ] {
        assert!(with(&wrong).validate().is_err());
    }
}

/// The forms with missing values never change either; without names they are one.
#[test]
fn byte_forms_with_missing_values_are_stable() {
    let mut without_file = definition_of(&[KeyKind::Int4, KeyKind::Text]);
    add_missing(&mut without_file, 0b11);
    let definition = IndexDefinition {
        file: FileKey {
            tablespace: 0x0102,
            relation: 0x0304_0506,
        },
        ..without_file.clone()
    };
    let (mut third, mut fourth) = (Vec::new(), Vec::new());
    without_file.write_bytes(&mut third).expect("valid");
    definition.write_bytes(&mut fourth).expect("valid");
    let file = [2, 1, 0, 0, 6, 5, 4, 3];
    let rest = [
        &[1, 0, 3, 4, 2, 0, 16, 7][..],  // columns
        &[4, 0, 4, 1, 0xFF, 0xFF, 4, 0], // attributes
        &[2, 0],                         // how many
        &[1, 0, 4, 0, 1, 1, 1, 1],       // values
        &[2, 0, 3, 0, b'a', b'b', b'c'],
    ]
    .concat();
    let header = |form: u8| [form, 1, 77, 0, 0, 0, 2, 0, 2, 0];
    assert_eq!(third, [&header(3)[..], &rest].concat());
    assert_eq!(fourth, [&header(4)[..], &file, &rest].concat());
    let mut unnamed = [Vec::new(), Vec::new()];
    without_names(&third, &mut unnamed[0]).expect("is whole");
    without_names(&fourth, &mut unnamed[1]).expect("is whole");
    assert_eq!(unnamed[0], unnamed[1]);
    let nameless = IndexDefinition {
        relation: 0,
        ..without_file
    };
    assert_eq!(
        IndexDefinition::from_bytes(&unnamed[0]).expect("reads"),
        nameless
    );
    for end in 0..fourth.len() {
        assert!(IndexDefinition::from_bytes(&fourth[..end]).is_err());
    }
    // A form with values has at least one.
    third.truncate(third.len() - 17);
    assert!(IndexDefinition::from_bytes(&third).is_err());
    third[0] = 1;
    assert!(IndexDefinition::from_bytes(&third).is_ok());
    third[0] = 5;
    assert!(IndexDefinition::from_bytes(&third).is_err());
}
