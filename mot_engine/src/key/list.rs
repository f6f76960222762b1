//! Very many encoded values of a column, or keys, in little memory: one after the other, with the
//! position of each.
//!
//! A client's list (`= ANY`) may have a hundred million elements. So each element costs its own
//! bytes and four more, or eight once they are sorted. Every allocation may fail: a list that does
//! not fit is the statement's error and not the server's end.

use super::definition::KeyColumn;
use crate::errors::EngineError;
use std::cmp::Ordering;

/// Comparisons between two checks whether to continue.
const COMPARED_PER_LOOK: u32 = 4096;

/// Encoded values.
#[derive(Default)]
pub struct KeyList {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Which come one after the other, if not in the order in which they were added.
    order: Vec<u32>,
}

impl KeyList {
    /// An empty list.
    pub const fn new() -> KeyList {
        KeyList {
            bytes: Vec::new(),
            ends: Vec::new(),
            order: Vec::new(),
        }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        if self.order.is_empty() {
            self.ends.len()
        } else {
            self.order.len()
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The one at this place; below `len`.
    #[inline]
    pub fn get(&self, place: usize) -> &[u8] {
        let number = self.order.get(place).map_or(place, |at| *at as usize);
        self.added(number)
    }

    fn added(&self, number: usize) -> &[u8] {
        let start = number
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        &self.bytes[start..self.ends[number] as usize]
    }

    /// Makes room for so many values of so many bytes together.
    pub fn reserve(&mut self, values: usize, bytes: usize) -> Result<(), EngineError> {
        reserve(&mut self.bytes, bytes)?;
        reserve(&mut self.ends, values)
    }

    /// Adds a value that is made of two parts. Not to a list that was sorted.
    #[inline]
    pub fn push(&mut self, first: &[u8], rest: &[u8]) -> Result<(), EngineError> {
        debug_assert!(self.order.is_empty());
        let length = first.len() + rest.len();
        let end = u32::try_from(self.bytes.len() + length)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        reserve(&mut self.bytes, length)?;
        reserve(&mut self.ends, 1)?;
        self.bytes.extend_from_slice(first);
        self.bytes.extend_from_slice(rest);
        self.ends.push(end);
        Ok(())
    }

    /// Makes the value added last longer; there is one. Not of a list of several that was sorted.
    #[inline]
    pub fn append_to_last(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        debug_assert!(self.order.is_empty());
        let end = u32::try_from(self.bytes.len() + bytes.len())
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        reserve(&mut self.bytes, bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        *self.ends.last_mut().expect("a value") = end;
        Ok(())
    }

    /// Brings them into key order, each once. `look` is called now and then: it may unwind, and the
    /// list is dropped then.
    pub fn sort(&mut self, mut look: impl FnMut()) -> Result<(), EngineError> {
        debug_assert!(self.order.is_empty());
        let mut compared = 0_u32;
        let mut compare = |list: &KeyList, a: usize, b: usize| {
            compared = compared.wrapping_add(1);
            if compared.is_multiple_of(COMPARED_PER_LOOK) {
                look();
            }
            list.added(a).cmp(list.added(b))
        };
        let count = self.ends.len();
        if (1..count).all(|number| compare(self, number - 1, number).is_lt()) {
            return Ok(());
        }
        let mut order = Vec::new();
        reserve_exact(&mut order, count)?;
        // No column's encoding is empty, so there are no more than bytes.
        order.extend((0..count).map(|number| number as u32));
        order.sort_unstable_by(|a, b| compare(self, *a as usize, *b as usize));
        order.dedup_by(|a, b| self.added(*a as usize) == self.added(*b as usize));
        if order.len() == 1 {
            // All the same: as if it had been added once.
            self.ends.truncate(1);
            self.bytes.truncate(self.ends[0] as usize);
            return Ok(());
        }
        self.order = order;
        Ok(())
    }

    /// Brings sorted values of a column that orders texts only roughly into the order of its
    /// collation. `look` as for [`KeyList::sort`].
    pub fn collate(
        &mut self,
        column: &KeyColumn,
        mut look: impl FnMut(),
    ) -> Result<(), EngineError> {
        if self.len() < 2 {
            return Ok(());
        }
        let mut order = std::mem::take(&mut self.order);
        if order.is_empty() {
            reserve_exact(&mut order, self.ends.len())?;
            order.extend((0..self.ends.len()).map(|number| number as u32));
        }
        let (mut compared, mut failure) = (0_u32, None);
        order.sort_by(|a, b| {
            compared = compared.wrapping_add(1);
            if compared.is_multiple_of(COMPARED_PER_LOOK) {
                look();
            }
            let (a, b) = (self.added(*a as usize), self.added(*b as usize));
            column.compare_encoded(a, b).unwrap_or_else(|error| {
                failure = Some(error);
                Ordering::Equal
            })
        });
        self.order = order;
        failure.map_or(Ok(()), Err)
    }

    /// None; the memory stays for the next ones.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.order.clear();
    }

    /// Bytes of memory that it holds.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + size_of::<u32>() * (self.ends.capacity() + self.order.capacity())
    }
}

#[inline]
fn reserve<T>(of: &mut Vec<T>, more: usize) -> Result<(), EngineError> {
    #[cfg(test)]
    tests::take::<T>(of.len(), more)?;
    of.try_reserve(more)
        .map_err(|_| EngineError::OutOfProcessMemory)
}

fn reserve_exact<T>(of: &mut Vec<T>, more: usize) -> Result<(), EngineError> {
    #[cfg(test)]
    tests::take::<T>(of.len(), more)?;
    of.try_reserve_exact(more)
        .map_err(|_| EngineError::OutOfProcessMemory)
}

#[cfg(test)]
mod tests {
    use super::KeyList;
    use crate::errors::EngineError;
    use std::cell::Cell;

