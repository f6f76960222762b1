//! Fields of the planner's structures and of paths.
use super::{Any, Node, NodeType, views};
use pgrx::pg_sys::{self, Oid};

// SAFETY: each kind of path begins with it, and it with the tag.
unsafe impl NodeType for pg_sys::Path {}

views! {
    PlannerInfo = T_PlannerInfo {
        node parse: pg_sys::Query,
        node glob: pg_sys::PlannerGlobal,
        value hasPseudoConstantQuals: bool,
    }
    PlannerGlobal = T_PlannerGlobal {
        set transientPlan / set_transient: bool,
    }
    Query = T_Query {
        value commandType: pg_sys::CmdType::Type,
        value resultRelation: i32,
        value hasAggs: bool,
        list rtable: pg_sys::RangeTblEntry,
        node jointree: pg_sys::FromExpr,
        list groupClause: pg_sys::SortGroupClause,
        has groupingSets,
        has rowMarks,
        node havingQual: pg_sys::Node,
    }
    FromExpr = T_FromExpr {}
    RangeTblEntry = T_RangeTblEntry {
        value rtekind: pg_sys::RTEKind::Type,
        value relid: Oid,
        value relkind: std::ffi::c_char,
        value rellockmode: i32,
        value inh: bool,
        has tablesample,
        list securityQuals: pg_sys::Node,
    }
    RelOptInfo = T_RelOptInfo {
        value relid: pg_sys::Index,
        value reloptkind: pg_sys::RelOptKind::Type,
        value rtekind: pg_sys::RTEKind::Type,
        value rows: f64,
        cell tuples / set_tuples: f64,
        cell pages / set_pages: pg_sys::BlockNumber,
        cell rel_parallel_workers / set_parallel_workers: i32,
        value consider_parallel: bool,
        value relids: pg_sys::Relids,
        has lateral_relids,
        has fdwroutine,
        node reltarget: pg_sys::PathTarget,
        list pathlist: pg_sys::Path,
        list partial_pathlist: pg_sys::Path,
        list indexlist: pg_sys::IndexOptInfo,
        list baserestrictinfo: pg_sys::RestrictInfo,
        value baserestrictcost: pg_sys::QualCost,
    }
    IndexOptInfo = T_IndexOptInfo {
        value indexoid: Oid,
        value nkeycolumns: i32,
        cell relam / set_relam: Oid,
        set tuples / set_tuples: f64,
        value unique: bool,
        cell immediate / set_immediate: bool,
        cell hypothetical / set_hypothetical: bool,
        has sortopfamily,
        list indextlist: pg_sys::TargetEntry,
    }
    RestrictInfo = T_RestrictInfo {
        node clause: pg_sys::Node,
        value pseudoconstant: bool,
        value leakproof: bool,
        value security_level: pg_sys::Index,
    }
    PathTarget = T_PathTarget {
        list exprs: pg_sys::Node,
        value cost: pg_sys::QualCost,
    }
    SortGroupClause = T_SortGroupClause {
        value eqop: Oid,
    }
    GroupPathExtraData {
        value flags: i32,
        value partial_costs_set: bool,
    }
    Path {
        has param_info,
        has pathkeys,
        value total_cost: f64,
        value parallel_safe: bool,
    }
    IndexPath = T_IndexPath {
        base path: pg_sys::Path,
        node indexinfo: pg_sys::IndexOptInfo,
        list indexclauses: pg_sys::IndexClause,
    }
    IndexClause = T_IndexClause {
        value indexcol: pg_sys::AttrNumber,
        list indexquals: pg_sys::RestrictInfo,
    }
    BitmapHeapPath = T_BitmapHeapPath {
        node bitmapqual: pg_sys::Path,
    }
    BitmapAndPath = T_BitmapAndPath {
        list bitmapquals: pg_sys::Path,
    }
    BitmapOrPath = T_BitmapOrPath {
        list bitmapquals: pg_sys::Path,
    }
    CustomPath = T_CustomPath {
        base path: pg_sys::Path,
        value flags: u32,
        value custom_private: *mut pg_sys::List,
    }
    CustomScan = T_CustomScan {}
}

