//! Differences are undone to what they were made from, whatever the bodies.
use proptest::prelude::*;

use super::super::varint::put;
use super::*;

type Encode = fn(&[u8], &[u8], &mut Vec<u8>) -> Option<usize>;

fn check(base: &[u8], new: &[u8]) -> Option<usize> {
    let bytes = check_with(encode, base, new);
    let bytes_at_most = check_with(encode_update, base, new);
    assert!(bytes_at_most.unwrap_or(new.len()) <= bytes.unwrap_or(new.len()));
    bytes
}

fn check_with(encode: Encode, base: &[u8], new: &[u8]) -> Option<usize> {
    let mut delta = vec![0xEE];
    let edits = encode(base, new, &mut delta);
    let Some(edits) = edits else {
        assert_eq!(delta, [0xEE]);
        return None;
    };
    assert!(edits <= EDITS_MAX);
    let mut cursor = Cursor::new(&delta[1..]);
    assert_eq!(skip(&mut cursor, edits).expect("skips"), &delta[1..]);
    let mut out = Vec::new();
    apply(base, &delta[1..], edits, &mut out).expect("applies");
    assert_eq!(out, new);
    Some(delta.len() - 1)
}

#[test]
fn a_changed_counter_costs_a_few_bytes() {
    let base: Vec<u8> = (0..200).collect();
    let mut new = base.clone();
    new[100] ^= 1;
    assert_eq!(check(&base, &new), Some(3));
    new[150] ^= 1;
    assert_eq!(check(&base, &new), Some(6));
    assert_eq!(check(&base, &base), Some(0));
}

#[test]
fn a_changed_length_in_the_middle_keeps_both_sides() {
    let base: Vec<u8> = (0..250).collect();
    let mut new = base.clone();
    new[10] ^= 1;
    new[240] ^= 1;
    new.splice(120..122, [1, 2, 3, 4]);
    let bytes = check(&base, &new).expect("is shorter");
    assert!(bytes <= 20, "{bytes} bytes");
    let bytes = check(&new, &base).expect("is shorter");
    assert!(bytes <= 20, "{bytes} bytes");
}

#[test]
fn unlike_bodies_are_not_worth_a_delta() {
    assert_eq!(check(&[1; 50], &[2; 50]), None);
    assert_eq!(check(&[], &[2; 50]), None);
    assert_eq!(check(&[1; 50], &[]), None);
}

#[test]
fn many_scattered_changes_stay_within_the_limit() {
    let base = vec![0_u8; 4096];
    let mut new = base.clone();
    for index in (0..4096).step_by(64) {
        new[index] = 1;
    }
    assert!(check(&base, &new).is_some());
    new.insert(2048, 5);
    new.insert(2048, 6);
    check(&base, &new);
    check(&new, &base);
}

/// What `best_cut` is, byte by byte.
fn best_cut_by_bytes(old: &[u8], new: &[u8], shared: usize) -> usize {
    let (old_tail, new_tail) = (&old[old.len() - shared..], &new[new.len() - shared..]);
    let differing = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(x, y)| x != y).count();
    (0..=shared)
        .min_by_key(|cut| {
            differing(&old[..*cut], &new[..*cut]) + differing(&old_tail[*cut..], &new_tail[*cut..])
        })
        .expect("there is a cut")
}

