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
use crate::pg::list::items;
use crate::transaction::relation;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::c_void;

/// Keeps the proof from an index where it would not hold.
///
/// # Safety
/// The planner's own structures; the index is locked.
pub unsafe fn withhold(root: *mut pg_sys::PlannerInfo, index: *mut pg_sys::IndexOptInfo) {
    // SAFETY: the caller's structures.
    unsafe {
        if (*index).unique
            && (*index).immediate
            && (relation::may_be_younger((*index).indexoid) || is_compared_loosely(root, index))
        {
            (*index).immediate = false;
        }
    }
}

/// Whether a key of the index has text or times, and the query compares anything in a way in which
/// two of those may be one.
unsafe fn is_compared_loosely(
    root: *mut pg_sys::PlannerInfo,
    index: *mut pg_sys::IndexOptInfo,
) -> bool {
    // SAFETY: the planner's own structures; the index has a collation, or none, and an input type
    // for each key column. Where a table is planned without a query there is no tree, or an empty
    // one.
    unsafe {
        let columns = (*index).nkeycolumns as usize;
        let concerned = |column: usize| {
            let input = *(*index).opcintype.add(column);
            *(*index).indexcollations.add(column) != pg_sys::InvalidOid
                || matches!(input, pg_sys::TIMESTAMPOID | pg_sys::DATEOID)
        };
        if !(0..columns).any(concerned) {
            return false;
        }
        let query = &*(*root).parse;
        let is_loose = |of: *mut pg_sys::Node| {
            let mut depth = Depth::default();
            compares_loosely(of, (&raw mut depth).cast())
        };
        // Conditions of a view that is a security barrier are kept apart, if it is changed through.
        let entries = items::<pg_sys::RangeTblEntry>(query.rtable);
        is_loose(query.jointree.cast())
            || entries
                .iter()
                .any(|entry| is_loose((**entry).securityQuals.cast()))
    }
}

/// The walker: true ends the walk.
#[pg_guard]
unsafe extern "C-unwind" fn compares_loosely(node: *mut pg_sys::Node, depth: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: a tree of joins and conditions; cast by tag.
    unsafe {
        if (*node).type_ == pg_sys::NodeTag::T_OpExpr {
            let call = &*node.cast::<pg_sys::OpExpr>();
            let collation = call.inputcollid;
            if collation != pg_sys::InvalidOid && !pg_sys::get_collation_isdeterministic(collation)
            {
                return true;
            }
            let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
            pg_sys::op_input_types(call.opno, &raw mut left, &raw mut right);
            if left != right && (left == pg_sys::TIMESTAMPTZOID || right == pg_sys::TIMESTAMPTZOID)
            {
                return true;
            }
        }
        is_found_below(depth.cast(), node, compares_loosely, depth)
    }
}
