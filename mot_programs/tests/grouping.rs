//! GROUP BY against a map, within a bound of memory, and aggregates of a call over stored rows.
mod common;
#[path = "common/wide.rs"]
mod wide;

use common::{Type, Value, row, tuple};
use mot_programs::aggregate::{
    Accumulator, Argument, Call, Function, Groups as Grouped, Input, KeyValues, Outcome, Step,
    bytes_of_group, put_together,
};
use mot_programs::filter::{
    Comparison, Condition, Group, Groups, Layout, NoParameters, Number, ROWS, Row, WordKind,
};
use proptest::prelude::*;
use std::collections::HashMap;
use wide::{Ledger, Model};

/// Passes over the rows at most.
const PASSES_MAX: u32 = 8;

fn keyed(numbers: [i64; 2], null: u8) -> KeyValues {
    KeyValues { numbers, null }
}

fn sum<'a>(ledger: &'a Ledger) -> Accumulator<Model<'a>> {
    Accumulator::new(Function::Sum, Input::Number(WordKind::Int4), Model(ledger))
}

/// Sums by key as the node computes them: pass after pass until all groups are given. Checks that
/// the first pass, at least, keeps to the limit, and that each group is given once.
fn grouped(rows: &[(KeyValues, i64)], limit: usize) -> (HashMap<([i64; 2], u8), i64>, u32) {
    let ledger = Ledger::default();
    let per_group = bytes_of_group::<Model<'_>>(1);
    let (mut groups, mut found) = (Grouped::new(1, Model(&ledger)), HashMap::new());
    groups.begin(limit);
    loop {
        for group in rows.chunks(ROWS) {
            groups.make_room().expect("memory");
            for (key, value) in group {
                if let Some(at) = groups.find(*key, std::iter::once(sum(&ledger))) {
                    groups.accumulator(at, 0).add_number(*value);
                }
            }
        }
        let mut count = 0;
        while let Some((key, at)) = groups.next() {
            count += 1;
            let Outcome::Integer(sum) = groups.accumulator(at, 0).result() else {
                panic!("a group has a row");
            };
            let before = found.insert((key.numbers, key.null), sum);
            assert!(before.is_none(), "{key:?} is given twice");
        }
        if groups.pass == 1 {
            // A range of one hash cannot be cut.
            let is_alike = |((numbers, null), _): &(&([i64; 2], u8), _)| {
                *null == 0 && numbers[1] == mixed(numbers[0] as u64) as i64
            };
            let alike = found.iter().filter(is_alike).count();
            let most = limit.max((2 * ROWS + alike) * per_group);
            assert!(count * per_group <= most, "{count} groups in {limit} bytes");
        }
        assert!(groups.pass <= PASSES_MAX);
        if !groups.begin_next(limit) {
            return (found, groups.pass);
        }
    }
}

fn naive(rows: &[(KeyValues, i64)]) -> HashMap<([i64; 2], u8), i64> {
    let mut sums = HashMap::new();
    for (key, value) in rows {
        *sums.entry((key.numbers, key.null)).or_insert(0) += value;
    }
    sums
}

/// The last step of MurmurHash3, as the groups' hash has it.
fn mixed(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    bits ^ bits >> 33
}

