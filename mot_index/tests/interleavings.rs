//! The tree under the scheduler of `mot_model`: readers, writers and scans in many interleavings,
//! with the memory orderings that the code asks for and no stronger ones. `cargo test -p mot_index
//! --features model --test interleavings -- --nocapture` prints how many.

use mot_index::{Batch, Bound, Change, Cursor, Direction, MAX_VALUE, Memory, Tree, TreeRoot};
use mot_model::{Ordering, explore, fence, finds, threads};
use std::alloc::Layout;
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

/// Who is pinned and what waits for them, in the order in which it happened.
#[derive(Default)]
struct Pins {
    clock: u64,
    pinned: BTreeSet<u64>,
    retired: Vec<(u64, usize, Layout)>,
    /// Given back; their memory stays until the run is over, so that using them shows.
    freed: Vec<(usize, Layout)>,
}

impl Pins {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn free(&mut self, at: usize, layout: Layout) {
        mot_model::freed(at, layout.size());
        self.freed.push((at, layout));
    }

    fn collect(&mut self) {
        let oldest = self.pinned.first().copied().unwrap_or(u64::MAX);
        let (free, wait) = std::mem::take(&mut self.retired)
            .into_iter()
            .partition(|(when, ..)| *when < oldest);
        self.retired = wait;
        let free: Vec<(u64, usize, Layout)> = free;
        for (_, at, layout) in free {
            self.free(at, layout);
        }
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        for (at, layout) in self.freed.drain(..) {
            // SAFETY: from `alloc` with this layout, and the run is over.
            unsafe { std::alloc::dealloc(at as *mut u8, layout) };
        }
    }
}

/// The heap, with epochs that are exact: what is retired goes when those are gone who were pinned
/// then.
#[derive(Default)]
struct Heap(Mutex<Pins>);

impl Memory for Heap {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: trees ask for blocks of more than zero bytes.
        let at = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        mot_model::allocated(at.addr().get(), layout.size());
        Some(at)
    }

    unsafe fn free(&self, at: NonNull<u8>, layout: Layout) {
        self.0.lock().unwrap().free(at.as_ptr() as usize, layout);
    }

    unsafe fn retire(&self, at: NonNull<u8>, layout: Layout) {
        // What an epoch's stamp does: see the `Memory` contract.
        fence(Ordering::SeqCst);
        let mut pins = self.0.lock().unwrap();
        let when = pins.tick();
        pins.retired.push((when, at.as_ptr() as usize, layout));
    }
}

#[derive(Default)]
struct Shared {
    root: TreeRoot,
    heap: Heap,
}

type Handle<'t> = Tree<'t, Heap>;

