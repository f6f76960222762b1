//! From a finished plan to what a compiled statement has to do; `None` where only core's executor
//! will do.
use super::access::Access;
use super::conflict::Conflict;
use super::plain::{Scope, calls_functions, is_plain};
use crate::pg::node::{Any, Node, Scalars};
use crate::plan_nodes::filtered_scan;
use crate::rows::lock_rows;
use crate::transaction::wait::WaitPolicy;
use mot_engine::LockStrength;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

/// What a statement gives in a column.
pub type Target<'p> = Node<'p, pg_sys::TargetEntry>;

/// The number of an attribute and its new value.
pub type Assignment<'p> = (i16, Any<'p>);

/// A node of a plan.
type Plan<'p> = Node<'p, pg_sys::Plan>;

/// A plan that can be compiled.
pub struct Shape<'p> {
    /// Position of the table in the range table, from 1.
    pub relation: u32,
    pub verb: Verb<'p>,
    /// What the client gets: a SELECT's targets, or RETURNING; `None` for no rows.
    pub targets: Option<Vec<Target<'p>>>,
}

pub enum Verb<'p> {
    Select {
        access: Access<'p>,
        lock: Option<(LockStrength, WaitPolicy)>,
        /// LIMIT.
        rows_max: u64,
    },
    Insert {
        /// A value for each column.
        values: Vec<Target<'p>>,
        conflict: Option<Conflict<'p>>,
        counts_rows: bool,
    },
    /// UPDATE or DELETE of the rows that are found.
    Change {
        access: Access<'p>,
        assigned: Vec<Assignment<'p>>,
        is_delete: bool,
        counts_rows: bool,
    },
}

/// The tag of a scan. One with conditions inside it is core's here: a compiled statement evaluates
/// them in the same way.
fn scan_tag(node: Plan<'_>) -> pg_sys::NodeTag {
    let tag = node.tag();
    // SAFETY: a node with the tag of a custom scan.
    let is_filtered = || unsafe { filtered_scan::is_plan(node.as_ptr()) };
    match tag == T_CustomScan && is_filtered() {
        true => T_SeqScan,
        false => tag,
    }
}

