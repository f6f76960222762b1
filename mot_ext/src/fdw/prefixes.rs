//! The prefixes of keys that a scan's tests fix: one for each combination of what the leading columns may be, in key order.
//!
//! They are multiplied out, column by column, unless `= ANY` tests of several columns make very many of them. Then what the last
//! columns may be is kept apart, and each prefix made when its turn comes.
use mot_engine::Direction;
use pgrx::pg_sys;

/// Prefixes that tests of several columns are multiplied out to.
const MULTIPLIED_MAX: usize = 4096;

/// Prefixes whose memory is kept for the next execution.
const KEPT_MAX: usize = 1024;

/// The prefixes, and how far they were given.
pub struct Prefixes {
    multiplied: Vec<Vec<u8>>,
    /// What the fixed columns behind those of `multiplied` may be, one column after the other.
    factors: Vec<Vec<Vec<u8>>>,
    /// One of `multiplied` and a value of each of `factors`: the prefix last given, if there are factors.
    combined: Vec<u8>,
    next: usize,
    /// The one of `multiplied` last given, if there are none.
    current: usize,
}

impl Prefixes {
    /// None.
    pub fn new() -> Prefixes {
        Prefixes {
            multiplied: Vec::new(),
            factors: Vec::new(),
            combined: Vec::new(),
            next: 0,
            current: 0,
        }
    }

    /// The empty prefix, of no column.
    pub fn begin(&mut self) {
        self.next = 0;
        self.factors.clear();
        match self.multiplied.first_mut() {
            Some(first) => first.clear(),
            None => self.multiplied.push(Vec::new()),
        }
        self.multiplied.truncate(1);
    }

    /// None: no row can pass.
    pub fn clear(&mut self) {
        self.multiplied.clear();
    }

    /// None, and gives back the memory of very many.
    pub fn end(&mut self) {
        if self.multiplied.len() > KEPT_MAX || !self.factors.is_empty() {
            *self = Prefixes::new();
        }
    }

    /// Fixes the next column to one value.
    pub fn extend(&mut self, value: &[u8]) {
        if !self.factors.is_empty() {
            self.factors.push(vec![value.to_vec()]);
            return;
        }
        for prefix in &mut self.multiplied {
            prefix.extend_from_slice(value);
        }
    }

    /// Fixes the next column to any of several values, which are in key order, without repetition.
    pub fn multiply(&mut self, values: Vec<Vec<u8>>) {
        let count = self.multiplied.len().saturating_mul(values.len());
        let is_too_many = self.multiplied.len() > 1 && count > MULTIPLIED_MAX;
        if is_too_many || !self.factors.is_empty() {
            self.factors.push(values);
            return;
        }
        let shorter = std::mem::take(&mut self.multiplied);
        for prefix in &shorter {
            for value in &values {
                let mut longer = Vec::with_capacity(prefix.len() + value.len());
                longer.extend_from_slice(prefix);
                longer.extend_from_slice(value);
                self.multiplied.push(longer);
            }
        }
    }

    /// All, if they are several, all made, and none was given yet; then they all are.
    pub fn take_all(&mut self) -> Option<impl DoubleEndedIterator<Item = &[u8]>> {
        let count = self.multiplied.len();
        if count < 2 || self.next > 0 || !self.factors.is_empty() {
            return None;
        }
        self.next = count;
        Some(self.multiplied.iter().map(|prefix| &prefix[..]))
    }

    /// The next one in the direction. What the caller appends he takes away again.
    pub fn next(&mut self, direction: Direction) -> Option<&mut Vec<u8>> {
        let turn = self.next;
        let count = self.multiplied.len();
        if !self.factors.is_empty() {
            self.combine(turn, direction)?;
            self.next += 1;
            return Some(&mut self.combined);
        }
        if turn >= count {
            return None;
        }
        self.next += 1;
        self.current = at(turn, count, direction);
        Some(&mut self.multiplied[self.current])
    }

    /// The one last given.
    pub fn current(&self) -> &[u8] {
        if self.factors.is_empty() {
            &self.multiplied[self.current]
        } else {
            &self.combined
        }
    }

    /// Makes the one whose turn it is: the last column's values follow each other fastest. `None`: all had their turn.
    fn combine(&mut self, turn: usize, direction: Direction) -> Option<()> {
        let mut places = [0; pg_sys::INDEX_MAX_KEYS as usize];
        let mut rest = turn;
        for (place, values) in places.iter_mut().zip(&self.factors).rev() {
            *place = at(rest % values.len(), values.len(), direction);
            rest /= values.len();
        }
        if rest >= self.multiplied.len() {
            return None;
        }
        let first = at(rest, self.multiplied.len(), direction);
        self.combined.clear();
        self.combined.extend_from_slice(&self.multiplied[first]);
        for (place, values) in places.iter().zip(&self.factors) {
            self.combined.extend_from_slice(&values[*place]);
        }
        Some(())
    }
}

/// The place of what has its turn.
fn at(turn: usize, count: usize, direction: Direction) -> usize {
    match direction {
        Direction::Forward => turn,
        Direction::Backward => count - 1 - turn,
    }
}
