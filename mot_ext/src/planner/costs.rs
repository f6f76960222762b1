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
use super::workers;
use crate::pg::node::{Any, Node};
use crate::pg::relation::Relation;
use crate::rows::tid;
use crate::storage;
use crate::table_am::relation::rows_at_least;
use pgrx::pg_sys;

/// Whether an expression names a relation's `ctid`.
pub fn names_place(tree: Any<'_>, relation: pg_sys::Index) -> bool {
    tree.names_any_of(relation, &[pg_sys::SelfItemPointerAttributeNumber])
}

/// Takes the pages of a memory-optimized table out of its description.
pub fn forget_pages(
    root: Node<'_, pg_sys::PlannerInfo>,
    relation: Relation<'_>,
    rel: Node<'_, pg_sys::RelOptInfo>,
) {
    if root.entry(rel).tablesample() {
        return;
    }
    if rel.rel_parallel_workers() == -1 {
        rel.set_parallel_workers(workers::for_pages(rel));
    }
    let least = rows_at_least(relation);
    if rel.tuples() < least {
        rel.set_tuples(least);
        for index in rel.indexlist() {
            index.set_tuples(least);
        }
    }
    let conditions = root.query().jointree();
    let names_place = conditions.is_some_and(|tree| names_place(tree.any(), rel.relid()));
    rel.set_pages(match names_place {
        true => tid::blocks(storage::described(relation)),
        false => 0,
    });
}
