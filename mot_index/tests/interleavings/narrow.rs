//! Narrow leaves: wide ones that take their places, values that are two stores, and the root that
//! takes a narrow child's entries, beside look-ups, scans, writers and leaves that go.

use super::*;
use mot_index::widened;

/// In which half of a slice the numbers are, and what a foreign one has in the other: it lies
/// behind all of the leaf, or amid them.
#[derive(Clone, Copy, Debug)]
enum Half {
    Lower,
    Upper,
}

const HALVES: [Half; 2] = [Half::Lower, Half::Upper];

impl Half {
    fn key(self, at: u64) -> Vec<u8> {
        match self {
            Half::Lower => number(at),
            Half::Upper => number(at << 32),
        }
    }

    /// What the third leaf begins with: for the lower half one that the second does not hold.
    fn third(self) -> u64 {
        match self {
            Half::Lower => 1 << 40,
            Half::Upper => 1 << 20,
        }
    }

    /// The first of some that belong into the middle leaf and that it does not hold, and another
    /// one.
    fn foreign(self, which: u64) -> Vec<u8> {
        match self {
            Half::Lower => number(1 << (35 + which)),
            Half::Upper => number(205 << 32 | (1 + which)),
        }
    }

    /// Three leaves, of which the middle one is narrow: 0, 10, … 140; 150, 160, …; and numbers far
    /// above. As many entries in each as are asked for.
    fn three_leaves(self, entries: [u64; 3]) -> (Arc<Shared>, Vec<Vec<u8>>) {
        let shared = Arc::new(Shared::default());
        let leaves = [0, 150, self.third()].map(|begin| {
            (0..15)
                .map(|at| self.key(begin + at * 10))
                .collect::<Vec<_>>()
        });
        // In a run, so that what is behind is full.
        (leaves.iter().flatten()).for_each(|key| shared.insert(key));
        let stats = shared.with(|tree| tree.verify().expect("the tree is sound"));
        assert!(stats.leaves == 3 && stats.narrow_leaves > 0, "{stats:?}");
        let mut keys = Vec::new();
        for (leaf, count) in leaves.iter().zip(entries) {
            let (kept, going) = leaf.split_at(count as usize);
            going.iter().for_each(|key| shared.remove(key));
            keys.extend_from_slice(kept);
        }
        (shared, keys)
    }
}

/// How many entries the narrow leaf has when the foreign one comes: with room, and full.
const FILLS: [u64; 2] = [13, 15];

fn widen_beside_gets(half: Half, fill: u64) {
    let (shared, mut keys) = half.three_leaves([15, fill, 2]);
    threads(vec![
        work(&shared, move |shared| shared.insert(&half.foreign(0))),
        work(&shared, move |shared| {
            shared.get_present(&half.key(150));
            shared.get_perhaps(&half.foreign(0));
            shared.get_present(&half.key(250));
        }),
        work(&shared, move |shared| {
            shared.get_present_together(&[&half.key(140), &half.key(160), &half.key(half.third())]);
        }),
    ]);
    keys.push(half.foreign(0));
    shared.finish(&keys);
}

