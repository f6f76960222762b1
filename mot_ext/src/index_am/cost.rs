//! What a scan of an index costs.
//!
//! btree's estimate, without its pages: an index has none, and neither has its table while a query
//! is planned (`planner::costs`). Instead of a page of the table, each entry pays for the way to
//! its row.
use super::{short_range, skip};
use crate::pg::btree;
use crate::pg::node::Node;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Following an entry to its row, beyond what core charges for each: some cache misses. In
/// `cpu_tuple_cost`s.
const ENTRY_TO_ROW_COST: f64 = 1.5;

/// Looking for a range, or for a value of a column that is passed over: about as much as some rows.
/// In `cpu_tuple_cost`s.
const SEARCH_COST: f64 = 20.0;

/// What part of core's guess a range counts that ends at a value of an outer query or row. Core
/// takes a third of the table. Reading so many entries costs some times what a scan of all rows
/// costs. Reading few costs next to nothing, for each outer row.
const OUTER_SHARE: f64 = 0.3;

/// Conditions of a range, which btree's estimate asks of each entry: two.
const ENDS: f64 = 2.0;

/// Where core puts the estimates: costs in its own unit, a share of the table's rows, and two
/// figures of pages. They have btree's estimate.
struct Places<'a> {
    startup: &'a mut pg_sys::Cost,
    total: &'a mut pg_sys::Cost,
    selectivity: &'a mut pg_sys::Selectivity,
    correlation: &'a mut f64,
    pages: &'a mut f64,
}

/// `amcostestimate`: a plain frame with nothing to drop, for btree's estimate may raise.
///
/// # Safety
/// As core calls it.
#[allow(clippy::too_many_arguments, ffi_unwind_calls)]
pub unsafe extern "C-unwind" fn estimate(
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::IndexPath,
    loop_count: f64,
    startup: *mut pg_sys::Cost,
    total: *mut pg_sys::Cost,
    selectivity: *mut pg_sys::Selectivity,
    correlation: *mut f64,
    pages: *mut f64,
) {
    let of_btree = btree::cost_estimate();
    // SAFETY: the caller's arguments, as they came.
    unsafe {
        of_btree(
            root,
            path,
            loop_count,
            startup,
            total,
            selectivity,
            correlation,
            pages,
        );
    }
    // SAFETY: core's places, each one's own, which btree has filled.
    let mut places = unsafe {
        Places {
            startup: &mut *startup,
            total: &mut *total,
            selectivity: &mut *selectivity,
            correlation: &mut *correlation,
            pages: &mut *pages,
        }
    };
    // SAFETY: the planner's own structures, which live as long as it plans.
    unsafe {
        estimate_rows(
            Node::enter(root),
            Node::enter(path),
            loop_count,
            &mut places,
        )
    };
}

/// The costs of the rows that the scan reads. A range that is taken to be short is so for what
/// is above the scan, too: core has given the path its rows before.
#[pg_guard]
unsafe extern "C-unwind" fn estimate_rows(
    root: Node<'_, pg_sys::PlannerInfo>,
    path: Node<'_, pg_sys::IndexPath>,
    loop_count: f64,
    places: &mut Places<'_>,
) {
    let index = path.index();
    if let Some(reading) = skip::reading(root, path) {
        return of_open_column(index, &reading, places);
    }
    if let Some(rows) = short_range::rows(root, path) {
        shorten(index, rows / index.tuples().max(rows), places);
        path.path().set_rows(rows);
    } else if short_range::ends_at_outer_value(root, path) {
        shorten(index, *places.selectivity * OUTER_SHARE, places);
    }
    without_pages(index, loop_count, places);
}

/// Lets a scan read no more than a share of the table's rows.
fn shorten(index: Node<'_, pg_sys::IndexOptInfo>, share: f64, places: &mut Places<'_>) {
    let costs = Costs::now();
    let entry = costs.entry + ENDS * costs.operator;
    let fewer = (*places.selectivity - share).max(0.0) * index.tuples();
    *places.total = (*places.total - fewer * entry).max(*places.startup);
    *places.selectivity = share;
}

/// The costs of a scan whose conditions leave the index's first column open. Core's estimate from
/// 18 on takes it that btree passes over values, before that it does not.
fn of_open_column(
    index: Node<'_, pg_sys::IndexOptInfo>,
    reading: &skip::Reading,
    places: &mut Places<'_>,
) {
    let costs = Costs::now();
    let rows = *places.selectivity * index.tuples();
    let missed = (reading.entries - rows).max(0.0);
    let entry =
        costs.entry + reading.conditions as f64 * costs.operator + ENTRY_TO_ROW_COST * costs.row;
    *places.total = *places.startup
        + reading.searches * SEARCH_COST * costs.row
        + reading.entries * entry
        + missed * costs.row;
    *places.pages = 0.0;
    *places.correlation = 1.0;
}

/// Puts the way to the rows in place of the pages that btree's estimate counts.
fn without_pages(index: Node<'_, pg_sys::IndexOptInfo>, loop_count: f64, places: &mut Places<'_>) {
    // An index of no pages counts as one page, read once in all loops (`genericcostestimate`).
    let page = index.page_cost() / loop_count.max(1.0);
    let entries = (*places.selectivity * index.tuples()).max(1.0);
    let rows = entries * ENTRY_TO_ROW_COST * Costs::now().row;
    *places.total = (*places.total - page).max(*places.startup) + rows;
    *places.pages = 0.0;
    // Whatever the order of the rows: it is pages that core would count by it.
    *places.correlation = 1.0;
}

/// Settings of core's that say what work costs.
struct Costs {
    row: f64,
    entry: f64,
    operator: f64,
}

impl Costs {
    fn now() -> Costs {
        // SAFETY: plain variables of this process.
        unsafe {
            Costs {
                row: pg_sys::cpu_tuple_cost,
                entry: pg_sys::cpu_index_tuple_cost,
                operator: pg_sys::cpu_operator_cost,
            }
        }
    }
}
