//! The functions that an index's entry of the relation cache calls.
//!
//! Core makes them when it builds the entry, in memory of the entry's own, and keeps them for as
//! long as the entry lives.
use super::relation::Relation;
use super::version;
use pgrx::pg_sys;

/// `InvalidSubTransactionId` of c.h, which the bindings lack.
const NOT_IN_SUBTRANSACTION: pg_sys::SubTransactionId = 0;

/// An access method's functions.
pub struct Routine {
    functions: Box<pg_sys::IndexAmRoutine>,
    handler: pg_sys::Oid,
}

impl Routine {
    /// Those of an access method, by the function that tells of them.
    ///
    /// # Safety
    /// It is an index access method's handler.
    pub unsafe fn of(handler: pg_sys::Oid) -> Routine {
        // SAFETY: the caller's handler gives a new node of this type.
        unsafe {
            let made = pg_sys::GetIndexAmRoutine(handler);
            let functions = Box::new(made.read());
            pg_sys::pfree(made.cast());
            Routine { functions, handler }
        }
    }
}

impl Relation<'_> {
    /// A copy of the functions that an index's entry calls.
    pub fn routine(self) -> Routine {
        let _is_index = self.index_row();
        // SAFETY: an open index's entry has a routine.
        unsafe {
            Routine {
                functions: Box::new((*self.as_ptr()).rd_indam.read()),
                handler: (*self.as_ptr()).rd_amhandler,
            }
        }
    }

    /// Has an index's entry call these functions.
    ///
    /// # Safety
    /// They are of an access method whose index it is.
    pub unsafe fn set_routine(self, routine: &Routine) {
        let _is_index = self.index_row();
        // SAFETY: an open index's entry has a routine of its own, of this size.
        unsafe {
            (*self.as_ptr()).rd_indam.write(*routine.functions);
            (*self.as_ptr()).rd_amhandler = routine.handler;
        }
    }

    /// How often the entry is open in this session.
    pub fn uses(self) -> i32 {
        // SAFETY: an open relation.
        unsafe { (*self.as_ptr()).rd_refcnt }
    }

    /// Whether the entry keeps its place to the end of the (sub)transaction that made the relation,
    /// or gave it a new file.
    pub fn keeps_place(self) -> bool {
        // SAFETY: an open relation.
        unsafe {
            (*self.as_ptr()).rd_createSubid != NOT_IN_SUBTRANSACTION
                || version::first_file_subtransaction(self.as_ptr()) != NOT_IN_SUBTRANSACTION
        }
    }

    /// Whether this subtransaction made the relation and dropped it.
    pub fn is_made_and_dropped_in(self, subtransaction: pg_sys::SubTransactionId) -> bool {
        // SAFETY: an open relation.
        let entry = unsafe { &*self.as_ptr() };
        entry.rd_createSubid == subtransaction && entry.rd_droppedSubid != NOT_IN_SUBTRANSACTION
    }
}
