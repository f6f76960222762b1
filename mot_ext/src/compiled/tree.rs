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
use super::frame::within;
use super::nodes;
use super::rights::Rights;
use super::statement::Uncompiled;
use super::survey::Survey;
use super::table_scans::TableScan;
use crate::pg::list::items;
use crate::pg::{self, version};
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
    estate: *mut pg_sys::EState,
    root: *mut pg_sys::PlanState,
    result_type: pg_sys::TupleDesc,
    table_scans: Vec<TableScan>,
    /// What of `CURSOR_FLAGS` the nodes were made for.
    flags: c_int,
    sorts: Vec<*mut pg_sys::SortState>,
    aggregates: Vec<*mut pg_sys::AggState>,
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

/// A copy of a query, started, in the current context; and the number of the parameter that changes
/// at each Start.
unsafe fn started_copy(
    query: *mut pg_sys::QueryDesc,
    flags: c_int,
) -> (*mut pg_sys::QueryDesc, i32) {
    // SAFETY: core's query descriptor (caller), whose plan is copied whole.
    unsafe {
        let plan = (*query).plannedstmt;
        let copy = pg_sys::copyObjectImpl(plan.cast()).cast::<pg_sys::PlannedStmt>();
        let changing = nodes::make_rescannable(copy);
        let own = pg_sys::palloc0(size_of::<pg_sys::QueryDesc>()).cast::<pg_sys::QueryDesc>();
        (*own).operation = pg_sys::CmdType::CMD_SELECT;
        (*own).plannedstmt = copy;
        (*own).sourceText = c"".as_ptr();
        (*own).snapshot = (*query).snapshot;
        pg_sys::standard_ExecutorStart(own, flags & CURSOR_FLAGS);
        (own, changing)
    }
}

