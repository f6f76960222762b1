//! Clears KEYS_MOVED.
//!
//! While a row has the flag, a reader that reaches it by an index encodes the key of the version it
//! sees, and compares. A process that removes one of its versions checks in every index whether the
//! entry is still needed. Once the row is quiescent and no process is cleaning it, only entries of
//! its one version lead to it. One case is left: a scan may have read an old version's entry before
//! that was removed, and reach the row later. So the table has a number
//! ([`TableRef::keys_cleared`]). A scan reads it before it reads entries, and again at a row
//! without the flag. If the number has risen, the scan compares keys as if the flag were there.
//!
//! **Why that suffices.** First the entry is removed, then the number rises, then the flag goes. So
//! a scan that finds the flag gone finds a higher number, unless the number that it read before was
//! already the higher one. But then it read the tree after the entry was gone.
//!
//! The number rises and the flag goes under the row's latch, after one more look at the chain.
//! Otherwise a writer could put a version with another key on the row, enter it, and remove both
//! between the two. A scan that began in between would have the new number and that entry.
//!
//! The sweeper alone does this, because all scans of a table read the number: it is not for every
//! committing session to write.

use crate::pause::{Point, reach};
use crate::row::{Anchor, Head};
use crate::sync::is_broken;
use crate::table::TableRef;

/// Takes KEYS_MOVED back from a row that was found quiescent, if it has it. `true`: a process is
/// still removing entries, or has put something on the row; it can be done later. The caller is
/// pinned.
pub(super) fn clear_keys_moved(table: TableRef, anchor: &Anchor, found: Head) -> bool {
    if !has_moved_for_now(found) {
        return false;
    }
    reach(Point::ReclaimBeforeKeys);
    let mut latched = anchor.latch();
    let head = latched.head;
    if !has_moved_for_now(head) {
        return false;
    }
    // A change of the row meanwhile makes its group dirty. A lock does not, nor when the
    // lock goes.
    let is_quiescent = head.version().is_some_and(|newest| newest.is_quiescent());
    if !is_quiescent {
        return true;
    }
    if head.has(Head::CLEANING) && !is_broken("reclaim: clearing KEYS_MOVED behind a cleaner") {
        return true;
    }
    if !is_broken("reclaim: telling scans that KEYS_MOVED is cleared") {
        table.note_keys_cleared();
    }
    latched.head = head.without_flags(Head::KEYS_MOVED);
    false
}

/// Whether keys have moved, and no entry of them stays for ever.
fn has_moved_for_now(head: Head) -> bool {
    head.has(Head::KEYS_MOVED) && !head.has(Head::ENTRY_LEFT)
}
