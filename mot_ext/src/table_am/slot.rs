//! Rows in tuple slots.
//!
//! A table's slots are of the kind of `rows/row_slot.rs`: core's for heap tuples, which can also
//! point at a version in the arena. The `HeapTupleData` for that is the slot's own.
use crate::pg::heap_tuple::OwnTuple;
use crate::pg::memory::within;
use crate::pg::tuple_slot::TupleSlot;
use crate::rows::{row_slot, tid, tuple};
use crate::transaction::clock::narrow;
use mot_engine::{RowId, TableRef, Upon, VersionRef};
use pgrx::pg_sys;

/// The kind of a table's slots: the callback `slot_callbacks`.
pub fn kind(_relation: pg_sys::Relation) -> *const pg_sys::TupleTableSlotOps {
    row_slot::kind()
}

/// A version of a row of a relation.
#[derive(Clone, Copy)]
pub struct Shown {
    pub relation: pg_sys::Oid,
    pub table: TableRef,
    pub row: RowId,
    pub version: VersionRef,
}

impl Shown {
    #[inline]
    fn tid(&self) -> pg_sys::ItemPointerData {
        tid::of(self.table, self.row, self.version)
    }
}

/// Shows a version: a committed one in place, for the statement's snapshot keeps it, and one of the
/// own transaction as a copy.
///
/// # Safety
/// The slot is of the relation's row type. It shows the version for no longer than the statement's
/// snapshot is registered.
#[inline]
pub unsafe fn show(slot: TupleSlot<'_>, shown: Shown) {
    // A state of the own transaction may be taken back, or leave its chain, while a slot shows it.
    if shown.version.is_known_committed()
        && let Some(heap) = row_slot::of(slot)
    {
        let own = heap.place();
        // SAFETY: the slot's own place, which lives as long as the slot. The snapshot keeps the
        // version, which is of the slot's row type (caller).
        unsafe {
            tuple::point(&mut *own, shown.tid(), shown.version, shown.relation);
            heap.point(own);
        }
    } else {
        // SAFETY: the caller's slot.
        unsafe { show_copy(slot, shown) };
    }
}

/// Whether a slot is of our kind, and owns nothing that would have to be given back.
#[inline]
pub fn is_free(slot: TupleSlot<'_>) -> bool {
    slot.is_of(row_slot::kind()) && !slot.has_own()
}

/// Empties a slot of any kind.
#[inline]
pub fn clear(slot: TupleSlot<'_>) {
    match row_slot::of(slot) {
        Some(heap) => heap.clear(),
        None => slot.clear(),
    }
}

/// Shows a version that the slot's values have become, with its system columns. A slot of another
/// kind, which has none, learns the tuple id. It owns its values afterwards, as heapam's do: a row
/// trigger's result is in memory that a part of WITH may reset before RETURNING is through.
///
/// # Safety
/// A filled slot of the relation's row type; the version is the transaction's own.
#[inline]
pub unsafe fn show_written(slot: TupleSlot<'_>, shown: Shown) {
    if slot.is_of(row_slot::kind()) {
        // SAFETY: the caller's slot; the transaction keeps its own version.
        unsafe { show(slot, shown) };
    } else {
        // SAFETY: the caller's filled slot.
        unsafe { slot.materialize() };
        slot.set_row(shown.tid(), shown.relation);
    }
}

/// Shows a copy of a version, which the slot owns.
///
/// # Safety
/// The slot is of the relation's row type.
pub unsafe fn show_copy(slot: TupleSlot<'_>, shown: Shown) {
    // SAFETY: the caller's slot.
    unsafe { tuple::store_copy(slot, shown.tid(), shown.version, shown.relation) };
}

/// Says in a slot's own copy what is upon the version, for code that takes the tuple itself
/// (triggers). A slot of another kind shows no system columns.
pub fn set_upon(slot: TupleSlot<'_>, upon: Upon) {
    match upon {
        Upon::Nothing => {}
        Upon::Lock(xid) => set_xmax(slot, narrow(xid)),
        Upon::State(xid, cid) => {
            set_xmax(slot, narrow(xid));
            if let Some(heap) = row_slot::of(slot) {
                heap.change_own(|own| own.set_command(cid.0));
            }
        }
    }
}

/// Says in a slot's own copy which transaction has locked the row, or the one that it replaced:
/// `xmax = 0` is how programs know the rows that INSERT ... ON CONFLICT DO UPDATE has inserted. A
/// slot of another kind shows no system columns.
pub fn set_xmax(slot: TupleSlot<'_>, xmax: pg_sys::TransactionId) {
    if let Some(heap) = row_slot::of(slot) {
        heap.change_own(|own| own.set_xmax(xmax));
    }
}

/// A copy of a version as a whole heap tuple, in the current memory context.
///
/// # Safety
/// The memory context lives for as long as the copy.
pub unsafe fn copy(shown: Shown) -> OwnTuple {
    // SAFETY: the caller's context.
    unsafe { tuple::copy(shown.tid(), shown.version, shown.relation) }
}

/// Shows a copy of a whole heap tuple, which the slot owns.
///
/// # Safety
/// The slot is of the tuple's row type.
pub unsafe fn show_tuple(slot: TupleSlot<'_>, shown: &OwnTuple) {
    // SAFETY: the slot's memory lives as long as the slot, which is of the tuple's row type. Core's
    // way is for all kinds but ours.
    unsafe {
        let copy = within(slot.memory(), || shown.copied());
        match row_slot::of(slot) {
            Some(heap) => heap.give(copy),
            None => slot.force(copy),
        }
    }
    slot.set_row(shown.tid(), shown.table());
}
