//! Byte order against value order for every kind, keys of rows, and damage.

mod byte_form;
mod collated;
mod computed;
mod containers;
mod decimal;
mod extensions;
mod jsonb;
mod labels;
mod missing;
mod order;
mod records;
mod rows;
mod text_search;
mod vectors;

use super::*;

/// Every kind there is without records.
fn all_kinds() -> Vec<KeyKind> {
    (0..=u8::MAX).filter_map(KeyKind::from_number).collect()
}

fn column(kind: KeyKind) -> KeyColumn {
    KeyColumn {
        attnum: 1,
        kind,
        descending: false,
        nulls_first: false,
        nullable: false,
        collation: None,
    }
}

/// Encodes a value after a byte of it was changed, and maybe the rest cut: to a key, or an error.
fn encode_damaged(
    kind: KeyKind,
    mut bytes: Vec<u8>,
    (at, byte, cut): (proptest::sample::Index, u8, bool),
) {
    let at = at.index(bytes.len());
    bytes[at] = byte;
    if cut {
        bytes.truncate(at);
    }
    let mut key = KeyBuffer::new();
    let _ = encode_value(&column(kind), KeyValue::Bytes(&bytes), &mut key);
    key.clear();
    let _ = encode_end(&column(kind), KeyValue::Bytes(&bytes), &mut key);
}

fn encoded(column: &KeyColumn, value: KeyValue<'_>) -> Vec<u8> {
    let mut key = KeyBuffer::new();
    encode_value(column, value, &mut key).expect("encodes");
    key.as_slice().to_vec()
}
