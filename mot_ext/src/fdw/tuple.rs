//! Between PostgreSQL's slots and the engine's rows.
//!
//! - Out: a heap-tuple slot is pointed at a version's image in the arena. No copy, and no guarded call: the slot's fields are
//!   written here exactly as `tts_heap_store_tuple` writes them. The caller's snapshot or row lock keeps the image.
//! - In: `heap_form_tuple` over values that were detoasted first, so that no image holds a pointer out of itself or a compressed
//!   value.
use crate::pg::version;
use mot_engine::{Slot, VersionRef};
use pgrx::pg_sys;

/// A HeapTupleData to be pointed at rows, one after the other.
pub fn empty() -> pg_sys::HeapTupleData {
    // SAFETY: all-zero bytes are an invalid tuple id, no table and a NULL pointer.
    unsafe { std::mem::zeroed() }
}

/// Points `tuple` at a version of `relation`.
#[inline]
pub fn point(tuple: &mut pg_sys::HeapTupleData, version: VersionRef, relation: pg_sys::Oid) {
    tuple.t_len = version.image_bytes() as u32;
    tuple.t_data = version.image_ptr().cast_mut().cast();
    // SAFETY: an image begins with a heap tuple's header, whose t_ctid the engine has stamped with the row's slot.
    tuple.t_self = unsafe { (*tuple.t_data).t_ctid };
    tuple.t_tableOid = relation;
}

/// Puts `tuple` into a heap-tuple slot without copying: `ExecStoreHeapTuple(tuple, slot, false)`.
#[inline]
pub unsafe fn store(slot: *mut pg_sys::TupleTableSlot, tuple: *mut pg_sys::HeapTupleData) {
    // SAFETY: the slot is of the heap kind (foreign scans, and table slots of foreign tables, always are); when it owns a
    // tuple, core frees that.
    unsafe {
        let base = &mut *slot;
        if base.tts_flags & pg_sys::TTS_FLAG_SHOULDFREE as u16 != 0 {
            pg_sys::ExecStoreHeapTuple(tuple, slot, false);
            return;
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
    version: VersionRef,
    relation: pg_sys::Oid,
) {
    let mut tuple = empty();
    point(&mut tuple, version, relation);
    // SAFETY: the version is protected by the caller; the copy lives as long as the slot.
    unsafe {
        let old = pg_sys::MemoryContextSwitchTo((*slot).tts_mcxt);
        let copy = pg_sys::heap_copytuple(&raw mut tuple);
        pg_sys::MemoryContextSwitchTo(old);
        pg_sys::ExecForceStoreHeapTuple(copy, slot, true);
        (*slot).tts_tid = tuple.t_self;
        (*slot).tts_tableOid = relation;
    }
}

/// Points a slot at the version that its values became, so that RETURNING shows the row's system columns. Only a heap-tuple slot
/// can; another keeps its values.
pub unsafe fn show(
    slot: *mut pg_sys::TupleTableSlot,
    tuple: &mut pg_sys::HeapTupleData,
    version: VersionRef,
    relation: pg_sys::Oid,
) {
    point(tuple, version, relation);
    // SAFETY: as for `store`; the version is our own and stays until we commit.
    unsafe {
        if std::ptr::eq((*slot).tts_ops, &raw const pg_sys::TTSOpsHeapTuple) {
            store(slot, tuple);
        } else {
            (*slot).tts_tid = tuple.t_self;
        }
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

/// The row a tuple id names.
pub fn slot_of(tid: pg_sys::ItemPointerData) -> Option<Slot> {
    let block = (u32::from(tid.ip_blkid.bi_hi) << 16) | u32::from(tid.ip_blkid.bi_lo);
    Slot::from_tid(block, tid.ip_posid)
}

/// Forms the tuple of a slot's values, flat, in the current memory context.
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

/// Forms a tuple from values, flat, in the current memory context. The values array is left alone.
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
        std::slice::from_raw_parts((*tuple).t_data.cast::<u8>(), (*tuple).t_len as usize)
    }
}
