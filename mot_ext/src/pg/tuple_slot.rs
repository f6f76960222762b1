//! Tuple slots of core's.
use super::datum;
use super::heap_tuple::OwnTuple;
use super::node::Node;
use pgrx::pg_sys;
use std::ffi::c_int;

unsafe extern "C" {
    /// Takes a row apart. Raises only if it is asked for more attributes than its type has, or of a
    /// virtual slot.
    #[link_name = "slot_getsomeattrs_int"]
    fn take_apart(slot: *mut pg_sys::TupleTableSlot, count: c_int);
}

/// An initialized slot.
pub type TupleSlot<'p> = Node<'p, pg_sys::TupleTableSlot>;

impl<'p> Node<'p, pg_sys::TupleTableSlot> {
    /// Views of slots, where their pointers are.
    ///
    /// # Safety
    /// So many pointers, each as [`TupleSlot::enter`] wants it, which nobody changes for `'p`.
    pub unsafe fn enter_all(
        slots: *mut *mut pg_sys::TupleTableSlot,
        count: usize,
    ) -> &'p [TupleSlot<'p>] {
        // SAFETY: the caller's pointers; a view is a pointer that is not NULL.
        unsafe { std::slice::from_raw_parts(slots.cast(), count) }
    }

    /// Whether it is of this kind.
    #[inline]
    pub fn is_of(self, kind: *const pg_sys::TupleTableSlotOps) -> bool {
        std::ptr::eq(self.kind(), kind)
    }

    #[inline]
    fn kind(self) -> *const pg_sys::TupleTableSlotOps {
        // SAFETY: a live slot.
        unsafe { (*self.as_ptr()).tts_ops }
    }

    /// Whether it owns a tuple, or a page, that it has to give back.
    #[inline]
    pub fn has_own(self) -> bool {
        // SAFETY: a live slot.
        unsafe { (*self.as_ptr()).tts_flags & pg_sys::TTS_FLAG_SHOULDFREE as u16 != 0 }
    }

    /// The tuple id of its row.
    #[inline]
    pub fn tid(self) -> pg_sys::ItemPointerData {
        // SAFETY: a live slot.
        unsafe { (*self.as_ptr()).tts_tid }
    }

    /// Sets the tuple id of its row.
    #[inline]
    pub fn set_tid(self, tid: pg_sys::ItemPointerData) {
        // SAFETY: a live slot, to which nobody holds a reference.
        unsafe { (*self.as_ptr()).tts_tid = tid };
    }

    /// Sets the tuple id and the table of its row.
    #[inline]
    pub fn set_row(self, tid: pg_sys::ItemPointerData, table: pg_sys::Oid) {
        // SAFETY: a live slot, to which nobody holds a reference.
        unsafe {
            (*self.as_ptr()).tts_tid = tid;
            (*self.as_ptr()).tts_tableOid = table;
        }
    }

    /// Its memory, in which what it owns is.
    #[inline]
    pub fn memory(self) -> pg_sys::MemoryContext {
        // SAFETY: a live slot.
        unsafe { (*self.as_ptr()).tts_mcxt }
    }

    /// Empties it, by the function of its kind.
    #[allow(ffi_unwind_calls)]
    pub fn clear(self) {
        // SAFETY: one guarded call of the slot's own function, which every slot may be passed to.
        unsafe {
            let clear = (*self.kind()).clear.expect("every kind has it");
            pg_sys::ffi::pg_guard_ffi_boundary(|| clear(self.as_ptr()));
        }
    }

    /// Gives it its own copy of its values.
    ///
    /// # Safety
    /// It is filled.
    #[allow(ffi_unwind_calls)]
    pub unsafe fn materialize(self) {
        // SAFETY: one guarded call of the slot's own function; it is filled (caller).
        unsafe {
            let materialize = (*self.kind()).materialize.expect("every kind has it");
            pg_sys::ffi::pg_guard_ffi_boundary(|| materialize(self.as_ptr()));
        }
    }

    /// A copy of its row, in the current memory context.
    ///
    /// # Safety
    /// It is filled, and the context lives for as long as the copy.
    #[allow(ffi_unwind_calls)]
    pub unsafe fn heap_copy(self) -> OwnTuple {
        // SAFETY: one guarded call of the slot's own function; it is filled (caller).
        unsafe {
            let copy = (*self.kind()).copy_heap_tuple.expect("every kind has it");
            OwnTuple::enter(pg_sys::ffi::pg_guard_ffi_boundary(|| copy(self.as_ptr())))
        }
    }

    /// Its values and which of them are NULL, one of each for each column, after it was taken
    /// apart.
    ///
    /// # Safety
    /// It is filled. The arrays hold for as long as it shows the row.
    #[inline]
    pub unsafe fn values(self) -> (*mut pg_sys::Datum, *mut bool) {
        // SAFETY: a live slot with a row type, which is filled (caller).
        unsafe {
            let slot = self.as_ptr();
            let count = (*self.row_type().as_ptr()).natts;
            if i32::from((*slot).tts_nvalid) < count {
                pg_sys::slot_getsomeattrs_int(slot, count);
            }
            ((*slot).tts_values, (*slot).tts_isnull)
        }
    }

    /// Whether another row has the same bytes in a column ([`datum::is_equal`]).
    ///
    /// # Safety
    /// Both are filled, and of one row type, which has the column; it is no system column.
    pub unsafe fn has_equal(self, other: TupleSlot<'_>, column: i16) -> bool {
        let attribute = &self.row_type().columns()[column as usize - 1];
        // SAFETY: live slots, which are filled (caller), and values of the column's type.
        unsafe { datum::is_equal(attribute, self.value(column), other.value(column)) }
    }

    /// The value of one column; `None`: NULL. The slot is taken apart that far.
    ///
    /// # Safety
    /// It is filled, and its row type has the column, which is no system column.
    unsafe fn value(self, column: i16) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: a live slot, which is filled (caller).
        let value = unsafe { pg_sys::slot_getattr(self.as_ptr(), column.into(), &raw mut is_null) };
        (!is_null).then_some(value)
    }

    /// Takes its row apart, up to its `count`th attribute.
    ///
    /// # Safety
    /// It is filled, not virtual, and its row type has so many attributes.
    #[inline]
    pub unsafe fn take_apart(self, count: i32) {
        // SAFETY: the caller's slot: never raises.
        unsafe {
            let slot = self.as_ptr();
            debug_assert!(count <= (*(*slot).tts_tupleDescriptor).natts);
            if i32::from((*slot).tts_nvalid) < count {
                take_apart(slot, count);
            }
        }
    }

    /// Gives it a heap tuple, in the form that its kind has.
    ///
    /// # Safety
    /// The tuple is of its row type, and in its memory.
    pub unsafe fn force(self, tuple: OwnTuple) {
        // SAFETY: a live slot, and a tuple of its row type (caller), which becomes the slot's.
        unsafe { pg_sys::ExecForceStoreHeapTuple(tuple.as_ptr(), self.as_ptr(), true) };
    }
}

