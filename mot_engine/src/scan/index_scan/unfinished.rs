//! A scan that also sees what is not finished yet.

use super::super::pending::PendingRow;
use super::IndexScan;
use crate::clock::{Clock, check_cancelled};
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::index::append_row_id;
use crate::key::KeyBuffer;
use crate::pause::{Point, reach};
use crate::row::VersionRef;
use crate::session::{Session, Unfinished, find_lasting, find_unfinished};
use crate::table::{EntryForm, IndexRef};

impl IndexScan {
    /// The next row of the range with a state that has the key of the entry which led to it, of
    /// those that [`Session::unfinished_and_current`] reports. `use_it` is called at most once,
    /// with the newest such state, and may do what `use_them` may. A row comes once for each entry:
    /// twice, if an unfinished change moves it within the range.
    ///
    /// A scan is asked by this or by `next`, not by both.
    pub fn next_unfinished_or_current<R>(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        use_it: impl FnOnce(RowId, VersionRef, Option<Xid>) -> R,
    ) -> Result<Option<R>, EngineError> {
        let Some((table, index)) = self.place else {
            return Ok(None);
        };
        debug_assert!(self.found.is_empty());
        loop {
            check_cancelled(clock)?;
            // A whole batch of entries at most under one pin.
            let _pin = session.local.pin();
            while let Some(pending) = self.pending.pop() {
                self.pending.prefetch_window();
                if let Some((version, xid)) = self.look_at(session, index, clock, &pending)? {
                    return Ok(Some(use_it(pending.row_id, version, xid)));
                }
            }
            if self.is_done {
                return Ok(None);
            }
            self.read(session, table, index)?;
            reach(Point::ScanAfterEntries);
            self.pending.prefetch_first();
        }
    }

    /// The next row of the range with a state that has the key of the entry which led to it, and
    /// that some snapshot may yet see as the row's newest ([`find_lasting`]). `use_it` is called at
    /// most once, with the row, the state and the entry's key, and pinned: it copies what it needs.
    ///
    /// A scan is asked by this alone.
    pub fn next_lasting<R>(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        use_it: impl FnOnce(VersionRef, &[u8]) -> R,
    ) -> Result<Option<R>, EngineError> {
        let Some((table, index)) = self.place else {
            return Ok(None);
        };
        debug_assert!(self.found.is_empty());
        loop {
            check_cancelled(clock)?;
            let _pin = session.local.pin();
            while let Some(pending) = self.pending.pop() {
                let key = self.entries.key(pending.key);
                let has_key =
                    |version| has_key(session, index, (version, &pending), key, &mut self.scratch);
                if let Some(version) = find_lasting(pending.anchor, clock, has_key)? {
                    return Ok(Some(use_it(version, self.entries.key(pending.key))));
                }
            }
            if self.is_done {
                return Ok(None);
            }
            self.read(session, table, index)?;
        }
    }

    /// The state of a row that has its entry's key. Pinned.
    fn look_at(
        &mut self,
        session: &Session,
        index: IndexRef,
        clock: &impl Clock,
        pending: &PendingRow,
    ) -> Result<Option<Unfinished>, EngineError> {
        let key = self.entries.key(pending.key);
        let scratch = &mut self.scratch;
        find_unfinished(pending.anchor, clock, |version| {
            has_key(session, index, (version, pending), key, scratch)
        })
    }
}

/// Whether a state of the row to which an entry leads has the entry's key.
fn has_key(
    session: &Session,
    index: IndexRef,
    (version, pending): (VersionRef, &PendingRow),
    key: &[u8],
    scratch: &mut KeyBuffer,
) -> Result<bool, EngineError> {
    // A state that is not the one the entry was made for need not have a key.
    let has_null = session.encode_key_if_any(index, version.body(), scratch)?.0;
    if scratch.is_empty() {
        return Ok(false);
    }
    if index.form(has_null) == EntryForm::Suffixed {
        append_row_id(scratch, pending.row_id)?;
    }
    Ok(scratch.as_slice() == key)
}
