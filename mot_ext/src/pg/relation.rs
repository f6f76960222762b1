//! Open relations.
use pgrx::pg_sys;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Of a call: it takes no lock, for the caller has one.
pub const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;

/// An entry of the relation cache that is open for the time `'p`.
#[derive(Clone, Copy)]
pub struct Relation<'p> {
    entry: NonNull<pg_sys::RelationData>,
    time: PhantomData<&'p pg_sys::RelationData>,
}

impl<'p> Relation<'p> {
    /// A view of an open relation.
    ///
    /// # Safety
    /// It is open for `'p`.
    pub unsafe fn enter(entry: pg_sys::Relation) -> Relation<'p> {
        debug_assert!(!entry.is_null());
        Relation {
            // SAFETY: an open relation (caller).
            entry: unsafe { NonNull::new_unchecked(entry) },
            time: PhantomData,
        }
    }

    /// The entry, for calls of core.
    pub fn as_ptr(self) -> pg_sys::Relation {
        self.entry.as_ptr()
    }

    /// The row type.
    pub fn row_type(self) -> pg_sys::TupleDesc {
        // SAFETY: an open relation.
        unsafe { (*self.as_ptr()).rd_att }
    }
}

/// Opens a relation for the time of `read`. A lock that is taken stays to the end of the
/// transaction. After an error core closes it.
pub fn with<T>(
    relation: pg_sys::Oid,
    lock: pg_sys::LOCKMODE,
    read: impl FnOnce(Relation<'_>) -> T,
) -> T {
    // SAFETY: core raises for what is not there.
    let opened = unsafe { Relation::enter(pg_sys::relation_open(relation, lock)) };
    let found = read(opened);
    // SAFETY: opened above; its view has ended.
    unsafe { pg_sys::relation_close(opened.as_ptr(), NO_LOCK) };
    found
}

/// The same of an index.
pub fn with_index<T>(
    index: pg_sys::Oid,
    lock: pg_sys::LOCKMODE,
    read: impl FnOnce(Relation<'_>) -> T,
) -> T {
    // SAFETY: core raises for what is no index, or not there.
    let opened = unsafe { Relation::enter(pg_sys::index_open(index, lock)) };
    let found = read(opened);
    // SAFETY: as above.
    unsafe { pg_sys::index_close(opened.as_ptr(), NO_LOCK) };
    found
}
