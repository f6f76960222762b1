//! The index access method `mot_foreign_index`.
//!
//! An index of a memory-optimized table is a real `pg_index` row, made by `index_create` without a build, so that the whole
//! catalog machinery serves it. The engine owns what is behind it, and only the foreign-data wrapper reads it. What is left
//! for an access method is to describe itself and to survive being called where core treats all indexes alike:
//!
//! - `REINDEX` and friends call `ambuild`: there is nothing on disk to build, and statistics stay as they are (-1). So does what keeps older
//!   snapshots from the index (`indcheckxmin`), which core takes away after a build that met no broken HOT chain.
//! - `ANALYZE` calls `amvacuumcleanup`; NULL is an answer.
//! - `ambulkdelete`, `amgetbitmap` and `amcanreturn` stay NULL: core then never tries to scan the table through a table
//!   access method a foreign table does not have (it would dereference NULL), or reports an error.
//!
//! Nothing here touches shared memory: the handler answers when the library is not preloaded, because `\d`, `DROP` and
//! `pg_dump` need it.
use crate::pg::version;
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};

use super::refuse::unsupported;

/// Strategies 1 to 5: <, <=, =, >=, >.
const STRATEGIES: u16 = 5;
/// Support function 1: the three-way comparison.
const SUPPORT_FUNCTIONS: u16 = 1;
/// A cost no plan survives, as core's own `disable_cost`.
const COST_NEVER: f64 = 1.0e10;

#[pg_extern(sql = "
CREATE FUNCTION mot.index_handler(internal) RETURNS index_am_handler
  STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION mot.index_handler(internal) IS 'describes the index access method of memory-optimized tables';
")]
fn index_handler(_call: pg_sys::FunctionCallInfo) -> Internal {
    // SAFETY: palloc0 gives a zeroed, aligned block of the node's size; every field not set below may be zero or NULL.
    unsafe {
        let am =
            pg_sys::palloc0(size_of::<pg_sys::IndexAmRoutine>()).cast::<pg_sys::IndexAmRoutine>();
        (*am).type_ = pg_sys::NodeTag::T_IndexAmRoutine;
        (*am).amstrategies = STRATEGIES;
        (*am).amsupport = SUPPORT_FUNCTIONS;
        (*am).amcanorder = true;
        (*am).amcanbackward = true;
        (*am).amcanunique = true;
        (*am).amcanmulticol = true;
        (*am).amoptionalkey = true;
        (*am).amsearcharray = false;
        (*am).amsearchnulls = true;
        (*am).ambuild = Some(ambuild);
        (*am).ambuildempty = Some(ambuildempty);
        (*am).aminsert = Some(aminsert);
        (*am).amvacuumcleanup = Some(amvacuumcleanup);
        (*am).amcostestimate = Some(amcostestimate);
        (*am).amoptions = Some(amoptions);
        (*am).amvalidate = Some(amvalidate);
        (*am).ambeginscan = Some(ambeginscan);
        (*am).amrescan = Some(amrescan);
        (*am).amgettuple = Some(amgettuple);
        (*am).amendscan = Some(amendscan);
        version::set_order(am);
        Internal::from(Some(pg_sys::Datum::from(am)))
    }
}

extension_sql_file!(
    "operator_classes.sql",
    name = "operator_classes",
    requires = [index_handler]
);

