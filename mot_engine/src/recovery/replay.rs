//! Applies log records.
//!
//! A change becomes a version on top of its row, marked as logged, of a transaction whose outcome is
//! not known here: readers and `finish` ask the clock. What was rolled back on the primary therefore
//! lies in the chain, too, until somebody judges it.
//!
//! Per row the order is: version, index entries, mark with the LSN. A record that stopped halfway (the
//! arena was full) is found by the version on top that is not marked: every other one is. Until the mark is
//! complete the version is APPLYING, and nobody judges it.
//!
//! Several replayers may apply shares of one record at once (`lanes.rs`): what is below touches a row that is in its
//! share, and what all rows have in common only in ways that commute. README.md beside this file says why.
//!
//! On a standby the sweeper runs beside replay, takes out what was rolled back and what no reader there
//! needs, and empties rows that are deleted.
//!
//! A dropped index keeps its place in the table longer than on the server that wrote the log, where the end of the drop gave it back. If there is none
//! for a new one, that is `TooManyIndexes`, before anything is built: the caller, who knows verdicts, has those go whose drop has committed
//! (`settle_dropped_indexes`), and applies the record again.
//!
//! What the server that wrote the log freed is doomed at the same place unless somebody reads: on a standby with readers a snapshot from before the
//! drop may still be there, and the reclaimer settles definitions under its horizon. Memory of doomed definitions comes back when it is needed.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::ahead::Ahead;
use super::load::{raise_ids, write_version};
use crate::engine::Engine;
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, Slot, TableId, Xid};
use crate::index::{Build, enter_row};
use crate::key::key_attributes_unchanged;
use crate::limits::INDEXES_PER_TABLE_MAX;
use crate::log::{BaseLsn, Change, DefinitionChange, Record, apply_delta};
use crate::memory::{Purpose, Urgency};
use crate::reclaim::Quiet;
use crate::row::{Anchor, Head, VersionRef, flags};
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use crate::transaction::{NoClock, allocate_table, publish_index};

/// The log was taken in up to here: applied, or handed over.
pub(super) fn came_to(engine: Engine, lsn: Lsn) {
    engine.root().last_lsn.fetch_max(lsn.0, Ordering::AcqRel);
    engine
        .progress()
        .replayed_lsn
        .store(lsn.0, Ordering::Relaxed);
}

/// Changes of a record, told when it ends: not one by one, since lanes share the counter.
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
}

impl Default for Replayer {
    fn default() -> Self {
        Replayer::new(1)
    }
}

impl Replayer {
    /// A replayer that knows nothing yet, and builds indexes with so many threads.
    pub fn new(threads: usize) -> Replayer {
        Replayer {
            tables: HashMap::new(),
            body: Vec::new(),
            threads,
            has_readers: true,
        }
    }

    /// Whether statements may run beside the records to come. True unless said.
    pub fn set_has_readers(&mut self, has_readers: bool) {
        self.has_readers = has_readers;
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
        came_to(session.engine(), lsn);
        Ok(())
    }

