//! INSERT ... ON CONFLICT on 15 to 17: core takes the unique indexes of the target for btrees, or
//! raises.
//!
//! It looks when it opens the indexes of a table, or of a partition: at the first row for it. So
//! this runs between the node that gives the rows and ModifyTable, and sees each row first.
//!
//! - **A table.** At the first row its indexes are opened while they are shown as btrees. Core
//!   finds them open, and later rows come from core's function alone.
//! - **A partitioned table.** Core's function finds the partition of a row, which locks and opens
//!   it as core does right after. If it is one of ours that no row has reached before, its unique
//!   indexes are shown as btrees from then on, to the end of the statement. Every partition may
//!   become one of ours before a row reaches it, so this asks none before.
//!
//! So locks are taken for the rows that come, in core's order, and for no other partition. The
//! functions of partition keys and bounds run twice for a row. A foreign partition begins an insert
//! twice, once as for COPY, and that one gets no rows.
use crate::index_am::flips::{Flips, Group};
use crate::pg::local::ProcessLocal;
use crate::pg::partition_routing::PartitionRouting;
use crate::pg::version::index_am::ASKS_FOR_BTREE;
use crate::pg::{guard, nodes};
use crate::storage;
use pgrx::pg_sys::NodeTag::T_ModifyTableState;
use pgrx::pg_sys::OnConflictAction::ONCONFLICT_NONE;
use pgrx::{is_a, pg_guard, pg_sys};
use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::{c_int, c_void};

/// A node that gives rows to be inserted. It leaves the list with the memory of its query.
struct Source {
    node: *mut pg_sys::PlanState,
    run: Run,
    target: Target,
}

/// Where the rows go.
enum Target {
    Table(*mut pg_sys::ResultRelInfo),
    Partitioned(Partitions),
}

/// What the rows have reached of a partitioned table.
struct Partitions {
    routing: PartitionRouting,
    reached: HashSet<*mut pg_sys::ResultRelInfo>,
    shown: Flips,
}

