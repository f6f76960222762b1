//! Fields of finished plans.
use super::{List, Node, NodeType, Scalars, views};
use crate::pg::list;
use pgrx::pg_sys::{self, AttrNumber, Oid};

// SAFETY: each node of a plan begins with it, and it with the tag.
unsafe impl NodeType for pg_sys::Plan {}
// SAFETY: each scan begins with it, and it with the tag.
unsafe impl NodeType for pg_sys::Scan {}

views! {
    PlannedStmt {
        value commandType: pg_sys::CmdType::Type,
        value hasModifyingCTE: bool,
        value canSetTag: bool,
        value parallelModeNeeded: bool,
        value jitFlags: i32,
        node planTree: pg_sys::Plan,
        list rtable: pg_sys::RangeTblEntry,
        scalars resultRelations,
        list subplans: pg_sys::Plan,
        list rowMarks: pg_sys::PlanRowMark,
        list invalItems: pg_sys::PlanInvalItem,
    }
    PlanRowMark = T_PlanRowMark {
        value rti: pg_sys::Index,
        value prti: pg_sys::Index,
        value markType: pg_sys::RowMarkType::Type,
        value waitPolicy: pg_sys::LockWaitPolicy::Type,
        value isParent: bool,
    }
    PlanInvalItem = T_PlanInvalItem {
        value cacheId: i32,
        value hashValue: u32,
    }
    Plan {
        value parallel_aware: bool,
        list targetlist: pg_sys::TargetEntry,
        list qual: pg_sys::Node,
        node lefttree: pg_sys::Plan,
        node righttree: pg_sys::Plan,
        list initPlan: pg_sys::Node,
    }
    Scan {
        base plan: pg_sys::Plan,
        value scanrelid: pg_sys::Index,
    }
    SeqScan = T_SeqScan {
        base scan: pg_sys::Scan,
    }
    IndexScan = T_IndexScan {
        base scan: pg_sys::Scan,
        value indexid: Oid,
        list indexqual: pg_sys::Node,
        list indexqualorig: pg_sys::Node,
        has indexorderby,
        value indexorderdir: pg_sys::ScanDirection::Type,
    }
    ModifyTable = T_ModifyTable {
        base plan: pg_sys::Plan,
        value operation: pg_sys::CmdType::Type,
        value canSetTag: bool,
        value rootRelation: pg_sys::Index,
        scalars resultRelations,
        has withCheckOptionLists,
        list returningLists: pg_sys::List,
        has rowMarks,
        has mergeActionLists,
        value onConflictAction: pg_sys::OnConflictAction::Type,
        scalars arbiterIndexes,
        list onConflictSet: pg_sys::TargetEntry,
        scalars onConflictCols,
    }
    NestLoop = T_NestLoop {
        list nestParams: pg_sys::NestLoopParam,
    }
    NestLoopParam = T_NestLoopParam {
        node paramval: pg_sys::Node,
    }
    Agg = T_Agg {
        base plan: pg_sys::Plan,
        value aggsplit: pg_sys::AggSplit::Type,
        has groupingSets,
        has chain,
    }
    Unique = T_Unique {}
    Group = T_Group {}
    Sort = T_Sort {}
    Memoize = T_Memoize {
        list param_exprs: pg_sys::Node,
    }
    Limit = T_Limit {
        base plan: pg_sys::Plan,
        value limitOption: pg_sys::LimitOption::Type,
        node limitOffset: pg_sys::Node,
        node limitCount: pg_sys::Node,
    }
    Result = T_Result {
        node resconstantqual: pg_sys::Node,
    }
    SubqueryScan = T_SubqueryScan {
        node subplan: pg_sys::Plan,
    }
}

/// An array of a node's.
///
/// # Safety
/// NULL, or an array of so many members, which lives for `'p` and stays as it is.
unsafe fn array<'p, T>(start: *const T, count: i32) -> &'p [T] {
    if count <= 0 || start.is_null() {
        return &[];
    }
    // SAFETY: the caller's array.
    unsafe { std::slice::from_raw_parts(start, count as usize) }
}

/// What a node that groups or sorts compares.
pub struct Compared<'p> {
    /// Columns of a target list.
    pub columns: &'p [AttrNumber],
    /// The operators that compare them.
    pub operators: &'p [Oid],
}

