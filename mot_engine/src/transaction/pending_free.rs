//! Tables and indexes that are gone for good: unlinked here, and freed here or by the reclaimer.
//!
//! A temporary table that has not grown large is freed by its session. Its memory is at once in the
//! session's cache, and a session that creates and drops one again and again leaves the reclaimer
//! nothing to do. No wait is needed: another process that reads such a table, for its size or to
//! check it, holds a lock that blocks the drop, or walks the table and is counted.

use super::free::free_table;
use crate::session::{Session, temporary};
use crate::table::{IndexRef, TableRef};
use std::sync::atomic::Ordering;

/// Row ids up to which a temporary table is freed where it is dropped: a few milliseconds.
const FREED_HERE_ROW_IDS: u64 = 1 << 16;

/// A table is gone: the transaction that dropped it has committed, or the one that made it is taken
/// back.
pub(super) fn release_table(session: &Session, table: TableRef) {
    if !table.key().is_temporary() {
        return session.catalog().defer_free(table);
    }
    temporary::discharge(table);
    if is_large(table) || !session.catalog().take(table) {
        return session.catalog().defer_free(table);
    }
    session.batches.borrow_mut().forget(table);
    // SAFETY: nothing else can find it any more, and its users' locks keep all others away.
    unsafe { free_table(session, table) };
}

/// An index is gone. Its table may go, too, but behind it.
pub(super) fn release_index(session: &Session, index: IndexRef) {
    let table = TableRef(index.storage().table);
    if table.key().is_temporary() {
        if table.storage().dropped.load(Ordering::Acquire) != 0 {
            // It is freed with its table.
            return;
        }
        // Others may be looking: REINDEX, and a CREATE INDEX that is taken back, do not keep those
        // away that ask for sizes or check the table. The process that frees it waits for them, and
        // knows no table.
        let bytes = session.bytes_of_nodes(index);
        temporary::add(table, -(bytes as i64));
    }
    session.catalog().defer_free_of_index(index);
}

fn is_large(table: TableRef) -> bool {
    table.row_ids_end().0 > FREED_HERE_ROW_IDS
}
