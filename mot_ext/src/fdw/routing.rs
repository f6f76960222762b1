//! A row routed to a memory-optimized partition by a statement with ON CONFLICT.
//!
//! `ExecInitPartitionInfo` opens the indexes of the partition before it calls `BeginForeignInsert`, and refuses those that are no
//! btrees (XX000). It does not look for indexes if the relation's cache entry says that there are none. Right before it looks it asks
//! whether the relation takes rows, and there the entry is made to say so, until Begin comes, a few lines later.
//!
//! - Whether it is that question: the hook of ExecutorStart notes the memory contexts of started statements with ON CONFLICT on a
//!   partitioned table. A question asked in such a context comes from the statement's own executor, after its start, so it is that of
//!   a row being routed. Views and SQL functions ask, too, in contexts of their own.
//! - Between question and Begin core initializes expressions: no statement runs, nothing plans. What may happen is an error: then the
//!   entry is put right in the abort callback of the (sub)transaction, in which the relation is still open.
//! - An invalidation may put the entry right before us; then core has looked already.
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};

struct Routing {
    /// Contexts of running statements that route rows under ON CONFLICT.
    statements: Vec<pg_sys::MemoryContext>,
    /// Relations whose cache entries deny their indexes.
    denied: Vec<pg_sys::Relation>,
    has_callbacks: bool,
}

struct Local(UnsafeCell<Routing>);
// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for Local {}
static LOCAL: Local = Local(UnsafeCell::new(Routing {
    statements: Vec::new(),
    denied: Vec::new(),
    has_callbacks: false,
}));

/// The process's state. The reference must not be kept over a call into PostgreSQL.
fn local() -> &'static mut Routing {
    // SAFETY: one thread; see above.
    unsafe { &mut *LOCAL.0.get() }
}

/// Core's executor has started a query: a plain frame, like the hook that calls it (compiled/hooks.rs).
#[inline]
pub unsafe fn note(query: *mut pg_sys::QueryDesc) {
    // SAFETY: a started query.
    unsafe {
        if routes_under_on_conflict((*query).plannedstmt) && !(*query).estate.is_null() {
            keep((*(*query).estate).es_query_cxt);
        }
    }
}

/// Whether a statement inserts into a partitioned table with ON CONFLICT, at its top or in a WITH clause.
unsafe fn routes_under_on_conflict(statement: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: a live plan; casts follow the nodes' tags.
    unsafe {
        let statement = &*statement;
        if statement.commandType == pg_sys::CmdType::CMD_INSERT
            && routes(statement, statement.planTree)
        {
            return true;
        }
        statement.hasModifyingCTE
            && !statement.subplans.is_null()
            && (0..(*statement.subplans).length as usize).any(|at| {
                let plan = (*(*statement.subplans).elements.add(at)).ptr_value;
                routes(statement, plan.cast())
            })
    }
}

unsafe fn routes(statement: &pg_sys::PlannedStmt, plan: *mut pg_sys::Plan) -> bool {
    // SAFETY: as above; a ModifyTable has at least one result relation, whose number counts from 1.
    unsafe {
        if plan.is_null() || (*plan.cast::<pg_sys::Node>()).type_ != pg_sys::NodeTag::T_ModifyTable
        {
            return false;
        }
        let modify = plan.cast::<pg_sys::ModifyTable>();
        if (*modify).onConflictAction == pg_sys::OnConflictAction::ONCONFLICT_NONE {
            return false;
        }
        let number = (*(*(*modify).resultRelations).elements).int_value as usize;
        let entry = (*(*statement.rtable).elements.add(number - 1)).ptr_value;
        (*entry.cast::<pg_sys::RangeTblEntry>()).relkind as u8 == pg_sys::RELKIND_PARTITIONED_TABLE
    }
}

/// Notes a statement's context for as long as it lives.
#[pg_guard]
unsafe extern "C-unwind" fn keep(context: pg_sys::MemoryContext) {
    // SAFETY: the callback lives in the context it belongs to; transaction callbacks live as long as the library, which PostgreSQL
    // never unloads.
    unsafe {
        let callback =
            pg_sys::MemoryContextAllocZero(context, size_of::<pg_sys::MemoryContextCallback>())
                .cast::<pg_sys::MemoryContextCallback>();
        (*callback).func = Some(forget);
        (*callback).arg = context.cast();
        if !local().has_callbacks {
            pg_sys::RegisterXactCallback(Some(on_transaction), std::ptr::null_mut());
            pg_sys::RegisterSubXactCallback(Some(on_subtransaction), std::ptr::null_mut());
            local().has_callbacks = true;
        }
        pg_sys::MemoryContextRegisterResetCallback(context, callback);
        local().statements.push(context);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn forget(context: *mut c_void) {
    local().statements.retain(|other| *other != context.cast());
}

pub unsafe fn is_foreign_rel_updatable(relation: pg_sys::Relation) -> c_int {
    let routing = local();
    // SAFETY: an open relation.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        if routing.statements.contains(&context) && (*(*relation).rd_rel).relhasindex {
            routing.denied.push(relation);
            (*(*relation).rd_rel).relhasindex = false;
        }
    }
    1 << pg_sys::CmdType::CMD_INSERT
        | 1 << pg_sys::CmdType::CMD_UPDATE
        | 1 << pg_sys::CmdType::CMD_DELETE
}

/// Begin: the relation has its indexes again.
pub unsafe fn show_indexes(relation: pg_sys::Relation) {
    let denied = &mut local().denied;
    if let Some(at) = denied.iter().position(|other| *other == relation) {
        denied.swap_remove(at);
        // SAFETY: the caller's relation is open.
        unsafe { (*(*relation).rd_rel).relhasindex = true };
    }
}

fn show_all() {
    for relation in local().denied.drain(..) {
        // SAFETY: the failed statement's relations are closed after this callback.
        unsafe { (*(*relation).rd_rel).relhasindex = true };
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_transaction(event: pg_sys::XactEvent::Type, _arg: *mut c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        show_all();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_subtransaction(
    event: pg_sys::SubXactEvent::Type,
    _id: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _arg: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        show_all();
    }
}
