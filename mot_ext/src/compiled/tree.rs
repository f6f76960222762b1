//! Core's plan states, kept between two executions of a plan: joins, aggregates, sorts and
//! subqueries over memory-optimized tables.
//!
//! Core makes a tree of states for every execution and takes it down again. Here it stays, and the
//! next execution rescans it, as core itself does for the inner side of a nested loop. Every node
//! was made to depend on a parameter of ours (`nodes::make_rescannable`); Start declares that
//! one changed, and core's ExecReScan does the rest, node by node, when first asked for a row. Run
//! and Finish are core's.
//!
//! - The tree belongs to a copy of the plan, in a memory context of its own.
//! - Between two executions it holds no PostgreSQL resource: no open relation, no snapshot, no
//!   sort, no pinned row type. During one it holds its relations open, as core does.
//! - Expressions were compiled without the client's parameters in sight, so they read what Start
//!   puts into their contexts.
//! - An execution that fails leaves the tree in the middle of something: it is thrown away with the
//!   (sub)transaction, as core throws away its own. So is one that has grown, or has spilled to
//!   disk, when it ends.
use super::nodes;
use super::rights::Rights;
use super::statement::Uncompiled;
use super::survey::Survey;
use super::table_scans::TableScan;
use crate::pg::memory::{small_context_here, within};
use crate::pg::node::{Node, Owned};
use crate::pg::version;
use crate::storage;
use crate::transaction::relation;
use pgrx::pg_sys;
use std::ffi::c_int;

/// Bytes a tree may hold between two executions.
const BYTES_MAX: usize = 512 << 10;
/// A tree that was executed so often was worth being made.
const PROBATION: u64 = 4;

/// What a cursor may ask of the nodes: to go back, or to begin anew. They are made for it.
const CURSOR_FLAGS: c_int = (pg_sys::EXEC_FLAG_REWIND | pg_sys::EXEC_FLAG_BACKWARD) as c_int;

/// Plan states that are kept.
pub struct Tree {
    context: pg_sys::MemoryContext,
    estate: Owned<pg_sys::EState>,
    root: Owned<pg_sys::PlanState>,
    result_type: Owned<pg_sys::TupleDescData>,
    table_scans: Vec<TableScan>,
    /// What of `CURSOR_FLAGS` the nodes were made for.
    flags: c_int,
    sorts: Vec<Owned<pg_sys::SortState>>,
    aggregates: Vec<Owned<pg_sys::AggState>>,
    /// `work_mem` and `hash_mem_multiplier` that a node remembers; `None`: none does.
    memory_limit: Option<(i32, f64)>,
    /// The parameter that changes at each Start.
    changing: i32,
    rights: Rights,
    /// `transaction::relation::generation` of the storage the scans know.
    storage_generation: u64,
    /// `cache::functions_generation` of its functions' rights.
    pub functions_generation: u64,
    /// The execution under way: its query, and the (sub)transaction it began in.
    pub running: Option<(*mut pg_sys::QueryDesc, i32)>,
    /// An execution failed, or left too much behind: not to be used again.
    pub is_broken: bool,
    /// The most it held between two executions.
    pub bytes: usize,
    /// How many trees of this plan were dropped before, each early.
    pub drops: u32,
    executions: u64,
    /// Last use, for the cache.
    pub used: u64,
    /// Made for a cursor, which asks for plan states; the plan may have a compiled form besides.
    pub is_for_cursor: bool,
}

impl Drop for Tree {
    fn drop(&mut self) {
        // SAFETY: the tree's own context; no execution uses it. The scans go with it.
        unsafe { pg_sys::MemoryContextDelete(self.context) };
    }
}

/// The settings that say how much memory a hash table may take.
fn memory_settings() -> (i32, f64) {
    // SAFETY: plain variables of this process.
    unsafe { (pg_sys::work_mem, pg_sys::hash_mem_multiplier) }
}

/// What an execution of a query works with.
#[derive(Clone, Copy)]
struct Query<'p>(Node<'p, pg_sys::QueryDesc>);

