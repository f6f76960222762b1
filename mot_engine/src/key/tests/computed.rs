//! Keys in a row's tail.

use super::rows::{build_body, definition_of};
use super::*;
use crate::errors::EngineError;
use crate::ids::FileKey;

fn computed(number: u32, kinds: &[KeyKind]) -> IndexDefinition {
    let columns = kinds.iter().map(|kind| KeyColumn {
        attnum: 0,
        kind: *kind,
        descending: false,
        nulls_first: false,
        nullable: true,
        collation: None,
    });
    IndexDefinition {
        columns: columns.collect(),
        layout: Vec::new(),
        computed: Some(number),
        ..definition_of(&[KeyKind::Int4])
    }
}

fn row() -> Vec<u8> {
    build_body(
        &definition_of(&[KeyKind::Int4]).layout,
        &[Some(&[9, 0, 0, 0])],
        false,
    )
}

fn with(tail: &Tail, row: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    tail.append_to(row, &mut body).expect("memory");
    body
}

fn key_of(definition: &IndexDefinition, body: &[u8]) -> Result<(Vec<u8>, bool), EngineError> {
    let mut key = KeyBuffer::new();
    let has_null = encode_row(definition, body, &mut key)?.0;
    Ok((key.as_slice().to_vec(), has_null))
}

#[test]
fn a_tail_has_the_key_of_the_columns_values() {
    let of_row = definition_of(&[KeyKind::Int4]);
    let first = computed(7, &[KeyKind::Text, KeyKind::Int4]);
    let second = computed(u32::MAX, &[KeyKind::Int8]);
    let mut tail = Tail::default();
    let values = || [KeyValue::Bytes(b"abc"), KeyValue::Fixed(5)].into_iter();
    tail.enter(7, &first.columns, values()).expect("memory");
    tail.leave_out(8).expect("memory");
    let null = std::iter::once(KeyValue::Null);
    tail.enter(u32::MAX, &second.columns, null).expect("memory");
    let (row, body) = (row(), with(&tail, &row()));
    assert_eq!(tail_bytes(&row), 0);
    assert_eq!(tail_bytes(&body), tail.bytes());
    assert_eq!(without_tail(&body).len(), row.len());

    let mut expected = KeyBuffer::new();
    for (column, value) in first.columns.iter().zip(values()) {
        encode_value(column, value, &mut expected).expect("encodes");
    }
    let (key, has_null) = key_of(&first, &body).expect("reads");
    assert_eq!((&key[..], has_null), (expected.as_slice(), false));
    assert!(key_of(&second, &body).expect("reads").1);
    let outside = computed(8, &[KeyKind::Int4]);
    assert_eq!(key_of(&outside, &body).expect("reads"), (Vec::new(), false));
    assert!(is_outside(&outside, &body) && !is_outside(&first, &body));
    // Columns of the row are found as ever.
    assert_eq!(
        key_of(&of_row, &body).unwrap(),
        key_of(&of_row, &row).unwrap()
    );

    // Each prefix of the columns has the number of its encoding.
    let mut numbers = Vec::new();
    let mut key = KeyBuffer::new();
    let each = |number| {
        numbers.push(number);
        Ok(())
    };
    prefix_numbers(&first, &body, &mut key, each).expect("reads");
    let mut start = KeyBuffer::new();
    encode_value(&first.columns[0], KeyValue::Bytes(b"abc"), &mut start).expect("encodes");
    let whole = prefix_number(2, expected.as_slice());
    assert_eq!(numbers, [prefix_number(1, start.as_slice()), whole]);
}

#[test]
fn a_row_without_an_entry_has_no_known_key() {
    let definition = computed(7, &[KeyKind::Int4]);
    let mut key = KeyBuffer::new();
    let other = {
        let mut tail = Tail::default();
        tail.leave_out(6).expect("memory");
        with(&tail, &row())
    };
    for body in [row(), other] {
        let unknown = key_of(&definition, &body);
        assert!(matches!(unknown, Err(EngineError::KeyNotComputed)));
        encode_row_if_any(&definition, &body, &mut key).expect("no key");
        assert!(key.is_empty() && !is_outside(&definition, &body));
        assert!(!key_attributes_unchanged(&definition, &body, &body).expect("reads"));
        assert!(prefix_numbers(&definition, &body, &mut key, |_| Ok(())).is_ok());
    }
}

