//! The routine that core finds by the access method's handler.
//!
//! The handler answers without `shared_preload_libraries`: `\d`, DROP and pg_dump may open a table.
//! The first touch of a table's storage is what raises 55000.
use super::scan::{self, Scan};
use super::vacuum;
use super::{fetch, insert, lock, parallel, relation, rewrite, sample, slot, speculative, update};
use crate::pg::guard::guarded;
use crate::pg::relation::Relation;
use crate::pg::version::bitmap::set_pages;
use crate::pg::version::table_am as version;
use crate::{errors, storage};
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};
use std::sync::LazyLock;

/// The routine lives as long as the process: core keeps pointers to it.
struct Routine(pg_sys::TableAmRoutine);

// SAFETY: function pointers, which never change.
unsafe impl Sync for Routine {}
// SAFETY: as above.
unsafe impl Send for Routine {}

static ROUTINE: LazyLock<Routine> = LazyLock::new(|| Routine(routine()));

#[pg_extern(sql = "
CREATE FUNCTION mot.table_handler(internal) RETURNS table_am_handler
  STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION mot.table_handler(internal) IS 'describes the access method of memory-optimized tables';
")]
fn table_handler(_call: pg_sys::FunctionCallInfo) -> Internal {
    let routine = &raw const ROUTINE.0;
    storage::note_routine(routine);
    Internal::from(Some(pg_sys::Datum::from(routine.cast_mut())))
}

extension_sql!(
    "
CREATE ACCESS METHOD mot TYPE TABLE HANDLER mot.table_handler;
COMMENT ON ACCESS METHOD mot IS 'memory-optimized tables: CREATE TABLE ... USING mot';
",
    name = "table_access_method",
    requires = [table_handler]
);

fn routine() -> pg_sys::TableAmRoutine {
    let mut r = pg_sys::TableAmRoutine {
        type_: pg_sys::NodeTag::T_TableAmRoutine,
        ..Default::default()
    };
    r.slot_callbacks = Some(guarded!(slot::kind(relation)));
    set_scans(&mut r);
    set_rows(&mut r);
    set_writes(&mut r);
    set_relations(&mut r);
    r
}

/// Scans: of all rows, of pages of a bitmap, for TABLESAMPLE and ANALYZE.
fn set_scans(r: &mut pg_sys::TableAmRoutine) {
    r.scan_begin = Some(guarded!(scan::begin(
        relation, snapshot, count, keys, shared, flags
    )));
    r.scan_end = Some(guarded!(scan::end(scan)));
    r.scan_rescan = Some(guarded!(scan::rescan(
        scan, keys, sets, strategy, sync, pages
    )));
    r.scan_getnextslot = Some(scan::get_next_slot);
    r.scan_set_tidrange = Some(guarded!(scan::set_tid_range(scan, lowest, highest)));
    r.scan_getnextslot_tidrange = Some(guarded!(scan::next_slot_in_tid_range(
        scan, direction, slot
    )));
    r.parallelscan_estimate = Some(guarded!(parallel::estimate(relation)));
    r.parallelscan_initialize = Some(guarded!(parallel::initialize(relation, shared)));
    r.parallelscan_reinitialize = Some(guarded!(parallel::reinitialize(relation, shared)));
    version::set_blocks::<Scan>(r);
    r.scan_analyze_next_tuple = Some(guarded!(sample::next_to_analyze(
        scan, horizon, live, dead, slot
    )));
    set_pages::<Scan>(r);
    r.scan_sample_next_block = Some(guarded!(sample::next_block(scan, sampling)));
    r.scan_sample_next_tuple = Some(guarded!(sample::next_of_sample(scan, sampling, slot)));
}

/// A row by its tuple id.
fn set_rows(r: &mut pg_sys::TableAmRoutine) {
    r.index_fetch_begin = Some(guarded!(fetch::begin(relation)));
    r.index_fetch_reset = Some(guarded!(fetch::reset(fetch)));
    r.index_fetch_end = Some(guarded!(fetch::end(fetch)));
    r.index_fetch_tuple = Some(guarded!(fetch::tuple(
        fetch, tid, snapshot, slot, again, dead
    )));
    r.tuple_fetch_row_version = Some(guarded!(fetch::row_version(relation, tid, snapshot, slot)));
    r.tuple_tid_valid = Some(guarded!(fetch::is_valid(scan, tid)));
    r.tuple_get_latest_tid = Some(guarded!(fetch::latest(scan, tid)));
    r.tuple_satisfies_snapshot = Some(guarded!(fetch::satisfies(relation, slot, snapshot)));
}

