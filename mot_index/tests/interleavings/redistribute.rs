//! Full leaves that redistribute to a neighbour, to the right and to the left, with and without
//! suffixes, beside look-ups, scans, writers and leaves that go.

use super::*;
use mot_index::redistributions;

/// On which side the neighbour is that has room, and what keys are: numbers, or such with a suffix.
#[derive(Clone, Copy, Debug)]
struct Case {
    right: bool,
    suffixes: bool,
}

const CASES: [Case; 4] = [
    Case {
        right: true,
        suffixes: false,
    },
    Case {
        right: false,
        suffixes: false,
    },
    Case {
        right: true,
        suffixes: true,
    },
    Case {
        right: false,
        suffixes: true,
    },
];

impl Case {
    fn key(self, at: u64) -> Vec<u8> {
        let mut key = number(at);
        if self.suffixes {
            key.extend_from_slice(b"and more");
        }
        key
    }

    fn keys(self, numbers: impl IntoIterator<Item = u64>) -> Vec<Vec<u8>> {
        numbers.into_iter().map(|at| self.key(at)).collect()
    }

    /// A leaf of the numbers 200, 210, … 340, full, and a leaf beside it with `beside` entries:
    /// 350, 360, … to the right or 50, 60, … to the left.
    fn two_leaves(self, beside: u64) -> (Arc<Shared>, Vec<Vec<u8>>) {
        let shared = Arc::new(Shared::default());
        if self.right {
            let keys = self.keys((0..15 + beside).map(|at| 200 + at * 10));
            keys.iter().for_each(|key| shared.insert(key));
            return (shared, keys);
        }
        let all = self.keys((0..30).map(|at| 50 + at * 10));
        all.iter().for_each(|key| shared.insert(key));
        let (beside, others) = all.split_at(beside as usize);
        let (going, full) = others.split_at(15 - beside.len());
        going.iter().for_each(|key| shared.remove(key));
        (shared, [beside, full].concat())
    }

    /// One that goes along.
    fn moved(self) -> Vec<u8> {
        self.key(if self.right { 340 } else { 200 })
    }

    /// One that stays in the full leaf, and one in the leaf beside it.
    fn staying(self) -> [Vec<u8>; 2] {
        [if self.right { 200 } else { 340 }, self.beside()].map(|at| self.key(at))
    }

    fn beside(self) -> u64 {
        if self.right { 350 } else { 50 }
    }

    /// One that makes the full leaf redistribute: in its middle, and in no run.
    fn comes(self) -> Vec<u8> {
        self.key(265)
    }
}

/// A leaf redistributes while one key that goes along is looked up.
fn redistribute_beside_a_get(case: Case) {
    let (shared, mut keys) = case.two_leaves(2);
    threads(vec![
        work(&shared, move |shared| shared.insert(&case.comes())),
        work(&shared, move |shared| shared.get_present(&case.moved())),
    ]);
    keys.push(case.comes());
    shared.finish(&keys);
}

/// A leaf redistributes while others are looked up as well, together too.
fn redistribute_beside_gets(case: Case) {
    let (shared, mut keys) = case.two_leaves(2);
    threads(vec![
        work(&shared, move |shared| shared.insert(&case.comes())),
        work(&shared, move |shared| {
            shared.get_present(&case.moved());
            case.staying()
                .iter()
                .for_each(|key| shared.get_present(key));
            shared.get_perhaps(&case.comes());
        }),
        work(&shared, move |shared| {
            let [stays, beside] = case.staying();
            shared.get_present_together(&[&case.moved(), &stays, &beside]);
        }),
    ]);
    keys.push(case.comes());
    shared.finish(&keys);
}

