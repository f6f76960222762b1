//! Keys collected while rows are loaded, when a row is in the processor's cache anyhow: to come
//! back for them costs two cache misses a row for each index.
//!
//! A loading thread collects the keys of the block that it puts into the table, for each index of
//! the table, and hands them over as a sorted *run*. What that may take of process memory is
//! limited for all of a load; an index that would go beyond gives its runs up, and is built from
//! the rows.

use super::collect::Collector;
use super::keys::{Keys, Sorter};
use super::threads::HintsOnly;
use crate::errors::EngineError;
use crate::ids::RowId;
use crate::row::Anchor;
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Process memory that may still be taken.
pub(crate) struct Allowance(AtomicU64);

impl Allowance {
    pub(crate) fn of(bytes: u64) -> Self {
        Allowance(AtomicU64::new(bytes))
    }

    fn take(&self, bytes: u64) -> bool {
        let left = |left: u64| left.checked_sub(bytes);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
            .is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The keys of one index, from all threads.
#[derive(Default)]
pub(crate) struct Harvest {
    /// With the first row id of their block.
    runs: Mutex<Vec<(RowId, Keys)>>,
    is_given_up: AtomicBool,
}

impl Harvest {
    fn runs(&self) -> MutexGuard<'_, Vec<(RowId, Keys)>> {
        // A thread that panicked ends the load anyhow.
        self.runs.lock().unwrap_or_else(|lock| lock.into_inner())
    }

    fn add(&self, allowance: &Allowance, first: RowId, keys: Keys) {
        let bytes = keys.bytes_held();
        let mut runs = self.runs();
        if self.is_given_up.load(Ordering::Relaxed) {
            return;
        }
        if runs.try_reserve(1).is_ok() && allowance.take(bytes) {
            runs.push((first, keys));
        } else {
            drop(runs);
            self.give_up(allowance);
        }
    }

    fn give_up(&self, allowance: &Allowance) {
        let mut runs = self.runs();
        self.is_given_up.store(true, Ordering::Relaxed);
        let held = runs.drain(..).map(|(_, keys)| keys.bytes_held()).sum();
        allowance.give_back(held);
    }

    #[cfg(test)]
    pub(super) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// All runs, in row id order; `None` if they were given up.
    pub(super) fn reap(self) -> Option<Vec<Keys>> {
        if self.is_given_up.into_inner() {
            return None;
        }
        let mut runs = self
            .runs
            .into_inner()
            .unwrap_or_else(|lock| lock.into_inner());
        runs.sort_unstable_by_key(|(first, _)| *first);
        Some(runs.into_iter().map(|(_, keys)| keys).collect())
    }
}

/// One thread's collecting for one index.
pub(crate) struct Gatherer<'a> {
    collector: Collector<'a>,
    clock: HintsOnly,
    harvest: &'a Harvest,
    allowance: &'a Allowance,
    keys: Keys,
    /// None is collected of this block any more.
    is_off: bool,
}

impl<'a> Gatherer<'a> {
    pub(crate) fn new(
        session: &'a Session,
        table: TableRef,
        index: IndexRef,
        harvest: &'a Harvest,
        allowance: &'a Allowance,
    ) -> Result<Self, EngineError> {
        Ok(Gatherer {
            collector: Collector::new(session, table, index, true)?,
            clock: HintsOnly(session.engine()),
            harvest,
            allowance,
            keys: Keys::default(),
            is_off: false,
        })
    }

    /// Begins a block of so many rows.
    pub(crate) fn begin(&mut self, rows: usize) {
        self.keys = Keys::default();
        self.is_off =
            self.harvest.is_given_up.load(Ordering::Relaxed) || self.keys.reserve(rows).is_err();
    }

    /// Collects the keys of a row that nothing else uses yet.
    pub(crate) fn row(&mut self, row_id: RowId, anchor: &Anchor) -> Result<(), EngineError> {
        if self.is_off {
            return Ok(());
        }
        let keys = &mut self.keys;
        let collected = self
            .collector
            .row(row_id, anchor, &self.clock, &mut |key, mut origin| {
                // Rows of different moments may share a key until the log is replayed.
                origin.live = false;
                keys.push(key, origin)
            });
        match collected {
            Err(EngineError::OutOfProcessMemory) => {
                self.is_off = true;
                Ok(())
            }
            other => other,
        }
    }

    /// Hands the block's keys over.
    pub(crate) fn end(&mut self, first: RowId, sorter: &mut Sorter) {
        let mut keys = std::mem::take(&mut self.keys);
        if self.is_off {
            self.harvest.give_up(self.allowance);
        } else {
            keys.sort(sorter);
            self.harvest.add(self.allowance, first, keys);
        }
    }
}
