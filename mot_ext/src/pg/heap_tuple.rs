//! Heap tuples that are copies of our own.
use mot_engine::row::STAMP_BYTES;
use pgrx::pg_sys;
use std::ptr::NonNull;

/// A palloc'd heap tuple with its header, which no other code knows. Whoever makes it keeps it no
/// longer than its memory context lives.
pub struct OwnTuple(NonNull<pg_sys::HeapTupleData>);

impl OwnTuple {
    /// A copy of core's making.
    ///
    /// # Safety
    /// It was palloc'd as one piece with its header, and no other code uses it. Its memory context
    /// lives for as long as the value.
    #[inline]
    pub unsafe fn enter(tuple: pg_sys::HeapTuple) -> OwnTuple {
        debug_assert!(!tuple.is_null());
        // SAFETY: a tuple (caller).
        OwnTuple(unsafe { NonNull::new_unchecked(tuple) })
    }

    /// The pointer, for calls of core.
    #[inline]
    pub fn as_ptr(&self) -> pg_sys::HeapTuple {
        self.0.as_ptr()
    }

    #[inline]
    fn header(&self) -> pg_sys::HeapTupleHeader {
        // SAFETY: a live tuple.
        unsafe { (*self.as_ptr()).t_data }
    }

    /// The tuple id.
    #[inline]
    pub fn tid(&self) -> pg_sys::ItemPointerData {
        // SAFETY: a live tuple.
        unsafe { (*self.as_ptr()).t_self }
    }

    /// The table.
    #[inline]
    pub fn table(&self) -> pg_sys::Oid {
        // SAFETY: a live tuple.
        unsafe { (*self.as_ptr()).t_tableOid }
    }

    /// `xmax` of the header.
    #[inline]
    pub fn xmax(&self) -> pg_sys::TransactionId {
        // SAFETY: a live tuple's header, which is a stored row's.
        unsafe { (*self.header()).t_choice.t_heap.t_xmax }
    }

    /// Sets the tuple id, in the header, too.
    #[inline]
    pub fn set_tid(&mut self, tid: pg_sys::ItemPointerData) {
        // SAFETY: a live tuple, which no other code reads.
        unsafe {
            (*self.as_ptr()).t_self = tid;
            (*self.header()).t_ctid = tid;
        }
    }

    /// Sets `xmax`.
    #[inline]
    pub fn set_xmax(&mut self, xmax: pg_sys::TransactionId) {
        // SAFETY: a live tuple's header, which no other code reads.
        unsafe { (*self.header()).t_choice.t_heap.t_xmax = xmax };
    }

    /// Sets the command.
    #[inline]
    pub fn set_command(&mut self, command: pg_sys::CommandId) {
        // SAFETY: a live tuple's header, which no other code reads.
        unsafe { (*self.header()).t_choice.t_heap.t_field3.t_cid = command };
    }

    /// Takes marks off the header's two masks.
    #[inline]
    pub fn clear_marks(&mut self, infomask: u16, infomask2: u16) {
        // SAFETY: a live tuple's header, which no other code reads.
        unsafe {
            (*self.header()).t_infomask &= !infomask;
            (*self.header()).t_infomask2 &= !infomask2;
        }
    }

    /// What the engine keeps of it: all behind the stamp.
    pub fn body(&self) -> &[u8] {
        // SAFETY: a live tuple, of one piece with its header, whose length says how many bytes it
        // has.
        unsafe {
            let body = self.header().cast::<u8>().add(STAMP_BYTES);
            std::slice::from_raw_parts(body, (*self.as_ptr()).t_len as usize - STAMP_BYTES)
        }
    }

    /// A copy in the current memory context.
    ///
    /// # Safety
    /// The context lives for as long as the copy.
    pub unsafe fn copied(&self) -> OwnTuple {
        // SAFETY: a live tuple; the copy is one piece with its header.
        unsafe { OwnTuple::enter(pg_sys::heap_copytuple(self.as_ptr())) }
    }

    /// Gives it back.
    pub fn free(self) {
        // SAFETY: a palloc'd tuple, of which this was the only value.
        unsafe { pg_sys::heap_freetuple(self.as_ptr()) };
    }
}
