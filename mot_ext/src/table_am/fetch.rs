//! One row by its tuple id: for index scans, TID scans, triggers, RETURNING and re-evaluation.
use super::resolve;
use super::scan::OpenScan;
use super::slot::{self, Shown};
use super::view::{Keeping, View};
use crate::pg::argument::{Argument, Out};
use crate::pg::heap_tuple::OwnTuple;
use crate::pg::node::Field;
use crate::pg::relation::Relation;
use crate::pg::snapshot::Snapshot;
use crate::pg::tuple_slot::TupleSlot;
use crate::rows::tid;
use crate::rows::write::refuse_under_old_snapshot;
use crate::storage;
use crate::transaction::clock::{PgClock, PgSnapshot, narrow};
use crate::transaction::session;
use mot_engine::{Now, RowId, TableRef, VersionRef, Xid};
use pgrx::pg_sys::{self, SnapshotType::*};

/// A row that an index scan has found, on its way from the index to the table's callback: one
/// look-up serves both.
#[derive(Clone, Copy)]
pub struct Handed {
    pub row: RowId,
    pub version: VersionRef,
}

/// A state that a scan has found under SnapshotDirty, copied while the engine kept it.
pub struct HandedCopy {
    pub tuple: OwnTuple,
    /// The transaction that inserts it; invalid if that is over.
    pub inserter: pg_sys::TransactionId,
    /// The transaction that replaces or deletes it; invalid if none does.
    pub replacer: pg_sys::TransactionId,
}

impl HandedCopy {
    /// A copy of a state in the current memory context; `by` is the transaction to wait for.
    ///
    /// # Safety
    /// The memory context lives for as long as the copy.
    pub unsafe fn new(shown: Shown, by: Option<Xid>) -> HandedCopy {
        let is_inserter = by == Some(shown.version.xid());
        let by = by.map_or(pg_sys::InvalidTransactionId, narrow);
        let (inserter, replacer) = match is_inserter {
            true => (by, pg_sys::InvalidTransactionId),
            false => (pg_sys::InvalidTransactionId, by),
        };
        HandedCopy {
            // SAFETY: the caller's context.
            tuple: unsafe { slot::copy(shown) },
            inserter,
            replacer,
        }
    }

    /// The state's tuple id.
    pub fn tid(&self) -> pg_sys::ItemPointerData {
        self.tuple.tid()
    }

