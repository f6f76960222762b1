//! The planner's hook for each table of each query: what it may believe of memory-optimized tables'
//! indexes is said by `ddl::tables::index_order`.
use crate::ddl;
use pgrx::pg_sys;
use std::cell::Cell;

struct Previous(Cell<pg_sys::get_relation_info_hook_type>);
// SAFETY: written once in the postmaster while it loads libraries; each process runs PostgreSQL's code on one thread.
unsafe impl Sync for Previous {}
static PREVIOUS: Previous = Previous(Cell::new(None));

/// Installs the hook; called once, while the server loads its libraries.
pub fn init() {
    // SAFETY: single-threaded at load time.
    unsafe {
        PREVIOUS.0.set(pg_sys::get_relation_info_hook);
        pg_sys::get_relation_info_hook = Some(get_relation_info);
    }
}

/// A plain frame: an error of another hook jumps over it.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn get_relation_info(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    has_children: bool,
    rel: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the arguments are PostgreSQL's own; nothing to drop is in this frame.
    unsafe {
        if let Some(previous) = PREVIOUS.0.get() {
            previous(root, relation, has_children, rel);
        }
        ddl::tables::index_order::describe(root, relation, rel);
    }
}
