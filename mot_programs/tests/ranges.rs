//! Ranges of keys against comparisons of the values.
mod common;

use common::number;
use mot_engine::KeyRange;
use mot_engine::key::{KEY_BYTES_MAX, KeyBuffer, KeyColumn, KeyKind, KeyValue, encode_value};
use mot_programs::ends::{Argument, End, Ends, Limit};
use mot_programs::filter::WordKind;
use proptest::prelude::*;

/// What is compared with.
#[derive(Clone, Debug)]
enum Against {
    Value(i64),
    /// Between this integer and the one before.
    JustBelow(i64),
    Below,
    Above,
    Null,
}

impl Against {
    fn argument(&self) -> Argument<'static> {
        let fixed = |value: i64| KeyValue::Fixed(value as u64);
        match *self {
            Against::Value(value) => Argument::Value(fixed(value)),
            Against::JustBelow(value) => Argument::JustBelow(fixed(value)),
            Against::Below => Argument::Below,
            Against::Above => Argument::Above,
            Against::Null => Argument::Null,
        }
    }

    /// Twice its value; `None`: NULL.
    fn twice(&self) -> Option<i64> {
        match *self {
            Against::Value(value) => Some(2 * value),
            Against::JustBelow(value) => Some(2 * value - 1),
            Against::Below => Some(i64::MIN),
            Against::Above => Some(i64::MAX),
            Against::Null => None,
        }
    }
}

fn holds<T: Ord + ?Sized>(limit: Limit, left: &T, right: &T) -> bool {
    match limit {
        Limit::Less => left < right,
        Limit::LessEqual => left <= right,
        Limit::GreaterEqual => left >= right,
        Limit::Greater => left > right,
    }
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Less),
        Just(Limit::LessEqual),
        Just(Limit::GreaterEqual),
        Just(Limit::Greater),
    ]
}

fn against() -> impl Strategy<Value = Against> {
    prop_oneof![
        12 => number(WordKind::Int4).prop_map(Against::Value),
        4 => number(WordKind::Int4).prop_map(Against::JustBelow),
        1 => Just(Against::Below),
        1 => Just(Against::Above),
        1 => Just(Against::Null),
    ]
}

fn column(kind: KeyKind) -> impl Strategy<Value = KeyColumn> {
    any::<[bool; 3]>().prop_map(move |[descending, nulls_first, nullable]| KeyColumn {
        attnum: 1,
        kind,
        descending,
        nulls_first,
        nullable,
        collation: None,
    })
}

/// The key of a value behind a prefix; `None`: NULL.
fn key(column: &KeyColumn, prefix: &[u8], value: Option<KeyValue<'_>>) -> Vec<u8> {
    let mut buffer = KeyBuffer::new();
    encode_value(column, value.unwrap_or(KeyValue::Null), &mut buffer).expect("a short value");
    [prefix, buffer.as_slice()].concat()
}

