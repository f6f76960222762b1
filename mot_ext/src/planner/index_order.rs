//! What core's planner believes of the indexes of memory-optimized tables, beyond what it reads in
//! the catalog.
//!
//! The engine orders texts by their bytes where it has no way to their collation. There the planner
//! is given another operator family, which orders so and has the same `=`. So no ORDER BY of that
//! column, MIN or MAX uses the index. But the columns behind it are in order where `=` fixes it,
//! and a merge join may sort its other side so. Where there is no such family the index gives no
//! order. Equality and IN need none.
//!
//! An index that is shown as a btree (`flips`) is ours here. Core makes a row comparison a
//! condition of btrees alone: the planner takes our ordered indexes for such. Before 18 the
//! executor reads the index itself, and a node of ours helps it (`row_comparisons`).
use super::{costs, row_comparisons, unique_proof};
use crate::index_am::access_method::Method;
use crate::index_am::flips;
use crate::pg::list::items;
use crate::transaction::clock::widen;
use crate::transaction::session;
use crate::{keys, storage};
use mot_engine::{TableRef, Xid};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Oids below this are core's own.
const FIRST_NORMAL_OBJECT: u32 = pg_sys::FirstNormalObjectId;

/// Called for each table of each query that is planned, from a plain frame: reads the access
/// methods first.
///
/// # Safety
/// The planner's own structure, as its hook has it.
#[inline]
pub unsafe fn describe(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    rel: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the caller's structure.
    unsafe {
        if relation.to_u32() >= FIRST_NORMAL_OBJECT && (*rel).fdwroutine.is_null() {
            describe_ours(root, relation, rel);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn describe_ours(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    rel: *mut pg_sys::RelOptInfo,
) {
    let ours = Method::Mot.oid();
    // SAFETY: the planner's own structures, fresh.
    unsafe {
        for index in pgrx::PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist).iter_ptr() {
            if flips::is_shown((*index).indexoid) {
                (*index).relam = ours;
            }
            if (*index).relam != ours {
                continue;
            }
            unique_proof::withhold(root, index);
            describe_order(index);
        }
        if storage::is_mot_table(relation) {
            let opened = pg_sys::relation_open(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
            let table = storage::described(opened);
            costs::forget_pages(root, opened, rel);
            pg_sys::relation_close(opened, pg_sys::NoLock as pg_sys::LOCKMODE);
            leave_out_young_indexes(root, rel, table);
        }
    }
}

/// Gives the planner the order of the keys.
unsafe fn describe_order(index: *mut pg_sys::IndexOptInfo) {
    // SAFETY: the planner's own description, and memory of its own.
    unsafe {
        let columns = || (0..(*index).nkeycolumns as usize).map(|at| column(index, at));
        if columns().all(|column| column.is_ordered()) {
            row_comparisons::allow(index);
            return;
        }
        let opened = pg_sys::index_open((*index).indexoid, pg_sys::NoLock as pg_sys::LOCKMODE);
        let definition = storage::definition_of(opened);
        pg_sys::index_close(opened, pg_sys::NoLock as pg_sys::LOCKMODE);
        let known = |at: usize| definition.map(|definition| &definition.columns[at]);
        if columns().enumerate().all(|(at, column)| {
            column.is_ordered() || known(at).is_some_and(|known| column.is_ordered_as(known))
        }) {
            row_comparisons::allow(index);
            return;
        }
        let families: Option<Vec<_>> = columns()
            .enumerate()
            .map(|(at, column)| column.order_family(known(at)))
            .collect();
        // Core asks `reverse_sort` without looking whether there is an order. Of an index that is
        // shown as a btree the families of the operator classes lie in the same place.
        (*index).sortopfamily = match families {
            Some(families) => {
                let bytes = size_of_val(&families[..]);
                let place = pg_sys::palloc(bytes).cast::<pg_sys::Oid>();
                place.copy_from_nonoverlapping(families.as_ptr(), families.len());
                place
            }
            None => std::ptr::null_mut(),
        };
    }
}

/// A key column of an index, from 0.
unsafe fn column(index: *mut pg_sys::IndexOptInfo, position: usize) -> keys::IndexColumn {
    // SAFETY: the planner's description of an index (caller) has a type, a family, a collation and
    // an expression for each key column.
    unsafe {
        let input = *(*index).opcintype.add(position);
        let own_type = match keys::is_polymorphic(input) {
            true => {
                let columns = items::<pg_sys::TargetEntry>((*index).indextlist);
                pg_sys::exprType((*columns[position]).expr.cast())
            }
            false => input,
        };
        keys::IndexColumn {
            input,
            family: *(*index).opfamily.add(position),
            collation: *(*index).indexcollations.add(position),
            own_type,
        }
    }
}

/// Takes the indexes from the planner that lack rows for snapshots as old as this session's oldest
/// one. Core does so where `indcheckxmin` is set, and a plan made so is kept only until its
/// session's snapshots are younger. The catalog knows of the primary's snapshots alone. These are a
/// standby's, which continue when it is promoted.
unsafe fn leave_out_young_indexes(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    table: TableRef,
) {
    let kept = session::session().indexes_kept_from_older(table);
    if kept.is_empty() {
        return;
    }
    // SAFETY: the planner's own structures, and a plain variable of this process.
    unsafe {
        let oldest = widen(pg_sys::TransactionXmin);
        for index in items::<pg_sys::IndexOptInfo>((*rel).indexlist) {
            let oid = (*index).indexoid.to_u32();
            let is_young = |(of, maker): &(u32, Xid)| *of == oid && *maker >= oldest;
            if kept.iter().any(is_young) {
                (*rel).indexlist = pg_sys::list_delete_ptr((*rel).indexlist, index.cast());
                (*(*root).glob).transientPlan = true;
            }
        }
    }
}