fn widen_beside_a_scan(half: Half, fill: u64, direction: Direction) {
    let (shared, mut keys) = half.three_leaves([2, fill, 2]);
    let for_scan = keys.clone();
    threads(vec![
        work(&shared, move |shared| shared.insert(&half.foreign(0))),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    keys.push(half.foreign(0));
    shared.finish(&keys);
}

fn widen_beside_writers(half: Half, fill: u64) {
    let (shared, mut keys) = half.three_leaves([15, fill, 2]);
    let coming = [half.key(155), half.foreign(1), half.key(half.third() + 5)];
    keys.extend(coming.iter().cloned().chain([half.foreign(0)]));
    threads(vec![
        work(&shared, move |shared| shared.insert(&half.foreign(0))),
        work(&shared, move |shared| shared.insert_at_positions(&coming)),
        work(&shared, move |shared| {
            shared.remove(&half.key(160));
            shared.insert(&half.key(160));
        }),
    ]);
    shared.finish(&keys);
}

/// The leaf to the left or to the right is emptied, and unlinked, meanwhile.
fn widen_beside_an_unlink(half: Half, right: bool, direction: Direction) {
    let (shared, mut keys) = half.three_leaves(if right { [2, 13, 1] } else { [1, 13, 2] });
    let going = half.key(if right { half.third() } else { 0 });
    keys.retain(|key| *key != going);
    let for_scan = keys.clone();
    threads(vec![
        work(&shared, move |shared| shared.insert(&half.foreign(0))),
        work(&shared, move |shared| shared.remove(&going)),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    keys.push(half.foreign(0));
    shared.finish(&keys);
}

/// The leaf to the left is split meanwhile, in its middle or at its end, or moves entries to the
/// narrow one.
fn widen_beside_a_split(half: Half, fill: u64, at: u64, direction: Direction) {
    let (shared, mut keys) = half.three_leaves([15, fill, 2]);
    let for_scan = keys.clone();
    threads(vec![
        work(&shared, move |shared| shared.insert(&half.foreign(0))),
        work(&shared, move |shared| shared.insert(&half.key(at))),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    keys.extend([half.foreign(0), half.key(at)]);
    shared.finish(&keys);
}

/// The narrow leaf itself is emptied while the foreign key comes.
fn widen_beside_its_end(half: Half, direction: Direction) {
    let (shared, mut keys) = half.three_leaves([2, 1, 2]);
    keys.retain(|key| *key != half.key(150));
    let for_scan = keys.clone();
    threads(vec![
        work(&shared, move |shared| shared.insert(&half.foreign(0))),
        work(&shared, move |shared| shared.remove(&half.key(150))),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    keys.push(half.foreign(0));
    shared.finish(&keys);
}

/// Two leaves beside each other are widened at once: each wants the latch that the other has, or
/// its link.
fn widen_beside_a_widening(fill: u64, direction: Direction) {
    let half = Half::Upper;
    let (shared, mut keys) = half.three_leaves([2, fill, 13]);
    let right = number((half.third() + 55) << 32 | 1);
    let for_scan = keys.clone();
    keys.extend([half.foreign(0), right.clone()]);
    threads(vec![
        work(&shared, move |shared| shared.insert(&half.foreign(0))),
        work(&shared, move |shared| shared.insert(&right)),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    shared.finish(&keys);
}

/// A layer below the narrow leaf loses its last key, and its entry in there.
fn widen_beside_the_end_of_a_layer(half: Half, direction: Direction) {
    let (shared, mut keys) = half.three_leaves([2, 8, 2]);
    let below = [&half.key(165)[..], b"below"].concat();
    shared.insert_layer(&[&below]);
    let for_scan = keys.clone();
    let going = below.clone();
    threads(vec![
        work(&shared, move |shared| shared.insert(&half.foreign(0))),
        work(&shared, move |shared| shared.remove(&going)),
        work(&shared, move |shared| {
            shared.get_perhaps(&below);
            shared.scan(direction, &for_scan);
        }),
    ]);
    keys.push(half.foreign(0));
    shared.finish(&keys);
}

/// The narrow leaf has suffixes, whose bag goes along, and the foreign key brings one, for which it
/// has room or not.
fn widen_beside_readers_of_suffixes(half: Half, coming: &'static [u8], direction: Direction) {
    let (shared, mut keys) = half.three_leaves([2, 8, 2]);
    let suffixed = [&half.key(165)[..], b"behind"].concat();
    let foreign = [&half.foreign(0)[..], coming].concat();
    shared.insert(&suffixed);
    keys.push(suffixed.clone());
    let for_scan = keys.clone();
    keys.push(foreign.clone());
    threads(vec![
        work(&shared, move |shared| {
            shared.insert(&foreign);
            // Its slot is another's then.
            shared.remove(&half.key(160));
            shared.insert(&[&half.key(160)[..], b"later"].concat());
        }),
        work(&shared, move |shared| shared.get_present(&suffixed)),
        work(&shared, move |shared| {
            let gone = half.key(160);
            let always: Vec<_> = for_scan.into_iter().filter(|key| *key != gone).collect();
            shared.scan(direction, &always);
        }),
    ]);
    keys.retain(|key| *key != half.key(160));
    keys.push([&half.key(160)[..], b"later"].concat());
    shared.finish(&keys);
}

/// The root takes the entries of a narrow leaf that is left alone.
fn pull_up_beside_others(half: Half, direction: Direction) {
    let (shared, mut keys) = half.three_leaves([1, 3, 0]);
    keys.retain(|key| *key != half.key(0));
    let for_scan = keys.clone();
    threads(vec![
        work(&shared, move |shared| shared.remove(&half.key(0))),
        work(&shared, move |shared| {
            shared.get_present(&half.key(150));
            shared.insert(&half.key(155));
        }),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    keys.push(half.key(155));
    shared.finish(&keys);
}

const OLD: u64 = 1;
const NEW: u64 = MAX_VALUE - 1;

/// The value of an entry is replaced while it is read.
fn replace_beside_a_reader(read: impl FnOnce(&Shared) -> u64 + Send + 'static) {
    let half = Half::Upper;
    let (shared, keys) = half.three_leaves([1, 3, 1]);
    let set = move |shared: &Shared, value| {
        let old = shared.with(|tree| tree.insert(&half.key(160), value));
        old.expect("the heap has room").expect("it is there")
    };
    set(&shared, OLD);
    threads(vec![
        work(&shared, move |shared| assert_eq!(set(shared, NEW), OLD)),
        work(&shared, move |shared| {
            let value = read(shared);
            assert!(value == OLD || value == NEW, "{value:#x} was never set");
        }),
    ]);
    assert_eq!(set(&shared, value_of(&half.key(160))), NEW);
    shared.finish(&keys);
}

fn got(shared: &Shared) -> u64 {
    shared
        .with(|tree| tree.get(&Half::Upper.key(160)))
        .expect("it is there")
}

fn scanned(shared: &Shared) -> u64 {
    let mut batch = Batch::with_capacity(2);
    let (from, until) = (Half::Upper.key(160), Half::Upper.key(160));
    shared.with(|tree| {
        let from = Bound::Included(&from);
        tree.scan_batch_until(from, Some(&until), Direction::Backward, &mut batch);
    });
    batch.get(0).1
}

/// Runs a model and sees that narrow leaves were widened.
fn explore_widening(name: &str, runs: usize, body: impl Fn() + Send + Sync + 'static) {
    let before = widened();
    explore(name, runs, body);
    assert_ne!(widened(), before, "no leaf was widened");
}

const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];

/// All cases in which a foreign key needs a wider leaf: behind all of a full one it gets a leaf of
/// its own.
fn cases() -> impl Iterator<Item = (Half, u64)> {
    let all = HALVES
        .into_iter()
        .flat_map(|half| FILLS.map(|fill| (half, fill)));
    all.filter(|case| !matches!(case, (Half::Lower, 15)))
}

#[test]
fn wide_leaves_take_the_places_of_narrow_ones() {
    for (half, fill) in cases() {
        explore_widening("index, a widening beside gets", 1_000, move || {
            widen_beside_gets(half, fill)
        });
        explore_widening("index, a widening beside writers", 1_000, move || {
            widen_beside_writers(half, fill)
        });
        for direction in BOTH {
            explore_widening("index, a widening beside a scan", 1_000, move || {
                widen_beside_a_scan(half, fill, direction)
            });
        }
    }
}

#[test]
fn narrow_leaves_are_widened_beside_neighbours_that_change() {
    for (half, direction) in HALVES
        .into_iter()
        .flat_map(|half| BOTH.map(|to| (half, to)))
    {
        for right in [false, true] {
            explore_widening("index, a widening beside an unlink", 1_000, move || {
                widen_beside_an_unlink(half, right, direction)
            });
        }
        for (fill, at) in [(13, 75), (14, 145), (3, 75)] {
            explore_widening("index, a widening beside a split", 500, move || {
                widen_beside_a_split(half, fill, at, direction)
            });
        }
        explore(
            "index, a widening beside the leaf's end",
            1_000,
            move || widen_beside_its_end(half, direction),
        );
        explore("index, a narrow leaf pulled up", 1_000, move || {
            pull_up_beside_others(half, direction)
        });
    }
}

#[test]
fn narrow_leaves_are_widened_beside_each_other() {
    for direction in BOTH {
        for fill in FILLS {
            explore_widening("index, a widening beside a widening", 1_000, move || {
                widen_beside_a_widening(fill, direction)
            });
        }
    }
}

#[test]
fn narrow_leaves_are_widened_above_what_changes_below() {
    for (half, direction) in HALVES
        .into_iter()
        .flat_map(|half| BOTH.map(|to| (half, to)))
    {
        explore_widening("index, a widening beside a layer's end", 1_000, move || {
            widen_beside_the_end_of_a_layer(half, direction)
        });
        for coming in [&b"x"[..], &[b'x'; 200]] {
            explore_widening("index, a widening beside suffixes", 500, move || {
                widen_beside_readers_of_suffixes(half, coming, direction)
            });
        }
    }
}

#[test]
fn values_of_narrow_leaves_are_read_whole() {
    explore("index, a narrow value beside a get", 2_000, || {
        replace_beside_a_reader(got)
    });
    explore("index, a narrow value beside a scan", 2_000, || {
        replace_beside_a_reader(scanned)
    });
}

/// Each step is needed, and the models see that.
mod seen {
    use super::*;

    const RUNS: usize = 40_000;

    #[test]
    fn dirty_while_a_value_is_stored_in_two() {
        for read in [got, scanned] {
            finds(
                "index: dirty while a value is stored in two",
                RUNS,
                move || replace_beside_a_reader(read),
            );
        }
    }

    #[test]
    fn looking_whether_a_widened_leaf_still_covers_the_key() {
        finds(
            "index: looking whether a latched leaf still covers the key",
            RUNS,
            || widen_beside_writers(Half::Lower, 13),
        );
    }
}
