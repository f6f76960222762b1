//! Applies log records.
//!
//! A change becomes a version on top of its row, flagged LOGGED. The outcome of its transaction is
//! not known here: readers and `finish` ask the clock. So a version that was rolled back on the
//! primary also is in the chain until a process resolves it.
//!
//! The order for a row is: version, index entries, mark with the LSN. If a record stopped halfway
//! because the arena was full, the top version has no mark; all others have. Until the mark is
//! complete the version is APPLYING, and no process resolves it.
//!
//! Several replayers may apply shares of one record at once (`workers.rs`). The code below touches
//! the rows of its share, and shared counters only in ways that commute. README.md says why.
//!
//! On a standby the sweeper runs beside replay. It removes what was rolled back and what no reader
//! needs, and frees the ids of deleted rows.

mod define;
mod keys;
mod row;

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::load::write_version;
use super::prefetch::RecordPrefetcher;
use crate::engine::Engine;
use crate::errors::EngineError;
use crate::ids::{Lsn, RowId, TableId, Xid};
use crate::log::{Change, Record, apply_delta};
use crate::row::{Anchor, flags};
use crate::session::Session;
use crate::table::TableRef;

use row::ReplayedRow;

/// Notes that the log up to here is applied, or handed over.
pub(super) fn note_replayed(engine: Engine, lsn: Lsn) {
    engine.root().last_lsn.fetch_max(lsn.0, Ordering::AcqRel);
    engine
        .progress()
        .replayed_lsn
        .store(lsn.0, Ordering::Relaxed);
}

/// Counts the changes of a record. They are added to the shared counter at its end, not one by one,
/// since workers share it.
struct Counted {
    changes: u64,
    engine: Engine,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let all = &self.engine.progress().changes_replayed;
        all.fetch_add(self.changes, Ordering::Relaxed);
    }
}

/// Applies records, in the order of the log. Process-local.
pub struct Replayer {
    tables: HashMap<TableId, Option<TableRef>>,
    body: Vec<u8>,
    /// Threads that build an index.
    threads: usize,
    /// Snapshots may be older than what is replayed.
    has_readers: bool,
    /// The next transaction id, as far as the caller knows.
    next_xid: fn() -> Xid,
}

impl Default for Replayer {
    fn default() -> Self {
        Replayer::new(1)
    }
}

impl Replayer {
    /// A replayer that has seen no tables yet, and builds indexes with so many threads.
    pub fn new(threads: usize) -> Replayer {
        Replayer {
            tables: HashMap::new(),
            body: Vec::new(),
            threads,
            has_readers: true,
            next_xid: || Xid::MAX,
        }
    }

    /// Whether statements may run beside the records to come. True unless said.
    pub fn set_has_readers(&mut self, has_readers: bool) {
        self.has_readers = has_readers;
    }

    /// Sets the function that knows the next transaction id. Without it, replay keeps the former
    /// images of all rows that get keys (`transaction/reform.rs`).
    pub fn set_next_xid(&mut self, next_xid: fn() -> Xid) {
        self.next_xid = next_xid;
    }

    /// Applies the record that ends at `lsn`, logged by (top-level) transaction `xid`.
    pub fn apply(
        &mut self,
        session: &Session,
        record: &[u8],
        lsn: Lsn,
        xid: Xid,
    ) -> Result<(), EngineError> {
        let progress = session.engine().progress();
        if lsn.0 <= progress.replayed_lsn.load(Ordering::Relaxed) {
            return Ok(());
        }
        session.memory().use_reserve();
        self.apply_share(session, record, lsn, xid, |_, _| true)?;
        note_replayed(session.engine(), lsn);
        Ok(())
    }

    /// Applies those changes of the record that are of rows in the caller's share.
    pub(super) fn apply_share(
        &mut self,
        session: &Session,
        record: &[u8],
        lsn: Lsn,
        xid: Xid,
        is_mine: impl Fn(TableId, RowId) -> bool,
    ) -> Result<(), EngineError> {
        // A checkpoint that fixed its redo position before this record waits until it is marked.
        session.begin_logging();
        let result = self.apply_record(session, record, lsn, xid, is_mine);
        session.end_logging();
        result
    }

    /// Tables are looked up anew: there were definitions meanwhile.
    pub(super) fn forget_tables(&mut self) {
        self.tables.clear();
    }

