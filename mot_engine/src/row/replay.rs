//! Putting versions on rows in recovery: from checkpoint files, and from the log.
//!
//! A slot is changed by one thread at a time (loading is split by slot, replay is in log order). Readers on a standby walk the chain as ever.

use super::anchor::Head;
use super::version::{STAMP_BYTES, TOMBSTONE_IMAGE, VersionRef, block_bytes, flags};
use crate::errors::EngineError;
use crate::ids::{CommandId, Lsn, Slot, Xid};
use crate::index::enter_key;
use crate::key::{encode_row, key_attributes_unchanged};
use crate::memory::{Purpose, Urgency};
use crate::session::Session;
use crate::table::TableRef;
use crate::transaction::NoClock;
use std::sync::atomic::Ordering;

/// Puts a version on top of a row's chain and raises the row's LSN. `body` is what follows the stamp; `None` is a tombstone. `hints` is 0 or one
/// of COMMITTED and ABORTED. Index entries are not made; see [`enter_replayed`].
pub(crate) fn replay_install(
    session: &Session,
    table: TableRef,
    slot: Slot,
    body: Option<&[u8]>,
    xid: Xid,
    lsn: Lsn,
    hints: u32,
) -> Result<VersionRef, EngineError> {
    debug_assert_eq!(hints & !(flags::COMMITTED | flags::ABORTED), 0);
    let storage = table.storage();
    storage
        .directory
        .ensure(&session.local, slot, Urgency::Reserve)?;
    storage.slots_end.fetch_max(slot.0 + 1, Ordering::AcqRel);
    let anchor = table.anchor(slot).expect("just ensured");
    let image_bytes = body.map_or(TOMBSTONE_IMAGE.len(), |body| STAMP_BYTES + body.len());
    let kind = if body.is_none() { flags::TOMBSTONE } else { 0 };
    let bytes = block_bytes(image_bytes);
    let block = session
        .local
        .allocate(bytes, Purpose::Rows, Urgency::Ordinary)?;
    let below = anchor.head();
    // SAFETY: the block is fresh and large enough.
    let version = unsafe {
        VersionRef::write_body(
            block,
            body,
            xid,
            CommandId(0),
            slot,
            kind | hints | flags::LOGGED,
        )
    };
    let mut moved = 0;
    if let (Some(old), Some(_)) = (newest_data(below), body) {
        for index in table.all_indexes() {
            let definition = session.definition(index)?;
            if !key_attributes_unchanged(definition, old.image(), version.image())? {
                moved = Head::KEYS_MOVED;
            }
        }
    }
    if below.version().is_none() || moved != 0 {
        version.add_flags(flags::KEYS_CHANGED);
    }
    let mut latched = anchor.latch();
    version.set_next(latched.head);
    latched.head = if latched.head.is_free() {
        Head::empty().with_address(version.address())
    } else {
        latched
            .head
            .with_address(version.address())
            .with_flags(moved)
    };
    drop(latched);
    anchor.raise_lsn(lsn);
    Ok(version)
}

fn newest_data(head: Head) -> Option<VersionRef> {
    let mut at = head.version();
    while let Some(version) = at {
        if !version.is_lock() && !version.is_tombstone() {
            return Some(version);
        }
        at = version.next();
    }
    None
}

/// Makes the entries of a replayed version in every index of its table, without a test of uniqueness.
pub(crate) fn enter_replayed(
    session: &Session,
    table: TableRef,
    version: VersionRef,
) -> Result<(), EngineError> {
    if version.is_tombstone() || !version.changed_keys() {
        return Ok(());
    }
    let _pin = session.local.pin();
    for index in table.all_indexes() {
        let definition = session.definition(index)?;
        session.with_keys(|keys| {
            let [key, scratch, _] = keys;
            let has_null = encode_row(definition, version.image(), key)?.0;
            let slot = version.slot();
            enter_key::<NoClock>(session, table, index, has_null, key, scratch, slot, None)
        })?;
    }
    Ok(())
}

/// Raises the LSN of a row that has no version: a slot freed after the checkpoint's redo position.
pub(crate) fn replay_empty(
    session: &Session,
    table: TableRef,
    slot: Slot,
    lsn: Lsn,
) -> Result<(), EngineError> {
    let storage = table.storage();
    storage
        .directory
        .ensure(&session.local, slot, Urgency::Reserve)?;
    storage.slots_end.fetch_max(slot.0 + 1, Ordering::AcqRel);
    table.anchor(slot).expect("just ensured").raise_lsn(lsn);
    Ok(())
}