/// What `encode` makes of equally long bodies, byte by byte: where the edits are, and the bytes, if
/// they are fewer than the body's.
fn encode_by_bytes(base: &[u8], new: &[u8]) -> (usize, Option<Vec<u8>>) {
    let differing: Vec<usize> = (0..new.len()).filter(|at| base[*at] != new[*at]).collect();
    let mut edits: Vec<std::ops::Range<usize>> = Vec::new();
    for at in differing {
        let is_last = edits.len() == EDITS_MAX;
        match edits.last_mut() {
            Some(edit) if is_last || at - edit.end <= GAP_BYTES => edit.end = at + 1,
            _ => edits.push(at..at + 1),
        }
    }
    let mut bytes = Vec::new();
    let mut position = 0;
    for edit in &edits {
        put(&mut bytes, (edit.start - position) as u64);
        put(&mut bytes, 2 * edit.len() as u64);
        bytes.extend_from_slice(&new[edit.clone()]);
        position = edit.end;
    }
    let is_shorter = edits.is_empty() || bytes.len() < new.len();
    (edits.len(), is_shorter.then_some(bytes))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// By words and blocks as byte by byte, at every place.
    #[test]
    fn comparing_many_bytes_at_once_finds_what_comparing_each_does(
        pairs in prop::collection::vec((any::<u8>(), prop_oneof![2 => Just(0_u8), 3 => any::<u8>()]), 1..200),
        rare in any::<bool>(),
    ) {
        let old: Vec<u8> = pairs.iter().map(|(byte, _)| *byte).collect();
        let is_equal = |at: usize| if rare { at % 23 > 1 } else { false };
        let new: Vec<u8> = pairs
            .iter()
            .enumerate()
            .map(|(at, (byte, flip))| if is_equal(at) { *byte } else { byte ^ flip })
            .collect();
        for start in 0..old.len() {
            let (a, b) = (&old[start..], &new[start..]);
            let prefix = a.iter().zip(b).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(common_prefix(a, b), prefix);
            let (a, b) = (&old[..=start], &new[..=start]);
            let suffix = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(common_suffix(a, b), suffix);
            let mut bytes = vec![0xEE];
            let edits = encode(&old[start..], &new[start..], &mut bytes);
            let (wanted, wanted_bytes) = encode_by_bytes(&old[start..], &new[start..]);
            prop_assert_eq!(edits, wanted_bytes.is_some().then_some(wanted));
            prop_assert_eq!(&bytes[1..], wanted_bytes.unwrap_or_default());
            let (longer, shorter) = (&old[..], &new[start..]);
            for (a, b) in [(longer, shorter), (shorter, longer)] {
                let shared = shorter.len();
                prop_assert_eq!(best_cut(a, b, shared), best_cut_by_bytes(a, b, shared));
            }
        }
    }

    #[test]
    fn edits_give_back_the_new_body(
        base in prop::collection::vec(0..3_u8, 0..300),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..9_usize, 0..40_usize, any::<u8>()), 0..9),
    ) {
        let mut new = base.clone();
        for (at, drop, add, byte) in edits {
            let at = at.index(new.len() + 1);
            let end = (at + drop).min(new.len());
            new.splice(at..end, std::iter::repeat_n(byte, if add < 20 { drop } else { add - 20 }));
        }
        check(&base, &new);
    }

    /// Around the longest body that the second look takes, parts go, come back, come twice, and
    /// change places.
    #[test]
    fn parts_that_moved_give_back_the_new_body(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..260), 1..14),
        order in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize), 0..14),
        fill in (0..40_usize, 0..40_usize),
    ) {
        let mut base = parts.concat();
        base.extend(std::iter::repeat_n(0, fill.0));
        let mut new = Vec::new();
        for (part, change) in order {
            let part = part.get(&parts);
            new.extend_from_slice(part);
            new.extend(std::iter::repeat_n(change as u8, change));
        }
        new.extend(std::iter::repeat_n(0, fill.1));
        check(&base, &new);
        check(&new, &base);
    }

    #[test]
    fn arbitrary_deltas_never_panic(
        base in prop::collection::vec(any::<u8>(), 0..50),
        delta in prop::collection::vec(prop_oneof![0..20_u8, any::<u8>()], 0..50),
        edits in 0..32_usize,
    ) {
        let mut out = Vec::new();
        let skipped = skip(&mut Cursor::new(&delta), edits);
        if apply(&base, &delta, edits, &mut out).is_ok() {
            prop_assert_eq!(skipped.expect("a delta that applies can be skipped"), &delta[..]);
        }
    }
}
