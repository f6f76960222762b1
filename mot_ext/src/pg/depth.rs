//! How deep a walk over an expression is.
//!
//! A walker of ours is entered and left through a guard for each node, which takes a multiple of
//! the stack that core's own walkers take. So it would reach `max_stack_depth` (54001) where heap
//! tables do not. Our walks only ask whether a faster way may be taken, and do not examine what
//! is too deep: then it may not.
use pgrx::pg_sys;
use std::ffi::c_void;

/// Nodes in one another that are examined: some 600 kB of stack, of 2 MB that `max_stack_depth`
/// allows by default. Expressions written by hand stay below 20.
const NODES_DEEP_MAX: u32 = 200;

/// Nodes in one another so far.
#[derive(Default)]
pub struct Depth(u32);

/// A walker, guarded; true ends the walk.
pub type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

/// Has core call the walker for the parts of a node. True: one of them ended the walk, or they lie
/// too deep.
///
/// # Safety
/// A node that core's walker knows, and the context of the walk, which `depth` is a part of.
pub unsafe fn is_found_below(
    depth: *mut Depth,
    node: *mut pg_sys::Node,
    walker: Walker,
    context: *mut c_void,
) -> bool {
    // SAFETY: the caller's promise. An error leaves the walk as a whole, and its depth with it.
    unsafe {
        if (*depth).0 == NODES_DEEP_MAX {
            return true;
        }
        (*depth).0 += 1;
        let is_found = pg_sys::expression_tree_walker(node, Some(walker), context);
        (*depth).0 -= 1;
        is_found
    }
}
