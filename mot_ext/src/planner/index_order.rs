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
use crate::pg::node::{KeyColumn, Node};
use crate::pg::relation::{self, NO_LOCK};
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
#[inline]
pub fn describe(
    root: Node<'_, pg_sys::PlannerInfo>,
    relation: pg_sys::Oid,
    rel: Node<'_, pg_sys::RelOptInfo>,
) {
    if relation.to_u32() >= FIRST_NORMAL_OBJECT && !rel.fdwroutine() {
        describe_ours(root, relation, rel);
    }
}

#[pg_guard]
extern "C-unwind" fn describe_ours(
    root: Node<'_, pg_sys::PlannerInfo>,
    relation: pg_sys::Oid,
    rel: Node<'_, pg_sys::RelOptInfo>,
) {
    let ours = Method::Mot.oid();
    for index in rel.indexlist() {
        if flips::is_shown(index.indexoid()) {
            index.set_relam(ours);
        }
        if index.relam() != ours {
            continue;
        }
        unique_proof::withhold(root, index);
        if !index.has_order() {
            index.set_order(&directions(index));
        }
        describe_order(index);
    }
    if storage::is_mot_table(relation) {
        let table = relation::with(relation, NO_LOCK, |opened| {
            let table = storage::described(opened);
            costs::forget_pages(root, opened, rel);
            table
        });
        leave_out_young_indexes(root, rel, table);
    }
}

/// Of each key column, whether it descends, and whether NULLs come first.
fn directions(index: Node<'_, pg_sys::IndexOptInfo>) -> Vec<(bool, bool)> {
    const DESCENDS: i16 = pg_sys::INDOPTION_DESC as i16;
    const NULLS_FIRST: i16 = pg_sys::INDOPTION_NULLS_FIRST as i16;
    relation::with_index(index.indexoid(), NO_LOCK, |opened| {
        let order = |at: usize| opened.column_order(at);
        let columns = 0..index.nkeycolumns() as usize;
        columns
            .map(|at| (order(at) & DESCENDS != 0, order(at) & NULLS_FIRST != 0))
            .collect()
    })
}

/// Gives the planner the order of the keys.
fn describe_order(index: Node<'_, pg_sys::IndexOptInfo>) {
    let columns = || (0..index.nkeycolumns() as usize).map(|at| column(index, at));
    if columns().all(|column| column.is_ordered()) {
        row_comparisons::allow(index);
        return;
    }
    let definition = relation::with_index(index.indexoid(), NO_LOCK, |opened| {
        storage::definition_of(opened)
    });
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
    index.set_order_families(families.as_deref());
}

/// A key column of an index, from 0.
fn column(index: Node<'_, pg_sys::IndexOptInfo>, position: usize) -> keys::IndexColumn {
    let KeyColumn {
        input,
        family,
        collation,
        ..
    } = index.key_column(position);
    let own_type = match keys::is_polymorphic(input) {
        true => {
            let target = index.indextlist().get(position);
            let target = target.expect("an index has a target for each column");
            // SAFETY: a live expression.
            unsafe { pg_sys::exprType(target.expression().as_ptr()) }
        }
        false => input,
    };
    keys::IndexColumn {
        input,
        family,
        collation,
        own_type,
    }
}

/// Takes the indexes from the planner that lack rows for snapshots as old as this session's oldest
/// one. Core does so where `indcheckxmin` is set, and a plan made so is kept only until its
/// session's snapshots are younger. The catalog knows of the primary's snapshots alone. These are a
/// standby's, which continue when it is promoted.
fn leave_out_young_indexes(
    root: Node<'_, pg_sys::PlannerInfo>,
    rel: Node<'_, pg_sys::RelOptInfo>,
    table: TableRef,
) {
    let kept = session::session().indexes_kept_from_older(table);
    if kept.is_empty() {
        return;
    }
    // SAFETY: a plain variable of this process.
    let oldest = unsafe { widen(pg_sys::TransactionXmin) };
    let is_young = |index: pg_sys::Oid| {
        kept.iter()
            .any(|(of, maker): &(u32, Xid)| *of == index.to_u32() && *maker >= oldest)
    };
    // SAFETY: no view of the list is there.
    if unsafe { rel.retain_indexes(|index| !is_young(index.indexoid())) } {
        root.set_transient_plan();
    }
}
