//! The relations that a query reads, in its subqueries, too.
//!
//! The walker takes as little stack as core's own, so it reaches `max_stack_depth` (54001) no
//! sooner than core does. It is a plain frame with nothing to drop: an error jumps over it to the
//! guard around the walk.
#![allow(ffi_unwind_calls)]
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::T_Query;
use std::ffi::{c_int, c_void};

type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

unsafe extern "C-unwind" {
    // PostgreSQL's own functions without pgrx's guard: see the module header.
    #[cfg_attr(feature = "pg15", link_name = "expression_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    fn walk_expression(node: *mut pg_sys::Node, walker: Walker, context: *mut c_void) -> bool;
    #[cfg_attr(feature = "pg15", link_name = "query_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_walker_impl")]
    fn walk_query(
        query: *mut pg_sys::Query,
        walker: Walker,
        context: *mut c_void,
        flags: c_int,
    ) -> bool;
    #[link_name = "lappend"]
    fn append(list: *mut pg_sys::List, item: *mut c_void) -> *mut pg_sys::List;
    fn check_stack_depth();
}

/// The range table entries of a query and of its subqueries that stand for relations.
///
/// # Safety
/// A query as the parser or the rewriter makes it. The entries belong to it.
pub unsafe fn relations(query: *mut pg_sys::Query) -> Vec<*mut pg_sys::RangeTblEntry> {
    let mut entries: *mut pg_sys::List = std::ptr::null_mut();
    // SAFETY: a live query (caller); the list outlives the walk. Its items are range table entries.
    unsafe {
        let context = (&raw mut entries).cast();
        pg_sys::ffi::pg_guard_ffi_boundary(|| collect(query.cast(), context));
        pgrx::PgList::<pg_sys::RangeTblEntry>::from_pg(entries)
            .iter_ptr()
            .filter(|entry| (**entry).rtekind == pg_sys::RTEKind::RTE_RELATION)
            .collect()
    }
}

/// The walker: appends the range table entries of each query to the list that is its context.
unsafe extern "C-unwind" fn collect(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: a part of a query, cast by tag; the context is the list of `relations`.
    unsafe {
        if (*node).type_ != T_Query {
            return walk_expression(node, collect, context);
        }
        check_stack_depth();
        let query = node.cast::<pg_sys::Query>();
        let table = (*query).rtable;
        if !table.is_null() {
            let entries = context.cast::<*mut pg_sys::List>();
            for at in 0..(*table).length as usize {
                *entries = append(*entries, (*(*table).elements.add(at)).ptr_value);
            }
        }
        let flags = pg_sys::QTW_IGNORE_JOINALIASES as c_int;
        walk_query(query, collect, context, flags)
    }
}
