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
use crate::pg::node::{Node, Run};
use crate::pg::partition_routing::PartitionRouting;
use crate::pg::version::index_am::ASKS_FOR_BTREE;
use crate::pg::{guard, memory};
use crate::storage;
use pgrx::pg_sys::OnConflictAction::ONCONFLICT_NONE;
use pgrx::{pg_guard, pg_sys};
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

static SOURCES: ProcessLocal<RefCell<Vec<Source>>> = ProcessLocal(RefCell::new(Vec::new()));

/// Core's executor has started a query: a plain frame that reads the plan first.
///
/// # Safety
/// A started query, of which nothing has run.
#[inline]
pub unsafe fn started(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: the caller's query.
    let query: Node<'_, pg_sys::QueryDesc> = unsafe { Node::enter(query) };
    let plan = query.plan();
    let inserts = plan.commandType() == pg_sys::CmdType::CMD_INSERT || plan.hasModifyingCTE();
    if ASKS_FOR_BTREE && inserts && flags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int == 0 {
        // SAFETY: nothing of it has run (caller).
        unsafe { find_sources(query) };
    }
}

/// Has the rows of a started query pass here that may conflict.
///
/// # Safety
/// Nothing of it has run.
#[pg_guard]
unsafe extern "C-unwind" fn find_sources(query: Node<'_, pg_sys::QueryDesc>) {
    let Some(estate) = query.estate() else {
        return;
    };
    for state in query.changes() {
        if state.on_conflict() != ONCONFLICT_NONE
            && let Some(target) = target(estate, state.target())
        {
            let below = state.ps().lefttree().expect("its rows come from a node");
            // SAFETY: the caller's query.
            unsafe { put_before(below, target) };
        }
    }
}

/// A target of a running statement, locked for writing, as rows need it; `None`: core needs no help
/// with it.
fn target(
    estate: Node<'_, pg_sys::EState>,
    target: Node<'_, pg_sys::ResultRelInfo>,
) -> Option<Target> {
    let relation = target.relation();
    if relation.kind() == pg_sys::RELKIND_PARTITIONED_TABLE {
        let is_installed = storage::table_method() != pg_sys::InvalidOid;
        return is_installed.then(|| {
            Target::Partitioned(Partitions {
                // SAFETY: a running query's target, a partitioned table that is open.
                routing: unsafe { PartitionRouting::begin(estate.as_ptr(), target.as_ptr()) },
                reached: HashSet::new(),
                shown: Flips::none(),
            })
        });
    }
    let is_open = target.ri_IndexRelationDescs();
    (storage::is_table(relation) && !is_open).then_some(Target::Table(target.as_ptr()))
}

/// Has a node's rows pass here.
///
/// # Safety
/// Nothing of its query has run.
unsafe fn put_before(node: Node<'_, pg_sys::PlanState>, target: Target) {
    let estate = node.estate();
    if let Target::Partitioned(_) = target {
        // SAFETY: a context of the query's, which ends with the query's nodes.
        unsafe {
            let context = pg_sys::CreateExprContext(estate.as_ptr());
            pg_sys::RegisterExprContextCallback(context, Some(close), node.as_ptr().into());
        }
    }
    // SAFETY: the query's memory; what is called raises nothing.
    unsafe { memory::on_reset(estate.es_query_cxt(), forget, node.as_ptr().cast()) };
    SOURCES.0.borrow_mut().push(Source {
        node: node.as_ptr(),
        run: node.function(),
        target,
    });
    // SAFETY: it gives the rows of the node's own function.
    unsafe { node.set_function(run_source) };
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
            guard::run(|| prepare_for(Node::enter(node), Node::enter(row)));
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
///
/// # Safety
/// A node of a running query that is in the list, and a row of its.
unsafe fn prepare_for(node: Node<'_, pg_sys::PlanState>, row: Node<'_, pg_sys::TupleTableSlot>) {
    let (run, table, routing) = with(node.as_ptr(), |source| match &source.target {
        Target::Table(table) => (source.run, Some(*table), None),
        Target::Partitioned(partitions) => (source.run, None, Some(partitions.routing)),
    });
    if let Some(table) = table {
        // SAFETY: the node's own function, and the query's target.
        unsafe {
            node.set_function(run);
            open_indexes(node.estate(), Node::enter(table));
        }
    }
    if let Some(routing) = routing {
        // SAFETY: the query runs, and its rows begin with the table's columns.
        let partition: Node<'_, pg_sys::ResultRelInfo> =
            unsafe { Node::enter(routing.find(row.as_ptr())) };
        let new = with(node.as_ptr(), |source| {
            source.target.reach(partition.as_ptr())
        });
        let relation = partition.relation();
        if let Some(shown) = new
            && storage::is_table(relation)
        {
            // SAFETY: the partition is locked for writing.
            unsafe { shown.add_for_insert(relation.oid()) };
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
///
/// # Safety
/// A running statement's target, locked for writing.
unsafe fn open_indexes(estate: Node<'_, pg_sys::EState>, target: Node<'_, pg_sys::ResultRelInfo>) {
    let flips = Flips::none();
    // SAFETY: the table is locked (caller).
    unsafe { flips.group().add_for_insert(target.relation().oid()) };
    // SAFETY: the caller's target.
    let open = || unsafe { pg_sys::ExecOpenIndices(target.as_ptr(), true) };
    // SAFETY: the query's memory.
    unsafe { memory::within(estate.es_query_cxt(), open) };
    flips.end();
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