    /// Applies those changes of the record that are of rows in the caller's share.
    pub(super) fn apply_share(
        &mut self,
        session: &Session,
        record: &[u8],
        lsn: Lsn,
        xid: Xid,
        is_mine: impl Fn(TableId, Slot) -> bool,
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
        is_mine: impl Fn(TableId, Slot) -> bool,
    ) -> Result<(), EngineError> {
        match Record::parse(record)? {
            Record::Definitions(changes) => {
                for change in changes {
                    self.define(session, change?, lsn, xid)?;
                }
            }
            Record::Rows(mut rows) => {
                let mut counted = Counted {
                    changes: 0,
                    engine: session.engine(),
                };
                let mut ahead = Ahead::new(&rows, |table, slot| {
                    self.anchor_if_known(table, slot, &is_mine)
                });
                while let Some(row) = rows.next()? {
                    ahead.step(|table, slot| self.anchor_if_known(table, slot, &is_mine));
                    if !is_mine(row.table, row.slot) {
                        continue;
                    }
                    let Some(table) = self.table(session, row.table, lsn)? else {
                        continue;
                    };
                    let mut at = Place {
                        session,
                        table,
                        slot: row.slot,
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

    /// The anchor of a row of the caller's share, in a table that was met before.
    #[inline]
    fn anchor_if_known(
        &self,
        table: TableId,
        slot: Slot,
        is_mine: impl Fn(TableId, Slot) -> bool,
    ) -> Option<&'static Anchor> {
        if !is_mine(table, slot) {
            return None;
        }
        let known = *self.tables.get(&table)?;
        known?.anchor(slot)
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
        // The reference outlives the walk: a storage is doomed only when its creator or dropper has ended, and then the log has no more
        // changes of it.
        let table = catalog.hold(id).map(|walk| walk.table());
        if table.is_none() && id.0 >= catalog.next_table_id.load(Ordering::Acquire) {
            return Err(EngineError::LogMismatch {
                what: "the table was never created",
                table: id.0,
                slot: 0,
                lsn: lsn.0,
            });
        }
        self.tables.insert(id, table);
        Ok(table)
    }

    fn define(
        &mut self,
        session: &Session,
        change: DefinitionChange,
        lsn: Lsn,
        xid: Xid,
    ) -> Result<(), EngineError> {
        match change {
            DefinitionChange::CreateTable { table: id, key } => {
                if session.catalog().hold_of(key, id).is_none() {
                    let table = allocate_table(session, id, key, xid, Urgency::Ordinary)?;
                    table.storage().created_lsn.store(lsn.0, Ordering::Relaxed);
                    session.catalog().link(table);
                    self.tables.insert(id, Some(table));
                }
                raise_ids(session, TableId(id.0 + 1), IndexId(0));
            }
            DefinitionChange::DropTable { table } => {
                if let Some(table) = self.table(session, table, lsn)? {
                    let storage = table.storage();
                    storage.dropped.store(xid.0, Ordering::Release);
                    storage.dropped_lsn.store(lsn.0, Ordering::Release);
                }
            }
            DefinitionChange::CreateIndex {
                index: id,
                table,
                definition,
            } => {
                let Some(table) = self.table(session, table, lsn)? else {
                    return Ok(());
                };
                raise_ids(session, TableId(0), IndexId(id.0 + 1));
                let pin = session.local.pin();
                let is_known = table.all_indexes().any(|index| index.id() == id);
                drop(pin);
                if is_known {
                    return Ok(());
                }
                if !table.has_place_for_index() {
                    return Err(EngineError::TooManyIndexes {
                        max: INDEXES_PER_TABLE_MAX,
                    });
                }
                let index = IndexRef::allocate(
                    &session.local,
                    id,
                    table.0,
                    &definition,
                    xid.0,
                    Urgency::Ordinary,
                )?;
                index.storage().created_lsn.store(lsn.0, Ordering::Relaxed);
                let _quiet = Quiet::begin(table);
                let built = crate::index::build_unjudged(session, table, index, self.threads)
                    .and_then(|built| {
                        if matches!(built, Build::DoneBesideOlder(_)) {
                            index.keep_from_older(xid);
                        }
                        publish_index(table, index)
                    });
                if built.is_err() {
                    // SAFETY: never published.
                    unsafe { crate::transaction::free_index(session, index) };
                }
                built?;
            }
            DefinitionChange::DropIndex { index: id, table } => {
                let Some(table) = self.table(session, table, lsn)? else {
                    return Ok(());
                };
                let _pin = session.local.pin();
                if let Some(index) = table.all_indexes().find(|index| index.id() == id) {
                    let storage = index.storage();
                    storage.dropped.store(xid.0, Ordering::Release);
                    storage.dropped_lsn.store(lsn.0, Ordering::Release);
                }
            }
            // Without readers there is no reclaimer that could have freed it. The log has no more of it, so nobody looks for it again.
            DefinitionChange::FreeTable { table: id } if !self.has_readers => {
                if let Some(table) = self.table(session, id, lsn)? {
                    session.catalog().doom(table);
                }
                self.tables.remove(&id);
            }
            DefinitionChange::FreeIndex { index: id, table } if !self.has_readers => {
                // None, too, when the table was freed before.
                let Some(table) = self.table(session, table, lsn)? else {
                    return Ok(());
                };
                let _pin = session.local.pin();
                if let Some(index) = table.all_indexes().find(|index| index.id() == id) {
                    session.catalog().doom_index(index);
                }
            }
            DefinitionChange::FreeTable { .. } | DefinitionChange::FreeIndex { .. } => {}
        }
        Ok(())
    }

    fn change(&mut self, at: &mut Place<'_>, change: Change<'_>) -> Result<(), EngineError> {
        let _pin = at.session.local.pin();
        let anchor = at.anchor()?;
        if anchor.lsn() >= at.lsn {
            return Ok(());
        }
        let newest = anchor.head().newest_data();
        if let Some(version) = newest.filter(|version| version.flags() & flags::LOGGED == 0) {
            // Installed by an attempt that ran out of memory behind this point.
            at.enter(version)?;
            at.mark(anchor, version);
            return Ok(());
        }
        let body = match change {
            Change::Delete => None,
            Change::Insert { body } | Change::Replace { body } => Some(body),
            Change::Change { base, edits, delta } => {
                let version = at.base(anchor, newest, base)?;
                self.body.clear();
                apply_delta(version.body(), delta, edits, &mut self.body)?;
                Some(&self.body[..])
            }
        };
        let version = write_version(at.session, at.xid, body, flags::APPLYING)?;
        let keys_changed = match at.keys_changed(newest, version) {
            Ok(changed) => changed,
            Err(error) => {
                at.free(version);
                return Err(error);
            }
        };
        if keys_changed {
            version.add_flags(flags::KEYS_CHANGED);
        }
        let below = loop {
            let head = anchor.head();
            if head.is_free() {
                at.free(version);
                return Err(at.mismatch("the slot is free"));
            }
            version.set_next(head);
            let mut new = head.with_address(version.address());
            // On a standby the sweeper may still be removing entries of the row that was here.
            if keys_changed && (!head.is_empty() || head.has(Head::CLEANING)) {
                new = new.with_flags(Head::KEYS_MOVED);
            }
            if anchor.publish(head, new) {
                break head.newest_data();
            }
            anchor.wait_unlatched();
        };
        // The sweeper takes out what was rolled back, and its entries with it. If the version compared with is not marked so by now,
        // that happens after this version is in the chain, and then its entries stay.
        if newest.is_some_and(|newest| newest.flags() & flags::ABORTED != 0) {
            version.add_flags(flags::KEYS_CHANGED);
        }
        at.table.set_dirty(at.slot);
        at.count(below, version);
        at.enter(version)?;
        at.mark(anchor, version);
        Ok(())
    }
}

/// Where a change goes.
struct Place<'a> {
    session: &'a Session,
    table: TableRef,
    slot: Slot,
    lsn: Lsn,
    xid: Xid,
}

impl Place<'_> {
    fn mismatch(&self, what: &'static str) -> EngineError {
        EngineError::LogMismatch {
            what,
            table: self.table.id().0,
            slot: self.slot.0,
            lsn: self.lsn.0,
        }
    }

    /// The row has the change. Its record's logging mark is up.
    fn mark(&self, anchor: &Anchor, version: VersionRef) {
        let round = self.session.engine().round();
        self.table
            .mark_logged(self.slot, anchor, version, self.lsn, round);
        version.end_applying();
    }

    fn anchor(&self) -> Result<&'static Anchor, EngineError> {
        let storage = self.table.storage();
        if let Some(anchor) = self.table.anchor(self.slot) {
            storage
                .slots_end
                .fetch_max(self.slot.0 + 1, Ordering::AcqRel);
            return Ok(anchor);
        }
        storage
            .directory
            .ensure(&self.session.local, self.slot, Urgency::Ordinary)?;
        storage
            .slots_end
            .fetch_max(self.slot.0 + 1, Ordering::AcqRel);
        Ok(self.table.anchor(self.slot).expect("just ensured"))
    }

    /// The version a difference is against.
    fn base(
        &self,
        anchor: &Anchor,
        newest: Option<VersionRef>,
        base: BaseLsn,
    ) -> Result<VersionRef, EngineError> {
        let newest = newest
            .filter(|newest| !newest.is_tombstone())
            .ok_or_else(|| self.mismatch("the row to change does not exist"))?;
        if BaseLsn::of(anchor.lsn()) != base {
            return Err(EngineError::BaseMismatch {
                table: self.table.id().0,
                slot: self.slot.0,
                lsn: self.lsn.0,
                row_lsn: anchor.lsn().0,
                base_lsn_low: base.0,
            });
        }
        Ok(newest)
    }

    /// Whether some index's key differs from the state below.
    fn keys_changed(
        &self,
        newest: Option<VersionRef>,
        version: VersionRef,
    ) -> Result<bool, EngineError> {
        if version.is_tombstone() {
            return Ok(false);
        }
        let Some(below) = newest.filter(|newest| !newest.is_tombstone()) else {
            return Ok(true);
        };
        for index in self.table.all_indexes() {
            let definition = self.session.definition(index)?;
            if !key_attributes_unchanged(definition, below.body(), version.body())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes the index entries of a version that needs them.
    fn enter(&self, version: VersionRef) -> Result<(), EngineError> {
        if version.is_tombstone() || !version.changed_keys() {
            return Ok(());
        }
        let (session, table, slot) = (self.session, self.table, self.slot);
        match enter_row::<NoClock>(session, table, slot, version, None, None)? {
            None => Ok(()),
            Some(_) => unreachable!("only asked with a clock"),
        }
    }

    /// Counts as if the transaction had committed; most have. `below`: the state that it was put upon, whatever becomes of that. Who takes
    /// out a state that was rolled back while it is on top takes its count back (`reclaim/clean.rs`).
    fn count(&self, below: Option<VersionRef>, version: VersionRef) {
        let bytes = |version: &VersionRef| version.image_bytes() as i64;
        let before = below.filter(|below| !below.is_tombstone());
        let after = Some(version).filter(|version| !version.is_tombstone());
        let counters = self.table.counters();
        if before.is_some() && after.is_some() {
            counters.stale_versions.fetch_add(1, Ordering::Relaxed);
        }
        let rows = i64::from(after.is_some()) - i64::from(before.is_some());
        let grown = after.as_ref().map_or(0, bytes) - before.as_ref().map_or(0, bytes);
        counters.rows.fetch_add(rows, Ordering::Relaxed);
        counters.row_bytes.fetch_add(grown, Ordering::Relaxed);
    }

    /// Gives an unpublished version back.
    fn free(&self, version: VersionRef) {
        // SAFETY: never published.
        unsafe {
            self.session
                .local
                .free(version.block(), version.block_bytes(), Purpose::Rows);
        }
    }
}
