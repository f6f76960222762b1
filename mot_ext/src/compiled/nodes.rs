//! Which plans may keep core's states between two executions, and what is done to such a plan.
//!
//! Let through are nodes that hold nothing of PostgreSQL's between two rows but memory, or whose
//! holdings [`super::tree`] gives back: nested loops, aggregates, sorts, limits over scans of
//! memory-optimized tables, with subqueries of the same kind. Their expressions are plain
//! (`plain.rs`); what they compare by themselves (groups, cache keys) is asked for here.
use super::access::scan_of;
use super::plain::{Scope, are_plain, is_lasting_type, is_own_operator, is_plain};
use crate::pg::list::items;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

/// A scan in the plan: its place in the range table.
pub type Position = u32;

/// Plans of more nodes are not kept. Their states would take more memory than a kept tree may, and
/// walks over the states (`survey.rs`) take some 3 kB of stack for each one below the other.
const NODES_MAX: usize = 100;

/// The scans of a plan whose states may be kept; `None`: core has to make them anew each time.
pub unsafe fn scans(statement: *mut pg_sys::PlannedStmt) -> Option<Vec<Position>> {
    // SAFETY: a finished plan.
    unsafe {
        let plan = &*statement;
        let is_query = plan.commandType == pg_sys::CmdType::CMD_SELECT
            && plan.utilityStmt.is_null()
            && plan.rowMarks.is_null()
            && plan.resultRelations.is_null()
            && !plan.hasModifyingCTE
            && !plan.parallelModeNeeded
            // Machine code belongs to one execution.
            && plan.jitFlags == 0;
        if !is_query {
            return None;
        }
        let nodes = nodes(plan)?;
        let mut found = Vec::new();
        let are_kept = nodes.into_iter().all(|node| may_be_kept(node, &mut found));
        (are_kept && !found.is_empty()).then_some(found)
    }
}

/// Whether a plan may be one of those that [`core_scans`] reports: reads its top, for every
/// plan that the server makes.
#[inline]
pub unsafe fn may_have_core_scans(statement: *const pg_sys::PlannedStmt) -> bool {
    // SAFETY: a finished plan.
    unsafe {
        let plan = &*statement;
        plan.commandType == pg_sys::CmdType::CMD_SELECT
            && plan.rowMarks.is_null()
            && !plan.parallelModeNeeded
            && !plan.rtable.is_null()
            && !plan.planTree.is_null()
            && is_kind_kept((*plan.planTree).type_)
    }
}

/// The tables that core's nodes scan in a plan of several nodes whose states might be kept, as far
/// as the kinds of nodes show; none for other plans.
pub unsafe fn core_scans(statement: *mut pg_sys::PlannedStmt) -> Vec<Position> {
    // SAFETY: a finished plan; casts by tag.
    unsafe {
        if !may_have_core_scans(statement) {
            return Vec::new();
        }
        let nodes = nodes(&*statement).unwrap_or_default();
        let is_of_kept_kind = |node: &*mut pg_sys::Plan| is_kind_kept((**node).type_);
        if !nodes.iter().all(is_of_kept_kind) {
            return Vec::new();
        }
        let scans = nodes
            .into_iter()
            .filter(|node| is_core_scan((**node).type_));
        scans.map(|node| scan_of(node).scanrelid).collect()
    }
}

/// A scan of core's over a table.
fn is_core_scan(kind: pg_sys::NodeTag) -> bool {
    matches!(kind, T_SeqScan | T_IndexScan)
}

/// The kinds of nodes that [`is_kept`] lets through.
fn is_kind_kept(kind: pg_sys::NodeTag) -> bool {
    is_core_scan(kind)
        || matches!(
            kind,
            T_NestLoop
                | T_Agg
                | T_Unique
                | T_Group
                | T_Sort
                | T_Memoize
                | T_Limit
                | T_Result
                | T_SubqueryScan
        )
}

/// Makes every node of a plan whose states may be kept depend on one more parameter, which
/// no node reads. When that "changes", core's own rescan does everything anew, subqueries included.
/// The parameter's number.
pub unsafe fn make_rescannable(statement: *mut pg_sys::PlannedStmt) -> i32 {
    // SAFETY: a plan of ours to change, in the current memory context.
    unsafe {
        let types = (*statement).paramExecTypes;
        let number = if types.is_null() { 0 } else { (*types).length };
        (*statement).paramExecTypes = pg_sys::lappend_oid(types, pg_sys::INT4OID);
        for node in nodes(&*statement).into_iter().flatten() {
            (*node).extParam = pg_sys::bms_add_member((*node).extParam, number);
            (*node).allParam = pg_sys::bms_add_member((*node).allParam, number);
        }
        number
    }
}

/// The nodes of a plan and of its subplans, as far as they are of the kinds let through; `None`:
/// too many.
unsafe fn nodes(plan: &pg_sys::PlannedStmt) -> Option<Vec<*mut pg_sys::Plan>> {
    // SAFETY: a finished plan.
    unsafe {
        let mut found: Vec<_> = roots(plan).filter(|root| !root.is_null()).collect();
        let mut looked_at = 0;
        while let Some(&node) = found.get(looked_at) {
            if found.len() > NODES_MAX {
                return None;
            }
            looked_at += 1;
            found.extend(children(node).into_iter().filter(|child| !child.is_null()));
        }
        Some(found)
    }
}

/// The plan and its subplans; NULL for one that planning made superfluous.
unsafe fn roots(plan: &pg_sys::PlannedStmt) -> impl Iterator<Item = *mut pg_sys::Plan> {
    // SAFETY: a finished plan.
    std::iter::once(plan.planTree).chain(unsafe { items::<pg_sys::Plan>(plan.subplans) })
}

