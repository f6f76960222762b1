//! Core's walks over queries and expressions, without pgrx's guards.
//!
//! A guard for each node would take a multiple of core's own stack. So a callback is a plain frame,
//! and so is who calls these: an error jumps over both.
#![allow(ffi_unwind_calls)]
use pgrx::pg_sys;
use std::ffi::{c_int, c_void};

/// Looks at a node; true ends the walk.
pub type Look = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

/// Makes a node into another one, or a copy.
pub type Change = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> *mut pg_sys::Node;

unsafe extern "C-unwind" {
    #[cfg_attr(feature = "pg15", link_name = "expression_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    fn walk_expression(node: *mut pg_sys::Node, look: Look, context: *mut c_void) -> bool;
    #[cfg_attr(feature = "pg15", link_name = "query_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_walker_impl")]
    fn walk_query(
        query: *mut pg_sys::Query,
        look: Look,
        context: *mut c_void,
        flags: c_int,
    ) -> bool;
    #[cfg_attr(feature = "pg15", link_name = "expression_tree_mutator")]
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_mutator_impl")]
    fn change_expression(
        node: *mut pg_sys::Node,
        change: Change,
        context: *mut c_void,
    ) -> *mut pg_sys::Node;
    #[cfg_attr(feature = "pg15", link_name = "query_tree_mutator")]
    #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_mutator_impl")]
    fn change_query(
        query: *mut pg_sys::Query,
        change: Change,
        context: *mut c_void,
        flags: c_int,
    ) -> *mut pg_sys::Query;
}

/// Calls `look` for the parts of an expression, or of a query.
///
/// # Safety
/// A node that core's walker knows, and the context of the walk. The caller is a plain frame.
pub unsafe fn look_below(node: *mut pg_sys::Node, look: Look, context: *mut c_void) -> bool {
    // SAFETY: the caller's.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_Query => walk_query(node.cast(), look, context, 0),
            _ => walk_expression(node, look, context),
        }
    }
}

/// A copy of an expression, or of a query, whose parts are what `change` makes of them.
///
/// # Safety
/// As of [`look_below`].
pub unsafe fn change_below(
    node: *mut pg_sys::Node,
    change: Change,
    context: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: the caller's.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_Query => change_query(node.cast(), change, context, 0).cast(),
            _ => change_expression(node, change, context),
        }
    }
}
