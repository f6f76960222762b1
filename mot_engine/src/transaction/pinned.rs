//! The pin of a transaction's end, which lasts for some operations at a time.
//!
//! One pin for all of them would keep the epoch where it is, so that nothing of what the end of a
//! large transaction retires could be freed before it is over. And the session may be
//! idle then, its garbage out of every process's reach.
//!
//! That the pin ends in between does no harm, because nothing that it keeps is carried from one
//! operation to the next:
//! - An operation's address of a version is as old as the operation, so no pin of the end's ever
//!   kept it. It is believed only where it is met in the row's chain, with an xid of ours (`Own`).
//!   Versions with our xids are not made any more, so none that is met is another one.
//! - Anchors live as long as their table, which the transaction's lock keeps. The last thing that
//!   is done with a table or an index that goes is to unlink it.
//! - What is known of rows meanwhile (`Undone`, `Counts`, `PendingPrunes`) names tables and row
//!   ids, no versions.

use crate::memory::{GarbageAt, LocalMemory, Pin};
use crate::session::Session;
use std::time::Duration;

/// Operations under one pin. In models each has one of its own.
const OPERATIONS_PINNED: usize = if cfg!(feature = "model") { 1 } else { 256 };

/// See the module.
#[must_use]
pub(super) struct Pinned<'a> {
    local: &'a LocalMemory,
    pin: Option<Pin<'a>>,
    left: usize,
    before: GarbageAt,
}

impl<'a> Pinned<'a> {
    pub(super) fn begin(session: &'a Session) -> Pinned<'a> {
        let local = &session.local;
        Pinned {
            local,
            pin: Some(local.pin()),
            left: OPERATIONS_PINNED,
            before: local.garbage(),
        }
    }

    /// Before each operation.
    #[inline]
    pub(super) fn step(&mut self) {
        if self.left == 0 {
            // Ended before the next one begins, or they would be one.
            self.pin = None;
            self.pin = Some(self.local.pin());
            self.left = OPERATIONS_PINNED;
        }
        self.left -= 1;
    }

    /// Unpins for good, and frees garbage of the session if that is much: waits so long for those
    /// that are pinned if it is very much and of this end. A session that continues its statement
    /// drops this instead.
    pub(super) fn end(self, patience: Duration) {
        let Pinned {
            local, pin, before, ..
        } = self;
        drop(pin);
        local.hand_over_garbage(before, patience);
    }
}
