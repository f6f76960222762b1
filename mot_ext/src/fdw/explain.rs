//! EXPLAIN: the index, its conditions and the direction, in core's words.
//!
//! Core does not tell a wrapper the nodes above its own, which the names of a nested loop's parameters come from; they are looked
//! up in the plan, or a condition would read `a = $0`.
use super::aggregate;
use super::private::{Private, items, list};
use crate::pg::version;
use pgrx::pg_sys;

pub unsafe fn explain_foreign_scan(
    node: *mut pg_sys::ForeignScanState,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: a node of a plan of ours.
    unsafe {
        let plan = (*node).ss.ps.plan.cast::<pg_sys::ForeignScan>();
        if aggregate::is_aggregate(node) {
            explain_aggregates(plan, es);
            let passes = aggregate::passes_over_rows(node);
            if (*es).analyze && passes > 1 {
                let label = c"Passes".as_ptr();
                pg_sys::ExplainPropertyInteger(label, std::ptr::null(), passes.into(), es);
            }
            return;
        }
        explain_index(plan, &Private::new((*plan).fdw_private), es);
    }
}

/// As for a scan; core does not know the filter any more.
pub unsafe fn explain_direct_modify(
    node: *mut pg_sys::ForeignScanState,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: a node of a plan that plan_direct_modify took.
    unsafe {
        let plan = (*node).ss.ps.plan.cast::<pg_sys::ForeignScan>();
        let private = Private::new((*plan).fdw_private);
        explain_index(plan, &private, es);
        let expressions = items::<pg_sys::Expr>((*plan).fdw_exprs);
        let first = expressions.len() - private.assigned().len() - private.qual_count();
        let quals = list(&expressions[first..first + private.qual_count()]);
        explain_clauses(c"Filter", quals, plan, es);
        let instrument = (*node).ss.ps.instrument;
        if !quals.is_null() && !instrument.is_null() && (*es).analyze {
            let loops = (*instrument).nloops.max(1.0);
            let filtered = (*instrument).nfiltered1;
            if filtered > 0.0 || (*es).format != pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
                pg_sys::ExplainPropertyFloat(
                    c"Rows Removed by Filter".as_ptr(),
                    std::ptr::null(),
                    filtered / loops,
                    0,
                    es,
                );
            }
        }
    }
}

unsafe fn explain_index(
    plan: *mut pg_sys::ForeignScan,
    private: &Private,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: live executor and EXPLAIN structures; the index is locked with its table.
    unsafe {
        if private.is_by_identity() {
            let identity = items::<pg_sys::Expr>((*plan).fdw_exprs)[0];
            explain_clauses(c"Row", list(&[identity]), plan, es);
        }
        if private.index() == pg_sys::InvalidOid {
            return;
        }
        let name = pg_sys::get_rel_name(private.index());
        if !name.is_null() {
            let quoted = pg_sys::quote_identifier(name);
            pg_sys::ExplainPropertyText(c"Index".as_ptr(), quoted, es);
        }
        if private.is_backward() {
            pg_sys::ExplainPropertyText(c"Scan Direction".as_ptr(), c"Backward".as_ptr(), es);
        }
        explain_clauses(c"Index Cond", (*plan).fdw_recheck_quals, plan, es);
    }
}

/// The aggregates, one after the other.
unsafe fn explain_aggregates(plan: *mut pg_sys::ForeignScan, es: *mut pg_sys::ExplainState) {
    // SAFETY: live EXPLAIN structures; a node whose rows are aggregates.
    unsafe {
        for (label, of_aggregates) in [(c"Group Key", false), (c"Aggregates", true)] {
            let texts: Vec<_> = items::<pg_sys::TargetEntry>((*plan).fdw_scan_tlist)
                .into_iter()
                .map(|target| (*target).expr.cast::<pg_sys::Node>())
                .filter(|node| ((**node).type_ == pg_sys::NodeTag::T_Aggref) == of_aggregates)
                .map(|node| deparse(node, plan, es))
                .collect();
            if !texts.is_empty() {
                pg_sys::ExplainPropertyList(label.as_ptr(), list(&texts), es);
            }
        }
    }
}

unsafe fn explain_clauses(
    label: &std::ffi::CStr,
    clauses: *mut pg_sys::List,
    plan: *mut pg_sys::ForeignScan,
    es: *mut pg_sys::ExplainState,
) {
    if clauses.is_null() {
        return;
    }
    // SAFETY: clauses of the plan node, in which Vars speak of its relation.
    unsafe {
        let node = pg_sys::make_ands_explicit(clauses);
        let text = deparse(node.cast(), plan, es);
        pg_sys::ExplainPropertyText(label.as_ptr(), text, es);
    }
}

/// The text of an expression of the plan node.
unsafe fn deparse(
    node: *mut pg_sys::Node,
    plan: *mut pg_sys::ForeignScan,
    es: *mut pg_sys::ExplainState,
) -> *mut std::ffi::c_char {
    // SAFETY: as for the callers.
    unsafe {
        let above = ancestors(es, plan.cast());
        let context = pg_sys::set_deparse_context_plan((*es).deparse_cxt, plan.cast(), above);
        let tables = version::tables_explained(es);
        pg_sys::deparse_expression(node, context, tables > 1 || (*es).verbose, false)
    }
}

/// The nodes above a plan node, nearest first; empty if it is not found, as below a CTE or an init plan it may not be.
unsafe fn ancestors(es: *mut pg_sys::ExplainState, wanted: *mut pg_sys::Plan) -> *mut pg_sys::List {
    // SAFETY: the statement that is being explained.
    unsafe {
        let statement = (*es).pstmt;
        if statement.is_null() {
            return std::ptr::null_mut();
        }
        let mut roots = vec![(*statement).planTree];
        roots.extend(items::<pg_sys::Plan>((*statement).subplans));
        for root in roots {
            let mut path = Vec::new();
            if find(root, wanted, &mut path) {
                return list(&path);
            }
        }
        std::ptr::null_mut()
    }
}

/// Finds a node below `at`; `path` gets the nodes above it, nearest first.
unsafe fn find(
    at: *mut pg_sys::Plan,
    wanted: *mut pg_sys::Plan,
    path: &mut Vec<*mut pg_sys::Plan>,
) -> bool {
    if at.is_null() {
        return false;
    }
    if at == wanted {
        return true;
    }
    // SAFETY: a plan tree; each cast follows the node's tag.
    unsafe {
        let mut children = vec![(*at).lefttree, (*at).righttree];
        match (*at.cast::<pg_sys::Node>()).type_ {
            pg_sys::NodeTag::T_Append => {
                children.extend(items::<pg_sys::Plan>(
                    (*at.cast::<pg_sys::Append>()).appendplans,
                ));
            }
            pg_sys::NodeTag::T_MergeAppend => {
                let node = at.cast::<pg_sys::MergeAppend>();
                children.extend(items::<pg_sys::Plan>((*node).mergeplans));
            }
            pg_sys::NodeTag::T_SubqueryScan => {
                children.push((*at.cast::<pg_sys::SubqueryScan>()).subplan);
            }
            _ => {}
        }
        for child in children {
            if find(child, wanted, path) {
                path.push(at);
                return true;
            }
        }
    }
    false
}
