//! GROUP BY: groups by plain values, in a table of their hashes, within the memory that core's
//! hashed aggregates may take.
//!
//! Core's spill to files when there are more groups than fit. Here the rows are read again: a pass
//! takes only groups whose hashes lie in a range, which is cut in two whenever the table is full;
//! the next pass begins where this one's range ended. Rows and conditions are the same in each pass
//! (the planner offers nothing else).
//!
//! Hashes are spread evenly, so a pass tells how large a range the next one may take to fit at
//! once. Where that would come to more than [`PASSES_MAX`] passes, the rest is divided among those
//! that are left, and takes the memory that it takes: reading a large table a hundred times is
//! worse.
use super::accumulate::{Accumulator, Kept};
use crate::errors;
use crate::executor::filter::{Kind, Number, Numbers, ROWS, Rows, members};
use mot_engine::EngineError;
use pgrx::pg_sys;

/// Columns that a group is of at most.
pub const KEYS_MAX: usize = 2;
/// Passes over the rows at most.
const PASSES_MAX: u32 = 8;
/// Of what fits, how much the next pass's range is made for: what it comes to differs a little.
const FILLED: f64 = 0.8;
/// How often the expected groups have to fit for the path to be offered, for expectations err.
pub const TIMES_FITTING: f64 = 4.0;
/// Places of an empty table.
const PLACES_MIN: usize = 64;

/// A column of GROUP BY.
pub struct Key {
    pub number: Number,
    pub kind: Kind,
}

/// The values of a group's columns, and a bit for each that is NULL.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Values {
    pub numbers: [i64; KEYS_MAX],
    pub null: u8,
}

/// What has been grouped of a pass.
pub struct Groups {
    /// Places by hash, as many as a power of two: a group's number and 1, or 0.
    places: Vec<u32>,
    hashes: Vec<u64>,
    values: Vec<Values>,
    /// For each group one of each aggregate.
    pub accumulators: Vec<Accumulator>,
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
    /// Where accumulators keep what does not fit into them.
    pub kept: *mut Kept,
}

impl Values {
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
pub fn bytes_of_group(aggregates: usize) -> usize {
    size_of::<Values>()
        + size_of::<u64>()
        + 4 * size_of::<u32>()
        + aggregates * size_of::<Accumulator>()
}

/// Bytes that hash tables may take.
pub fn memory_limit() -> usize {
    // SAFETY: plain variables of this process.
    let (work_mem, multiplier) = unsafe { (pg_sys::work_mem, pg_sys::hash_mem_multiplier) };
    (f64::from(work_mem) * 1024.0 * multiplier) as usize
}

impl Groups {
    pub fn new(aggregates: usize, kept: *mut Kept) -> Groups {
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
            kept,
        }
    }

    /// Begins the first pass.
    pub unsafe fn begin(&mut self, limit: usize) {
        // SAFETY: as there.
        unsafe { self.clear() };
        (self.first, self.last) = (0, u64::MAX);
        (self.pass, self.limit) = (1, Some(limit));
    }

    /// Begins the next pass; false: all groups were given.
    pub unsafe fn begin_next(&mut self, limit: usize) -> bool {
        if self.last == u64::MAX {
            // SAFETY: as there.
            unsafe { self.clear() };
            return false;
        }
        let width = (self.last - self.first) as f64 + 1.0;
        // SAFETY: as there.
        let bytes = unsafe { self.bytes() } as f64;
        let fitting = width / bytes.max(1.0) * (limit as f64 * FILLED);
        let rest = u64::MAX - self.last;
        let share = rest / u64::from(PASSES_MAX.saturating_sub(self.pass).max(1));
        // SAFETY: as there.
        unsafe { self.clear() };
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
    unsafe fn bytes(&self) -> usize {
        // SAFETY: what is counted there lives as long as the node.
        let kept = unsafe { (*self.kept).bytes };
        self.values.len() * bytes_of_group(self.aggregates) + kept
    }

    /// Forgets the groups, and gives their memory back.
    unsafe fn clear(&mut self) {
        for accumulator in &mut self.accumulators {
            // SAFETY: as there.
            unsafe { accumulator.clear() };
        }
        self.places = Vec::new();
        self.hashes = Vec::new();
        self.values = Vec::new();
        self.accumulators = Vec::new();
        self.given = 0;
    }

    /// Before rows are added, which may all be of new groups.
    pub unsafe fn make_room(&mut self) {
        if let Some(limit) = self.limit {
            let room = ROWS * bytes_of_group(self.aggregates);
            loop {
                // SAFETY: as there.
                let bytes = unsafe { self.bytes() };
                let is_full = bytes + room > limit && self.values.len() > ROWS;
                if !is_full || self.last == self.first {
                    break;
                }
                self.last = self.first + (self.last - self.first) / 2;
                // SAFETY: as there.
                unsafe { self.keep_range() };
            }
        }
        if let Err(error) = self.reserve() {
            errors::raise(error);
        }
    }

    /// Drops the groups beyond the pass's range.
    unsafe fn keep_range(&mut self) {
        let mut kept = 0;
        for at in 0..self.values.len() {
            let accumulators = at * self.aggregates..(at + 1) * self.aggregates;
            if self.hashes[at] > self.last {
                for accumulator in &mut self.accumulators[accumulators] {
                    // SAFETY: as there.
                    unsafe { accumulator.clear() };
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
        values: Values,
        new: impl Iterator<Item = Accumulator>,
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
    pub fn accumulator(&mut self, group: usize, aggregate: usize) -> &mut Accumulator {
        &mut self.accumulators[group * self.aggregates + aggregate]
    }

    /// All accumulators of a group.
    pub fn accumulators_of(&mut self, group: usize) -> &mut [Accumulator] {
        &mut self.accumulators[group * self.aggregates..][..self.aggregates]
    }

    /// The next group to give: its values, and its number.
    pub fn next(&mut self) -> Option<(Values, usize)> {
        let group = self.given;
        let values = *self.values.get(group)?;
        self.given += 1;
        Some((values, group))
    }
}

/// The values of some rows' keys, put together from those of each column.
pub fn put_together(rows: Rows, columns: &[(Box<Numbers>, Rows)], values: &mut [Values; ROWS]) {
    for at in members(rows) {
        let mut found = Values::default();
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
