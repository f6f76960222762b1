//! What the planner is offered for memory-optimized tables beyond core's own paths, and what it
//! believes of them.
//!
//! | file | what |
//! |---|---|
//! | `costs`, `workers` | a table without pages; how many parallel workers |
//! | `filtered_scan` | paths to MOT Scan: conditions inside a scan of all rows |
//! | `aggregated_scan`, `aggregate` | paths to MOT Aggregate, and when they are offered |
//! | `index_order`, `unique_proof` | the order of an index, and what its uniqueness proves |
//! | `lists_in_order`, `row_comparisons` | index paths that core offers only from 17 or 18 on |
//! | `shown_method`, `shown_sizes`, `inlining` | queries over catalogs: btree's name, true sizes |
//!
//! The nodes are in `plan_nodes`, and the executor's README has the scans. Costs are core's, in its
//! unit and by its settings. Core's own SeqScan is always offered, too.
mod aggregate;
mod aggregated_scan;
mod costs;
mod filtered_scan;
mod index_order;
mod inlining;
mod lists_in_order;
mod row_comparisons;
mod shown_method;
mod shown_sizes;
mod unique_proof;
mod workers;

pub use shown_method::shown;

use crate::pg::hook::Previous;
use crate::pg::node::Node;
use crate::pg::version::index_am::{ASKS_FOR_BTREE, LISTS_KEEP_ORDER};
use crate::plan_nodes;
use pgrx::pg_sys;
use std::ffi::c_void;

static TABLES: Previous<pg_sys::get_relation_info_hook_type> = Previous::new(None);
static SCANS: Previous<pg_sys::set_rel_pathlist_hook_type> = Previous::new(None);
static UPPER: Previous<pg_sys::create_upper_paths_hook_type> = Previous::new(None);

/// Installs the hooks; called once, while the server loads its libraries.
pub fn init() {
    register(&plan_nodes::filtered_scan::METHODS.0);
    register(&plan_nodes::aggregated_scan::METHODS.0);
    if ASKS_FOR_BTREE {
        register(&plan_nodes::row_comparison::METHODS.0);
    }
    // SAFETY: libraries are being loaded; each is that hook's variable.
    unsafe {
        TABLES.install(
            &raw mut pg_sys::get_relation_info_hook,
            Some(get_relation_info),
        );
        SCANS.install(
            &raw mut pg_sys::set_rel_pathlist_hook,
            Some(set_rel_pathlist),
        );
        UPPER.install(
            &raw mut pg_sys::create_upper_paths_hook,
            Some(create_upper_paths),
        );
    }
    inlining::init();
}

/// Makes a node of ours known to core by its name.
fn register(methods: &'static pg_sys::CustomScanMethods) {
    // SAFETY: the methods live as long as the process.
    unsafe { pg_sys::RegisterCustomScanMethods(methods) };
}

/// Called for each table of each query, before its paths: a plain frame, for an error of another
/// hook jumps over it.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn get_relation_info(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    has_children: bool,
    rel: *mut pg_sys::RelOptInfo,
) {
    if let Some(previous) = TABLES.get() {
        // SAFETY: the arguments are PostgreSQL's own.
        unsafe { previous(root, relation, has_children, rel) };
    }
    // SAFETY: the planner's own structures, live until the query is planned.
    let (root, rel) = unsafe { (Node::enter(root), Node::enter(rel)) };
    index_order::describe(root, relation, rel);
}

/// Called for each table of each query that is planned: a plain frame that reads plain fields
/// first.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn set_rel_pathlist(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    position: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    if let Some(previous) = SCANS.get() {
        // SAFETY: as above.
        unsafe { previous(root, rel, position, entry) };
    }
    // SAFETY: as above.
    let (root, rel, entry) = unsafe { (Node::enter(root), Node::enter(rel), Node::enter(entry)) };
    if filtered_scan::may_be_offered(rel, entry) {
        // SAFETY: no view of the relation's paths is there.
        unsafe { filtered_scan::offer(root, rel, entry) };
    }
    if !LISTS_KEEP_ORDER {
        // SAFETY: core has made the relation's paths, under the table's lock; as above.
        unsafe { lists_in_order::offer(root, rel, entry) };
    }
    if ASKS_FOR_BTREE {
        row_comparisons::lead(rel);
    }
}

/// Called for each step of each query above its scans and joins: as above.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn create_upper_paths(
    root: *mut pg_sys::PlannerInfo,
    stage: pg_sys::UpperRelationKind::Type,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
    extra: *mut c_void,
) {
    if let Some(previous) = UPPER.get() {
        // SAFETY: as above.
        unsafe { previous(root, stage, input, output, extra) };
    }
    if stage != pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG {
        return;
    }
    // SAFETY: as above. At this stage (others have no input) what is passed beside them is of this
    // type.
    let (root, input, output, extra) = unsafe {
        let extra = Node::enter(extra.cast());
        (
            Node::enter(root),
            Node::enter(input),
            Node::enter(output),
            extra,
        )
    };
    if aggregated_scan::may_be_offered(root, input) {
        // SAFETY: no view of the output's paths is there.
        unsafe { aggregated_scan::offer(root, input, output, extra) };
    }
}
