//! EXPLAIN of the scan: core shows all conditions, and the rows that none of them let pass.
use crate::executor::filter::Filter;
use crate::pg::list::{cells, list};
use crate::pg::version;
use pgrx::pg_sys;

/// `ExplainCustomScan`: the conditions that are evaluated where the rows lie, if core evaluates all
/// of them again.
pub unsafe fn explain(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: as core calls it; the node's table is open.
    unsafe {
        let plan = (*node).ss.ps.plan;
        let table = (*plan.cast::<pg_sys::Scan>()).scanrelid;
        let row_type = (*(*node).ss.ss_currentRelation).rd_att;
        let conditions = cells::<pg_sys::Node>((*plan).qual);
        let taken = &conditions[..Filter::takes((*plan).qual, table, row_type)];
        if taken.is_empty() || taken.len() == conditions.len() {
            return;
        }
        let context = pg_sys::set_deparse_context_plan((*es).deparse_cxt, plan, ancestors);
        let is_prefixed = version::tables_explained(es) > 1 || (*es).verbose;
        let all = pg_sys::make_ands_explicit(list(taken));
        let text = pg_sys::deparse_expression(all.cast(), context, is_prefixed, false);
        pg_sys::ExplainPropertyText(c"Filter in Place".as_ptr(), text, es);
    }
}
