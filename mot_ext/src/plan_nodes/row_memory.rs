//! Memory of rows that a BEFORE trigger has returned, while a data-modifying WITH part runs.
//!
//! Core stores such a row in the tuple slot by reference, where the slot is not one for buffers. It
//! is in the query's memory for one row, which every ModifyTable node of the query empties at
//! each of its rows. A part that SET or WHERE of ON CONFLICT DO UPDATE reads first would empty it
//! under EXCLUDED. So each such part has a memory of its own.
use crate::pg::guard;
use crate::pg::local::ProcessLocal;
use crate::pg::node::{Node, Run};
use crate::storage;
use pgrx::pg_sys::OnConflictAction::ONCONFLICT_UPDATE;
use pgrx::{pg_guard, pg_sys};
use std::cell::RefCell;
use std::ffi::c_int;

/// A data-modifying WITH part of a query that runs, and its memory for one row.
struct Part {
    node: *mut pg_sys::PlanState,
    memory: *mut pg_sys::ExprContext,
    run: Run,
}

/// The parts of the queries that run. One of a query that failed stays until another gets its
/// address.
static PARTS: ProcessLocal<RefCell<Vec<Part>>> = ProcessLocal(RefCell::new(Vec::new()));

/// Core's executor has started a query: a plain frame that reads the plan first.
///
/// # Safety
/// A started query, of which nothing has run.
#[inline]
pub unsafe fn started(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: the caller's query.
    let query: Node<'_, pg_sys::QueryDesc> = unsafe { Node::enter(query) };
    if query.plan().hasModifyingCTE() && flags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int == 0 {
        // SAFETY: nothing of it has run (caller).
        unsafe { divide(query) };
    }
}

/// Core's executor ends a query: a plain frame.
///
/// # Safety
/// A started query.
#[inline]
pub unsafe fn ends(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the caller's query.
    let query: Node<'_, pg_sys::QueryDesc> = unsafe { Node::enter(query) };
    if query.plan().hasModifyingCTE()
        && let Some(estate) = query.estate()
    {
        forget(estate);
    }
}

/// Gives each data-modifying WITH part a memory of its own, where a row of ours may be in the way.
/// Nodes and memory live as long as the query.
///
/// # Safety
/// Nothing of the query has run.
#[pg_guard]
unsafe extern "C-unwind" fn divide(query: Node<'_, pg_sys::QueryDesc>) {
    let Some(estate) = query.estate() else {
        return;
    };
    if !query.changes().into_iter().any(updates_ours) {
        return;
    }
    for state in estate.es_auxmodifytables() {
        let node = state.ps();
        let part = Part {
            node: node.as_ptr(),
            // SAFETY: a started query.
            memory: unsafe { pg_sys::CreateExprContext(estate.as_ptr()) },
            run: node.function(),
        };
        let mut parts = PARTS.0.borrow_mut();
        parts.retain(|other| !std::ptr::eq(other.node, part.node));
        parts.push(part);
        drop(parts);
        // SAFETY: it gives the rows of the node's own function.
        unsafe { node.set_function(run_part) };
    }
}

/// Whether a node may reach ON CONFLICT DO UPDATE of a table of ours.
fn updates_ours(state: Node<'_, pg_sys::ModifyTableState>) -> bool {
    let relation = state.target().relation();
    state.on_conflict() == ONCONFLICT_UPDATE
        && (storage::is_table(relation) || relation.kind() == pg_sys::RELKIND_PARTITIONED_TABLE)
}

/// A query's parts run no more. The nodes of queries that run are there; others' addresses are
/// compared alone.
fn forget(estate: Node<'_, pg_sys::EState>) {
    let mut parts = PARTS.0.borrow_mut();
    parts.retain(|part| !estate.es_auxmodifytables().has(part.node));
}

/// A part's turn: core's, with the part's own memory in the place of the query's. A plain frame
/// with nothing to drop: an error of the part passes it as it was raised.
unsafe extern "C-unwind" fn run_part(node: *mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a live node of a running query. An error ends the query, and no code asks for its
    // memory again.
    #[allow(ffi_unwind_calls)]
    unsafe {
        let (memory, run) = guard::run(|| part_of(node));
        let estate = (*node).state;
        let outer = (*estate).es_per_tuple_exprcontext;
        (*estate).es_per_tuple_exprcontext = memory;
        let row = run(node);
        (*estate).es_per_tuple_exprcontext = outer;
        row
    }
}

/// A node's memory, and core's function for it.
fn part_of(node: *mut pg_sys::PlanState) -> (*mut pg_sys::ExprContext, Run) {
    let parts = PARTS.0.borrow();
    let part = parts.iter().find(|part| std::ptr::eq(part.node, node));
    let part = part.expect("a part runs between the start and the end of its query");
    (part.memory, part.run)
}
