//! The handler, the validator, and the server that comes with the extension.
//!
//! The handler answers without `shared_preload_libraries`: `DROP`, `\d` and `pg_dump` may call it. The first touch of a table's
//! storage is what raises 55000.
use super::{
    aggregate, analyze, direct_modify, explain, lock_rows, modify, parallel, paths, plan, routing,
    scan, size, truncate,
};
use crate::errors;
use crate::pg::guard::guarded;
use crate::pg::text;
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
        r.GetForeignRelSize = Some(guarded!(size::get_foreign_rel_size(root, rel, relid)));
        r.GetForeignPaths = Some(guarded!(paths::get_foreign_paths(root, rel, relid)));
        r.GetForeignPlan = Some(guarded!(plan::get_foreign_plan(
            root, rel, relid, path, targets, clauses, outer_plan
        )));
        r.GetForeignUpperPaths = Some(guarded!(aggregate::get_foreign_upper_paths(
            root, stage, input, output, extra
        )));
        r.ReparameterizeForeignPathByChild =
            Some(guarded!(paths::reparameterize_by_child(root, made, child)));
        r.BeginForeignScan = Some(begin_scan());
        r.IterateForeignScan = Some(guarded!(scan::iterate_foreign_scan(node)));
        r.ReScanForeignScan = Some(guarded!(scan::rescan_foreign_scan(node)));
        r.RecheckForeignScan = Some(guarded!(aggregate::recheck(node, slot)));
        r.EndForeignScan = Some(guarded!(scan::end_foreign_scan(node)));
        r.IsForeignScanParallelSafe = Some(guarded!(parallel::is_foreign_scan_parallel_safe(
            root, rel, entry
        )));
        r.EstimateDSMForeignScan =
            Some(guarded!(parallel::estimate_dsm_foreign_scan(node, context)));
        r.InitializeDSMForeignScan = Some(guarded!(parallel::initialize_dsm_foreign_scan(
            node, context, shared
        )));
        r.ReInitializeDSMForeignScan = Some(guarded!(parallel::reinitialize_dsm_foreign_scan(
            node, context, shared
        )));
        r.InitializeWorkerForeignScan = Some(guarded!(parallel::initialize_worker_foreign_scan(
            node, toc, shared
        )));
        r.ShutdownForeignScan = Some(guarded!(parallel::shutdown_foreign_scan(node)));
        r.AddForeignUpdateTargets = Some(guarded!(modify::add_foreign_update_targets(
            root, rti, entry, relation
        )));
        r.PlanForeignModify = Some(guarded!(modify::plan_foreign_modify(
            root, plan, rti, number
        )));
        r.BeginForeignModify = Some(guarded!(modify::begin_foreign_modify(
            node, info, private, subplan, flags
        )));
        r.ExecForeignInsert = Some(guarded!(modify::exec_foreign_insert(
            estate, info, slot, plan_slot
        )));
        r.ExecForeignUpdate = Some(guarded!(modify::exec_foreign_update(
            estate, info, slot, plan_slot
        )));
        r.ExecForeignDelete = Some(guarded!(modify::exec_foreign_delete(
            estate, info, slot, plan_slot
        )));
        r.EndForeignModify = Some(guarded!(modify::end_foreign_modify(estate, info)));
        r.BeginForeignInsert = Some(guarded!(modify::begin_foreign_insert(node, info)));
        r.EndForeignInsert = Some(guarded!(modify::end_foreign_modify(estate, info)));
        r.IsForeignRelUpdatable = Some(guarded!(routing::is_foreign_rel_updatable(relation)));
        r.PlanDirectModify = Some(guarded!(direct_modify::plan_direct_modify(
            root, plan, rti, number
        )));
        r.BeginDirectModify = Some(guarded!(direct_modify::begin_direct_modify(node, flags)));
        r.IterateDirectModify = Some(guarded!(direct_modify::iterate_direct_modify(node)));
        r.EndDirectModify = Some(guarded!(scan::end_foreign_scan(node)));
        r.GetForeignRowMarkType = Some(guarded!(lock_rows::get_foreign_row_mark_type(
            entry, strength
        )));
        r.RefetchForeignRow = Some(guarded!(lock_rows::refetch_foreign_row(
            estate, mark, identity, slot, updated
        )));
        r.ExplainForeignScan = Some(guarded!(explain::explain_foreign_scan(node, es)));
        r.ExplainDirectModify = Some(guarded!(explain::explain_direct_modify(node, es)));
        r.AnalyzeForeignTable = Some(guarded!(analyze::analyze_foreign_table(
            relation, sampler, pages
        )));
        r.ExecForeignTruncate = Some(guarded!(truncate::exec_foreign_truncate(
            relations,
            behavior,
            restart_sequences
        )));
        Internal::from(Some(pg_sys::Datum::from(routine)))
    }
}

/// The callback that tells our routine from another library's of the same symbol.
fn begin_scan() -> unsafe extern "C-unwind" fn(*mut pg_sys::ForeignScanState, std::ffi::c_int) {
    guarded!(scan::begin_foreign_scan(node, flags))
}

/// Whether a wrapper's routine is what the handler above makes.
pub unsafe fn is_routine(routine: *const pg_sys::FdwRoutine) -> bool {
    // SAFETY: a live routine; its callbacks are compared.
    let begin = unsafe { (*routine).BeginForeignScan };
    begin.is_some_and(|begin| begin as usize == begin_scan() as usize)
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
        let is_ours = is_routine(routine);
        pg_sys::pfree(routine.cast());
        is_ours
    }
}

#[pg_extern(sql = "
CREATE FUNCTION mot.fdw_validator(text[], oid) RETURNS void
  STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION mot.fdw_validator(text[], oid) IS 'checks options of memory-optimized tables: there are none';
")]
fn fdw_validator(options: Array<'_, &[u8]>, catalog: pg_sys::Oid) {
    // It is called for a table without options, too, and where the library is not preloaded.
    // SAFETY: a plain flag, set when the server starts.
    if catalog == pg_sys::ForeignTableRelationId && unsafe { pg_sys::IsBinaryUpgrade } {
        errors::binary_upgrade();
    }
    if let Some(option) = options.iter().flatten().next() {
        let name = option.split(|byte| *byte == b'=').next();
        errors::invalid_option(&text::decode(name.unwrap_or_default()));
    }
}

extension_sql!(
    "
CREATE FOREIGN DATA WRAPPER mot HANDLER mot.fdw_handler VALIDATOR mot.fdw_validator;
CREATE SERVER mot FOREIGN DATA WRAPPER mot;
COMMENT ON SERVER mot IS 'memory-optimized tables: CREATE FOREIGN TABLE ... SERVER mot';
GRANT USAGE ON FOREIGN SERVER mot TO PUBLIC;
",
    name = "foreign_server",
    requires = [fdw_handler, fdw_validator]
);
