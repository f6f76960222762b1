//! Keys of texts in the order of a collation, and definitions that name one.

use super::rows::{build_body, definition_of};
use super::*;
use crate::collation::{Collation, Folder, Folding, Provider};
use crate::errors::EngineError;
use crate::ids::FileKey;
use proptest::prelude::*;
use std::cmp::Ordering;

fn named(provider: Provider, locale: &str) -> Collation {
    Collation::named(provider, locale).expect("a name")
}

/// A locale that every machine has, in whose order texts lie by their bytes.
fn plain() -> Collation {
    named(Provider::LibcFirstLevel, "C.UTF-8")
}

/// A locale of the C library, if the machine has one that does not compare bytes.
fn english() -> Option<Collation> {
    let english = named(Provider::LibcFirstLevel, "en_US.UTF-8");
    (!english.is_missing()).then_some(english)
}

fn collated(kind: KeyKind, collation: Collation) -> KeyColumn {
    KeyColumn {
        collation: Some(collation),
        ..column(kind)
    }
}

proptest! {
    #[test]
    fn texts_lie_as_the_collation_has_them(left in "[a-cA-C é.-]{0,6}", right in "[a-cA-C é.-]{0,6}") {
        for collation in [Some(plain()), english()].into_iter().flatten() {
            let compared = collation.compare(left.as_bytes(), right.as_bytes()).expect("memory");
            let ascending = collated(KeyKind::Text, collation);
            let descending = KeyColumn { descending: true, nullable: true, ..ascending };
            let key = |column: &KeyColumn, text: &str| encoded(column, KeyValue::Bytes(text.as_bytes()));
            // The same as far as the first level goes: beside each other, in whatever order.
            let are_beside = starts_alike(&key(&ascending, &left), &key(&ascending, &right));
            let found = key(&ascending, &left).cmp(&key(&ascending, &right));
            prop_assert!(found == compared || are_beside);
            prop_assert_eq!(found == Ordering::Equal, left == right);
            let turned = key(&descending, &left).cmp(&key(&descending, &right));
            prop_assert_eq!(turned, found.reverse());
        }
    }

    /// Any bytes give a definition that writes the same bytes, or an error.
    #[test]
    fn collations_of_any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        let mut whole = vec![9, 0, 7, 0, 0, 0, 1, 0, 1, 0, 1, 0, KeyKind::Text.number(), 0, 0xFF, 0xFF, 4, 0];
        whole.extend_from_slice(&bytes);
        if let Ok(read) = IndexDefinition::from_bytes(&whole) {
            let mut written = Vec::new();
            read.write_bytes(&mut written).expect("memory");
            prop_assert_eq!(written, whole);
        }
    }
}

/// Whether two keys have what a collation adds in common.
fn starts_alike(left: &[u8], right: &[u8]) -> bool {
    let start = |key: &[u8]| {
        key.iter()
            .position(|byte| *byte == 0)
            .map(|end| key[..end].to_vec())
    };
    start(left) == start(right)
}

#[test]
fn what_a_collation_adds_is_counted() {
    let column = collated(KeyKind::Text, plain());
    let encode = |bytes: usize| {
        let mut key = KeyBuffer::new();
        let text = vec![b'a'; bytes];
        encode_value(&column, KeyValue::Bytes(&text), &mut key).map(|()| key.len())
    };
    // The text, its end, and both once more.
    let longest = KEY_BYTES_MAX / 2 - 1;
    assert_eq!(encode(longest).expect("fits"), KEY_BYTES_MAX);
    assert!(matches!(
        encode(longest + 1),
        Err(EngineError::KeyTooLong { .. })
    ));
    let mut end = KeyBuffer::new();
    let overlong = vec![b'a'; 2 * KEY_BYTES_MAX];
    encode_end(&column, KeyValue::Bytes(&overlong), &mut end).expect("an end");
    assert_eq!(end.len(), KEY_BYTES_MAX);
    end.clear();
    let overlong = vec![b'a'; longest + 1];
    encode_end(&column, KeyValue::Bytes(&overlong), &mut end).expect("an end");
    let longest = encoded(&column, KeyValue::Bytes(&overlong[1..]));
    assert!(longest[..] < *end.as_slice());
    let behind = encoded(&column, KeyValue::Bytes(b"b"));
    assert!(*end.as_slice() < behind[..]);
}

