//! From a finished plan to what a compiled statement has to do; `None` where only core's executor
//! will do.
use super::access::{Access, scan_of};
use super::conflict::Conflict;
use super::plain::{Scope, calls_functions, is_plain};
use crate::pg::list::items;
use crate::plan_nodes::filtered_scan;
use crate::transaction::wait::WaitPolicy;
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
        access: Access,
        lock: Option<(LockStrength, WaitPolicy)>,
        /// LIMIT.
        rows_max: u64,
    },
    Insert {
        /// A value for each column.
        values: Vec<*mut pg_sys::TargetEntry>,
        conflict: Option<Conflict>,
        counts_rows: bool,
    },
    /// UPDATE or DELETE of the rows that are found.
    Change {
        access: Access,
        /// Attribute numbers and their new values.
        assigned: Vec<(i16, *mut pg_sys::Expr)>,
        is_delete: bool,
        counts_rows: bool,
    },
}

unsafe fn tag<T>(node: *const T) -> pg_sys::NodeTag {
    // SAFETY: a node.
    unsafe { (*node.cast::<pg_sys::Node>()).type_ }
}

/// The tag of a scan. One with conditions inside it is core's here: a compiled statement evaluates
/// them in the same way.
unsafe fn scan_tag(node: *const pg_sys::Plan) -> pg_sys::NodeTag {
    // SAFETY: a node of a finished plan.
    unsafe {
        match tag(node) {
            T_CustomScan if filtered_scan::is_plan(node) => T_SeqScan,
            tag => tag,
        }
    }
}

