//! Taking the tail of a long chain out, all at once.

use super::stretch::{Run, Runs, finish};
use crate::ids::{Slot, Xid};
use crate::row::{Anchor, Head, VersionRef, flags, oldest_needed};
use crate::session::Session;
use crate::table::TableRef;

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
    let tail = Runs::one(Run {
        first: tail,
        end: None,
    });
    finish(session, table, slot, anchor, &tail, cleaning)
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
