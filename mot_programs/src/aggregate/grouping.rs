//! GROUP BY: groups by plain values, in a table of their hashes, within the memory that
//! PostgreSQL's hashed aggregates may take.
//!
//! PostgreSQL's spill to files when there are more groups than fit. Here the rows are read again: a
//! pass takes only groups whose hashes lie in a range, which is cut in two whenever the table is
//! full; the next pass begins where this one's range ended. Rows and conditions are the same in
//! each pass (the planner offers nothing else).
//!
//! Hashes are spread evenly, so a pass tells how large a range the next one may take to fit at
//! once. Where that would come to more than [`PASSES_MAX`] passes, the rest is divided among those
//! that are left, and takes the memory that it takes: reading a large table a hundred times is
//! worse.
use super::accumulate::Accumulator;
use super::wide::Wide;
use crate::filter::{Number, Numbers, ROWS, Rows, WordKind, members};
use mot_engine::EngineError;

/// Columns that a group is of at most.
pub const KEYS_MAX: usize = 2;
/// Passes over the rows at most.
const PASSES_MAX: u32 = 8;
/// Of what fits, how much the next pass's range is made for: what it comes to differs a little.
const FILLED: f64 = 0.8;
/// Places of an empty table.
const PLACES_MIN: usize = 64;

/// A column of GROUP BY.
pub struct Key {
    /// Its value.
    pub number: Number,
    /// Of which kind that is.
    pub kind: WordKind,
}

/// The values of a group's columns, and a bit for each that is NULL.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct KeyValues {
    /// 0 where NULL.
    pub numbers: [i64; KEYS_MAX],
    /// Bits, the first column's the lowest.
    pub null: u8,
}

/// What has been grouped of a pass.
pub struct Groups<W: Wide> {
    /// Places by hash, as many as a power of two: a group's number and 1, or 0.
    places: Vec<u32>,
    hashes: Vec<u64>,
    values: Vec<KeyValues>,
    /// For each group one of each aggregate.
    accumulators: Vec<Accumulator<W>>,
    aggregates: usize,
    /// Hashes that this pass takes: from, and up to.
    first: u64,
    last: u64,
    /// This pass's number, from 1.
    pub pass: u32,
    /// Bytes that this pass may take; `None`: what it needs.
    limit: Option<usize>,
    /// The next group to give.
    given: usize,
    /// Keeps what does not fit into accumulators.
    wide: W,
}

impl KeyValues {
    fn hash(&self) -> u64 {
        let mut hash = u64::from(self.null).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for number in self.numbers {
            hash = mix(hash ^ number as u64);
        }
        hash
    }
}

/// The last step of MurmurHash3: every bit of the result depends on every bit.
fn mix(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    bits ^ bits >> 33
}

/// Bytes that a group of so many aggregates takes.
pub fn bytes_of_group<W: Wide>(aggregates: usize) -> usize {
    size_of::<KeyValues>()
        + size_of::<u64>()
        + 4 * size_of::<u32>()
        + aggregates * size_of::<Accumulator<W>>()
}

impl<W: Wide> Groups<W> {
    /// Without groups, for so many aggregates.
    pub fn new(aggregates: usize, wide: W) -> Groups<W> {
        Groups {
            places: Vec::new(),
            hashes: Vec::new(),
            values: Vec::new(),
            accumulators: Vec::new(),
            aggregates,
            first: 0,
            last: u64::MAX,
            pass: 1,
            limit: None,
            given: 0,
            wide,
        }
    }

    /// Begins the first pass.
    pub fn begin(&mut self, limit: usize) {
        self.clear();
        (self.first, self.last) = (0, u64::MAX);
        (self.pass, self.limit) = (1, Some(limit));
    }

    /// Begins the next pass; false: all groups were given.
    pub fn begin_next(&mut self, limit: usize) -> bool {
        if self.last == u64::MAX {
            self.clear();
            return false;
        }
        let width = (self.last - self.first) as f64 + 1.0;
        let bytes = self.bytes() as f64;
        let fitting = width / bytes.max(1.0) * (limit as f64 * FILLED);
        let rest = u64::MAX - self.last;
        let share = rest / u64::from(PASSES_MAX.saturating_sub(self.pass).max(1));
        self.clear();
        self.pass += 1;
        self.first = self.last + 1;
        // A cast of what is too large gives the largest.
        let wanted = (fitting as u64).max(share).max(1);
        self.limit = (fitting >= share as f64 && self.pass < PASSES_MAX).then_some(limit);
        self.last = match self.pass < PASSES_MAX {
            true => self.last.saturating_add(wanted),
            false => u64::MAX,
        };
        true
    }

    /// Bytes that the groups take.
    fn bytes(&self) -> usize {
        self.values.len() * bytes_of_group::<W>(self.aggregates) + self.wide.bytes()
    }