    /// Shows it, and says in the scan's SnapshotDirty which transaction to wait for.
    ///
    /// # Safety
    /// The slot is of the row type of the state's table.
    pub unsafe fn show(&self, snapshot: Snapshot<'_>, slot: TupleSlot<'_>) {
        snapshot.set_unfinished(self.inserter, self.replacer);
        // SAFETY: the caller's slot.
        unsafe { slot::show_tuple(slot, &self.tuple) };
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

impl Argument<*mut pg_sys::IndexFetchTableData> for &mut IndexFetch {
    #[inline]
    unsafe fn of(passed: *mut pg_sys::IndexFetchTableData) -> Self {
        // SAFETY: core passes what `begin` made; nobody else reads it until the callback returns.
        unsafe { &mut *passed.cast::<IndexFetch>() }
    }
}

/// `index_fetch_begin`.
pub fn begin(relation: Relation<'_>) -> *mut pg_sys::IndexFetchTableData {
    let fetch = IndexFetch {
        core: pg_sys::IndexFetchTableData {
            rel: relation.as_ptr(),
        },
        handed: None,
        handed_copy: None,
        table: None,
        keeping: match crate::pg::is_in_portal_older_than_savepoint() {
            true => Keeping::Passing,
            false => Keeping::Kept,
        },
    };
    // SAFETY: memory of its size, in the context of the scan.
    unsafe {
        let place = pg_sys::palloc0(size_of::<IndexFetch>()).cast::<IndexFetch>();
        place.write(fetch);
        place.cast()
    }
}

/// `index_fetch_reset`.
pub fn reset(fetch: &mut IndexFetch) {
    fetch.handed = None;
    fetch.handed_copy = None;
}

/// `index_fetch_end`.
///
/// # Safety
/// What `begin` made, which is used no more.
pub unsafe fn end(fetch: *mut pg_sys::IndexFetchTableData) {
    // SAFETY: memory of `begin`'s (caller).
    unsafe { pg_sys::pfree(fetch.cast()) };
}

impl IndexFetch {
    fn relation(&self) -> Relation<'_> {
        // SAFETY: core keeps the relation open as long as the scan.
        unsafe { Relation::enter(self.core.rel) }
    }

    /// The version that the snapshot sees of a row: the one that the index has handed over, if the
    /// id names it. Otherwise the id's row is meant, in whatever version the snapshot sees.
    fn take(
        &mut self,
        table: TableRef,
        tid: pg_sys::ItemPointerData,
        snapshot: Snapshot<'_>,
    ) -> Option<Handed> {
        let is_named = |handed: &Handed| tid::same(tid::of(table, handed.row, handed.version), tid);
        if let Some(handed) = self.handed.take().filter(is_named) {
            return Some(handed);
        }
        let row = tid::name(table, tid)?.row;
        // SAFETY: the view goes before the callback returns.
        let view = View::new(self.relation().oid(), table, unsafe { snapshot.unbound() });
        let version = view.visible(session::session(), table, row)?;
        Some(Handed { row, version })
    }
}

/// `index_fetch_tuple`: shows what the index has just found under the same snapshot. There is one
/// version of a row for a snapshot, so core is never to call again.
///
/// # Safety
/// The slot is of the table's row type, as core's are.
pub unsafe fn tuple(
    fetch: &mut IndexFetch,
    tid: Field<'_, pg_sys::ItemPointerData>,
    snapshot: Snapshot<'_>,
    slot: TupleSlot<'_>,
    calls_again: Out<'_, bool>,
    is_dead: Option<Out<'_, bool>>,
) -> bool {
    calls_again.set(false);
    if let Some(is_dead) = is_dead {
        is_dead.set(false);
    }
    let table = match fetch.table {
        Some(table) => table,
        None => *fetch.table.insert(storage::table(fetch.relation())),
    };
    let asked = tid.get();
    let kind = snapshot.kind();
    if kind == SNAPSHOT_DIRTY {
        let copy = fetch.handed_copy.take();
        let Some(copy) = copy.filter(|copy| tid::same(copy.tid(), asked)) else {
            return false;
        };
        // SAFETY: the caller's slot.
        unsafe { copy.show(snapshot, slot) };
        return true;
    }
    let Some(Handed { row, version }) = fetch.take(table, asked, snapshot) else {
        return false;
    };
    if kind == SNAPSHOT_SELF && is_other_entry(table, asked, version) {
        return false;
    }
    tid.set(tid::of(table, row, version));
    let shown = Shown {
        relation: fetch.relation().oid(),
        table,
        row,
        version,
    };
    // SAFETY: the caller's slot. Where it is kept, the statement's snapshot sees the version.
    unsafe {
        match kind == SNAPSHOT_MVCC && fetch.keeping == Keeping::Kept {
            true => slot::show(slot, shown),
            false => slot::show_copy(slot, shown),
        }
    }
    true
}

/// Whether the row's state has other keys than the state that a tuple id names. So core asks when a
/// constraint is due: it means the entries of the named state, and a change of keys has made
/// others, which the change has reported to core. On heap it has ended the HOT chain.
fn is_other_entry(table: TableRef, tid: pg_sys::ItemPointerData, version: VersionRef) -> bool {
    let Some(name) = tid::name(table, tid) else {
        return false;
    };
    // No snapshot: own states are meant, and what they replaced.
    let named = resolve::named(table, name, None);
    named.is_some_and(|named| session::session().have_keys_changed(named, version))
}

/// `tuple_fetch_row_version`.
///
/// # Safety
/// The slot is of the table's row type, as core's are.
#[allow(non_upper_case_globals)]
pub unsafe fn row_version(
    relation: Relation<'_>,
    tid: Field<'_, pg_sys::ItemPointerData>,
    snapshot: Snapshot<'_>,
    slot: TupleSlot<'_>,
) -> bool {
    let (session, table) = (session::session(), storage::table(relation));
    let asked = tid.get();
    let Some(name) = tid::name(table, asked) else {
        return false;
    };
    let version = match snapshot.kind() {
        SNAPSHOT_MVCC | SNAPSHOT_SELF => {
            // SAFETY: the view goes before the callback returns.
            let view = View::new(relation.oid(), table, unsafe { snapshot.unbound() });
            view.visible(session, table, name.row)
                .filter(|version| tid::same(tid::of(table, name.row, *version), asked))
        }
        _ => resolve::named(table, name, Some(snapshot)),
    };
    let Some(version) = version else {
        if snapshot.kind() == SNAPSHOT_ANY {
            // ON CONFLICT has met the row a moment ago. It came and went behind this snapshot, so
            // no reader was left to see it. A heap keeps such a row, and core says the same.
            refuse_under_old_snapshot("concurrent update");
        }
        return false;
    };
    let shown = Shown {
        relation: relation.oid(),
        table,
        row: name.row,
        version,
    };
    // A trigger's row may be the transaction's own, and a savepoint in the trigger takes nothing of
    // it: it is older. But what a slot shows may outlive the statement, so it is copied.
    // SAFETY: the caller's slot.
    unsafe { slot::show_copy(slot, shown) };
    if snapshot.kind() == SNAPSHOT_ANY {
        // RETURNING of DELETE, and what triggers are fired for: heap's tuples name the writer.
        let upon = session.upon(&PgClock, table, name.row, |version| name.is(version));
        slot::set_upon(slot, upon);
    }
    true
}

/// `tuple_tid_valid`.
pub fn is_valid(scan: &mut OpenScan, tid: Field<'_, pg_sys::ItemPointerData>) -> bool {
    let table = scan.state().table;
    tid::name(table, tid.get()).is_some_and(|name| name.row < table.row_ids_end())
}

/// `tuple_get_latest_tid`: the version of the row that the scan's snapshot sees, if the id names
/// one.
pub fn latest(scan: &mut OpenScan, tid: Field<'_, pg_sys::ItemPointerData>) {
    let scan = scan.state();
    if let Some(name) = tid::name(scan.table, tid.get())
        && let Some(version) = scan.view.visible(scan.session, scan.table, name.row)
    {
        tid.set(tid::of(scan.table, name.row, version));
    }
}

/// `tuple_satisfies_snapshot`: whether a fetched row, which a callback of ours has put into the
/// slot, is what the snapshot sees of it.
pub fn satisfies(relation: Relation<'_>, slot: TupleSlot<'_>, snapshot: Snapshot<'_>) -> bool {
    let (session, table) = (session::session(), storage::table(relation));
    let tid = slot.tid();
    let Some(name) = tid::name(table, tid) else {
        return false;
    };
    let seen = match snapshot.is_mvcc() {
        true => session.visible(table, name.row, &PgSnapshot::new(snapshot)),
        false => session.visible(table, name.row, &Now(&PgClock)),
    };
    seen.is_some_and(|version| tid::same(tid::of(table, name.row, version), tid))
}
