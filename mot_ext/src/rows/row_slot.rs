//! The kind of slot in which rows are shown where they lie.
//!
//! It is core's slot of heap tuples, pointed at a version in the arena. There is one difference.
//! Where a heap tuple's header has `xmax`, `cmin` and `ctid`, a version has the engine's word
//! (`mot_engine/src/row/version.rs`). So this kind of slot answers for those system columns
//! (`xmax.rs`), and gives copies of the tuple a heap tuple's header. No code reads a header in the
//! arena in another way: a plan's expressions ask the slot, and PL/pgSQL, sorts and triggers keep
//! copies.
//!
//! A re-evaluation stores the rows that it fetches again as copies, which the slot owns
//! (`tuple::store_copy`).
use super::xmax;
use crate::pg::heap_tuple::OwnTuple;
use crate::pg::memory::within;
use crate::pg::tuple_slot::{HeapSlot, Stamp, TupleSlot};
use crate::transaction::clock::narrow;
use mot_engine::Upon;
use mot_engine::key::TAIL_MARK;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::c_int;
use std::sync::LazyLock;

/// Core's functions, some of them replaced.
struct Kind(pg_sys::TupleTableSlotOps);

// SAFETY: function pointers and a size, which never change.
unsafe impl Sync for Kind {}
// SAFETY: as above.
unsafe impl Send for Kind {}

static KIND: LazyLock<Kind> = LazyLock::new(|| {
    Kind(pg_sys::TupleTableSlotOps {
        getsysattr: Some(getsysattr),
        materialize: Some(materialize),
        get_heap_tuple: Some(get_heap_tuple),
        copy_heap_tuple: Some(copy_heap_tuple),
        copyslot: Some(copyslot),
        ..*heap()
    })
});

fn heap() -> &'static pg_sys::TupleTableSlotOps {
    // SAFETY: a constant of core's.
    unsafe { &pg_sys::TTSOpsHeapTuple }
}

/// The kind, to make slots of.
pub fn kind() -> *const pg_sys::TupleTableSlotOps {
    &raw const KIND.0
}

