//! One change of a record: the row to which it goes, and the single steps. `Replayer::change` calls
//! them in order.
//!
//! Several replayers may be at rows of one table at once. They update counters, and the end of the
//! row ids, in ways that commute.

use std::sync::atomic::Ordering;

use crate::errors::EngineError;
use crate::ids::{Lsn, RowId, Xid};
use crate::index::{NOT_TESTED, enter_row};
use crate::key::key_attributes_unchanged;
use crate::log::BaseLsn;
use crate::memory::{Purpose, Urgency};
use crate::row::{Anchor, Head, VersionRef, flags};
use crate::session::Session;
use crate::table::TableRef;

/// A row, and the record that changes it.
pub(super) struct ReplayedRow<'a> {
    pub(super) session: &'a Session,
    pub(super) table: TableRef,
    pub(super) row_id: RowId,
    pub(super) lsn: Lsn,
    pub(super) xid: Xid,
}

impl ReplayedRow<'_> {
    pub(super) fn mismatch(&self, what: &'static str) -> EngineError {
        EngineError::LogMismatch {
            what,
            table: self.table.id().0,
            row_id: self.row_id.0,
            lsn: self.lsn.0,
        }
    }

    /// Marks the row with the record's LSN: the change is complete. The `logging` flag is up.
    pub(super) fn mark(&self, anchor: &Anchor, version: VersionRef) {
        let round = self.session.engine().round();
        self.table
            .mark_logged(self.row_id, anchor, version, self.lsn, round);
        version.end_applying();
    }

    pub(super) fn anchor(&self) -> Result<&'static Anchor, EngineError> {
        let storage = self.table.storage();
        if let Some(anchor) = self.table.anchor(self.row_id) {
            storage
                .row_ids_end
                .fetch_max(self.row_id.0 + 1, Ordering::AcqRel);
            return Ok(anchor);
        }
        storage
            .directory
            .ensure(&self.session.local, self.row_id, Urgency::Ordinary)?;
        storage
            .row_ids_end
            .fetch_max(self.row_id.0 + 1, Ordering::AcqRel);
        Ok(self.table.anchor(self.row_id).expect("just ensured"))
    }

    /// The version a difference is against.
    pub(super) fn base(
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
                row_id: self.row_id.0,
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

    /// Puts a version on top of its row; `newest`: the newest state before. Answers the state that
    /// is below it now. After an error nothing is published.
    pub(super) fn publish(
        &self,
        anchor: &Anchor,
        newest: Option<VersionRef>,
        version: VersionRef,
    ) -> Result<Option<VersionRef>, EngineError> {
        let keys_changed = self.keys_changed(newest, version)?;
        if keys_changed {
            version.add_flags(flags::KEYS_CHANGED);
        }
        let below = loop {
            let head = anchor.head();
            if head.is_free() {
                return Err(self.mismatch("the row id is free"));
            }
            version.set_next(head);
            let mut new = head.with_address(version.address());
            // The state with which keys were compared may have been rolled back. Then a standby's
            // sweeper may have removed it, and KEYS_MOVED with it. It may still be removing entries
            // of the row that was here.
            let may_differ = keys_changed || head.newest_data() != newest;
            if may_differ && (!head.is_empty() || head.has(Head::CLEANING)) {
                new = new.with_flags(Head::KEYS_MOVED);
            }
            if anchor.publish(head, new) {
                break head.newest_data();
            }
            anchor.wait_unlatched();
        };
        // The sweeper removes what was rolled back, with its entries. If the compared version is
        // not flagged ABORTED by now, that happens after this version is in the chain. Then entries
        // that this version needs stay.
        if newest.is_some_and(|newest| newest.flags() & flags::ABORTED != 0) {
            version.add_flags(flags::KEYS_CHANGED);
        }
        Ok(below)
    }

    /// Makes the index entries of a version that needs them.
    pub(super) fn enter(&self, version: VersionRef) -> Result<(), EngineError> {
        if version.is_tombstone() || !version.changed_keys() {
            return Ok(());
        }
        let (session, table, row_id) = (self.session, self.table, self.row_id);
        match enter_row(session, table, row_id, version, None, NOT_TESTED)? {
            None => Ok(()),
            Some(_) => unreachable!("only asked where uniqueness is tested"),
        }
    }

    /// Counts as if the transaction had committed, as most have. `below`: the state on which this
    /// one was put, whatever becomes of it. The process that removes a top state that was rolled
    /// back corrects the counters (`reclaim/clean.rs`).
    pub(super) fn count(&self, below: Option<VersionRef>, version: VersionRef) {
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
    pub(super) fn free(&self, version: VersionRef) {
        // SAFETY: never published.
        unsafe {
            self.session
                .local
                .free(version.block(), version.block_bytes(), Purpose::Rows);
        }
    }
}
