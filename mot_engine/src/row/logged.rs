//! What a checkpoint takes of a row: its logged states, and the LSN that belongs to them, read as one.

use super::version::{VersionRef, flags};
use crate::errors::EngineError;
use crate::ids::{Lsn, Slot, Xid};
use crate::table::TableRef;

/// More room when a chain is longer than expected.
const ROOM_STEP: usize = 64;

/// Puts the row's logged states into `versions`, newest first, down to the first one that a committed transaction below `settled` made, and
/// returns the LSN of the newest. Versions that are known to be aborted are left out. Empty `versions` with an LSN: a row that is gone, or
/// whose logged states all were taken back. `None`: the slot has no anchor. The caller is pinned for as long as it uses the versions.
pub fn logged_chain(
    table: TableRef,
    slot: Slot,
    settled: Xid,
    versions: &mut Vec<VersionRef>,
) -> Result<Option<Lsn>, EngineError> {
    let Some(anchor) = table.anchor(slot) else {
        return Ok(None);
    };
    loop {
        versions.clear();
        versions
            .try_reserve(ROOM_STEP)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        let mut has_room = true;
        let latched = anchor.latch();
        let lsn = anchor.lsn();
        let mut at = latched.head.version();
        while let Some(version) = at {
            at = version.next();
            let now = version.flags();
            if now & flags::LOCK_ONLY != 0 || now & flags::ABORTED != 0 || now & flags::LOGGED == 0
            {
                continue;
            }
            has_room = versions.len() < versions.capacity();
            if !has_room {
                break;
            }
            versions.push(version);
            if now & flags::COMMITTED != 0 && version.xid() < settled {
                break;
            }
        }
        drop(latched);
        if has_room {
            return Ok(Some(lsn));
        }
        let room = versions.capacity() + ROOM_STEP;
        versions
            .try_reserve(room)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
    }
}