    /// Forgets the groups, and gives their memory back.
    fn clear(&mut self) {
        for accumulator in &mut self.accumulators {
            accumulator.clear();
        }
        self.places = Vec::new();
        self.hashes = Vec::new();
        self.values = Vec::new();
        self.accumulators = Vec::new();
        self.given = 0;
    }

    /// Before rows are added, which may all be of new groups.
    pub fn make_room(&mut self) -> Result<(), EngineError> {
        if let Some(limit) = self.limit {
            let room = ROWS * bytes_of_group::<W>(self.aggregates);
            loop {
                let bytes = self.bytes();
                let is_full = bytes + room > limit && self.values.len() > ROWS;
                if !is_full || self.last == self.first {
                    break;
                }
                self.last = self.first + (self.last - self.first) / 2;
                self.keep_range();
            }
        }
        self.reserve()
    }

    /// Drops the groups beyond the pass's range.
    fn keep_range(&mut self) {
        let mut kept = 0;
        for at in 0..self.values.len() {
            let accumulators = at * self.aggregates..(at + 1) * self.aggregates;
            if self.hashes[at] > self.last {
                for accumulator in &mut self.accumulators[accumulators] {
                    accumulator.clear();
                }
                continue;
            }
            self.hashes[kept] = self.hashes[at];
            self.values[kept] = self.values[at];
            for (number, from) in accumulators.enumerate() {
                self.accumulators
                    .swap(kept * self.aggregates + number, from);
            }
            kept += 1;
        }
        self.hashes.truncate(kept);
        self.values.truncate(kept);
        self.accumulators.truncate(kept * self.aggregates);
        self.fill_places();
    }

    /// Makes room for a group of each row.
    fn reserve(&mut self) -> Result<(), EngineError> {
        // Places hold 32 bits.
        if self.values.len() + ROWS >= u32::MAX as usize {
            return Err(EngineError::OutOfProcessMemory);
        }
        let no_memory = |_| EngineError::OutOfProcessMemory;
        self.hashes.try_reserve(ROWS).map_err(no_memory)?;
        self.values.try_reserve(ROWS).map_err(no_memory)?;
        let accumulators = ROWS * self.aggregates;
        self.accumulators
            .try_reserve(accumulators)
            .map_err(no_memory)?;
        // Half of the places stay free.
        let wanted = (2 * (self.values.len() + ROWS))
            .next_power_of_two()
            .max(PLACES_MIN);
        if wanted > self.places.len() {
            let more = wanted - self.places.len();
            self.places.try_reserve(more).map_err(no_memory)?;
            self.places.resize(wanted, 0);
            self.fill_places();
        }
        Ok(())
    }

    fn fill_places(&mut self) {
        self.places.fill(0);
        let mask = self.places.len().wrapping_sub(1);
        for (number, hash) in self.hashes.iter().enumerate() {
            let mut place = *hash as usize & mask;
            while self.places[place] != 0 {
                place = (place + 1) & mask;
            }
            self.places[place] = number as u32 + 1;
        }
    }

    /// The number of a row's group, which is made if need be, with a new accumulator for each of
    /// the aggregates; `None`: it is another pass's. There is room.
    #[inline]
    pub fn find(
        &mut self,
        values: KeyValues,
        new: impl Iterator<Item = Accumulator<W>>,
    ) -> Option<usize> {
        let hash = values.hash();
        if hash < self.first || hash > self.last {
            return None;
        }
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            match self.places[place] {
                0 => break,
                number => {
                    let group = number as usize - 1;
                    if self.hashes[group] == hash && self.values[group] == values {
                        return Some(group);
                    }
                }
            }
            place = (place + 1) & mask;
        }
        let group = self.values.len();
        self.places[place] = group as u32 + 1;
        self.hashes.push(hash);
        self.values.push(values);
        self.accumulators.extend(new);
        Some(group)
    }

    /// The accumulators of a group.
    #[inline]
    pub fn accumulator(&mut self, group: usize, aggregate: usize) -> &mut Accumulator<W> {
        &mut self.accumulators[group * self.aggregates + aggregate]
    }

    /// All accumulators of a group.
    pub fn accumulators_of(&mut self, group: usize) -> &mut [Accumulator<W>] {
        &mut self.accumulators[group * self.aggregates..][..self.aggregates]
    }

    /// The next group to give: its values, and its number.
    #[expect(
        clippy::should_implement_trait,
        reason = "groups are given between passes"
    )]
    pub fn next(&mut self) -> Option<(KeyValues, usize)> {
        let group = self.given;
        let values = *self.values.get(group)?;
        self.given += 1;
        Some((values, group))
    }
}

/// The values of some rows' keys, put together from those of each column.
pub fn put_together(rows: Rows, columns: &[(Box<Numbers>, Rows)], values: &mut [KeyValues; ROWS]) {
    for at in members(rows) {
        let mut found = KeyValues::default();
        for (number, (numbers, null)) in columns.iter().enumerate() {
            if null >> at & 1 != 0 {
                found.null |= 1 << number;
            } else {
                found.numbers[number] = numbers[at];
            }
        }
        values[at] = found;
    }
}
