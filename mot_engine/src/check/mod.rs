//! Proving a table's invariants: what `mot.check(table)` runs, and every test calls after
//! everything.
//!
//! Contract: the caller holds at least ShareLock on the relation (no session writes; readers may
//! run), so chains and trees stand still but for hints, row locks and the sweeper, which is kept
//! out. The transaction's own unfinished changes are checked like the others. Of the indexes those
//! are examined that exist for the caller: its lock keeps them, but not one that another
//! transaction is making, beside which it may stand, and which is freed when that is rolled back.
//!
//! While the log is replayed no lock keeps anything still. Then what is found counts only if
//! nothing was replayed meanwhile, which is for the caller to see; but nothing is read that may
//! have been given back.
//!
//! What is proved:
//! - Chains: versions lie in the arena, end, and have an image of sensible length. (That they are
//!   this row's no version says: a state of another row shows by its keys, in a table with
//!   indexes.)
//! - Every state of every row that a snapshot may still see is entered, once, in every index: an
//!   entry is a (key, row id) of a map.
//! - Every entry leads to a row of which some version has the key, never to a free row id; if a
//!   row's entries differ, KEYS_MOVED says so.
//! - Trees are well formed; no two live rows have the same key of a unique index.
//! - The free list holds exactly the row ids that say so. Counters agree.

mod free_list;
#[cfg(test)]
mod tests;

use crate::clock::{Clock, check_cancelled};
use crate::engine::State;
use crate::errors::EngineError;
use crate::ids::{IndexId, RowId};
use crate::index::{append_row_id, row_ids_of};
use crate::key::{KeyBuffer, encode_row, encode_row_if_any};
use crate::memory::Urgency;
use crate::reclaim::Quiet;
use crate::row::{
    Anchor, Head, IMAGE_BYTES_MIN, TxnStatus, Version, VersionRef, counted_as_top, counted_early,
    flags, resolve_maker, states_from,
};
use crate::session::Session;
use crate::table::{EntryForm, IndexRef, TableRef};
use mot_index::{Batch, Bound, Direction, Tree};
use std::ptr::NonNull;

/// Row ids or entries examined under one pin.
const STEP: u64 = 1024;

/// Longest chain believed: a longer one is taken for a circle.
const CHAIN_VERSIONS_MAX: u64 = 1 << 32;

/// Something that must not be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// A chain is not a chain of this row's versions.
    BrokenChain { row_id: RowId, what: &'static str },
    /// A state of the row has no entry in the index.
    MissingEntry { index: IndexId, row_id: RowId },
    /// An entry leads to a row of which no version has the key.
    StrayEntry { index: IndexId, row_id: RowId },
    /// An entry's key or value cannot be read.
    BrokenEntry { index: IndexId, what: &'static str },
    /// A row has entries for different keys, and its anchor does not say so.
    UnmarkedMove { index: IndexId, row_id: RowId },
    /// Two live rows have the same key of a unique index.
    Duplicate { index: IndexId, row_ids: [RowId; 2] },
    /// The tree itself is broken.
    BrokenTree { index: IndexId, what: String },
    /// The free list is not what the anchors say.
    FreeList { what: &'static str },
    /// A counter is not what it counts.
    Counter {
        what: &'static str,
        counted: u64,
        found: u64,
    },
}

/// What was examined.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckReport {
    /// Rows that are live for every snapshot.
    pub rows: u64,
    /// Versions of all rows.
    pub versions: u64,
    /// Entries of all indexes.
    pub entries: u64,
    /// Free row ids.
    pub row_ids_free: u64,
    /// Problems found.
    pub problems: u64,
}

struct Check<'a, C: Clock, V: FnMut(Problem)> {
    session: &'a Session,
    clock: &'a C,
    table: TableRef,
    indexes: Vec<IndexRef>,
    visit: V,
    report: CheckReport,
    key: KeyBuffer,
    scratch: KeyBuffer,
    /// No transaction has unfinished changes in the table, so counters must agree exactly.
    is_resolved: bool,
    replaying: bool,
    /// Rows that the counter has of transactions which were rolled back, and whose versions are not
    /// taken out yet.
    counted_early: i64,
}

