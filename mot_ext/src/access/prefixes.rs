//! The prefixes of keys that a scan's tests fix, in key order: one for each combination of the
//! leading columns' values.
//!
//! They are multiplied out, column by column, up to some thousands. The values of the columns after
//! those are kept apart, and each further prefix is made when its turn comes. So a client's list is
//! in memory once, and each allocation for it may fail.
use mot_engine::key::KeyList;
use mot_engine::{Direction, EngineError};
use pgrx::pg_sys;

/// Prefixes that are multiplied out, and that are given at once.
const MULTIPLIED_MAX: usize = 4096;

/// Bytes whose memory is kept for the next execution.
const BYTES_KEPT: usize = 64 << 10;

/// The prefixes, and how far they were given.
pub struct Prefixes {
    multiplied: KeyList,
    /// What the fixed columns behind those of `multiplied` may be, one column after the other.
    factors: Vec<KeyList>,
    /// The prefix last given.
    combined: Vec<u8>,
    next: usize,
    /// Nothing but memory, between two calls.
    spare: KeyList,
}

impl Prefixes {
    /// None.
    pub fn new() -> Prefixes {
        Prefixes {
            multiplied: KeyList::new(),
            factors: Vec::new(),
            combined: Vec::new(),
            next: 0,
            spare: KeyList::new(),
        }
    }

    /// The empty prefix, of no column.
    pub fn begin(&mut self) -> Result<(), EngineError> {
        self.next = 0;
        self.factors.clear();
        self.multiplied.clear();
        self.multiplied.push(&[], &[])
    }

    /// Gives all once more. False: there are none.
    pub fn again(&mut self) -> bool {
        self.next = 0;
        !self.multiplied.is_empty()
    }

    /// None: no row can pass.
    pub fn clear(&mut self) {
        self.factors.clear();
        self.multiplied.clear();
    }

    /// None, and gives back the memory of very many.
    pub fn end(&mut self) {
        let held = self.multiplied.held_bytes() + self.spare.held_bytes();
        if held > BYTES_KEPT || !self.factors.is_empty() {
            *self = Prefixes::new();
        }
    }

    /// An empty list, for [`Prefixes::multiply`].
    pub fn list(&mut self) -> KeyList {
        self.spare.clear();
        std::mem::take(&mut self.spare)
    }

    /// Fixes the next column to one value.
    pub fn extend(&mut self, value: &[u8]) -> Result<(), EngineError> {
        if self.multiplied.len() == 1 && self.factors.is_empty() {
            return self.multiplied.append_to_last(value);
        }
        let mut values = self.list();
        values.push(value, &[])?;
        self.multiply(values)
    }

    /// Fixes the next column to any of several values, which are in key order, without repetition.
    pub fn multiply(&mut self, values: KeyList) -> Result<(), EngineError> {
        let count = self.multiplied.len().saturating_mul(values.len());
        if count > MULTIPLIED_MAX || !self.factors.is_empty() {
            self.factors
                .try_reserve(1)
                .map_err(|_| EngineError::OutOfProcessMemory)?;
            self.factors.push(values);
            return Ok(());
        }
        let is_first = self.multiplied.len() == 1 && self.multiplied.get(0).is_empty();
        let longer = if is_first {
            values
        } else {
            let mut longer = KeyList::new();
            for prefix in 0..self.multiplied.len() {
                for value in 0..values.len() {
                    longer.push(self.multiplied.get(prefix), values.get(value))?;
                }
            }
            longer
        };
        self.spare = std::mem::replace(&mut self.multiplied, longer);
        Ok(())
    }

