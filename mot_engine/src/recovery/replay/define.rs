//! Applies definitions: tables and indexes that are created, dropped and freed.
//!
//! **Places.** A dropped index keeps its place in the table longer than on the server that wrote
//! the log, which reused it when the drop ended. So does an index whose creator was rolled back. If
//! a new index finds no place, the answer is `TooManyIndexes`, before anything is built. The
//! caller, which knows outcomes, removes the indexes that are gone (`resolve_gone_indexes`), and
//! applies the record again.
//!
//! **Checkpoints.** The definitions of a checkpoint may be far newer than its redo position. What
//! was created in between and is not among them was gone by then, and is not created again. The
//! server never had place and memory for it beside what came after.
//!
//! **Freeing.** What the server freed is freed at the same place in the log, unless a session
//! reads. On a standby with readers a snapshot from before the drop may still be there, and the
//! reclaimer resolves definitions under its horizon. The memory comes back when it is needed.

use std::sync::atomic::Ordering;

use super::Replayer;
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, TableId, Xid};
use crate::index::Build;
use crate::key::IndexDefinition;
use crate::limits::INDEXES_PER_TABLE_MAX;
use crate::log::DefinitionChange;
use crate::memory::Urgency;
use crate::reclaim::Quiet;
use crate::recovery::load::raise_ids;
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use crate::transaction::{NewTable, allocate_table, publish_index};

impl Replayer {
    pub(super) fn define(
        &mut self,
        session: &Session,
        change: DefinitionChange,
        lsn: Lsn,
        xid: Xid,
    ) -> Result<(), EngineError> {
        match change {
            DefinitionChange::CreateTable {
                table: id,
                key,
                persistence,
            } => {
                let new = NewTable {
                    id,
                    key,
                    persistence,
                };
                self.create_table(session, new, (lsn, xid))?;
            }
            DefinitionChange::HoldsCopies { table } => {
                if let Some(table) = self.table(session, table, lsn)? {
                    table.storage().copied_by.store(xid.0, Ordering::Release);
                }
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
                if let Some(table) = self.table(session, table, lsn)? {
                    self.create_index(session, table, (id, &definition), (lsn, xid))?;
                }
            }
            DefinitionChange::DropIndex { index: id, table } => {
                if let Some(table) = self.table(session, table, lsn)? {
                    drop_index(session, table, id, (lsn, xid));
                }
            }
            // Without readers there is no reclaimer that could have freed it. The log has no more
            // of it, so no process looks for it again.
            DefinitionChange::FreeTable { table: id } if !self.has_readers => {
                if let Some(table) = self.table(session, id, lsn)? {
                    session.catalog().defer_free(table);
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
                    session.catalog().defer_free_of_index(index);
                }
            }
            DefinitionChange::FreeTable { .. } | DefinitionChange::FreeIndex { .. } => {}
        }
        Ok(())
    }
}

impl Replayer {
    /// Makes a table that the log has made, unless it is there, or was gone.
    fn create_table(
        &mut self,
        session: &Session,
        new: NewTable,
        (lsn, xid): (Lsn, Xid),
    ) -> Result<(), EngineError> {
        let id = new.id;
        if session.catalog().hold_of(new.key, id).is_none() && !was_gone(session, lsn) {
            let table = allocate_table(session, new, xid, Urgency::Ordinary)?;
            let storage = table.storage();
            storage.created_lsn.store(lsn.0, Ordering::Relaxed);
            storage.lists_free.store(0, Ordering::Relaxed);
            session.catalog().link(table);
            self.tables.insert(id, Some(table));
        }
        raise_ids(session, TableId(id.0 + 1), IndexId(0));
        Ok(())
    }

    /// Builds an index that the log has made, unless it is there, or was gone.
    fn create_index(
        &self,
        session: &Session,
        table: TableRef,
        (id, definition): (IndexId, &IndexDefinition),
        (lsn, xid): (Lsn, Xid),
    ) -> Result<(), EngineError> {
        raise_ids(session, TableId(0), IndexId(id.0 + 1));
        let pin = session.local.pin();
        let is_known = table.all_indexes().any(|index| index.id() == id);
        drop(pin);
        if is_known || was_gone(session, lsn) {
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
            definition,
            xid.0,
            Urgency::Ordinary,
        )?;
        index.storage().created_lsn.store(lsn.0, Ordering::Relaxed);
        let _quiet = Quiet::begin(table);
        let built =
            crate::index::build_by_hints(session, table, index, self.threads).and_then(|built| {
                if matches!(built, Build::DoneBesideOlder(_)) {
                    index.keep_from_older(xid);
                }
                publish_index(session, table, index)
            });
        if built.is_err() {
            // SAFETY: never published.
            unsafe { crate::transaction::free_index(session, index) };
        }
        built
    }
}

/// Notes that an index is dropped, if it is there.
fn drop_index(session: &Session, table: TableRef, id: IndexId, (lsn, xid): (Lsn, Xid)) {
    let _pin = session.local.pin();
    if let Some(index) = table.all_indexes().find(|index| index.id() == id) {
        let storage = index.storage();
        storage.dropped.store(xid.0, Ordering::Release);
        storage.dropped_lsn.store(lsn.0, Ordering::Release);
    }
}

/// Whether what the record that ends at `lsn` has made, and is not in memory, was gone when the
/// checkpoint copied its definitions.
fn was_gone(session: &Session, lsn: Lsn) -> bool {
    lsn <= session.engine().defined()
}
