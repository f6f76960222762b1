//! One row by its tuple id: for index scans, TID scans, triggers, RETURNING and re-evaluation.
use super::resolve;
use super::slot::{self, Shown};
use super::view::{Keeping, View};
use crate::rows::tid;
use crate::rows::write::refuse_under_old_snapshot;
use crate::storage;
use crate::transaction::clock::{PgClock, PgSnapshot, narrow};
use crate::transaction::session;
use mot_engine::{Now, Slot, TableRef, VersionRef, Xid};
use pgrx::pg_sys::{self, SnapshotType::*};

/// A row that an index scan has found, on its way from the index to the table's callback: one
/// look-up serves both.
#[derive(Clone, Copy)]
pub struct Handed {
    pub row: Slot,
    pub version: VersionRef,
}

/// A state that a scan has found under SnapshotDirty, copied while the engine kept it.
#[derive(Clone, Copy)]
pub struct HandedCopy {
    pub tuple: pg_sys::HeapTuple,
    /// The transaction that inserts it; invalid if that is over.
    pub inserter: pg_sys::TransactionId,
    /// The transaction that replaces or deletes it; invalid if none does.
    pub replacer: pg_sys::TransactionId,
}

impl HandedCopy {
    /// A copy of a state in the current memory context; `by` is the transaction to wait for.
    ///
    /// # Safety
    /// The version is there until this returns.
    pub unsafe fn new(shown: Shown, by: Option<Xid>) -> HandedCopy {
        let is_inserter = by == Some(shown.version.xid());
        let by = by.map_or(pg_sys::InvalidTransactionId, narrow);
        let (inserter, replacer) = match is_inserter {
            true => (by, pg_sys::InvalidTransactionId),
            false => (pg_sys::InvalidTransactionId, by),
        };
        HandedCopy {
            // SAFETY: the caller's version.
            tuple: unsafe { slot::copy(shown) },
            inserter,
            replacer,
        }
    }

    /// Says in a SnapshotDirty which transaction to wait for.
    ///
    /// # Safety
    /// The snapshot of the scan.
    pub unsafe fn name_in(&self, snapshot: pg_sys::Snapshot) {
        // SAFETY: the caller's snapshot, which is the scanning function's own.
        unsafe {
            (*snapshot).xmin = self.inserter;
            (*snapshot).xmax = self.replacer;
            // Core waits for the transaction; there is no shorter wait for a speculative insertion.
            (*snapshot).speculativeToken = 0;
        }
    }
}

/// What core keeps between fetches of an index scan; core's part first.
#[repr(C)]
pub struct IndexFetch {
    core: pg_sys::IndexFetchTableData,
    /// Found by the index a moment ago; taken by the fetch.
    pub handed: Option<Handed>,
    /// The same under SnapshotDirty.
    pub handed_copy: Option<HandedCopy>,
    /// The table's storage, from the first row on.
    table: Option<TableRef>,
    /// The scan may outlive a savepoint whose rows it shows.
    keeping: Keeping,
}

/// `index_fetch_begin`.
pub unsafe fn begin(relation: pg_sys::Relation) -> *mut pg_sys::IndexFetchTableData {
    // SAFETY: as core calls it, in the memory context of the scan.
    unsafe {
        let fetch = pg_sys::palloc0(size_of::<IndexFetch>()).cast::<IndexFetch>();
        fetch.write(IndexFetch {
            core: pg_sys::IndexFetchTableData { rel: relation },
            handed: None,
            handed_copy: None,
            table: None,
            keeping: match crate::pg::is_in_portal_older_than_savepoint() {
                true => Keeping::Passing,
                false => Keeping::Kept,
            },
        });
        fetch.cast()
    }
}

/// `index_fetch_reset`.
pub unsafe fn reset(fetch: *mut pg_sys::IndexFetchTableData) {
    // SAFETY: one that `begin` made.
    unsafe {
        (*fetch.cast::<IndexFetch>()).handed = None;
        (*fetch.cast::<IndexFetch>()).handed_copy = None;
    }
}

/// `index_fetch_end`.
pub unsafe fn end(fetch: *mut pg_sys::IndexFetchTableData) {
    // SAFETY: one that `begin` made.
    unsafe { pg_sys::pfree(fetch.cast()) };
}

