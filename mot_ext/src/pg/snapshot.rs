//! Snapshots that core passes, and that of this moment, as SPI takes one for a query that may
//! write.
use super::argument::Argument;
use pgrx::pg_sys::{self, SnapshotType};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A snapshot that is valid for the time `'p`: if it is an MVCC snapshot, it is registered, or
/// active.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Snapshot<'p> {
    snapshot: NonNull<pg_sys::SnapshotData>,
    time: PhantomData<&'p pg_sys::SnapshotData>,
}

impl Argument<pg_sys::Snapshot> for Snapshot<'_> {
    #[inline]
    unsafe fn of(passed: pg_sys::Snapshot) -> Self {
        // SAFETY: what the caller says.
        unsafe { Snapshot::enter(passed) }
    }
}

impl Argument<pg_sys::Snapshot> for Option<Snapshot<'_>> {
    #[inline]
    unsafe fn of(passed: pg_sys::Snapshot) -> Self {
        // SAFETY: NULL, or what the caller says.
        unsafe { Snapshot::enter_if_any(passed) }
    }
}

impl<'p> Snapshot<'p> {
    /// A view of a snapshot.
    ///
    /// # Safety
    /// It is valid for `'p`, and registered or active if it is an MVCC snapshot.
    #[inline]
    pub unsafe fn enter(snapshot: pg_sys::Snapshot) -> Snapshot<'p> {
        debug_assert!(!snapshot.is_null());
        Snapshot {
            // SAFETY: a valid snapshot (caller).
            snapshot: unsafe { NonNull::new_unchecked(snapshot) },
            time: PhantomData,
        }
    }

    /// A view of a snapshot, or of NULL.
    ///
    /// # Safety
    /// NULL, or a snapshot that is valid for `'p`, and registered or active if it is an MVCC
    /// snapshot.
    #[inline]
    pub unsafe fn enter_if_any(snapshot: pg_sys::Snapshot) -> Option<Snapshot<'p>> {
        NonNull::new(snapshot).map(|snapshot| Snapshot {
            snapshot,
            time: PhantomData,
        })
    }

    /// The same, for a value that has no time of its own.
    ///
    /// # Safety
    /// What is made of it is used for `'p` only.
    #[inline]
    pub unsafe fn unbound(self) -> Snapshot<'static> {
        Snapshot {
            snapshot: self.snapshot,
            time: PhantomData,
        }
    }

    /// The pointer, for calls of core.
    #[inline]
    pub fn as_ptr(self) -> pg_sys::Snapshot {
        self.snapshot.as_ptr()
    }

    /// The kind.
    #[inline]
    pub fn kind(self) -> SnapshotType::Type {
        // SAFETY: a valid snapshot.
        unsafe { (*self.as_ptr()).snapshot_type }
    }

    /// Whether it is an MVCC snapshot.
    #[inline]
    pub fn is_mvcc(self) -> bool {
        self.kind() == SnapshotType::SNAPSHOT_MVCC
    }

    /// Says in a SnapshotDirty which transactions insert, and replace or delete, what was shown.
    /// There is no shorter wait for a speculative insertion.
    pub fn set_unfinished(self, inserter: pg_sys::TransactionId, replacer: pg_sys::TransactionId) {
        debug_assert_eq!(self.kind(), SnapshotType::SNAPSHOT_DIRTY);
        // SAFETY: a valid snapshot; one of this kind is the scanning function's own.
        unsafe {
            (*self.as_ptr()).xmin = inserter;
            (*self.as_ptr()).xmax = replacer;
            (*self.as_ptr()).speculativeToken = 0;
        }
    }
}

unsafe extern "C-unwind" {
    #[link_name = "CommandCounterIncrement"]
    fn next_command();
    #[link_name = "GetTransactionSnapshot"]
    fn transaction_snapshot() -> pg_sys::Snapshot;
    #[link_name = "PushActiveSnapshot"]
    fn push(snapshot: pg_sys::Snapshot);
    /// Raises nothing while there is an active snapshot.
    #[link_name = "PopActiveSnapshot"]
    fn pop_active();
}

/// Makes the latest snapshot the active one, which shows what the transaction has done so far. It
/// lives until [`pop`], or the end of the (sub)transaction. May raise.
#[allow(ffi_unwind_calls)]
pub fn push_latest() -> pg_sys::Snapshot {
    // SAFETY: in a transaction. One guard for all: each of them costs more than most of these.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            next_command();
            push(transaction_snapshot());
        });
    }
    super::active_snapshot()
}

/// Drops the active snapshot.
///
/// # Safety
/// It is the caller's.
#[allow(ffi_unwind_calls)]
pub unsafe fn pop() {
    // SAFETY: the caller's promise.
    unsafe { pop_active() }
}