macro_rules! compared {
    ($($of:ident: $count:ident, $columns:ident, $operators:ident;)*) => {$(
        impl<'p> Node<'p, pg_sys::$of> {
            /// What it compares.
            pub fn compared(self) -> Compared<'p> {
                let node = self.fields();
                // SAFETY: arrays of a finished plan, with their length.
                unsafe {
                    Compared {
                        columns: array(node.$columns, node.$count),
                        operators: array(node.$operators, node.$count),
                    }
                }
            }
        }
    )*};
}
compared!(
    Agg: numCols, grpColIdx, grpOperators;
    Unique: numCols, uniqColIdx, uniqOperators;
    Group: numCols, grpColIdx, grpOperators;
    Sort: numCols, sortColIdx, sortOperators;
);

impl<'p> Node<'p, pg_sys::PlannedStmt> {
    /// An entry of its range table, from 1.
    pub fn entry(self, position: pg_sys::Index) -> Node<'p, pg_sys::RangeTblEntry> {
        let place = (position as usize).checked_sub(1);
        let entry = place.and_then(|place| self.rtable().get(place));
        entry.expect("a plan's relation has an entry")
    }

    /// Adds a parameter of the executor, of type `int4`; its number.
    pub fn add_parameter(self) -> i32 {
        // SAFETY: a live plan; the list grows in its own memory.
        unsafe {
            let plan = &mut *self.as_ptr();
            let number = Scalars::enter(plan.paramExecTypes).len();
            plan.paramExecTypes = pg_sys::lappend_oid(plan.paramExecTypes, pg_sys::INT4OID);
            number as i32
        }
    }

    /// Adds an entry of a catalog's cache that it depends on, in the current memory context.
    pub fn add_dependence(self, cache: i32, hash: u32) {
        let fields = pg_sys::PlanInvalItem {
            type_: pg_sys::NodeTag::T_PlanInvalItem,
            cacheId: cache,
            hashValue: hash,
        };
        // SAFETY: no pointers. The context is the one in which the plan was made.
        let item = unsafe { Node::new(fields) };
        let items = List::of(self.invalItems().iter().chain(std::iter::once(item)));
        // SAFETY: a live node, and a list of the field's type.
        unsafe { (*self.as_ptr()).invalItems = items.as_ptr() };
    }
}

impl Node<'_, pg_sys::Plan> {
    /// Makes it depend on a parameter of the executor, also by what is below it.
    pub fn add_dependence(self, parameter: i32) {
        // SAFETY: a live node; the sets grow in their own memory.
        unsafe {
            let plan = &mut *self.as_ptr();
            plan.extParam = pg_sys::bms_add_member(plan.extParam, parameter);
            plan.allParam = pg_sys::bms_add_member(plan.allParam, parameter);
        }
    }

    /// The place of the table that it scans in the range table; `None`: it is no scan of core's
    /// over a table.
    pub fn scanned(self) -> Option<pg_sys::Index> {
        let scan = match self.cast::<pg_sys::SeqScan>() {
            Some(scan) => scan.scan(),
            None => self.cast::<pg_sys::IndexScan>()?.scan(),
        };
        Some(scan.scanrelid())
    }
}

impl<'p> Node<'p, pg_sys::ModifyTable> {
    /// The columns of its first table that an UPDATE assigns; `None`: it assigns none.
    pub fn assigned(self) -> Option<Scalars<'p>> {
        // SAFETY: a live node, whose list has a list of numbers, or NULL, for each table.
        unsafe {
            let lists = list::cells((*self.as_ptr()).updateColnosLists);
            lists.first().map(|columns| Scalars::enter(*columns))
        }
    }

    /// What RETURNING gives of its first table; `None`: there is none.
    pub fn returned(self) -> Option<List<'p, pg_sys::TargetEntry>> {
        let first = self.returningLists().get(0)?;
        // SAFETY: a list of target lists.
        Some(unsafe { List::enter(first.as_ptr()) })
    }

    /// The conditions of `DO UPDATE ... WHERE`.
    pub fn conflict_conditions(self) -> List<'p, pg_sys::Node> {
        // SAFETY: a live node, which has there a list of conditions, or NULL.
        unsafe { List::enter((*self.as_ptr()).onConflictWhere.cast()) }
    }
}

impl<'p> Node<'p, pg_sys::NestLoop> {
    /// The conditions of the join.
    pub fn join_conditions(self) -> List<'p, pg_sys::Node> {
        // SAFETY: a live node, which has there a list of conditions.
        unsafe { List::enter((*self.as_ptr()).join.joinqual) }
    }
}

impl<'p> Node<'p, pg_sys::Memoize> {
    /// The operators by which it compares its keys.
    pub fn operators(self) -> &'p [Oid] {
        let node = self.fields();
        // SAFETY: an array of a finished plan, with its length.
        unsafe { array(node.hashOperators, node.numKeys) }
    }
}
