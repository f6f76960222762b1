//! The maps, made to look alike.

use crate::keys::Keys;
use mot_index::{Batch, Bound, Direction, Map};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops;
use std::sync::RwLock;

/// Operations under one pin of an epoch, where there is one.
const PINNED: usize = 64;

/// A map under test. Keys come one behind the other in memory, so that finding the key costs
/// nothing.
pub trait Ordered: Sync + Send {
    fn fill(&self, keys: &Keys);
    fn get(&self, keys: &Keys);
    /// Takes each key out and puts it in again.
    fn change(&self, keys: &Keys);
    /// Reads keys and values of so many entries from each key on.
    fn scan(&self, keys: &Keys, entries: usize);
    /// The keys that one such scan reads, to see that it is right.
    fn keys_from(&self, key: &[u8], entries: usize) -> Vec<Vec<u8>>;
}

type Create = fn() -> Box<dyn Ordered>;

pub const MAPS: [(&str, Create); 6] = [
    ("mot", || Box::new(Map::new())),
    ("masstree", || Box::new(masstree::MassTree::<u64>::new())),
    ("congee", || Box::new(congee::U64Congee::<usize>::new())),
    ("scc", || Box::new(scc::TreeIndex::<Box<[u8]>, u64>::new())),
    ("skiplist", || {
        Box::new(crossbeam_skiplist::SkipMap::<Box<[u8]>, u64>::new())
    }),
    ("std", || {
        Box::new(RwLock::new(BTreeMap::<Box<[u8]>, u64>::new()))
    }),
];

/// What a reader does with an entry.
fn read(key: &[u8], value: u64) -> u64 {
    value.wrapping_add(u64::from(key[key.len() - 1]))
}

impl Ordered for Map {
    fn fill(&self, keys: &Keys) {
        for keys in keys.chunks(PINNED) {
            self.with_tree(|tree| {
                for (key, value) in keys {
                    tree.insert(key, value).expect("memory");
                }
            });
        }
    }

    fn get(&self, keys: &Keys) {
        for keys in keys.chunks(PINNED) {
            self.with_tree(|tree| {
                for (key, _) in keys {
                    black_box(tree.get(key).expect("there"));
                }
            });
        }
    }

    fn change(&self, keys: &Keys) {
        for keys in keys.chunks(PINNED) {
            self.with_tree(|tree| {
                for (key, value) in keys {
                    tree.remove(key).expect("there");
                    tree.insert(key, value).expect("memory");
                }
            });
        }
    }

    fn scan(&self, keys: &Keys, entries: usize) {
        let mut batch = Batch::with_capacity(entries);
        for keys in keys.chunks(PINNED) {
            self.with_tree(|tree| {
                for (key, _) in keys {
                    tree.scan_batch(Bound::Included(key), Direction::Forward, &mut batch);
                    black_box(
                        batch
                            .iter()
                            .map(|(key, value)| read(key, value))
                            .fold(0, u64::wrapping_add),
                    );
                }
            });
        }
    }

    fn keys_from(&self, key: &[u8], entries: usize) -> Vec<Vec<u8>> {
        let mut batch = Batch::with_capacity(entries);
        self.with_tree(|tree| {
            tree.scan_batch(Bound::Included(key), Direction::Forward, &mut batch);
        });
        batch.iter().map(|(key, _)| key.to_vec()).collect()
    }
}

impl Ordered for masstree::MassTree<u64> {
    fn fill(&self, keys: &Keys) {
        for keys in keys.chunks(PINNED) {
            let guard = self.guard();
            for (key, value) in keys {
                self.insert_with_guard(key, value, &guard);
            }
        }
    }

    fn get(&self, keys: &Keys) {
        for keys in keys.chunks(PINNED) {
            let guard = self.guard();
            for (key, _) in keys {
                black_box(self.get_with_guard(key, &guard).expect("there"));
            }
        }
    }

    fn change(&self, keys: &Keys) {
        for keys in keys.chunks(PINNED) {
            let guard = self.guard();
            for (key, value) in keys {
                self.remove_with_guard(key, &guard)
                    .expect("removes")
                    .expect("there");
                self.insert_with_guard(key, value, &guard);
            }
        }
    }

    fn scan(&self, keys: &Keys, entries: usize) {
        use masstree::RangeBound;
        for keys in keys.chunks(PINNED) {
            let guard = self.guard();
            for (key, _) in keys {
                let (mut sum, mut left) = (0u64, entries);
                let visit = |key: &[u8], value: u64| {
                    sum = sum.wrapping_add(read(key, value));
                    left -= 1;
                    left > 0
                };
                let from = RangeBound::Included(key);
                self.scan_intra_leaf_batch(from, RangeBound::Unbounded, visit, &guard);
                black_box(sum);
            }
        }
    }

    fn keys_from(&self, key: &[u8], entries: usize) -> Vec<Vec<u8>> {
        use masstree::RangeBound;
        let mut found = Vec::new();
        let visit = |key: &[u8], _| {
            found.push(key.to_vec());
            found.len() < entries
        };
        let (from, guard) = (RangeBound::Included(key), self.guard());
        self.scan_intra_leaf_batch(from, RangeBound::Unbounded, visit, &guard);
        found
    }
}

fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().expect("eight bytes"))
}

impl Ordered for congee::U64Congee<usize> {
    fn fill(&self, keys: &Keys) {
        for keys in keys.chunks(PINNED) {
            let guard = congee::epoch::pin();
            for (key, value) in keys {
                self.insert(number(key), value as usize, &guard)
                    .expect("memory");
            }
        }
    }

