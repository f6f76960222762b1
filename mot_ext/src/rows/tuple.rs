//! Between PostgreSQL's slots and the engine's rows.
//!
//! - Out: a heap-tuple slot is pointed at a version's image in the arena. No copy, and no guarded
//!   call: the slot's fields are written here exactly as `tts_heap_store_tuple` writes them. The
//!   caller's snapshot or row lock keeps the image.
//! - In: the body of what `heap_form_tuple` makes of values that were detoasted first, so that no
//!   row holds a pointer out of itself or a compressed value.
use super::row_slot;
use crate::pg::version;
use crate::transaction::wait::tid_of;
use mot_engine::key::Tail;
use mot_engine::row::STAMP_BYTES;
use mot_engine::{Slot, VersionRef};
use pgrx::pg_sys;

/// A HeapTupleData to be pointed at rows, one after the other.
pub fn empty() -> pg_sys::HeapTupleData {
    // SAFETY: all-zero bytes are an invalid tuple id, no table and a NULL pointer.
    unsafe { std::mem::zeroed() }
}

/// Points `tuple` at a version of a row of `relation`. Its columns, `xmin`, `ctid` and `tableoid`
/// can be asked for; `xmax`, `cmin` and `cmax` only of a [`copy`], or through a slot of
/// [`super::row_slot`].
#[inline]
pub fn point(
    tuple: &mut pg_sys::HeapTupleData,
    row: Slot,
    version: VersionRef,
    relation: pg_sys::Oid,
) {
    tuple.t_len = version.tuple_bytes() as u32;
    tuple.t_data = version.image_ptr().cast_mut().cast();
    tuple.t_self = tid_of(row, version.ordinal());
    tuple.t_tableOid = relation;
}

/// A copy of a version in the current memory context, with the header of a heap tuple that no
/// transaction has locked or deleted: every system column can be asked for.
pub unsafe fn copy(row: Slot, version: VersionRef, relation: pg_sys::Oid) -> pg_sys::HeapTuple {
    let mut tuple = empty();
    point(&mut tuple, row, version, relation);
    // SAFETY: the caller protects the version; the copy is ours.
    unsafe {
        let copy = pg_sys::heap_copytuple(&raw mut tuple);
        row_slot::complete(copy);
        copy
    }
}

/// Puts `tuple` into a slot without copying, as `ExecStoreHeapTuple(tuple, slot, false)` does: one
/// of [`super::row_slot`], or of core's for heap tuples of which no reader asks for more than
/// `point` says.
#[inline]
pub unsafe fn store(slot: *mut pg_sys::TupleTableSlot, tuple: *mut pg_sys::HeapTupleData) {
    // SAFETY: the slot is of the heap kind's form (slots of tables of the access method always
    // are).
    unsafe {
        let base = &mut *slot;
        if base.tts_flags & pg_sys::TTS_FLAG_SHOULDFREE as u16 != 0 {
            clear(slot);
        }
        let heap = slot.cast::<pg_sys::HeapTupleTableSlot>();
        base.tts_nvalid = 0;
        base.tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        base.tts_tid = (*tuple).t_self;
        base.tts_tableOid = (*tuple).t_tableOid;
        (*heap).tuple = tuple;
        (*heap).off = 0;
    }
}

/// Puts a copy of a version into a heap-tuple slot, which owns it.
pub unsafe fn store_copy(
    slot: *mut pg_sys::TupleTableSlot,
    row: Slot,
    version: VersionRef,
    relation: pg_sys::Oid,
) {
    // SAFETY: the version is protected by the caller; the copy lives as long as the slot.
    unsafe {
        let old = pg_sys::MemoryContextSwitchTo((*slot).tts_mcxt);
        let copy = copy(row, version, relation);
        pg_sys::MemoryContextSwitchTo(old);
        let ops = (*slot).tts_ops;
        if std::ptr::eq(ops, row_slot::kind())
            || std::ptr::eq(ops, &raw const pg_sys::TTSOpsHeapTuple)
        {
            // Core's way knows its own kind alone, and would form the row of ours anew, without its
            // system columns.
            store_owned(slot, copy);
        } else {
            pg_sys::ExecForceStoreHeapTuple(copy, slot, true);
        }
        (*slot).tts_tid = tid_of(row, version.ordinal());
        (*slot).tts_tableOid = relation;
    }
}

