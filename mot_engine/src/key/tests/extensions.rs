//! Types of extensions against models of them, laid out and compared as those do.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::order::check;
use super::*;
use crate::errors::EngineError;

type Pair = (Vec<u8>, Option<Vec<u8>>);

fn hstore(pairs: &[Pair]) -> Vec<u8> {
    let mut out = (pairs.len() as u32 | 1 << 31).to_le_bytes().to_vec();
    let mut texts = Vec::new();
    for (at, (name, value)) in pairs.iter().enumerate() {
        texts.extend_from_slice(name);
        let first = if at == 0 { 1 << 31 } else { 0 };
        out.extend_from_slice(&(texts.len() as u32 | first).to_le_bytes());
        texts.extend(value.iter().flatten());
        let null = if value.is_none() { 1 << 30 } else { 0 };
        out.extend_from_slice(&(texts.len() as u32 | null).to_le_bytes());
    }
    [out, texts].concat()
}

/// hstore_cmp.
fn compare_hstores(one: &[Pair], other: &[Pair]) -> Ordering {
    let texts = |pairs: &[Pair]| -> Vec<u8> {
        let parts = pairs
            .iter()
            .map(|(name, value)| [&name[..], value.as_deref().unwrap_or_default()].concat());
        parts.collect::<Vec<_>>().concat()
    };
    let cuts = |pairs: &[Pair]| -> Vec<(usize, bool)> {
        let mut end = 0;
        let mut cuts = Vec::new();
        for (name, value) in pairs {
            end += name.len();
            cuts.push((end, false));
            end += value.as_ref().map_or(0, Vec::len);
            cuts.push((end, value.is_none()));
        }
        cuts
    };
    match (one.is_empty(), other.is_empty()) {
        (false, false) => texts(one)
            .cmp(&texts(other))
            .then(one.len().cmp(&other.len()))
            .then(cuts(one).cmp(&cuts(other))),
        (one, other) => other.cmp(&one),
    }
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![Just(b'a'), any::<u8>()], 0..4)
}

fn hstores() -> impl Strategy<Value = Vec<Pair>> {
    prop::collection::vec((texts(), prop::option::of(texts())), 0..4)
}

fn ltree(levels: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![0; 4];
    out[..2].copy_from_slice(&(levels.len() as u16).to_le_bytes());
    for level in levels {
        out.extend_from_slice(&(level.len() as u16).to_le_bytes());
        out.extend_from_slice(level);
        // Aligned to 8 from the header of 4 bytes on.
        out.resize((out.len() + 4).next_multiple_of(8) - 4, 0);
    }
    out
}

fn levels() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let level = prop::collection::vec(prop_oneof![Just(b'a'), 1..=255_u8], 1..9);
    prop::collection::vec(level, 0..4)
}

fn cube(corners: &[(f64, f64)], is_point: bool) -> Vec<u8> {
    let header = corners.len() as u32 | if is_point { 1 << 31 } else { 0 };
    let mut out = header.to_le_bytes().to_vec();
    out.extend(corners.iter().flat_map(|(one, _)| one.to_le_bytes()));
    if !is_point {
        out.extend(corners.iter().flat_map(|(_, other)| other.to_le_bytes()));
    }
    out
}

/// cube_cmp_v0 of cubes with as many dimensions.
fn compare_cubes(one: &[(f64, f64)], other: &[(f64, f64)]) -> Ordering {
    let by = |end: fn(f64, f64) -> f64| {
        let pairs = one.iter().zip(other);
        let orders =
            pairs.map(|(one, other)| end(one.0, one.1).partial_cmp(&end(other.0, other.1)));
        orders
            .flatten()
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    };
    by(f64::min).then_with(|| by(f64::max))
}

fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-2..3_i8).prop_map(f64::from),
        1 => Just(-0.0),
        1 => any::<f64>().prop_filter("is a number", |value| !value.is_nan()),
    ]
}

/// An end of a seg: value, mark, digits.
type End = (f32, u8, i8);

fn seg((lower, upper): (End, End)) -> Vec<u8> {
    let mut out = [lower.0.to_le_bytes(), upper.0.to_le_bytes()].concat();
    out.extend_from_slice(&[lower.2 as u8, upper.2 as u8, lower.1, upper.1]);
    out
}

/// One half of seg_cmp; `far` is the mark that lies beyond all others at this end.
fn compare_ends(one: End, other: End, is_lower: bool) -> Ordering {
    let rank = |mark: u8| match (mark, is_lower) {
        (b'-', true) => -2,
        (b'<', _) => -1,
        (b'>', _) => 1,
        (b'-', false) => 2,
        _ => 0,
    };
    let blur = one
        .2
        .cmp(&other.2)
        .then((other.1 == b'~').cmp(&(one.1 == b'~')));
    let values = one.0.partial_cmp(&other.0).expect("numbers");
    let marks = rank(one.1).cmp(&rank(other.1));
    values
        .then(marks)
        .then(if is_lower { blur } else { blur.reverse() })
}

