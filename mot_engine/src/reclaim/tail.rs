//! Removes the tail of a long chain, all at once.

use super::own_versions::{Run, Runs, finish};
use crate::ids::{RowId, Xid};
use crate::memory::Purpose;
use crate::row::{Anchor, Head, VersionRef, flags, oldest_needed};
use crate::session::Session;
use crate::table::TableRef;
use std::sync::atomic::Ordering;

/// `cut_tail` for a row as most are in which a commit left something: two states with the same
/// keys, of which every snapshot sees the newer one. Nothing is to be done with it then, which is
/// noted. `false`: it is another kind of row, and nothing has happened.
pub(super) fn cut_replaced(
    session: &Session,
    table: TableRef,
    anchor: &Anchor,
    horizon: Xid,
) -> bool {
    if newest_and_replaced(table, anchor.head(), horizon).is_none() {
        return false;
    }
    let mut latched = anchor.latch();
    let Some((newest, replaced)) = newest_and_replaced(table, latched.head, horizon) else {
        return false;
    };
    newest.replace_next(None);
    latched.head = latched.head.with_flags(Head::QUIESCENT);
    drop(latched);
    // SAFETY: unlinked above under the latch, by us alone.
    unsafe {
        session
            .local
            .retire(replaced.block(), replaced.block_bytes(), Purpose::Rows)
    };
    let stale = &table.counters().stale_versions;
    stale.fetch_sub(1, Ordering::Relaxed);
    true
}

/// The two states of a chain of no more, both committed and neither the row's end, of which the
/// newer one is below the horizon and no key of theirs differs.
fn newest_and_replaced(
    table: TableRef,
    head: Head,
    horizon: Xid,
) -> Option<(VersionRef, VersionRef)> {
    const MORE_TO_DO: u64 = Head::KEYS_MOVED | Head::HAS_LOCKS | Head::CLEANING | Head::ENTRY_LEFT;
    const PLAIN: u32 = flags::COMMITTED;
    const TELLING: u32 =
        PLAIN | flags::ABORTED | flags::TOMBSTONE | flags::LOCK_ONLY | flags::APPLYING;
    let is_plain = |version: &VersionRef| version.flags() & TELLING == PLAIN;
    let newest = head.version().filter(|_| !head.has(MORE_TO_DO))?;
    let replaced = newest.next().filter(is_plain)?;
    let is_last = is_plain(&newest) && newest.xid() < horizon && replaced.next().is_none();
    (is_last && outdates(table, newest, horizon)).then_some((newest, replaced))
}

/// Whether what is below a state that every snapshot sees is read by none. It is not if it took
/// the place of the one below, which snapshots of that moment may read. Asked under the latch.
pub(super) fn outdates(table: TableRef, version: VersionRef, horizon: Xid) -> bool {
    !version.is_reformed() || !table.keeps_former_images(horizon)
}

/// Takes out all that is below the oldest version needed, at once: the chain is short
/// then, and a process that checks whether it still has a key walks over few versions. One by one,
/// each of n versions with a key of its own would be looked for among those left: n²/2 steps.
///
/// The versions' own addresses of what is below them stay, so the tail is walked once it is cut
/// off. It is left to `clean_row` where a lock entry may lie in it, which may have to stay, and
/// where another process is cleaning.
pub(super) fn cut_tail(
    session: &Session,
    table: TableRef,
    row_id: RowId,
    anchor: &Anchor,
    horizon: Xid,
) -> usize {
    let mut latched = anchor.latch();
    let head = latched.head;
    let Some(needed) = oldest_needed(head, horizon, |version| outdates(table, version, horizon))
    else {
        return 0;
    };
    // FULL_IMAGE_NEXT need not be set for what was logged and rolled back down there: a writer that
    // logs a difference bases it on `needed` or on what is above, and on `needed` only if that is
    // the last state logged.
    let Some(tail) = needed.next() else {
        return 0;
    };
    if may_have_locks_below(head, needed) || head.has(Head::CLEANING) {
        return 0;
    }
    let cleaning = head.has(Head::KEYS_MOVED) || !has_keys_down_to(head, needed);
    needed.replace_next(None);
    if cleaning {
        latched.head = head.with_flags(Head::CLEANING);
    }
    drop(latched);
    let tail = Runs::one(Run {
        first: tail,
        end: None,
    });
    finish(session, table, row_id, anchor, &tail, cleaning)
}

/// Whether a lock entry may lie below `last`. Latched.
fn may_have_locks_below(head: Head, last: VersionRef) -> bool {
    if !head.has(Head::HAS_LOCKS) {
        return false;
    }
    let mut at = head.version();
    while let Some(version) = at {
        if version.ends_locks() {
            return false;
        }
        if version == last {
            break;
        }
        at = version.next();
    }
    true
}

/// Whether a version with keys is in the chain down to `last`, `last` included.
fn has_keys_down_to(head: Head, last: VersionRef) -> bool {
    let mut at = head.version();
    while let Some(version) = at {
        if version.flags() & (flags::LOCK_ONLY | flags::TOMBSTONE | flags::ABORTED) == 0 {
            return true;
        }
        at = version.next().filter(|_| version != last);
    }
    false
}
