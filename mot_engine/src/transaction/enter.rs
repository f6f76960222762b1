//! The index entries of a version just installed.

use super::examine::data_below;
use super::{NoClock, Transaction};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{Slot, Xid};
use crate::index::{EntryOutcome, Obstacle, enter_row, enter_row_in, probe_key};
use crate::pause::{Point, reach};
use crate::row::VersionRef;
use crate::session::Session;
use crate::table::{IndexRef, TableRef};

/// What became of a row's entries.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Entered {
    /// All there.
    Done,
    /// Wait for this transaction, then call again. It may have the key of the index with this oid,
    /// which may be gone by then.
    Busy(Xid, u32),
    /// Another live row has the key of this index.
    Duplicate(IndexRef),
}

impl Transaction {
    /// Makes sure of every index entry of a version this transaction just installed. Calling it
    /// again, after a wait, is fine.
    pub fn enter(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        slot: Slot,
        version: VersionRef,
    ) -> Result<Entered, EngineError> {
        let _charge = session.charge(table);
        with_below(session, version, |below| {
            enter_row(session, table, slot, version, below, Some(clock))
        })
    }

    /// As `enter`, in one index.
    #[allow(clippy::too_many_arguments)]
    pub fn enter_index(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        slot: Slot,
        version: VersionRef,
        index: IndexRef,
    ) -> Result<Entered, EngineError> {
        let _charge = session.charge(table);
        with_below(session, version, |below| {
            enter_row_in(session, (table, index), slot, version, below, clock)
        })
    }

    /// Makes sure of the entries that a caller, who goes index by index, has left out: in indexes
    /// that he did not know to be ready. They are asked for no uniqueness. `entered`: in how many
    /// he has.
    pub fn enter_rest(
        &mut self,
        session: &Session,
        table: TableRef,
        slot: Slot,
        version: VersionRef,
        entered: usize,
    ) -> Result<(), EngineError> {
        let _pin = session.local.pin();
        if table.all_indexes().count() == entered {
            return Ok(());
        }
        let _charge = session.charge(table);
        let below = data_below(version).filter(|below| !below.is_tombstone());
        match enter_row::<NoClock>(session, table, slot, version, below, None)? {
            None => Ok(()),
            Some(_) => unreachable!("only asked with a clock"),
        }
    }

    /// Whether inserting this body would meet a live row with the same key (of `only`, if given);
    /// changes nothing.
    pub fn probe(
        &self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        only: Option<IndexRef>,
        body: &[u8],
    ) -> Result<Entered, EngineError> {
        let _pin = session.local.pin();
        for index in table.indexes_by_oid() {
            if !index.is_asked(clock) || only.is_some_and(|only| only != index) {
                continue;
            }
            let outcome = session.with_keys(|keys| {
                let [key, scratch, ..] = keys;
                let has_null = session.encode_key(index, body, key)?.0;
                if key.is_empty() {
                    return Ok(EntryOutcome::Done);
                }
                probe_key(session, table, index, has_null, key, scratch, clock)
            })?;
            match outcome {
                EntryOutcome::Done => {}
                EntryOutcome::Busy(xid) => return Ok(Entered::Busy(xid, index.relation_oid())),
                EntryOutcome::Duplicate => return Ok(Entered::Duplicate(index)),
            }
        }
        Ok(Entered::Done)
    }
}

/// Enters a version that changes keys: `enter` gets the state below it that has entries.
#[inline(always)]
fn with_below(
    session: &Session,
    version: VersionRef,
    enter: impl FnOnce(Option<VersionRef>) -> Result<Option<Obstacle>, EngineError>,
) -> Result<Entered, EngineError> {
    if !version.changed_keys() {
        return Ok(Entered::Done);
    }
    reach(Point::WriteBeforeEntries);
    let _pin = session.local.pin();
    let below = data_below(version).filter(|below| !below.is_tombstone());
    Ok(match enter(below)? {
        None => Entered::Done,
        Some(Obstacle::Busy(xid, index)) => Entered::Busy(xid, index),
        Some(Obstacle::Duplicate(index)) => Entered::Duplicate(index),
    })
}
