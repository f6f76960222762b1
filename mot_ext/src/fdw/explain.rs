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
        list(&path_to(wanted, &roots))
    }
}

/// A node of a plan, and the place in the list of nodes of the one above it.
struct Found {
    node: *mut pg_sys::Plan,
    above: Option<usize>,
}

/// The nodes above a node that is below one of the roots, nearest first. Plans nest as deep as subqueries
/// do, so that a list, and not the stack, says where the search is.
unsafe fn path_to(
    wanted: *mut pg_sys::Plan,
    roots: &[*mut pg_sys::Plan],
) -> Vec<*mut pg_sys::Plan> {
    let root = |node: &*mut pg_sys::Plan| Found {
        node: *node,
        above: None,
    };
    let mut found: Vec<_> = roots.iter().map(root).collect();
    let mut at = 0;
    while at < found.len() {
        let Found { node, above } = found[at];
        if node == wanted {
            let next = |place: &usize| found[*place].above;
            return std::iter::successors(above, next)
                .map(|place| found[place].node)
                .collect();
        }
        if !node.is_null() {
            // SAFETY: a node of the plan.
            let below = unsafe { children(node) };
            found.extend(below.into_iter().map(|node| Found {
                node,
                above: Some(at),
            }));
        }
        at += 1;
    }
    Vec::new()
}

/// What a node reads from; some may be NULL.
unsafe fn children(node: *mut pg_sys::Plan) -> Vec<*mut pg_sys::Plan> {
    // SAFETY: a plan node; each cast follows the node's tag.
    unsafe {
        let mut children = vec![(*node).lefttree, (*node).righttree];
        match (*node).type_ {
            pg_sys::NodeTag::T_Append => {
                let node = node.cast::<pg_sys::Append>();
                children.extend(items::<pg_sys::Plan>((*node).appendplans));
            }
            pg_sys::NodeTag::T_MergeAppend => {
                let node = node.cast::<pg_sys::MergeAppend>();
                children.extend(items::<pg_sys::Plan>((*node).mergeplans));
            }
            pg_sys::NodeTag::T_SubqueryScan => {
                children.push((*node.cast::<pg_sys::SubqueryScan>()).subplan);
            }
            _ => {}
        }
        children
    }
}
