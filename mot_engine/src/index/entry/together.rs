//! A row's entries in all indexes of its table.
//!
//! If one index came after the other, each descent would wait alone for its cache misses. So all
//! keys are encoded first, and all trees are descended side by side. Each key is then entered at
//! the position where its descent ended. That is as many descents, with overlapping misses. Between
//! finding a position and using it others may change the tree, and so may we, by pruning a
//! candidate's row. The tree notices that (`mot_index`).
//!
//! The answer names the index that it would name if indexes came in the order of their oids
//! (`table/by_oid.rs`): the first one that another row's key blocks. A key that cannot be encoded
//! is reported after all indexes before its own.

use super::append_row_id;
use super::enter::{EntryOutcome, Pruner, Uniqueness, enter_at};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::key::KeyBuffer;
use crate::limits::KEYS_TOGETHER;
use crate::memory::Urgency;
use crate::row::VersionRef;
use crate::session::Session;
use crate::table::{EntryForm, IndexRef, TableRef};
use mot_index::Tree;

/// What is in the way of a row's entries.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum Obstacle {
    /// Wait for this transaction, then enter the row again. It may have the key of the index with
    /// this oid, which may be gone by then.
    Busy(Xid, u32),
    /// Another live row has the key of this index.
    Duplicate(IndexRef),
}

/// An entry to make.
#[derive(Copy, Clone)]
struct PendingEntry {
    index: IndexRef,
    form: EntryForm,
}

/// Makes sure of a version's entries, but for those that `below`, the state it was put upon, has as
/// well. With `uniqueness`, keys of unique indexes that exist for the caller are entered only if no
/// other live row has them. The caller is pinned.
pub(crate) fn enter_row<C: Clock, P: Pruner>(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    version: VersionRef,
    below: Option<VersionRef>,
    uniqueness: Option<Uniqueness<'_, C, P>>,
) -> Result<Option<Obstacle>, EngineError> {
    debug_assert!(session.local.is_pinned());
    session.with_keys(|keys| {
        let [scratch, old_key, keys @ ..] = keys;
        let mut indexes = table.indexes_by_oid();
        loop {
            let mut pending = [None; KEYS_TOGETHER];
            let mut count = 0;
            let mut end = None;
            while count < KEYS_TOGETHER && end.is_none() {
                let Some(index) = indexes.next() else {
                    end = Some(Ok(()));
                    break;
                };
                // One that this transaction dropped need not take the row: the drop is not taken
                // back without it. Nor need one that another is building: that reads all rows
                // again. Nor, where the log is replayed, one that the server may have had no more.
                let is_optional = !uniqueness.is_some_and(|test| index.is_asked(test.clock));
                match encode(
                    session,
                    index,
                    is_optional,
                    row_id,
                    version,
                    below,
                    &mut keys[count],
                    old_key,
                ) {
                    Ok(Some(form)) => {
                        pending[count] = Some(PendingEntry { index, form });
                        count += 1;
                    }
                    Ok(None) => {}
                    Err(error) => end = Some(Err(error)),
                }
            }
            let (pending, keys) = (&pending[..count], &keys[..count]);
            let obstacle =
                enter_together(session, table, row_id, pending, keys, scratch, uniqueness)?;
            if obstacle.is_some() {
                return Ok(obstacle);
            }
            if let Some(end) = end {
                return end.map(|()| None);
            }
        }
    })
}

/// As `enter_row`, in one index.
pub(crate) fn enter_row_in<C: Clock, P: Pruner>(
    session: &Session,
    (table, index): (TableRef, IndexRef),
    row_id: RowId,
    version: VersionRef,
    below: Option<VersionRef>,
    uniqueness: Uniqueness<'_, C, P>,
) -> Result<Option<Obstacle>, EngineError> {
    debug_assert!(session.local.is_pinned());
    session.with_keys(|keys| {
        let [scratch, old_key, keys @ ..] = keys;
        let is_optional = !index.is_asked(uniqueness.clock);
        let key = &mut keys[0];
        let form = encode(
            session,
            index,
            is_optional,
            row_id,
            version,
            below,
            key,
            old_key,
        )?;
        let Some(form) = form else {
            return Ok(None);
        };
        let pending = [Some(PendingEntry { index, form })];
        enter_together(
            session,
            table,
            row_id,
            &pending,
            &keys[..1],
            scratch,
            Some(uniqueness),
        )
    })
}

/// Puts the entry's key into `key`; `None` if the version needs no entry of its own in the index.
#[allow(clippy::too_many_arguments)]
fn encode(
    session: &Session,
    index: IndexRef,
    is_optional: bool,
    row_id: RowId,
    version: VersionRef,
    below: Option<VersionRef>,
    key: &mut KeyBuffer,
    old_key: &mut KeyBuffer,
) -> Result<Option<EntryForm>, EngineError> {
    let has_null = if is_optional {
        session.encode_key_if_any(index, version.body(), key)?.0
    } else {
        session.encode_key(index, version.body(), key)?.0
    };
    if key.is_empty() && !session.is_outside(index, version.body())? {
        index.leave_out();
    }
    if let Some(below) = below {
        session.encode_key_if_any(index, below.body(), old_key)?;
        if old_key.as_slice() == key.as_slice() {
            return Ok(None);
        }
    }
    if key.is_empty() {
        return Ok(None);
    }
    let form = index.form(has_null);
    if form == EntryForm::Suffixed {
        append_row_id(key, row_id)?;
    }
    Ok(Some(form))
}

/// Enters keys, each of an index.
fn enter_together<C: Clock, P: Pruner>(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    pending: &[Option<PendingEntry>],
    keys: &[KeyBuffer],
    scratch: &mut KeyBuffer,
    uniqueness: Option<Uniqueness<'_, C, P>>,
) -> Result<Option<Obstacle>, EngineError> {
    let memory = &session.tree_memory(Urgency::Ordinary);
    let tree = |index: IndexRef| {
        // SAFETY: the caller is pinned for the whole call.
        unsafe { Tree::new(&index.storage().root, memory) }
    };
    let mut enter = |pending: &PendingEntry, key: &KeyBuffer, position| {
        let PendingEntry { index, form } = *pending;
        let tree = tree(index);
        let uniqueness = uniqueness.filter(|test| index.is_asked(test.clock));
        // SAFETY: no insert position, or it was found below for this key in this tree, and the
        // caller is pinned since.
        let outcome = unsafe {
            enter_at(
                session, table, index, form, &tree, position, key, scratch, row_id, uniqueness,
            )
        };
        outcome.map(|outcome| match outcome {
            EntryOutcome::Done => None,
            EntryOutcome::Busy(xid) => Some(Obstacle::Busy(xid, index.relation_oid())),
            EntryOutcome::Duplicate => Some(Obstacle::Duplicate(index)),
        })
    };
    // One way down would overlap with nothing.
    if let ([Some(pending)], [key]) = (pending, keys) {
        return enter(pending, key, None);
    }
    let mut positions = [None; KEYS_TOGETHER];
    let pending = pending.iter().flatten().zip(keys);
    let pairs = pending
        .clone()
        .map(|(pending, key)| (tree(pending.index), key.as_slice()));
    Tree::find_insert_positions(pairs, |number, position| positions[number] = Some(position));
    for ((pending, key), position) in pending.zip(positions) {
        let obstacle = enter(pending, key, position)?;
        if obstacle.is_some() {
            return Ok(obstacle);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
