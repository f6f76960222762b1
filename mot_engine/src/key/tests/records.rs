//! Records against a model of PostgreSQL's comparison of them.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::order::{check, check_ends};
use super::rows::definition_of;
use super::*;
use crate::collation::{Collation, Provider};
use crate::errors::EngineError;

/// A column of the row type: a number, a text, a record of these two, an array of such records.
#[derive(Clone, Debug)]
enum Value {
    Number(i32),
    Text(Vec<u8>),
    Record(Vec<Option<Value>>),
    Records(Vec<Option<Value>>),
}

impl Value {
    fn compare(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Number(one), Value::Number(other)) => one.cmp(other),
            (Value::Text(one), Value::Text(other)) => one.cmp(other),
            (Value::Record(one), Value::Record(other)) => compare(one, other),
            (Value::Records(one), Value::Records(other)) => {
                compare(one, other).then(one.len().cmp(&other.len()))
            }
            _ => unreachable!("columns of one type"),
        }
    }
}

/// Place by place, as far as both go. NULL lies behind all values.
fn compare(one: &[Option<Value>], other: &[Option<Value>]) -> Ordering {
    let pairs = one.iter().zip(other);
    pairs
        .map(|pair| match pair {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(one), Some(other)) => one.compare(other),
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// In which of its forms a value is.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// Varlenas: long, short, compressed by `pglz`, by LZ4.
    varlena: u8,
    /// NULLs at the end are columns that the value does not have.
    is_cut: bool,
    /// What the dropped column is.
    dropped: Option<u8>,
}

fn forms() -> impl Strategy<Value = Form> {
    (0..4_u8, any::<bool>(), any::<Option<u8>>()).prop_map(|(varlena, is_cut, dropped)| Form {
        varlena,
        is_cut,
        dropped,
    })
}

fn field(kind: KeyKind, align: u8) -> Field {
    Field {
        kind: Some(kind),
        layout: AttributeLayout {
            len: kind.width(),
            align,
            by_value: false,
        },
        collation: None,
        missing: None,
    }
}

fn dropped_field() -> Field {
    Field {
        kind: None,
        ..field(KeyKind::Int8, 8)
    }
}

fn inner() -> Record {
    let fields = vec![field(KeyKind::Int4, 4), field(KeyKind::Text, 4)];
    Record::of(7, fields).expect("valid")
}

/// With a dropped column behind the first.
fn outer() -> Record {
    let record = KeyKind::Record(inner());
    let array = KeyKind::Array(ElementKind::of(record).expect("is an element"));
    let fields = vec![
        field(KeyKind::Int4, 4),
        dropped_field(),
        field(KeyKind::Text, 4),
        field(record, 8),
        field(array, 8),
    ];
    Record::of(8, fields).expect("valid")
}

/// LZ4's numbers beyond what a token holds.
fn lz4_more(count: usize, out: &mut Vec<u8>) {
    if count >= 15 {
        out.resize(out.len() + (count - 15) / 255, 255);
        out.push(((count - 15) % 255) as u8);
    }
}

fn packed(bytes: &[u8], by_lz4: bool) -> Vec<u8> {
    let mut body = Vec::new();
    if by_lz4 {
        body.push((bytes.len().min(15) as u8) << 4);
        lz4_more(bytes.len(), &mut body);
        body.extend_from_slice(bytes);
    } else {
        for literals in bytes.chunks(8) {
            body.push(0);
            body.extend_from_slice(literals);
        }
    }
    let information = bytes.len() as u32 | u32::from(by_lz4) << 30;
    let header = (body.len() as u32 + 8) << 2 | 2;
    [&header.to_le_bytes()[..], &information.to_le_bytes(), &body].concat()
}

fn pad(out: &mut Vec<u8>, align: usize) {
    out.resize(out.len().next_multiple_of(align), 0);
}

/// Appends a varlena as heap_fill_tuple does.
fn push_varlena(out: &mut Vec<u8>, bytes: &[u8], align: usize, varlena: u8) {
    if varlena == 1 && bytes.len() <= 126 {
        out.push((bytes.len() as u8 + 1) << 1 | 1);
        out.extend_from_slice(bytes);
        return;
    }
    pad(out, align);
    if varlena > 1 && !bytes.is_empty() {
        out.extend_from_slice(&packed(bytes, varlena == 3));
        return;
    }
    out.extend_from_slice(&((bytes.len() as u32 + 4) << 2).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The payload of a datum whose columns are these, but for a dropped one at some place.
fn payload(values: &[Option<Value>], dropped_at: Option<usize>, form: Form) -> Vec<u8> {
    let mut columns: Vec<Option<Value>> = values.to_vec();
    if let Some(at) = dropped_at {
        columns.insert(at, form.dropped.map(|byte| Value::Number(i32::from(byte))));
    }
    while form.is_cut && matches!(columns.last(), Some(None)) {
        columns.pop();
    }
    let has_null = columns.iter().any(Option::is_none);
    let bitmap = if has_null {
        columns.len().div_ceil(8)
    } else {
        0
    };
    let data = (23 + bitmap).next_multiple_of(8);
    let mut out = vec![0xAA; 14];
    out.extend_from_slice(&(columns.len() as u16).to_le_bytes());
    out.extend_from_slice(&u16::from(has_null).to_le_bytes());
    out.push(data as u8);
    out.resize(data - 4, 0);
    let mut values = Vec::new();
    for (at, value) in columns.iter().enumerate() {
        let Some(value) = value else { continue };
        if has_null {
            out[19 + at / 8] |= 1 << (at % 8);
        }
        match value {
            Value::Number(number) if Some(at) == dropped_at => {
                pad(&mut values, 8);
                values.extend_from_slice(&i64::from(*number).to_le_bytes());
            }
            Value::Number(number) => {
                pad(&mut values, 4);
                values.extend_from_slice(&number.to_le_bytes());
            }
            Value::Text(text) => push_varlena(&mut values, text, 4, form.varlena),
            Value::Record(record) => {
                let bytes = payload(record, None, form);
                push_varlena(&mut values, &bytes, 8, form.varlena);
            }
            Value::Records(records) => {
                push_varlena(&mut values, &array(records, form), 8, form.varlena);
            }
        }
    }
    out.extend_from_slice(&values);
    out
}

/// The payload of an array of one dimension. Its elements have long headers.
fn array(records: &[Option<Value>], form: Form) -> Vec<u8> {
    if records.is_empty() {
        return [0_u32, 0, 7].map(u32::to_le_bytes).concat();
    }
    // As from the header on, so that alignment counts.
    let mut out = vec![0; 4];
    let bitmap = records.len().div_ceil(8);
    let data = (4 + 12 + 8 + bitmap).next_multiple_of(8) as u32;
    for number in [1, data, 7, records.len() as u32, 1] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.resize(data as usize, 0);
    for (at, record) in records.iter().enumerate() {
        let Some(Value::Record(record)) = record else {
            continue;
        };
        out[24 + at / 8] |= 1 << (at % 8);
        push_varlena(&mut out, &payload(record, None, form), 8, 0);
    }
    out.split_off(4)
}

fn numbers() -> impl Strategy<Value = Option<Value>> {
    prop::option::of(prop_oneof![-1..2, any::<i32>()].prop_map(Value::Number))
}

fn texts() -> impl Strategy<Value = Option<Value>> {
    let text = prop::collection::vec(prop_oneof![Just(b'a'), 1..=255_u8], 0..12);
    let long = (1..255_u8, 100..300_usize).prop_map(|(byte, length)| vec![byte; length]);
    prop::option::of(prop_oneof![4 => text, 1 => long].prop_map(Value::Text))
}

fn records() -> impl Strategy<Value = Option<Value>> {
    let record = (numbers(), texts()).prop_map(|(one, other)| Value::Record(vec![one, other]));
    prop::option::of(record)
}

fn rows() -> impl Strategy<Value = Vec<Option<Value>>> {
    let arrays = prop::option::of(prop::collection::vec(records(), 0..3).prop_map(Value::Records));
    (numbers(), texts(), records(), arrays).prop_map(|(a, b, c, d)| vec![a, b, c, d])
}

fn kind() -> KeyKind {
    KeyKind::Record(outer())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn records_order(rows in prop::collection::vec((rows(), forms()), 2), same in 0..5_usize) {
        let [(one, form), (mut other, other_form)] = <[_; 2]>::try_from(rows).expect("two");
        // Such as differ late, if at all.
        other[..same.min(4)].clone_from_slice(&one[..same.min(4)]);
        let (a, b) = (payload(&one, Some(1), form), payload(&other, Some(1), other_form));
        check(kind(), KeyValue::Bytes(&a), KeyValue::Bytes(&b), compare(&one, &other))?;
    }

    /// A row type that gets another column leaves the keys of older values as they were.
    #[test]
    fn keys_do_not_change_with_a_new_column(row in rows(), form in forms()) {
        let mut fields = outer().fields().to_vec();
        fields.push(field(KeyKind::Float8, 8));
        let wider = KeyKind::Record(Record::of(8, fields).expect("valid"));
        let bytes = payload(&row, Some(1), form);
        let before = encoded(&column(kind()), KeyValue::Bytes(&bytes));
        prop_assert_eq!(before, encoded(&column(wider), KeyValue::Bytes(&bytes)));
    }

    /// A cut or changed image gives a key or an error.
    #[test]
    fn damaged_records_are_keys_or_refused(
        row in rows(), form in forms(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let mut bytes = payload(&row, Some(1), form);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        let mut key = KeyBuffer::new();
        let _ = encode_value(&column(kind()), KeyValue::Bytes(&bytes), &mut key);
        key.clear();
        let _ = encode_end(&column(kind()), KeyValue::Bytes(&bytes), &mut key);
    }

    /// Definitions with records: there and back, and damaged.
    #[test]
    fn definitions_with_records(
        containers in prop::collection::vec(0..4_u8, 1..4), missing in any::<Option<u8>>(), has_order in any::<bool>(),
        flip in (any::<prop::sample::Index>(), any::<u8>()), cut in any::<prop::sample::Index>(),
    ) {
        let mut text = field(KeyKind::Text, 4);
        text.missing = missing.map(|byte| Box::from([byte]));
        text.collation = has_order.then(|| Collation::named(Provider::Icu, "de").expect("a name"));
        let record = KeyKind::Record(Record::of(9, vec![field(kind(), 8), dropped_field(), text]).expect("valid"));
        let element = ElementKind::of(record).expect("is an element");
        let kinds: Vec<_> = containers.iter().map(|container| match container {
            0 => record,
            1 => KeyKind::Array(element),
            2 => KeyKind::Range(element),
            _ => KeyKind::Multirange(element),
        }).chain([KeyKind::Int4]).collect();
        let definition = definition_of(&kinds);
        let mut bytes = Vec::new();
        definition.write_bytes(&mut bytes).expect("valid");
        prop_assert_eq!(bytes.len(), definition.bytes_len());
        prop_assert_eq!(IndexDefinition::from_bytes(&bytes).expect("valid"), definition.clone());
        prop_assert_eq!(definition.columns[0].has_collations(), has_order);
        prop_assert!(IndexDefinition::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        let at = flip.0.index(bytes.len());
        bytes[at] = flip.1;
        if let Ok(other) = IndexDefinition::from_bytes(&bytes) {
            let mut again = Vec::new();
            other.write_bytes(&mut again).expect("valid");
            prop_assert_eq!(again, bytes);
        }
    }
}

const PLAIN: Form = Form {
    varlena: 0,
    is_cut: false,
    dropped: None,
};

#[test]
fn a_value_before_a_column_has_the_missing_value() {
    let mut later = field(KeyKind::Text, 4);
    later.missing = Some(Box::from(*b"then"));
    let record = Record::of(7, vec![field(KeyKind::Int4, 4), later]).expect("valid");
    let column = column(KeyKind::Record(record));
    let with = |text: Option<&[u8]>, is_cut| {
        let text = text.map(|text| Value::Text(text.to_vec()));
        let form = Form { is_cut, ..PLAIN };
        let bytes = payload(&[Some(Value::Number(1)), text], None, form);
        encoded(&column, KeyValue::Bytes(&bytes))
    };
    assert_eq!(with(None, true), with(Some(b"then"), false));
    assert_ne!(with(None, false), with(Some(b"then"), false));
}

#[test]
fn a_value_with_a_column_that_the_index_lacks_is_refused() {
    let record = Record::of(7, vec![field(KeyKind::Int4, 4)]).expect("valid");
    let encode = |text: Option<Value>| {
        let bytes = payload(&[Some(Value::Number(1)), text], None, PLAIN);
        let mut key = KeyBuffer::new();
        encode_value(
            &column(KeyKind::Record(record)),
            KeyValue::Bytes(&bytes),
            &mut key,
        )
    };
    encode(None).expect("NULL adds nothing");
    let refused = encode(Some(Value::Text(b"a".to_vec())));
    assert!(matches!(
        refused,
        Err(EngineError::RowTypeChanged { row_type: 7 })
    ));
}

#[test]
fn what_a_row_type_cannot_be_is_refused() {
    let refused = |change: fn(&mut Field)| {
        let mut field = field(KeyKind::Int4, 4);
        change(&mut field);
        Record::of(7, vec![field]).is_err()
    };
    assert!(!refused(|_| ()));
    assert!(refused(|field| field.layout.len = 8));
    assert!(refused(|field| field.layout.align = 3));
    assert!(refused(
        |field| field.collation = Collation::named(Provider::Icu, "de").ok()
    ));
    assert!(refused(|field| {
        field.kind = None;
        field.missing = Some(Box::from([1]));
    }));
    let mut nested = field(KeyKind::Int4, 4);
    for depth in 1..=RECORD_DEPTH_MAX {
        let record = Record::of(7, vec![nested]).expect("not too deep");
        assert_eq!(record.depth(), depth);
        nested = field(KeyKind::Record(record), 8);
    }
    assert!(Record::of(7, vec![nested]).is_err());
}

/// What PostgreSQL makes of a text that repeats itself.
#[test]
fn repeated_bytes_are_unpacked() {
    let whole = b"abcabcabcabcabcabcabcabcabcabcabcabcx";
    // Three literals, a repetition of 33 bytes from 3 back, a literal.
    let pglz = [&[0b0000_1000][..], b"abc", &[0x0F, 3, 15], b"x"].concat();
    // The same of LZ4: 29 more than the four that are always repeated, then one literal.
    let lz4 = [&[0x3F][..], b"abc", &[3, 0, 14], &[0x10], b"x"].concat();
    for (method, body) in [(0_u32, pglz), (1, lz4)] {
        let information = whole.len() as u32 | method << 30;
        let header = (body.len() as u32 + 8) << 2 | 2;
        let value = [&header.to_le_bytes()[..], &information.to_le_bytes(), &body].concat();
        let record = Record::of(7, vec![field(KeyKind::Text, 4)]).expect("valid");
        let text = |bytes: &[u8]| {
            let mut row = payload(&[Some(Value::Number(0))], None, PLAIN);
            row.truncate(20);
            row.extend_from_slice(bytes);
            let mut key = KeyBuffer::new();
            let kind = KeyKind::Record(record);
            encode_value(&column(kind), KeyValue::Bytes(&row), &mut key)
                .map(|()| key.as_slice().to_vec())
        };
        let key = text(&value).expect("is whole");
        assert_eq!(key, [&[1][..], whole, &[0, 3]].concat());
        // Any cut, and any other byte, is an error or another text.
        for at in 0..value.len() {
            let _ = text(&value[..at]);
            for byte in [0, 1, 0x0F, 0xF0, 0xFF] {
                let mut other = value.clone();
                other[at] = byte;
                let _ = text(&other);
            }
        }
    }
}

#[test]
fn an_end_longer_than_any_key_lies_where_its_record_does() {
    let mut rows = Vec::new();
    for length in (KEY_BYTES_MAX - 12..KEY_BYTES_MAX + 3).chain([2 * KEY_BYTES_MAX]) {
        for last in ["", "\t", "b", "b!"] {
            let text = Value::Text([vec![b'a'; length], last.as_bytes().to_vec()].concat());
            rows.push(vec![None, Some(text.clone()), None, None]);
            let inner = Value::Record(vec![Some(Value::Number(1)), Some(text)]);
            rows.push(vec![None, None, Some(inner), None]);
        }
    }
    let payloads: Vec<_> = rows
        .iter()
        .map(|row| payload(row, Some(1), PLAIN))
        .collect();
    check_ends(kind(), &payloads, |a, b| compare(&rows[a], &rows[b]));
}

/// The stored form of a record never changes.
#[test]
fn byte_form_of_records_is_stable() {
    let mut text = field(KeyKind::Text, 4);
    text.missing = Some(Box::from(*b"m"));
    text.collation = Some(Collation::named(Provider::Icu, "de").expect("a name"));
    let record = Record::of(0x0102, vec![field(KeyKind::Int2, 2), dropped_field(), text]);
    let record = KeyKind::Record(record.expect("valid"));
    let mut bytes = Vec::new();
    let array = KeyKind::Array(ElementKind::of(record).expect("is an element"));
    definition_of(&[array])
        .write_bytes(&mut bytes)
        .expect("valid");
    assert_eq!(
        bytes,
        [
            17, 1, 77, 0, 0, 0, 1, 0, 1, 0, // header
            1, 0, 191, 4, // column
            0xFF, 0xFF, 8, 0, // attribute
            2, 1, 0, 0, 3, 0, // row type
            0, 2, 2, 0, 2, // smallint
            1, 0, 8, 0, 8, // dropped
            6, 16, 0xFF, 0xFF, 4, 1, 2, b'd', b'e', 1, 0, b'm', // text
        ]
    );
}
