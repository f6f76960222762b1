//! Reads of a row that also see unfinished states, as heap's SnapshotDirty does: for callers that
//! must not miss a key that another transaction is adding or removing.

use super::Session;
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{RowId, Xid};
use crate::row::{Anchor, Head, TxnStatus, VersionRef, resolve_maker};
use crate::table::TableRef;

/// A state, and the transaction to wait for before anything can be said of it.
pub(crate) type Unfinished = (VersionRef, Option<Xid>);

impl Session {
    /// Replaces `states` by those that a row has or may get back, newest first: the newest one that
    /// is not aborted, and those below it. The first one that is committed or the asker's own is
    /// the last. Then calls `use_them`.
    ///
    /// Each comes with the transaction to wait for: the state's maker if it is unfinished itself,
    /// and else the one that replaces or deletes it. Row locks are not reported.
    ///
    /// They are of one moment: a row whose newest state is taken back meanwhile is not passed over.
    /// They are valid for as long as the call, which is pinned: `use_them` copies what it needs,
    /// may raise, and does not wait.
    pub fn unfinished_and_current<R>(
        &self,
        clock: &impl Clock,
        (table, row_id): (TableRef, RowId),
        states: &mut Vec<(VersionRef, Option<Xid>)>,
        use_them: impl FnOnce(&[(VersionRef, Option<Xid>)]) -> R,
    ) -> Result<R, EngineError> {
        let _pin = self.local.pin();
        states.clear();
        if let Some(anchor) = table.anchor(row_id) {
            loop {
                let head = anchor.head();
                in_chain(head, clock, &mut |version, xid| {
                    states
                        .try_reserve(1)
                        .map_err(|_| EngineError::OutOfProcessMemory)?;
                    states.push((version, xid));
                    Ok(false)
                })?;
                if anchor.head().same_chain(head) {
                    break;
                }
                states.clear();
            }
        }
        Ok(use_them(states))
    }
}

/// The newest state with a key, of those that [`Session::unfinished_and_current`] reports. The
/// caller is pinned. That no transaction is to be waited for is final, so it is said of a chain
/// that still is the same afterwards. A transaction may have put another state on top before it
/// ended, and then the one that was examined never was the row's.
pub(crate) fn find_unfinished(
    anchor: &Anchor,
    clock: &impl Clock,
    mut has_key: impl FnMut(VersionRef) -> Result<bool, EngineError>,
) -> Result<Option<Unfinished>, EngineError> {
    loop {
        let head = anchor.head();
        let found = in_chain(head, clock, &mut |version, _| has_key(version))?;
        let is_final = matches!(found, Some((_, None)));
        if !is_final || anchor.head().same_chain(head) {
            return Ok(found);
        }
    }
}

/// The row's state that has a key and that is not known to be gone for good: of the asker's own and
/// of others' unfinished states any, and the newest committed one. Pinned.
///
/// Let a later snapshot see two states. Then the maker of the younger one has found the older one
/// here, whatever becomes of the transactions that run.
pub(crate) fn find_lasting(
    anchor: &Anchor,
    clock: &impl Clock,
    mut has_key: impl FnMut(VersionRef) -> Result<bool, EngineError>,
) -> Result<Option<VersionRef>, EngineError> {
    let mut at = anchor.head().version();
    while let Some(version) = at {
        at = version.next();
        if version.is_lock() {
            continue;
        }
        let status = resolve_maker(version, clock);
        let is_state = status != TxnStatus::Aborted && !version.is_tombstone();
        if is_state && has_key(version)? {
            return Ok(Some(version));
        }
        if status == TxnStatus::Committed {
            break;
        }
    }
    Ok(None)
}

/// As [`find_unfinished`], of a chain as it was a moment ago; `is_meant` also gets the transaction
/// to wait for.
fn in_chain(
    head: Head,
    clock: &impl Clock,
    is_meant: &mut impl FnMut(VersionRef, Option<Xid>) -> Result<bool, EngineError>,
) -> Result<Option<Unfinished>, EngineError> {
    let mut replaced_by = None;
    let mut at = head.version();
    while let Some(version) = at {
        at = version.next();
        if version.is_lock() {
            continue;
        }
        match resolve_maker(version, clock) {
            TxnStatus::Aborted => {}
            TxnStatus::Running => {
                let maker = Some(version.xid());
                if !version.is_tombstone() && is_meant(version, maker)? {
                    return Ok(Some((version, maker)));
                }
                replaced_by = replaced_by.or(Some(version.xid()));
            }
            TxnStatus::Mine | TxnStatus::Committed => {
                let is_found = !version.is_tombstone() && is_meant(version, replaced_by)?;
                return Ok(is_found.then_some((version, replaced_by)));
            }
        }
    }
    Ok(None)
}
