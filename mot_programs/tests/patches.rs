//! Patched rows against rows formed anew.
mod common;

use common::{Type, Value, row, tuple};
use mot_engine::key::BODY_OFFSET_BYTES;
use mot_programs::filter::WordKind;
use mot_programs::patch::Patch;
use proptest::prelude::*;

fn types() -> impl Strategy<Value = Vec<Type>> {
    let one = prop_oneof![
        Just(Type::Number(WordKind::Int2)),
        Just(Type::Number(WordKind::Int4)),
        Just(Type::Number(WordKind::Int8)),
        Just(Type::Number(WordKind::Bool)),
        Just(Type::Text),
    ];
    prop::collection::vec(one, 1..8)
}

/// Types of columns, a row, another one, which columns are assigned to, and how many columns the
/// old row has.
type Case = (Vec<Type>, Vec<Value>, Vec<Value>, Vec<bool>, usize);

fn case() -> impl Strategy<Value = Case> {
    types().prop_flat_map(|types| {
        let rows = || prop_oneof![4 => row(&types, 0), 1 => row(&types, 1)];
        let count = types.len();
        let length = prop_oneof![6 => Just(count), 1 => 0..=count];
        let assigned = prop::collection::vec(prop::bool::weighted(0.4), count);
        (Just(types.clone()), rows(), rows(), assigned, length)
    })
}

fn body(types: &[Type], values: &[Value]) -> Vec<u8> {
    tuple(types, values).split_off(BODY_OFFSET_BYTES)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn a_patched_row_is_the_row_formed_anew((types, old, given, assigned, length) in case()) {
        let layouts: Vec<_> = types.iter().map(|of| of.layout()).collect();
        let columns: Vec<usize> = (0..types.len()).filter(|at| assigned[*at]).collect();
        let numbers = columns.iter().map(|at| *at as i16 + 1);
        // A place is fixed before the first text, or right behind what precedes it.
        let first_text = types.iter().position(|of| *of == Type::Text);
        let has_places = columns.iter().all(|at| first_text.is_none_or(|text| *at < text));
        let patch = Patch::new(&layouts, numbers);
        prop_assert_eq!(patch.is_some(), has_places);
        let Some(mut patch) = patch else { return Ok(()) };

        let old = &old[..length];
        let words = columns.iter().map(|at| match &given[*at] {
            Value::Number(number) => Some(*number as u64),
            _ => None,
        });
        let is_made = patch.apply(&body(&types, old), words.clone());
        let has_null = old.contains(&Value::Null) || words.clone().any(|word| word.is_none());
        prop_assert_eq!(is_made, !has_null && length == types.len());
        if is_made {
            let mut new = old.to_vec();
            for at in columns {
                new[at] = given[at].clone();
            }
            prop_assert_eq!(patch.body(), body(&types, &new));
        }
    }

    #[test]
    fn no_bytes_make_it_fail(old in prop::collection::vec(any::<u8>(), 0..60), words: [u64; 3]) {
        let types = [WordKind::Int4, WordKind::Int8, WordKind::Bool].map(Type::Number);
        let layouts = types.map(Type::layout);
        let mut patch = Patch::new(&layouts, 1..=3).expect("fixed places");
        if patch.apply(&old, words.into_iter().map(Some)) {
            prop_assert_eq!(patch.body().len(), old.len());
        }
    }
}

#[test]
fn a_long_row_is_formed_anew() {
    let types = [Type::Number(WordKind::Int4), Type::Text];
    let layouts = types.map(Type::layout);
    let mut patch = Patch::new(&layouts, 1..=1).expect("a fixed place");
    for (length, is_made) in [(100, true), (5000, false)] {
        let old = [Value::Number(1), Value::Text(vec![b'x'; length], true)];
        assert_eq!(
            patch.apply(&body(&types, &old), [Some(2)].into_iter()),
            is_made
        );
    }
}