/// What a heap-tuple slot shows beside its columns.
#[derive(Clone, Copy)]
pub struct Stamp {
    pub tid: pg_sys::ItemPointerData,
    pub table: pg_sys::Oid,
    /// `xmax` of the header.
    pub xmax: pg_sys::TransactionId,
}

/// A slot of the form of core's for heap tuples.
#[derive(Clone, Copy)]
pub struct HeapSlot<'p>(TupleSlot<'p>);

impl<'p> HeapSlot<'p> {
    /// A slot known to be of that form.
    ///
    /// # Safety
    /// It is.
    #[inline]
    pub unsafe fn of(slot: TupleSlot<'p>) -> HeapSlot<'p> {
        HeapSlot(slot)
    }

    /// The slot.
    #[inline]
    pub fn slot(self) -> TupleSlot<'p> {
        self.0
    }

    #[inline]
    fn as_ptr(self) -> *mut pg_sys::HeapTupleTableSlot {
        self.0.as_ptr().cast()
    }

    /// The tuple that it shows, for core; NULL: none.
    #[inline]
    pub fn tuple(self) -> pg_sys::HeapTuple {
        // SAFETY: a slot of this form.
        unsafe { (*self.as_ptr()).tuple }
    }

    /// Whether it shows a tuple.
    #[inline]
    pub fn has_tuple(self) -> bool {
        !self.tuple().is_null()
    }

