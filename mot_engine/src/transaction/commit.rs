//! Commit: stamping, trimming, counting. Runs after PostgreSQL's commit record decided; nothing here can fail.
//!
//! From the moment PostgreSQL has decided, others may judge our versions committed, put theirs on top and even prune ours. So each version is
//! looked for in its row's chain first.

use super::examine::data_below;
use super::log::committed_below;
use super::{Kind, Operation, Own, Transaction};
use crate::memory::Purpose;
use crate::reclaim::{clean_row, prune_row, without_stale_lock_flag};
use crate::row::{Anchor, Head, VersionRef, flags, unlink};
use crate::session::Session;
use crate::table::TableRef;
use std::sync::atomic::Ordering;

impl Transaction {
    /// The transaction committed.
    pub fn commit(&mut self, session: &Session) {
        let pin = session.local.pin();
        for operation in &self.operations {
            match operation.kind() {
                Kind::Insert | Kind::Update | Kind::Delete => {
                    commit_row(session, &self.own, operation)
                }
                Kind::Lock => unlock(session, &self.own, operation),
                Kind::CreateTable => operation
                    .table
                    .storage()
                    .created
                    .store(0, Ordering::Release),
                Kind::CreateIndex => {
                    operation
                        .index()
                        .storage()
                        .created
                        .store(0, Ordering::Release);
                }
                Kind::DropTable | Kind::DropIndex => {}
            }
        }
        for operation in &self.operations {
            match operation.kind() {
                Kind::DropTable => session.catalog().doom(operation.table),
                Kind::DropIndex => session.catalog().doom_index(operation.index()),
                _ => {}
            }
        }
        drop(pin);
        session
            .engine()
            .transactions()
            .commits
            .fetch_add(1, Ordering::Relaxed);
        self.clear();
    }
}

fn commit_row(session: &Session, own: &Own, operation: &Operation) {
    let table = operation.table;
    let slot = operation.slot();
    let Some(anchor) = table.anchor(slot) else {
        return;
    };
    let Some(version) = last_own(anchor, own) else {
        // Judged by others, superseded and pruned already.
        return;
    };
    if version.address() != operation.address() {
        // An earlier state of this transaction: cut out together with the last one.
        return;
    }
    let base = committed_below(version);
    version.add_flags(flags::COMMITTED);
    let counters = table.counters();
    let base_bytes = base
        .filter(|base| !base.is_tombstone())
        .map(|base| base.image_bytes() as i64);
    match (base_bytes, version.is_tombstone()) {
        (None, false) => {
            counters.rows.fetch_add(1, Ordering::Relaxed);
            counters
                .row_bytes
                .fetch_add(version.image_bytes() as i64, Ordering::Relaxed);
            counters.inserted.fetch_add(1, Ordering::Relaxed);
        }
        (Some(bytes), false) => {
            let grown = version.image_bytes() as i64 - bytes;
            if grown != 0 {
                counters.row_bytes.fetch_add(grown, Ordering::Relaxed);
            }
            counters.updated.fetch_add(1, Ordering::Relaxed);
            counters.stale_versions.fetch_add(1, Ordering::Relaxed);
        }
        (Some(bytes), true) => {
            counters.rows.fetch_sub(1, Ordering::Relaxed);
            counters.row_bytes.fetch_sub(bytes, Ordering::Relaxed);
            counters.deleted.fetch_add(1, Ordering::Relaxed);
            counters.stale_versions.fetch_add(1, Ordering::Relaxed);
        }
        (None, true) => {}
    }
    let has_own_between = data_below(version) != base;
    if has_own_between || anchor.head().has(Head::FULL_IMAGE_NEXT) {
        trim(session, table, anchor, own, version);
    }
    let horizon = session.engine().horizon();
    if base.is_some_and(|base| base.xid() < horizon && base.next().is_some()) {
        prune_row(session, table, slot);
    }
    if base.is_some() || has_own_between || version.is_tombstone() {
        table.set_dirty(slot);
    }
}

/// The row's newest state that this transaction made.
fn last_own(anchor: &Anchor, own: &Own) -> Option<VersionRef> {
    let mut at = anchor.head().version();
    while let Some(version) = at {
        if version.flags() & (flags::LOCK_ONLY | flags::ABORTED) == 0 && own.has(version.xid()) {
            return Some(version);
        }
        at = version.next();
    }
    None
}

/// Cuts out the states that this transaction replaced itself, which nobody else ever saw. The whole image was logged if it had to be.
fn trim(session: &Session, table: TableRef, anchor: &Anchor, own: &Own, last: VersionRef) {
    clean_row(session, table, last.slot(), |head, out| {
        *head = head.without_flags(Head::FULL_IMAGE_NEXT);
        let mut at = last.next();
        while let Some(version) = at {
            at = version.next();
            let now = version.flags();
            if now & flags::LOCK_ONLY != 0 || now & flags::ABORTED != 0 {
                continue;
            }
            if !own.has(version.xid()) {
                break;
            }
            out.take(head, version);
        }
    });
    debug_assert!(anchor.head().version().is_some());
}

/// Takes a row lock's entry out of its chain.
pub(super) fn unlock(session: &Session, own: &Own, operation: &Operation) {
    let Some(anchor) = operation.table.anchor(operation.slot()) else {
        return;
    };
    let mut latched = anchor.latch();
    let mut head = latched.head;
    let Some(entry) = own.find(head, operation) else {
        return;
    };
    unlink(&mut head, entry);
    latched.head = without_stale_lock_flag(head);
    drop(latched);
    // SAFETY: just unlinked.
    unsafe {
        session
            .local
            .retire(entry.block(), entry.block_bytes(), Purpose::Rows)
    };
}