fn segs() -> impl Strategy<Value = (End, End)> {
    let value = prop_oneof![
        (-1..2_i8).prop_map(f32::from),
        Just(-0.0_f32),
        Just(f32::INFINITY)
    ];
    let mark = prop_oneof![Just(0), Just(b'<'), Just(b'>'), Just(b'~'), Just(b'-')];
    let end = || (value.clone(), mark.clone(), 0..4_i8);
    (end(), end())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn hstores_order(one in hstores(), mut other in hstores(), same in 0..4_usize) {
        let same = same.min(one.len()).min(other.len());
        other[..same].clone_from_slice(&one[..same]);
        let (a, b) = (hstore(&one), hstore(&other));
        check(KeyKind::Hstore, KeyValue::Bytes(&a), KeyValue::Bytes(&b), compare_hstores(&one, &other))?;
    }

    /// The same texts, cut at other places.
    #[test]
    fn alike_hstores_order(
        text in prop::collection::vec(b'a'..=b'b', 3),
        cuts in prop::array::uniform2(prop::collection::vec(0..4_usize, 3)),
        nulls in any::<[bool; 4]>(),
    ) {
        let pairs = |which: usize| -> Vec<Pair> {
            let mut cuts = cuts[which].clone();
            cuts.sort_unstable();
            let value = |of: &[u8], is_null: bool| (!(is_null && of.is_empty())).then(|| of.to_vec());
            vec![
                (text[..cuts[0]].to_vec(), value(&text[cuts[0]..cuts[1]], nulls[which])),
                (text[cuts[1]..cuts[2]].to_vec(), value(&text[cuts[2]..], nulls[2 + which])),
            ]
        };
        let (one, other) = (pairs(0), pairs(1));
        let (a, b) = (hstore(&one), hstore(&other));
        check(KeyKind::Hstore, KeyValue::Bytes(&a), KeyValue::Bytes(&b), compare_hstores(&one, &other))?;
    }

    #[test]
    fn ltrees_order(one in levels(), mut other in levels(), same in 0..4_usize) {
        let same = same.min(one.len()).min(other.len());
        other[..same].clone_from_slice(&one[..same]);
        let (a, b) = (ltree(&one), ltree(&other));
        check(KeyKind::Ltree, KeyValue::Bytes(&a), KeyValue::Bytes(&b), one.cmp(&other))?;
    }

    #[test]
    fn cubes_of_as_many_dimensions_order(
        corners in prop::collection::vec((numbers(), numbers(), numbers(), numbers()), 0..4),
    ) {
        let one: Vec<_> = corners.iter().map(|corner| (corner.0, corner.1)).collect();
        let other: Vec<_> = corners.iter().map(|corner| (corner.2, corner.3)).collect();
        let (a, b) = (cube(&one, false), cube(&other, false));
        check(KeyKind::Cube, KeyValue::Bytes(&a), KeyValue::Bytes(&b), compare_cubes(&one, &other))?;
    }

    /// Neither which corner comes first counts, nor whether there is a second one that is the same.
    #[test]
    fn equal_cubes_are_one_key(
        corners in prop::collection::vec((numbers(), numbers()), 0..4),
        turned in any::<bool>(),
    ) {
        let turn = |(one, other): &(_, _)| if turned { (*other, *one) } else { (*one, *other) };
        let other: Vec<_> = corners.iter().map(turn).collect();
        let key = |bytes: &[u8]| encoded(&column(KeyKind::Cube), KeyValue::Bytes(bytes));
        prop_assert_eq!(key(&cube(&corners, false)), key(&cube(&other, false)));
        let points: Vec<_> = corners.iter().map(|(one, _)| (*one, *one)).collect();
        prop_assert_eq!(key(&cube(&points, true)), key(&cube(&points, false)));
        let wider = [&points[..], &[(0.0, 0.0)]].concat();
        prop_assert_ne!(key(&cube(&points, true)), key(&cube(&wider, true)));
    }

    #[test]
    fn segs_order(one in segs(), other in segs()) {
        let (a, b) = (seg(one), seg(other));
        let order = compare_ends(one.0, other.0, true).then(compare_ends(one.1, other.1, false));
        check(KeyKind::Seg, KeyValue::Bytes(&a), KeyValue::Bytes(&b), order)?;
    }

    /// A cut or changed image gives a key or an error.
    #[test]
    fn damaged_images_are_keys_or_refused(
        pairs in hstores(), levels in levels(), corner in (numbers(), numbers()), ends in segs(),
        at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let images = [
            (KeyKind::Hstore, hstore(&pairs)),
            (KeyKind::Ltree, ltree(&levels)),
            (KeyKind::Cube, cube(&[corner], false)),
            (KeyKind::Seg, seg(ends)),
        ];
        for (kind, bytes) in images {
            encode_damaged(kind, bytes, (at, byte, cut));
        }
    }
}

#[test]
fn what_is_not_a_number_has_no_key() {
    let point = cube(&[(1.0, 1.0), (f64::NAN, 0.0)], false);
    let broken = seg(((f32::NAN, 0, 1), (1.0, 0, 1)));
    for (kind, bytes) in [(KeyKind::Cube, point), (KeyKind::Seg, broken)] {
        let mut key = KeyBuffer::new();
        let refused = encode_value(&column(kind), KeyValue::Bytes(&bytes), &mut key);
        assert!(matches!(refused, Err(EngineError::NoOrder { .. })));
    }
}

#[test]
fn an_hstore_of_an_old_form_is_refused() {
    let mut bytes = hstore(&[(b"a".to_vec(), None)]);
    bytes[3] = 0;
    let mut key = KeyBuffer::new();
    let refused = encode_value(&column(KeyKind::Hstore), KeyValue::Bytes(&bytes), &mut key);
    assert!(matches!(refused, Err(EngineError::Corrupt { .. })));
}
