//! pgvector's types against a model: numbers one by one, then how many there are.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::order::check;
use super::*;
use crate::errors::EngineError;

fn header(dimensions: usize) -> Vec<u8> {
    [&(dimensions as u16).to_le_bytes()[..], &[0; 2]].concat()
}

fn vector(numbers: &[f32]) -> Vec<u8> {
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
    header(numbers.clone().count() / 4)
        .into_iter()
        .chain(numbers)
        .collect()
}

fn halfvec(halves: &[u16]) -> Vec<u8> {
    let numbers = halves.iter().flat_map(|half| half.to_le_bytes());
    header(halves.len()).into_iter().chain(numbers).collect()
}

fn sparsevec(numbers: &[f32]) -> Vec<u8> {
    let places = || {
        numbers
            .iter()
            .enumerate()
            .filter(|(_, number)| **number != 0.0)
    };
    let mut out: Vec<u8> = [numbers.len(), places().count(), 0]
        .iter()
        .flat_map(|number| (*number as u32).to_le_bytes())
        .collect();
    out.extend(places().flat_map(|(place, _)| (place as u32).to_le_bytes()));
    out.extend(places().flat_map(|(_, number)| number.to_le_bytes()));
    out
}

fn compare(one: &[f32], other: &[f32]) -> Ordering {
    one.partial_cmp(other).expect("numbers")
}

/// A number of half precision as another one.
fn widened(half: u16) -> f32 {
    let (exponent, fraction) = (i32::from(half >> 10 & 0x1F), f32::from(half & 0x3FF));
    let magnitude = match exponent {
        0 => fraction * 2_f32.powi(-24),
        31 => f32::INFINITY,
        _ => (1.0 + fraction / 1024.0) * 2_f32.powi(exponent - 15),
    };
    if half >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

fn numbers() -> impl Strategy<Value = Vec<f32>> {
    let number = prop_oneof![
        3 => Just(0.0_f32),
        1 => Just(-0.0_f32),
        3 => (-2..3_i8).prop_map(f32::from),
        1 => any::<f32>().prop_filter("is a number", |value| !value.is_nan()),
    ];
    prop::collection::vec(number, 0..6)
}

fn halves() -> impl Strategy<Value = Vec<u16>> {
    let half = any::<u16>().prop_filter("is a number", |half| half & 0x7FFF <= 0x7C00);
    prop::collection::vec(prop_oneof![Just(0), Just(0x8000), Just(0x3C00), half], 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn vectors_order(one in numbers(), mut other in numbers(), same in 0..6_usize) {
        let same = same.min(one.len()).min(other.len());
        other[..same].copy_from_slice(&one[..same]);
        let order = compare(&one, &other);
        let (a, b) = (vector(&one), vector(&other));
        check(KeyKind::Vector, KeyValue::Bytes(&a), KeyValue::Bytes(&b), order)?;
        let (a, b) = (sparsevec(&one), sparsevec(&other));
        check(KeyKind::SparseVector, KeyValue::Bytes(&a), KeyValue::Bytes(&b), order)?;
    }

    #[test]
    fn halfvecs_order(one in halves(), mut other in halves(), same in 0..4_usize) {
        let same = same.min(one.len()).min(other.len());
        other[..same].copy_from_slice(&one[..same]);
        let numbers = |halves: &[u16]| -> Vec<f32> { halves.iter().copied().map(widened).collect() };
        let (a, b) = (halfvec(&one), halfvec(&other));
        let order = compare(&numbers(&one), &numbers(&other));
        check(KeyKind::HalfVector, KeyValue::Bytes(&a), KeyValue::Bytes(&b), order)?;
    }

    /// A cut or changed image gives a key or an error.
    #[test]
    fn damaged_images_are_keys_or_refused(
        numbers in numbers(),
        halves in halves(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let images = [
            (KeyKind::Vector, vector(&numbers)),
            (KeyKind::HalfVector, halfvec(&halves)),
            (KeyKind::SparseVector, sparsevec(&numbers)),
        ];
        for (kind, bytes) in images {
            encode_damaged(kind, bytes, (at, byte, cut));
        }
    }
}

#[test]
fn what_is_not_a_number_has_no_key() {
    let images = [
        (KeyKind::Vector, vector(&[1.0, f32::NAN])),
        (KeyKind::HalfVector, halfvec(&[0xFFFF])),
        (KeyKind::SparseVector, sparsevec(&[0.0, f32::NAN])),
    ];
    for (kind, bytes) in images {
        let mut key = KeyBuffer::new();
        let refused = encode_value(&column(kind), KeyValue::Bytes(&bytes), &mut key);
        assert!(matches!(refused, Err(EngineError::NoOrder { .. })));
    }
}
