//! Tables and indexes that are gone for good: unlinked, and freed, here or by the reclaimer.
//!
//! A temporary table is freed by the session whose it is, if it has not grown large. Its memory is
//! at once in the session's cache, and a session that makes and drops one again and again leaves
//! the reclaimer nothing to do. That may be done without a wait, because nobody looks at rows and
//! indexes of such a table but its session, who does so no more, and who keeps it by walking.

use super::free::{free_index, free_table};
use crate::session::{Session, temporary};
use crate::table::{IndexRef, TableRef};

/// Slots up to which a temporary table is freed where it is dropped: a few milliseconds.
const FREED_HERE_SLOTS: u64 = 1 << 16;

/// A table is gone: the transaction that dropped it has committed, or the one that made it is taken
/// back.
pub(super) fn doom_table(session: &Session, table: TableRef) {
    if !table.key().is_temporary() {
        return session.catalog().doom(table);
    }
    temporary::discharge(table);
    if is_large(table) || !session.catalog().take(table) {
        return session.catalog().doom(table);
    }
    session.batches.borrow_mut().forget(table);
    // SAFETY: nobody else can find it any more, and its users' locks keep all others away.
    unsafe { free_table(session, table) };
}

/// An index is gone. Its table may be, too, but is not freed yet.
pub(super) fn doom_index(session: &Session, index: IndexRef) {
    let table = TableRef(index.storage().table);
    if !table.key().is_temporary() {
        return session.catalog().doom_index(index);
    }
    if !is_large(table) && session.catalog().take_index(index) {
        let _charge = session.charge(table);
        // SAFETY: as for a table.
        return unsafe { free_index(session, index) };
    }
    // Whoever frees it knows no table.
    let bytes = session.bytes_of_nodes(index);
    temporary::add(table, -(bytes as i64));
    session.catalog().doom_index(index);
}

fn is_large(table: TableRef) -> bool {
    table.slots_end().0 > FREED_HERE_SLOTS
}