#[test]
fn one_entry_is_replaced_beside_the_others() {
    let definition = computed(7, &[KeyKind::Int4]);
    let enter = |tail: &mut Tail, value: u64| {
        let value = std::iter::once(KeyValue::Fixed(value));
        tail.enter(7, &definition.columns, value).expect("memory");
    };
    let mut tail = Tail::default();
    enter(&mut tail, 1);
    tail.leave_out(8).expect("memory");
    let old = with(&tail, &row());
    tail.take_others(&old, 7).expect("reads");
    enter(&mut tail, 1);
    assert!(tail.is_last_in(&old, 7).expect("reads"));
    tail.take_others(&old, 7).expect("reads");
    enter(&mut tail, 2);
    assert!(!tail.is_last_in(&old, 7).expect("reads"));
    let new = with(&tail, without_tail(&old));
    assert!(!key_attributes_unchanged(&definition, &old, &new).expect("reads"));
    assert!(is_outside(&computed(8, &[KeyKind::Int4]), &new));
    let bare = computed(9, &[KeyKind::Int4]);
    assert!(matches!(
        key_of(&bare, &new),
        Err(EngineError::KeyNotComputed)
    ));
    // Entries of another row are kept, those that it has.
    tail.clear();
    assert!(tail.keep(&new, 8).expect("reads") && tail.keep(&new, 7).expect("reads"));
    assert!(tail.is_last_in(&new, 7).expect("reads"));
    assert!(!tail.keep(&new, 9).expect("reads") && !tail.keep(&row(), 7).expect("reads"));
    let kept = with(&tail, &row());
    assert_eq!(tail.bytes(), tail_bytes(&new));
    assert!(is_outside(&computed(8, &[KeyKind::Int4]), &kept));
    // Without entries there is no tail.
    tail.take_others(&row(), 7).expect("reads");
    assert_eq!(with(&tail, without_tail(&new)), row());
}

#[test]
fn any_bytes_are_read_or_refused() {
    let definition = computed(7, &[KeyKind::Text, KeyKind::Int4]);
    let mut tail = Tail::default();
    let values = [KeyValue::Bytes(b"abc"), KeyValue::Fixed(5)];
    tail.enter(7, &definition.columns, values.into_iter())
        .expect("memory");
    let body = with(&tail, &row());
    let mut key = KeyBuffer::new();
    for at in row().len()..body.len() {
        for flipped in 1..=u8::MAX {
            let mut damaged = body.clone();
            damaged[at] ^= flipped;
            let _ = encode_row(&definition, &damaged, &mut key);
            let _ = prefix_numbers(&definition, &damaged, &mut key, |_| Ok(()));
            assert!(tail_bytes(&damaged) <= damaged.len());
        }
    }
    for length in 0..body.len() {
        let _ = encode_row(&definition, &body[..length], &mut key);
        assert!(tail_bytes(&body[..length]) <= length);
    }
}

/// The forms of computed keys never change either; without names they are one.
#[test]
fn byte_forms_of_computed_keys_are_stable() {
    let without_file = computed(0x0A0B, &[KeyKind::Text]);
    let definition = IndexDefinition {
        file: FileKey {
            tablespace: 0x0102,
            relation: 0x0304_0506,
        },
        ..without_file.clone()
    };
    let (mut fifth, mut sixth) = (Vec::new(), Vec::new());
    without_file.write_bytes(&mut fifth).expect("valid");
    definition.write_bytes(&mut sixth).expect("valid");
    let file = [2, 1, 0, 0, 6, 5, 4, 3];
    let rest = [0, 0, 16, 4, 0x0B, 0x0A, 0, 0];
    let header = |form: u8| [form, 1, 77, 0, 0, 0, 1, 0, 0, 0];
    assert_eq!(fifth, [&header(5)[..], &rest].concat());
    assert_eq!(sixth, [&header(6)[..], &file, &rest].concat());
    assert_eq!(sixth.len(), definition.bytes_len());
    for (bytes, definition) in [(&fifth, &without_file), (&sixth, &definition)] {
        let read = IndexDefinition::from_bytes(bytes).expect("reads");
        assert_eq!(read, *definition);
        for end in 0..bytes.len() {
            assert!(IndexDefinition::from_bytes(&bytes[..end]).is_err());
        }
    }
    for form in 7..=9 {
        fifth[0] = form;
        assert!(IndexDefinition::from_bytes(&fifth).is_err());
    }
    let of_attributes = IndexDefinition {
        computed: Some(1),
        ..definition_of(&[KeyKind::Int4])
    };
    assert!(of_attributes.validate().is_err());
}
