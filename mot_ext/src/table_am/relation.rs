//! A table as a whole: its files and its size.
use super::{statistics, transient};
use crate::pg::argument::{Given, Out};
use crate::pg::local::ProcessLocal;
use crate::pg::relation::Relation;
use crate::pg::version::table_am as version;
use crate::transaction::clock::PgClock;
use crate::transaction::{session, xact};
use crate::{storage, upgrade};
use mot_engine::{FileKey, RowId, TableRef};
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
pub fn rows_per_block(end: RowId) -> u64 {
    let mut rows = ROWS_PER_BLOCK_MIN;
    while end.0.div_ceil(rows) > BLOCKS_MAX {
        rows *= 2;
    }
    rows
}

/// `relation_set_new_filenode` (`..._filelocator` since 16).
///
/// # Safety
/// A locked relation whose catalog rows still name the former file, if there is one, or one that
/// core is making.
pub unsafe fn set_new_file(
    relation: Relation<'_>,
    Given(file): Given<version::FileName>,
    persistence: c_char,
    frozen_below: Out<'_, pg_sys::TransactionId>,
    multixacts_from: Out<'_, pg_sys::MultiXactId>,
) {
    // SAFETY: the caller's relation.
    if unsafe { transient::make_transient(relation) } {
        let (xid, multixact) = (frozen_below.as_ptr(), multixacts_from.as_ptr());
        let (relation, file) = (relation.as_ptr(), &raw const file);
        // SAFETY: the relation has just become a heap table.
        unsafe { version::set_new_heap_file(relation, file, persistence, xid, multixact) };
        return;
    }
    // SAFETY: a variable of this process, and one of shared memory, read under its lock.
    let (xid, multixact) = unsafe { (pg_sys::RecentXmin, pg_sys::GetOldestMultiXactId()) };
    frozen_below.set(xid);
    multixacts_from.set(multixact);
    if persistence as u8 != pg_sys::RELPERSISTENCE_TEMP {
        upgrade::expect_rows();
    }
    storage::create_table(
        relation,
        FileKey {
            tablespace: relation.tablespace().to_u32(),
            relation: version::file_number(&file),
        },
        storage::persistence_of(persistence),
        |_, _| {},
    );
    // SAFETY: core looks for the file, deletes it, and copies it with the database.
    unsafe { version::create_file(&raw const file, persistence) };
}

/// `relation_nontransactional_truncate`: of a table whose file the same subtransaction has made, so
/// that a rollback takes the table or the file; and of a temporary one with ON COMMIT DELETE ROWS
/// whenever its session has used any, read-only or not. The new storage has the file's name, and
/// the same indexes. One that never had a row stays: nothing is to be done, and no transaction id
/// taken. The table is locked exclusively.
pub fn empty(relation: Relation<'_>) {
    let storage = storage::table(relation);
    if storage.row_ids_end() == RowId(0) {
        return;
    }
    let xid = xact::write_xid();
    let session = session::session();
    let emptied = xact::current().truncate_table(session, &PgClock, storage, xid);
    crate::errors::or_raise(emptied);
    crate::transaction::relation::forget(relation.oid());
    // Other sessions remember no storage of a temporary table.
    if !storage.key().is_temporary() {
        relation.invalidate();
    }
}

/// `relation_size`: of the blocks that samples are made of, for ANALYZE and statements that write
/// the table's statistics. Others, as pg_prewarm and pg_visibility, ask for pages to read in the
/// table's file: it has none.
pub fn size_of_blocks(relation: Relation<'_>, fork: pg_sys::ForkNumber::Type) -> u64 {
    match writes_statistics(relation) {
        true => size_bytes(relation, fork),
        false => 0,
    }
}

/// Whether this process may write what pg_class says of a table's size, or samples its rows for the
/// statistics of a parent: then it has but AccessShareLock on it, and its entry among the running
/// statements shows it, where such entries are kept.
fn writes_statistics(relation: Relation<'_>) -> bool {
    use pg_sys::ProgressCommandType::PROGRESS_COMMAND_ANALYZE;
    let lock = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: an open table; plain variables of this process, and its own entry.
    unsafe {
        pg_sys::CheckRelationLockedByMe(relation.as_ptr(), lock, true)
            || !pg_sys::pgstat_track_activities
            || pg_sys::MyBEEntry
                .as_ref()
                .is_none_or(|entry| entry.st_progress_command == PROGRESS_COMMAND_ANALYZE)
    }
}

/// Bytes of the blocks that samples are made of. Rows lie in memory: `mot.stat_tables` has their
/// bytes.
pub fn size_bytes(relation: Relation<'_>, fork: pg_sys::ForkNumber::Type) -> u64 {
    if fork != pg_sys::ForkNumber::MAIN_FORKNUM && fork != pg_sys::ForkNumber::InvalidForkNumber {
        return 0;
    }
    let end = storage::described(relation).row_ids_end();
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
pub fn needs_toast_table(relation: Relation<'_>) -> bool {
    if relation.oid() != TO_BE_HEAP.0.get() {
        return false;
    }
    // SAFETY: heapam reads the relation's columns alone. One guarded call of a function of core.
    #[allow(ffi_unwind_calls)]
    unsafe {
        let needs = (*pg_sys::GetHeapamTableAmRoutine()).relation_needs_toast_table;
        let relation = relation.as_ptr();
        needs.is_some_and(|needs| pg_sys::ffi::pg_guard_ffi_boundary(|| needs(relation)))
    }
}

/// `relation_toast_am`: of the TOAST table of a table that becomes a heap table.
pub fn toast_method(_relation: Relation<'_>) -> pg_sys::Oid {
    pg_sys::HEAP_TABLE_AM_OID
}

/// `relation_estimate_size`: the engine's exact count, and what the open transaction has added to
/// it.
pub fn estimate_size(
    relation: Relation<'_>,
    _widths: *mut i32,
    pages: Out<'_, pg_sys::BlockNumber>,
    rows: Out<'_, f64>,
    all_visible: Out<'_, f64>,
) {
    let storage = storage::described(relation);
    let added = statistics::rows_added(relation) as f64;
    let count = (row_count(storage) + added).max(0.0);
    let bytes = count * row_bytes(storage).max(ROW_BYTES_GUESSED) as f64;
    let filled = (bytes / f64::from(pg_sys::BLCKSZ)).ceil() as pg_sys::BlockNumber;
    let pages_min = match is_new(relation) {
        true => PAGES_OF_A_NEW_TABLE,
        false => 0,
    };
    rows.set(count);
    pages.set(filled.max(pages_min));
    all_visible.set(0.0);
}

/// Rows that a table counts as having at least while it is planned with.
pub fn rows_at_least(relation: Relation<'_>) -> f64 {
    if !is_new(relation) {
        return 0.0;
    }
    let row_bytes = row_bytes(storage::described(relation)).max(ROW_BYTES_GUESSED);
    (u64::from(PAGES_OF_A_NEW_TABLE * pg_sys::BLCKSZ) / row_bytes) as f64
}

/// Whether pg_class knows nothing of a table's size yet, as core's estimate asks it.
fn is_new(relation: Relation<'_>) -> bool {
    relation.rows() < 0.0 && !relation.has_children()
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