    /// What it shows beside columns; `None`: it shows no tuple.
    pub fn stamp(self) -> Option<Stamp> {
        // SAFETY: a slot of this form has there NULL, or a tuple that lives while it shows it, with
        // the header of a stored row.
        unsafe {
            let tuple = self.tuple().as_ref()?;
            Some(Stamp {
                tid: tuple.t_self,
                table: tuple.t_tableOid,
                xmax: (*tuple.t_data).t_choice.t_heap.t_xmax,
            })
        }
    }

    /// The command of the tuple that it owns; `None`: it owns none.
    pub fn own_command(self) -> Option<pg_sys::CommandId> {
        // SAFETY: a slot of this form that has to give something back has its own tuple there,
        // which is a stored row's.
        self.0
            .has_own()
            .then(|| unsafe { (*(*self.tuple()).t_data).t_choice.t_heap.t_field3.t_cid })
    }

    /// Changes the tuple that it owns, if it owns one.
    #[inline]
    pub fn change_own(self, change: impl FnOnce(&mut OwnTuple)) {
        if self.0.has_own() {
            // SAFETY: a slot of this form that has to give something back has its own tuple there.
            change(&mut unsafe { OwnTuple::enter(self.tuple()) });
        }
    }

    /// The place that it has for a tuple, to be pointed at a row.
    #[inline]
    pub fn place(self) -> *mut pg_sys::HeapTupleData {
        // SAFETY: a slot of this form.
        unsafe { &raw mut (*self.as_ptr()).tupdata }
    }

    /// Points it at a tuple, as `ExecStoreHeapTuple` does that is not to free it.
    ///
    /// # Safety
    /// The tuple is of its row type, and lives for as long as the slot shows it.
    #[inline]
    pub unsafe fn point(self, tuple: *mut pg_sys::HeapTupleData) {
        if self.0.has_own() {
            self.clear();
        }
        // SAFETY: a slot of this form that owns nothing, and the caller's tuple.
        unsafe {
            let (heap, base) = (self.as_ptr(), self.0.as_ptr());
            (*base).tts_nvalid = 0;
            (*base).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
            (*base).tts_tid = (*tuple).t_self;
            (*base).tts_tableOid = (*tuple).t_tableOid;
            (*heap).tuple = tuple;
            (*heap).off = 0;
        }
    }

    /// Gives it a tuple.
    ///
    /// # Safety
    /// The tuple is of its row type, and in its memory.
    pub unsafe fn give(self, tuple: OwnTuple) {
        self.clear();
        // SAFETY: an empty slot of this form, and the caller's tuple.
        unsafe {
            let base = self.0.as_ptr();
            (*base).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
            (*base).tts_flags |= pg_sys::TTS_FLAG_SHOULDFREE as u16;
            (*base).tts_tid = tuple.tid();
            (*base).tts_tableOid = tuple.table();
            (*self.as_ptr()).tuple = tuple.as_ptr();
        }
    }

    /// Empties it: `tts_heap_clear`.
    #[inline]
    pub fn clear(self) {
        // SAFETY: a slot of this form. What it owns is a palloc'd tuple.
        unsafe {
            let (heap, base) = (self.as_ptr(), self.0.as_ptr());
            if self.0.has_own() {
                pg_sys::heap_freetuple((*heap).tuple);
                (*base).tts_flags &= !(pg_sys::TTS_FLAG_SHOULDFREE as u16);
            }
            (*base).tts_nvalid = 0;
            (*base).tts_flags |= pg_sys::TTS_FLAG_EMPTY as u16;
            (*base).tts_tid.ip_posid = 0;
            (*heap).tuple = std::ptr::null_mut();
            (*heap).off = 0;
        }
    }
}
