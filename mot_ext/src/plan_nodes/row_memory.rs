//! Memory of rows that a BEFORE trigger has returned, while a data-modifying WITH part runs.
//!
//! Core stores such a row in the tuple slot by reference, where the slot is not one for buffers. It
//! is in the query's memory for one row, which every ModifyTable node of the query empties at
//! each of its rows. A part that SET or WHERE of ON CONFLICT DO UPDATE reads first would empty it
//! under EXCLUDED. So each such part has a memory of its own.
use crate::pg::local::ProcessLocal;
use crate::pg::{guard, nodes};
use crate::storage;
use pgrx::pg_sys::NodeTag::T_ModifyTableState;
use pgrx::pg_sys::OnConflictAction::ONCONFLICT_UPDATE;
use pgrx::{is_a, pg_guard, pg_sys};
use std::cell::RefCell;
use std::ffi::c_int;

/// A data-modifying WITH part of a query that runs, and its memory for one row.
struct Part {
    node: *mut pg_sys::PlanState,
    memory: *mut pg_sys::ExprContext,
    run: pg_sys::ExecProcNodeMtd,
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
    // SAFETY: the caller's query has a plan.
    unsafe {
        if (*(*query).plannedstmt).hasModifyingCTE
            && flags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int == 0
        {
            divide(query);
        }
    }
}

/// Core's executor ends a query: a plain frame.
///
/// # Safety
/// A started query.
#[inline]
pub unsafe fn ends(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the caller's query has a plan.
    unsafe {
        if (*(*query).plannedstmt).hasModifyingCTE {
            forget((*query).estate);
        }
    }
}

/// Gives each data-modifying WITH part a memory of its own, where a row of ours may be in the way.
#[pg_guard]
unsafe extern "C-unwind" fn divide(query: *mut pg_sys::QueryDesc) {
    // SAFETY: a started query (caller); its states are cast by their tags. Nodes and memory live as
    // long as it.
    unsafe {
        let (estate, top) = ((*query).estate, (*query).planstate);
        if estate.is_null() {
            return;
        }
        let parts = nodes::items::<pg_sys::ModifyTableState>((*estate).es_auxmodifytables);
        let is_top = !top.is_null() && is_a(top.cast(), T_ModifyTableState);
        let top = is_top.then_some(top.cast::<pg_sys::ModifyTableState>());
        if !parts
            .iter()
            .copied()
            .chain(top)
            .any(|state| updates_ours(state))
        {
            return;
        }
        for state in parts {
            let node = &raw mut (*state).ps;
            let memory = pg_sys::CreateExprContext(estate);
            let run = (*node).ExecProcNodeReal;
            let mut all = PARTS.0.borrow_mut();
            all.retain(|other| !std::ptr::eq(other.node, node));
            all.push(Part { node, memory, run });
            drop(all);
            pg_sys::ExecSetExecProcNode(node, Some(run_part));
        }
    }
}

/// Whether a node may reach ON CONFLICT DO UPDATE of a table of ours.
unsafe fn updates_ours(state: *mut pg_sys::ModifyTableState) -> bool {
    // SAFETY: a node of a started query (caller), its target open.
    unsafe {
        let node = (*state).ps.plan.cast::<pg_sys::ModifyTable>();
        let relation = (*(*state).resultRelInfo).ri_RelationDesc;
        (*node).onConflictAction == ONCONFLICT_UPDATE
            && (storage::is_table(relation)
                || (*(*relation).rd_rel).relkind as u8 == pg_sys::RELKIND_PARTITIONED_TABLE)
    }
}

/// A query's parts run no more.
unsafe fn forget(estate: *mut pg_sys::EState) {
    let mut parts = PARTS.0.borrow_mut();
    // SAFETY: the nodes of queries that run are there; others' addresses are compared alone.
    parts.retain(|part| unsafe { !is_of(part.node, estate) });
}

/// Whether a node is one of a query's data-modifying WITH parts.
unsafe fn is_of(node: *mut pg_sys::PlanState, estate: *mut pg_sys::EState) -> bool {
    // SAFETY: the query's list is a live one (caller).
    unsafe {
        let list = (*estate).es_auxmodifytables;
        !list.is_null()
            && (0..(*list).length as usize)
                .any(|at| (*(*list).elements.add(at)).ptr_value == node.cast())
    }
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
    (part.memory, part.run.expect("every node has a function"))
}

/// Core's function for a node.
type Run = unsafe extern "C-unwind" fn(*mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot;