/// Gives a slot of the heap kind's form a tuple in the slot's own memory context.
pub unsafe fn store_owned(slot: *mut pg_sys::TupleTableSlot, tuple: pg_sys::HeapTuple) {
    // SAFETY: the caller's slot of that form; the tuple has no other owner.
    unsafe {
        clear(slot);
        let heap = slot.cast::<pg_sys::HeapTupleTableSlot>();
        (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        (*slot).tts_flags |= pg_sys::TTS_FLAG_SHOULDFREE as u16;
        (*slot).tts_tid = (*tuple).t_self;
        (*slot).tts_tableOid = (*tuple).t_tableOid;
        (*heap).tuple = tuple;
    }
}

/// Empties a slot: `ExecClearTuple`.
#[inline]
pub unsafe fn clear(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: a heap-tuple slot; what it owns is a palloc'd tuple.
    unsafe {
        let base = &mut *slot;
        let heap = slot.cast::<pg_sys::HeapTupleTableSlot>();
        if base.tts_flags & pg_sys::TTS_FLAG_SHOULDFREE as u16 != 0 {
            pg_sys::heap_freetuple((*heap).tuple);
            base.tts_flags &= !(pg_sys::TTS_FLAG_SHOULDFREE as u16);
        }
        base.tts_nvalid = 0;
        base.tts_flags |= pg_sys::TTS_FLAG_EMPTY as u16;
        base.tts_tid.ip_posid = 0;
        (*heap).tuple = std::ptr::null_mut();
        (*heap).off = 0;
    }
}

/// Forms the row of a slot's values, flat, in the current memory context.
pub unsafe fn form<'a>(slot: *mut pg_sys::TupleTableSlot) -> &'a [u8] {
    // SAFETY: a filled slot with a descriptor; after slot_getsomeattrs every value is there.
    unsafe {
        let descriptor = (*slot).tts_tupleDescriptor;
        let count = (*descriptor).natts as usize;
        if ((*slot).tts_nvalid as usize) < count {
            pg_sys::slot_getsomeattrs_int(slot, count as i32);
        }
        form_values(descriptor, (*slot).tts_values, (*slot).tts_isnull)
    }
}

/// A row with a tail of computed keys, in the current memory context.
pub fn extend<'a>(row: &[u8], tail: &Tail) -> &'a [u8] {
    let bytes = row.len() + tail.bytes();
    // SAFETY: the block is zeroed, of so many bytes, and not shared.
    let body =
        unsafe { std::slice::from_raw_parts_mut(pg_sys::palloc0(bytes).cast::<u8>(), bytes) };
    tail.write(row, body);
    body
}

/// Forms a row from values, flat, in the current memory context. The values array is left alone.
pub unsafe fn form_values<'a>(
    descriptor: pg_sys::TupleDesc,
    values: *mut pg_sys::Datum,
    nulls: *mut bool,
) -> &'a [u8] {
    // SAFETY: both arrays have a value for each attribute of the descriptor.
    unsafe {
        let count = (*descriptor).natts as usize;
        let mut flat = values;
        for position in 0..count {
            let attribute = &*version::attributes(descriptor).add(position);
            if attribute.attlen != -1 || *nulls.add(position) {
                continue;
            }
            let value = (*values.add(position)).cast_mut_ptr::<pg_sys::varlena>();
            if !pgrx::varatt_is_1b_e(value) && !pgrx::varatt_is_4b_c(value) {
                continue;
            }
            if flat == values {
                flat = pg_sys::palloc(count * size_of::<pg_sys::Datum>()).cast();
                flat.copy_from_nonoverlapping(values, count);
            }
            *flat.add(position) = pg_sys::Datum::from(pg_sys::pg_detoast_datum(value));
        }
        let tuple = pg_sys::heap_form_tuple(descriptor, flat, nulls);
        let body = (*tuple).t_data.cast::<u8>().add(STAMP_BYTES);
        std::slice::from_raw_parts(body, (*tuple).t_len as usize - STAMP_BYTES)
    }
}
