//! Index scans by a comparison of rows: core's own paths. On 15 to 17 each is below a node that has
//! core's executor take our index for a btree (`plan_nodes/row_comparison.rs`).
//!
//! Core's planner makes such paths, for it takes our ordered indexes for btrees (`index_order`).
//! Any other path of such an index is left as it is.
use crate::pg::guard::guarded;
use crate::pg::list::cells;
use crate::pg::local::ProcessLocal;
use crate::pg::node::{List, Node};
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

/// Has the planner take an index of ours for such as compare rows.
pub fn allow(index: Node<'_, pg_sys::IndexOptInfo>) {
    // What is executed is found by the index's oid.
    index.set_relam(pg_sys::BTREE_AM_OID);
    if ASKS_FOR_BTREE {
        // For nothing else: estimates would read a btree's ends by an index-only scan, but for
        // such as an extension only supposes.
        index.set_hypothetical(true);
    }
}

/// Whether an index is ours: extensions suppose indexes that look like allowed ones.
#[pg_guard]
extern "C-unwind" fn is_ours(index: pg_sys::Oid) -> bool {
    storage::is_mot_index(index)
}

/// Whether an index may have been allowed.
fn is_allowed(index: Node<'_, pg_sys::IndexOptInfo>) -> bool {
    index.hypothetical() && index.relam() == pg_sys::BTREE_AM_OID
}

/// Puts a relation's paths that compare rows below nodes of ours: a plain walk over the paths, if
/// none does.
///
/// All paths of the relation are there.
pub fn lead(rel: Node<'_, pg_sys::RelOptInfo>) {
    for paths in [rel.pathlist(), rel.partial_pathlist()] {
        for (at, path) in paths.iter().enumerate() {
            if compares_rows(path) {
                paths.set(at, above(path));
            }
        }
    }
}

/// What a path consists of.
enum Parts<'p> {
    Index(Node<'p, pg_sys::IndexPath>),
    /// A scan of a bitmap.
    Bitmap(Node<'p, pg_sys::Path>),
    /// Several bitmaps as one.
    Bitmaps(List<'p, pg_sys::Path>),
    Other,
}

fn parts(path: Node<'_, pg_sys::Path>) -> Parts<'_> {
    if let Some(path) = path.cast() {
        Parts::Index(path)
    } else if let Some(scan) = path.cast::<pg_sys::BitmapHeapPath>() {
        scan.bitmapqual().map_or(Parts::Other, Parts::Bitmap)
    } else if let Some(both) = path.cast::<pg_sys::BitmapAndPath>() {
        Parts::Bitmaps(both.bitmapquals())
    } else if let Some(either) = path.cast::<pg_sys::BitmapOrPath>() {
        Parts::Bitmaps(either.bitmapquals())
    } else {
        Parts::Other
    }
}

/// Whether a path has a condition of rows on an index of ours, in a bitmap's tree, too.
fn compares_rows(path: Node<'_, pg_sys::Path>) -> bool {
    match parts(path) {
        Parts::Index(path) => {
            let index = path.index();
            is_allowed(index) && has_row_condition(path) && is_ours(index.indexoid())
        }
        Parts::Bitmap(path) => compares_rows(path),
        Parts::Bitmaps(paths) => paths.iter().any(compares_rows),
        Parts::Other => false,
    }
}

fn has_row_condition(path: Node<'_, pg_sys::IndexPath>) -> bool {
    path.conditions()
        .any(|(_, condition)| condition.tag() == T_RowCompareExpr)
}

/// Adds the indexes of a path that compare rows to a list of oids.
fn add_indexes(indexes: &mut *mut pg_sys::List, path: Node<'_, pg_sys::Path>) {
    match parts(path) {
        Parts::Bitmap(path) => add_indexes(indexes, path),
        Parts::Bitmaps(paths) => paths.iter().for_each(|path| add_indexes(indexes, path)),
        Parts::Index(found) if compares_rows(path) => {
            // SAFETY: a list of oids, or NULL.
            *indexes = unsafe { pg_sys::lappend_oid(*indexes, found.index().indexoid()) };
        }
        _ => {}
    }
}

/// The node above a path: as costly, with the same rows in the same order.
#[pg_guard]
extern "C-unwind" fn above(path: Node<'_, pg_sys::Path>) -> Node<'_, pg_sys::Path> {
    let mut node = pg_sys::CustomPath {
        path: path.fields(),
        custom_paths: List::of(std::iter::once(path)).as_ptr(),
        methods: &raw const PATHS.0,
        ..Default::default()
    };
    node.path.pathtype = T_CustomScan;
    // Workers share what is below, if anything.
    node.path.parallel_aware = false;
    if path.tag() == T_IndexPath {
        node.flags = pg_sys::CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
    }
    add_indexes(&mut node.custom_private, path);
    // SAFETY: the fields of the path below, and lists made here.
    unsafe { Node::new(node) }.path()
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
    // SAFETY: as core calls it: a path that was made above, with one below; the copy is a list.
    let (path, below, columns) = unsafe {
        let below = cells::<pg_sys::Plan>(plans)[0];
        let columns = pg_sys::copyObjectImpl((*below).targetlist.cast());
        (Node::enter(path), below, columns)
    };
    let mut node = pg_sys::CustomScan {
        custom_scan_tlist: columns.cast(),
        custom_private: path.custom_private(),
        flags: path.flags(),
        methods: &raw const METHODS.0,
        ..Default::default()
    };
    node.scan.plan.targetlist = targets;
    // Core hands the parameters that change on to the node below.
    node.scan.plan.lefttree = below;
    // SAFETY: a node of what core has passed.
    unsafe { Node::new(node) }.as_ptr().cast()
}
