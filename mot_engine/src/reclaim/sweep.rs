//! The background sweep: settles hints, reclaims what the horizon allows, visits only rows that were left with something to do.

use super::Sweeping;
use super::clean::prune_row;
use crate::clock::Clock;
use crate::engine::State;
use crate::ids::Slot;
use crate::row::{Judged, judge_maker};
use crate::session::Session;
use crate::table::{DIRTY_WORD_SLOTS, Directory, GROUP_SLOTS, TableRef};
use std::sync::atomic::Ordering;

/// Dirty groups taken and not swept yet: set again should the clock unwind.
struct Groups<'a> {
    directory: &'a Directory,
    word_start: u64,
    bits: u64,
}

impl Groups<'_> {
    fn first(&self) -> Option<u64> {
        let group = u64::from(self.bits.trailing_zeros());
        (self.bits != 0).then(|| self.word_start + group * GROUP_SLOTS)
    }

    fn done(&mut self) {
        self.bits &= self.bits - 1;
    }
}

impl Drop for Groups<'_> {
    fn drop(&mut self) {
        while let Some(first) = self.first() {
            self.directory.set_dirty(Slot(first));
            self.done();
        }
    }
}

/// What a sweep did.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Sweep {
    /// Rows looked at.
    pub rows_visited: u64,
    /// Versions taken out.
    pub versions_removed: u64,
    /// Where to go on; `None` at the end of the table.
    pub next: Option<Slot>,
}

impl Session {
    /// Sweeps a table from a slot on, until about `rows_max` rows have been looked at. The table is kept alive by the caller (a relation
    /// lock or a `Walk`). Only one process sweeps at a time.
    pub fn sweep(&self, clock: &impl Clock, table: TableRef, from: Slot, rows_max: u64) -> Sweep {
        let mut done = Sweep::default();
        let end = table.slots_end().0;
        let directory = &table.storage().directory;
        let mut word_start = from.0 - from.0 % DIRTY_WORD_SLOTS;
        while word_start < end {
            let mut groups = Groups {
                directory,
                word_start,
                bits: directory.take_dirty(Slot(word_start)),
            };
            while let Some(first) = groups.first() {
                let slots = first..(first + GROUP_SLOTS).min(end);
                if self.sweep_group(clock, table, slots, &mut done) {
                    directory.set_dirty(Slot(first));
                }
                groups.done();
            }
            drop(groups);
            word_start += DIRTY_WORD_SLOTS;
            if done.rows_visited >= rows_max && word_start < end {
                done.next = Some(Slot(word_start));
                return done;
            }
        }
        done
    }

    /// Sweeps every table whose rows the horizon may have freed since it was swept last, about `rows_max` rows each, and frees what was
    /// dropped. For the reclaimer.
    pub fn sweep_all(&self, clock: &impl Clock, rows_max: u64) -> Sweep {
        let mut total = Sweep::default();
        let horizon = self.engine().horizon().0;
        for walk in self.tables() {
            let table = walk.table();
            if table.storage().swept.load(Ordering::Relaxed) == horizon {
                continue;
            }
            let mut from = Slot(0);
            loop {
                let done = self.sweep(clock, table, from, rows_max);
                total.rows_visited += done.rows_visited;
                total.versions_removed += done.versions_removed;
                match done.next {
                    Some(next) => from = next,
                    None => break,
                }
            }
            table.storage().swept.store(horizon, Ordering::Relaxed);
        }
        if self.engine().state() == State::Replaying {
            self.settle_definitions(clock);
        }
        crate::transaction::free_doomed(self);
        self.local.collect();
        total
    }

    /// Sweeps rows that share a dirty bit; `true` if something is left to do there later.
    fn sweep_group(
        &self,
        clock: &impl Clock,
        table: TableRef,
        slots: std::ops::Range<u64>,
        done: &mut Sweep,
    ) -> bool {
        let Some(_sweeping) = Sweeping::begin(table) else {
            return true;
        };
        let _pin = self.local.pin();
        let mut left = false;
        for slot in slots.map(Slot) {
            done.rows_visited += 1;
            left |= self.sweep_row(clock, table, slot, done);
        }
        left
    }

    /// Judges, prunes; `true` if the row has something left to do.
    fn sweep_row(&self, clock: &impl Clock, table: TableRef, slot: Slot, done: &mut Sweep) -> bool {
        let Some(anchor) = table.anchor(slot) else {
            return false;
        };
        let mut at = anchor.head().version();
        while let Some(version) = at {
            at = version.next();
            let _: Judged = judge_maker(version, clock);
        }
        done.versions_removed += prune_row(self, table, slot) as u64;
        let Some(newest) = anchor.head().version() else {
            return false;
        };
        let now = newest.flags();
        let settled = crate::row::flags::COMMITTED;
        newest.next().is_some() || newest.is_tombstone() || now & settled == 0
    }
}
