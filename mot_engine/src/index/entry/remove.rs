//! Removing entries that no version of the row needs any more, and whole trees.

use super::append_row_id;
use super::enter::count;
use super::posting::{Posting, inline_value};
use super::remaining::RemainingKeys;
use crate::errors::EngineError;
use crate::ids::RowId;
use crate::key::{IndexDefinition, KeyBuffer, encode_row_if_any};
use crate::memory::Urgency;
use crate::row::Anchor;
use crate::session::Session;
use crate::table::{EntryForm, IndexRef, TableRef};
use mot_index::{Change, Tree};

/// Removes the entry (key, row id) unless some version in the row's chain has the key. `key` is the
/// encoded key without suffix. The caller is pinned. `remaining`: what is known of the chain's
/// keys. `Err` only if a key cannot be encoded; then the entry stays, and the row id must not be
/// reused.
#[allow(clippy::too_many_arguments)]
pub(crate) fn remove_key(
    session: &Session,
    table: TableRef,
    index: IndexRef,
    has_null: bool,
    key: &mut KeyBuffer,
    scratch: &mut KeyBuffer,
    row_id: RowId,
    remaining: Option<&RemainingKeys>,
) -> Result<(), EngineError> {
    let Some(anchor) = table.anchor(row_id) else {
        return Ok(());
    };
    let definition = session.definition(index)?;
    let memory = session.tree_memory(Urgency::Reserve);
    // SAFETY: the caller is pinned for the whole call.
    let tree = unsafe { Tree::new(&index.storage().root, &memory) };
    debug_assert!(session.local.is_pinned());
    let length = key.len();
    let form = index.form(has_null);
    if form == EntryForm::Suffixed {
        append_row_id(key, row_id)?;
    }
    let mut failed = None;
    let mut retired = None;
    let removed = tree.update_present(key.as_slice(), |value| {
        let key = &key.as_slice()[..length];
        match chain_has_key(anchor, definition, key, scratch, remaining) {
            Ok(false) => {}
            Ok(true) => return (Change::Keep, 0),
            Err(error) => {
                failed = Some(error);
                return (Change::Keep, 0);
            }
        }
        match form {
            EntryForm::Suffixed => (Change::Remove, 1),
            EntryForm::Pointed => take_row_id(value, row_id, &mut retired),
        }
    });
    if let Some(block) = retired {
        let block: Posting = block;
        // SAFETY: the tree's value was just replaced or removed.
        unsafe { block.retire(&session.local) };
    }
    count(index, -removed.unwrap_or(0));
    failed.map_or(Ok(()), Err)
}

/// Takes a row id out of a pointed value. Under the leaf's latch.
fn take_row_id(value: u64, row_id: RowId, retired: &mut Option<Posting>) -> (Change, i64) {
    let Some(block) = Posting::of(value) else {
        let mine = value == inline_value(row_id);
        return if mine {
            (Change::Remove, 1)
        } else {
            (Change::Keep, 0)
        };
    };
    if !block.remove(row_id) {
        return (Change::Keep, 0);
    }
    match block.first_two() {
        [None, _] => {
            *retired = Some(block);
            (Change::Remove, 1)
        }
        [Some(last), None] => {
            *retired = Some(block);
            (Change::Set(inline_value(last)), 1)
        }
        _ => (Change::Keep, 1),
    }
}

/// Whether any version of the chain, finished or not, has the key.
fn chain_has_key(
    anchor: &Anchor,
    definition: &IndexDefinition,
    key: &[u8],
    scratch: &mut KeyBuffer,
    remaining: Option<&RemainingKeys>,
) -> Result<bool, EngineError> {
    let mut at = anchor.head().version();
    while let Some(version) = at {
        if let Some(remaining) = remaining.filter(|remaining| remaining.top() == version) {
            return remaining.have(definition, key, scratch);
        }
        if version.has_keys() {
            encode_row_if_any(definition, version.body(), scratch)?;
            if scratch.as_slice() == key {
                return Ok(true);
            }
        }
        at = version.next();
    }
    Ok(false)
}

/// Nodes of an index that are freed in one go.
const NODES_AT_A_TIME: usize = 1024;

/// Frees some nodes of an index, and the posting blocks that they name. True: that was all.
///
/// # Safety
/// Nothing uses the index any more.
pub(crate) unsafe fn clear_some(session: &Session, index: IndexRef) -> bool {
    let memory = session.tree_memory(Urgency::Reserve);
    let has_postings = index.is_unique();
    // SAFETY: nothing else uses the tree (caller); each block is named by one entry, which is
    // gone by then.
    unsafe {
        let tree = Tree::new(&index.storage().root, &memory);
        tree.clear_some(NODES_AT_A_TIME, |value| {
            if has_postings && let Some(block) = Posting::of(value) {
                block.retire(&session.local);
            }
        })
    }
}
