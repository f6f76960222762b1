//! Which plans may keep core's states between two executions, and what is done to such a plan.
//!
//! Let through are nodes that hold nothing of PostgreSQL's between two rows but memory, or whose
//! holdings [`super::tree`] gives back: nested loops, aggregates, sorts, limits over scans of
//! memory-optimized tables, with subqueries of the same kind. Their expressions are plain
//! (`plain.rs`); what they compare by themselves (groups, cache keys) is asked for here.
use super::plain::{Scope, are_plain, is_lasting_type, is_own_operator, is_plain};
use crate::pg::node::{Any, Compared, List, Node};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

/// A scan in the plan: its place in the range table.
pub type Position = u32;

/// Plans of more nodes are not kept. Their states would take more memory than a kept tree may, and
/// walks over the states (`survey.rs`) take some 3 kB of stack for each one below the other.
const NODES_MAX: usize = 100;

/// A finished plan.
type Statement<'p> = Node<'p, pg_sys::PlannedStmt>;

/// A node of one.
type Plan<'p> = Node<'p, pg_sys::Plan>;

/// The scans of a plan whose states may be kept; `None`: core has to make them anew each time.
pub fn scans(plan: Statement<'_>) -> Option<Vec<Position>> {
    let is_query = plan.commandType() == pg_sys::CmdType::CMD_SELECT
        && plan.utilityStmt().is_none()
        && plan.rowMarks().is_empty()
        && plan.resultRelations().len() == 0
        && !plan.hasModifyingCTE()
        && !plan.parallelModeNeeded()
        // Machine code belongs to one execution.
        && plan.jitFlags() == 0;
    if !is_query {
        return None;
    }
    let nodes = nodes(plan)?;
    let mut found = Vec::new();
    let are_kept = nodes.into_iter().all(|node| may_be_kept(node, &mut found));
    (are_kept && !found.is_empty()).then_some(found)
}

/// Whether a plan may be one of those that [`core_scans`] reports: reads its top, for every
/// plan that the server makes.
#[inline]
pub fn may_have_core_scans(plan: Statement<'_>) -> bool {
    plan.commandType() == pg_sys::CmdType::CMD_SELECT
        && plan.rowMarks().is_empty()
        && !plan.parallelModeNeeded()
        && !plan.rtable().is_empty()
        && plan.planTree().is_some_and(|top| is_kind_kept(top.tag()))
}

/// The tables that core's nodes scan in a plan of several nodes whose states might be kept, as far
/// as the kinds of nodes show; none for other plans.
pub fn core_scans(plan: Statement<'_>) -> Vec<Position> {
    if !may_have_core_scans(plan) {
        return Vec::new();
    }
    let nodes = nodes(plan).unwrap_or_default();
    if !nodes.iter().all(|node| is_kind_kept(node.tag())) {
        return Vec::new();
    }
    nodes.into_iter().filter_map(Node::scanned).collect()
}

