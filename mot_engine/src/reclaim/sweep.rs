//! Sweeping one table.

use crate::clock::Clock;
use crate::ids::{Slot, Xid};
use crate::memory::Purpose;
use crate::row::{Anchor, Head, Judged, VersionRef, flags, judge_maker, prune_tail, unlink};
use crate::session::Session;
use crate::table::{TableRef, free_slot};
use crate::transaction::remove_entries;
use std::sync::atomic::Ordering;

/// Rows walked between two pins.
const ROWS_PER_PIN: u64 = 256;

/// A pass over all rows is worth it when this many versions wait...
const STALE_VERSIONS_MIN: i64 = 1000;
/// ...and they are at least one row in so many.
const STALE_SHARE: i64 = 20;

/// What a sweep did.
#[derive(Copy, Clone, Default, Eq, PartialEq, Debug)]
pub struct Sweep {
    /// Dead rows whose slots were freed.
    pub rows_freed: u64,
    /// Versions taken out of living rows.
    pub versions_pruned: u64,
    /// Versions of transactions that were lost or aborted.
    pub versions_aborted: u64,
    /// Tombstones that still wait for the horizon.
    pub tombstones_waiting: u64,
}

impl Session {
    /// Frees the dead rows of a table, and prunes all its rows if that is worth it (or `all`). `pause` is called now and then, unpinned: it may
    /// handle signals, and unwinding from it is safe.
    pub fn sweep(
        &self,
        clock: &impl Clock,
        table: TableRef,
        all: bool,
        mut pause: impl FnMut(),
    ) -> Sweep {
        let horizon = self.engine().horizon();
        let mut done = Sweep::default();
        self.sweep_graveyard(clock, table, horizon, &mut done, &mut pause);
        let counters = table.counters();
        let stale = counters.stale_versions.load(Ordering::Relaxed);
        let worth_it = stale >= STALE_VERSIONS_MIN
            && stale.saturating_mul(STALE_SHARE) >= counters.rows.load(Ordering::Relaxed);
        if !all && !worth_it {
            return done;
        }
        let end = table.slots_end().0;
        let mut from = 0;
        let mut waiting = 0;
        while from < end {
            let to = (from + ROWS_PER_PIN).min(end);
            {
                let _pin = self.local.pin();
                for slot in (from..to).map(Slot) {
                    if let Some(anchor) = table.anchor(slot) {
                        waiting += self.sweep_row(clock, table, slot, anchor, horizon, &mut done);
                    }
                }
            }
            from = to;
            pause();
        }
        counters.stale_versions.store(waiting, Ordering::Relaxed);
        self.local.collect();
        done
    }

    fn sweep_graveyard(
        &self,
        clock: &impl Clock,
        table: TableRef,
        horizon: Xid,
        done: &mut Sweep,
        pause: &mut impl FnMut(),
    ) {
        let storage = table.storage();
        let mut at = {
            let _latched = storage.free_latch.lock();
            storage.graveyard.swap(0, Ordering::Relaxed)
        };
        let mut turns = 0u64;
        // SAFETY: tombstones on the graveyard are freed by this process only, below.
        while let Some(tombstone) = unsafe { VersionRef::from_address(at) } {
            at = tombstone.grave_link().load(Ordering::Relaxed);
            let pin = self.local.pin();
            let slot = tombstone.slot();
            let dead = tombstone.xid() < horizon
                && judge_maker(tombstone, clock) == Judged::Committed
                && table
                    .anchor(slot)
                    .is_some_and(|anchor| self.free_row(table, slot, anchor, tombstone, done));
            if !dead {
                let _latched = storage.free_latch.lock();
                let first = storage.graveyard.load(Ordering::Relaxed);
                tombstone.grave_link().store(first, Ordering::Relaxed);
                storage
                    .graveyard
                    .store(tombstone.address(), Ordering::Relaxed);
                done.tombstones_waiting += 1;
            }
            drop(pin);
            turns += 1;
            if turns.is_multiple_of(ROWS_PER_PIN) {
                pause();
            }
        }
    }

