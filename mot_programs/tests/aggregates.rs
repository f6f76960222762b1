//! Accumulators against plain sums, and numerics against their decimal form.
mod common;
#[path = "common/wide.rs"]
mod wide;

use common::number;
use mot_programs::aggregate::{Accumulator, Fixed, Function, Input, Outcome, Wide, is_at_the_end};
use mot_programs::filter::{Numbers, ROWS, WordKind, members};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use wide::{Big, END, Ledger, Model};

/// Numbers below 10^20, as `Fixed` reads them.
const FITTING: i128 = 10_i128.pow(36);

/// What an aggregate of numbers gives.
fn naive(function: Function, kind: WordKind, values: &[i64]) -> Outcome<Big> {
    let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
    let exact = Model(&Ledger::default()).of_integer(sum);
    let count = values.len() as i64;
    match function {
        Function::CountRows | Function::Count => Outcome::Integer(count),
        _ if values.is_empty() => Outcome::Null,
        Function::Sum => Outcome::Integer(sum as i64),
        Function::SumExact => Outcome::Numeric(exact),
        Function::Average => Outcome::Quotient(exact, count),
        Function::Smallest | Function::All => {
            Outcome::Number(kind, *values.iter().min().expect("some"))
        }
        Function::Largest | Function::Any => {
            Outcome::Number(kind, *values.iter().max().expect("some"))
        }
    }
}

fn of_numbers() -> impl Strategy<Value = (Function, WordKind)> {
    use Function::*;
    let mut all = vec![
        (All, WordKind::Bool),
        (Any, WordKind::Bool),
        (SumExact, WordKind::Int8),
    ];
    for kind in [WordKind::Int2, WordKind::Int4, WordKind::Int8] {
        all.extend([Count, Average, Smallest, Largest].map(|function| (function, kind)));
        if kind != WordKind::Int8 {
            all.push((Sum, kind));
        }
    }
    proptest::sample::select(all)
}

/// Groups of numbers, and of which rows each has a value.
fn groups(kind: WordKind) -> impl Strategy<Value = Vec<(Vec<i64>, u64)>> {
    let rows = prop_oneof![any::<u64>(), Just(u64::MAX), Just(0)];
    let group = (prop::collection::vec(number(kind), ROWS), rows);
    prop::collection::vec(group, 0..4)
}

/// A numeric: below 10^20, or above whatever `Fixed` may hold.
fn numeric() -> impl Strategy<Value = Result<i128, Big>> {
    let big = prop_oneof![
        (1_i128 << 40)..END,
        (END / 2 - 2)..(END / 2 + 2),
        (END - 2)..END,
        Just(END / 2),
    ];
    let big = (
        big,
        prop_oneof![Just(0), Just(1_i128), 0..1_i128 << 100],
        any::<bool>(),
    );
    prop_oneof![
        2 => (1 - FITTING..FITTING).prop_map(Ok),
        1 => (-2..3_i128).prop_map(Ok),
        3 => big.prop_map(|(high, low, is_negative)| {
            let number = Big { high, low };
            Err(if is_negative { number.negated() } else { number })
        }),
    ]
}

fn big(number: &Result<i128, Big>) -> Big {
    number.map_or_else(|big| big, Big::of)
}

