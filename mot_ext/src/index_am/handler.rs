//! The routine of the index access method, and the callbacks that need no file of their own.
//!
//! Its indexes have btree's operator classes, so core plans, infers and prints with them as with
//! btree's. Options are checked by btree's own functions.
use super::{cost, scan, uniqueness};
use crate::errors;
use crate::pg::btree;
use crate::pg::guard::guarded;
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
    // SAFETY: palloc0 gives a zeroed, aligned block of the node's size; what is not set may be zero
    // or NULL.
    unsafe {
        let am =
            pg_sys::palloc0(size_of::<pg_sys::IndexAmRoutine>()).cast::<pg_sys::IndexAmRoutine>();
        let r = &mut *am;
        r.type_ = pg_sys::NodeTag::T_IndexAmRoutine;
        r.amstrategies = STRATEGIES;
        // Core keeps support functions by class, with the number of them: it is btree's.
        r.amsupport = version::BTREE_SUPPORT_FUNCTIONS;
        r.amoptsprocnum = version::BTREE_OPTIONS_FUNCTION;
        r.amcanorder = true;
        r.amcanbackward = true;
        r.amcanunique = true;
        r.amcanmulticol = true;
        r.amoptionalkey = true;
        r.amsearcharray = true;
        r.amsearchnulls = true;
        r.ampredlocks = true;
        r.amclusterable = true;
        r.amcaninclude = true;
        version::describe(r);
        r.ambuild = Some(guarded!(build(heap, index, info)));
        r.ambuildempty = Some(guarded!(build_empty(index)));
        r.aminsert = Some(guarded!(insert(
            index, values, nulls, tid, heap, unique, unchanged, info
        )));
        r.ambulkdelete = Some(guarded!(bulk_delete(info, stats, callback, state)));
        r.amvacuumcleanup = Some(guarded!(clean_up(info, stats)));
        r.amcostestimate = Some(cost::estimate);
        r.amoptions = Some(btree::options());
        r.amvalidate = Some(guarded!(validate(class)));
        r.ambeginscan = Some(guarded!(scan::begin(index, keys, orders)));
        r.amrescan = Some(guarded!(scan::rescan(
            scan,
            keys,
            count,
            orders,
            order_count
        )));
        r.amgettuple = Some(guarded!(scan::next(scan, direction)));
        r.amgetbitmap = Some(guarded!(scan::all(scan, bitmap)));
        r.amendscan = Some(guarded!(scan::end(scan)));
        Internal::from(Some(pg_sys::Datum::from(am)))
    }
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
unsafe fn build(
    heap: pg_sys::Relation,
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
) -> *mut pg_sys::IndexBuildResult {
    if !storage::is_table(heap) {
        errors::index_on_other_table();
    }
    // SAFETY: core passes open relations and what it knows of the index; the result is a plain
    // struct.
    unsafe {
        if (*info).ii_Concurrent {
            // Core waits for all older snapshots before it marks the index as valid.
            storage::build_index_beside_writers(Relation::enter(heap), Relation::enter(index));
        } else if stays_unready(index, info) {
            // A failed build left it, and core leaves it so: no writer enters it, so nothing is to
            // be there.
            return pg_sys::palloc0(size_of::<pg_sys::IndexBuildResult>()).cast();
        } else {
            let repeated = match (*info).ii_Unique {
                true => Repeated::Refused,
                false => Repeated::Entered,
            };
            if storage::build_index(Relation::enter(heap), Relation::enter(index), repeated)
                == Built::ForYounger
            {
                // Core keeps the index from snapshots that are older than it.
                (*info).ii_BrokenHotChain = true;
            }
        }
        let storage = storage::table(heap);
        let added = xact::current().rows_added(storage);
        let rows = (storage.row_count_estimate() as i64 + added).max(0);
        // As core's own build, which scans the table.
        scan_begins(Relation::enter(heap));
        rows_read(Relation::enter(heap), rows);
        let is_partial = !(*info).ii_Predicate.is_null();
        let entries = match is_partial {
            true => storage::index(storage, index).entry_count_estimate() as i64,
            false => rows,
        };
        let result = pg_sys::palloc0(size_of::<pg_sys::IndexBuildResult>())
            .cast::<pg_sys::IndexBuildResult>();
        (*result).heap_tuples = rows as f64;
        (*result).index_tuples = entries as f64;
        result
    }
}

/// Whether core rebuilds an index that is not ready, and will not make it ready: a unique one,
/// which a rewrite of its table takes along without asking for uniqueness (`reindex_index`,
/// `skip_constraint_checks`).
unsafe fn stays_unready(index: pg_sys::Relation, info: *mut pg_sys::IndexInfo) -> bool {
    // SAFETY: the caller's open index.
    unsafe {
        let form = &*(*index).rd_index;
        form.indisunique && !form.indisready && !(*info).ii_Unique
    }
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
unsafe fn insert(
    index: pg_sys::Relation,
    _values: *mut pg_sys::Datum,
    _nulls: *mut bool,
    tid: pg_sys::ItemPointer,
    heap: pg_sys::Relation,
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
    // SAFETY: core passes open relations, the table locked for writing.
    unsafe {
        let is_entered = speculative::enter(Relation::enter(heap), *tid, index, duplicates);
        let is_asked =
            unique != pg_sys::IndexUniqueCheck::UNIQUE_CHECK_NO && storage::has_keys_of_core(heap);
        is_entered && (!is_asked || uniqueness::is_unique(heap, index, tid, unique))
    }
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