    /// Frees a row whose newest version is this committed tombstone below the horizon. `false` if a lock entry is still on it.
    fn free_row(
        &self,
        table: TableRef,
        slot: Slot,
        anchor: &Anchor,
        tombstone: VersionRef,
        done: &mut Sweep,
    ) -> bool {
        let mut latched = anchor.latch();
        if latched.head.version() != Some(tombstone) || latched.head.has(Head::HAS_LOCKS) {
            return false;
        }
        latched.head = Head::empty();
        drop(latched);
        // Unlinked as a whole: entries can go now, the versions stay readable while we are pinned.
        let mut complete = true;
        let mut at = Some(tombstone);
        while let Some(version) = at {
            at = version.next();
            complete &= remove_entries(self, table, version);
            // SAFETY: just unlinked.
            unsafe {
                self.local
                    .retire(version.block(), version.block_bytes(), Purpose::Rows)
            };
        }
        if complete {
            free_slot(table, slot);
        }
        done.rows_freed += 1;
        true
    }

    /// Settles and prunes one row. Returns how many superseded versions must wait.
    #[allow(clippy::too_many_arguments)]
    fn sweep_row(
        &self,
        clock: &impl Clock,
        table: TableRef,
        slot: Slot,
        anchor: &Anchor,
        horizon: Xid,
        done: &mut Sweep,
    ) -> i64 {
        let Some(first) = anchor.head().version() else {
            return 0;
        };
        if first.next().is_none() && first.flags() & flags::COMMITTED != 0 && !first.is_tombstone()
        {
            return 0;
        }
        let mut kept = None;
        let mut waiting = 0;
        let mut states_above = 0;
        let mut at = Some(first);
        let mut aborted = Vec::new();
        while let Some(version) = at {
            at = version.next();
            if version.is_lock() {
                continue;
            }
            match judge_maker(version, clock) {
                Judged::Aborted if version.xid() < self.engine().recovered_below() => {
                    aborted.push(version);
                }
                Judged::Aborted => {}

                Judged::Committed if version.xid() < horizon => {
                    kept = Some(version);
                    break;
                }
                Judged::Committed | Judged::Running | Judged::Mine => states_above += 1,
            }
        }
        for version in aborted {
            self.unlink_aborted(table, anchor, version, done);
        }
        if let Some(kept) = kept {
            self.prune_below(table, anchor, kept, done);
            waiting = states_above;
            // A tombstone of this server run is freed from the graveyard; a recovered one is on none.
            let is_recovered = kept.xid() < self.engine().recovered_below();
            if kept.is_tombstone() && is_recovered && states_above == 0 {
                self.free_row(table, slot, anchor, kept, done);
            }
        } else if states_above > 1 {
            waiting = states_above - 1;
        }
        waiting
    }

    fn unlink_aborted(
        &self,
        table: TableRef,
        anchor: &Anchor,
        version: VersionRef,
        done: &mut Sweep,
    ) {
        let mut latched = anchor.latch();
        let mut head = latched.head;
        let is_linked = unlink(&mut head, version);
        latched.head = head;
        drop(latched);
        debug_assert!(is_linked, "one process sweeps at a time");
        let complete = remove_entries(self, table, version);
        if complete && head.is_empty() {
            free_slot(table, version.slot());
        }
        // SAFETY: just unlinked.
        unsafe {
            self.local
                .retire(version.block(), version.block_bytes(), Purpose::Rows)
        };
        done.versions_aborted += 1;
    }

    fn prune_below(&self, table: TableRef, anchor: &Anchor, kept: VersionRef, done: &mut Sweep) {
        if kept.next().is_none() {
            return;
        }
        let mut removed = Vec::new();
        let latched = anchor.latch();
        // Somebody may have pruned it with a newer version meanwhile.
        let mut at = latched.head.version();
        while at.is_some() && at != Some(kept) {
            at = at.and_then(|version| version.next());
        }
        if at.is_some() {
            prune_tail(kept, self.engine().recovered_below(), |old| {
                removed.push(old)
            });
        }
        drop(latched);
        for old in removed {
            if anchor.head().has(Head::KEYS_MOVED) || kept.is_tombstone() {
                remove_entries(self, table, old);
            }
            // SAFETY: unlinked above.
            unsafe {
                self.local
                    .retire(old.block(), old.block_bytes(), Purpose::Rows)
            };
            done.versions_pruned += 1;
        }
    }

    /// Puts every unused slot of a recovered table on its free list. Nobody writes the table yet.
    pub fn list_free_slots(&self, table: TableRef) -> u64 {
        let mut listed = 0;
        for slot in (0..table.slots_end().0).rev().map(Slot) {
            if let Some(anchor) = table.anchor(slot)
                && anchor.head().is_empty()
                && !anchor.head().is_free()
            {
                free_slot(table, slot);
                listed += 1;
            }
        }
        listed
    }
}
