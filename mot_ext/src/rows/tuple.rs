//! Between PostgreSQL's slots and the engine's rows.
//!
//! - Out: a heap-tuple slot is pointed at a version's image in the arena. No copy, and no guarded
//!   call: the slot's fields are written here exactly as `tts_heap_store_tuple` writes them. The
//!   caller's snapshot or row lock keeps the image.
//! - In: the body of what `heap_form_tuple` makes of values that were detoasted first, so that no
//!   row holds a pointer out of itself or a compressed value.
use super::row_slot;
use crate::pg::heap_tuple::OwnTuple;
use crate::pg::memory::within;
use crate::pg::nodes::attributes_of;
use crate::pg::tuple_slot::{HeapSlot, TupleSlot};
use mot_engine::VersionRef;
use mot_engine::key::Tail;
use mot_engine::row::STAMP_BYTES;
use pgrx::pg_sys;

/// A HeapTupleData to be pointed at rows, one after the other.
pub fn empty() -> pg_sys::HeapTupleData {
    // SAFETY: all-zero bytes are an invalid tuple id, no table and a NULL pointer.
    unsafe { std::mem::zeroed() }
}

/// Points `tuple` at a version with this tuple id, of a row of `relation`. Its columns, `xmin`,
/// `ctid` and `tableoid` can be asked for; `xmax`, `cmin` and `cmax` only of a [`copy`], or through
/// a slot of [`super::row_slot`].
#[inline]
pub fn point(
    tuple: &mut pg_sys::HeapTupleData,
    tid: pg_sys::ItemPointerData,
    version: VersionRef,
    relation: pg_sys::Oid,
) {
    tuple.t_len = version.tuple_bytes() as u32;
    tuple.t_data = version.image_ptr().cast_mut().cast();
    tuple.t_self = tid;
    tuple.t_tableOid = relation;
}

/// A copy of a version in the current memory context, with the header of a heap tuple that no
/// transaction has locked or deleted: every system column can be asked for.
///
/// # Safety
/// The memory context lives for as long as the copy.
pub unsafe fn copy(
    tid: pg_sys::ItemPointerData,
    version: VersionRef,
    relation: pg_sys::Oid,
) -> OwnTuple {
    let mut tuple = empty();
    point(&mut tuple, tid, version, relation);
    // SAFETY: a version is there as long as it is held; the copy is ours.
    let mut copy = unsafe { OwnTuple::enter(pg_sys::heap_copytuple(&raw mut tuple)) };
    row_slot::complete(&mut copy);
    copy
}

/// Puts `tuple` into a slot without copying, as `ExecStoreHeapTuple(tuple, slot, false)` does: one
/// of [`super::row_slot`], or of core's for heap tuples of which no reader asks for more than
/// `point` says.
///
/// # Safety
/// The slot is of the heap kind's form and of the tuple's row type. The tuple lives for as long as
/// the slot shows it.
#[inline]
pub unsafe fn store(slot: *mut pg_sys::TupleTableSlot, tuple: *mut pg_sys::HeapTupleData) {
    // SAFETY: the caller's slot and tuple.
    unsafe { HeapSlot::of(TupleSlot::enter(slot)).point(tuple) };
}

/// Puts a copy of a version into a slot, which owns it.
///
/// # Safety
/// The slot is of the relation's row type.
pub unsafe fn store_copy(
    slot: TupleSlot<'_>,
    tid: pg_sys::ItemPointerData,
    version: VersionRef,
    relation: pg_sys::Oid,
) {
    // SAFETY: the slot's memory lives as long as the slot, which is of the version's row type.
    unsafe {
        let copy = within(slot.memory(), || copy(tid, version, relation));
        match row_slot::of_heap_form(slot) {
            // Core's way knows its own kind alone, and would form the row of ours anew, without its
            // system columns.
            Some(heap) => heap.give(copy),
            None => slot.force(copy),
        }
    }
    slot.set_row(tid, relation);
}

/// Empties a slot of the heap kind's form: `ExecClearTuple`.
///
/// # Safety
/// A live slot of that form.
#[inline]
pub unsafe fn clear(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the caller's slot.
    unsafe { HeapSlot::of(TupleSlot::enter(slot)) }.clear();
}

/// Forms the row of a slot's values, flat, in the current memory context.
///
/// # Safety
/// A filled slot.
pub unsafe fn form<'a>(slot: *mut pg_sys::TupleTableSlot) -> &'a [u8] {
    // SAFETY: the caller's slot, which has a value for each attribute of its row type.
    unsafe {
        let slot = TupleSlot::enter(slot);
        let (values, nulls) = slot.values();
        form_values(slot.row_type().as_ptr(), values, nulls)
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
///
/// # Safety
/// Both arrays have a value for each attribute of the descriptor.
pub unsafe fn form_values<'a>(
    descriptor: pg_sys::TupleDesc,
    values: *mut pg_sys::Datum,
    nulls: *mut bool,
) -> &'a [u8] {
    // SAFETY: a live descriptor, and the caller's arrays, which nobody writes meanwhile.
    let (attributes, given, are_null) = unsafe {
        let attributes = attributes_of(descriptor);
        let count = attributes.len();
        (
            attributes,
            std::slice::from_raw_parts(values, count),
            std::slice::from_raw_parts(nulls, count),
        )
    };
    let mut flat: Option<&mut [pg_sys::Datum]> = None;
    let values_of = attributes.iter().zip(given).zip(are_null).enumerate();
    for (at, ((attribute, value), is_null)) in values_of {
        if attribute.attlen == -1
            && !is_null
            // SAFETY: a value of an attribute of variable length.
            && let Some(whole) = unsafe { detoasted(*value) }
        {
            flat.get_or_insert_with(|| copied(given))[at] = whole;
        }
    }
    let flat = flat.map_or(values, |flat| flat.as_mut_ptr());
    // SAFETY: the descriptor, with a value for each of its attributes.
    unsafe { body_of(pg_sys::heap_form_tuple(descriptor, flat, nulls)) }
}

/// A copy of values in the current memory context.
fn copied<'a>(values: &[pg_sys::Datum]) -> &'a mut [pg_sys::Datum] {
    // SAFETY: memory of the values' size, filled here, and not shared.
    unsafe {
        let copy = pg_sys::palloc(size_of_val(values)).cast::<pg_sys::Datum>();
        copy.copy_from_nonoverlapping(values.as_ptr(), values.len());
        std::slice::from_raw_parts_mut(copy, values.len())
    }
}

/// A value that is stored elsewhere, or compressed, as a whole, in the current memory context;
/// `None`: it is a whole one.
///
/// # Safety
/// A value of variable length.
#[inline]
unsafe fn detoasted(value: pg_sys::Datum) -> Option<pg_sys::Datum> {
    let value = value.cast_mut_ptr::<pg_sys::varlena>();
    // SAFETY: the caller's value.
    unsafe {
        let is_toasted = pgrx::varatt_is_1b_e(value) || pgrx::varatt_is_4b_c(value);
        is_toasted.then(|| pg_sys::Datum::from(pg_sys::pg_detoast_datum(value)))
    }
}

/// What the engine keeps of a tuple.
///
/// # Safety
/// A tuple with its header, which lives for `'a`.
unsafe fn body_of<'a>(tuple: pg_sys::HeapTuple) -> &'a [u8] {
    // SAFETY: the caller's tuple, whose length says how many bytes it has.
    unsafe {
        let body = (*tuple).t_data.cast::<u8>().add(STAMP_BYTES);
        std::slice::from_raw_parts(body, (*tuple).t_len as usize - STAMP_BYTES)
    }
}