/// `index_fetch_tuple`: shows what the index has just found under the same snapshot. There is one
/// version of a row for a snapshot, so core is never to call again.
pub unsafe fn tuple(
    fetch: *mut pg_sys::IndexFetchTableData,
    tid: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
    calls_again: *mut bool,
    is_dead: *mut bool,
) -> bool {
    // SAFETY: as core calls it.
    unsafe {
        *calls_again = false;
        if !is_dead.is_null() {
            *is_dead = false;
        }
        let fetch = &mut *fetch.cast::<IndexFetch>();
        let relation = fetch.core.rel;
        let table = *fetch.table.get_or_insert_with(|| storage::table(relation));
        if (*snapshot).snapshot_type == SNAPSHOT_DIRTY {
            let copy = fetch.handed_copy.take();
            let Some(copy) = copy.filter(|copy| tid::same((*copy.tuple).t_self, *tid)) else {
                return false;
            };
            copy.name_in(snapshot);
            slot::show_tuple(slot, copy.tuple);
            return true;
        }
        let handed = fetch.handed.take();
        let handed =
            handed.filter(|handed| tid::same(tid::of(table, handed.row, handed.version), *tid));
        let is_mvcc = (*snapshot).snapshot_type == SNAPSHOT_MVCC;
        let found = match handed {
            Some(handed) => Some(handed),
            // The id's row is meant, in whatever version the snapshot sees.
            None => tid::name(table, *tid).and_then(|name| {
                let session = session::session();
                let view = View::new((*relation).rd_id, table, snapshot);
                let version = view.visible(session, table, name.row)?;
                Some(Handed {
                    row: name.row,
                    version,
                })
            }),
        };
        let Some(Handed { row, version }) = found else {
            return false;
        };
        if (*snapshot).snapshot_type == SNAPSHOT_SELF && is_other_entry(table, *tid, version) {
            return false;
        }
        *tid = tid::of(table, row, version);
        let shown = Shown {
            relation: (*relation).rd_id,
            table,
            row,
            version,
        };
        if is_mvcc && fetch.keeping == Keeping::Kept {
            slot::show(slot, shown);
        } else {
            slot::show_copy(slot, shown);
        }
        true
    }
}

/// Whether the row's state has other keys than the state that a tuple id names. So core asks when a
/// constraint is due: it means the entries of the named state, and a change of keys has made
/// others, which the change has reported to core. On heap it has ended the HOT chain.
unsafe fn is_other_entry(
    table: TableRef,
    tid: pg_sys::ItemPointerData,
    version: VersionRef,
) -> bool {
    let Some(name) = tid::name(table, tid) else {
        return false;
    };
    // SAFETY: no snapshot: own states are meant, and what they replaced.
    let named = unsafe { resolve::named(table, name, std::ptr::null_mut()) };
    named.is_some_and(|named| session::session().have_keys_changed(named, version))
}

/// `tuple_fetch_row_version`.
#[allow(non_upper_case_globals)]
pub unsafe fn row_version(
    relation: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as core calls it: an open relation, a tuple id, a valid snapshot, a slot of the
    // relation's row type.
    unsafe {
        let (session, table) = (session::session(), storage::table(relation));
        let Some(name) = tid::name(table, *tid) else {
            return false;
        };
        let relation_oid = (*relation).rd_id;
        let version = match (*snapshot).snapshot_type {
            SNAPSHOT_MVCC | SNAPSHOT_SELF => View::new(relation_oid, table, snapshot)
                .visible(session, table, name.row)
                .filter(|version| tid::same(tid::of(table, name.row, *version), *tid)),
            _ => resolve::named(table, name, snapshot),
        };
        let Some(version) = version else {
            if (*snapshot).snapshot_type == SNAPSHOT_ANY {
                // ON CONFLICT has met the row a moment ago. It came and went behind this snapshot,
                // so no reader was left to see it. A heap keeps such a row, and core says the same.
                refuse_under_old_snapshot("concurrent update");
            }
            return false;
        };
        // A trigger's row may be the transaction's own, and a savepoint in the trigger takes
        // nothing of it: it is older. But what a slot shows may outlive the statement, so it is
        // copied.
        let shown = Shown {
            relation: relation_oid,
            table,
            row: name.row,
            version,
        };
        slot::show_copy(slot, shown);
        if (*snapshot).snapshot_type == SNAPSHOT_ANY {
            // RETURNING of DELETE, and what triggers are fired for: heap's tuples name the writer.
            let upon = session.upon(&PgClock, table, name.row, |version| name.is(version));
            slot::set_upon(slot, upon);
        }
        true
    }
}

/// `tuple_tid_valid`.
pub unsafe fn is_valid(scan: pg_sys::TableScanDesc, tid: pg_sys::ItemPointer) -> bool {
    // SAFETY: as core calls it.
    unsafe {
        let table = super::scan::state(scan).table;
        tid::name(table, *tid).is_some_and(|name| name.row < table.slots_end())
    }
}

/// `tuple_get_latest_tid`: the version of the row that the scan's snapshot sees, if the id names
/// one.
pub unsafe fn latest(scan: pg_sys::TableScanDesc, tid: pg_sys::ItemPointer) {
    // SAFETY: as core calls it.
    unsafe {
        let scan = super::scan::state(scan);
        if let Some(name) = tid::name(scan.table, *tid)
            && let Some(version) = scan.view.visible(scan.session, scan.table, name.row)
        {
            *tid = tid::of(scan.table, name.row, version);
        }
    }
}

/// `tuple_satisfies_snapshot`: whether a fetched row is what the snapshot sees of it.
pub unsafe fn satisfies(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    snapshot: pg_sys::Snapshot,
) -> bool {
    // SAFETY: as core calls it, with a slot that a callback of ours has filled.
    unsafe {
        let (session, table) = (session::session(), storage::table(relation));
        let tid = (*slot).tts_tid;
        let Some(name) = tid::name(table, tid) else {
            return false;
        };
        let seen = match (*snapshot).snapshot_type {
            SNAPSHOT_MVCC => session.visible(table, name.row, &PgSnapshot::new(snapshot)),
            _ => session.visible(table, name.row, &Now(&PgClock)),
        };
        seen.is_some_and(|version| tid::same(tid::of(table, name.row, version), tid))
    }
}
