//! jsonb against a model of its trees, laid out and compared as PostgreSQL does.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::decimal::{Decimal, decimals};
use super::order::{check, check_ends};
use super::*;

/// A value; pairs of an object are in the order in which PostgreSQL stores them.
#[derive(Clone, Debug)]
enum Json {
    Null,
    String(String),
    Number(Decimal),
    Bool(bool),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

const LENGTH_STRIDE: usize = 32;

impl Json {
    /// An object with each key once, the shorter ones first.
    fn object(mut pairs: Vec<(String, Json)>) -> Json {
        let place = |key: &String| (key.len(), key.clone());
        pairs.sort_by_key(|(key, _)| place(key));
        pairs.dedup_by(|one, other| one.0 == other.0);
        Json::Object(pairs)
    }

    fn is_container(&self) -> bool {
        matches!(self, Json::Array(_) | Json::Object(_))
    }

    /// The payload of a datum; `form` says of numbers in which of their forms they are.
    fn payload(&self, form: bool) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            container if container.is_container() => container.push_container(form, &mut out),
            scalar => push_children(0x5000_0001, &[scalar], form, &mut out),
        }
        out
    }

    fn push_container(&self, form: bool, out: &mut Vec<u8>) {
        match self {
            Json::Array(elements) => {
                let elements: Vec<_> = elements.iter().collect();
                push_children(0x4000_0000 | elements.len() as u32, &elements, form, out);
            }
            Json::Object(pairs) => {
                let keys: Vec<_> = pairs
                    .iter()
                    .map(|(key, _)| Json::String(key.clone()))
                    .collect();
                let values = pairs.iter().map(|(_, value)| value);
                let children: Vec<_> = keys.iter().chain(values).collect();
                push_children(0x2000_0000 | pairs.len() as u32, &children, form, out);
            }
            _ => unreachable!("no container"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Json::Null => 0,
            Json::String(_) => 1,
            Json::Number(_) => 2,
            Json::Bool(_) => 3,
            Json::Array(_) => 4,
            Json::Object(_) => 5,
        }
    }

    /// As a whole value: a lone scalar is an array of one, and less than a true one.
    fn compare(&self, other: &Json) -> Ordering {
        let count = |json: &Json| match json {
            Json::Array(elements) => elements.len(),
            _ => 1,
        };
        let is_object = |json: &Json| matches!(json, Json::Object(_));
        match (is_object(self), is_object(other)) {
            (false, false) => count(self)
                .cmp(&count(other))
                .then(self.is_container().cmp(&other.is_container()))
                .then_with(|| self.compare_inner(other)),
            (true, true) => self.compare_inner(other),
            (one, two) => one.cmp(&two),
        }
    }

    fn compare_inner(&self, other: &Json) -> Ordering {
        match (self, other) {
            (Json::String(one), Json::String(two)) => one.cmp(two),
            (Json::Number(one), Json::Number(two)) => one.compare(two),
            (Json::Bool(one), Json::Bool(two)) => one.cmp(two),
            (Json::Array(one), Json::Array(two)) => one.len().cmp(&two.len()).then_with(|| {
                let mut orders = one.iter().zip(two).map(|(one, two)| one.compare_inner(two));
                orders
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            }),
            (Json::Object(one), Json::Object(two)) => one.len().cmp(&two.len()).then_with(|| {
                let mut orders = one.iter().zip(two).map(|(one, two)| {
                    let by_key = one.0.cmp(&two.0);
                    by_key.then_with(|| one.1.compare_inner(&two.1))
                });
                orders
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            }),
            (one, two) => one.rank().cmp(&two.rank()),
        }
    }
}

/// A container, which begins at a multiple of four bytes.
fn push_children(header: u32, children: &[&Json], form: bool, out: &mut Vec<u8>) {
    assert!(out.len().is_multiple_of(4));
    out.extend_from_slice(&header.to_le_bytes());
    let entries = out.len();
    out.resize(entries + 4 * children.len(), 0);
    let data = out.len();
    for (at, child) in children.iter().enumerate() {
        let start = out.len();
        if child.is_container() || matches!(child, Json::Number(_)) {
            out.resize(out.len().next_multiple_of(4), 0);
        }
        let kind = match child {
            Json::Null => 0x4000_0000,
            Json::Bool(false) => 0x2000_0000,
            Json::Bool(true) => 0x3000_0000,
            Json::String(text) => {
                out.extend_from_slice(text.as_bytes());
                0
            }
            Json::Number(number) => {
                let number = number.payload(form, !form);
                out.extend_from_slice(&((number.len() as u32 + 4) << 2).to_le_bytes());
                out.extend_from_slice(&number);
                0x1000_0000
            }
            container => {
                container.push_container(form, out);
                0x5000_0000_u32
            }
        };
        let place = match at % LENGTH_STRIDE {
            0 => 0x8000_0000 | (out.len() - data) as u32,
            _ => (out.len() - start) as u32,
        };
        let entry = entries + 4 * at;
        out[entry..entry + 4].copy_from_slice(&(kind | place).to_le_bytes());
    }
}

