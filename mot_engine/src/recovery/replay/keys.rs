//! Keys that rows got in an index that came after them (`transaction/reform.rs`).
//!
//! The record names a state by ordinal and checksum. It may be there already with its key, from a
//! checkpoint or an earlier replay, or be another one by now. Then nothing is to be done. The row's
//! LSN stays: it is that of the state.
//!
//! No other record is being applied meanwhile. On a standby readers and the sweeper continue.

use super::super::load::write_version;
use super::Replayer;
use crate::errors::EngineError;
use crate::ids::{Lsn, RowId};
use crate::index::{NOT_TESTED, enter_row};
use crate::key::{Tail, row_checksum, without_tail};
use crate::log::{KeysReader, RowKey};
use crate::memory::Purpose;
use crate::row::{Anchor, Head, VersionRef, flags, states_from};
use crate::session::Session;
use crate::table::TableRef;
use crate::transaction::{Reforming, put_image};

impl Replayer {
    /// Puts the keys of a record behind their rows.
    pub(super) fn put_keys(
        &mut self,
        session: &Session,
        keys: KeysReader<'_>,
        lsn: Lsn,
    ) -> Result<(), EngineError> {
        let Some(table) = self.table(session, keys.table, lsn)? else {
            return Ok(());
        };
        let number = keys.number;
        let kept: Option<Vec<u32>> = keys.kept().map(Iterator::collect);
        // A replay may begin behind the index.
        let is_there = has_index(session, table, number)?;
        let _reforming = Reforming::begin(table, self.next_xid);
        let mut tail = Tail::default();
        for key in keys {
            let key = key?;
            let _pin = session.local.pin();
            let state = table
                .anchor(key.row_id)
                .and_then(|anchor| Some((anchor, state_of(anchor, &key)?)));
            let Some((anchor, seen)) = state else {
                continue;
            };
            match &kept {
                Some(kept) => tail.take_some(seen.body(), kept)?,
                None => tail.take_others(seen.body(), number)?,
            }
            tail.put(number, key.entry)?;
            let mut image = seen;
            if !tail.is_last_in(seen.body(), number)? {
                let Some(made) = reform(session, table, key.row_id, seen, &tail)? else {
                    continue;
                };
                image = made;
            }
            // Also of one that was put there by an attempt that ran out of memory.
            if is_there {
                enter(session, table, key.row_id, anchor, image)?;
            }
        }
        table.note_reformed(session.engine().round());
        Ok(())
    }
}

/// Whether a table has the index with this number.
fn has_index(session: &Session, table: TableRef, number: u32) -> Result<bool, EngineError> {
    let _pin = session.local.pin();
    for index in table.all_indexes() {
        if session.definition(index)?.computed == Some(number) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The state that a key is of.
fn state_of(anchor: &Anchor, key: &RowKey<'_>) -> Option<VersionRef> {
    states_from(anchor.head().version()).find(|version| {
        version.flags() & (flags::TOMBSTONE | flags::ABORTED) == 0
            && version.ordinal() == key.ordinal
            && row_checksum(version.body()) == key.checksum
    })
}

/// Puts a state with another tail in its place; `None` if the sweeper has taken it out.
fn reform(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    seen: VersionRef,
    tail: &Tail,
) -> Result<Option<VersionRef>, EngineError> {
    let mut body = Vec::new();
    tail.append_to(without_tail(seen.body()), &mut body)?;
    let image = write_version(session, seen.xid(), &body, flags::REFORMED)?;
    if put_image(table, row_id, seen, image) {
        return Ok(Some(image));
    }
    // SAFETY: never published.
    unsafe {
        let (block, bytes) = (image.block(), image.block_bytes());
        session.local.free(block, bytes, Purpose::Rows);
    }
    Ok(None)
}

/// Enters an image in the table's indexes, in which it may be already.
fn enter(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    anchor: &Anchor,
    image: VersionRef,
) -> Result<(), EngineError> {
    let mut latched = anchor.latch();
    if !latched.head.is_empty() {
        latched.head = latched.head.with_flags(Head::KEYS_MOVED);
    }
    drop(latched);
    table.set_dirty(row_id);
    match enter_row(session, table, row_id, image, None, NOT_TESTED)? {
        None => Ok(()),
        Some(_) => unreachable!("only asked where uniqueness is tested"),
    }
}
