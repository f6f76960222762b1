//! Labels lie where they are put, and stay short.
use crate::key::label::{LABEL_BYTES_MAX, Put, between, of_key, of_rank};
use crate::key::{KeyBuffer, KeyColumn, KeyKind, KeyValue, encode_value};
use proptest::prelude::*;

/// A label is put between two neighbours of a list, and comes between them.
fn insert(labels: &mut Vec<Vec<u8>>, at: usize, put: Put) {
    let below = at.checked_sub(1).map(|below| labels[below].clone());
    let above = labels.get(at).cloned();
    let label = between(below.as_deref(), above.as_deref(), put);
    assert!(below.is_none_or(|below| below < label));
    assert!(above.is_none_or(|above| label < above));
    assert!(!label.is_empty() && label.iter().all(|byte| (2..=253).contains(byte)));
    assert_ne!(label.last(), Some(&2), "there is room before every label");
    labels.insert(at, label);
}

proptest! {
    #[test]
    fn a_label_comes_between_its_neighbours(
        places in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8), 1..300)
    ) {
        let mut labels = Vec::new();
        for (place, put) in places {
            let at = place.index(labels.len() + 1);
            let put = [Put::Middle, Put::Ascending, Put::Descending][usize::from(put)];
            insert(&mut labels, at, put);
        }
    }

    #[test]
    fn a_column_of_a_key_gives_its_label_back(
        rank in 0..u64::MAX >> 31,
        descending in any::<bool>(),
        nullable in any::<bool>(),
        rest in prop::collection::vec(any::<u8>(), 0..10),
    ) {
        let column = KeyColumn {
            attnum: 0,
            kind: KeyKind::Label,
            descending,
            nulls_first: false,
            nullable,
            collation: None,
        };
        let label = of_rank(rank);
        let mut key = KeyBuffer::new();
        encode_value(&column, KeyValue::Bytes(&label), &mut key).unwrap();
        key.push(&rest).unwrap();
        prop_assert_eq!(of_key(&column, key.as_slice()), Some(label));
    }
}

/// A run before, behind or between labels that stay costs few bytes.
#[test]
fn runs_have_short_labels() {
    const RUN: usize = 200_000;
    for (below, above) in [(None, None), (Some(of_rank(5)), Some(of_rank(6)))] {
        for put in [Put::Ascending, Put::Descending] {
            let (mut low, mut high) = (below.clone(), above.clone());
            let mut longest = 0;
            for _ in 0..RUN {
                let label = between(low.as_deref(), high.as_deref(), put);
                longest = longest.max(label.len());
                match put {
                    Put::Descending => high = Some(label),
                    _ => low = Some(label),
                }
            }
            assert!(longest <= 12, "{longest}");
        }
    }
}

/// Halving one gap again and again adds a byte in eight times.
#[test]
fn halving_a_gap_adds_few_bytes() {
    let (low, mut high) = (of_rank(0), of_rank(1));
    for _ in 0..30_000 {
        high = between(Some(&low), Some(&high), Put::Middle);
    }
    assert!(high.len() <= LABEL_BYTES_MAX);
}

#[test]
fn ranks_are_in_order() {
    let labels: Vec<_> = (0..70_000).map(of_rank).collect();
    assert!(labels.is_sorted_by(|one, next| one < next));
}
