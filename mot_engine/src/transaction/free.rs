//! Frees the memory of tables and indexes that are gone.
//!
//! Called by the reclaimer, by a replay without readers that needs memory, and by sessions for
//! temporary tables (`pending_free.rs`). A process that takes a definition out of the catalog, or
//! out of its list of dropped ones, is the only one to free it.
//!
//! A server that writes the log first logs what it frees. So a recovery finds this before the first
//! record that was written with that memory in other use. It may free the same, and needs no more
//! memory than the server had. Definitions that are not in the log are freed without a record.
//!
//! It works in steps, and calls `pause` between two of them, which may unwind. What was freed by
//! then is out of the storage, and the rest goes back to the list, as a storage that is only
//! smaller. The process that takes it next continues: this process, another one, or a process after
//! a warm restart, since the list is in the arena. Nothing may be freed twice, whatever unwinds
//! here, also a panic inside `memory`. So what names a block forgets it before the block is freed;
//! at worst some memory is lost. A second record of the same definition is harmless: recovery has
//! freed it, and finds it no more.

use super::Log;
use crate::errors::EngineError;
use crate::ids::Lsn;
use crate::index::clear_some;
use crate::log::DefinitionsWriter;
use crate::memory::Purpose;
use crate::row::Head;
use crate::session::{Session, temporary};
use crate::table::{Catalog, IndexRef, TableRef, TableStorage};
use std::sync::atomic::Ordering;

/// Definitions freed by a call at most, of each kind: their numbers make a record of 130 kB at
/// most.
const FREED_AT_A_TIME: usize = 4096;

/// Row ids whose versions are freed in one go.
const ROW_IDS_AT_A_TIME: u64 = 4096;

/// Frees some of what was dropped and is not used, on a server that does not write the log:
/// it replays. The caller is not pinned. `pause` is called while this waits, and again and again;
/// it may unwind, and then what is not freed stays pending. Returns how many tables and indexes it
/// freed.
///
/// Relation locks keep users away, but not those that only look: an index that is being created,
/// and whose creation is rolled back, may be examined by a process that lists the table's indexes,
/// and on a standby replay holds no lock at all. They are pinned, and are waited for.
pub fn free_pending(session: &Session, pause: impl FnMut()) -> usize {
    free_after(session, pause, |_| Ok(())).expect("only a log fails")
}

/// As [`free_pending`], on a server that writes the log. After an error, or when `log` unwinds,
/// what is not freed stays pending.
pub fn log_and_free_pending(
    session: &Session,
    log: &mut impl Log,
    pause: impl FnMut(),
) -> Result<usize, EngineError> {
    free_after(session, pause, |pending| pending.log(log))
}

/// What is unlinked meanwhile is left to the next call, or the caller might never come back.
fn free_after(
    session: &Session,
    mut pause: impl FnMut(),
    log: impl FnOnce(&PendingFree<'_>) -> Result<(), EngineError>,
) -> Result<usize, EngineError> {
    let mut pending = PendingFree::take(session.catalog());
    let count = pending.tables.len() + pending.indexes.len();
    if count == 0 {
        return Ok(0);
    }
    log(&pending)?;
    session.local.wait_for_pinned(&mut pause);
    while let Some(index) = pending.indexes.last() {
        // SAFETY: it was unlinked from its table, its users held relation locks that ended, what
        // else examined it was waited for, and the process that takes it from the list is the only
        // one to free it.
        unsafe {
            let index = *index;
            clear_index(session, index, &mut pause);
            pending.indexes.pop();
            index.free(&session.local);
        }
    }
    while let Some(table) = pending.tables.last() {
        // SAFETY: as above, and no process walks it.
        unsafe {
            let table = *table;
            clear_table(session, table, &mut pause);
            pending.tables.pop();
            free_cleared_table(session, table);
        }
    }
    Ok(count)
}

/// Definitions pending free, in hand. Those that are left when this is dropped are put back.
struct PendingFree<'a> {
    catalog: &'a Catalog,
    tables: Vec<TableRef>,
    indexes: Vec<IndexRef>,
}