/// `REINDEX`, `VACUUM FULL` of catalogs, and core's `CREATE INDEX` on a heap table, which is refused.
#[pg_guard]
unsafe extern "C-unwind" fn ambuild(
    heap: pg_sys::Relation,
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
) -> *mut pg_sys::IndexBuildResult {
    // SAFETY: core passes open relations and what it knows of the index; the result is a plain struct in a fresh zeroed block.
    unsafe {
        if (*(*heap).rd_rel).relkind != pg_sys::RELKIND_FOREIGN_TABLE as std::ffi::c_char {
            only_for_mot_tables();
        }
        (*info).ii_BrokenHotChain = (*(*index).rd_index).indcheckxmin;
        let result = pg_sys::palloc0(size_of::<pg_sys::IndexBuildResult>())
            .cast::<pg_sys::IndexBuildResult>();
        (*result).heap_tuples = -1.0;
        (*result).index_tuples = -1.0;
        result
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn ambuildempty(_index: pg_sys::Relation) {
    only_for_mot_tables()
}

#[allow(clippy::too_many_arguments)]
#[pg_guard]
unsafe extern "C-unwind" fn aminsert(
    _index: pg_sys::Relation,
    _values: *mut pg_sys::Datum,
    _isnull: *mut bool,
    _tid: pg_sys::ItemPointer,
    _heap: pg_sys::Relation,
    _check_unique: pg_sys::IndexUniqueCheck::Type,
    _index_unchanged: bool,
    _info: *mut pg_sys::IndexInfo,
) -> bool {
    only_for_mot_tables()
}

#[pg_guard]
unsafe extern "C-unwind" fn amvacuumcleanup(
    _info: *mut pg_sys::IndexVacuumInfo,
    _stats: *mut pg_sys::IndexBulkDeleteResult,
) -> *mut pg_sys::IndexBulkDeleteResult {
    std::ptr::null_mut()
}

#[allow(clippy::too_many_arguments)]
#[pg_guard]
unsafe extern "C-unwind" fn amcostestimate(
    _root: *mut pg_sys::PlannerInfo,
    _path: *mut pg_sys::IndexPath,
    _loop_count: f64,
    startup_cost: *mut pg_sys::Cost,
    total_cost: *mut pg_sys::Cost,
    selectivity: *mut pg_sys::Selectivity,
    correlation: *mut f64,
    pages: *mut f64,
) {
    // SAFETY: the planner passes five places to fill.
    unsafe {
        *startup_cost = COST_NEVER;
        *total_cost = COST_NEVER;
        *selectivity = 1.0;
        *correlation = 0.0;
        *pages = 0.0;
    }
}

/// Index storage parameters mean nothing here; the utility hook drops them before they reach the catalog.
#[pg_guard]
unsafe extern "C-unwind" fn amoptions(
    _reloptions: pg_sys::Datum,
    _validate: bool,
) -> *mut pg_sys::bytea {
    std::ptr::null_mut()
}

#[pg_guard]
unsafe extern "C-unwind" fn amvalidate(_opclass: pg_sys::Oid) -> bool {
    true
}

#[pg_guard]
unsafe extern "C-unwind" fn ambeginscan(
    _index: pg_sys::Relation,
    _nkeys: std::ffi::c_int,
    _norderbys: std::ffi::c_int,
) -> pg_sys::IndexScanDesc {
    no_core_scan()
}

#[pg_guard]
unsafe extern "C-unwind" fn amrescan(
    _scan: pg_sys::IndexScanDesc,
    _keys: pg_sys::ScanKey,
    _nkeys: std::ffi::c_int,
    _orderbys: pg_sys::ScanKey,
    _norderbys: std::ffi::c_int,
) {
    no_core_scan()
}

#[pg_guard]
unsafe extern "C-unwind" fn amgettuple(
    _scan: pg_sys::IndexScanDesc,
    _direction: pg_sys::ScanDirection::Type,
) -> bool {
    no_core_scan()
}

#[pg_guard]
unsafe extern "C-unwind" fn amendscan(_scan: pg_sys::IndexScanDesc) {}

fn only_for_mot_tables() -> ! {
    unsupported(
        "access method \"mot_foreign_index\" serves memory-optimized tables only",
        "Create the table with CREATE FOREIGN TABLE ... SERVER mot, or use another access method.",
    )
}

fn no_core_scan() -> ! {
    unsupported(
        "an index of a memory-optimized table is scanned through its table only",
        "Query the table.",
    )
}
