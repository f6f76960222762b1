//! Where the planner must not take a unique index as a proof that a join meets one row at most.
//!
//! - Under a snapshot that may be older than the index. Such a snapshot may see several rows of one
//!   key; a heap table's planner takes the proof all the same.
//! - Where the query compares in a way in which values are equal that are not the same: by a
//!   nondeterministic collation, or times without zone as times with it. A key is unique by its
//!   bytes.
//!
//! Core asks whether uniqueness is `immediate` before each such proof, and for nothing else.
use crate::pg::depth::{Depth, is_found_below};
use crate::pg::node::{Any, Node};
use crate::transaction::relation;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::c_void;

/// Keeps the proof from an index where it would not hold. The index is locked.
pub fn withhold(root: Node<'_, pg_sys::PlannerInfo>, index: Node<'_, pg_sys::IndexOptInfo>) {
    if index.unique()
        && index.immediate()
        && (relation::may_be_younger(index.indexoid()) || is_compared_loosely(root, index))
    {
        index.set_immediate(false);
    }
}

/// Whether a key of the index has text or times, and the query compares anything in a way in which
/// two of those may be one.
fn is_compared_loosely(
    root: Node<'_, pg_sys::PlannerInfo>,
    index: Node<'_, pg_sys::IndexOptInfo>,
) -> bool {
    let is_concerned = index.key_columns().any(|column| {
        column.collation != pg_sys::InvalidOid
            || matches!(column.input, pg_sys::TIMESTAMPOID | pg_sys::DATEOID)
    });
    if !is_concerned {
        return false;
    }
    let query = root.query();
    // Where a table is planned without a query there is no tree, or an empty one. Conditions of a
    // view that is a security barrier are kept apart, if it is changed through.
    query.jointree().is_some_and(|tree| is_loose(tree.any()))
        || query
            .rtable()
            .iter()
            .any(|entry| entry.securityQuals().tree().is_some_and(is_loose))
}

/// Whether a tree compares so.
fn is_loose(tree: Any<'_>) -> bool {
    let mut depth = Depth::default();
    // SAFETY: a live tree of joins and conditions, and the walk's own depth.
    unsafe { compares_loosely(tree.as_ptr(), (&raw mut depth).cast()) }
}

/// Whether an operator compares so.
fn is_loose_operator(call: Node<'_, pg_sys::OpExpr>) -> bool {
    let collation = call.inputcollid();
    let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: catalog look-ups.
    unsafe {
        if collation != pg_sys::InvalidOid && !pg_sys::get_collation_isdeterministic(collation) {
            return true;
        }
        pg_sys::op_input_types(call.opno(), &raw mut left, &raw mut right);
    }
    left != right && (left == pg_sys::TIMESTAMPTZOID || right == pg_sys::TIMESTAMPTZOID)
}

/// The walker: true ends the walk.
#[pg_guard]
unsafe extern "C-unwind" fn compares_loosely(node: *mut pg_sys::Node, depth: *mut c_void) -> bool {
    // SAFETY: NULL, or a node of the tree that is walked.
    let Some(tree) = (unsafe { Node::enter_if_any(node) }) else {
        return false;
    };
    if tree.cast().is_some_and(is_loose_operator) {
        return true;
    }
    // SAFETY: the walk's own node and depth.
    unsafe { is_found_below(depth.cast(), node, compares_loosely, depth) }
}