fn key() -> impl Strategy<Value = KeyValues> {
    prop_oneof![
        (-3..3_i64, -3..3_i64).prop_map(|(left, right)| keyed([left, right], 0)),
        (-3..3_i64).prop_map(|left| keyed([left, 0], 2)),
        (-3..3_i64).prop_map(|right| keyed([0, right], 1)),
        Just(keyed([0, 0], 3)),
        (any::<i64>(), any::<i64>()).prop_map(|(left, right)| keyed([left, right], 0)),
        // All of one hash.
        (0..200_i64).prop_map(|left| keyed([left, mixed(left as u64) as i64], 0)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn each_key_has_the_sum_of_its_rows(
        rows in prop::collection::vec((key(), -5..5_i64), 0..1500),
        limit in prop_oneof![Just(0_usize), 1000..40_000_usize, Just(usize::MAX)],
    ) {
        let (found, passes) = grouped(&rows, limit);
        prop_assert_eq!(found, naive(&rows));
        if limit == usize::MAX {
            prop_assert_eq!(passes, 1);
        }
    }
}

#[test]
fn groups_of_one_hash_are_told_apart_however_little_memory_there_is() {
    let colliding = |left: i64| keyed([left, mixed(left as u64) as i64], 0);
    let rows: Vec<_> = (0..3000).map(|at| (colliding(at % 700), at)).collect();
    for limit in [0, 10_000, usize::MAX] {
        assert_eq!(grouped(&rows, limit).0, naive(&rows));
    }
}

#[test]
fn what_does_not_fit_takes_several_passes_and_no_more_than_eight() {
    let rows: Vec<_> = (0..20_000).map(|at| (keyed([at, at / 3], 0), at)).collect();
    let all = rows.len() * bytes_of_group::<Model<'_>>(1);
    for (limit, least) in [(all / 3, 3), (all / 100, 8)] {
        let (found, passes) = grouped(&rows, limit);
        assert_eq!(found, naive(&rows));
        assert!((least..=PASSES_MAX).contains(&passes), "{passes} passes");
    }
}

/// A key column, one to filter by, one to add up.
const TYPES: [Type; 3] = [
    Type::Number(WordKind::Int2),
    Type::Number(WordKind::Bool),
    Type::Number(WordKind::Int4),
];

fn call(function: Function, input: Input, argument: Argument) -> Call {
    let is_wanted = Condition::Compare(
        Comparison::Equal,
        Number::Column(1, WordKind::Bool),
        Number::Constant(Some(1)),
    );
    Call {
        function,
        input,
        argument,
        filter: Some(is_wanted),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn calls_with_a_filter_see_the_values_of_its_rows(
        rows in prop::collection::vec(row(&TYPES, 2), 1..=ROWS),
    ) {
        let tuples: Vec<_> = rows.iter().map(|row| tuple(&TYPES, row)).collect();
        let layout = Layout::new(&TYPES.map(Type::layout), |_| None);
        let mut group = Group::<()>::new();
        for tuple in &tuples {
            // SAFETY: a whole tuple, which lives as long as the group.
            group.add(unsafe { Row::of_tuple(tuple.as_ptr()) }, ());
        }
        let groups = Groups {
            rows: group.rows(),
            layout: &layout,
            parameters: &NoParameters,
        };
        let ledger = Ledger::default();
        let mut steps = [
            call(Function::CountRows, Input::Anything, Argument::Nothing),
            call(Function::Count, Input::Anything, Argument::Presence(2)),
            call(
                Function::Sum,
                Input::Number(WordKind::Int4),
                Argument::Number(Number::Column(2, WordKind::Int4)),
            ),
        ]
        .map(Step::new);
        let mut results = steps.each_ref().map(|step| step.accumulator(Model(&ledger)));
        let mut key = Box::new([0; ROWS]);
        let mut keys = [KeyValues::default(); ROWS];
        // SAFETY: rows of the layout's table.
        unsafe {
            for (step, result) in steps.iter_mut().zip(&mut results) {
                prop_assert!(step.evaluate(&groups, group.all()));
                step.add_group(result);
            }
            let column = Number::Column(0, WordKind::Int2);
            let lacking = groups.numbers(&column, group.all(), &mut key);
            put_together(group.all(), &[(key, lacking.null)], &mut keys);
        }
        // By group: the same steps.
        let (mut by_key, mut places) = (Grouped::new(3, Model(&ledger)), [0; ROWS]);
        by_key.begin(usize::MAX);
        by_key.make_room().expect("memory");
        for (at, place) in places.iter_mut().enumerate().take(rows.len()) {
            let new = steps.iter().map(|step| step.accumulator(Model(&ledger)));
            *place = by_key.find(keys[at], new).expect("one pass takes all");
        }
        for (number, step) in steps.iter().enumerate() {
            step.add_each(group.all(), &places, &mut by_key, number);
        }

        let wanted = |row: &&Vec<Value>| row[1] == Value::Number(1);
        prop_assert_eq!(results.each_ref().map(|it| it.result()), expected(rows.iter().filter(wanted)));
        let mut given = 0;
        while let Some((values, at)) = by_key.next() {
            given += 1;
            let value = match values.null {
                0 => Value::Number(values.numbers[0]),
                _ => Value::Null,
            };
            let of_key = rows.iter().filter(|row| row[0] == value).filter(wanted);
            let found: Vec<_> = by_key.accumulators_of(at).iter().map(|it| it.result()).collect();
            prop_assert_eq!(found, expected(of_key));
        }
        let mut all: Vec<_> = rows.iter().map(|row| format!("{:?}", row[0])).collect();
        all.sort();
        all.dedup();
        prop_assert_eq!(given, all.len());
    }
}

/// Rows, values and their sum.
fn expected<'a>(rows: impl Iterator<Item = &'a Vec<Value>>) -> [Outcome<wide::Big>; 3] {
    let (mut count, mut values, mut sum) = (0, 0, 0);
    for row in rows {
        count += 1;
        if let Value::Number(value) = row[2] {
            values += 1;
            sum += value;
        }
    }
    let sum = match values {
        0 => Outcome::Null,
        _ => Outcome::Integer(sum),
    };
    [Outcome::Integer(count), Outcome::Integer(values), sum]
}
