//! The handler, the validator, and the server that comes with the extension.
//!
//! The handler answers without `shared_preload_libraries`: `DROP`, `\d` and `pg_dump` may call it. The first touch of a table's
//! storage is what raises 55000.
use super::{
    analyze, direct_modify, explain, lock_rows, modify, parallel, paths, plan, routing, scan, size,
    truncate,
};
use crate::errors;
use pgrx::pg_sys;
use pgrx::prelude::*;
use pgrx::{Array, Internal};
use std::ffi::CStr;

#[pg_extern(sql = "
CREATE FUNCTION mot.fdw_handler() RETURNS fdw_handler
  STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION mot.fdw_handler() IS 'describes the foreign-data wrapper of memory-optimized tables';
")]
fn fdw_handler() -> Internal {
    // SAFETY: palloc0 gives a zeroed, aligned block of the node's size; a callback that is not set is NULL, which core takes as
    // "not supported".
    unsafe {
        let routine = pg_sys::palloc0(size_of::<pg_sys::FdwRoutine>()).cast::<pg_sys::FdwRoutine>();
        let r = &mut *routine;
        r.type_ = pg_sys::NodeTag::T_FdwRoutine;
        r.GetForeignRelSize = Some(size::get_foreign_rel_size);
        r.GetForeignPaths = Some(paths::get_foreign_paths);
        r.GetForeignPlan = Some(plan::get_foreign_plan);
        r.ReparameterizeForeignPathByChild = Some(paths::reparameterize_by_child);
        r.BeginForeignScan = Some(scan::begin_foreign_scan);
        r.IterateForeignScan = Some(scan::iterate_foreign_scan);
        r.ReScanForeignScan = Some(scan::rescan_foreign_scan);
        r.EndForeignScan = Some(scan::end_foreign_scan);
        r.IsForeignScanParallelSafe = Some(parallel::is_foreign_scan_parallel_safe);
        r.EstimateDSMForeignScan = Some(parallel::estimate_dsm_foreign_scan);
        r.InitializeDSMForeignScan = Some(parallel::initialize_dsm_foreign_scan);
        r.ReInitializeDSMForeignScan = Some(parallel::reinitialize_dsm_foreign_scan);
        r.InitializeWorkerForeignScan = Some(parallel::initialize_worker_foreign_scan);
        r.ShutdownForeignScan = Some(parallel::shutdown_foreign_scan);
        r.AddForeignUpdateTargets = Some(modify::add_foreign_update_targets);
        r.PlanForeignModify = Some(modify::plan_foreign_modify);
        r.BeginForeignModify = Some(modify::begin_foreign_modify);
        r.ExecForeignInsert = Some(modify::exec_foreign_insert);
        r.ExecForeignUpdate = Some(modify::exec_foreign_update);
        r.ExecForeignDelete = Some(modify::exec_foreign_delete);
        r.EndForeignModify = Some(modify::end_foreign_modify);
        r.BeginForeignInsert = Some(modify::begin_foreign_insert);
        r.EndForeignInsert = Some(modify::end_foreign_modify);
        r.IsForeignRelUpdatable = Some(routing::is_foreign_rel_updatable);
        r.PlanDirectModify = Some(direct_modify::plan_direct_modify);
        r.BeginDirectModify = Some(direct_modify::begin_direct_modify);
        r.IterateDirectModify = Some(direct_modify::iterate_direct_modify);
        r.EndDirectModify = Some(scan::end_foreign_scan);
        r.GetForeignRowMarkType = Some(lock_rows::get_foreign_row_mark_type);
        r.RefetchForeignRow = Some(lock_rows::refetch_foreign_row);
        r.ExplainForeignScan = Some(explain::explain_foreign_scan);
        r.ExplainDirectModify = Some(explain::explain_direct_modify);
        r.AnalyzeForeignTable = Some(analyze::analyze_foreign_table);
        r.ExecForeignTruncate = Some(truncate::exec_foreign_truncate);
        Internal::from(Some(pg_sys::Datum::from(routine)))
    }
}

/// Whether a function is the handler above, under whatever name.
///
/// Only what bears our symbol is called: a handler of another library would have that loaded, which may be gone.
pub fn is_handler(function: pg_sys::Oid) -> bool {
    const SYMBOL: &CStr = c"fdw_handler_wrapper";
    // SAFETY: a catalog's row, released when its text was compared; the routine is the handler's own copy.
    unsafe {
        let none = pg_sys::Datum::from(0);
        let procedures = pg_sys::SysCacheIdentifier::PROCOID as i32;
        let row =
            pg_sys::SearchSysCache(procedures, pg_sys::Datum::from(function), none, none, none);
        if row.is_null() {
            return false;
        }
        let mut is_null = false;
        let source = pg_sys::SysCacheGetAttr(
            procedures,
            row,
            pg_sys::Anum_pg_proc_prosrc as i16,
            &raw mut is_null,
        );
        let is_meant = !is_null && {
            let text = pg_sys::text_to_cstring(source.cast_mut_ptr());
            let is_meant = CStr::from_ptr(text) == SYMBOL;
            pg_sys::pfree(text.cast());
            is_meant
        };
        pg_sys::ReleaseSysCache(row);
        if !is_meant {
            return false;
        }
        let routine = pg_sys::GetFdwRoutine(function);
        let ours = scan::begin_foreign_scan as *const () as usize;
        let is_ours = (*routine)
            .BeginForeignScan
            .is_some_and(|begin| begin as usize == ours);
        pg_sys::pfree(routine.cast());
        is_ours
    }
}

#[pg_extern(sql = "
CREATE FUNCTION mot.fdw_validator(text[], oid) RETURNS void
  STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION mot.fdw_validator(text[], oid) IS 'checks options of memory-optimized tables: there are none';
")]
fn fdw_validator(options: Array<'_, &str>, catalog: pg_sys::Oid) {
    // It is called for a table without options, too, and where the library is not preloaded.
    // SAFETY: a plain flag, set when the server starts.
    if catalog == pg_sys::ForeignTableRelationId && unsafe { pg_sys::IsBinaryUpgrade } {
        errors::binary_upgrade();
    }
    if let Some(option) = options.iter().flatten().next() {
        let name = option.split('=').next().unwrap_or_default();
        pg_sys::panic::ErrorReport::new(
            PgSqlErrorCode::ERRCODE_FDW_INVALID_OPTION_NAME,
            format!("invalid option \"{name}\""),
            pgrx::function_name!(),
        )
        .set_hint("Memory-optimized tables have no options.")
        .report(PgLogLevel::ERROR);
    }
}

extension_sql!(
    "
CREATE FOREIGN DATA WRAPPER mot HANDLER mot.fdw_handler VALIDATOR mot.fdw_validator;
CREATE SERVER mot FOREIGN DATA WRAPPER mot;
COMMENT ON SERVER mot IS 'memory-optimized tables: CREATE FOREIGN TABLE ... SERVER mot';
GRANT USAGE ON FOREIGN DATA WRAPPER mot TO PUBLIC;
GRANT USAGE ON FOREIGN SERVER mot TO PUBLIC;
",
    name = "foreign_server",
    requires = [fdw_handler, fdw_validator]
);