/// A slot of this kind, with its form.
#[inline]
pub fn of(slot: TupleSlot<'_>) -> Option<HeapSlot<'_>> {
    // SAFETY: this kind has the form of core's for heap tuples.
    slot.is_of(kind()).then(|| unsafe { HeapSlot::of(slot) })
}

/// A slot of this kind, or of core's for heap tuples.
pub fn of_heap_form(slot: TupleSlot<'_>) -> Option<HeapSlot<'_>> {
    let has_form = slot.is_of(kind()) || slot.is_of(heap());
    // SAFETY: both kinds have the form of core's for heap tuples.
    has_form.then(|| unsafe { HeapSlot::of(slot) })
}

/// A slot that core passes to a function of this kind.
///
/// # Safety
/// It is of this kind, and is used until the function returns.
unsafe fn entered<'p>(slot: *mut pg_sys::TupleTableSlot) -> HeapSlot<'p> {
    // SAFETY: the caller's slot.
    unsafe { HeapSlot::of(TupleSlot::enter(slot)) }
}

/// Whether a slot of this kind shows a tuple in the arena: only [`HeapSlot::point`] points it at
/// what it does not own.
fn is_in_place(slot: HeapSlot<'_>) -> bool {
    !slot.slot().has_own() && slot.has_tuple()
}

/// The command that made a row whose header is an image's: it is where a heap tuple has `xmax`.
fn command(xmax: pg_sys::TransactionId) -> pg_sys::CommandId {
    xmax.into_inner()
}

/// Makes a copy of an image a heap tuple that is neither locked nor deleted.
pub fn complete(copy: &mut OwnTuple) {
    let made_by = command(copy.xmax());
    // The engine keeps a version's ordinal where a heap tuple has its transaction's state. Beside
    // it is the mark of computed keys, which a copy has not.
    let state = pg_sys::HEAP_XACT_MASK as u16;
    copy.clear_marks(state, pg_sys::HEAP2_XACT_MASK as u16 | TAIL_MARK);
    copy.set_xmax(pg_sys::InvalidTransactionId);
    copy.set_command(made_by);
    copy.set_tid(copy.tid());
}

/// Whether a system column depends on what has become of the version: as on heap, `cmin` and `cmax`
/// are one.
fn shows_who_changed(column: c_int) -> bool {
    matches!(
        column,
        pg_sys::MinCommandIdAttributeNumber
            | pg_sys::MaxCommandIdAttributeNumber
            | pg_sys::MaxTransactionIdAttributeNumber
    )
}

#[pg_guard]
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn getsysattr(
    slot: *mut pg_sys::TupleTableSlot,
    column: c_int,
    is_null: *mut bool,
) -> pg_sys::Datum {
    // SAFETY: as core calls it: a filled slot of this kind.
    let entered = unsafe { entered(slot) };
    if shows_who_changed(column)
        && let Some(stamp) = entered.stamp()
    {
        // SAFETY: a place of core's.
        unsafe { *is_null = false };
        return who_changed(entered, stamp, column);
    }
    let of_heap = heap().getsysattr.expect("every kind has it");
    // SAFETY: one guarded call of core's function for its own kind, whose form the slot has.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| of_heap(slot, column, is_null)) }
}

/// A system column that depends on what has become of the version.
fn who_changed(slot: HeapSlot<'_>, stamp: Stamp, column: c_int) -> pg_sys::Datum {
    let (made_by, xmax) = match slot.own_command() {
        Some(command) => (command, stamp.xmax),
        None => (command(stamp.xmax), pg_sys::InvalidTransactionId),
    };
    // SAFETY: the table of a row that a statement shows is locked.
    let (xmax, cid) = match unsafe { xmax::of(stamp.table, stamp.tid) } {
        Upon::State(xid, cid) => (narrow(xid), cid.0),
        Upon::Lock(xid) => (narrow(xid), made_by),
        Upon::Nothing => (xmax, made_by),
    };
    match column {
        pg_sys::MaxTransactionIdAttributeNumber => pg_sys::Datum::from(xmax),
        _ => pg_sys::Datum::from(cid),
    }
}

#[pg_guard]
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn materialize(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: as core calls it: a filled slot of this kind; afterwards it has a tuple of its own.
    let entered = unsafe { entered(slot) };
    let was_in_place = is_in_place(entered);
    let of_heap = heap().materialize.expect("every kind has it");
    // SAFETY: one guarded call of core's function for its own kind, whose form the slot has.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| of_heap(slot)) };
    if was_in_place {
        entered.change_own(complete);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn get_heap_tuple(slot: *mut pg_sys::TupleTableSlot) -> pg_sys::HeapTuple {
    // SAFETY: as for `materialize`.
    unsafe {
        materialize(slot);
        entered(slot).tuple()
    }
}

#[pg_guard]
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn copy_heap_tuple(
    slot: *mut pg_sys::TupleTableSlot,
) -> pg_sys::HeapTuple {
    let of_heap = heap()
        .copy_heap_tuple
        .expect("slots of heap tuples have it");
    // SAFETY: as core calls it: a filled slot of this kind. One guarded call of core's function for
    // its own kind, whose form the slot has; the copy is ours until it is returned.
    let (is_in_place, mut copy) = unsafe {
        let copy = pg_sys::ffi::pg_guard_ffi_boundary(|| of_heap(slot));
        (is_in_place(entered(slot)), OwnTuple::enter(copy))
    };
    if is_in_place {
        complete(&mut copy);
    }
    copy.as_ptr()
}

/// Core's function for its own kind refuses a target of any other.
#[pg_guard]
unsafe extern "C-unwind" fn copyslot(
    target: *mut pg_sys::TupleTableSlot,
    source: *mut pg_sys::TupleTableSlot,
) {
    // SAFETY: as core calls it: a slot of this kind, and a filled one of any kind, of one row type.
    // The copy is in the target's memory, which lives as long as the target.
    unsafe {
        let (target, source) = (entered(target), TupleSlot::enter(source));
        target.give(within(target.slot().memory(), || source.heap_copy()));
    }
}
