//! What core's planner believes of memory-optimized tables and their indexes, beyond what it reads in
//! the catalog.
//!
//! - Tables are foreign tables. The planner goes by the range table entry, which the rewriter keeps
//!   true. An extension that puts another table into a rewritten query, as Citus does with a shard, may
//!   leave the entry's `relkind` as it was. Core would scan the table by an access method, which it has
//!   not, and crash. The hook is called before the planner chooses how to scan. What core reads of the
//!   entry earlier is the kind of row mark, which is the same for heap tables (`lock_rows`). A target of
//!   INSERT does not come here (`modify/begin.rs`).
//! - Families of indexes are btree's, which order and compare as ours do (`sortopfamily`, which core
//!   finds by each class's `<`). Core knows an equality by btree's
//!   families, and takes an index as a proof that a join meets one row at most only where the equality is of the index's family.
//! - That proof is kept from an index where it would not hold: under a snapshot that may be older than the index, for such a snapshot may see several
//!   rows of one key (a heap table's planner takes it there); and where the query compares in a way in which values are equal that are not the
//!   same, for a key is unique by its bytes: by a nondeterministic collation, or times without zone as times with it. Core asks whether uniqueness is `immediate` before each such proof, and for nothing else.
use super::handler;
use super::private::{cells, items};
use crate::ddl;
use crate::pg::depth::{Depth, is_found_below};
use crate::relation;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::c_void;

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

/// Called for each table of each query that is planned: a plain frame that looks at the wrapper first.
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
        let wrapper = (*rel).fdwroutine;
        if wrapper.is_null() || !handler::is_routine(wrapper) {
            return;
        }
        let entry = *(*root).simple_rte_array.add((*rel).relid as usize);
        (*entry).relkind = pg_sys::RELKIND_FOREIGN_TABLE as _;
        if !(*rel).indexlist.is_null() {
            describe_indexes(root, rel);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn describe_indexes(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the planner's own structures, fresh: an index has a family for each key column.
    unsafe {
        for index in cells::<pg_sys::IndexOptInfo>((*rel).indexlist) {
            let index = *index;
            if !(*index).sortopfamily.is_null() {
                let columns = (*index).nkeycolumns as usize;
                std::ptr::copy((*index).sortopfamily, (*index).opfamily, columns);
            }
            if (*index).unique
                && (*index).immediate
                && (may_be_younger((*index).indexoid) || is_compared_loosely(root, index))
            {
                (*index).immediate = false;
            }
        }
    }
}

/// Whether a snapshot of this transaction may be older than the index: what it sees was never looked over for duplicates.
unsafe fn may_be_younger(index: pg_sys::Oid) -> bool {
    let made_by = relation::maker_of_index(index);
    // SAFETY: a plain variable of this process.
    unsafe { !pg_sys::TransactionIdPrecedes(made_by, pg_sys::TransactionXmin) }
}

/// Whether a key of the index has text or times, and the query compares anything in a way in which two of those may be one.
unsafe fn is_compared_loosely(
    root: *mut pg_sys::PlannerInfo,
    index: *mut pg_sys::IndexOptInfo,
) -> bool {
    // SAFETY: the planner's own structures; the index has a collation, or none, and an input type for each key column. Where a table is planned without
    // a query there is no tree, or an empty one.
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