/// Writing and locking rows.
fn set_writes(r: &mut pg_sys::TableAmRoutine) {
    r.tuple_insert = Some(guarded!(insert::one(
        relation, slot, command, options, bulk
    )));
    r.tuple_insert_speculative = Some(guarded!(speculative::insert(
        relation, slot, command, options, bulk, token
    )));
    r.tuple_complete_speculative = Some(guarded!(speculative::complete(
        relation, slot, token, succeeded
    )));
    r.multi_insert = Some(guarded!(insert::many(
        relation, slots, count, command, options, bulk
    )));
    r.tuple_delete = Some(guarded!(update::delete(
        relation, tid, command, snapshot, crosscheck, wait, failure, moves
    )));
    r.tuple_update = Some(guarded!(update::update(
        relation, tid, slot, command, snapshot, crosscheck, wait, failure, mode, indexes
    )));
    r.tuple_lock = Some(guarded!(lock::lock(
        relation, tid, snapshot, slot, command, mode, waits, flags, failure
    )));
    r.finish_bulk_insert = Some(guarded!(insert::finish_many(relation, options)));
}

/// The table as a whole, and what core asks of it for its indexes.
fn set_relations(r: &mut pg_sys::TableAmRoutine) {
    r.index_delete_tuples = Some(guarded!(delete_index_entries(relation, state)));
    version::set_files(
        r,
        guarded!(relation::set_new_file(
            relation,
            file,
            persistence,
            frozen,
            multixacts
        )),
    );
    r.relation_nontransactional_truncate = Some(guarded!(relation::empty(relation)));
    r.relation_copy_data = Some(guarded!(rewrite::copy_data(relation, file)));
    r.relation_copy_for_cluster = Some(guarded!(rewrite::copy_for_cluster(
        old, new, index, sorts, horizon, frozen, multixacts, rows, vacuumed, dead
    )));
    r.relation_vacuum = Some(guarded!(vacuum::vacuum(relation, parameters, strategy)));
    r.index_build_range_scan = Some(guarded!(build_foreign_index(
        table, index, info, sync, visible, progress, start, count, callback, state, scan
    )));
    r.index_validate_scan = Some(guarded!(validate_index(
        table, index, info, snapshot, state
    )));
    r.relation_size = Some(guarded!(relation::size_of_blocks(relation, fork)));
    r.relation_needs_toast_table = Some(guarded!(relation::needs_toast_table(relation)));
    r.relation_toast_am = Some(guarded!(relation::toast_method(relation)));
    r.relation_estimate_size = Some(guarded!(relation::estimate_size(
        relation, widths, pages, rows, visible
    )));
}

/// `index_delete_tuples`: for indexes whose entries outlive their rows, of which a table has none.
fn delete_index_entries(
    _relation: pg_sys::Relation,
    _state: *mut pg_sys::TM_IndexDeleteOp,
) -> pg_sys::TransactionId {
    pg_sys::InvalidTransactionId
}

/// `index_build_range_scan`: only an index of another access method asks for it.
#[allow(clippy::too_many_arguments)]
fn build_foreign_index(
    _table: pg_sys::Relation,
    _index: pg_sys::Relation,
    _info: *mut pg_sys::IndexInfo,
    _allows_sync: bool,
    _any_visible: bool,
    _progress: bool,
    _start: pg_sys::BlockNumber,
    _count: pg_sys::BlockNumber,
    _callback: pg_sys::IndexBuildCallback,
    _state: *mut std::ffi::c_void,
    _scan: pg_sys::TableScanDesc,
) -> f64 {
    errors::foreign_index()
}

/// `index_validate_scan`: the second phase of CREATE INDEX CONCURRENTLY.
///
/// # Safety
/// The second is an index of the first, and the transaction has a snapshot.
unsafe fn validate_index(
    table: Relation<'_>,
    index: Relation<'_>,
    _info: *mut pg_sys::IndexInfo,
    _snapshot: pg_sys::Snapshot,
    _state: *mut pg_sys::ValidateIndexState,
) {
    if !storage::is_index(index) {
        errors::foreign_index();
    }
    storage::validate_index(table, index);
}