/// A leaf redistributes beside a scan.
fn redistribute_beside_a_scan(case: Case, direction: Direction) {
    let (shared, mut keys) = case.two_leaves(2);
    let for_scan = keys.clone();
    threads(vec![
        work(&shared, move |shared| shared.insert(&case.comes())),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    keys.push(case.comes());
    shared.finish(&keys);
}

/// A leaf redistributes to the one beside it, which is filled then and moves back, beside a scan
/// and a look-up.
fn redistribute_back_beside_a_scan(case: Case, direction: Direction) {
    let (shared, mut keys) = case.two_leaves(2);
    let for_scan = keys.clone();
    let more = (1..=8).map(|at| case.beside() + at);
    let coming = case.keys([265].into_iter().chain(more));
    keys.extend(coming.iter().cloned());
    threads(vec![
        work(&shared, move |shared| {
            coming.iter().for_each(|key| shared.insert(key));
        }),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
        work(&shared, move |shared| shared.get_present(&case.moved())),
    ]);
    shared.finish(&keys);
}

/// Other writers' keys go to the donor and the taker, by insert positions as well.
fn redistribute_beside_writers(case: Case) {
    let (shared, mut keys) = case.two_leaves(2);
    let coming = case.keys([
        if case.right { 335 } else { 205 },
        if case.right { 205 } else { 335 },
        case.beside() + 5,
    ]);
    keys.push(case.comes());
    keys.extend(coming.iter().cloned());
    threads(vec![
        work(&shared, move |shared| shared.insert(&case.comes())),
        work(&shared, move |shared| shared.insert_at_positions(&coming)),
        work(&shared, move |shared| {
            shared.remove(&case.moved());
            shared.insert(&case.moved());
        }),
    ]);
    shared.finish(&keys);
}

/// The leaf that is to take is emptied, and unlinked, meanwhile.
fn redistribute_beside_an_unlink(case: Case, direction: Direction) {
    let (shared, mut keys) = case.two_leaves(1);
    let going = case.key(case.beside());
    keys.retain(|key| *key != going);
    let for_scan = keys.clone();
    threads(vec![
        work(&shared, move |shared| shared.insert(&case.comes())),
        work(&shared, move |shared| shared.remove(&going)),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    keys.push(case.comes());
    shared.finish(&keys);
}

/// A leaf between donor and taker goes, while a scan stands on it.
fn redistribute_past_an_unlinked_leaf(direction: Direction) {
    let shared = Arc::new(Shared::default());
    // Leaves of 15, of which the middle one keeps one entry, and the one on the scan's side four.
    let keys: Vec<Vec<u8>> = (0..45).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    let forward = direction == Direction::Forward;
    let takers = if forward { 4..15 } else { 30..41 };
    for key in keys[takers.clone()].iter().chain(&keys[16..30]) {
        shared.remove(key);
    }
    let going = keys[15].clone();
    let new = number(if forward { 375 } else { 75 });
    let coming = new.clone();
    let kept: Vec<Vec<u8>> = (0..45)
        .filter(|at| !takers.contains(at) && !(15..30).contains(at))
        .map(|at| keys[at].clone())
        .collect();
    // The scan begins in the leaf that goes: nothing it does before matters.
    let edge = going.clone();
    let behind: Vec<Vec<u8>> = (kept.iter())
        .filter(|key| (**key > edge) == forward)
        .cloned()
        .collect();
    threads(vec![
        work(&shared, move |shared| shared.remove(&going)),
        work(&shared, move |shared| shared.insert(&coming)),
        work(&shared, move |shared| {
            let mut batch = Batch::with_capacity(32);
            shared.with(|tree| tree.scan_batch(Bound::Included(&edge), direction, &mut batch));
            let seen: Vec<Vec<u8>> = batch.iter().map(|(key, _)| key.to_vec()).collect();
            for key in &behind {
                assert!(seen.contains(key), "{key:?} was there all the time");
            }
        }),
    ]);
    shared.finish(&[kept, vec![new]].concat());
}

/// A scan of a short range, whose end a separator tells, while that separator moves.
fn redistribute_beside_a_range(case: Case) {
    let (shared, mut keys) = case.two_leaves(2);
    let wanted = case.keys([320, 330, 340]);
    threads(vec![
        work(&shared, move |shared| shared.insert(&case.comes())),
        work(&shared, move |shared| {
            for direction in [Direction::Forward, Direction::Backward] {
                let (from, until) = match direction {
                    Direction::Forward => (&wanted[0], case.key(345)),
                    Direction::Backward => (&wanted[2], case.key(315)),
                };
                let mut batch = Batch::with_capacity(6);
                shared.with(|tree| {
                    let from = Bound::Included(from);
                    tree.scan_batch_until(from, Some(&until), direction, &mut batch);
                });
                let mut seen: Vec<Vec<u8>> = batch.iter().map(|(key, _)| key.to_vec()).collect();
                seen.sort();
                seen.retain(|key| wanted.contains(key));
                assert_eq!(seen, wanted);
                assert!(batch.is_exhausted());
            }
        }),
    ]);
    keys.push(case.comes());
    shared.finish(&keys);
}

/// Runs a model and sees that leaves redistributed.
fn explore_redistribution(name: &str, runs: usize, body: impl Fn() + Send + Sync + 'static) {
    let before = redistributions();
    explore(name, runs, body);
    assert_ne!(redistributions(), before, "no leaf redistributed");
}

#[test]
fn leaves_redistribute_beside_look_ups() {
    for case in CASES {
        explore_redistribution("index, redistribution beside a get", 1_000, move || {
            redistribute_beside_a_get(case)
        });
        explore_redistribution("index, redistribution beside gets", 1_000, move || {
            redistribute_beside_gets(case)
        });
    }
}

#[test]
fn leaves_redistribute_beside_scans() {
    for case in CASES {
        for direction in [Direction::Forward, Direction::Backward] {
            explore_redistribution("index, redistribution beside a scan", 1_000, move || {
                redistribute_beside_a_scan(case, direction)
            });
            explore_redistribution("index, redistribution there and back", 500, move || {
                redistribute_back_beside_a_scan(case, direction)
            });
        }
        explore_redistribution("index, redistribution beside a range", 1_000, move || {
            redistribute_beside_a_range(case)
        });
    }
}

#[test]
fn leaves_redistribute_beside_writers() {
    for case in CASES {
        explore_redistribution("index, redistribution beside writers", 1_000, move || {
            redistribute_beside_writers(case)
        });
    }
}

#[test]
fn leaves_redistribute_beside_leaves_that_are_unlinked() {
    for direction in [Direction::Forward, Direction::Backward] {
        for case in CASES {
            explore_redistribution("index, redistribution beside an unlink", 500, move || {
                redistribute_beside_an_unlink(case, direction)
            });
        }
        explore_redistribution(
            "index, redistribution past an unlinked leaf",
            1_000,
            move || redistribute_past_an_unlinked_leaf(direction),
        );
    }
}

/// Each step is needed, and the models see that.
mod seen {
    use super::*;

    const RUNS: usize = 40_000;

    /// Sees that the model notices the missing step in each case.
    fn finds_in_each(step: &'static str, model: impl Fn(Case) + Copy + Send + Sync + 'static) {
        for case in CASES {
            finds(step, RUNS, move || model(case));
        }
    }

    #[test]
    fn dirty_while_entries_move() {
        finds_in_each(
            "index: dirty while it is rearranged",
            redistribute_beside_a_get,
        );
    }

    #[test]
    fn counting_at_the_donor() {
        finds_in_each("index: counting at the donor", redistribute_beside_a_get);
    }

    #[test]
    fn counting_that_a_separator_moved() {
        finds_in_each(
            "index: counting that a separator moved",
            redistribute_beside_a_get,
        );
    }

    #[test]
    fn counting_at_the_taker() {
        finds_in_each("index: counting at the taker", |case| {
            redistribute_beside_a_scan(case, past(case))
        });
    }

    #[test]
    fn validating_the_leaf_a_scan_comes_from() {
        finds_in_each("index: validating the leaf a scan comes from", |case| {
            redistribute_beside_a_scan(case, past(case))
        });
    }

    #[test]
    fn dirty_before_others_redistribute_past_an_unlinked_leaf() {
        finds(
            "index: dirty before others redistribute past an unlinked leaf",
            200_000,
            || redistribute_past_an_unlinked_leaf(Direction::Forward),
        );
    }

    /// The direction of scans past which entries go.
    fn past(case: Case) -> Direction {
        if case.right {
            Direction::Backward
        } else {
            Direction::Forward
        }
    }
}