impl Shared {
    fn with<R>(&self, work: impl FnOnce(&Handle<'_>) -> R) -> R {
        let pin = {
            let mut pins = self.heap.0.lock().unwrap();
            let pin = pins.tick();
            pins.pinned.insert(pin);
            pin
        };
        fence(Ordering::SeqCst);
        // SAFETY: pinned while `work` runs; all handles on the root are made here.
        let result = work(&unsafe { Tree::new(&self.root, &self.heap) });
        fence(Ordering::SeqCst);
        let mut pins = self.heap.0.lock().unwrap();
        pins.pinned.remove(&pin);
        pins.collect();
        result
    }

    fn insert(&self, key: &[u8]) {
        let value = value_of(key);
        self.with(|tree| tree.insert(key, value))
            .expect("the heap has room");
    }

    fn remove(&self, key: &[u8]) {
        self.with(|tree| tree.remove(key));
    }

    /// Inserts keys that share their first slice, and makes it lead to a layer: as more keys do,
    /// which go again.
    fn insert_layer(&self, keys: &[&[u8]]) {
        let more: Vec<Vec<u8>> = (0..5).map(|at| [&keys[0][..8], &[at]].concat()).collect();
        keys.iter().for_each(|key| self.insert(key));
        more.iter().for_each(|key| self.insert(key));
        more.iter().for_each(|key| self.remove(key));
    }

    /// Inserts keys at insert positions found before, together.
    fn insert_at_positions(&self, keys: &[Vec<u8>]) {
        self.with(|tree| {
            let mut positions = vec![None; keys.len()];
            let pairs = keys.iter().map(|key| (*tree, &key[..]));
            Tree::find_insert_positions(pairs, |at, position| positions[at] = Some(position));
            for (key, position) in keys.iter().zip(positions) {
                let set = |old| (Change::Set(value_of(key)), old);
                let old = match position {
                    // SAFETY: found above for this key in this tree, under the same pin.
                    Some(position) => unsafe { tree.update_at(position, key, set) },
                    None => tree.update(key, set),
                };
                assert_eq!(old, Ok(None));
            }
        });
    }

    /// Reads a key that is always there.
    fn get_present(&self, key: &[u8]) {
        let found = self.with(|tree| tree.get(key));
        assert_eq!(found, Some(value_of(key)), "{key:?} was there all the time");
    }

    /// Reads keys that are always there, together.
    fn get_present_together(&self, keys: &[&[u8]]) {
        let expect = |number: usize, found| {
            let key = keys[number];
            assert_eq!(found, Some(value_of(key)), "{key:?} was there all the time");
        };
        self.with(|tree| tree.get_many(keys.len(), |number| keys[number], expect));
    }

    /// Reads a key that may be there.
    fn get_perhaps(&self, key: &[u8]) {
        let found = self.with(|tree| tree.get(key));
        assert!(
            found.is_none_or(|found| found == value_of(key)),
            "{key:?} has {found:?}"
        );
    }

    /// Reads all keys; those given must be among them, each has its value, and they are in order.
    fn scan(&self, direction: Direction, always: &[Vec<u8>]) {
        let mut cursor = Cursor::new();
        let start = if direction == Direction::Forward {
            Bound::Start
        } else {
            Bound::End
        };
        cursor.seek(start, direction);
        let mut keys: Vec<Vec<u8>> = Vec::new();
        while let Some((key, value)) =
            self.with(|tree| cursor.next(tree).map(|(key, value)| (key.to_vec(), value)))
        {
            assert_eq!(value, value_of(&key), "{key:?}");
            keys.push(key);
        }
        if direction == Direction::Backward {
            keys.reverse();
        }
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
        for key in always {
            assert!(keys.contains(key), "{key:?} was there all the time");
        }
    }

    fn finish(&self, keys: &[Vec<u8>]) {
        self.with(|tree| {
            let stats = tree.verify().expect("the tree is sound");
            assert_eq!(stats.entries, keys.len() as u64);
            for key in keys {
                assert_eq!(tree.get(key), Some(value_of(key)));
            }
            // SAFETY: the other threads are gone.
            unsafe { tree.clear() };
        });
    }
}

/// A value that names its key.
fn value_of(key: &[u8]) -> u64 {
    let value = key.iter().fold(7, |value: u64, byte| {
        value.wrapping_mul(257).wrapping_add(u64::from(*byte) + 1)
    });
    value & MAX_VALUE
}

fn number(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// A thread's work on the tree.
fn work(
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) + Send + 'static,
) -> Box<dyn FnOnce() + Send> {
    let shared = shared.clone();
    Box::new(move || work(&shared))
}

/// A full leaf is split, twice, under readers of keys on both sides.
fn split() {
    let shared = Arc::new(Shared::default());
    let keys: Vec<Vec<u8>> = (0..15).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    let (for_get, for_scan) = (keys.clone(), keys.clone());
    threads(vec![
        work(&shared, |shared| {
            [75, 5]
                .map(number)
                .iter()
                .for_each(|key| shared.insert(key))
        }),
        work(&shared, move |shared| {
            [14, 7, 1]
                .iter()
                .for_each(|at| shared.get_present(&for_get[*at]))
        }),
        work(&shared, move |shared| {
            shared.scan(Direction::Forward, &for_scan)
        }),
    ]);
    let mut all = keys;
    all.extend([75, 5].map(number));
    shared.finish(&all);
}

/// The same of a leaf that is not the root, beside another full one: nothing but the count tells of
/// it.
fn split_below_root() {
    let shared = Arc::new(Shared::default());
    let mut keys: Vec<Vec<u8>> = (0..30).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    let for_get = keys.clone();
    threads(vec![
        work(&shared, |shared| shared.insert(&number(75))),
        work(&shared, move |shared| {
            [14, 9]
                .iter()
                .for_each(|at| shared.get_present(&for_get[*at]));
        }),
    ]);
    keys.push(number(75));
    shared.finish(&keys);
}

/// The same, the keys looked up together.
fn split_beside_many() {
    let shared = Arc::new(Shared::default());
    let mut keys: Vec<Vec<u8>> = (0..30).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    let for_get = keys.clone();
    threads(vec![
        work(&shared, |shared| shared.insert(&number(75))),
        work(&shared, move |shared| {
            shared.get_present_together(&[&for_get[14], &for_get[9]]);
        }),
    ]);
    keys.push(number(75));
    shared.finish(&keys);
}

/// A leaf is unlinked, and its root takes its neighbour back, under keys looked up together.
fn unlink_beside_many() {
    let shared = Arc::new(Shared::default());
    let keys: Vec<Vec<u8>> = (0..17).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    let (kept, going) = keys.split_at(15);
    let (kept, going) = (kept.to_vec(), going.to_vec());
    let for_get = kept.clone();
    threads(vec![
        work(&shared, move |shared| {
            going.iter().for_each(|key| shared.remove(key));
            shared.insert(&number(155));
        }),
        work(&shared, move |shared| {
            shared.get_present_together(&[&for_get[14], &for_get[0]]);
        }),
    ]);
    let mut all = kept;
    all.push(number(155));
    shared.finish(&all);
}

/// Keys go to insert positions in leaves that are split, and unlinked, meanwhile.
fn positions_beside_writers() {
    let shared = Arc::new(Shared::default());
    let keys: Vec<Vec<u8>> = (0..30).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    // Filled upwards: both leaves are full.
    let (kept, going) = keys.split_at(15);
    let (kept, going) = (kept.to_vec(), going.to_vec());
    threads(vec![
        work(&shared, move |shared| {
            shared.insert(&number(75));
            going.iter().for_each(|key| shared.remove(key));
        }),
        work(&shared, |shared| {
            shared.insert_at_positions(&[number(145), number(5), number(155)]);
        }),
    ]);
    let mut all = kept;
    all.extend([75, 145, 5, 155].map(number));
    shared.finish(&all);
}

/// Keys go to insert positions where a layer is made for their slice, and taken away again.
fn positions_beside_layers() {
    let shared = Arc::new(Shared::default());
    let there = b"a prefix, one".to_vec();
    shared.insert(&there);
    let (second, third) = (b"a prefix, two".to_vec(), b"a prefix, three".to_vec());
    let going = second.clone();
    let coming = third.clone();
    threads(vec![
        work(&shared, move |shared| {
            shared.insert(&going);
            shared.remove(&going);
        }),
        work(&shared, move |shared| {
            shared.insert_at_positions(&[coming]);
        }),
    ]);
    shared.finish(&[there, third]);
}

/// Keys go to a tree whose only leaf is emptied meanwhile.
fn positions_beside_an_end() {
    let shared = Arc::new(Shared::default());
    shared.insert(&number(1));
    threads(vec![
        work(&shared, |shared| shared.remove(&number(1))),
        work(&shared, |shared| {
            shared.insert_at_positions(&[number(2), number(3)]);
        }),
    ]);
    shared.finish(&[number(2), number(3)]);
}

/// An entry goes and another takes its slot under readers of both.
fn reuse() {
    let shared = Arc::new(Shared::default());
    let kept = [number(10), number(50)];
    kept.iter().for_each(|key| shared.insert(key));
    shared.insert(&number(30));
    threads(vec![
        work(&shared, |shared| {
            shared.remove(&number(30));
            shared.insert(&number(40));
        }),
        work(&shared, |shared| {
            shared.get_perhaps(&number(30));
            shared.get_perhaps(&number(40));
        }),
        work(&shared, |shared| {
            shared.get_present(&number(50));
            shared.get_perhaps(&number(40));
        }),
    ]);
    shared.finish(&[kept[0].clone(), kept[1].clone(), number(40)]);
}

/// The same with one reader of one key.
fn reuse_of_one() {
    let shared = Arc::new(Shared::default());
    shared.insert(&number(10));
    shared.insert(&number(30));
    threads(vec![
        work(&shared, |shared| {
            shared.remove(&number(30));
            shared.insert(&number(40));
        }),
        work(&shared, |shared| shared.get_perhaps(&number(30))),
    ]);
    shared.finish(&[number(10), number(40)]);
}

/// A leaf is emptied and unlinked, its range filled again, under a get and a scan.
fn unlink(direction: Direction) {
    let shared = Arc::new(Shared::default());
    let keys: Vec<Vec<u8>> = (0..17).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    // Filled upwards: the first leaf has fifteen.
    let (last, kept) = keys.split_at(15);
    let going = kept.to_vec();
    let kept = last.to_vec();
    let (for_get, for_scan) = (kept.clone(), kept.clone());
    threads(vec![
        work(&shared, move |shared| {
            going.iter().for_each(|key| shared.remove(key));
            shared.insert(&number(155));
        }),
        work(&shared, move |shared| {
            [14, 0]
                .iter()
                .for_each(|at| shared.get_present(&for_get[*at]))
        }),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    let mut all = kept;
    all.push(number(155));
    shared.finish(&all);
}

/// The first leaf of four goes, and with it a separator, while a scan of a short range asks whether
/// its leaf is the last it needs.
fn unlink_beside_a_range() {
    let shared = Arc::new(Shared::default());
    let keys: Vec<Vec<u8>> = (0..47).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    for key in &keys[1..15] {
        shared.remove(key);
    }
    let going = keys[0].clone();
    let wanted = keys[29..31].to_vec();
    threads(vec![
        work(&shared, move |shared| shared.remove(&going)),
        work(&shared, move |shared| {
            let mut batch = Batch::with_capacity(5);
            let bound = Bound::Included(&wanted[0]);
            shared.with(|tree| {
                tree.scan_batch_until(bound, Some(&wanted[1]), Direction::Forward, &mut batch)
            });
            let seen: Vec<&[u8]> = batch.iter().map(|(key, _)| key).collect();
            assert_eq!(seen, wanted);
            assert!(batch.is_exhausted());
        }),
    ]);
    shared.finish(&keys[15..]);
}

/// Two leaves at the end go at the same time, each below a parent of its own, while a scan comes
/// from the end.
fn unlink_below_two_parents() {
    let shared = Arc::new(Shared::default());
    // An inner node has 17 children; the last leaf is the only one of its parent.
    let keys: Vec<Vec<u8>> = (0..18 * 15).map(|at| number(at * 10)).collect();
    shared.with(|tree| {
        let entries = keys.iter().map(|key| (key, value_of(key)));
        assert_eq!(tree.bulk_load(entries), Ok(keys.len() as u64));
        for leaf in [16, 17] {
            for key in &keys[leaf * 15 + 1..(leaf + 1) * 15] {
                tree.remove(key);
            }
        }
    });
    let (left, right) = (keys[16 * 15].clone(), keys[17 * 15].clone());
    threads(vec![
        work(&shared, move |shared| shared.remove(&right)),
        work(&shared, move |shared| shared.remove(&left)),
        work(&shared, |shared| {
            let mut batch = Batch::with_capacity(1);
            shared.with(|tree| tree.scan_batch(Bound::End, Direction::Backward, &mut batch));
            assert_eq!(batch.iter().count(), 1);
        }),
    ]);
    shared.finish(&keys[..16 * 15]);
}

/// The first leaf of three goes while a scan stands on it.
fn unlink_first() {
    let shared = Arc::new(Shared::default());
    let keys: Vec<Vec<u8>> = (0..32).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    for key in &keys[3..15] {
        shared.remove(key);
    }
    let kept = keys[15..].to_vec();
    let going = keys[..3].to_vec();
    let for_scan = kept.clone();
    threads(vec![
        work(&shared, move |shared| {
            going.iter().for_each(|key| shared.remove(key));
        }),
        work(&shared, move |shared| {
            shared.scan(Direction::Forward, &for_scan)
        }),
    ]);
    shared.finish(&kept);
}

/// A layer of one key gets another, which goes again.
fn layers() {
    let shared = Arc::new(Shared::default());
    shared.insert_layer(&[b"a prefix, one"]);
    let (first, second) = (b"a prefix, one".to_vec(), b"a prefix, two".to_vec());
    let other = b"b".to_vec();
    shared.insert(&first);
    shared.insert(&other);
    let (for_get, for_scan) = (first.clone(), [first.clone(), other.clone()]);
    let perhaps = second.clone();
    threads(vec![
        work(&shared, move |shared| {
            shared.insert(&second);
            shared.remove(&second);
        }),
        work(&shared, move |shared| {
            shared.get_present(&for_get);
            shared.get_perhaps(&perhaps);
        }),
        work(&shared, move |shared| {
            shared.scan(Direction::Backward, &for_scan)
        }),
    ]);
    shared.finish(&[first, other]);
}

/// A scan reads on in a leaf behind a layer, while the slots of entries on both sides of that are
/// used again on the other side.
fn reuse_beside_layer(direction: Direction) {
    let shared = Arc::new(Shared::default());
    let layer = [&b"in a layer, one"[..], b"in a layer, two"];
    let kept = [&b"a"[..], layer[0], layer[1], b"y"].map(<[u8]>::to_vec);
    shared.insert_layer(&layer);
    kept.iter().for_each(|key| shared.insert(key));
    shared.insert(b"b");
    shared.insert(b"x, with a suffix");
    let for_scan = kept.clone();
    threads(vec![
        work(&shared, |shared| {
            shared.remove(b"x, with a suffix");
            shared.insert(b"c, with a suffix");
            shared.remove(b"b");
            shared.insert(b"w");
        }),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    let mut all = kept.to_vec();
    all.extend([&b"c, with a suffix"[..], b"w"].map(<[u8]>::to_vec));
    shared.finish(&all);
}

/// A scan reads on in a leaf behind a layer that goes, while the leaf is split.
fn split_beside_layer(direction: Direction) {
    let shared = Arc::new(Shared::default());
    let mut keys: Vec<Vec<u8>> = (0..14u8).map(|at| vec![b'c' + at]).collect();
    let layer = [&b"j in a layer, one"[..], b"j in a layer, two"].map(<[u8]>::to_vec);
    shared.insert_layer(&[&layer[0], &layer[1]]);
    keys.iter().for_each(|key| shared.insert(key));
    let for_scan = keys.clone();
    threads(vec![
        work(&shared, move |shared| {
            layer.iter().for_each(|key| shared.remove(key));
            shared.insert(b"a");
            shared.insert(b"z");
        }),
        work(&shared, move |shared| shared.scan(direction, &for_scan)),
    ]);
    keys.extend([b"a".to_vec(), b"z".to_vec()]);
    shared.finish(&keys);
}

/// Writers meet at one full leaf.
fn writers() {
    let shared = Arc::new(Shared::default());
    let mut keys: Vec<Vec<u8>> = (0..15).map(|at| number(at * 10)).collect();
    keys.iter().for_each(|key| shared.insert(key));
    let insert = |keys: [u64; 2]| {
        work(&shared, move |shared| {
            keys.map(number).iter().for_each(|key| shared.insert(key))
        })
    };
    threads(vec![insert([71, 141]), insert([72, 1]), insert([73, 142])]);
    keys.extend([71, 141, 72, 1, 73, 142].map(number));
    shared.finish(&keys);
}

#[test]
fn splits_beside_readers() {
    explore("index, splits beside readers", 1_500, split);
    explore("index, splits below the root", 1_500, split_below_root);
}

#[test]
fn keys_looked_up_together_beside_writers() {
    explore("index, together beside a split", 1_500, split_beside_many);
    explore(
        "index, together beside an unlink",
        1_500,
        unlink_beside_many,
    );
}

#[test]
fn insert_positions_beside_other_writers() {
    explore("index, positions: writers", 1_500, positions_beside_writers);
    explore("index, positions: layers", 1_500, positions_beside_layers);
    explore("index, positions: an end", 1_500, positions_beside_an_end);
}

#[test]
fn slots_used_again_beside_readers() {
    explore("index, slots used again", 3_000, reuse);
    explore("index, one slot used again", 4_000, reuse_of_one);
}

#[test]
fn leaves_unlinked_beside_readers() {
    explore("index, leaves unlinked, scans forward", 1_000, || {
        unlink(Direction::Forward)
    });
    explore("index, leaves unlinked, scans backward", 1_000, || {
        unlink(Direction::Backward)
    });
    explore("index, the first leaf unlinked", 500, unlink_first);
    explore(
        "index, leaves below two parents unlinked",
        300,
        unlink_below_two_parents,
    );
}

#[test]
fn ranges_end_beside_leaves_unlinked() {
    explore(
        "index, ranges beside unlinked leaves",
        1_500,
        unlink_beside_a_range,
    );
}

#[test]
fn layers_come_and_go_beside_readers() {
    explore("index, layers come and go", 3_000, layers);
}

#[test]
fn scans_read_on_behind_layers() {
    for direction in [Direction::Forward, Direction::Backward] {
        explore("index, slots used again beside a layer", 1_500, move || {
            reuse_beside_layer(direction)
        });
        explore("index, a split beside a layer", 1_000, move || {
            split_beside_layer(direction)
        });
    }
}

#[test]
fn writers_at_one_leaf() {
    explore("index, writers at one leaf", 1_500, writers);
}

/// Each step of the protocol is needed, and the models see that.
mod seen {
    use super::*;

    const RUNS: usize = 40_000;

    #[test]
    fn dirty_while_it_is_rearranged() {
        finds("index: dirty while it is rearranged", RUNS, split);
    }

    #[test]
    fn counting_a_split() {
        finds("index: counting a split", RUNS, split_below_root);
    }

    #[test]
    fn counting_a_split_beside_many() {
        finds("index: counting a split", RUNS, split_beside_many);
    }

    #[test]
    fn counting_a_removal() {
        finds("index: counting a removal", RUNS, reuse_of_one);
    }

    #[test]
    fn counting_a_removal_beside_a_layer() {
        finds("index: counting a removal", RUNS, || {
            reuse_beside_layer(Direction::Forward)
        });
    }

    #[test]
    fn validating_where_a_range_ends() {
        finds(
            "index: validating where a range ends",
            RUNS,
            unlink_beside_a_range,
        );
    }

    #[test]
    fn looking_whether_a_latched_leaf_covers_the_key() {
        finds(
            "index: looking whether a latched leaf still covers the key",
            RUNS,
            positions_beside_writers,
        );
    }

    #[test]
    fn the_release_of_an_entry() {
        finds("index: the release of an entry", RUNS, reuse);
    }

    #[test]
    fn waiting_for_readers_before_a_node_is_freed() {
        finds(
            "index: waiting for readers before a node is freed",
            RUNS,
            || unlink(Direction::Forward),
        );
    }
}

#[path = "interleavings/redistribute_random.rs"]
mod redistribute_random;

#[path = "interleavings/redistribute.rs"]
mod redistribute;

#[path = "interleavings/looks.rs"]
mod looks;

#[path = "interleavings/narrow.rs"]
mod narrow;

#[path = "interleavings/programs.rs"]
mod programs;

#[path = "interleavings/suffixes.rs"]
mod suffixes;

#[path = "interleavings/slices.rs"]
mod slices;
