//! Keys of whole rows, row images whole and damaged, index definitions in bytes.

use proptest::prelude::*;

use super::containers::holding;
use super::decimal::decimal;
use super::missing::add_missing;
use super::order::oidvector;
use super::*;
use crate::errors::EngineError;
use crate::ids::FileKey;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn damaged_bodies_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        header in prop::option::of((0..40_u16, any::<bool>(), 20..40_u8)),
        kinds in prop::collection::vec(0..all_kinds().len(), 1..8),
        missing in any::<u32>(),
    ) {
        let mut body = bytes;
        if let Some((natts, nulls, hoff)) = header
            && body.len() >= BODY_HEADER_BYTES
        {
            body[0..2].copy_from_slice(&natts.to_le_bytes());
            body[2..4].copy_from_slice(&u16::from(nulls).to_le_bytes());
            body[4] = hoff;
        }
        let mut definition = any_definition(&kinds);
        add_missing(&mut definition, missing);
        let mut key = KeyBuffer::new();
        let result = encode_row(&definition, &body, &mut key);
        if body.len() < BODY_HEADER_BYTES {
            let refused = matches!(result, Err(EngineError::Corrupt { .. }));
            prop_assert!(refused);
        }
        // Unchanged against itself, or unreadable.
        if let Ok(unchanged) = key_attributes_unchanged(&definition, &body, &body) {
            prop_assert!(unchanged);
        }
    }

    #[test]
    fn arbitrary_payloads_never_panic(
        kind in 0..all_kinds().len(),
        bytes in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut key = KeyBuffer::new();
        let kind = all_kinds()[kind];
        if encode_value(&column(kind), KeyValue::Bytes(&bytes), &mut key).is_ok() {
            prop_assert!(!key.is_empty());
        }
    }

    #[test]
    fn definitions_survive_their_byte_form(
        kinds in prop::collection::vec(0..all_kinds().len(), 1..33),
        missing in any::<u32>(),
        cut in any::<prop::sample::Index>(),
        flip in any::<(prop::sample::Index, u8)>(),
    ) {
        let mut definition = any_definition(&kinds);
        add_missing(&mut definition, missing);
        let mut bytes = Vec::new();
        definition.write_bytes(&mut bytes).expect("valid");
        prop_assert_eq!(bytes.len(), definition.bytes_len());
        prop_assert_eq!(IndexDefinition::from_bytes(&bytes).expect("valid"), definition);
        prop_assert!(IndexDefinition::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        let at = flip.0.index(bytes.len());
        bytes[at] = flip.1;
        if let Ok(other) = IndexDefinition::from_bytes(&bytes) {
            let mut again = Vec::new();
            other.write_bytes(&mut again).expect("valid");
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn rows_encode_like_values(rows in prop::collection::vec(row_value(), 1..10), flags in any::<u64>()) {
        let kinds: Vec<KeyKind> = rows.iter().map(|(kind, _)| *kind).collect();
        let mut definition = definition_of(&kinds);
        for (index, column) in definition.columns.iter_mut().enumerate() {
            column.descending = flags >> (index * 2) & 1 == 1;
            column.nulls_first = flags >> (index * 2 + 1) & 1 == 1;
        }
        if flags >> 63 == 1 {
            definition.columns.reverse();
        }
        let values: Vec<Option<&[u8]>> = rows.iter().map(|(_, value)| value.as_deref()).collect();
        for short_headers in [false, true] {
            let body = build_body(&definition.layout, &values, short_headers);
            let mut key = KeyBuffer::new();
            let has_null = encode_row(&definition, &body, &mut key).expect("encodes");
            prop_assert_eq!(has_null.0, values.iter().any(Option::is_none));
            let mut by_value = KeyBuffer::new();
            let mut numbers = Vec::new();
            for (position, column) in definition.columns.iter().enumerate() {
                let value = match values[usize::from(column.attnum) - 1] {
                    None => KeyValue::Null,
                    Some(bytes) => KeyValue::Bytes(bytes),
                };
                encode_value(column, value, &mut by_value).expect("encodes");
                // The first columns' key is a byte prefix of the whole.
                prop_assert!(key.as_slice().starts_with(by_value.as_slice()));
                numbers.push(prefix_number(position + 1, by_value.as_slice()));
            }
            prop_assert_eq!(key.as_slice(), by_value.as_slice());
            let mut of_row = Vec::new();
            prefix_numbers(&definition, &body, &mut key, |number| {
                of_row.push(number);
                Ok(())
            })
            .expect("encodes");
            prop_assert_eq!(of_row, numbers);
        }
    }

    #[test]
    fn fixed_keys_are_those_of_rows(
        columns in prop::collection::vec((0..FIXED_AND_OTHERS.len(), any::<[u8; 16]>(), 0..8_u8), 1..6),
        flags in any::<u64>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let kinds: Vec<KeyKind> = columns.iter().map(|(kind, ..)| FIXED_AND_OTHERS[*kind]).collect();
        let mut definition = definition_of(&kinds);
        for (index, column) in definition.columns.iter_mut().enumerate() {
            column.descending = flags >> (index * 2) & 1 == 1;
            column.nullable = flags >> (index * 2 + 1) & 1 == 1;
        }
        if flags >> 63 == 1 {
            definition.columns.reverse();
        }
        if flags >> 62 & 1 == 1 && columns.len() > 1 {
            definition.columns.remove(0);
        }
        let bytes: i16 = definition
            .columns
            .iter()
            .map(|column| column.kind.width() + i16::from(column.nullable))
            .sum();
        let is_fixed = definition.columns.iter().all(|column| FIXED_AND_OTHERS[..FIXED].contains(&column.kind))
            && !kinds.contains(&KeyKind::Text)
            && bytes <= 16;
        let fixed = FixedKey::of(&definition);
        prop_assert_eq!(fixed.is_some(), is_fixed);
        let Some(fixed) = fixed else { return Ok(()) };

        let values: Vec<Option<&[u8]>> = columns
            .iter()
            .zip(&kinds)
            .map(|((_, bytes, null), kind)| (*null > 0).then_some(&bytes[..kind.width() as usize]))
            .collect();
        let body = build_body(&definition.layout, &values, false);
        let (mut key, mut of_row) = (KeyBuffer::new(), KeyBuffer::new());
        prop_assert_eq!(fixed.encode(&body, &mut key), values.iter().all(Option::is_some));
        // Also of a row that is cut, and of one with fewer attributes.
        let mut fewer = body.clone();
        fewer[0] -= 1;
        for body in [&body[..], &body[..cut.index(body.len())], &fewer[..]] {
            if fixed.encode(body, &mut key) {
                let has_null = encode_row(&definition, body, &mut of_row).expect("encodes").0;
                prop_assert!(!has_null);
                prop_assert_eq!(key.as_slice(), of_row.as_slice());
            }
        }
    }
}

/// Numbers, of which keys at fixed places are made, and some of which none are.
const FIXED_AND_OTHERS: [KeyKind; 14] = [
    KeyKind::Int2,
    KeyKind::Int4,
    KeyKind::Int8,
    KeyKind::Oid,
    KeyKind::Date,
    KeyKind::Time,
    KeyKind::Timestamp,
    KeyKind::TimestampTz,
    KeyKind::Money,
    KeyKind::Unsigned8,
    KeyKind::Enum,
    KeyKind::Bool,
    KeyKind::Uuid,
    KeyKind::Text,
];
const FIXED: usize = 11;

/// A kind and a valid value of it, or NULL.
fn row_value() -> impl Strategy<Value = (KeyKind, Option<Vec<u8>>)> {
    (
        0..all_kinds().len(),
        decimal(),
        prop::collection::vec(1..255_u8, 64),
        0..200_usize,
        any::<bool>(),
    )
        .prop_map(|(kind, number, bytes, length, null)| {
            let kind = all_kinds()[kind];
            let held = match kind {
                KeyKind::Range(element)
                | KeyKind::Array(element)
                | KeyKind::Multirange(element) => element.kind(),
                scalar => scalar,
            };
            let value = match held {
                KeyKind::Numeric => number.payload(false, true),
                KeyKind::Inet => [&[2, 24], &bytes[..4]].concat(),
                KeyKind::VarBit => [&12_i32.to_le_bytes()[..], &bytes[..2]].concat(),
                KeyKind::OidVector => oidvector(&[u32::from(bytes[0]), 7]),
                // A lone true or false.
                KeyKind::Jsonb => vec![1, 0, 0, 0x50, 0, 0, 0, 0x20 | bytes[0] & 0x10],
                // A lexeme, a negation of a word, a pair, a label.
                KeyKind::TsVector => {
                    let entry = (2_u32 << 1).to_le_bytes();
                    [&[1, 0, 0, 0][..], &entry, &bytes[..2]].concat()
                }
                KeyKind::TsQuery => {
                    let not = [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                    let word = [1, 0, 0, 0, bytes[0], 0, 0, 0, 1, 0, 0, 0];
                    [&[2, 0, 0, 0][..], &not, &word, &bytes[..1]].concat()
                }
                KeyKind::Hstore => {
                    let ends = [1, 0, 0, 0x80, 2, 0, 0, 0];
                    [&[1, 0, 0, 0x80][..], &ends, &bytes[..2]].concat()
                }
                KeyKind::Ltree => [&[1, 0, 0, 0, 2, 0][..], &bytes[..2]].concat(),
                // Of one dimension.
                KeyKind::Cube => [&[1, 0, 0, 0x80][..], &[0; 7], &bytes[..1]].concat(),
                KeyKind::Vector => [&[1, 0, 0, 0][..], &[0; 3], &bytes[..1]].concat(),
                KeyKind::HalfVector => [&[1, 0, 0, 0, 0][..], &[bytes[0] & 0x7B]].concat(),
                KeyKind::SparseVector => {
                    [&[1, 0, 0, 0, 1, 0, 0, 0][..], &[0; 11], &[bytes[0] | 1]].concat()
                }
                KeyKind::Seg => [&[0; 8][..], &bytes[..2], b"<~"].concat(),
                KeyKind::Text | KeyKind::Bpchar | KeyKind::Bytea | KeyKind::Label => {
                    bytes.iter().copied().cycle().take(length).collect()
                }
                _ => bytes[..held.width() as usize].to_vec(),
            };
            let value = if held == kind {
                value
            } else {
                holding(kind, &value)
            };
            (kind, if null { None } else { Some(value) })
        })
}

pub(super) fn definition_of(kinds: &[KeyKind]) -> IndexDefinition {
    IndexDefinition {
        relation: 77,
        file: FileKey::NONE,
        unique: true,
        nulls_not_distinct: false,
        columns: kinds
            .iter()
            .enumerate()
            .map(|(index, kind)| KeyColumn {
                attnum: index as u16 + 1,
                kind: *kind,
                descending: index % 3 == 1,
                nulls_first: index % 2 == 1,
                nullable: true,
                collation: None,
            })
            .collect(),
        layout: kinds.iter().map(|kind| kind.layout()).collect(),
        missing: Vec::new(),
        computed: None,
    }
}

pub(super) fn any_definition(kinds: &[usize]) -> IndexDefinition {
    definition_of(
        &kinds
            .iter()
            .map(|kind| all_kinds()[*kind])
            .collect::<Vec<_>>(),
    )
}

/// A heap tuple as heap_form_tuple lays it out.
pub(super) fn build_body(
    layout: &[AttributeLayout],
    values: &[Option<&[u8]>],
    short_headers: bool,
) -> Vec<u8> {
    let has_null = values.iter().any(Option::is_none);
    let bitmap_bytes = if has_null {
        values.len().div_ceil(8)
    } else {
        0
    };
    let hoff = (BODY_OFFSET_BYTES + BODY_HEADER_BYTES + bitmap_bytes).next_multiple_of(8);
    let start = hoff - BODY_OFFSET_BYTES;
    let mut body = vec![0; start];
    body[0..2].copy_from_slice(&(values.len() as u16).to_le_bytes());
    body[2..4].copy_from_slice(&u16::from(has_null).to_le_bytes());
    body[4] = hoff as u8;
    for (index, (layout, value)) in layout.iter().zip(values).enumerate() {
        let Some(bytes) = value else { continue };
        if has_null {
            body[BODY_HEADER_BYTES + index / 8] |= 1 << (index % 8);
        }
        let short = layout.len == -1 && short_headers && bytes.len() <= 126;
        if !short {
            let aligned = (body.len() - start).next_multiple_of(usize::from(layout.align)) + start;
            body.resize(aligned, 0);
        }
        match (layout.len, short) {
            (-1, true) => body.push((bytes.len() as u8 + 1) << 1 | 1),
            (-1, false) => body.extend_from_slice(&((bytes.len() as u32 + 4) << 2).to_le_bytes()),
            _ => {}
        }
        body.extend_from_slice(bytes);
    }
    body
}

#[test]
fn a_row_with_null_in_a_not_null_column_has_no_key() {
    let mut definition = definition_of(&[KeyKind::Int4, KeyKind::Int8]);
    let body = build_body(&definition.layout, &[Some(&[1, 0, 0, 0]), None], true);
    for column in &mut definition.columns {
        column.nullable = false;
    }
    let mut key = KeyBuffer::new();
    let has_null = encode_row(&definition, &body, &mut key).expect("is no error");
    assert!(has_null.0);
    assert!(key.is_empty());
    definition.columns[1].nullable = true;
    encode_row(&definition, &body, &mut key).expect("encodes");
    assert!(!key.is_empty());
}

/// The engine keeps ordinals in these bits.
#[test]
fn bits_of_transaction_information_are_passed_over() {
    let definition = definition_of(&[KeyKind::Int4, KeyKind::Int8]);
    for second in [None, Some(&[2; 8][..])] {
        let plain = build_body(&definition.layout, &[Some(&[1, 0, 0, 0]), second], true);
        let mut marked = plain.clone();
        marked[1] |= 0xE0;
        marked[2] |= 0xF0;
        marked[3] = 0xFF;
        assert!(key_attributes_unchanged(&definition, &plain, &marked).expect("reads"));
        let keys = [&plain, &marked].map(|body| {
            let mut key = KeyBuffer::new();
            let has_null = encode_row(&definition, body, &mut key).expect("encodes");
            (has_null.0, key.as_slice().to_vec())
        });
        assert_eq!(keys[0], keys[1]);
        let fixed = FixedKey::of(&definition).expect("of numbers");
        let keys = [&plain, &marked].map(|body| {
            let mut key = KeyBuffer::new();
            (fixed.encode(body, &mut key), key.as_slice().to_vec())
        });
        assert_eq!(keys[0], keys[1]);
    }
}

#[test]
fn attributes_beyond_the_tuple_are_told_from_null() {
    let kinds = [KeyKind::Int4, KeyKind::Text, KeyKind::Int8];
    let definition = definition_of(&kinds);
    let body = build_body(
        &definition.layout,
        &[Some(&[1, 0, 0, 0]), Some(b"abc")],
        true,
    );
    let mut reader = BodyReader::new(&definition.layout, &body).expect("header");
    assert_eq!(reader.attribute(3).expect("absent"), Attribute::Beyond);
    assert_eq!(reader.attribute(2).expect("text"), Attribute::Bytes(b"abc"));
    assert_eq!(
        reader.attribute(1).expect("going back"),
        Attribute::Bytes(&[1, 0, 0, 0])
    );
    assert!(reader.attribute(4).is_err());
    assert!(reader.attribute(0).is_err());
}

#[test]
fn finds_attributes_after_c_strings() {
    let layout = [
        AttributeLayout {
            len: -2,
            align: 1,
            by_value: false,
        },
        AttributeLayout {
            len: 4,
            align: 4,
            by_value: true,
        },
    ];
    let mut body = vec![0; 6];
    body[0] = 2;
    body[4] = 24;
    body.extend_from_slice(b"hello\0\0\0\x2A\0\0\0");
    let mut reader = BodyReader::new(&layout, &body).expect("header");
    assert_eq!(
        reader.attribute(2).expect("int"),
        Attribute::Bytes(&[42, 0, 0, 0])
    );
    assert_eq!(
        reader.attribute(1).expect("string"),
        Attribute::Bytes(b"hello")
    );
}

#[test]
fn external_and_compressed_data_are_refused() {
    let layout = [AttributeLayout {
        len: -1,
        align: 4,
        by_value: false,
    }];
    for header in [[0x01, 18, 0, 0], [0x42, 0, 0, 0]] {
        let mut body = vec![0; 6];
        body[0] = 1;
        body[4] = 24;
        body.extend_from_slice(&header);
        body.extend_from_slice(&[0; 32]);
        let mut reader = BodyReader::new(&layout, &body).expect("header");
        assert!(matches!(
            reader.attribute(1),
            Err(EngineError::Corrupt { .. })
        ));
    }
}
