//! The index entries of a version that was just published.

use super::Transaction;
use super::examine::data_below;
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::index::{
    EntryOutcome, NOT_TESTED, Obstacle, Uniqueness, enter_row, enter_row_in, probe_key,
};
use crate::pause::{Point, reach};
use crate::reclaim::prune_row;
use crate::row::VersionRef;
use crate::session::Session;
use crate::table::{IndexRef, TableRef};

/// What became of a row's entries.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Entered {
    /// All entries are there.
    Done,
    /// Wait for this transaction, then call again. It may have the key in the index with this oid,
    /// which may be gone by then.
    Busy(Xid, u32),
    /// Another live row has the key of this index.
    Duplicate(IndexRef),
}

impl Transaction {
    /// Makes every index entry of a version that this transaction just published. It may be called
    /// again, after a wait: entries that are there stay.
    pub fn enter(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        version: VersionRef,
    ) -> Result<Entered, EngineError> {
        let _charge = session.charge(table);
        with_below(session, version, |below| {
            enter_row(
                session,
                table,
                row_id,
                version,
                below,
                Some(tested_by(clock)),
            )
        })
    }

    /// As `enter`, in one index.
    #[allow(clippy::too_many_arguments)]
    pub fn enter_index(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        version: VersionRef,
        index: IndexRef,
    ) -> Result<Entered, EngineError> {
        let _charge = session.charge(table);
        with_below(session, version, |below| {
            enter_row_in(
                session,
                (table, index),
                row_id,
                version,
                below,
                tested_by(clock),
            )
        })
    }

    /// Makes the entries that a caller, which enters index by index, has left out: in indexes that
    /// it did not know to be ready. Uniqueness is not checked. `entered`: how many it has entered.
    pub fn enter_rest(
        &mut self,
        session: &Session,
        table: TableRef,
        row_id: RowId,
        version: VersionRef,
        entered: usize,
    ) -> Result<(), EngineError> {
        let _pin = session.local.pin();
        if table.all_indexes().count() == entered {
            return Ok(());
        }
        let _charge = session.charge(table);
        let below = data_below(version).filter(|below| !below.is_tombstone());
        match enter_row(session, table, row_id, version, below, NOT_TESTED)? {
            None => Ok(()),
            Some(_) => unreachable!("only asked where uniqueness is tested"),
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
                probe_key(
                    session,
                    table,
                    index,
                    has_null,
                    key,
                    scratch,
                    tested_by(clock),
                )
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

/// A test of uniqueness that asks this clock.
#[inline(always)]
pub(super) fn tested_by<C: Clock>(
    clock: &C,
) -> Uniqueness<'_, C, impl Fn(&Session, TableRef, RowId) -> usize + Copy + use<C>> {
    Uniqueness {
        clock,
        prune: prune_row,
    }
}

/// Enters a version if it changes keys. `enter` gets the state below, whose entries are there.
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