impl Session {
    /// Checks a table and calls `visit` for each problem. `Err` only if it could not look at
    /// everything.
    pub fn check(
        &self,
        table: TableRef,
        clock: &impl Clock,
        visit: impl FnMut(Problem),
    ) -> Result<CheckReport, EngineError> {
        let _quiet = Quiet::begin(table);
        let mut check = Check {
            session: self,
            clock,
            table,
            indexes: self.indexes(table, clock),
            visit,
            report: CheckReport::default(),
            key: KeyBuffer::new(),
            scratch: KeyBuffer::new(),
            is_resolved: true,
            replaying: self.engine().state() == State::Replaying,
            counted_early: 0,
        };
        check.rows()?;
        for at in 0..check.indexes.len() {
            check.index(check.indexes[at])?;
        }
        check.free_list()?;
        Ok(check.report)
    }
}

impl<C: Clock, V: FnMut(Problem)> Check<'_, C, V> {
    fn found(&mut self, problem: Problem) {
        self.report.problems += 1;
        (self.visit)(problem);
    }

    fn rows(&mut self) -> Result<(), EngineError> {
        let end = self.table.row_ids_end().0;
        let mut from = 0;
        while from < end {
            check_cancelled(self.clock)?;
            let _pin = self.session.local.pin();
            let to = (from + STEP).min(end);
            for row_id in (from..to).map(RowId) {
                if let Some(anchor) = self.table.anchor(row_id) {
                    self.row(row_id, anchor)?;
                }
            }
            from = to;
        }
        let counted = (self.table.row_count_estimate() as i64 - self.counted_early) as u64;
        if self.is_resolved && counted != self.report.rows {
            let found = self.report.rows;
            self.found(Problem::Counter {
                what: "rows",
                counted,
                found,
            });
        }
        Ok(())
    }

    fn row(&mut self, row_id: RowId, anchor: &Anchor) -> Result<(), EngineError> {
        let head = anchor.head();
        if head.is_free() {
            return Ok(());
        }
        let mut newest = true;
        let mut length = 0;
        let mut locks_end = false;
        let mut at = head.version();
        while let Some(version) = at {
            if let Some(what) = self.malformed(version) {
                self.found(Problem::BrokenChain { row_id, what });
                return Ok(());
            }
            length += 1;
            if length > CHAIN_VERSIONS_MAX {
                self.found(Problem::BrokenChain {
                    row_id,
                    what: "the chain does not end",
                });
                return Ok(());
            }
            self.report.versions += 1;
            // Read before the next: a lock below that has just been taken out may make it true.
            let ends_locks = version.ends_locks();
            at = version.next();
            if version.is_lock() {
                if locks_end {
                    self.found(Problem::BrokenChain {
                        row_id,
                        what: "a lock lies where none is to be",
                    });
                }
                if !head.has(Head::HAS_LOCKS) && anchor.head() == head {
                    self.found(Problem::BrokenChain {
                        row_id,
                        what: "a lock is not announced",
                    });
                }
                continue;
            }
            locks_end |= ends_locks;
            let is_applying = version.flags() & flags::APPLYING != 0;
            let status = resolve_maker(version, self.clock);
            self.is_resolved &= !matches!(status, TxnStatus::Mine | TxnStatus::Running);
            if status == TxnStatus::Aborted {
                // While the log is replayed, the state on top counts, whatever its status.
                if self.replaying && newest {
                    self.counted_early += counted_as_top(version).1;
                } else if !self.replaying && version.flags() & flags::COUNTED_EARLY != 0 {
                    self.counted_early += counted_early(version).1;
                }
                continue;
            }
            if newest && status == TxnStatus::Committed && !version.is_tombstone() {
                self.report.rows += 1;
            }
            let is_newest = std::mem::replace(&mut newest, false);
            // Replay may not have made the entries yet.
            if !version.is_tombstone() && !is_applying {
                self.entered(row_id, version)?;
                if is_newest {
                    self.computed(row_id, version)?;
                }
            }
        }
        Ok(())
    }

    fn malformed(&self, version: VersionRef) -> Option<&'static str> {
        let address = version.address();
        let memory = self.session.local.memory();
        // A long one has its length in front.
        let front = address.wrapping_sub(size_of::<u64>() as u64);
        let is_inside = |at: u64| NonNull::new(at as *mut u8).is_some_and(|at| memory.contains(at));
        if !address.is_multiple_of(align_of::<Version>() as u64)
            || !is_inside(address)
            || !is_inside(front)
        {
            return Some("a version lies outside the arena");
        }
        if version.image_bytes() < IMAGE_BYTES_MIN {
            return Some("a version has no room for its stamp");
        }
        if !version.xid().is_some() {
            return Some("a version has no transaction");
        }
        let outcomes = flags::COMMITTED | flags::ABORTED;
        (version.flags() & outcomes == outcomes).then_some("a version is committed and aborted")
    }

    /// A row's newest state knows its key in every index that cannot compute it.
    fn computed(&mut self, row_id: RowId, version: VersionRef) -> Result<(), EngineError> {
        for at in 0..self.indexes.len() {
            let index = self.indexes[at];
            if !index.is_computed() || index.is_dead() {
                continue;
            }
            let encoded = encode_row(
                self.session.definition(index)?,
                version.body(),
                &mut self.key,
            );
            match encoded {
                Err(EngineError::KeyNotComputed) => self.found(Problem::MissingEntry {
                    index: index.id(),
                    row_id,
                }),
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Every index leads from the version's key to the row.
    fn entered(&mut self, row_id: RowId, version: VersionRef) -> Result<(), EngineError> {
        for at in 0..self.indexes.len() {
            let index = self.indexes[at];
            let definition = self.session.definition(index)?;
            let has_null = encode_row_if_any(definition, version.body(), &mut self.key)?.0;
            if self.key.is_empty() {
                continue;
            }
            if index.form(has_null) == EntryForm::Suffixed {
                append_row_id(&mut self.key, row_id)?;
            }
            let memory = self.session.tree_memory(Urgency::Ordinary);
            // SAFETY: `rows` is pinned around this.
            let tree = unsafe { Tree::new(&index.storage().root, &memory) };
            let mut times = 0;
            if let Some(value) = tree.get(self.key.as_slice()) {
                row_ids_of(value, |found| times += u64::from(found == row_id));
            }
            if times != 1 {
                self.found(Problem::MissingEntry {
                    index: index.id(),
                    row_id,
                });
            }
        }
        Ok(())
    }

    fn index(&mut self, index: IndexRef) -> Result<(), EngineError> {
        let memory = self.session.tree_memory(Urgency::Ordinary);
        let id = index.id();
        {
            // A walk through a large tree would keep all processes from reusing memory.
            let _pin = self.replaying.then(|| self.session.local.pin());
            // SAFETY: pinned, or no code changes the tree, so that no node is given back: writers
            // are kept out by the caller's lock, the sweeper by `Quiet`.
            let tree = unsafe { Tree::new(&index.storage().root, &memory) };
            match tree.verify_while(&mut || !self.clock.is_cancelled()) {
                Ok(Some(_)) => {}
                Ok(None) => return Err(EngineError::Cancelled),
                Err(corruption) => {
                    self.found(Problem::BrokenTree {
                        index: id,
                        what: format!("{corruption:?}"),
                    });
                    return Ok(());
                }
            }
        }
        let before = self.report.entries;
        let mut batch = Batch::with_capacity(STEP as usize);
        let mut last: Option<Vec<u8>> = None;
        let mut row_ids = Vec::new();
        loop {
            check_cancelled(self.clock)?;
            let _pin = self.session.local.pin();
            // SAFETY: pinned while it is used.
            let tree = unsafe { Tree::new(&index.storage().root, &memory) };
            let bound = last.as_deref().map_or(Bound::Start, Bound::Excluded);
            tree.scan_batch(bound, Direction::Forward, &mut batch);
            for (key, value) in batch.iter() {
                row_ids.clear();
                row_ids_of(value, |row_id| row_ids.push(row_id));
                row_ids.sort_unstable();
                self.entry(index, key, &row_ids)?;
            }
            if batch.is_exhausted() {
                break;
            }
            last = batch
                .len()
                .checked_sub(1)
                .map(|at| batch.get(at).0.to_vec());
        }
        let found = self.report.entries - before;
        let counted = index.entry_count_estimate();
        if counted != found {
            self.found(Problem::Counter {
                what: "index entries",
                counted,
                found,
            });
        }
        Ok(())
    }

    /// One key of an index and the rows it leads to, in order.
    fn entry(&mut self, index: IndexRef, key: &[u8], row_ids: &[RowId]) -> Result<(), EngineError> {
        let id = index.id();
        if row_ids.is_empty() {
            self.found(Problem::BrokenEntry {
                index: id,
                what: "a key leads to no row",
            });
        }
        let mut live: Option<RowId> = None;
        for (position, row_id) in row_ids.iter().copied().enumerate() {
            self.report.entries += 1;
            if position > 0 && row_ids[position - 1] == row_id {
                self.found(Problem::BrokenEntry {
                    index: id,
                    what: "a key leads to a row twice",
                });
            }
            let anchor = self
                .table
                .anchor(row_id)
                .filter(|anchor| !anchor.head().is_empty());
            let Some(anchor) = anchor else {
                self.found(Problem::StrayEntry { index: id, row_id });
                continue;
            };
            let seen = self.compare(index, row_id, anchor, key)?;
            if !seen.any {
                self.found(Problem::StrayEntry { index: id, row_id });
            } else if seen.other && !anchor.head().has(Head::KEYS_MOVED) {
                self.found(Problem::UnmarkedMove { index: id, row_id });
            }
            if seen.newest {
                if let Some(first) = live.filter(|_| index.is_asked(self.clock)) {
                    self.found(Problem::Duplicate {
                        index: id,
                        row_ids: [first, row_id],
                    });
                }
                live = Some(row_id);
            }
        }
        Ok(())
    }

    /// How a row's versions compare with an entry's key.
    fn compare(
        &mut self,
        index: IndexRef,
        row_id: RowId,
        anchor: &Anchor,
        key: &[u8],
    ) -> Result<Compared, EngineError> {
        let definition = self.session.definition(index)?;
        let mut seen = Compared::default();
        let mut newest = true;
        for version in states_from(anchor.head().version()) {
            let status = resolve_maker(version, self.clock);
            let has_key = !version.is_tombstone() && {
                let has_null = encode_row_if_any(definition, version.body(), &mut self.scratch)?.0;
                let has_one = !self.scratch.is_empty();
                if has_one && index.form(has_null) == EntryForm::Suffixed {
                    append_row_id(&mut self.scratch, row_id)?;
                }
                has_one && self.scratch.as_slice() == key
            };
            seen.any |= has_key;
            if status == TxnStatus::Aborted {
                continue;
            }
            seen.other |= !has_key && !version.is_tombstone();
            seen.newest |= newest && has_key && status != TxnStatus::Running;
            newest = false;
        }
        Ok(seen)
    }
}

/// See [`Check::compare`].
#[derive(Default)]
struct Compared {
    /// Some version has the key.
    any: bool,
    /// Some version that did not abort has another one.
    other: bool,
    /// The row's newest state has it.
    newest: bool,
}