/// Place in the range table of the only table that a plan of core's nodes reads or writes, if the
/// plan has the form of one that is compiled.
#[inline]
pub unsafe fn only_table(statement: *const pg_sys::PlannedStmt) -> Option<u32> {
    // SAFETY: a finished plan; casts by tag.
    unsafe {
        let mut node = (*statement).planTree;
        if node.is_null() {
            return None;
        }
        if tag(node) == T_ModifyTable {
            let results = (*node.cast::<pg_sys::ModifyTable>()).resultRelations;
            let source = (*node).lefttree;
            let is_simple = !source.is_null()
                && matches!(scan_tag(source), T_Result | T_IndexScan | T_SeqScan)
                && (*results).length == 1;
            return is_simple.then(|| (*(*results).elements).int_value as u32);
        }
        for above in [T_Limit, T_LockRows] {
            if tag(node) == above && !(*node).lefttree.is_null() {
                node = (*node).lefttree;
            }
        }
        matches!(scan_tag(node), T_IndexScan | T_SeqScan).then(|| scan_of(node).scanrelid)
    }
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
            let scans = match &self.verb {
                Verb::Insert {
                    values, conflict, ..
                } => {
                    let conflict = conflict.as_ref();
                    values.iter().any(calls) || conflict.is_some_and(|one| one.calls_functions())
                }
                Verb::Select { access, .. } => access.calls_functions(),
                Verb::Change {
                    access, assigned, ..
                } => {
                    let mut values = assigned.iter();
                    access.calls_functions()
                        || values.any(|(_, value)| calls_functions((*value).cast()))
                }
            };
            scans || self.sends_calls()
        }
    }

    /// Whether it locks rows that it reads.
    pub fn locks_rows(&self) -> bool {
        matches!(self.verb, Verb::Select { lock: Some(_), .. })
    }

    /// What it does to rows.
    pub fn operation(&self) -> pg_sys::CmdType::Type {
        match self.verb {
            Verb::Select { .. } => pg_sys::CmdType::CMD_SELECT,
            Verb::Insert { .. } => pg_sys::CmdType::CMD_INSERT,
            Verb::Change {
                is_delete: true, ..
            } => pg_sys::CmdType::CMD_DELETE,
            Verb::Change { .. } => pg_sys::CmdType::CMD_UPDATE,
        }
    }

    /// Whether it may change a row that is in the way of one it inserts.
    pub fn updates_conflicts(&self) -> bool {
        let Verb::Insert { conflict, .. } = &self.verb else {
            return false;
        };
        conflict.as_ref().is_some_and(|one| one.update.is_some())
    }

    /// Whether the client gets system columns.
    pub unsafe fn targets_have_system_columns(&self) -> bool {
        let targets = self.targets.as_deref().unwrap_or_default();
        // SAFETY: entries of the plan's target list.
        targets.iter().any(|target| unsafe {
            let mut columns = std::ptr::null_mut();
            pg_sys::pull_varattnos((**target).expr.cast(), self.relation, &raw mut columns);
            let first = pg_sys::bms_next_member(columns, -1);
            first >= 0 && first + pg_sys::FirstLowInvalidHeapAttributeNumber < 0
        })
    }

    /// The index that is scanned, which core locks with the table; invalid if there is none.
    pub fn index(&self) -> pg_sys::Oid {
        match &self.verb {
            Verb::Insert { .. } => pg_sys::InvalidOid,
            Verb::Select { access, .. } | Verb::Change { access, .. } => access.index,
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
                crate::rows::lock_rows::strength((*mark).markType)?,
                crate::rows::lock_rows::policy((*mark).waitPolicy),
            ));
            node = (*node).lefttree;
        } else if !marks.is_empty() {
            return None;
        }
        let (access, relation) = source(node)?;
        if lock.is_some() && (*marks[0]).rti != relation {
            return None;
        }
        let targets = clean(items((*node).targetlist));
        are_targets_plain(&targets, relation).then_some(Shape {
            relation,
            verb: Verb::Select {
                access,
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

/// How a scan node that computes nothing else finds its rows, and the table's place in the range
/// table.
unsafe fn source(node: *mut pg_sys::Plan) -> Option<(Access, u32)> {
    // SAFETY: a node of a finished plan; casts by tag.
    unsafe {
        let is_leaf = is_bare(node) && (*node).lefttree.is_null() && !(*node).parallel_aware;
        if !is_leaf {
            return None;
        }
        let access = match scan_tag(node) {
            T_SeqScan => Access::of_all(node.cast()),
            T_IndexScan => Access::of_index(node.cast())?,
            _ => return None,
        };
        let relation = scan_of(node).scanrelid;
        let is_compiled = relation > 0 && access.is_plain(relation);
        is_compiled.then_some((access, relation))
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
                    conflict: Conflict::of(node, relation)?,
                    counts_rows,
                }
            }
            operation @ (pg_sys::CmdType::CMD_UPDATE | pg_sys::CmdType::CMD_DELETE) => {
                let assigned = assigned(node, operation)?;
                let is_plain_value = |(_, value): &(i16, *mut pg_sys::Expr)| {
                    is_plain((*value).cast(), Scope::Table(relation))
                };
                let (access, scanned) = self::source(source)?;
                if scanned != relation || !assigned.iter().all(is_plain_value) {
                    return None;
                }
                Verb::Change {
                    access,
                    assigned,
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

/// What an UPDATE assigns; nothing in a DELETE.
unsafe fn assigned(
    node: &pg_sys::ModifyTable,
    operation: pg_sys::CmdType::Type,
) -> Option<Vec<(i16, *mut pg_sys::Expr)>> {
    // SAFETY: a ModifyTable node over a plan node; casts by tag.
    unsafe {
        let source = node.plan.lefttree;
        if operation == pg_sys::CmdType::CMD_DELETE {
            return Some(Vec::new());
        }
        let columns = *items::<pg_sys::List>(node.updateColnosLists).first()?;
        let count = if columns.is_null() {
            0
        } else {
            (*columns).length as usize
        };
        let values = clean(items((*source).targetlist));
        let pairs = (0..count).map(|at| (*(*columns).elements.add(at)).int_value as i16);
        (values.len() == count).then(|| {
            pairs
                .zip(values.iter().map(|value| (**value).expr))
                .collect()
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
