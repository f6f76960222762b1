//! Byte order against value order for every kind, keys of rows, and damage.

mod collated;
mod computed;
mod containers;
mod decimal;
mod extensions;
mod jsonb;
mod missing;
mod order;
mod records;
mod rows;
mod text_search;
mod vectors;

use super::*;

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

fn encoded(column: &KeyColumn, value: KeyValue<'_>) -> Vec<u8> {
    let mut key = KeyBuffer::new();
    encode_value(column, value, &mut key).expect("encodes");
    key.as_slice().to_vec()
}