/// The part that scan nodes of core's, and those with conditions inside, begin with.
fn scan_of(node: Plan<'_>) -> Option<Node<'_, pg_sys::Scan>> {
    let is_scan = matches!(scan_tag(node), T_SeqScan | T_IndexScan);
    // SAFETY: a node of these kinds begins with it.
    is_scan.then(|| unsafe { Node::enter(node.as_ptr().cast()) })
}

/// Place in the range table of the only table that a plan of core's nodes reads or writes, if the
/// plan has the form of one that is compiled.
#[inline]
pub fn only_table(plan: Node<'_, pg_sys::PlannedStmt>) -> Option<u32> {
    let mut node = plan.planTree()?;
    if let Some(modify) = node.cast::<pg_sys::ModifyTable>() {
        let results = modify.resultRelations();
        let is_simple = matches!(
            scan_tag(node.lefttree()?),
            T_Result | T_IndexScan | T_SeqScan
        ) && results.len() == 1;
        return results
            .number(0)
            .filter(|_| is_simple)
            .map(|number| number as u32);
    }
    for above in [T_Limit, T_LockRows] {
        if node.tag() == above
            && let Some(below) = node.lefttree()
        {
            node = below;
        }
    }
    scan_of(node).map(Node::scanrelid)
}

impl<'p> Shape<'p> {
    /// Looks a plan over.
    pub fn of(plan: Node<'p, pg_sys::PlannedStmt>) -> Option<Shape<'p>> {
        if plan.hasModifyingCTE()
            || plan.parallelModeNeeded()
            || !plan.subplans().is_empty()
            || plan.utilityStmt().is_some()
            || !plan.canSetTag()
        {
            return None;
        }
        let top = plan.planTree()?;
        match top.cast::<pg_sys::ModifyTable>() {
            Some(node) => modify(node),
            None if plan.commandType() == pg_sys::CmdType::CMD_SELECT => {
                select(top, &plan.rowMarks().iter().collect::<Vec<_>>())
            }
            None => None,
        }
    }

    /// Whether an expression of the statement calls functions.
    pub fn calls_functions(&self) -> bool {
        let calls = |target: &Target<'_>| calls_functions(target.expression());
        let computes_by_calls = match &self.verb {
            Verb::Insert {
                values, conflict, ..
            } => {
                let conflict = conflict.as_ref();
                values.iter().any(calls) || conflict.is_some_and(Conflict::calls_functions)
            }
            Verb::Select { access, .. } => access.calls_functions(),
            Verb::Change {
                access, assigned, ..
            } => {
                let mut values = assigned.iter();
                access.calls_functions() || values.any(|(_, value)| calls_functions(*value))
            }
        };
        let targets = self.targets.as_deref().unwrap_or_default();
        computes_by_calls || targets.iter().any(calls)
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
    pub fn targets_have_system_columns(&self) -> bool {
        let targets = self.targets.as_deref().unwrap_or_default();
        let mut expressions = targets.iter().map(|target| target.expression());
        expressions.any(|expression| expression.names_system_columns(self.relation))
    }

    /// The index that is scanned, which core locks with the table; invalid if there is none.
    pub fn index(&self) -> pg_sys::Oid {
        match &self.verb {
            Verb::Insert { .. } => pg_sys::InvalidOid,
            Verb::Select { access, .. } | Verb::Change { access, .. } => access.index,
        }
    }
}

/// A node that computes nothing beside its own work.
fn is_bare(node: Plan<'_>) -> bool {
    node.initPlan().is_empty() && node.righttree().is_none()
}

/// A SELECT of one table. `marks`: the rows that the plan locks.
fn select<'p>(top: Plan<'p>, marks: &[Node<'p, pg_sys::PlanRowMark>]) -> Option<Shape<'p>> {
    let (rows_max, node) = match top.cast::<pg_sys::Limit>() {
        Some(node) => (limit(node)?, top.lefttree()?),
        None => (u64::MAX, top),
    };
    let (mark, node) = match (node.tag(), marks) {
        (T_LockRows, [mark]) if is_bare(node) => (Some(*mark), node.lefttree()?),
        (T_LockRows, _) => return None,
        (_, []) => (None, node),
        _ => return None,
    };
    let (access, relation) = source(node)?;
    let lock = match mark {
        Some(mark) => Some(lock(mark, relation)?),
        None => None,
    };
    let targets = clean(node);
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

/// How rows of the table at this place are locked; `None`: those of another one, or of children,
/// are, or none here.
fn lock(mark: Node<'_, pg_sys::PlanRowMark>, relation: u32) -> Option<(LockStrength, WaitPolicy)> {
    if mark.isParent() || mark.rti() != mark.prti() || mark.rti() != relation {
        return None;
    }
    let strength = lock_rows::strength(mark.markType())?;
    Some((strength, lock_rows::policy(mark.waitPolicy())))
}

/// The number of a `LIMIT n`.
fn limit(limit: Node<'_, pg_sys::Limit>) -> Option<u64> {
    let is_count = limit.limitOption() == pg_sys::LimitOption::LIMIT_OPTION_COUNT;
    if !is_count || !is_bare(limit.plan()) || limit.limitOffset().is_some() {
        return None;
    }
    let count = limit.limitCount()?.cast::<pg_sys::Const>()?;
    if count.constisnull() {
        return Some(u64::MAX);
    }
    u64::try_from(count.constvalue().value() as i64).ok()
}

/// The targets of a node without what core's junk filter takes away.
fn clean(node: Plan<'_>) -> Vec<Target<'_>> {
    let targets = node.targetlist().iter();
    targets.filter(|target| !target.resjunk()).collect()
}

fn are_targets_plain(targets: &[Target<'_>], relation: u32) -> bool {
    targets.iter().enumerate().all(|(position, target)| {
        usize::from(target.resno() as u16) == position + 1
            && is_plain(target.expression(), Scope::Table(relation))
    })
}

/// How a scan node that computes nothing else finds its rows, and the table's place in the range
/// table.
fn source(node: Plan<'_>) -> Option<(Access<'_>, u32)> {
    let is_leaf = is_bare(node) && node.lefttree().is_none() && !node.parallel_aware();
    let scan = scan_of(node).filter(|_| is_leaf)?;
    let access = match node.cast::<pg_sys::IndexScan>() {
        Some(scan) => Access::of_index(scan)?,
        None => Access::of_all(scan),
    };
    let relation = scan.scanrelid();
    let is_compiled = relation > 0 && access.is_plain(relation);
    is_compiled.then_some((access, relation))
}

/// Whether a node writes to one table and does nothing else.
fn writes_one_table(node: Node<'_, pg_sys::ModifyTable>) -> bool {
    is_bare(node.plan())
        && node.rootRelation() == 0
        && node.resultRelations().len() == 1
        && !node.withCheckOptionLists()
        && !node.rowMarks()
        && !node.mergeActionLists()
}

fn modify(node: Node<'_, pg_sys::ModifyTable>) -> Option<Shape<'_>> {
    if !writes_one_table(node) {
        return None;
    }
    let source = node.plan().lefttree()?;
    let relation = node.resultRelations().number(0)? as u32;
    let targets: Option<Vec<_>> = node.returned().map(|targets| targets.iter().collect());
    let are_plain = |targets: &Vec<Target<'_>>| are_targets_plain(targets, relation);
    if !targets.as_ref().is_none_or(are_plain) {
        return None;
    }
    let verb = match node.operation() {
        pg_sys::CmdType::CMD_INSERT => Verb::Insert {
            values: single_row(source, relation)?,
            conflict: Conflict::of(node, relation)?,
            counts_rows: node.canSetTag(),
        },
        pg_sys::CmdType::CMD_UPDATE | pg_sys::CmdType::CMD_DELETE => {
            change(node, source, relation)?
        }
        _ => return None,
    };
    Some(Shape {
        relation,
        verb,
        targets,
    })
}

/// An UPDATE or DELETE of the rows that `source` finds.
fn change<'p>(
    node: Node<'p, pg_sys::ModifyTable>,
    source: Plan<'p>,
    relation: u32,
) -> Option<Verb<'p>> {
    let is_delete = node.operation() == pg_sys::CmdType::CMD_DELETE;
    let assigned = match is_delete {
        true => Vec::new(),
        false => assignments(node.assigned()?, &clean(source))?,
    };
    let is_plain_value = |(_, value): &Assignment<'_>| is_plain(*value, Scope::Table(relation));
    let (access, scanned) = self::source(source)?;
    if scanned != relation || !assigned.iter().all(is_plain_value) {
        return None;
    }
    Some(Verb::Change {
        access,
        assigned,
        is_delete,
        counts_rows: node.canSetTag(),
    })
}

/// Attributes with their new values; `None`: they are not as many.
pub fn assignments<'p>(columns: Scalars<'p>, values: &[Target<'p>]) -> Option<Vec<Assignment<'p>>> {
    let numbers = columns.numbers().map(|number| number as i16);
    let values_of = || values.iter().map(|value| value.expression());
    (values.len() == columns.len()).then(|| numbers.zip(values_of()).collect())
}

/// The values of a Result node that gives one row.
fn single_row(source: Plan<'_>, relation: u32) -> Option<Vec<Target<'_>>> {
    let result = source.cast::<pg_sys::Result>()?;
    if !is_bare(source)
        || source.lefttree().is_some()
        || result.resconstantqual().is_some()
        || !source.qual().is_empty()
    {
        return None;
    }
    let values: Vec<_> = source.targetlist().iter().collect();
    let is_clean = values.iter().all(|value| !value.resjunk());
    (is_clean && are_targets_plain(&values, relation)).then_some(values)
}
