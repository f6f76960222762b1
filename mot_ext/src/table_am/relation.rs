//! A table as a whole: its files and its size.
use super::{statistics, transient};
use crate::pg::local::ProcessLocal;
use crate::pg::version::table_am as version;
use crate::transaction::clock::PgClock;
use crate::transaction::{session, xact};
use crate::{errors, storage};
use mot_engine::{FileKey, Slot, TableRef};
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::c_char;
use std::sync::atomic::Ordering;

/// Rows of a block at least. A block has no meaning but for samples, so it is as large as
/// a heap's.
const ROWS_PER_BLOCK_MIN: u64 = 64;

/// Blocks of a table at most. ANALYZE of 15 and 16 reads ahead in the table's empty file. From this
/// number on it looks for the file's second segment, and raises.
const BLOCKS_MAX: u64 = (1 << 30) / pg_sys::BLCKSZ as u64 - 1;

/// Rows that share a block number in samples, of a table with so many row ids.
pub fn rows_per_block(end: Slot) -> u64 {
    let mut rows = ROWS_PER_BLOCK_MIN;
    while end.0.div_ceil(rows) > BLOCKS_MAX {
        rows *= 2;
    }
    rows
}

/// `relation_set_new_filenode` (`..._filelocator` since 16).
pub unsafe fn set_new_file(
    relation: pg_sys::Relation,
    file: *const version::FileName,
    persistence: c_char,
    frozen_below: *mut pg_sys::TransactionId,
    multixacts_from: *mut pg_sys::MultiXactId,
) {
    // SAFETY: as core calls it: a locked relation whose catalog rows still name the former file, if
    // there is one.
    unsafe {
        // Before anything is asked of the engine: the new cluster may be without it.
        if pg_sys::IsBinaryUpgrade {
            errors::binary_upgrade();
        }
        if transient::make_transient(relation) {
            let (xid, multixact) = (frozen_below, multixacts_from);
            version::set_new_heap_file(relation, file, persistence, xid, multixact);
            return;
        }
        *frozen_below = pg_sys::RecentXmin;
        *multixacts_from = pg_sys::GetOldestMultiXactId();
        storage::create_table(
            relation,
            FileKey {
                tablespace: (*(*relation).rd_rel).reltablespace.to_u32(),
                relation: version::file_number(&*file),
            },
            storage::persistence_of(persistence),
            |_, _| {},
        );
        // Core looks for it, deletes it, and copies it with the database.
        version::create_file(file, persistence);
    }
}

/// `relation_nontransactional_truncate`: of a table whose file the same subtransaction has made, so
/// that a rollback takes the table or the file; and of a temporary one with ON COMMIT DELETE ROWS
/// whenever its session has used any, read-only or not. The new storage has the file's name, and
/// the same indexes. One that never had a row stays: nothing is to be done, and no transaction id
/// taken.
pub unsafe fn empty(relation: pg_sys::Relation) {
    // SAFETY: as core calls it: an open relation, locked exclusively.
    unsafe {
        let storage = storage::table(relation);
        if storage.slots_end() == Slot(0) {
            return;
        }
        let xid = xact::write_xid();
        let session = session::session();
        let emptied = xact::current().truncate_table(session, &PgClock, storage, xid);
        crate::errors::or_raise(emptied);
        crate::transaction::relation::forget((*relation).rd_id);
        // Other sessions remember no storage of a temporary table.
        if !storage.key().is_temporary() {
            pg_sys::CacheInvalidateRelcache(relation);
        }
    }
}

/// `relation_size`: of the blocks that samples are made of, for ANALYZE and statements that write
/// the table's statistics. Others, as pg_prewarm and pg_visibility, ask for pages to read in the
/// table's file: it has none.
pub unsafe fn size_of_blocks(relation: pg_sys::Relation, fork: pg_sys::ForkNumber::Type) -> u64 {
    // SAFETY: an open table, as core calls it.
    unsafe {
        match writes_statistics(relation) {
            true => size_bytes(relation, fork),
            false => 0,
        }
    }
}

/// Whether this process may write what pg_class says of a table's size, or samples its rows for the
/// statistics of a parent: then it has but AccessShareLock on it, and its entry among the running
/// statements shows it, where such entries are kept.
unsafe fn writes_statistics(relation: pg_sys::Relation) -> bool {
    use pg_sys::ProgressCommandType::PROGRESS_COMMAND_ANALYZE;
    // SAFETY: an open table (caller); plain variables of this process, and its own entry.
    unsafe {
        let lock = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
        pg_sys::CheckRelationLockedByMe(relation, lock, true)
            || !pg_sys::pgstat_track_activities
            || pg_sys::MyBEEntry
                .as_ref()
                .is_none_or(|entry| entry.st_progress_command == PROGRESS_COMMAND_ANALYZE)
    }
}

