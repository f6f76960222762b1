//! Taking KEYS_MOVED back.
//!
//! As long as a row says that its keys have moved, whoever comes to it by an index makes the key of
//! the version seen and compares it, and whoever takes a version out of it looks in every index
//! whether the version's entry is still needed. Once the row is at rest and nobody is cleaning it,
//! the entries of its one version are all that lead to it. What is left is a scan that took an old
//! version's entry out of the tree before that was removed, and comes to the row later. It is told
//! by a number of the table's ([`TableRef::keys_settled`]): it reads it before it reads entries,
//! and again where it finds a row without the flag; if the number has moved on, it compares keys as
//! if the flag were there.
//!
//! Why that suffices: the entry is removed, then the number moves on, then the flag goes. Who finds
//! the flag gone so finds the number moved on, unless what he read before was that already; but
//! then he read the tree after the entry was gone.
//!
//! The number moves on and the flag goes under the row's latch, at which the chain is looked at
//! once more. Without it somebody could put a version with another key on the row, enter it, and
//! take both away again between the two: a scan that began in between has the new number and that
//! entry.
//!
//! The sweeper alone does this: one word of a table that all scans of it read is not for every
//! committing session to write.

use crate::pause::{Point, reach};
use crate::row::{Anchor, Head};
use crate::sync::is_broken;
use crate::table::TableRef;

/// Takes KEYS_MOVED back from a row that was found at rest, if it has it. `true`: somebody is still
/// removing entries, or has put something on the row; it can be done later. The caller is pinned.
pub(super) fn settle_keys(table: TableRef, anchor: &Anchor, found: Head) -> bool {
    if !has_moved_for_now(found) {
        return false;
    }
    reach(Point::ReclaimBeforeKeys);
    let mut latched = anchor.latch();
    let head = latched.head;
    if !has_moved_for_now(head) {
        return false;
    }
    // Who changed the row meanwhile makes its group dirty. Who locked it does not, nor when the
    // lock goes.
    let is_at_rest = head.version().is_some_and(|newest| newest.is_at_rest());
    if !is_at_rest {
        return true;
    }
    if head.has(Head::CLEANING) && !is_broken("reclaim: settling keys behind a cleaner") {
        return true;
    }
    if !is_broken("reclaim: telling scans that keys are settled") {
        table.settle_keys();
    }
    latched.head = head.without_flags(Head::KEYS_MOVED);
    false
}

/// Whether keys have moved, and no entry of them stays for ever.
fn has_moved_for_now(head: Head) -> bool {
    head.has(Head::KEYS_MOVED) && !head.has(Head::ENTRY_LEFT)
}