/// Keys of other prefixes, around this one.
fn others(prefix: &[u8]) -> Vec<Vec<u8>> {
    let mut others = vec![];
    if let Some((last, rest)) = prefix.split_last() {
        others.extend(last.checked_sub(1).map(|less| [rest, &[less]].concat()));
        others.extend(last.checked_add(1).map(|more| [rest, &[more]].concat()));
    }
    others
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn integers_are_in_the_range_that_pass_the_comparisons(
        column in column(KeyKind::Int4),
        mut prefix in prop::collection::vec(prop_oneof![Just(0_u8), Just(7), Just(255)], 0..3),
        conditions in prop::collection::vec((limit(), against()), 1..5),
        values in prop::collection::vec(prop::option::weighted(0.9, number(WordKind::Int4)), 20),
    ) {
        let (mut ends, mut scratch) = (Ends::default(), KeyBuffer::new());
        let mut is_possible = true;
        for (limit, against) in &conditions {
            is_possible &= ends
                .add(&column, *limit, against.argument(), &mut scratch)
                .expect("short values");
        }
        let (mut range, before) = (KeyRange::new(), prefix.clone());
        ends.set_range(&mut prefix, &mut range).expect("memory");
        prop_assert_eq!(&prefix, &before);
        for value in values {
            if value.is_none() && !column.nullable {
                continue;
            }
            let passes = |(limit, against): &(Limit, Against)| {
                let (Some(value), Some(against)) = (value, against.twice()) else {
                    return false;
                };
                holds(*limit, &(2 * value), &against)
            };
            let fixed = value.map(|value| KeyValue::Fixed(value as u64));
            let is_in = is_possible && range.contains(&key(&column, &prefix, fixed));
            prop_assert_eq!(is_in, conditions.iter().all(passes), "{:?}", value);
            for other in others(&prefix) {
                prop_assert!(!range.contains(&key(&column, &other, fixed)), "another prefix");
            }
        }
    }

    #[test]
    fn rows_are_in_the_range_that_pass_comparisons_of_rows_and_of_their_start(
        column in column(KeyKind::Int4),
        conditions in prop::collection::vec(
            (limit(), -2..3_i64, prop::option::of(-2..3_i64)),
            1..5,
        ),
    ) {
        let column = KeyColumn { nullable: false, ..column };
        let fixed = |value: i64| Some(KeyValue::Fixed(value as u64));
        let both = |left, right| key(&column, &key(&column, &[], fixed(left)), fixed(right));
        let (mut ends, mut scratch) = (Ends::default(), KeyBuffer::new());
        for (limit, left, right) in &conditions {
            match right {
                None => {
                    let argument = Against::Value(*left).argument();
                    prop_assert!(ends.add(&column, *limit, argument, &mut scratch).expect("short"));
                }
                Some(right) => {
                    let (key, is_inclusive) = (both(*left, *right), limit.is_inclusive());
                    ends.add_end(&column, *limit, End { key, is_inclusive });
                }
            }
        }
        let mut range = KeyRange::new();
        ends.set_range(&mut vec![], &mut range).expect("memory");
        for (left, right) in (-3..4).flat_map(|left| (-3..4).map(move |right| (left, right))) {
            let passes = |(limit, first, second): &(Limit, i64, Option<i64>)| match second {
                None => holds(*limit, &left, first),
                Some(second) => holds(*limit, &(left, right), &(*first, *second)),
            };
            let is_in = range.contains(&both(left, right));
            prop_assert_eq!(is_in, conditions.iter().all(passes), "{} {}", left, right);
        }
    }

    #[test]
    fn texts_are_in_the_range_that_pass_the_comparisons(
        column in column(KeyKind::Text),
        conditions in prop::collection::vec((limit(), "[ab]{0,3}"), 0..4),
        values in prop::collection::vec(prop::option::weighted(0.9, "[ab]{0,4}"), 20),
    ) {
        let (mut ends, mut scratch) = (Ends::default(), KeyBuffer::new());
        for (limit, text) in &conditions {
            let argument = Argument::Value(KeyValue::Bytes(text.as_bytes()));
            let is_possible = ends.add(&column, *limit, argument, &mut scratch).expect("short");
            prop_assert!(is_possible);
        }
        ends.exclude_null(&column, &mut scratch).expect("short");
        let mut range = KeyRange::new();
        ends.set_range(&mut vec![], &mut range).expect("memory");
        for value in values {
            if value.is_none() && !column.nullable {
                continue;
            }
            let passes = value.as_deref().is_some_and(|value| {
                conditions.iter().all(|(limit, text)| holds(*limit, value, text))
            });
            let bytes = value.as_ref().map(|value| KeyValue::Bytes(value.as_bytes()));
            let is_in = range.contains(&key(&column, &[], bytes));
            prop_assert_eq!(is_in, passes, "{:?}", value);
        }
    }
}

#[test]
fn a_value_longer_than_any_key_is_an_end_all_the_same() {
    let column = KeyColumn {
        attnum: 1,
        kind: KeyKind::Text,
        descending: false,
        nulls_first: false,
        nullable: false,
        collation: None,
    };
    let long = vec![b'b'; KEY_BYTES_MAX + 10];
    for limit in [
        Limit::Less,
        Limit::LessEqual,
        Limit::GreaterEqual,
        Limit::Greater,
    ] {
        let (mut ends, mut scratch) = (Ends::default(), KeyBuffer::new());
        let argument = Argument::Value(KeyValue::Bytes(&long));
        ends.add(&column, limit, argument, &mut scratch)
            .expect("cut");
        let mut range = KeyRange::new();
        ends.set_range(&mut vec![], &mut range).expect("memory");
        for value in [&b"a"[..], b"b", b"bbb", b"bc"] {
            let is_in = range.contains(&key(&column, &[], Some(KeyValue::Bytes(value))));
            assert_eq!(is_in, holds(limit, value, &long[..]), "{limit:?} {value:?}");
        }
    }
}
