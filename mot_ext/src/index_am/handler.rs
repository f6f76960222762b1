//! The routine of the index access method, and the callbacks that need no file of their own.
//!
//! Its indexes have btree's operator classes, so core plans, infers and prints with them as with
//! btree's. Options are checked by btree's own functions.
use super::{cost, scan, uniqueness};
use crate::errors;
use crate::pg::btree;
use crate::pg::guard::guarded;
use crate::pg::node::{Field, Node};
use crate::pg::relation::Relation;
use crate::pg::version::index_am as version;
use crate::pg::version::table_am;
use crate::storage::{self, Built, Repeated};
use crate::table_am::speculative::{self, Duplicates};
use crate::table_am::{rows_read, scan_begins};
use crate::transaction::xact;
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};

/// Strategies of btree: <, <=, =, >=, >.
const STRATEGIES: u16 = 5;

#[pg_extern(sql = "
CREATE FUNCTION mot.table_index_handler(internal) RETURNS index_am_handler
  STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION mot.table_index_handler(internal) IS 'describes the indexes of memory-optimized tables';
")]
fn table_index_handler(_call: pg_sys::FunctionCallInfo) -> Internal {
    let mut routine = pg_sys::IndexAmRoutine {
        amstrategies: STRATEGIES,
        // Core keeps support functions by class, with the number of them: it is btree's.
        amsupport: version::BTREE_SUPPORT_FUNCTIONS,
        amoptsprocnum: version::BTREE_OPTIONS_FUNCTION,
        amcanorder: true,
        amcanbackward: true,
        amcanunique: true,
        amcanmulticol: true,
        amoptionalkey: true,
        amsearcharray: true,
        amsearchnulls: true,
        ampredlocks: true,
        amclusterable: true,
        amcaninclude: true,
        ambuild: Some(guarded!(build(heap, index, info))),
        ambuildempty: Some(guarded!(build_empty(index))),
        aminsert: Some(guarded!(insert(
            index, values, nulls, tid, heap, unique, unchanged, info
        ))),
        ambulkdelete: Some(guarded!(bulk_delete(info, stats, callback, state))),
        amvacuumcleanup: Some(guarded!(clean_up(info, stats))),
        amcostestimate: Some(cost::estimate),
        amoptions: Some(btree::options()),
        amvalidate: Some(guarded!(validate(class))),
        ambeginscan: Some(guarded!(scan::begin(index, keys, orders))),
        amrescan: Some(guarded!(scan::rescan(
            scan,
            keys,
            count,
            orders,
            order_count
        ))),
        amgettuple: Some(guarded!(scan::next(scan, direction))),
        amgetbitmap: Some(guarded!(scan::all(scan, bitmap))),
        amendscan: Some(guarded!(scan::end(scan))),
        ..Default::default()
    };
    version::describe(&mut routine);
    // SAFETY: what is not set may be zero or NULL. The context is the caller's.
    let routine = unsafe { Node::new(routine) };
    Internal::from(Some(pg_sys::Datum::from(routine.as_ptr())))
}

extension_sql!(
    "
CREATE ACCESS METHOD mot_index TYPE INDEX HANDLER mot.table_index_handler;
COMMENT ON ACCESS METHOD mot_index IS 'indexes of memory-optimized tables, made by CREATE INDEX without USING';
",
    name = "index_access_method",
    requires = [table_index_handler]
);

/// `ambuild`.
fn build(
    heap: Relation<'_>,
    index: Relation<'_>,
    info: Node<'_, pg_sys::IndexInfo>,
) -> *mut pg_sys::IndexBuildResult {
    if !storage::is_table(heap) {
        errors::index_on_other_table();
    }
    if info.ii_Concurrent() {
        // Core waits for all older snapshots before it marks the index as valid.
        storage::build_index_beside_writers(heap, index);
    } else if stays_unready(index, info) {
        // A failed build left it, and core leaves it so: no writer enters it, so nothing is to be
        // there.
        return result(0, 0);
    } else {
        build_alone(heap, index, info);
    }
    let storage = storage::table(heap);
    let added = xact::current().rows_added(storage);
    let rows = (storage.row_count_estimate() as i64 + added).max(0);
    // As core's own build, which scans the table.
    scan_begins(heap);
    rows_read(heap, rows);
    let entries = match info.ii_Predicate() {
        true => storage::index(storage, index).entry_count_estimate() as i64,
        false => rows,
    };
    result(rows, entries)
}