/// A tail has the text alone: what a library makes of it differs from machine to machine.
#[test]
fn computed_texts_are_collated_when_they_are_read() {
    let number = 5;
    for descending in [false, true] {
        let text = KeyColumn {
            attnum: 0,
            nullable: true,
            descending,
            ..collated(KeyKind::Text, plain())
        };
        let blanks = KeyColumn {
            kind: KeyKind::Bpchar,
            ..text
        };
        let definition = IndexDefinition {
            columns: vec![text, blanks, text],
            layout: Vec::new(),
            computed: Some(number),
            ..definition_of(&[KeyKind::Int4])
        };
        definition.validate().expect("valid");
        let values = || {
            [
                KeyValue::Bytes(b"a b"),
                KeyValue::Bytes(b"c  "),
                KeyValue::Null,
            ]
        };
        let mut tail = Tail::default();
        let entered = tail.enter(number, &definition.columns, values().into_iter());
        entered.expect("memory");
        let row = build_body(
            &definition_of(&[KeyKind::Int4]).layout,
            &[Some(&[9, 0, 0, 0])],
            false,
        );
        let mut body = Vec::new();
        tail.append_to(&row, &mut body).expect("memory");
        // Number, columns and their ends; a mark, the text and its end; the same; a mark.
        assert_eq!(tail.bytes(), 4 + 2 + 6 + 5 + 3 + 1 + 4);
        let mut expected = KeyBuffer::new();
        for (column, value) in definition.columns.iter().zip(values()) {
            encode_value(column, value, &mut expected).expect("encodes");
        }
        let mut key = KeyBuffer::new();
        assert!(encode_row(&definition, &body, &mut key).expect("reads").0);
        assert_eq!(key.as_slice(), expected.as_slice());
        // A reader's range of keys has the same numbers.
        let mut numbers = Vec::new();
        prefix_numbers(&definition, &body, &mut key, |number| {
            numbers.push(number);
            Ok(())
        })
        .expect("reads");
        let mut prefix = KeyBuffer::new();
        for (at, (column, value)) in definition.columns.iter().zip(values()).enumerate() {
            encode_value(column, value, &mut prefix).expect("encodes");
            assert_eq!(numbers[at], prefix_number(at + 1, prefix.as_slice()));
        }
    }
    let of_array = IndexDefinition {
        columns: vec![KeyColumn {
            attnum: 0,
            nullable: true,
            ..collated(
                KeyKind::Array(ElementKind::of(KeyKind::Text).unwrap()),
                plain(),
            )
        }],
        layout: Vec::new(),
        computed: Some(number),
        ..definition_of(&[KeyKind::Int4])
    };
    assert!(
        of_array.validate().is_err(),
        "an element cannot be taken out"
    );
}

#[test]
fn elements_of_arrays_lie_in_the_order_of_their_collation() {
    let Some(english) = english() else { return };
    let kind = KeyKind::Array(ElementKind::of(KeyKind::Text).expect("no container"));
    let key = |text: &str| {
        let mut array = Vec::new();
        for field in [1_i32, 0, 25, 1, 1] {
            array.extend_from_slice(&field.to_le_bytes());
        }
        array.extend_from_slice(&((text.len() as u32 + 4) << 2).to_le_bytes());
        array.extend_from_slice(text.as_bytes());
        encoded(&collated(kind, english), KeyValue::Bytes(&array))
    };
    assert!(key("a") < key("B"), "not by bytes");
    assert!(key("B") < key("c"));
}

/// The forms of definitions with collations never change.
#[test]
fn byte_forms_with_collations_are_stable() {
    let mut without_file = definition_of(&[KeyKind::Int4, KeyKind::Text]);
    without_file.columns[1].collation = Some(named(Provider::Icu, "de-AT"));
    let with_file = IndexDefinition {
        file: FileKey {
            tablespace: 1,
            relation: 2,
        },
        ..without_file.clone()
    };
    let collations = [1, 0, 1, 1, 5, b'd', b'e', b'-', b'A', b'T'];
    for (form, definition) in [(9, &without_file), (10, &with_file)] {
        let mut bytes = Vec::new();
        definition.write_bytes(&mut bytes).expect("valid");
        assert_eq!(bytes.len(), definition.bytes_len());
        assert_eq!(bytes[0], form);
        assert!(bytes.ends_with(&collations));
        let read = IndexDefinition::from_bytes(&bytes).expect("reads");
        assert_eq!(read, *definition);
        for end in 0..bytes.len() {
            assert!(IndexDefinition::from_bytes(&bytes[..end]).is_err());
        }
    }
    let misplaced = IndexDefinition {
        columns: vec![collated(KeyKind::Int4, plain())],
        ..definition_of(&[KeyKind::Int4])
    };
    assert!(misplaced.validate().is_err());
    let other = IndexDefinition {
        columns: vec![without_file.columns[0], without_file.columns[0]],
        ..without_file.clone()
    };
    assert_eq!(other.collations_fingerprint(), 0);
}

fn lower(folder: Folder, locale: &str, order: Option<Collation>) -> Collation {
    Collation::folded(Folding::named(folder, locale).expect("a name"), order)
}

