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

/// The tuple of a slot of this kind, if it is in the arena: only `tuple::store` points such a
/// slot at what it does not own.
unsafe fn in_place(slot: *mut pg_sys::TupleTableSlot) -> Option<pg_sys::HeapTuple> {
    // SAFETY: a slot of this kind, which has the form of core's.
    unsafe {
        let is_owned = (*slot).tts_flags & pg_sys::TTS_FLAG_SHOULDFREE as u16 != 0;
        let tuple = (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple;
        (!is_owned && !tuple.is_null()).then_some(tuple)
    }
}

/// The command that made a row whose header is an image's.
unsafe fn command(image: pg_sys::HeapTupleHeader) -> pg_sys::CommandId {
    // SAFETY: an image, or a copy of one: the command is where a heap tuple has `xmax`.
    unsafe { (*image).t_choice.t_heap.t_xmax.into_inner() }
}

/// Makes a copy of an image a heap tuple that is neither locked nor deleted.
pub unsafe fn complete(copy: pg_sys::HeapTuple) {
    // SAFETY: the caller's own copy.
    unsafe {
        let header = (*copy).t_data;
        let cid = command(header);
        // The engine keeps a version's ordinal where a heap tuple has its transaction's state.
        (*header).t_infomask &= !(pg_sys::HEAP_XACT_MASK as u16);
        // Beside it is the mark of computed keys, which a copy has not.
        (*header).t_infomask2 &= !(pg_sys::HEAP2_XACT_MASK as u16 | TAIL_MARK);
        let fields = &mut (*header).t_choice.t_heap;
        fields.t_xmax = pg_sys::InvalidTransactionId;
        fields.t_field3.t_cid = cid;
        (*header).t_ctid = (*copy).t_self;
    }
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
unsafe extern "C-unwind" fn getsysattr(
    slot: *mut pg_sys::TupleTableSlot,
    column: c_int,
    is_null: *mut bool,
) -> pg_sys::Datum {
    // SAFETY: as core calls it: a filled slot of this kind.
    unsafe {
        let tuple = (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple;
        if shows_who_changed(column) && !tuple.is_null() {
            *is_null = false;
            let header = (*tuple).t_data;
            let (made_by, xmax) = match in_place(slot) {
                Some(_) => (command(header), pg_sys::InvalidTransactionId),
                None => {
                    let fields = &(*header).t_choice.t_heap;
                    (fields.t_field3.t_cid, fields.t_xmax)
                }
            };
            let (xmax, cid) = match xmax::of((*tuple).t_tableOid, (*tuple).t_self) {
                Upon::State(xid, cid) => (narrow(xid), cid.0),
                Upon::Lock(xid) => (narrow(xid), made_by),
                Upon::Nothing => (xmax, made_by),
            };
            return match column {
                pg_sys::MaxTransactionIdAttributeNumber => pg_sys::Datum::from(xmax),
                _ => pg_sys::Datum::from(cid),
            };
        }
        let of_heap = heap().getsysattr.expect("every kind has it");
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            of_heap(slot, column, is_null)
        })
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn materialize(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: as core calls it: a filled slot of this kind; afterwards it has a tuple of its own.
    unsafe {
        let was_in_place = in_place(slot).is_some();
        let of_heap = heap().materialize.expect("every kind has it");
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            of_heap(slot)
        });
        if was_in_place {
            complete((*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn get_heap_tuple(slot: *mut pg_sys::TupleTableSlot) -> pg_sys::HeapTuple {
    // SAFETY: as for `materialize`.
    unsafe {
        materialize(slot);
        (*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn copy_heap_tuple(
    slot: *mut pg_sys::TupleTableSlot,
) -> pg_sys::HeapTuple {
    // SAFETY: as core calls it: a filled slot of this kind; the copy is the caller's.
    unsafe {
        let of_heap = heap()
            .copy_heap_tuple
            .expect("slots of heap tuples have it");
        let is_in_place = in_place(slot).is_some();
        let copy = pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            of_heap(slot)
        });
        if is_in_place {
            complete(copy);
        }
        copy
    }
}

/// Core's function for its own kind refuses a target of any other.
#[pg_guard]
unsafe extern "C-unwind" fn copyslot(
    target: *mut pg_sys::TupleTableSlot,
    source: *mut pg_sys::TupleTableSlot,
) {
    // SAFETY: as core calls it: a slot of this kind, and a filled one of any kind whose copy the
    // target owns.
    unsafe {
        let copy_of = (*(*source).tts_ops)
            .copy_heap_tuple
            .expect("every kind has it");
        let old = pg_sys::MemoryContextSwitchTo((*target).tts_mcxt);
        let copy = pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            copy_of(source)
        });
        pg_sys::MemoryContextSwitchTo(old);
        super::tuple::store_owned(target, copy);
    }
}
