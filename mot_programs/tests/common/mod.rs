//! Rows as PostgreSQL stores them, made without it.
#![allow(dead_code, reason = "each test is a crate of its own, and uses a part")]
use mot_engine::key::{AttributeLayout, BODY_OFFSET_BYTES};
use mot_programs::filter::WordKind;
use proptest::prelude::*;

/// A column's type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    Number(WordKind),
    Text,
}

/// A column's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    Null,
    Number(i64),
    /// A text, and whether it has a long header whatever its length.
    Text(Vec<u8>, bool),
}

impl Type {
    pub fn layout(self) -> AttributeLayout {
        match self {
            Type::Number(kind) => AttributeLayout {
                len: kind.bytes(),
                align: kind.bytes() as u8,
                by_value: true,
            },
            Type::Text => AttributeLayout {
                len: -1,
                align: 4,
                by_value: false,
            },
        }
    }

    /// A value that is not NULL: small ones, which are often equal, and those at the ends.
    pub fn value(self) -> BoxedStrategy<Value> {
        match self {
            Type::Number(kind) => number(kind).prop_map(Value::Number).boxed(),
            Type::Text => ("[ab ]{0,4}", any::<bool>())
                .prop_map(|(text, is_long)| Value::Text(text.into_bytes(), is_long))
                .boxed(),
        }
    }
}

/// A number of the kind.
pub fn number(kind: WordKind) -> BoxedStrategy<i64> {
    match kind {
        WordKind::Bool => (0..2_i64).boxed(),
        WordKind::Char => prop_oneof![4 => 0..4_i64, 1 => Just(255)].boxed(),
        WordKind::Oid => prop_oneof![4 => 0..4_i64, 1 => Just(i64::from(u32::MAX))].boxed(),
        WordKind::Int2 => integer(i16::MIN.into(), i16::MAX.into()),
        WordKind::Int4 => integer(i32::MIN.into(), i32::MAX.into()),
        WordKind::Int8 => integer(i64::MIN, i64::MAX),
    }
}

fn integer(least: i64, most: i64) -> BoxedStrategy<i64> {
    prop_oneof![6 => -3..4_i64, 1 => Just(least), 1 => Just(most), 1 => least..=most].boxed()
}

/// A value of each type; NULL as often as the weight says, of ten.
pub fn row(types: &[Type], nulls: u32) -> BoxedStrategy<Vec<Value>> {
    let values: Vec<_> = types
        .iter()
        .map(|of| prop_oneof![nulls => Just(Value::Null), 10 - nulls => of.value()])
        .collect();
    values.boxed()
}

/// A heap tuple with these values. The engine's stamp in it is all ones.
pub fn tuple(types: &[Type], values: &[Value]) -> Vec<u8> {
    let has_null = values.contains(&Value::Null);
    let bitmap = if has_null {
        values.len().div_ceil(8)
    } else {
        0
    };
    let data_start = (23 + bitmap).next_multiple_of(8);
    let mut bytes = vec![0; data_start];
    bytes[..BODY_OFFSET_BYTES].fill(0xFF);
    bytes[18..20].copy_from_slice(&(values.len() as u16).to_le_bytes());
    bytes[20] = u8::from(has_null);
    bytes[22] = data_start as u8;
    for (at, (of, value)) in types.iter().zip(values).enumerate() {
        let align = usize::from(of.layout().align);
        let aligned = (bytes.len() - data_start).next_multiple_of(align) + data_start;
        match (of, value) {
            (_, Value::Null) => continue,
            (Type::Number(kind), Value::Number(number)) => {
                bytes.resize(aligned, 0);
                bytes.extend(&number.to_le_bytes()[..kind.bytes() as usize]);
            }
            (Type::Text, Value::Text(text, is_long)) => {
                if *is_long || text.len() > 126 {
                    bytes.resize(aligned, 0);
                    bytes.extend(((text.len() as u32 + 4) << 2).to_le_bytes());
                } else {
                    bytes.push((text.len() as u8 + 1) << 1 | 1);
                }
                bytes.extend(text);
            }
            other => panic!("{other:?}"),
        }
        if has_null {
            bytes[23 + at / 8] |= 1 << (at % 8);
        }
    }
    bytes
}