impl<'p> Node<'p, pg_sys::PlannerInfo> {
    /// The query that is planned.
    pub fn query(self) -> Node<'p, pg_sys::Query> {
        self.parse().expect("the planner has a query")
    }

    /// Has the plan made anew when this transaction's snapshots are younger.
    pub fn set_transient_plan(self) {
        self.glob()
            .expect("the planner has its global state")
            .set_transient(true);
    }

    /// The entry of a relation of the query in its range table.
    pub fn entry(self, rel: Node<'p, pg_sys::RelOptInfo>) -> Node<'p, pg_sys::RangeTblEntry> {
        let place = rel.relid() as usize;
        // SAFETY: a live node, whose array has so many places, each with NULL or a live entry.
        let entry = unsafe {
            let root = &*self.as_ptr();
            assert!(place < root.simple_rel_array_size as usize);
            Node::enter_if_any(*root.simple_rte_array.add(place))
        };
        entry.expect("a base relation has an entry")
    }
}

impl<'p> Node<'p, pg_sys::RelOptInfo> {
    /// What its rows consist of.
    pub fn target(self) -> Node<'p, pg_sys::PathTarget> {
        self.reltarget().expect("a relation has a target")
    }

    /// Takes indexes away but for those meant; whether there was one to take.
    ///
    /// # Safety
    /// No view of its list of indexes is used after that: core frees one that becomes empty.
    pub unsafe fn retain_indexes(
        self,
        is_meant: impl Fn(Node<'_, pg_sys::IndexOptInfo>) -> bool,
    ) -> bool {
        let mut at = 0;
        let length = self.indexlist().len();
        while let Some(index) = self.indexlist().get(at) {
            if is_meant(index) {
                at += 1;
                continue;
            }
            // SAFETY: a list of the planner's own, which owns no nodes.
            unsafe {
                let rel = &mut *self.as_ptr();
                rel.indexlist = pg_sys::list_delete_ptr(rel.indexlist, index.as_ptr().cast());
            }
        }
        self.indexlist().len() < length
    }
}

impl<'p> Node<'p, pg_sys::RestrictInfo> {
    /// The condition.
    pub fn condition(self) -> Any<'p> {
        self.clause().expect("a restriction has a condition")
    }
}

impl<'p> Node<'p, pg_sys::IndexPath> {
    /// The index.
    pub fn index(self) -> Node<'p, pg_sys::IndexOptInfo> {
        self.indexinfo().expect("a path by an index has one")
    }

    /// The conditions of the index, each with its column.
    pub fn conditions(self) -> impl Iterator<Item = (pg_sys::AttrNumber, Any<'p>)> {
        self.indexclauses().iter().flat_map(|clause| {
            let conditions = clause.indexquals().iter();
            conditions.map(move |condition| (clause.indexcol(), condition.condition()))
        })
    }
}

/// A key column of an index, as the planner describes it.
pub struct KeyColumn {
    /// The type that the operator class takes.
    pub input: Oid,
    /// The operator family.
    pub family: Oid,
    /// The collation; invalid if there is none.
    pub collation: Oid,
}

impl Node<'_, pg_sys::IndexOptInfo> {
    /// A key column, from 0.
    pub fn key_column(self, position: usize) -> KeyColumn {
        assert!(position < self.nkeycolumns() as usize);
        // SAFETY: the arrays have an element for each key column.
        unsafe {
            let index = &*self.as_ptr();
            KeyColumn {
                input: *index.opcintype.add(position),
                family: *index.opfamily.add(position),
                collation: *index.indexcollations.add(position),
            }
        }
    }

    /// Gives the keys the orders of these operator families; `None`: they have none.
    pub fn set_order_families(self, families: Option<&[Oid]>) {
        let place = match families {
            Some(families) => {
                assert_eq!(families.len(), self.nkeycolumns() as usize);
                // SAFETY: memory of this size in the planner's memory context, filled here.
                unsafe {
                    let place = pg_sys::palloc(size_of_val(families)).cast::<Oid>();
                    place.copy_from_nonoverlapping(families.as_ptr(), families.len());
                    place
                }
            }
            None => std::ptr::null_mut(),
        };
        // SAFETY: a live node; its own array has an element for each key column.
        unsafe { (*self.as_ptr()).sortopfamily = place };
    }

    /// All key columns.
    pub fn key_columns(self) -> impl Iterator<Item = KeyColumn> {
        (0..self.nkeycolumns() as usize).map(move |position| self.key_column(position))
    }
}

impl Node<'_, pg_sys::PathTarget> {
    /// The mark that GROUP BY and ORDER BY refer to an expression by; 0: none does.
    pub fn mark(self, position: usize) -> pg_sys::Index {
        assert!(position < self.exprs().len());
        // SAFETY: there are no marks, or one for each expression.
        unsafe {
            let marks = (*self.as_ptr()).sortgrouprefs;
            match marks.is_null() {
                true => 0,
                false => *marks.add(position),
            }
        }
    }
}
