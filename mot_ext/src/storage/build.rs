//! Building an index's storage from its table's rows.
use super::missing::missing_values;
use super::{file_of, find, or_raise, table};
use crate::clock::PgClock;
use crate::ddl::{duplicated, index_definition, keep_from_older};
use crate::{errors, session, xact};
use mot_engine::Build;
use mot_engine::key::IndexDefinition;
use pgrx::pg_sys;

/// Whether every snapshot may use an index that was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Built {
    /// It has an entry for each row that anybody sees.
    ForAll,
    /// A snapshot that is older than the build may see rows that have no entry.
    ForYounger,
}

/// Makes and fills the storage of an open index on an open table, both locked as `ambuild` finds
/// them. The storage of an earlier file of the index (REINDEX) is dropped. Raises 23505 when a
/// unique key repeats.
///
/// # Safety
/// Both relations are open, and the second is an index of the first.
pub unsafe fn build_index(heap: pg_sys::Relation, index: pg_sys::Relation) -> Built {
    let storage = table(heap);
    // SAFETY: the caller's open relations.
    let (mut definition, oid) = unsafe {
        let definition = IndexDefinition {
            file: file_of(index),
            ..index_definition(heap, index)
        };
        (definition, (*index).rd_id)
    };
    // Core takes a NOT NULL away without telling an access method. A key without a mark for NULL
    // would then have no place for one.
    for column in &mut definition.columns {
        column.nullable = true;
    }
    // SAFETY: the caller's open table, whose columns the definition names.
    definition.missing = unsafe { missing_values(heap, &definition.columns) };
    let session = session::session();
    // Also one that a rollback to a savepoint may bring back: it is dropped by this transaction
    // alone.
    let replaced = session.find_index(storage, oid.to_u32(), &PgClock);
    if replaced.is_some() {
        let xid = xact::write_xid();
        let dropped = xact::current().drop_index(session, &PgClock, storage, oid.to_u32(), xid);
        or_raise(dropped);
    }
    let xid = xact::write_xid();
    let made = xact::current().create_index(session, &PgClock, storage, &definition, xid);
    match made {
        Ok(Build::Done(_)) => Built::ForAll,
        Ok(Build::DoneBesideOlder(_)) => {
            if replaced.is_some() {
                // Core marks an index that was not there before.
                // SAFETY: the index's row in the catalog is there, and locked with the index.
                unsafe { keep_from_older(oid) };
            }
            Built::ForYounger
        }
        // SAFETY: the caller's open relations; writers are locked out.
        Ok(Build::Duplicate { slots, .. }) => unsafe { duplicated(heap, index, storage, slots[0]) },
        Err(error) => errors::raise(error),
    }
}

/// Builds an index to which core gave the file of one that it drops (ALTER TYPE that keeps an
/// index). Core does not call `ambuild` for it, and the storage goes with the old index.
pub fn rebuild_reused_index(heap: pg_sys::Oid, index: pg_sys::Oid) {
    // SAFETY: the statement that makes the index holds AccessExclusiveLock on both; what is opened
    // here is closed.
    unsafe {
        let lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        let heap = pg_sys::relation_open(heap, lock);
        let index = pg_sys::relation_open(index, lock);
        if find(heap).is_some() && build_index(heap, index) == Built::ForYounger {
            // Core sees no build, and marks nothing.
            keep_from_older((*index).rd_id);
        }
        pg_sys::relation_close(index, lock);
        pg_sys::relation_close(heap, lock);
    }
}