/// The kinds of nodes that [`is_kept`] lets through.
fn is_kind_kept(kind: pg_sys::NodeTag) -> bool {
    matches!(
        kind,
        T_SeqScan
            | T_IndexScan
            | T_NestLoop
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
/// The plan is a copy of ours. The parameter's number.
pub fn make_rescannable(plan: Statement<'_>) -> i32 {
    let number = plan.add_parameter();
    for node in nodes(plan).into_iter().flatten() {
        node.add_dependence(number);
    }
    number
}

/// The nodes of a plan and of its subplans, as far as they are of the kinds let through; `None`:
/// too many.
fn nodes(plan: Statement<'_>) -> Option<Vec<Plan<'_>>> {
    // The place of a subplan that planning made superfluous is empty.
    let mut found: Vec<_> = plan.planTree().into_iter().chain(plan.subplans()).collect();
    let mut looked_at = 0;
    while let Some(&node) = found.get(looked_at) {
        if found.len() > NODES_MAX {
            return None;
        }
        looked_at += 1;
        found.extend(children(node));
    }
    Some(found)
}

/// What a node of those let through reads from.
fn children(node: Plan<'_>) -> impl Iterator<Item = Plan<'_>> {
    let subquery = node.cast::<pg_sys::SubqueryScan>();
    let below = subquery.and_then(|subquery| subquery.subplan());
    [node.lefttree(), node.righttree(), below]
        .into_iter()
        .flatten()
}

/// Whether the states of a node may be kept.
fn may_be_kept(node: Plan<'_>, found: &mut Vec<Position>) -> bool {
    let targets = node.targetlist().iter().map(Node::any);
    targets.into_iter().all(is_plain_in_tree)
        && are_plain(node.qual(), Scope::Tree)
        && are_plain(node.initPlan(), Scope::Tree)
        && is_kept(node, found)
}

/// Whether an expression of a plan of several nodes is plain.
fn is_plain_in_tree(expression: Any<'_>) -> bool {
    is_plain(expression, Scope::Tree)
}

/// Whether what a node has there, if anything, is plain.
fn is_none_or_plain(expression: Option<Any<'_>>) -> bool {
    expression.is_none_or(is_plain_in_tree)
}

/// Whether an aggregation groups by core's own operators, in one go.
fn groups_plainly(agg: Node<'_, pg_sys::Agg>) -> bool {
    let below = agg.plan().lefttree();
    !agg.groupingSets()
        && !agg.chain()
        && agg.aggsplit() == pg_sys::AggSplit::AGGSPLIT_SIMPLE
        && below.is_some_and(|below| compares(below.targetlist(), agg.compared()))
}

/// Whether a node that remembers rows by keys compares those by core's own operators.
fn remembers_plainly(memoize: Node<'_, pg_sys::Memoize>) -> bool {
    let keys = memoize.param_exprs();
    are_plain(keys, Scope::Tree)
        && keys.iter().all(|key| is_lasting_type(key.value_type()))
        && (memoize.operators().iter()).all(|operator| is_own_operator(*operator))
}

/// Whether a scan by an index has plain conditions alone.
fn looks_up_plainly(scan: Node<'_, pg_sys::IndexScan>) -> bool {
    !scan.indexorderby()
        && are_plain(scan.indexqual(), Scope::Tree)
        && are_plain(scan.indexqualorig(), Scope::Tree)
}

/// Whether a join has plain conditions and parameters alone.
fn joins_plainly(join: Node<'_, pg_sys::NestLoop>) -> bool {
    are_plain(join.join_conditions(), Scope::Tree)
        && (join.nestParams().iter()).all(|parameter| is_none_or_plain(parameter.paramval()))
}

/// Whether a limit is a plain number of rows.
fn limits_plainly(limit: Node<'_, pg_sys::Limit>) -> bool {
    limit.limitOption() == pg_sys::LimitOption::LIMIT_OPTION_COUNT
        && is_none_or_plain(limit.limitOffset())
        && is_none_or_plain(limit.limitCount())
}

/// What is particular to each kind of node.
fn is_kept(node: Plan<'_>, found: &mut Vec<Position>) -> bool {
    if let Some(position) = node.scanned() {
        found.push(position);
        let scan = node.cast::<pg_sys::IndexScan>();
        return !node.parallel_aware() && scan.is_none_or(looks_up_plainly);
    }
    match node.tag() {
        T_NestLoop => node.cast().is_some_and(joins_plainly),
        T_Agg => node.cast().is_some_and(groups_plainly),
        T_Unique => node
            .cast::<pg_sys::Unique>()
            .is_some_and(|unique| compares(node.targetlist(), unique.compared())),
        T_Sort => node
            .cast::<pg_sys::Sort>()
            .is_some_and(|sort| compares(node.targetlist(), sort.compared())),
        T_Group => (node.cast::<pg_sys::Group>().zip(node.lefttree()))
            .is_some_and(|(group, below)| compares(below.targetlist(), group.compared())),
        T_Memoize => node.cast().is_some_and(remembers_plainly),
        T_Limit => node.cast().is_some_and(limits_plainly),
        T_Result => node
            .cast::<pg_sys::Result>()
            .is_some_and(|result| is_none_or_plain(result.resconstantqual())),
        T_SubqueryScan => true,
        _ => false,
    }
}

/// Whether a node compares columns of `targets` by operators, and over types, that last.
fn compares(targets: List<'_, pg_sys::TargetEntry>, compared: Compared<'_>) -> bool {
    let lasts = |column: &pg_sys::AttrNumber| {
        targets.iter().any(|target| {
            target.resno() == *column && is_lasting_type(target.expression().value_type())
        })
    };
    compared.columns.iter().all(lasts)
        && (compared.operators.iter()).all(|operator| is_own_operator(*operator))
}
