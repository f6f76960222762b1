//! The background sweep: resolves versions, removes what the horizon allows, and visits only rows
//! whose dirty bit says that something is to be done.

use super::Sweeping;
use super::clean::prune_row;
use super::clear_keys_moved::clear_keys_moved;
use super::prefetch::GroupPrefetcher;
use crate::clock::Clock;
use crate::ids::RowId;
use crate::pause::{Point, reach};
use crate::row::{Head, TxnStatus, prefetch_header, resolve_maker};
use crate::session::Session;
use crate::table::{DIRTY_WORD_ROW_IDS, Directory, GROUP_ROW_IDS, TableRef};

/// Dirty groups taken and not swept yet: set again should the clock unwind.
struct Groups<'a> {
    directory: &'a Directory,
    word_start: u64,
    bits: u64,
}

impl Groups<'_> {
    fn first(&self) -> Option<u64> {
        let group = u64::from(self.bits.trailing_zeros());
        (self.bits != 0).then(|| self.word_start + group * GROUP_ROW_IDS)
    }

    fn done(&mut self) {
        self.bits &= self.bits - 1;
    }
}

impl Drop for Groups<'_> {
    fn drop(&mut self) {
        while let Some(first) = self.first() {
            self.directory.set_dirty(RowId(first));
            self.done();
        }
    }
}

/// The bits of a word's groups that have row ids below `end`.
fn groups_below(end: u64, word_start: u64) -> u64 {
    match end.saturating_sub(word_start).div_ceil(GROUP_ROW_IDS) {
        count @ 0..64 => (1 << count) - 1,
        _ => u64::MAX,
    }
}

/// What a sweep did.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default)]
pub struct Sweep {
    /// Rows examined.
    pub rows_visited: u64,
    /// Versions, ended locks and dead rows' tombstones taken out.
    pub versions_removed: u64,
    /// Groups of rows that have something left to do at a later horizon.
    pub groups_waiting: u64,
    /// Those among them that were not examined: a process keeps sweeps out of the table for a
    /// while.
    pub groups_kept_out: u64,
}

impl Session {
    /// Sweeps a table: the rows that were left with something to do, or (`all`) every row. The
    /// table is kept alive by the caller (a relation lock or a `Walk`). Only one process sweeps at
    /// a time. `pause` is called now and then, unpinned: it may handle signals, and unwinding from
    /// it is safe.
    pub fn sweep(
        &self,
        clock: &impl Clock,
        table: TableRef,
        all: bool,
        mut pause: impl FnMut(),
    ) -> Sweep {
        let mut done = Sweep::default();
        // Words of rows added from here on are left to the next sweep, untouched: an appender must
        // not keep this one going.
        let end = table.row_ids_end().0;
        let directory = &table.storage().directory;
        let mut prefetcher = GroupPrefetcher::new(table, end);
        let mut word_start = 0;
        while word_start < end {
            let taken = directory.take_dirty(RowId(word_start));
            // Read after the bits: a bit that was taken is of a row id below this, added since the
            // sweep began or not.
            let end_now = table.row_ids_end().0;
            let mut groups = Groups {
                directory,
                word_start,
                bits: taken
                    | if all {
                        groups_below(end_now, word_start)
                    } else {
                        0
                    },
            };
            prefetcher.take(word_start, groups.bits);
            while let Some(first) = groups.first() {
                prefetcher.advance(first);
                let row_ids = first..(first + GROUP_ROW_IDS).min(end_now);
                if self.sweep_group(clock, table, row_ids, &mut done) {
                    directory.set_dirty(RowId(first));
                    done.groups_waiting += 1;
                }
                groups.done();
            }
            drop(groups);
            if taken != 0 || all {
                pause();
            }
            word_start += DIRTY_WORD_ROW_IDS;
        }
        self.local.collect();
        done
    }

    /// Sweeps rows that share a dirty bit; `true` if something is left to do there later.
    fn sweep_group(
        &self,
        clock: &impl Clock,
        table: TableRef,
        row_ids: std::ops::Range<u64>,
        done: &mut Sweep,
    ) -> bool {
        let Some(_sweeping) = Sweeping::begin(table) else {
            done.groups_kept_out += 1;
            return true;
        };
        let _pin = self.local.pin();
        // One row of the group was left with something to do, and all lie cold: waiting for each of
        // them in turn was nine tenths of the sweeper's time.
        for anchor in row_ids
            .clone()
            .filter_map(|row_id| table.anchor(RowId(row_id)))
        {
            if !anchor.head().has(Head::QUIESCENT) {
                prefetch_header(anchor);
            }
        }
        let mut left = false;
        for row_id in row_ids.map(RowId) {
            done.rows_visited += 1;
            left |= self.sweep_row(clock, table, row_id, done);
        }
        left
    }

    /// Resolves, prunes; `true` if the row has something left to do.
    fn sweep_row(
        &self,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        done: &mut Sweep,
    ) -> bool {
        let Some(anchor) = table.anchor(row_id) else {
            return false;
        };
        let head = anchor.head();
        if anchor.is_quiescent(head) {
            return clear_keys_moved(table, anchor, head);
        }
        let horizon = self.horizon();
        let mut below_needed = false;
        let mut at = head.version();
        while let Some(version) = at {
            at = version.next();
            // What is below a state that every snapshot sees is taken out whatever became of its
            // maker, which the server may know no more. Locks are not.
            if below_needed && !version.is_lock() {
                continue;
            }
            let _: TxnStatus = resolve_maker(version, clock);
            let is_committed = version.flags() & crate::row::flags::COMMITTED != 0;
            below_needed |= is_committed && !version.is_lock() && version.xid() < horizon;
        }
        reach(Point::ReclaimBeforePrune);
        done.versions_removed += prune_row(self, table, row_id) as u64;
        let head = anchor.head();
        let Some(newest) = head.version() else {
            return false;
        };
        if anchor.is_quiescent(head) {
            return clear_keys_moved(table, anchor, head);
        }
        let now = newest.flags();
        let committed = crate::row::flags::COMMITTED;
        newest.next().is_some() || newest.is_tombstone() || now & committed == 0
    }
}
