//! From a finished plan to what a compiled statement has to do; `None` where only core's executor will do.
use super::plain::{Scope, are_plain, calls_functions, is_plain};
use crate::fdw::items;
use crate::fdw::private;
use crate::wait::WaitPolicy;
use mot_engine::LockStrength;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

/// A plan that can be compiled. The lists point into the plan.
pub struct Shape {
    /// Position of the table in the range table, from 1.
    pub relation: u32,
    pub verb: Verb,
    /// What the client gets: a SELECT's targets, or RETURNING; `None` for no rows.
    pub targets: Option<Vec<*mut pg_sys::TargetEntry>>,
}

pub enum Verb {
    Select {
        scan: *mut pg_sys::ForeignScan,
        lock: Option<(LockStrength, WaitPolicy)>,
        /// LIMIT.
        rows_max: u64,
    },
    Insert {
        /// A value for each column.
        values: Vec<*mut pg_sys::TargetEntry>,
        counts_rows: bool,
    },
    /// UPDATE or DELETE inside the scan node.
    Change {
        scan: *mut pg_sys::ForeignScan,
        is_delete: bool,
        counts_rows: bool,
    },
}

unsafe fn tag<T>(node: *const T) -> pg_sys::NodeTag {
    // SAFETY: a node.
    unsafe { (*node.cast::<pg_sys::Node>()).type_ }
}

/// The serial of a plan that might be compiled, or whose states might be kept. A look at a few tags, for every statement of the
/// server.
#[inline]
pub unsafe fn serial(statement: *const pg_sys::PlannedStmt) -> Option<u64> {
    // SAFETY: a finished plan; casts by tag.
    unsafe {
        let mut node = (*statement).planTree;
        loop {
            if node.is_null() {
                return None;
            }
            match tag(node) {
                T_ForeignScan => {
                    return private::serial((*node.cast::<pg_sys::ForeignScan>()).fdw_private);
                }
                T_Limit | T_LockRows | T_NestLoop | T_Agg | T_Sort | T_Unique | T_Group
                | T_Memoize => node = (*node).lefttree,
                T_SubqueryScan => node = (*node.cast::<pg_sys::SubqueryScan>()).subplan,
                T_Result if !(*node).lefttree.is_null() => node = (*node).lefttree,
                // What it returns comes from a subplan, as `min` and `max` by an index do.
                T_Result if !(*node).initPlan.is_null() => {
                    node = (*(*(*statement).subplans).elements).ptr_value.cast();
                }
                T_ModifyTable => {
                    let source = (*node).lefttree;
                    if source.is_null() || tag(source) != T_Result {
                        node = source;
                        continue;
                    }
                    let lists = (*node.cast::<pg_sys::ModifyTable>()).fdwPrivLists;
                    if lists.is_null() || (*lists).length != 1 {
                        return None;
                    }
                    return list_serial((*(*lists).elements).ptr_value.cast());
                }
                _ => return None,
            }
        }
    }
}

unsafe fn list_serial(list: *const pg_sys::List) -> Option<u64> {
    // SAFETY: a wrapper's private list; core gives an empty one to tables without wrapper.
    unsafe { private::serial(list) }
}

impl Shape {
    /// Looks a plan over.
    pub unsafe fn of(statement: *mut pg_sys::PlannedStmt) -> Option<Shape> {
        // SAFETY: a finished plan; casts by tag.
        unsafe {
            let plan = &*statement;
            if plan.hasModifyingCTE
                || plan.parallelModeNeeded
                || !plan.subplans.is_null()
                || !plan.utilityStmt.is_null()
                || !plan.canSetTag
            {
                return None;
            }
            match tag(plan.planTree) {
                T_ModifyTable => modify(plan),
                _ if plan.commandType == pg_sys::CmdType::CMD_SELECT => select(plan),
                _ => None,
            }
        }
    }
}