/// Few distinct ones, so that beginnings are often equal.
fn strings() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[ab\u{1}]{0,3}", 1 => "[a-z]{30,40}"]
}

fn scalars() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        strings().prop_map(Json::String),
        (0..4_u8).prop_map(|digit| Json::Number(Decimal::Finite {
            negative: digit == 3,
            integer: vec![digit],
            fraction: Vec::new(),
        })),
        decimals().prop_map(|(number, _)| Json::Number(number)),
    ]
}

fn trees() -> impl Strategy<Value = Json> {
    scalars().prop_recursive(4, 60, 40, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            4 => prop::collection::vec((strings(), inner.clone()), 0..4).prop_map(Json::object),
            1 => prop::collection::vec(inner.clone(), 30..70).prop_map(Json::Array),
            1 => prop::collection::vec((strings(), inner), 20..60).prop_map(Json::object),
        ]
    })
}

/// The tree with one scalar of it replaced, or the tree itself.
fn changed(json: &Json, at: &mut usize, by: &Json) -> Json {
    match json {
        Json::Array(elements) => {
            Json::Array(elements.iter().map(|one| changed(one, at, by)).collect())
        }
        Json::Object(pairs) => Json::Object(
            pairs
                .iter()
                .map(|(key, value)| (key.clone(), changed(value, at, by)))
                .collect(),
        ),
        scalar => {
            let is_it = *at == 0;
            *at = at.wrapping_sub(1);
            if is_it { by.clone() } else { scalar.clone() }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn trees_order(one in trees(), other in trees(), forms in any::<[bool; 2]>()) {
        check_trees(&one, &other, forms)?;
    }

    #[test]
    fn trees_with_one_change_order(
        one in trees(), at in 0..12_usize, by in trees(), forms in any::<[bool; 2]>(),
    ) {
        check_trees(&one, &changed(&one, &mut at.clone(), &by), forms)?;
        check_trees(&one, &one, forms)?;
    }

    /// A cut or changed image gives a key or an error.
    #[test]
    fn damaged_trees_are_keys_or_refused(
        tree in trees(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let mut bytes = tree.payload(false);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        let mut key = KeyBuffer::new();
        let _ = encode_value(&column(KeyKind::Jsonb), KeyValue::Bytes(&bytes), &mut key);
        key.clear();
        let _ = encode_end(&column(KeyKind::Jsonb), KeyValue::Bytes(&bytes), &mut key);
    }
}

fn check_trees(one: &Json, other: &Json, forms: [bool; 2]) -> Result<(), TestCaseError> {
    let (a, b) = (one.payload(forms[0]), other.payload(forms[1]));
    let is_long = |bytes: &[u8]| {
        let mut key = KeyBuffer::new();
        encode_value(&column(KeyKind::Jsonb), KeyValue::Bytes(bytes), &mut key).is_err()
    };
    if is_long(&a) || is_long(&b) {
        return Ok(());
    }
    let order = one.compare(other);
    check(
        KeyKind::Jsonb,
        KeyValue::Bytes(&a),
        KeyValue::Bytes(&b),
        order,
    )
}

/// The deepest tree that has a key, and deeper ones.
#[test]
fn depth_is_bounded_by_the_longest_key() {
    for (depth, fits) in [
        (KEY_BYTES_MAX / 7, true),
        (KEY_BYTES_MAX / 4, false),
        (20_000, false),
    ] {
        let mut bytes = Vec::new();
        for level in 0..depth {
            let rest = 8 * (depth - level - 1) as u32 + 4;
            bytes.extend_from_slice(&0x4000_0001_u32.to_le_bytes());
            bytes.extend_from_slice(&(0xD000_0000 | rest).to_le_bytes());
        }
        bytes.extend_from_slice(&0x4000_0000_u32.to_le_bytes());
        let mut key = KeyBuffer::new();
        let result = encode_value(&column(KeyKind::Jsonb), KeyValue::Bytes(&bytes), &mut key);
        assert_eq!(result.is_ok(), fits, "{depth}");
    }
}

#[test]
fn an_end_longer_than_any_key_lies_where_its_tree_does() {
    let mut trees = Vec::new();
    for length in (KEY_BYTES_MAX - 15..KEY_BYTES_MAX + 3).chain([2 * KEY_BYTES_MAX]) {
        for last in ["", "\t", "b", "b!"] {
            let text = "a".repeat(length) + last;
            trees.push(Json::String(text.clone()));
            trees.push(Json::Array(vec![Json::String(text.clone()), Json::Null]));
            trees.push(Json::object(vec![(text, Json::Bool(true))]));
        }
    }
    for count in (KEY_BYTES_MAX - 9..KEY_BYTES_MAX + 2).chain([2 * KEY_BYTES_MAX]) {
        trees.push(Json::Array(vec![Json::Null; count]));
    }
    let payloads: Vec<_> = trees.iter().map(|tree| tree.payload(false)).collect();
    check_ends(KeyKind::Jsonb, &payloads, |a, b| {
        trees[a].compare(&trees[b])
    });
}