impl<'a> PendingFree<'a> {
    fn take(catalog: &'a Catalog) -> PendingFree<'a> {
        let some = FREED_AT_A_TIME;
        PendingFree {
            catalog,
            indexes: std::iter::from_fn(|| catalog.take_pending_free_index())
                .take(some)
                .collect(),
            tables: std::iter::from_fn(|| catalog.take_pending_free())
                .take(some)
                .collect(),
        }
    }

    fn log(&self, log: &mut impl Log) -> Result<(), EngineError> {
        let mut writer = DefinitionsWriter::new();
        for index in &self.indexes {
            let storage = index.storage();
            if is_logged(storage.created_lsn.load(Ordering::Acquire)) {
                writer.free_index(index.id(), storage.table_id)?;
            }
        }
        for table in &self.tables {
            if is_logged(table.storage().created_lsn.load(Ordering::Acquire)) {
                writer.free_table(table.id())?;
            }
        }
        if !writer.is_empty() {
            log.append(writer.record());
        }
        Ok(())
    }
}

impl Drop for PendingFree<'_> {
    fn drop(&mut self) {
        for index in self.indexes.drain(..) {
            self.catalog.give_back_pending_free_index(index);
        }
        for table in self.tables.drain(..) {
            self.catalog.give_back_pending_free(table);
        }
    }
}

fn is_logged(created_lsn: u64) -> bool {
    Lsn(created_lsn) != Lsn::NONE
}

/// Frees an index.
///
/// # Safety
/// Nothing uses it any more.
pub(crate) unsafe fn free_index(session: &Session, index: IndexRef) {
    // SAFETY: the caller's.
    unsafe {
        clear_index(session, index, &mut || ());
        index.free(&session.local);
    }
}

/// Frees a table, with its indexes.
///
/// # Safety
/// As for [`clear_table`].
pub(super) unsafe fn free_table(session: &Session, table: TableRef) {
    // SAFETY: the caller's.
    unsafe {
        clear_table(session, table, &mut || ());
        free_cleared_table(session, table);
    }
}

/// Frees all of an index but its header.
///
/// # Safety
/// As [`free_index`]; only the process that frees it uses it after `pause` has unwound.
unsafe fn clear_index(session: &Session, index: IndexRef, pause: &mut impl FnMut()) {
    // SAFETY: the caller's.
    while !unsafe { clear_some(session, index) } {
        pause();
    }
}

/// Frees a table's indexes and its rows' versions.
///
/// # Safety
/// Nothing uses the table any more, nor after `pause` has unwound; a reader of the catalog may
/// still stand on its header.
unsafe fn clear_table(session: &Session, table: TableRef, pause: &mut impl FnMut()) {
    let storage = table.storage();
    for index in table.all_indexes() {
        // SAFETY: the caller's.
        unsafe { clear_index(session, index, pause) };
        let address = index.address();
        for word in &storage.indexes {
            if word.load(Ordering::Relaxed) == address {
                word.store(0, Ordering::Relaxed);
            }
        }
        // SAFETY: the caller's; its table names it no more.
        unsafe { index.free(&session.local) };
    }
    loop {
        let end = table.row_ids_end().0;
        let from = end.saturating_sub(ROW_IDS_AT_A_TIME);
        storage.row_ids_end.store(from, Ordering::Release);
        storage.directory.for_each(from..end, |_, anchor| {
            let head: Head = anchor.head();
            let mut at = head.version();
            while let Some(version) = at {
                at = version.next();
                // SAFETY: nothing uses the table any more (caller).
                unsafe {
                    session
                        .local
                        .free(version.block(), version.block_bytes(), Purpose::Rows)
                };
            }
        });
        if from == 0 {
            break;
        }
        pause();
    }
}

/// # Safety
/// As for [`clear_table`], which came to its end; nothing but its catalog's readers names the
/// table.
unsafe fn free_cleared_table(session: &Session, table: TableRef) {
    // What came back behind the moment in which it was unlinked.
    temporary::discharge(table);
    let storage = table.storage();
    // SAFETY: the caller's; the header is retired because a reader of the catalog's list may stand
    // on it.
    unsafe {
        storage.directory.free(&session.local);
        session
            .local
            .retire(table.0.cast(), size_of::<TableStorage>(), Purpose::Catalog);
    }
}
