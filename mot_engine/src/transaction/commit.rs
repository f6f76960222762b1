//! Commit: stamping, trimming, counting. Runs after PostgreSQL's commit record decided; nothing here can fail.

use super::log::committed_below;
use super::{Kind, Operation, Transaction};
use crate::ids::Xid;
use crate::key::encode_row;
use crate::memory::Purpose;
use crate::row::{Anchor, Head, VersionRef, flags, prune_tail, unlink};
use crate::session::Session;
use crate::table::TableRef;
use std::sync::atomic::Ordering;

impl Transaction {
    /// The transaction committed.
    pub fn commit(&mut self, session: &Session) {
        let pin = session.local.pin();
        let horizon = session.engine().horizon();
        for operation in &self.operations {
            match operation.kind() {
                Kind::Insert | Kind::Update | Kind::Delete => {
                    commit_row(session, operation, horizon)
                }
                Kind::Lock => unlock(session, operation),
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

fn commit_row(session: &Session, operation: &Operation, horizon: Xid) {
    let table = operation.table;
    let Some(anchor) = table.anchor(operation.slot()) else {
        return;
    };
    let version = operation.version();
    if version.flags() & flags::OWN_ABOVE != 0 {
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
        }
        (None, true) => {}
    }
    trim(session, table, anchor, version, base, horizon);
    if version.is_tombstone() {
        bury(table, version);
    }
}

/// Cuts out what nobody can see: own states between `version` and `base`, and what lies below `base` if `base` is old enough.
fn trim(
    session: &Session,
    table: TableRef,
    anchor: &Anchor,
    version: VersionRef,
    base: Option<VersionRef>,
    horizon: Xid,
) {
    let has_own_between = super::examine::data_below(version) != base;
    let moved = anchor.head().has(Head::KEYS_MOVED);
    let prunable = !moved && base.is_some_and(|base| base.xid() < horizon && base.next().is_some());
    let clears_full_image = anchor.head().has(Head::FULL_IMAGE_NEXT);
    if !has_own_between && !prunable && !clears_full_image {
        return;
    }
    let mut latched = anchor.latch();
    latched.head = latched.head.without_flags(Head::FULL_IMAGE_NEXT);
    let mut pruned = 0;
    if prunable && let Some(base) = base {
        prune_tail(base, session.engine().recovered_below(), |old| {
            pruned += 1;
            // SAFETY: just unlinked; every version is retired by whoever unlinks it.
            unsafe {
                session
                    .local
                    .retire(old.block(), old.block_bytes(), Purpose::Rows)
            };
        });
    }
    let mut at = super::examine::data_below(version);
    while let Some(own) = at {
        if Some(own) == base {
            break;
        }
        at = super::examine::data_below(own);
        if own.flags() & flags::OWN_ABOVE == 0 {
            // Of an aborting session, which takes it out itself.
            continue;
        }
        let mut head = latched.head;
        unlink(&mut head, own);
        latched.head = head;
        if !own.changed_keys() {
            // SAFETY: just unlinked.
            unsafe {
                session
                    .local
                    .retire(own.block(), own.block_bytes(), Purpose::Rows)
            };
        } else {
            // Its entries go once the latch is released; it stays readable while we are pinned.
            drop(latched);
            remove_entries(session, table, own);
            // SAFETY: unlinked above.
            unsafe {
                session
                    .local
                    .retire(own.block(), own.block_bytes(), Purpose::Rows)
            };
            latched = anchor.latch();
        }
    }
    drop(latched);
    if pruned > 0 {
        table
            .counters()
            .stale_versions
            .fetch_sub(pruned, Ordering::Relaxed);
    }
}

/// Removes the entries that only this unlinked version needed. `false` if one could not be computed and stays: the slot must not be reused.
pub(crate) fn remove_entries(session: &Session, table: TableRef, version: VersionRef) -> bool {
    debug_assert!(session.local.is_pinned());
    if version.is_tombstone() || version.is_lock() {
        return true;
    }
    let slot = version.slot();
    let mut complete = true;
    for index in table.all_indexes() {
        let Ok(definition) = session.definition(index) else {
            complete = false;
            continue;
        };
        complete &= session
            .with_keys(|keys| {
                let [key, scratch, _] = keys;
                let has_null = encode_row(definition, version.image(), key)?.0;
                crate::index::remove_key(session, table, index, has_null, key, scratch, slot)
            })
            .is_ok();
    }
    complete
}

/// Lists a committed tombstone for the reclaimer.
fn bury(table: TableRef, tombstone: VersionRef) {
    let storage = table.storage();
    let _latched = storage.free_latch.lock();
    tombstone
        .grave_link()
        .store(storage.graveyard.load(Ordering::Relaxed), Ordering::Relaxed);
    storage
        .graveyard
        .store(tombstone.address(), Ordering::Relaxed);
}

/// Takes a row lock's entry out of its chain.
pub(super) fn unlock(session: &Session, operation: &Operation) {
    let entry = operation.version();
    let Some(anchor) = operation.table.anchor(operation.slot()) else {
        return;
    };
    let mut latched = anchor.latch();
    let mut head = latched.head;
    if !unlink(&mut head, entry) {
        return;
    }
    let mut at = head.version();
    while let Some(version) = at {
        if version.is_lock() {
            break;
        }
        at = version.next();
    }
    latched.head = if at.is_none() {
        head.without_flags(Head::HAS_LOCKS)
    } else {
        head
    };
    drop(latched);
    // SAFETY: just unlinked.
    unsafe {
        session
            .local
            .retire(entry.block(), entry.block_bytes(), Purpose::Rows)
    };
}
