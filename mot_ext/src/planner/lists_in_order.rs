//! `a = 7 AND b IN (1, 2, 3) ORDER BY b` by an index on (a, b), before 17.
//!
//! An index scan here reads the ranges of a list in the order of the index, wherever in the index
//! the list's column is. Before 17 core takes that for granted of the first column alone. So each
//! such path is offered once more, with its order. From 17 on core offers it itself.
use crate::pg::list::{cells, items};
use crate::storage;
use pgrx::pg_sys::NodeTag::*;
use pgrx::pg_sys::ScanDirection::*;
use pgrx::{pg_guard, pg_sys};

/// Offers a relation's paths that have such lists with the order in which they give rows, if that
/// is of use: a plain walk over the paths, if there is none.
///
/// # Safety
/// The planner's own structures, with all paths of the relation. So for the others here.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the caller's.
    unsafe {
        if cells::<pg_sys::Path>((*rel).pathlist)
            .iter()
            .any(|path| has_list_behind(*path))
        {
            offer_ordered(root, rel, entry);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn offer_ordered(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the caller's: planner's structures, and the table is locked.
    unsafe {
        if !storage::is_mot_table((*entry).relid) || !pg_sys::has_useful_pathkeys(root, rel) {
            return;
        }
        // What is added changes the list, and may free paths of other kinds.
        let mut paths = items::<pg_sys::Path>((*rel).pathlist);
        paths.retain(|path| has_list_behind(*path));
        for path in paths {
            for direction in [ForwardScanDirection, BackwardScanDirection] {
                offer_with_order(root, path.cast(), direction);
            }
        }
    }
}

/// Whether a path gives no order, for it has a list behind the index's first column.
unsafe fn has_list_behind(path: *mut pg_sys::Path) -> bool {
    // SAFETY: a path, cast by its tag; an index clause has conditions of the index.
    unsafe {
        if (*path).type_ != T_IndexPath || !(*path).pathkeys.is_null() {
            return false;
        }
        let path = path.cast::<pg_sys::IndexPath>();
        cells::<pg_sys::IndexClause>((*path).indexclauses)
            .iter()
            .filter(|clause| (***clause).indexcol > 0)
            .flat_map(|clause| cells::<pg_sys::RestrictInfo>((**clause).indexquals))
            .any(|condition| {
                (*(**condition).clause.cast::<pg_sys::Node>()).type_ == T_ScalarArrayOpExpr
            })
    }
}

unsafe fn offer_with_order(
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::IndexPath,
    direction: pg_sys::ScanDirection::Type,
) {
    // SAFETY: a path of the planner's, copied into its memory.
    unsafe {
        let (rel, index) = ((*path).path.parent, (*path).indexinfo);
        if (*index).sortopfamily.is_null() {
            return;
        }
        let order = pg_sys::build_index_pathkeys(root, index, direction);
        let order = pg_sys::truncate_useless_pathkeys(root, rel, order);
        if order.is_null() {
            return;
        }
        let ordered = pg_sys::palloc(size_of::<pg_sys::IndexPath>()).cast::<pg_sys::IndexPath>();
        *ordered = *path;
        (*ordered).path.pathkeys = order;
        (*ordered).indexscandir = direction;
        pg_sys::add_path(rel, ordered.cast());
    }
}
