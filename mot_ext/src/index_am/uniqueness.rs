//! Unique keys that the engine does not check: core asks for them in `aminsert`
//! (`storage/core_keys.rs`).
//!
//! The table's callback has entered the row before. So of two sessions that enter one key at the
//! same time at least one meets the other's row, and maybe both do. If both have to wait, they wait
//! for each other, as with an exclusion constraint, and one gets 40P01.
use crate::errors::or_raise;
use crate::pg::relation::Relation;
use crate::rows::tid;
use crate::storage;
use crate::table_am::target;
use crate::transaction::clock::PgClock;
use crate::transaction::wait::{Purpose, RowLockQueue};
use mot_engine::{Now, Rival};
use pgrx::pg_sys::{self, IndexUniqueCheck::*};

/// Whether no other row has the key that the row of a tuple id has now.
///
/// With UNIQUE_CHECK_PARTIAL a rival is the answer, finished or not: core asks again when the
/// constraint is due. Else a rival's transaction is waited for, and a row that stays raises 23505.
/// The index is unique in the catalog.
pub fn is_unique(
    heap: Relation<'_>,
    index: Relation<'_>,
    tid: pg_sys::ItemPointerData,
    asked: pg_sys::IndexUniqueCheck::Type,
) -> bool {
    let target = target::of(heap);
    let place = (target.table, storage::index(target.table, index));
    if place.1.is_unique() {
        return true;
    }
    // Of a state that a rollback took back there is nothing to ask.
    let Some(name) = tid::name(target.table, tid) else {
        return true;
    };
    let mut queue = RowLockQueue::new(target.relation).purpose(Purpose::Insert);
    loop {
        match or_raise(target.session.find_rival(&PgClock, place, name.row)) {
            Rival::None => return true,
            _ if asked == UNIQUE_CHECK_PARTIAL => return false,
            Rival::Unfinished(xid) => {
                queue.wait_to_enter(name.row, xid, place.1.relation_oid());
            }
            Rival::Live => {
                let now = Now(&PgClock);
                let version = target.session.visible(target.table, name.row, &now);
                if let Some(version) = version {
                    target.duplicate(place.1, name.row, None, version)
                }
            }
        }
    }
}