    thread_local! {
        /// Bytes that a list of this thread may hold in one of its parts.
        static BYTES_MAX: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    /// Fails as an allocator does that has no more.
    pub(super) fn take<T>(held: usize, more: usize) -> Result<(), EngineError> {
        if held.saturating_add(more).saturating_mul(size_of::<T>()) > BYTES_MAX.get() {
            return Err(EngineError::OutOfProcessMemory);
        }
        Ok(())
    }

    fn filled(values: impl IntoIterator<Item = u32>) -> Result<KeyList, EngineError> {
        let mut list = KeyList::new();
        for value in values {
            let bytes = value.to_be_bytes();
            list.push(&bytes[..1], &bytes[1..])?;
        }
        Ok(list)
    }

    fn values(list: &KeyList) -> Vec<u32> {
        (0..list.len())
            .map(|place| u32::from_be_bytes(list.get(place).try_into().expect("four bytes")))
            .collect()
    }

    #[test]
    fn values_come_in_order_and_once() {
        for unsorted in [
            vec![],
            vec![7],
            vec![7, 7],
            vec![1, 2, 3],
            vec![3, 2, 1],
            vec![5, 1, 5, 1, 9, 0, 256, 255],
        ] {
            let mut list = filled(unsorted.iter().copied()).expect("memory");
            assert_eq!(values(&list), unsorted);
            list.sort(|| {}).expect("memory");
            let mut expected = unsorted.clone();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(values(&list), expected);
            assert_eq!(list.is_empty(), expected.is_empty());
            list.clear();
            assert!(list.is_empty());
            assert_eq!(list.len(), 0);
        }
    }

    #[test]
    fn values_of_any_length_are_kept_apart() {
        let mut list = KeyList::new();
        for (first, rest) in [("b", ""), ("", ""), ("a", "bc"), ("ab", ""), ("", "b")] {
            list.push(first.as_bytes(), rest.as_bytes())
                .expect("memory");
        }
        list.append_to_last(b"a").expect("memory");
        list.sort(|| {}).expect("memory");
        let sorted: Vec<_> = (0..list.len()).map(|place| list.get(place)).collect();
        assert_eq!(sorted, [&b""[..], b"ab", b"abc", b"b", b"ba"]);
    }

    #[test]
    fn a_value_that_was_given_several_times_is_one_that_can_grow() {
        let mut list = filled([7, 7, 7]).expect("memory");
        list.sort(|| {}).expect("memory");
        list.append_to_last(b"!").expect("memory");
        assert_eq!((list.len(), list.get(0)), (1, &b"\0\0\0\x07!"[..]));
    }

    #[test]
    fn a_value_costs_its_bytes_and_eight() {
        const COUNT: u32 = 1_000_000;
        let mut list = KeyList::new();
        list.reserve(COUNT as usize, COUNT as usize * 4)
            .expect("memory");
        for number in 0..COUNT {
            let value = number.wrapping_mul(2_654_435_761);
            list.push(&value.to_be_bytes(), &[]).expect("memory");
        }
        let mut looks = 0;
        list.sort(|| looks += 1).expect("memory");
        assert_eq!(list.len(), COUNT as usize);
        assert!(list.held_bytes() <= 12 * COUNT as usize);
        assert!(looks > COUNT as usize / 4096);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let is_refused = |outcome: Result<(), EngineError>| {
            matches!(outcome, Err(EngineError::OutOfProcessMemory))
        };
        BYTES_MAX.set(4000);
        assert!(is_refused(filled(0..1001).map(drop)));
        let mut list = filled((0..1000).rev()).expect("as much as there is");
        assert!(is_refused(list.push(&[1], &[2])));
        assert!(is_refused(list.reserve(1, 0)));
        assert!(is_refused(list.reserve(0, usize::MAX)));
        // What was there is there.
        assert_eq!(values(&list), (0..1000).rev().collect::<Vec<_>>());
        BYTES_MAX.set(3999);
        assert!(is_refused(list.sort(|| {})));
        BYTES_MAX.set(usize::MAX);
        list.sort(|| {}).expect("memory");
        assert_eq!(values(&list), (0..1000).collect::<Vec<_>>());
        // The allocator's own refusal.
        assert!(is_refused(list.reserve(usize::MAX / 2, 0)));
    }
}
