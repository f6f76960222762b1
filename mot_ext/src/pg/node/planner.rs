//! Fields of the planner's structures and of paths.
use super::{Any, List, Node, NodeType, views};
use pgrx::pg_sys::{self, Oid};

// SAFETY: each kind of path begins with it, and it with the tag.
unsafe impl NodeType for pg_sys::Path {}

views! {
    PlannerInfo = T_PlannerInfo {
        node parse: pg_sys::Query,
        node glob: pg_sys::PlannerGlobal,
        value query_level: pg_sys::Index,
        has parent_root,
        value hasPseudoConstantQuals: bool,
        value tuple_fraction: f64,
    }
    PlannerGlobal = T_PlannerGlobal {
        has subplans,
        set transientPlan / set_transient: bool,
    }
    Query = T_Query {
        value commandType: pg_sys::CmdType::Type,
        value resultRelation: i32,
        value hasAggs: bool,
        has cteList,
        list rtable: pg_sys::RangeTblEntry,
        node jointree: pg_sys::FromExpr,
        list groupClause: pg_sys::SortGroupClause,
        has groupingSets,
        has rowMarks,
        node havingQual: pg_sys::Node,
        has limitOffset,
        has limitCount,
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
        value reltablespace: Oid,
        value nkeycolumns: i32,
        cell relam / set_relam: Oid,
        cell tuples / set_tuples: f64,
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
        node parent: pg_sys::RelOptInfo,
        has param_info,
        has pathkeys,
        set rows / set_rows: f64,
        value total_cost: f64,
        value parallel_safe: bool,
    }
    IndexPath = T_IndexPath {
        base path: pg_sys::Path,
        node indexinfo: pg_sys::IndexOptInfo,
        list indexclauses: pg_sys::IndexClause,
    }
    IndexClause = T_IndexClause {
        node rinfo: pg_sys::RestrictInfo,
        list indexquals: pg_sys::RestrictInfo,
        value lossy: bool,
        value indexcol: pg_sys::AttrNumber,
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

    /// Whether plans of queries within this one were made before.
    pub fn has_subplans(self) -> bool {
        self.glob()
            .expect("the planner has its global state")
            .subplans()
    }

    /// Whether the query reads one table, joined with nothing.
    pub fn is_of_one_table(self) -> bool {
        // SAFETY: a live node's own set of tables.
        let count = unsafe { pg_sys::bms_membership((*self.as_ptr()).all_baserels) };
        count == pg_sys::BMS_Membership::BMS_SINGLETON
    }

    /// The relations of a kind that are made of the query's tables.
    pub fn made_relations(
        self,
        kind: pg_sys::UpperRelationKind::Type,
    ) -> List<'p, pg_sys::RelOptInfo> {
        // SAFETY: a live node has a list of relations for each kind.
        unsafe { List::enter((&(*self.as_ptr()).upper_rels)[kind as usize]) }
    }

    /// An expression as core knows it for estimates, with the parameters that have values.
    pub fn estimated(self, expression: Any<'p>) -> Any<'p> {
        // SAFETY: an expression of this query; core gives it, or a new one, back.
        unsafe {
            let (root, expression) = (self.as_ptr(), expression.as_ptr());
            Node::enter(pg_sys::estimate_expression_value(root, expression))
        }
    }

    /// The part of a relation's rows that core expects conditions to let pass.
    pub fn selectivity(
        self,
        rel: Node<'_, pg_sys::RelOptInfo>,
        conditions: List<'_, pg_sys::RestrictInfo>,
    ) -> f64 {
        let (list, relid) = (conditions.as_ptr(), rel.relid() as i32);
        let (inner, none) = (pg_sys::JoinType::JOIN_INNER, std::ptr::null_mut());
        // SAFETY: the planner's own structures, and conditions of this query.
        unsafe { pg_sys::clauselist_selectivity(self.as_ptr(), list, relid, inner, none) }
    }

    /// Whether an order of a relation's rows can be of use.
    pub fn wants_order(self, rel: Node<'_, pg_sys::RelOptInfo>) -> bool {
        // SAFETY: the planner's own structures.
        unsafe { pg_sys::has_useful_pathkeys(self.as_ptr(), rel.as_ptr()) }
    }

    /// Whether the order that an index gives in a direction is of use.
    pub fn wants_order_of(
        self,
        (rel, index): (Node<'_, pg_sys::RelOptInfo>, Node<'_, pg_sys::IndexOptInfo>),
        direction: pg_sys::ScanDirection::Type,
    ) -> bool {
        // SAFETY: the planner's own structures; the keys are a new list of core's own nodes.
        unsafe {
            let keys = pg_sys::build_index_pathkeys(self.as_ptr(), index.as_ptr(), direction);
            !pg_sys::truncate_useless_pathkeys(self.as_ptr(), rel.as_ptr(), keys).is_null()
        }
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

impl<'p> Node<'p, pg_sys::Path> {
    /// The relation whose rows it gives.
    pub fn relation(self) -> Node<'p, pg_sys::RelOptInfo> {
        self.parent().expect("a path is of a relation")
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
    /// The table's column; 0: an expression.
    pub column: i32,
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
                column: *index.indexkeys.add(position),
            }
        }
    }

    /// Whether core has found how the keys are ordered. Of a btree it asks nothing; of another
    /// method each class needs an operator by which its type is sorted.
    pub fn has_order(self) -> bool {
        // SAFETY: a live node.
        unsafe { !(*self.as_ptr()).reverse_sort.is_null() }
    }

    /// Gives the keys the order of their classes, as core does for a btree. `directions` has, for
    /// each, whether it descends, and whether NULLs come first.
    pub fn set_order(self, directions: &[(bool, bool)]) {
        assert_eq!(directions.len(), self.nkeycolumns() as usize);
        // SAFETY: new arrays in the planner's memory context, filled here; the node is live.
        unsafe {
            let bools = || pg_sys::palloc(directions.len()).cast::<bool>();
            let (reverse, nulls_first) = (bools(), bools());
            for (at, (descends, begins_with_nulls)) in directions.iter().enumerate() {
                reverse.add(at).write(*descends);
                nulls_first.add(at).write(*begins_with_nulls);
            }
            let index = &mut *self.as_ptr();
            (index.reverse_sort, index.nulls_first) = (reverse, nulls_first);
        }
        let families: Vec<Oid> = self.key_columns().map(|column| column.family).collect();
        self.set_order_families(Some(&families));
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

    /// What a page costs core that it reads from anywhere in the index.
    pub fn page_cost(self) -> f64 {
        let (mut cost, in_order) = (0.0, std::ptr::null_mut());
        // SAFETY: a look-up of settings; the place is written during the call.
        unsafe {
            pg_sys::get_tablespace_page_costs(self.reltablespace(), &raw mut cost, in_order);
        }
        cost
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