fn add(accumulator: &mut Accumulator<Model<'_>>, number: &Result<i128, Big>) {
    let fixed = number.ok().map(|value| Fixed { value, scale: 0 });
    accumulator.add_numeric(big(number), fixed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn numbers_give_the_plain_result_by_the_group_and_one_by_one(
        (function, kind, groups) in of_numbers()
            .prop_flat_map(|(function, kind)| (Just(function), Just(kind), groups(kind)))
    ) {
        let ledger = Ledger::default();
        let new = || Accumulator::new(function, Input::Number(kind), Model(&ledger));
        let (mut together, mut alone) = (new(), new());
        let mut values = vec![];
        for (numbers, rows) in &groups {
            let numbers: &Numbers = numbers[..].try_into().expect("a group");
            together.add_numbers(*rows, numbers);
            for at in members(*rows) {
                alone.add_number(numbers[at]);
                values.push(numbers[at]);
            }
        }
        let expected = naive(function, kind, &values);
        prop_assert_eq!(together.result(), expected);
        prop_assert_eq!(alone.result(), expected);
        alone.clear();
        prop_assert_eq!(alone.result(), naive(function, kind, &[]));
    }

    #[test]
    fn sums_of_numerics_are_exact_and_only_what_is_out_of_range_fails(
        numbers in prop::collection::vec(numeric(), 1..30),
    ) {
        let ledger = Ledger::default();
        let mut accumulator =
            Accumulator::new(Function::SumExact, Input::Numeric, Model(&ledger));
        let mut sum = Big::of(0);
        for number in &numbers {
            add(&mut accumulator, number);
            sum = sum.plus(big(number));
        }
        // In each order: no way there may leave the range.
        if sum.is_in_range() {
            prop_assert_eq!(accumulator.result(), Outcome::Numeric(sum));
        } else {
            let result = catch_unwind(AssertUnwindSafe(|| accumulator.result()));
            prop_assert!(result.is_err(), "{sum:?} is no numeric");
        }
        accumulator.clear();
        prop_assert_eq!(ledger.copies.get(), 0);
    }

    #[test]
    fn sums_that_the_fixed_point_cannot_hold_go_on_in_a_wider_one(
        values in prop::collection::vec(any::<i128>(), 1..40),
    ) {
        let ledger = Ledger::default();
        let mut accumulator =
            Accumulator::new(Function::SumExact, Input::Numeric, Model(&ledger));
        let mut sum = Big::of(0);
        for value in values {
            accumulator.add_one_fixed(Fixed { value, scale: 2 });
            sum = sum.plus(Big::of(value));
        }
        prop_assert_eq!(accumulator.result(), Outcome::Numeric(sum));
    }

    #[test]
    fn extremes_of_numerics_are_those_of_all(
        numbers in prop::collection::vec(numeric(), 1..20),
    ) {
        let all = numbers.iter().map(big);
        for (function, expected) in [
            (Function::Smallest, all.clone().min()),
            (Function::Largest, all.max()),
        ] {
            let ledger = Ledger::default();
            let mut accumulator = Accumulator::new(function, Input::Numeric, Model(&ledger));
            for number in &numbers {
                add(&mut accumulator, number);
            }
            let expected = Outcome::Numeric(expected.expect("some"));
            prop_assert_eq!(accumulator.result(), expected);
            accumulator.clear();
            prop_assert_eq!(ledger.copies.get(), 0);
        }
    }

    #[test]
    fn a_stored_numeric_is_read_and_shown_as_it_is(
        whole in prop_oneof![0..100_i128, 0..10_i128.pow(20)],
        fraction in "[0-9]{0,16}",
        is_negative: bool,
        is_long: bool,
    ) {
        let digits: i128 = format!("{fraction:0<16}").parse().expect("digits");
        let value = whole * 10_i128.pow(16) + digits;
        let value = if is_negative { -value } else { value };
        let scale = fraction.len() as u16;
        let read = Fixed::read(&stored(value, scale, is_long));
        prop_assert_eq!(read, Some(Fixed { value, scale }));
        let sign = if value < 0 { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        let text = format!("{sign}{whole}{point}{fraction}");
        prop_assert_eq!(Fixed { value, scale }.text(), text);
    }

    #[test]
    fn no_bytes_are_too_few_or_odd_for_a_numeric(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Some(read) = Fixed::read(&bytes) {
            prop_assert!(!is_at_the_end(&bytes), "{read:?}");
        }
    }
}

/// A numeric as PostgreSQL stores it behind the length: a header of one word or two, and digits of
/// base 10000 without zeros at both ends.
fn stored(value: i128, scale: u16, is_long: bool) -> Vec<u8> {
    let (mut digits, mut rest) = (vec![], value.unsigned_abs());
    while rest > 0 {
        digits.insert(0, (rest % 10_000) as u16);
        rest /= 10_000;
    }
    let weight = digits.len() as i32 - 1 - 4;
    while digits.last() == Some(&0) {
        digits.pop();
    }
    let (is_negative, weight) = match digits.is_empty() {
        true => (false, 0),
        false => (value < 0, weight),
    };
    let mut words = if is_long {
        vec![u16::from(is_negative) << 14 | scale, weight as i16 as u16]
    } else {
        let sign = u16::from(is_negative) << 13;
        vec![0x8000 | sign | scale << 7 | (weight as u16 & 0x7F)]
    };
    words.extend(digits);
    words.into_iter().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn numerics_that_do_not_fit_are_not_read() {
    let beyond = [0x8000_u16 | 5, 1];
    let too_small = [0x8000_u16 | (-5_i16 as u16 & 0x7F), 1];
    for words in [&beyond[..], &too_small[..], &[0xC000], &[0xD000]] {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(Fixed::read(&bytes), None);
    }
    assert_eq!(Fixed::read(&[]), None);
}

#[test]
fn only_the_highest_place_is_at_the_end() {
    let long = |weight: i16| [0_u16, weight as u16, 1].map(u16::to_le_bytes).concat();
    assert!(is_at_the_end(&long(i16::MAX)));
    assert!(!is_at_the_end(&long(i16::MAX - 1)));
}

#[test]
fn counts_count_rows() {
    let ledger = Ledger::default();
    let mut accumulator = Accumulator::new(Function::CountRows, Input::Anything, Model(&ledger));
    assert_eq!(accumulator.result(), Outcome::Integer(0));
    accumulator.add_rows(64);
    accumulator.add_rows(1);
    assert_eq!(accumulator.result(), Outcome::Integer(65));
}