/// Builds an index whose table nobody changes meanwhile.
fn build_alone(heap: Relation<'_>, index: Relation<'_>, info: Node<'_, pg_sys::IndexInfo>) {
    let repeated = match info.ii_Unique() {
        true => Repeated::Refused,
        false => Repeated::Entered,
    };
    if storage::build_index(heap, index, repeated) == Built::ForYounger {
        // Core keeps the index from snapshots that are older than it.
        info.set_broken_chains(true);
    }
}

/// What core learns of a build.
fn result(rows: i64, entries: i64) -> *mut pg_sys::IndexBuildResult {
    let counts = pg_sys::IndexBuildResult {
        heap_tuples: rows as f64,
        index_tuples: entries as f64,
    };
    // SAFETY: memory of the type's size.
    unsafe {
        let result = pg_sys::palloc(size_of_val(&counts)).cast::<pg_sys::IndexBuildResult>();
        result.write(counts);
        result
    }
}

/// Whether core rebuilds an index that is not ready, and will not make it ready: a unique one,
/// which a rewrite of its table takes along without asking for uniqueness (`reindex_index`,
/// `skip_constraint_checks`).
fn stays_unready(index: Relation<'_>, info: Node<'_, pg_sys::IndexInfo>) -> bool {
    let row = index.index_row();
    row.indisunique && !row.indisready && !info.ii_Unique()
}

/// `ambuildempty`: of an unlogged table's index, for which core has just made the file that becomes
/// the main one after a crash. It is to be empty, as the main one always is, and durable.
unsafe fn build_empty(index: pg_sys::Relation) {
    // SAFETY: as core calls it: an open index, locked, whose file was made before.
    unsafe { table_am::sync_init_file(index) };
}

/// `aminsert`: the table's callbacks have entered the row, unless it is a speculative one, and have
/// asked for the keys that the engine keeps unique. A row of another table that no callback has
/// entered would be in no index: that is an error.
#[allow(clippy::too_many_arguments)]
fn insert(
    index: Relation<'_>,
    _values: *mut pg_sys::Datum,
    _nulls: *mut bool,
    tid: Field<'_, pg_sys::ItemPointerData>,
    heap: Relation<'_>,
    unique: pg_sys::IndexUniqueCheck::Type,
    _is_unchanged: bool,
    _info: *mut pg_sys::IndexInfo,
) -> bool {
    if !storage::is_table(heap) {
        errors::index_on_other_table();
    }
    let duplicates = match unique {
        pg_sys::IndexUniqueCheck::UNIQUE_CHECK_PARTIAL => Duplicates::Reported,
        _ => Duplicates::Refused,
    };
    let is_entered = speculative::enter(heap, tid.get(), index, duplicates);
    let is_asked =
        unique != pg_sys::IndexUniqueCheck::UNIQUE_CHECK_NO && storage::has_keys_of_core(heap);
    is_entered && (!is_asked || uniqueness::is_unique(heap, index, tid.get(), unique))
}

/// `ambulkdelete`: entries go with their rows.
unsafe fn bulk_delete(
    _info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
    _callback: pg_sys::IndexBulkDeleteCallback,
    _state: *mut std::ffi::c_void,
) -> *mut pg_sys::IndexBulkDeleteResult {
    stats
}

/// `amvacuumcleanup`.
unsafe fn clean_up(
    _info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
) -> *mut pg_sys::IndexBulkDeleteResult {
    stats
}

/// `amvalidate`: the classes are btree's, and it validates them.
unsafe fn validate(_class: pg_sys::Oid) -> bool {
    true
}