/// What a node of those let through reads from; NULL for none.
unsafe fn children(node: *mut pg_sys::Plan) -> [*mut pg_sys::Plan; 3] {
    // SAFETY: a plan node, cast by tag.
    unsafe {
        let below = if (*node).type_ == T_SubqueryScan {
            (*node.cast::<pg_sys::SubqueryScan>()).subplan
        } else {
            std::ptr::null_mut()
        };
        [(*node).lefttree, (*node).righttree, below]
    }
}

/// Whether the states of a node may be kept.
unsafe fn may_be_kept(node: *mut pg_sys::Plan, found: &mut Vec<Position>) -> bool {
    // SAFETY: a plan node.
    unsafe {
        let plan = &*node;
        are_plain(plan.targetlist, Scope::Tree)
            && are_plain(plan.qual, Scope::Tree)
            && are_plain(plan.initPlan, Scope::Tree)
            && is_kept(node, found)
    }
}

/// Whether a node that groups or sorts compares by core's own operators, and does nothing else that
/// is not plain.
unsafe fn compares_plainly(node: *mut pg_sys::Plan) -> bool {
    // SAFETY: a plan node of these kinds (caller), cast by tag.
    unsafe {
        match (*node).type_ {
            T_Agg => {
                let agg = &*node.cast::<pg_sys::Agg>();
                agg.groupingSets.is_null()
                    && agg.chain.is_null()
                    && agg.aggsplit == pg_sys::AggSplit::AGGSPLIT_SIMPLE
                    && compares(
                        (*(*node).lefttree).targetlist,
                        agg.numCols,
                        agg.grpColIdx,
                        agg.grpOperators,
                    )
            }
            T_Unique => {
                let unique = &*node.cast::<pg_sys::Unique>();
                let (columns, operators) = (unique.uniqColIdx, unique.uniqOperators);
                compares((*node).targetlist, unique.numCols, columns, operators)
            }
            T_Group => {
                let group = &*node.cast::<pg_sys::Group>();
                let (columns, operators) = (group.grpColIdx, group.grpOperators);
                let below = (*(*node).lefttree).targetlist;
                compares(below, group.numCols, columns, operators)
            }
            T_Sort => {
                let sort = &*node.cast::<pg_sys::Sort>();
                let (columns, operators) = (sort.sortColIdx, sort.sortOperators);
                compares((*node).targetlist, sort.numCols, columns, operators)
            }
            _ => false,
        }
    }
}

/// What is particular to each kind of node.
unsafe fn is_kept(node: *mut pg_sys::Plan, found: &mut Vec<Position>) -> bool {
    // SAFETY: a plan node, cast by tag.
    unsafe {
        match (*node).type_ {
            T_SeqScan => {
                found.push(scan_of(node).scanrelid);
                !(*node).parallel_aware
            }
            T_IndexScan => {
                let scan = &*node.cast::<pg_sys::IndexScan>();
                found.push(scan.scan.scanrelid);
                !(*node).parallel_aware
                    && scan.indexorderby.is_null()
                    && are_plain(scan.indexqual, Scope::Tree)
                    && are_plain(scan.indexqualorig, Scope::Tree)
            }
            T_NestLoop => {
                let join = &*node.cast::<pg_sys::NestLoop>();
                are_plain(join.join.joinqual, Scope::Tree)
                    && items::<pg_sys::NestLoopParam>(join.nestParams)
                        .into_iter()
                        .all(|parameter| is_plain((*parameter).paramval.cast(), Scope::Tree))
            }
            T_Agg | T_Unique | T_Group | T_Sort => compares_plainly(node),
            T_Memoize => {
                let memoize = &*node.cast::<pg_sys::Memoize>();
                are_plain(memoize.param_exprs, Scope::Tree)
                    && items::<pg_sys::Node>(memoize.param_exprs)
                        .into_iter()
                        .all(|key| is_lasting_type(pg_sys::exprType(key)))
                    && slice(memoize.hashOperators, memoize.numKeys)
                        .iter()
                        .all(|operator| is_own_operator(*operator))
            }
            T_Limit => {
                let limit = &*node.cast::<pg_sys::Limit>();
                limit.limitOption == pg_sys::LimitOption::LIMIT_OPTION_COUNT
                    && is_plain(limit.limitOffset, Scope::Tree)
                    && is_plain(limit.limitCount, Scope::Tree)
            }
            T_Result => {
                let result = &*node.cast::<pg_sys::Result>();
                is_plain(result.resconstantqual, Scope::Tree)
            }
            T_SubqueryScan => true,
            _ => false,
        }
    }
}

unsafe fn slice<'a, T>(start: *const T, count: i32) -> &'a [T] {
    if count <= 0 || start.is_null() {
        return &[];
    }
    // SAFETY: an array of a finished plan, with its length.
    unsafe { std::slice::from_raw_parts(start, count as usize) }
}

/// Whether a node compares columns of `targets` by operators, and over types, that last.
unsafe fn compares(
    targets: *mut pg_sys::List,
    count: i32,
    columns: *const pg_sys::AttrNumber,
    operators: *const pg_sys::Oid,
) -> bool {
    // SAFETY: a node's target list, and its arrays of `count` members.
    unsafe {
        let targets = items::<pg_sys::TargetEntry>(targets);
        let lasts = |column: &pg_sys::AttrNumber| {
            targets.iter().any(|target| {
                (**target).resno == *column
                    && is_lasting_type(pg_sys::exprType((**target).expr.cast()))
            })
        };
        slice(columns, count).iter().all(lasts)
            && slice(operators, count)
                .iter()
                .all(|operator| is_own_operator(*operator))
    }
}
