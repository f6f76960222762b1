//! What core's planner is to believe of a table's pages: memory has none.
//!
//! A page costs core at least as much as a hundred rows, and four times that where it may have to
//! be read from elsewhere. A row in memory costs a few cache misses, wherever it is. With pages
//! in the estimate core reads a whole table of some twenty thousand rows, and sorts it, rather than
//! the first rows of an index. So for planning a table has no pages; an index scan has none either
//! (`index_am::cost`). What is left of core's costs is those of rows, entries and conditions.
//!
//! Three things go by pages, and keep them:
//! - the number of parallel workers, which is found here by the true number of pages;
//! - samples (TABLESAMPLE), whose methods take a share of the pages;
//! - ranges of tuple ids: core takes the share of the blocks for that of the rows. In a query that
//!   names `ctid` a table has as many pages as its tuple ids have blocks.
//!
//! A table of which VACUUM and ANALYZE have counted nothing yet counts as ten pages of rows at
//! least, as a heap table does: a plan of a new table that is kept is to be good when the table has
//! grown. It also reads by keys, and a SERIALIZABLE transaction then locks what it reads and not
//! the table.
use crate::pg::list::cells;
use crate::rows::tid;
use crate::storage;
use crate::table_am::relation::rows_at_least;
use pgrx::pg_sys;

/// Whether an expression names a relation's `ctid`.
///
/// # Safety
/// A tree of the planner's, or NULL.
pub unsafe fn names_place(tree: *mut pg_sys::Node, relation: pg_sys::Index) -> bool {
    // SAFETY: the caller's tree; the set is the planner's memory.
    unsafe {
        let mut columns = std::ptr::null_mut();
        pg_sys::pull_varattnos(tree, relation, &raw mut columns);
        let place =
            pg_sys::SelfItemPointerAttributeNumber - pg_sys::FirstLowInvalidHeapAttributeNumber;
        let is_named = pg_sys::bms_is_member(place, columns);
        pg_sys::bms_free(columns);
        is_named
    }
}

/// Takes the pages of a memory-optimized table out of its description.
///
/// # Safety
/// The planner's own structures, as its hook has them; the relation is one of ours, open.
pub unsafe fn forget_pages(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Relation,
    rel: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the caller's structures; each relation of a query has an entry.
    unsafe {
        let entry = *(*root).simple_rte_array.add((*rel).relid as usize);
        if !(*entry).tablesample.is_null() {
            return;
        }
        if (*rel).rel_parallel_workers == -1 {
            let pages = f64::from((*rel).pages);
            let most = pg_sys::max_parallel_workers_per_gather;
            (*rel).rel_parallel_workers = pg_sys::compute_parallel_worker(rel, pages, -1.0, most);
        }
        let least = rows_at_least(relation);
        if (*rel).tuples < least {
            (*rel).tuples = least;
            for index in cells::<pg_sys::IndexOptInfo>((*rel).indexlist) {
                (**index).tuples = (*rel).tuples;
            }
        }
        let conditions = (*(*root).parse).jointree.cast();
        (*rel).pages = match names_place(conditions, (*rel).relid) {
            true => tid::blocks(storage::described(relation)),
            false => 0,
        };
    }
}
