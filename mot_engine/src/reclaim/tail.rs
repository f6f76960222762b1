//! Taking the tail of a long chain out, all at once.

use super::clean::{Uncounted, end_cleaning, remove_entries};
use crate::ids::{Slot, Xid};
use crate::memory::Purpose;
use crate::pause::{Point, reach};
use crate::row::{Anchor, Head, VersionRef, flags, oldest_needed};
use crate::session::Session;
use crate::table::TableRef;
use std::sync::atomic::Ordering;

/// Takes out all that lies below the oldest version anybody needs, at once: the chain is short then, and whoever looks whether it still has
/// a key walks over few versions. One by one, each of n versions with a key of its own would be looked for among those left: n²/2 steps.
///
/// The versions' own addresses of what is below them stay, so the tail is walked once it is cut off. It is left to `clean_row` where a lock
/// entry may lie in it, which may have to stay, and where somebody else is cleaning.
pub(super) fn cut_tail(
    session: &Session,
    table: TableRef,
    slot: Slot,
    anchor: &Anchor,
    horizon: Xid,
) -> usize {
    let mut latched = anchor.latch();
    let head = latched.head;
    let Some(needed) = oldest_needed(head, horizon) else {
        return 0;
    };
    // FULL_IMAGE_NEXT need not be set for what was logged and rolled back down there: whoever logs a difference bases it on `needed` or on
    // what is above, and on `needed` only if that is the last state logged.
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
    if cleaning {
        reach(Point::UnlinkBeforeEntries);
    }
    let mut uncounted = Uncounted::default();
    let (mut removed, mut superseded) = (0, 0);
    let mut complete = true;
    let mut at = Some(tail);
    while let Some(version) = at {
        at = version.next();
        removed += 1;
        superseded += i64::from(version.flags() & flags::ABORTED == 0);
        uncounted.add(version, false);
        if cleaning {
            complete &= remove_entries(session, table, slot, version).is_ok();
        }
        // SAFETY: cut off above under the latch, by us alone; what it points to was, too, and stays while we are pinned.
        unsafe {
            session
                .local
                .retire(version.block(), version.block_bytes(), Purpose::Rows)
        };
    }
    if cleaning {
        end_cleaning(session, table, slot, anchor, complete);
    }
    let stale = &table.counters().stale_versions;
    stale.fetch_sub(superseded, Ordering::Relaxed);
    uncounted.take_back(table);
    removed
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

/// Whether a version with keys lies in the chain down to `last`, `last` included.
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