    fn apply_record(
        &mut self,
        session: &Session,
        record: &[u8],
        lsn: Lsn,
        xid: Xid,
        is_mine: impl Fn(TableId, RowId) -> bool,
    ) -> Result<(), EngineError> {
        match Record::parse(record)? {
            Record::Definitions(changes) => {
                for change in changes {
                    self.define(session, change?, lsn, xid)?;
                }
            }
            Record::Locks(_) => session.keep_locks(lsn, xid, record)?,
            Record::Keys(keys) => self.put_keys(session, keys, lsn)?,
            Record::Logical(_) => {}
            Record::Rows(mut rows) => {
                let mut counted = Counted {
                    changes: 0,
                    engine: session.engine(),
                };
                let mut prefetcher = RecordPrefetcher::new(&rows, record.len(), |table, row_id| {
                    self.anchor_if_known(table, row_id, &is_mine)
                });
                while let Some(row) = rows.next()? {
                    prefetcher.step(|table, row_id| self.anchor_if_known(table, row_id, &is_mine));
                    if !is_mine(row.table, row.row_id) {
                        continue;
                    }
                    let Some(table) = self.table(session, row.table, lsn)? else {
                        continue;
                    };
                    let mut at = ReplayedRow {
                        session,
                        table,
                        row_id: row.row_id,
                        lsn,
                        xid,
                    };
                    self.change(&mut at, row.change)?;
                    counted.changes += 1;
                }
            }
        }
        Ok(())
    }

    /// The anchor of a row of the caller's share, in a table that was already looked up.
    #[inline]
    fn anchor_if_known(
        &self,
        table: TableId,
        row_id: RowId,
        is_mine: impl Fn(TableId, RowId) -> bool,
    ) -> Option<&'static Anchor> {
        if !is_mine(table, row_id) {
            return None;
        }
        let known = *self.tables.get(&table)?;
        known?.anchor(row_id)
    }

    /// The storage with this id. None: it was dropped before the checkpoint saw it.
    fn table(
        &mut self,
        session: &Session,
        id: TableId,
        lsn: Lsn,
    ) -> Result<Option<TableRef>, EngineError> {
        if let Some(known) = self.tables.get(&id) {
            return Ok(*known);
        }
        let catalog = session.catalog();
        // The reference outlives the walk. A storage is unlinked only when its creator or dropper
        // has ended, and then the log has no more changes of it.
        let table = catalog.hold(id).map(|walk| walk.table());
        if table.is_none() && id.0 >= catalog.next_table_id.load(Ordering::Acquire) {
            return Err(EngineError::LogMismatch {
                what: "the table was never created",
                table: id.0,
                row_id: 0,
                lsn: lsn.0,
            });
        }
        self.tables.insert(id, table);
        Ok(table)
    }

    /// Applies one change of a record to its row: version, index entries, mark. A row that has the
    /// record, or a later one, is left alone.
    fn change(&mut self, at: &mut ReplayedRow<'_>, change: Change<'_>) -> Result<(), EngineError> {
        let _pin = at.session.local.pin();
        let anchor = at.anchor()?;
        if anchor.lsn() >= at.lsn {
            return Ok(());
        }
        let newest = anchor.head().newest_data();
        if let Some(version) = newest.filter(|version| version.flags() & flags::LOGGED == 0) {
            // Published by an attempt that ran out of memory after this point.
            at.enter(version)?;
            at.mark(anchor, version);
            return Ok(());
        }
        let tombstone;
        let (body, kind) = match change {
            Change::Delete { note } => {
                tombstone = note.to_body();
                (&tombstone[..], flags::TOMBSTONE)
            }
            Change::Insert { body } | Change::Replace { body } => (body, 0),
            Change::Change { base, edits, delta } => {
                let version = at.base(anchor, newest, base)?;
                self.body.clear();
                apply_delta(version.body(), delta, edits, &mut self.body)?;
                (&self.body[..], 0)
            }
        };
        let version = write_version(at.session, at.xid, body, flags::APPLYING | kind)?;
        let below = match at.publish(anchor, newest, version) {
            Ok(below) => below,
            Err(error) => {
                at.free(version);
                return Err(error);
            }
        };
        at.table.set_dirty(at.row_id);
        at.count(below, version);
        at.enter(version)?;
        at.mark(anchor, version);
        Ok(())
    }
}