/// Core's function for a node.
type Run = unsafe extern "C-unwind" fn(*mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot;

static SOURCES: ProcessLocal<RefCell<Vec<Source>>> = ProcessLocal(RefCell::new(Vec::new()));

/// Core's executor has started a query: a plain frame that reads the plan first.
///
/// # Safety
/// A started query, of which nothing has run.
#[inline]
pub unsafe fn started(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: the caller's query has a plan.
    unsafe {
        let plan = &*(*query).plannedstmt;
        let inserts = plan.commandType == pg_sys::CmdType::CMD_INSERT || plan.hasModifyingCTE;
        if ASKS_FOR_BTREE && inserts && flags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int == 0 {
            find_sources(query);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn find_sources(query: *mut pg_sys::QueryDesc) {
    // SAFETY: a started query (caller); its states are cast by their tags.
    unsafe {
        let estate = (*query).estate;
        let top = (*query).planstate;
        if estate.is_null() {
            return;
        }
        let mut all = nodes::items::<pg_sys::ModifyTableState>((*estate).es_auxmodifytables);
        if !top.is_null() && is_a(top.cast(), T_ModifyTableState) {
            all.push(top.cast());
        }
        for state in all {
            let plan = (*state).ps.plan.cast::<pg_sys::ModifyTable>();
            if (*plan).onConflictAction != ONCONFLICT_NONE
                && let Some(target) = target(estate, (*state).resultRelInfo)
            {
                put_before((*state).ps.lefttree, target);
            }
        }
    }
}

/// `None`: core needs no help with this target.
unsafe fn target(
    estate: *mut pg_sys::EState,
    target: *mut pg_sys::ResultRelInfo,
) -> Option<Target> {
    // SAFETY: a running statement's target (caller), locked for writing.
    unsafe {
        let relation = (*target).ri_RelationDesc;
        let kind = (*(*relation).rd_rel).relkind as u8;
        if kind == pg_sys::RELKIND_PARTITIONED_TABLE {
            let is_installed = storage::table_method() != pg_sys::InvalidOid;
            return is_installed.then(|| {
                Target::Partitioned(Partitions {
                    routing: PartitionRouting::begin(estate, target),
                    reached: HashSet::new(),
                    shown: Flips::none(),
                })
            });
        }
        let is_open = !(*target).ri_IndexRelationDescs.is_null();
        (storage::is_table(relation) && !is_open).then_some(Target::Table(target))
    }
}

/// Has a node's rows pass here.
unsafe fn put_before(node: *mut pg_sys::PlanState, target: Target) {
    // SAFETY: a live node (caller), and the memory of its query, which ends with the node.
    unsafe {
        let estate = (*node).state;
        if let Target::Partitioned(_) = target {
            let context = pg_sys::CreateExprContext(estate);
            pg_sys::RegisterExprContextCallback(context, Some(close), node.into());
        }
        let memory = (*estate).es_query_cxt;
        let size = size_of::<pg_sys::MemoryContextCallback>();
        let callback = pg_sys::MemoryContextAlloc(memory, size);
        let callback = callback.cast::<pg_sys::MemoryContextCallback>();
        callback.write(pg_sys::MemoryContextCallback {
            func: Some(forget),
            arg: node.cast(),
            next: std::ptr::null_mut(),
        });
        pg_sys::MemoryContextRegisterResetCallback(memory, callback);
        let run = (*node).ExecProcNodeReal.expect("every node has a function");
        SOURCES.0.borrow_mut().push(Source { node, run, target });
        pg_sys::ExecSetExecProcNode(node, Some(run_source));
    }
}

/// The next row: core's, and then what it needs for its target. A plain frame with nothing to drop:
/// an error of the node passes it as it was raised.
unsafe extern "C-unwind" fn run_source(
    node: *mut pg_sys::PlanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a live node of a running query.
    #[allow(ffi_unwind_calls)]
    unsafe {
        let run = guard::run(|| with(node, |source| source.run));
        let row = run(node);
        if !row.is_null() && (*row).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 == 0 {
            guard::run(|| prepare_for(node, row));
        }
        row
    }
}

/// Asks the list about a node. `ask` calls nothing of PostgreSQL.
fn with<R>(node: *mut pg_sys::PlanState, ask: impl FnOnce(&mut Source) -> R) -> R {
    let mut sources = SOURCES.0.borrow_mut();
    let source = sources.iter_mut().find(|source| source.node == node);
    ask(source.expect("a node is in the list as long as it runs here"))
}

/// What core needs for a row.
unsafe fn prepare_for(node: *mut pg_sys::PlanState, row: *mut pg_sys::TupleTableSlot) {
    let (run, table, routing) = with(node, |source| match &source.target {
        Target::Table(table) => (source.run, Some(*table), None),
        Target::Partitioned(partitions) => (source.run, None, Some(partitions.routing)),
    });
    // SAFETY: a running query's target, and a row for it (caller).
    unsafe {
        if let Some(table) = table {
            pg_sys::ExecSetExecProcNode(node, Some(run));
            open_indexes((*node).state, table);
        }
        if let Some(routing) = routing {
            let partition = routing.find(row);
            let new = with(node, |source| source.target.reach(partition));
            let relation = (*partition).ri_RelationDesc;
            if let Some(shown) = new
                && storage::is_table(relation)
            {
                shown.add_for_insert((*relation).rd_id);
            }
        }
    }
}

impl Target {
    /// What shows the indexes of a partition that no row has reached before.
    fn reach(&mut self, partition: *mut pg_sys::ResultRelInfo) -> Option<Group> {
        match self {
            Target::Partitioned(partitions) => {
                let is_new = partitions.reached.insert(partition);
                is_new.then(|| partitions.shown.group())
            }
            Target::Table(_) => None,
        }
    }
}

/// Opens the indexes of a table of ours while they are shown as btrees.
unsafe fn open_indexes(estate: *mut pg_sys::EState, target: *mut pg_sys::ResultRelInfo) {
    // SAFETY: a running statement's target (caller), locked for writing.
    unsafe {
        let flips = Flips::none();
        flips
            .group()
            .add_for_insert((*(*target).ri_RelationDesc).rd_id);
        let previous = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
        pg_sys::ExecOpenIndices(target, true);
        pg_sys::MemoryContextSwitchTo(previous);
        flips.end();
    }
}

/// The query of a node ends without an error: core calls this before it gives the query's memory
/// back.
unsafe extern "C-unwind" fn close(node: pg_sys::Datum) {
    let node = node.cast_mut_ptr::<pg_sys::PlanState>();
    let end = || {
        let partitions = with(node, |source| match &mut source.target {
            Target::Partitioned(partitions) => {
                let shown = std::mem::replace(&mut partitions.shown, Flips::none());
                Some((partitions.routing, shown))
            }
            Target::Table(_) => None,
        });
        if let Some((routing, shown)) = partitions {
            shown.end();
            // SAFETY: the query's memory is there, and nothing else ends the routing.
            unsafe { routing.end() };
        }
    };
    // SAFETY: core's frames alone are between here and its handler.
    unsafe { guard::run(end) };
}

/// The memory of a node's query goes, whichever way the query ended. Raises nothing.
unsafe extern "C-unwind" fn forget(node: *mut c_void) {
    let mut sources = SOURCES.0.borrow_mut();
    sources.retain(|source| !std::ptr::eq(source.node.cast(), node));
}