impl Shape {
    /// Whether an expression of the statement calls functions.
    pub unsafe fn calls_functions(&self) -> bool {
        // SAFETY: lists of the plan that this is the shape of.
        unsafe {
            let calls = |target: &*mut pg_sys::TargetEntry| calls_functions((**target).expr.cast());
            let scan = match &self.verb {
                Verb::Insert { values, .. } => {
                    return values.iter().any(calls) || self.sends_calls();
                }
                Verb::Select { scan, .. } | Verb::Change { scan, .. } => &**scan,
            };
            calls_functions(scan.scan.plan.qual.cast())
                || calls_functions(scan.fdw_exprs.cast())
                || calls_functions(scan.fdw_recheck_quals.cast())
                || self.sends_calls()
        }
    }

    /// Whether what the client gets calls functions.
    unsafe fn sends_calls(&self) -> bool {
        let targets = self.targets.as_deref().unwrap_or_default();
        targets
            .iter()
            // SAFETY: as above.
            .any(|target| unsafe { calls_functions((**target).expr.cast()) })
    }
}

/// A node that computes nothing beside its own work.
unsafe fn is_bare(plan: *const pg_sys::Plan) -> bool {
    // SAFETY: a plan node.
    unsafe { (*plan).initPlan.is_null() && (*plan).righttree.is_null() }
}

unsafe fn select(plan: &pg_sys::PlannedStmt) -> Option<Shape> {
    // SAFETY: a finished plan; casts by tag.
    unsafe {
        let mut node = plan.planTree;
        let mut rows_max = u64::MAX;
        if tag(node) == T_Limit {
            rows_max = limit(node.cast())?;
            node = (*node).lefttree;
        }
        let mut lock = None;
        let marks = items::<pg_sys::PlanRowMark>(plan.rowMarks);
        if tag(node) == T_LockRows {
            let [mark] = marks[..] else {
                return None;
            };
            if !is_bare(node) || (*mark).isParent || (*mark).rti != (*mark).prti {
                return None;
            }
            lock = Some((
                crate::fdw::lock_strength((*mark).markType)?,
                crate::fdw::wait_policy((*mark).waitPolicy),
            ));
            node = (*node).lefttree;
        } else if !marks.is_empty() {
            return None;
        }
        if tag(node) != T_ForeignScan {
            return None;
        }
        let scan = node.cast::<pg_sys::ForeignScan>();
        let relation = (*scan).scan.scanrelid;
        if lock.is_some() && (*marks[0]).rti != relation {
            return None;
        }
        let targets = clean(items((*node).targetlist));
        let is_ours = is_scan_plain(scan, pg_sys::CmdType::CMD_SELECT)
            && are_targets_plain(&targets, relation);
        is_ours.then_some(Shape {
            relation,
            verb: Verb::Select {
                scan,
                lock,
                rows_max,
            },
            targets: Some(targets),
        })
    }
}

/// The number of a `LIMIT n`.
unsafe fn limit(node: *const pg_sys::Limit) -> Option<u64> {
    // SAFETY: a Limit node; casts by tag.
    unsafe {
        let limit = &*node;
        let is_count = limit.limitOption == pg_sys::LimitOption::LIMIT_OPTION_COUNT;
        if !is_count
            || !is_bare(&raw const limit.plan)
            || !limit.limitOffset.is_null()
            || limit.limitCount.is_null()
            || tag(limit.limitCount) != T_Const
        {
            return None;
        }
        let count = &*limit.limitCount.cast::<pg_sys::Const>();
        if count.constisnull {
            return Some(u64::MAX);
        }
        u64::try_from(count.constvalue.value() as i64).ok()
    }
}

/// Without what core's junk filter takes away.
unsafe fn clean(targets: Vec<*mut pg_sys::TargetEntry>) -> Vec<*mut pg_sys::TargetEntry> {
    targets
        .into_iter()
        // SAFETY: entries of a target list.
        .filter(|target| unsafe { !(**target).resjunk })
        .collect()
}

