//! Index scans by a comparison of rows: core's own paths. On 15 to 17 each is below a node that has
//! core's executor take our index for a btree (`plan_nodes/row_comparison.rs`).
//!
//! Core's planner makes such paths, for it takes our ordered indexes for btrees (`index_order`).
//! Any other path of such an index is left as it is.
use crate::pg::guard::guarded;
use crate::pg::list::{cells, list};
use crate::pg::local::ProcessLocal;
use crate::pg::version::index_am::ASKS_FOR_BTREE;
use crate::plan_nodes::row_comparison::{METHODS, NAME};
use crate::storage;
use pgrx::pg_sys::NodeTag::*;
use pgrx::{pg_guard, pg_sys};
use std::sync::LazyLock;

static PATHS: LazyLock<ProcessLocal<pg_sys::CustomPathMethods>> = LazyLock::new(|| {
    ProcessLocal(pg_sys::CustomPathMethods {
        CustomName: NAME.as_ptr(),
        PlanCustomPath: Some(guarded!(plan(root, rel, path, targets, clauses, plans))),
        ReparameterizeCustomPathByChild: None,
    })
});

/// Has the planner take an index for such as compare rows.
///
/// # Safety
/// The planner's own description, of an index of ours.
pub unsafe fn allow(index: *mut pg_sys::IndexOptInfo) {
    // SAFETY: the caller's. What is executed is found by the index's oid.
    unsafe {
        (*index).relam = pg_sys::BTREE_AM_OID;
        if ASKS_FOR_BTREE {
            // For nothing else: estimates would read a btree's ends by an index-only scan, but for
            // such as an extension only supposes.
            (*index).hypothetical = true;
        }
    }
}

/// Whether an index is ours: extensions suppose indexes that look like allowed ones.
#[pg_guard]
unsafe extern "C-unwind" fn is_ours(index: pg_sys::Oid) -> bool {
    storage::is_mot_index(index)
}

/// Whether an index may have been allowed.
unsafe fn is_allowed(index: *const pg_sys::IndexOptInfo) -> bool {
    // SAFETY: the planner's own description (caller).
    unsafe { (*index).hypothetical && (*index).relam == pg_sys::BTREE_AM_OID }
}

/// Puts a relation's paths that compare rows below nodes of ours: a plain walk over the paths, if
/// none does.
///
/// # Safety
/// The planner's own structures, with all paths of the relation. So for the others here.
pub unsafe fn lead(rel: *mut pg_sys::RelOptInfo) {
    // SAFETY: the caller's: lists of paths, whose cells are replaced in place.
    unsafe {
        for paths in [(*rel).pathlist, (*rel).partial_pathlist] {
            for (at, path) in cells::<pg_sys::Path>(paths).iter().enumerate() {
                if compares_rows(*path) {
                    (*(*paths).elements.add(at)).ptr_value = above(*path).cast();
                }
            }
        }
    }
}

/// Whether a path has a condition of rows on an index of ours, in a bitmap's tree, too.
unsafe fn compares_rows(path: *mut pg_sys::Path) -> bool {
    // SAFETY: a path, cast by its tag.
    unsafe {
        let any = |paths| {
            cells::<pg_sys::Path>(paths)
                .iter()
                .any(|one| compares_rows(*one))
        };
        match (*path).type_ {
            T_IndexPath => {
                let path = path.cast::<pg_sys::IndexPath>();
                let index = (*path).indexinfo;
                is_allowed(index) && has_row_condition(path) && is_ours((*index).indexoid)
            }
            T_BitmapHeapPath => compares_rows((*path.cast::<pg_sys::BitmapHeapPath>()).bitmapqual),
            T_BitmapAndPath => any((*path.cast::<pg_sys::BitmapAndPath>()).bitmapquals),
            T_BitmapOrPath => any((*path.cast::<pg_sys::BitmapOrPath>()).bitmapquals),
            _ => false,
        }
    }
}

unsafe fn has_row_condition(path: *const pg_sys::IndexPath) -> bool {
    // SAFETY: an index clause has conditions of the index.
    unsafe {
        cells::<pg_sys::IndexClause>((*path).indexclauses)
            .iter()
            .flat_map(|clause| cells::<pg_sys::RestrictInfo>((**clause).indexquals))
            .any(|condition| {
                (*(**condition).clause.cast::<pg_sys::Node>()).type_ == T_RowCompareExpr
            })
    }
}

/// Adds the indexes of a path that compare rows to a list of oids.
unsafe fn with_indexes(
    mut indexes: *mut pg_sys::List,
    path: *mut pg_sys::Path,
) -> *mut pg_sys::List {
    // SAFETY: as for `compares_rows`; a list of oids.
    unsafe {
        let below = match (*path).type_ {
            T_BitmapHeapPath => {
                let path = path.cast::<pg_sys::BitmapHeapPath>();
                return with_indexes(indexes, (*path).bitmapqual);
            }
            T_BitmapAndPath => (*path.cast::<pg_sys::BitmapAndPath>()).bitmapquals,
            T_BitmapOrPath => (*path.cast::<pg_sys::BitmapOrPath>()).bitmapquals,
            _ if compares_rows(path) => {
                let index = (*path.cast::<pg_sys::IndexPath>()).indexinfo;
                return pg_sys::lappend_oid(indexes, (*index).indexoid);
            }
            _ => return indexes,
        };
        for path in cells::<pg_sys::Path>(below) {
            indexes = with_indexes(indexes, *path);
        }
        indexes
    }
}

/// The node above a path: as costly, with the same rows in the same order.
#[pg_guard]
unsafe extern "C-unwind" fn above(path: *mut pg_sys::Path) -> *mut pg_sys::CustomPath {
    // SAFETY: memory of the node's size in the planner's memory context, filled before use.
    unsafe {
        let node = pg_sys::palloc0(size_of::<pg_sys::CustomPath>()).cast::<pg_sys::CustomPath>();
        (*node).path = *path;
        (*node).path.type_ = T_CustomPath;
        (*node).path.pathtype = T_CustomScan;
        // Workers share what is below, if anything.
        (*node).path.parallel_aware = false;
        if (*path).type_ == T_IndexPath {
            (*node).flags = pg_sys::CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
        }
        (*node).custom_paths = list(&[path]);
        (*node).custom_private = with_indexes(std::ptr::null_mut(), path);
        (*node).methods = &raw const PATHS.0;
        node
    }
}

/// `PlanCustomPath`: the scan below evaluates the conditions.
unsafe fn plan(
    _root: *mut pg_sys::PlannerInfo,
    _rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    targets: *mut pg_sys::List,
    _clauses: *mut pg_sys::List,
    plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: as core calls it: a path that was made above, and zeroed memory of the node's size.
    unsafe {
        let below = cells::<pg_sys::Plan>(plans)[0];
        let node = pg_sys::palloc0(size_of::<pg_sys::CustomScan>()).cast::<pg_sys::CustomScan>();
        (*node).scan.plan.type_ = T_CustomScan;
        (*node).scan.plan.targetlist = targets;
        // Core hands the parameters that change on to the node below.
        (*node).scan.plan.lefttree = below;
        (*node).custom_scan_tlist = pg_sys::copyObjectImpl((*below).targetlist.cast()).cast();
        (*node).custom_private = (*path).custom_private;
        (*node).flags = (*path).flags;
        (*node).methods = &raw const METHODS.0;
        node.cast()
    }
}
