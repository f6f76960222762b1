//! `a = 7 AND b IN (1, 2, 3) ORDER BY b` by an index on (a, b), before 17.
//!
//! An index scan here reads the ranges of a list in the order of the index, wherever in the index
//! the list's column is. Before 17 core takes that for granted of the first column alone. So each
//! such path is offered once more, with its order. From 17 on core offers it itself.
use crate::pg::node::Node;
use crate::storage;
use pgrx::pg_sys::NodeTag::*;
use pgrx::pg_sys::ScanDirection::*;
use pgrx::{pg_guard, pg_sys};

/// Offers a relation's paths that have such lists with the order in which they give rows, if that
/// is of use: a plain walk over the paths, if there is none.
///
/// # Safety
/// All paths of the relation are there, and its table is locked. No view of its paths is used after
/// that: core may free them.
pub unsafe fn offer(
    root: Node<'_, pg_sys::PlannerInfo>,
    rel: Node<'_, pg_sys::RelOptInfo>,
    entry: Node<'_, pg_sys::RangeTblEntry>,
) {
    if rel
        .pathlist()
        .iter()
        .any(|path| list_behind(path).is_some())
    {
        // SAFETY: the caller's.
        unsafe { offer_ordered(root, rel, entry) };
    }
}

/// # Safety
/// As for [`offer`].
#[pg_guard]
unsafe extern "C-unwind" fn offer_ordered(
    root: Node<'_, pg_sys::PlannerInfo>,
    rel: Node<'_, pg_sys::RelOptInfo>,
    entry: Node<'_, pg_sys::RangeTblEntry>,
) {
    // SAFETY: the planner's own structures.
    let is_of_use = || unsafe { pg_sys::has_useful_pathkeys(root.as_ptr(), rel.as_ptr()) };
    if !storage::is_mot_table(entry.relid()) || !is_of_use() {
        return;
    }
    // What is added changes the list, and may free paths of other kinds.
    let paths: Vec<_> = rel.pathlist().iter().filter_map(list_behind).collect();
    for path in paths {
        for direction in [ForwardScanDirection, BackwardScanDirection] {
            // SAFETY: the caller's; those in hand are paths by an index, which are not freed.
            unsafe { offer_with_order(root, rel, path, direction) };
        }
    }
}

/// A path by an index that gives no order, for it has a list behind the index's first column.
fn list_behind(path: Node<'_, pg_sys::Path>) -> Option<Node<'_, pg_sys::IndexPath>> {
    if path.pathkeys() {
        return None;
    }
    path.cast::<pg_sys::IndexPath>().filter(|path| {
        path.conditions()
            .any(|(column, condition)| column > 0 && condition.tag() == T_ScalarArrayOpExpr)
    })
}

/// # Safety
/// As for [`offer`].
unsafe fn offer_with_order(
    root: Node<'_, pg_sys::PlannerInfo>,
    rel: Node<'_, pg_sys::RelOptInfo>,
    path: Node<'_, pg_sys::IndexPath>,
    direction: pg_sys::ScanDirection::Type,
) {
    let index = path.index();
    if !index.sortopfamily() {
        return;
    }
    // SAFETY: the planner's own structures; a list of its own.
    let order = unsafe {
        let order = pg_sys::build_index_pathkeys(root.as_ptr(), index.as_ptr(), direction);
        pg_sys::truncate_useless_pathkeys(root.as_ptr(), rel.as_ptr(), order)
    };
    if order.is_null() {
        return;
    }
    let mut ordered = path.fields();
    ordered.path.pathkeys = order;
    ordered.indexscandir = direction;
    // SAFETY: a path of the relation. What goes for it is no index path, and so none of ours here.
    // Its pointers are those of the path that it is made of.
    unsafe { pg_sys::add_path(rel.as_ptr(), Node::new(ordered).path().as_ptr()) };
}