impl<'p> Query<'p> {
    /// A copy of a query, started, in the current context; and the number of the parameter that
    /// changes at each Start.
    ///
    /// # Safety
    /// The current memory context outlives `'p`.
    unsafe fn started_copy(of: Node<'_, pg_sys::QueryDesc>, flags: c_int) -> (Query<'p>, i32) {
        let copy = of.plan().copied();
        let changing = nodes::make_rescannable(copy);
        let fields = pg_sys::QueryDesc {
            operation: pg_sys::CmdType::CMD_SELECT,
            plannedstmt: copy.as_ptr(),
            sourceText: c"".as_ptr(),
            snapshot: of.snapshot().as_ptr(),
            // SAFETY: all-zero bytes are NULL pointers and no options.
            ..unsafe { std::mem::zeroed() }
        };
        // SAFETY: memory of the type's size, filled here, in the caller's context.
        let own = unsafe {
            let own = pg_sys::palloc(size_of_val(&fields)).cast::<pg_sys::QueryDesc>();
            own.write(fields);
            pg_sys::standard_ExecutorStart(own, flags & CURSOR_FLAGS);
            Node::enter(own)
        };
        (Query(own), changing)
    }

    fn estate(self) -> Node<'p, pg_sys::EState> {
        self.0.estate().expect("a started query has its state")
    }

    fn root(self) -> Node<'p, pg_sys::PlanState> {
        self.0.planstate().expect("core's query has plan states")
    }

    /// Ends it.
    ///
    /// # Safety
    /// No code uses it, or its states, any more.
    unsafe fn end(self) {
        // SAFETY: a query that was started here (and the caller's promise).
        unsafe {
            pg_sys::standard_ExecutorFinish(self.0.as_ptr());
            pg_sys::standard_ExecutorEnd(self.0.as_ptr());
        }
    }
}

/// Views of nodes as what is kept.
///
/// # Safety
/// As of [`Owned::new`].
unsafe fn kept<T>(nodes: Vec<Node<'_, T>>) -> Vec<Owned<T>> {
    let nodes = nodes.into_iter();
    // SAFETY: the caller's.
    nodes
        .map(|node| unsafe { Owned::new(node.as_ptr()) })
        .collect()
}

impl Tree {
    /// Makes the states of a plan whose tables are locked.
    pub fn build(
        query: Node<'_, pg_sys::QueryDesc>,
        functions_generation: u64,
        drops: u32,
        flags: c_int,
    ) -> Result<Tree, Uncompiled> {
        let plan = query.plan();
        let positions = nodes::scans(plan).ok_or(Uncompiled::Never)?;
        let storage_generation = relation::generation();
        for position in positions {
            relation::LockedRelation::closed(plan.entry(position).relid())
                .with(storage::find_of_method)
                .ok_or(Uncompiled::Now)?;
        }
        // Until it is whole it is a child of the current one: an error takes it along.
        let context = small_context_here(c"mot kept plan");
        // SAFETY: a context that lives as long as the tree.
        let (own, changing) = unsafe { within(context, || Query::started_copy(query, flags)) };
        let found = Survey::of(own.estate(), own.root());
        // SAFETY: as above; nodes of the copy.
        let table_scans = unsafe {
            let nodes = found.table_scans.into_iter();
            within(context, || nodes.map(|node| TableScan::new(node)).collect())
        };
        if has_pinned_types(own.estate()) || found.shares_hashed_subplan {
            // SAFETY: no code uses what was made.
            unsafe {
                own.end();
                pg_sys::MemoryContextDelete(context);
            }
            return Err(Uncompiled::Never);
        }
        // SAFETY: nodes and states of the copy, in the tree's context.
        let (estate, root, result_type, sorts, aggregates) = unsafe {
            (
                Owned::new(own.estate().as_ptr()),
                Owned::new(own.root().as_ptr()),
                Owned::new(own.0.tupDesc()),
                kept(found.sorts),
                kept(found.aggregates),
            )
        };
        let tree = Tree {
            context,
            estate,
            root,
            result_type,
            table_scans,
            flags: flags & CURSOR_FLAGS,
            sorts,
            aggregates,
            memory_limit: found.remembers_memory_limit.then(memory_settings),
            changing,
            rights: Rights::unknown(),
            storage_generation,
            functions_generation,
            running: None,
            is_broken: false,
            bytes: 0,
            drops,
            executions: 0,
            used: 0,
            is_for_cursor: false,
        };
        // SAFETY: it was just made.
        unsafe { tree.let_go() };
        Ok(tree)
    }

    /// Gives back what making it took, and makes it last.
    ///
    /// # Safety
    /// It was just made.
    unsafe fn let_go(&self) {
        // SAFETY: core registered the snapshot at the Start of the copy, and opened the relations.
        // Its scans have ended then; the context is the tree's own.
        unsafe {
            pg_sys::UnregisterSnapshot(self.estate.view().es_snapshot());
            self.end_scans();
            self.estate.view().close_relations();
            pg_sys::MemoryContextSetParent(self.context, pg_sys::CacheMemoryContext);
        }
    }