impl Tree {
    /// Makes the states of a plan whose tables are locked.
    pub unsafe fn build(
        query: *mut pg_sys::QueryDesc,
        functions_generation: u64,
        drops: u32,
        flags: c_int,
    ) -> Result<Tree, Uncompiled> {
        // SAFETY: core's query descriptor. Until it is whole the context is a child of the current
        // one: an error takes it along.
        unsafe {
            let plan = (*query).plannedstmt;
            let positions = nodes::scans(plan).ok_or(Uncompiled::Never)?;
            let storage_generation = relation::generation();
            for position in positions {
                let entry = pg_sys::rt_fetch(position, (*plan).rtable);
                relation::Relation::closed((*entry).relid)
                    .with(storage::find_of_method)
                    .ok_or(Uncompiled::Now)?;
            }
            let context = pg::small_context(pg_sys::CurrentMemoryContext, c"mot kept plan");
            let (own, changing) = within(context, || started_copy(query, flags));
            let estate = (*own).estate;
            let found = Survey::of(estate, (*own).planstate);
            let table_scans = within(context, || {
                let nodes = found.table_scans.into_iter();
                nodes.map(|node| TableScan::new(node)).collect::<Vec<_>>()
            });
            if has_pinned_types(estate) || found.shares_hashed_subplan {
                pg_sys::standard_ExecutorFinish(own);
                pg_sys::standard_ExecutorEnd(own);
                pg_sys::MemoryContextDelete(context);
                return Err(Uncompiled::Never);
            }
            let mut tree = Tree {
                context,
                estate,
                root: (*own).planstate,
                result_type: (*own).tupDesc,
                table_scans,
                flags: flags & CURSOR_FLAGS,
                sorts: found.sorts,
                aggregates: found.aggregates,
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
            pg_sys::UnregisterSnapshot((*estate).es_snapshot);
            for scan in &tree.table_scans {
                scan.end();
            }
            tree.close_relations();
            pg_sys::MemoryContextSetParent(context, pg_sys::CacheMemoryContext);
            Ok(tree)
        }
    }

    /// Begins an execution: `ExecutorStart`. False: core has to make its own states.
    pub unsafe fn start(&mut self, query: *mut pg_sys::QueryDesc, flags: c_int) -> bool {
        // SAFETY: core's query descriptor; the tables are locked; the contexts and states are the
        // tree's own.
        unsafe {
            if flags & CURSOR_FLAGS & !self.flags != 0 {
                return false;
            }
            if self.storage_generation != relation::generation() && !self.find_storage() {
                return false;
            }
            self.rights.check((*query).plannedstmt);
            let estate = &mut *self.estate;
            estate.es_sourceText = (*query).sourceText;
            estate.es_queryEnv = (*query).queryEnv;
            // The query descriptor has it registered.
            estate.es_snapshot = (*query).snapshot;
            estate.es_param_list_info = (*query).params;
            version::count_from_zero(estate);
            estate.es_finished = false;
            let contexts = estate.es_exprcontexts;
            if !contexts.is_null() {
                for at in 0..(*contexts).length as usize {
                    let context = (*(*contexts).elements.add(at)).ptr_value;
                    (*context.cast::<pg_sys::ExprContext>()).ecxt_param_list_info = (*query).params;
                }
            }
            for scan in &self.table_scans {
                scan.open(self.estate);
            }
            within(estate.es_query_cxt, || {
                (*self.root).chgParam =
                    pg_sys::bms_add_member((*self.root).chgParam, self.changing);
            });
            (*query).tupDesc = self.result_type;
            (*query).estate = self.estate;
            (*query).planstate = self.root;
            self.executions += 1;
            true
        }
    }

    /// Ends an execution: `ExecutorEnd`. Broken afterwards: too much memory or a file was left, the
    /// next execution needs another tree.
    pub unsafe fn end(&mut self, query: *mut pg_sys::QueryDesc) {
        // SAFETY: a query that `start` began; what others hung on it is theirs to read no more.
        unsafe {
            // Until everything is given back: what follows may raise.
            self.is_broken = true;
            self.running = None;
            let mut has_spilled = false;
            for sort in &self.sorts {
                let sort = &mut **sort;
                if !sort.tuplesortstate.is_null() {
                    pg_sys::tuplesort_end(sort.tuplesortstate.cast());
                    sort.tuplesortstate = std::ptr::null_mut();
                    sort.sort_Done = false;
                }
            }
            for scan in &self.table_scans {
                scan.end();
            }
            for aggregate in &self.aggregates {
                has_spilled |= (**aggregate).hash_ever_spilled;
            }
            self.close_relations();
            if has_spilled {
                self.take_down();
            } else if !(*query).totaltime.is_null() {
                pg_sys::pfree((*query).totaltime.cast());
            }
            (*query).totaltime = std::ptr::null_mut();
            (*query).tupDesc = std::ptr::null_mut();
            (*query).estate = std::ptr::null_mut();
            (*query).planstate = std::ptr::null_mut();
            let bytes = pg_sys::MemoryContextMemAllocated(self.context, true);
            self.bytes = self.bytes.max(bytes);
            self.is_broken = has_spilled || bytes > BYTES_MAX;
        }
    }

    /// Whether the query runs in this tree.
    pub unsafe fn is_in(&self, query: *mut pg_sys::QueryDesc) -> bool {
        // SAFETY: core's query descriptor.
        unsafe { (*query).estate == self.estate && (*query).planstate == self.root }
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
    unsafe fn take_down(&mut self) {
        // SAFETY: the tree's own states, not used from here on.
        unsafe {
            pg_sys::ExecEndNode(self.root);
            for subplan in items::<pg_sys::PlanState>((*self.estate).es_subplanstates) {
                pg_sys::ExecEndNode(subplan);
            }
        }
    }

    /// Closes what the execution, or the making, opened.
    unsafe fn close_relations(&mut self) {
        // SAFETY: relations that `start` or core opened for this execution.
        unsafe {
            let estate = &mut *self.estate;
            pg_sys::ExecCloseRangeTableRelations(self.estate);
            for at in 0..estate.es_range_table_size as usize {
                *estate.es_relations.add(at) = std::ptr::null_mut();
            }
            estate.es_snapshot = std::ptr::null_mut();
        }
    }

    /// Looks the storages up anew; false if a relation is another one than the tree was made for
    /// (`statement::find_storage`).
    unsafe fn find_storage(&mut self) -> bool {
        let generation = relation::generation();
        // SAFETY: the tables are locked. Core's nodes look their storage up in each execution.
        if !self.table_scans.iter().all(|scan| unsafe { scan.fits() }) {
            return false;
        }
        self.storage_generation = generation;
        true
    }
}

/// Whether a slot pins a row type of the relation or type cache, which ends with the execution.
unsafe fn has_pinned_types(estate: *mut pg_sys::EState) -> bool {
    // SAFETY: an executor state; its slots have row types.
    unsafe {
        items::<pg_sys::TupleTableSlot>((*estate).es_tupleTable)
            .into_iter()
            .any(|slot| {
                let kind = (*slot).tts_tupleDescriptor;
                !kind.is_null() && (*kind).tdrefcount >= 0
            })
    }
}