    /// The next ones in the direction, no more than some thousands, if there are several; else
    /// `None`, and [`Prefixes::next`] gives what there is.
    pub fn take(
        &mut self,
        direction: Direction,
    ) -> Result<Option<impl Iterator<Item = &[u8]>>, EngineError> {
        let (list, direction) = if self.factors.is_empty() {
            let count = self.multiplied.len();
            if count < 2 || self.next > 0 {
                return Ok(None);
            }
            self.next = count;
            (&self.multiplied, direction)
        } else {
            let mut taken = self.list();
            while taken.len() < MULTIPLIED_MAX && self.combine(direction) {
                taken.push(&self.combined, &[])?;
            }
            self.spare = taken;
            if self.spare.is_empty() {
                return Ok(None);
            }
            (&self.spare, Direction::Forward)
        };
        let count = list.len();
        Ok(Some(
            (0..count).map(move |turn| list.get(at(turn, count, direction))),
        ))
    }

    /// The next prefix in the direction. The caller removes what it appends to it.
    pub fn next(&mut self, direction: Direction) -> Option<&mut Vec<u8>> {
        self.combine(direction).then_some(&mut self.combined)
    }

    /// The one last given.
    pub fn current(&self) -> &[u8] {
        &self.combined
    }

    /// Whether they are so many that reading the next index entry pays.
    pub fn are_very_many(&self) -> bool {
        !self.factors.is_empty()
    }

    /// Passes over the prefixes before a key in this direction. One that the key begins with stays.
    /// `None` passes over all.
    pub fn pass_over(&mut self, key: Option<&[u8]>, direction: Direction) {
        // Of more combinations than there are numbers none is passed over.
        if let Some(turn) = self.turn_of(key, direction) {
            self.next = self.next.max(turn);
        }
    }

    /// Whose turn it is at a key, or behind it if no prefix has its values.
    fn turn_of(&self, key: Option<&[u8]>, direction: Direction) -> Option<usize> {
        let mut turn: usize = 0;
        // The rest of the key, as long as all values before are its own.
        let mut rest = key;
        let mut is_over = key.is_none();
        for values in std::iter::once(&self.multiplied).chain(&self.factors) {
            let count = values.len();
            let place = match rest {
                Some(rest) => passed(values, rest, direction),
                None if is_over => count,
                None => 0,
            };
            is_over = false;
            // Behind its last value a column begins anew, and the one before has its next.
            turn = turn.checked_mul(count)?.checked_add(place)?;
            rest = match rest {
                Some(rest) if place < count => {
                    rest.strip_prefix(values.get(at(place, count, direction)))
                }
                _ => None,
            };
        }
        Some(turn)
    }

    /// Makes the one whose turn it is: the last column's values follow each other fastest. False:
    /// all had their turn.
    fn combine(&mut self, direction: Direction) -> bool {
        let turn = self.next;
        let count = self.multiplied.len();
        if self.factors.is_empty() {
            if turn >= count {
                return false;
            }
            let place = at(turn, count, direction);
            self.combined.clear();
            self.combined.extend_from_slice(self.multiplied.get(place));
        } else {
            let mut places = [0; pg_sys::INDEX_MAX_KEYS as usize];
            let mut rest = turn;
            for (place, values) in places.iter_mut().zip(&self.factors).rev() {
                *place = at(rest % values.len(), values.len(), direction);
                rest /= values.len();
            }
            if rest >= count {
                return false;
            }
            let first = at(rest, count, direction);
            self.combined.clear();
            self.combined.extend_from_slice(self.multiplied.get(first));
            for (place, values) in places.iter().zip(&self.factors) {
                self.combined.extend_from_slice(values.get(*place));
            }
        }
        self.next += 1;
        true
    }
}

/// Counts the values before a key in this direction. One that the key begins with does not count:
/// no value's encoding begins with another's.
fn passed(values: &KeyList, key: &[u8], direction: Direction) -> usize {
    let count = values.len();
    let is_before = |turn: usize| {
        let value = values.get(at(turn, count, direction));
        match direction {
            Direction::Forward => value < key && !key.starts_with(value),
            Direction::Backward => value > key,
        }
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        match is_before(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// The place of what has its turn.
fn at(turn: usize, count: usize, direction: Direction) -> usize {
    match direction {
        Direction::Forward => turn,
        Direction::Backward => count - 1 - turn,
    }
}