    fn get(&self, keys: &Keys) {
        for keys in keys.chunks(PINNED) {
            let guard = congee::epoch::pin();
            for (key, _) in keys {
                black_box(self.get(number(key), &guard).expect("there"));
            }
        }
    }

    fn change(&self, keys: &Keys) {
        for keys in keys.chunks(PINNED) {
            let guard = congee::epoch::pin();
            for (key, value) in keys {
                let key = number(key);
                self.remove(key, &guard).expect("there");
                self.insert(key, value as usize, &guard).expect("memory");
            }
        }
    }

    fn scan(&self, keys: &Keys, entries: usize) {
        let mut found = vec![([0u8; 8], 0usize); entries];
        for keys in keys.chunks(PINNED) {
            let guard = congee::epoch::pin();
            for (key, _) in keys {
                let count = self.range(number(key), u64::MAX, &mut found, &guard);
                black_box(
                    found[..count]
                        .iter()
                        .map(|(key, value)| read(key, *value as u64))
                        .fold(0, u64::wrapping_add),
                );
            }
        }
    }

    fn keys_from(&self, key: &[u8], entries: usize) -> Vec<Vec<u8>> {
        let mut found = vec![([0u8; 8], 0usize); entries];
        let count = self.range(number(key), u64::MAX, &mut found, &congee::epoch::pin());
        found[..count].iter().map(|(key, _)| key.to_vec()).collect()
    }
}

impl Ordered for scc::TreeIndex<Box<[u8]>, u64> {
    fn fill(&self, keys: &Keys) {
        for (key, value) in keys.iter() {
            self.insert_sync(key.into(), value).expect("not there");
        }
    }

    fn get(&self, keys: &Keys) {
        for keys in keys.chunks(PINNED) {
            let guard = scc::Guard::new();
            for (key, _) in keys {
                black_box(self.peek(key, &guard).expect("there"));
            }
        }
    }

    fn change(&self, keys: &Keys) {
        for (key, value) in keys.iter() {
            assert!(self.remove_sync(key));
            self.insert_sync(key.into(), value).expect("not there");
        }
    }

    fn scan(&self, keys: &Keys, entries: usize) {
        for keys in keys.chunks(PINNED) {
            let guard = scc::Guard::new();
            for (key, _) in keys {
                let from: Box<[u8]> = key.into();
                let found = self.range(from.., &guard).take(entries);
                black_box(
                    found
                        .map(|(key, value)| read(key, *value))
                        .fold(0, u64::wrapping_add),
                );
            }
        }
    }

    fn keys_from(&self, key: &[u8], entries: usize) -> Vec<Vec<u8>> {
        let (from, guard): (Box<[u8]>, _) = (key.into(), scc::Guard::new());
        let found = self.range(from.., &guard).take(entries);
        found.map(|(key, _)| key.to_vec()).collect()
    }
}

impl Ordered for crossbeam_skiplist::SkipMap<Box<[u8]>, u64> {
    fn fill(&self, keys: &Keys) {
        for (key, value) in keys.iter() {
            self.insert(key.into(), value);
        }
    }

    fn get(&self, keys: &Keys) {
        for (key, _) in keys.iter() {
            black_box(*self.get(key).expect("there").value());
        }
    }

    fn change(&self, keys: &Keys) {
        for (key, value) in keys.iter() {
            self.remove(key).expect("there");
            self.insert(key.into(), value);
        }
    }

    fn scan(&self, keys: &Keys, entries: usize) {
        for (key, _) in keys.iter() {
            let range = (ops::Bound::Included(key), ops::Bound::Unbounded);
            let found = self.range::<[u8], _>(range).take(entries);
            black_box(
                found
                    .map(|entry| read(entry.key(), *entry.value()))
                    .fold(0, u64::wrapping_add),
            );
        }
    }

    fn keys_from(&self, key: &[u8], entries: usize) -> Vec<Vec<u8>> {
        let range = (ops::Bound::Included(key), ops::Bound::Unbounded);
        let found = self.range::<[u8], _>(range).take(entries);
        found.map(|entry| entry.key().to_vec()).collect()
    }
}

impl Ordered for RwLock<BTreeMap<Box<[u8]>, u64>> {
    fn fill(&self, keys: &Keys) {
        for (key, value) in keys.iter() {
            self.write().unwrap().insert(key.into(), value);
        }
    }

    fn get(&self, keys: &Keys) {
        for (key, _) in keys.iter() {
            black_box(self.read().unwrap().get(key).copied().expect("there"));
        }
    }

    fn change(&self, keys: &Keys) {
        for (key, value) in keys.iter() {
            self.write().unwrap().remove(key).expect("there");
            self.write().unwrap().insert(key.into(), value);
        }
    }

    fn scan(&self, keys: &Keys, entries: usize) {
        for (key, _) in keys.iter() {
            let map = self.read().unwrap();
            let range = (ops::Bound::Included(key), ops::Bound::Unbounded);
            let found = map.range::<[u8], _>(range).take(entries);
            black_box(
                found
                    .map(|(key, value)| read(key, *value))
                    .fold(0, u64::wrapping_add),
            );
        }
    }

    fn keys_from(&self, key: &[u8], entries: usize) -> Vec<Vec<u8>> {
        let map = self.read().unwrap();
        let range = (ops::Bound::Included(key), ops::Bound::Unbounded);
        let found = map.range::<[u8], _>(range).take(entries);
        found.map(|(key, _)| key.to_vec()).collect()
    }
}
