//! Many whole keys of a unique index, looked up together so that their misses overlap.

use super::pending::Pending;
use crate::errors::EngineError;
use crate::index::row_ids_of;
use crate::row;
use crate::table::TableRef;
use mot_index::Tree;

/// Keys looked up at once, at first: a LIMIT may want no more.
const FIRST_POINTS: usize = 16;
/// Keys looked up at once, later.
const POINTS_AT_ONCE: usize = 64;

/// Bytes of keys whose memory is kept for the next scan.
const BYTES_KEPT: usize = 64 << 10;

/// Whole keys, one behind the other.
#[derive(Default)]
pub(super) struct Points {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The first that is not looked up yet.
    next: usize,
}

impl Points {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.next = 0;
    }

    /// Forgets all of them, and gives back the memory of very many.
    pub(super) fn trim(&mut self) {
        self.clear();
        self.bytes.shrink_to(BYTES_KEPT);
        self.ends.shrink_to(BYTES_KEPT / size_of::<usize>());
    }

    pub(super) fn push(&mut self, key: &[u8]) -> Result<(), EngineError> {
        let reserved = self.bytes.try_reserve(key.len());
        reserved
            .and_then(|()| self.ends.try_reserve(1))
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        Ok(())
    }

    pub(super) fn key(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    /// Looks some up; their rows are pending then, of which there were none. Whether those were the
    /// last. Pinned.
    pub(super) fn look_up<M: mot_index::Memory>(
        &mut self,
        tree: &Tree<'_, M>,
        table: TableRef,
        pending: &mut Pending,
    ) -> Result<bool, EngineError> {
        let first = self.next;
        let at_once = if first == 0 {
            FIRST_POINTS
        } else {
            POINTS_AT_ONCE
        };
        let count = (self.ends.len() - first).min(at_once);
        let mut values = [None; POINTS_AT_ONCE];
        tree.get_many(
            count,
            |number| self.key(first + number),
            |number, value| {
                values[number] = value;
                if let Some(value) = value {
                    row_ids_of(value, |row_id| {
                        table
                            .anchor(row_id)
                            .into_iter()
                            .for_each(row::prefetch_anchor)
                    });
                }
            },
        );
        self.next += count;
        // The next one last.
        for (number, value) in values[..count].iter().enumerate().rev() {
            if let Some(value) = value {
                pending.push(table, *value, (first + number) as u32)?;
            }
        }
        Ok(self.next == self.ends.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_KEPT, Points};

    #[test]
    fn the_memory_of_very_many_keys_is_given_back() {
        let mut points = Points::default();
        let held =
            |points: &Points| points.bytes.capacity() + points.ends.capacity() * size_of::<usize>();
        for round in 0..3 {
            for number in 0..100_000_u64 >> (round * 6) {
                points.push(&number.to_be_bytes()).expect("memory");
            }
            assert_eq!(points.key(5), 5_u64.to_be_bytes());
            points.trim();
            assert!(points.is_empty());
            // What few need stays.
            assert!((1..=2 * BYTES_KEPT).contains(&held(&points)));
        }
    }
}