/// The forms of entries of foldings never change.
#[test]
fn byte_forms_with_foldings_are_stable() {
    let mut definition = definition_of(&[KeyKind::Text, KeyKind::Int4, KeyKind::Text]);
    definition.columns[0].collation = Some(lower(Folder::Ascii, "", None));
    definition.columns[2].collation =
        Some(lower(Folder::Libc, "de", Some(named(Provider::Icu, "fr"))));
    let mut bytes = Vec::new();
    definition.write_bytes(&mut bytes).expect("valid");
    assert_eq!(bytes.len(), definition.bytes_len());
    assert_eq!(bytes[0], 9);
    let entries = [3, 0, 0, 64, 0, 2, 1, 2, b'f', b'r', 2, 65, 2, b'd', b'e'];
    assert!(bytes.ends_with(&entries));
    assert_eq!(
        IndexDefinition::from_bytes(&bytes).expect("reads"),
        definition
    );
    for end in 0..bytes.len() {
        assert!(IndexDefinition::from_bytes(&bytes[..end]).is_err());
    }
    let mut twice = bytes[..bytes.len() - entries.len()].to_vec();
    twice.extend_from_slice(&[2, 0, 0, 64, 0, 0, 64, 0]);
    assert!(IndexDefinition::from_bytes(&twice).is_err());
    assert!(Folding::named(Folder::Ascii, "de").is_err());
    assert!(Folding::named(Folder::Icu, "").is_err());
}

#[test]
fn texts_are_equal_in_lower_case() {
    let key = |collation, text: &str| {
        encoded(
            &collated(KeyKind::Text, collation),
            KeyValue::Bytes(text.as_bytes()),
        )
    };
    for order in [None, Some(plain()), english()] {
        let ascii = lower(Folder::Ascii, "", order);
        assert_eq!(key(ascii, "Foo@Bar"), key(ascii, "fOO@bAR"));
        assert_ne!(key(ascii, "\u{c9}"), key(ascii, "\u{e9}"));
        assert!(key(ascii, "B") > key(ascii, "a"));
        let library = lower(Folder::Libc, "C.UTF-8", order);
        assert_eq!(key(library, "\u{c9}a"), key(library, "\u{e9}A"));
        assert_ne!(library.fingerprint(), ascii.fingerprint());
        // Lower case of fewer bytes, and of more.
        assert_eq!(key(library, "\u{212a}"), key(library, "k"));
        assert_eq!(key(library, "\u{23a}"), key(library, "\u{2c65}"));
    }
    let bytes = lower(Folder::Ascii, "", None);
    assert_eq!(key(bytes, "Ab"), b"ab\0");
}

/// A text may be longer than a key while its lower case is not, and the other way.
#[test]
fn ends_go_by_the_length_of_the_lower_case() {
    let column = collated(KeyKind::Text, lower(Folder::Libc, "C.UTF-8", None));
    let end = |text: &str| {
        let mut end = KeyBuffer::new();
        encode_end(&column, KeyValue::Bytes(text.as_bytes()), &mut end).expect("an end");
        end.as_slice().to_vec()
    };
    let shrinks = "\u{212a}".repeat(KEY_BYTES_MAX / 2);
    let small = "k".repeat(KEY_BYTES_MAX / 2);
    assert!(shrinks.len() > KEY_BYTES_MAX);
    let key = encoded(&column, KeyValue::Bytes(shrinks.as_bytes()));
    assert_eq!(end(&shrinks), key);
    assert_eq!(key, encoded(&column, KeyValue::Bytes(small.as_bytes())));
    let grows = "\u{23a}".repeat(KEY_BYTES_MAX / 2);
    let mut buffer = KeyBuffer::new();
    let value = KeyValue::Bytes(grows.as_bytes());
    assert!(matches!(
        encode_value(&column, value, &mut buffer),
        Err(EngineError::KeyTooLong { .. })
    ));
    let before = encoded(&column, KeyValue::Bytes("\u{2c64}".as_bytes()));
    let behind = encoded(&column, KeyValue::Bytes("\u{2c66}".as_bytes()));
    assert!(before < end(&grows) && end(&grows) < behind);
}

#[test]
fn a_row_has_the_key_of_its_texts() {
    let mut definition = definition_of(&[KeyKind::Text, KeyKind::Int4]);
    definition.columns[0].collation = Some(plain());
    let body = build_body(
        &definition.layout,
        &[Some(b"abc"), Some(&[9, 0, 0, 0])],
        false,
    );
    let mut key = KeyBuffer::new();
    encode_row(&definition, &body, &mut key).expect("reads");
    let mut expected = KeyBuffer::new();
    let values = [KeyValue::Bytes(b"abc"), KeyValue::Fixed(9)];
    for (column, value) in definition.columns.iter().zip(values) {
        encode_value(column, value, &mut expected).expect("encodes");
    }
    assert_eq!(key.as_slice(), expected.as_slice());
}
