//! Rows in tuple slots.
//!
//! A table's slots are of the kind of `rows/row_slot.rs`: core's for heap tuples, which can also
//! point at a version in the arena. The `HeapTupleData` for that is the slot's own.
use crate::rows::{row_slot, tid, tuple};
use crate::transaction::clock::narrow;
use mot_engine::{Slot, TableRef, Upon, VersionRef};
use pgrx::pg_sys;

/// The kind of a table's slots: the callback `slot_callbacks`.
pub unsafe fn kind(_relation: pg_sys::Relation) -> *const pg_sys::TupleTableSlotOps {
    row_slot::kind()
}

/// A version of a row of a relation.
#[derive(Clone, Copy)]
pub struct Shown {
    pub relation: pg_sys::Oid,
    pub table: TableRef,
    pub row: Slot,
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
/// An initialized slot of the relation's row type.
#[inline]
pub unsafe fn show(slot: *mut pg_sys::TupleTableSlot, shown: Shown) {
    // SAFETY: a slot of our kind has the form of core's for heap tuples, with a place for one.
    unsafe {
        // A state of the own transaction may be taken back, or leave its chain, while a slot shows
        // it.
        let is_settled = shown.version.is_known_committed();
        if !is_settled || !std::ptr::eq((*slot).tts_ops, row_slot::kind()) {
            return show_copy(slot, shown);
        }
        let own = &raw mut (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tupdata;
        tuple::point(&mut *own, shown.row, shown.version, shown.relation);
        (*own).t_self = shown.tid();
        tuple::store(slot, own);
    }
}

/// Whether a slot is of our kind, and owns nothing that would have to be given back.
///
/// # Safety
/// An initialized slot.
#[inline]
pub unsafe fn is_free(slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: the caller's slot.
    unsafe {
        std::ptr::eq((*slot).tts_ops, row_slot::kind())
            && (*slot).tts_flags & pg_sys::TTS_FLAG_SHOULDFREE as u16 == 0
    }
}

/// Gives a slot its own copy of its values.
///
/// # Safety
/// A filled slot.
pub unsafe fn own_values(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: one guarded call of the slot's own function; the slot is live (caller).
    #[allow(ffi_unwind_calls)]
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            (*(*slot).tts_ops).materialize.expect("every kind has it")(slot)
        });
    }
}

/// Shows a version that the slot's values have become, with its system columns. A slot of another
/// kind, which has none, learns the tuple id. It owns its values afterwards, as heapam's do: a row
/// trigger's result is in memory that a part of WITH may reset before RETURNING is through.
///
/// # Safety
/// A filled slot of the relation's row type; the version is the transaction's own.
#[inline]
pub unsafe fn show_written(slot: *mut pg_sys::TupleTableSlot, shown: Shown) {
    // SAFETY: the caller's slot.
    unsafe {
        if std::ptr::eq((*slot).tts_ops, row_slot::kind()) {
            show(slot, shown);
        } else {
            own_values(slot);
            (*slot).tts_tid = shown.tid();
            (*slot).tts_tableOid = shown.relation;
        }
    }
}

/// Shows a copy of a version, which the slot owns.
///
/// # Safety
/// An initialized slot of the relation's row type; the version is there until this returns.
pub unsafe fn show_copy(slot: *mut pg_sys::TupleTableSlot, shown: Shown) {
    // SAFETY: the caller's slot.
    unsafe {
        tuple::store_copy(slot, shown.row, shown.version, shown.relation);
        let tid = shown.tid();
        let is_of_heap_form = std::ptr::eq((*slot).tts_ops, row_slot::kind())
            || std::ptr::eq((*slot).tts_ops, &raw const pg_sys::TTSOpsHeapTuple);
        if is_of_heap_form {
            let owned = (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple;
            (*owned).t_self = tid;
            (*(*owned).t_data).t_ctid = tid;
        }
        (*slot).tts_tid = tid;
    }
}

/// Says in a slot's own copy what is upon the version, for code that takes the tuple itself
/// (triggers).
///
/// # Safety
/// As for [`show_copy`], which has filled the slot.
pub unsafe fn set_upon(slot: *mut pg_sys::TupleTableSlot, upon: Upon) {
    // SAFETY: the caller's slot, which owns its tuple if it is of our kind; another shows no system
    // columns.
    unsafe {
        match upon {
            Upon::Nothing => {}
            Upon::Lock(xid) => set_xmax(slot, narrow(xid)),
            Upon::State(xid, cid) => {
                set_xmax(slot, narrow(xid));
                if std::ptr::eq((*slot).tts_ops, row_slot::kind()) {
                    let owned = (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple;
                    (*(*owned).t_data).t_choice.t_heap.t_field3.t_cid = cid.0;
                }
            }
        }
    }
}

/// Says in a slot's own copy which transaction has locked the row, or the one that it replaced:
/// `xmax = 0` is how programs know the rows that INSERT ... ON CONFLICT DO UPDATE has inserted.
///
/// # Safety
/// As for [`show_copy`], which has filled the slot.
pub unsafe fn set_xmax(slot: *mut pg_sys::TupleTableSlot, xmax: pg_sys::TransactionId) {
    // SAFETY: a slot of our kind that owns its tuple; another shows no system columns.
    unsafe {
        if std::ptr::eq((*slot).tts_ops, row_slot::kind()) {
            let owned = (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple;
            (*(*owned).t_data).t_choice.t_heap.t_xmax = xmax;
        }
    }
}

/// A copy of a version as a whole heap tuple, in the current memory context.
///
/// # Safety
/// The version is there until this returns.
pub unsafe fn copy(shown: Shown) -> pg_sys::HeapTuple {
    // SAFETY: the caller's version; the copy is ours.
    unsafe {
        let copy = tuple::copy(shown.row, shown.version, shown.relation);
        (*copy).t_self = shown.tid();
        (*(*copy).t_data).t_ctid = (*copy).t_self;
        copy
    }
}

/// Shows a copy of a whole heap tuple, which the slot owns.
///
/// # Safety
/// An initialized slot of the tuple's row type.
pub unsafe fn show_tuple(slot: *mut pg_sys::TupleTableSlot, shown: pg_sys::HeapTuple) {
    // SAFETY: the caller's slot and tuple; core's way is for all kinds but ours.
    unsafe {
        let old = pg_sys::MemoryContextSwitchTo((*slot).tts_mcxt);
        let copy = pg_sys::heap_copytuple(shown);
        pg_sys::MemoryContextSwitchTo(old);
        if std::ptr::eq((*slot).tts_ops, row_slot::kind()) {
            tuple::store_owned(slot, copy);
        } else {
            pg_sys::ExecForceStoreHeapTuple(copy, slot, true);
        }
        (*slot).tts_tid = (*shown).t_self;
        (*slot).tts_tableOid = (*shown).t_tableOid;
    }
}
