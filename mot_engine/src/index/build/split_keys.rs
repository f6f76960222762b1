//! The keys at which an index build is cut into parts.

use super::keys::{Keys, head_of};
use std::ops::Range;

/// The least keys of all parts but the first, ascending.
#[derive(Default)]
pub(super) struct SplitKeys(Vec<(u128, Vec<u8>)>);

impl SplitKeys {
    /// Cuts the keys of a sorted sample into at most `parts` parts.
    pub(super) fn choose(sample: &Keys, parts: usize) -> SplitKeys {
        let mut split_keys: Vec<(u128, Vec<u8>)> = (1..parts)
            .filter_map(|part| sample.at(part * sample.len() / parts))
            .map(|(head, key)| (head, key.as_ref().to_vec()))
            .collect();
        split_keys.dedup();
        SplitKeys(split_keys)
    }

    /// How many parts there are.
    pub(super) fn parts(&self) -> usize {
        self.0.len() + 1
    }

    /// Which of the sorted `keys` belong to a part.
    pub(super) fn part_in(&self, part: usize, keys: &Keys) -> Range<usize> {
        let below = |split_key: Option<&(u128, Vec<u8>)>| {
            split_key.map(|(head, key)| keys.count_below(*head, key))
        };
        let from = part
            .checked_sub(1)
            .and_then(|before| below(self.0.get(before)));
        let to = below(self.0.get(part));
        from.unwrap_or(0)..to.unwrap_or(keys.len())
    }

    /// The part that `key` belongs to.
    pub(super) fn part_of(&self, key: &[u8]) -> usize {
        if self.0.is_empty() {
            return 0;
        }
        let head = head_of(key);
        self.0.partition_point(|(split_key, whole)| {
            *split_key < head || (*split_key == head && whole.as_slice() <= key)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::tests::{ORIGIN, some_keys};
    use super::*;

    #[test]
    fn every_key_is_in_the_part_its_split_keys_say() {
        let mut wanted = some_keys();
        wanted.sort();
        let mut sample = Keys::default();
        for key in &wanted {
            sample.push(key, ORIGIN).expect("memory");
        }
        for parts in [1, 2, 7, 100] {
            let split_keys = SplitKeys::choose(&sample, parts);
            assert!(split_keys.parts() <= parts.max(1));
            let mut before = 0;
            for key in &wanted {
                let part = split_keys.part_of(key);
                assert!(part >= before && part < split_keys.parts());
                assert!(part == 0 || split_keys.0[part - 1].1 <= *key);
                assert!(part + 1 == split_keys.parts() || *key < split_keys.0[part].1);
                before = part;
            }
            assert_eq!(before + 1, split_keys.parts());
            let mut next = 0;
            for part in 0..split_keys.parts() {
                let range = split_keys.part_in(part, &sample);
                assert_eq!(range.start, next);
                for key in &wanted[range.clone()] {
                    assert_eq!(split_keys.part_of(key), part);
                }
                next = range.end;
            }
            assert_eq!(next, wanted.len());
        }
    }
}