unsafe fn are_targets_plain(targets: &[*mut pg_sys::TargetEntry], relation: u32) -> bool {
    targets.iter().enumerate().all(|(position, target)| {
        // SAFETY: entries of a target list.
        unsafe {
            usize::from((**target).resno as u16) == position + 1
                && is_plain((**target).expr.cast(), Scope::Table(relation))
        }
    })
}

unsafe fn is_scan_plain(
    scan: *const pg_sys::ForeignScan,
    operation: pg_sys::CmdType::Type,
) -> bool {
    // SAFETY: a scan node of ours.
    unsafe {
        let node = &*scan;
        let relation = node.scan.scanrelid;
        let scope = Scope::Table(relation);
        relation > 0
            && node.operation == operation
            && is_bare(&raw const node.scan.plan)
            && node.scan.plan.lefttree.is_null()
            && node.fdw_scan_tlist.is_null()
            && are_plain(node.scan.plan.qual, scope)
            && are_plain(node.fdw_exprs, scope)
            && are_plain(node.fdw_recheck_quals, scope)
    }
}

unsafe fn modify(plan: &pg_sys::PlannedStmt) -> Option<Shape> {
    // SAFETY: a finished plan; casts by tag.
    unsafe {
        let node = &*plan.planTree.cast::<pg_sys::ModifyTable>();
        let source = node.plan.lefttree;
        let results = node.resultRelations;
        let is_plain_node = is_bare(&raw const node.plan)
            && node.rootRelation == 0
            && !results.is_null()
            && (*results).length == 1
            && node.withCheckOptionLists.is_null()
            && node.rowMarks.is_null()
            && node.onConflictAction == pg_sys::OnConflictAction::ONCONFLICT_NONE
            && node.mergeActionLists.is_null()
            && !source.is_null();
        if !is_plain_node {
            return None;
        }
        let relation = (*(*results).elements).int_value as u32;
        let targets = if node.returningLists.is_null() {
            None
        } else {
            let list = (*(*node.returningLists).elements).ptr_value.cast();
            let targets = items(list);
            if !are_targets_plain(&targets, relation) {
                return None;
            }
            Some(targets)
        };
        let counts_rows = node.canSetTag;
        let verb = match node.operation {
            pg_sys::CmdType::CMD_INSERT => {
                let values = single_row(source, relation)?;
                Verb::Insert {
                    values,
                    counts_rows,
                }
            }
            operation @ (pg_sys::CmdType::CMD_UPDATE | pg_sys::CmdType::CMD_DELETE) => {
                let scan = source.cast::<pg_sys::ForeignScan>();
                let is_direct = tag(source) == T_ForeignScan
                    && pg_sys::bms_is_member(0, node.fdwDirectModifyPlans)
                    && (*scan).resultRelation == relation
                    && (*scan).scan.scanrelid == relation;
                if !is_direct || !is_scan_plain(scan, operation) {
                    return None;
                }
                Verb::Change {
                    scan,
                    is_delete: operation == pg_sys::CmdType::CMD_DELETE,
                    counts_rows,
                }
            }
            _ => return None,
        };
        Some(Shape {
            relation,
            verb,
            targets,
        })
    }
}

/// The values of a Result node that gives one row.
unsafe fn single_row(
    source: *mut pg_sys::Plan,
    relation: u32,
) -> Option<Vec<*mut pg_sys::TargetEntry>> {
    // SAFETY: a plan node; casts by tag.
    unsafe {
        if tag(source) != T_Result
            || !is_bare(source)
            || !(*source).lefttree.is_null()
            || !(*source.cast::<pg_sys::Result>()).resconstantqual.is_null()
            || !(*source).qual.is_null()
        {
            return None;
        }
        let values = items::<pg_sys::TargetEntry>((*source).targetlist);
        let is_clean = values.iter().all(|value| !(**value).resjunk);
        (is_clean && are_targets_plain(&values, relation)).then_some(values)
    }
}