    /// Ends the scans.
    ///
    /// # Safety
    /// In the execution that has opened them, or after the making.
    unsafe fn end_scans(&self) {
        for scan in &self.table_scans {
            // SAFETY: the caller's.
            unsafe { scan.end() };
        }
    }

    /// Begins an execution: `ExecutorStart`. False: core has to make its own states.
    ///
    /// # Safety
    /// Its tables are locked. [`Tree::end`] follows, or an abort, before the query is gone.
    pub unsafe fn start(&mut self, query: Node<'_, pg_sys::QueryDesc>, flags: c_int) -> bool {
        if flags & CURSOR_FLAGS & !self.flags != 0 {
            return false;
        }
        if self.storage_generation != relation::generation() && !self.find_storage() {
            return false;
        }
        self.rights.check(query.plan());
        let (estate, root) = (self.estate.view(), self.root.view());
        // SAFETY: the query lives as long as the execution (caller).
        unsafe { estate.begin(query) };
        version::count_from_zero(estate);
        estate.reopen();
        estate.share_parameters();
        for scan in &self.table_scans {
            // SAFETY: the tree's own state and nodes.
            unsafe { scan.open(estate) };
        }
        // SAFETY: the executor state's own memory.
        unsafe {
            within(estate.es_query_cxt(), || {
                root.change_parameter(self.changing)
            })
        };
        // SAFETY: what the tree has lives longer than the execution.
        unsafe { query.give(estate, root.as_ptr(), self.result_type.view()) };
        self.executions += 1;
        true
    }

    /// Ends an execution: `ExecutorEnd`. Broken afterwards: too much memory or a file was left, the
    /// next execution needs another tree.
    ///
    /// # Safety
    /// A query that `start` began in this transaction; no code reads its plan states any more.
    pub unsafe fn end(&mut self, query: Node<'_, pg_sys::QueryDesc>) {
        // Until everything is given back: what follows may raise.
        self.is_broken = true;
        self.running = None;
        for sort in &self.sorts {
            sort.view().end_sort();
        }
        // SAFETY: in the execution that `start` began.
        unsafe { self.end_scans() };
        let mut aggregates = self.aggregates.iter();
        let has_spilled = aggregates.any(|aggregate| aggregate.view().hash_ever_spilled());
        // SAFETY: its scans have ended.
        unsafe { self.estate.view().close_relations() };
        if has_spilled {
            // SAFETY: it is broken, and so not used again.
            unsafe { self.take_down() };
            query.forget_timing();
        } else {
            query.free_timing();
        }
        query.take_back();
        // SAFETY: the tree's own context.
        let bytes = unsafe { pg_sys::MemoryContextMemAllocated(self.context, true) };
        self.bytes = self.bytes.max(bytes);
        self.is_broken = has_spilled || bytes > BYTES_MAX;
    }

    /// Whether the query runs in this tree.
    pub fn is_in(&self, query: Node<'_, pg_sys::QueryDesc>) -> bool {
        query.estate() == Some(self.estate.view()) && query.planstate() == Some(self.root.view())
    }

    /// Whether it was executed so often that it was worth being made.
    pub fn has_served(&self) -> bool {
        self.executions >= PROBATION
    }

    /// Whether it would be made with the same limit of memory now.
    pub fn has_its_memory(&self) -> bool {
        self.memory_limit
            .is_none_or(|limit| limit == memory_settings())
    }

    /// Has the nodes close their files. A subquery is not below the node that asks for it: core
    /// ends them one by one, too.
    ///
    /// # Safety
    /// It is not used again.
    unsafe fn take_down(&self) {
        let subplans = self.estate.view().es_subplanstates();
        for top in std::iter::once(self.root.view()).chain(subplans) {
            // SAFETY: the caller's.
            unsafe { top.end() };
        }
    }

    /// Looks the storages up anew; false if a relation is another one than the tree was made for
    /// (`statement::find_storage`). The tables are locked. Core's nodes look their storage up in
    /// each execution.
    fn find_storage(&mut self) -> bool {
        let generation = relation::generation();
        if !self.table_scans.iter().all(TableScan::fits) {
            return false;
        }
        self.storage_generation = generation;
        true
    }
}

/// Whether a slot pins a row type of the relation or type cache, which ends with the execution.
fn has_pinned_types(estate: Node<'_, pg_sys::EState>) -> bool {
    let types = estate.es_tupleTable().iter();
    let mut types = types.filter_map(|slot| slot.tts_tupleDescriptor());
    types.any(|row_type| row_type.is_counted())
}