/// Bytes of the blocks that samples are made of. Rows lie in memory: `mot.stat_tables` has their
/// bytes.
pub unsafe fn size_bytes(relation: pg_sys::Relation, fork: pg_sys::ForkNumber::Type) -> u64 {
    if fork != pg_sys::ForkNumber::MAIN_FORKNUM && fork != pg_sys::ForkNumber::InvalidForkNumber {
        return 0;
    }
    let end = storage::described(relation).slots_end();
    end.0.div_ceil(rows_per_block(end)) * u64::from(pg_sys::BLCKSZ)
}

/// While it lives, a table becomes a heap table. Core makes the TOAST table before it copies the
/// rows, and asks the former access method whether one is needed.
pub struct BecomesHeap {
    /// The table of a statement around this one.
    outer: pg_sys::Oid,
}

static TO_BE_HEAP: ProcessLocal<Cell<pg_sys::Oid>> = ProcessLocal(Cell::new(pg_sys::InvalidOid));

impl BecomesHeap {
    /// `table` becomes a heap table in the statement that begins.
    pub fn begin(table: pg_sys::Oid) -> Self {
        BecomesHeap {
            outer: TO_BE_HEAP.0.replace(table),
        }
    }
}

impl Drop for BecomesHeap {
    fn drop(&mut self) {
        TO_BE_HEAP.0.set(self.outer);
    }
}

/// `relation_needs_toast_table`: values are stored whole.
pub unsafe fn needs_toast_table(relation: pg_sys::Relation) -> bool {
    // SAFETY: an open relation; heapam reads its columns alone. One guarded call of a function
    // of core.
    #[allow(ffi_unwind_calls)]
    unsafe {
        if (*relation).rd_id != TO_BE_HEAP.0.get() {
            return false;
        }
        let needs = (*pg_sys::GetHeapamTableAmRoutine()).relation_needs_toast_table;
        needs.is_some_and(|needs| pg_sys::ffi::pg_guard_ffi_boundary(|| needs(relation)))
    }
}

/// `relation_toast_am`: of the TOAST table of a table that becomes a heap table.
pub unsafe fn toast_method(_relation: pg_sys::Relation) -> pg_sys::Oid {
    pg_sys::HEAP_TABLE_AM_OID
}

/// `relation_estimate_size`: the engine's exact count, and what the open transaction has added to
/// it.
pub unsafe fn estimate_size(
    relation: pg_sys::Relation,
    _widths: *mut i32,
    pages: *mut pg_sys::BlockNumber,
    rows: *mut f64,
    all_visible: *mut f64,
) {
    // SAFETY: as core calls it, with places to fill.
    unsafe {
        let storage = storage::described(relation);
        let committed = row_count(storage);
        let added = statistics::rows_added(relation) as f64;
        *rows = (committed + added).max(0.0);
        let bytes = *rows * row_bytes(storage).max(ROW_BYTES_GUESSED) as f64;
        *pages = (bytes / f64::from(pg_sys::BLCKSZ)).ceil() as pg_sys::BlockNumber;
        if is_new(relation) {
            *pages = (*pages).max(PAGES_OF_A_NEW_TABLE);
        }
        *all_visible = 0.0;
    }
}

/// Rows that a table counts as having at least while it is planned with.
///
/// # Safety
/// An open table.
pub unsafe fn rows_at_least(relation: pg_sys::Relation) -> f64 {
    // SAFETY: the caller's table.
    if !unsafe { is_new(relation) } {
        return 0.0;
    }
    let row_bytes = row_bytes(storage::described(relation)).max(ROW_BYTES_GUESSED);
    (u64::from(PAGES_OF_A_NEW_TABLE * pg_sys::BLCKSZ) / row_bytes) as f64
}

/// Whether pg_class knows nothing of a table's size yet, as core's estimate asks it.
unsafe fn is_new(relation: pg_sys::Relation) -> bool {
    // SAFETY: an open table (caller).
    let form = unsafe { &*(*relation).rd_rel };
    form.reltuples < 0.0 && !form.relhassubclass
}

/// Pages of a table at least, as core's own estimate has it, until VACUUM or ANALYZE has filled
/// pg_class (`planner::costs`).
const PAGES_OF_A_NEW_TABLE: pg_sys::BlockNumber = 10;

/// Bytes of a row of a table of which nothing is known yet.
const ROW_BYTES_GUESSED: u64 = 64;

/// Bytes of a table's average row.
pub fn row_bytes(table: TableRef) -> u64 {
    match table.row_bytes_average() {
        0 => ROW_BYTES_GUESSED,
        average => average,
    }
}

/// Live rows of a table.
pub fn row_count(table: TableRef) -> f64 {
    table.counters().rows.load(Ordering::Relaxed).max(0) as f64
}

/// Live rows' bytes in pages of a heap, the unit other estimates are in.
pub fn pages(table: TableRef) -> u32 {
    let bytes = table.counters().row_bytes.load(Ordering::Relaxed).max(0) as u64;
    bytes
        .div_ceil(u64::from(pg_sys::BLCKSZ))
        .min(u64::from(u32::MAX - 1)) as u32
}
