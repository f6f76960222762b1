//! The snapshot of this moment, as SPI takes one for a query that may write.
use pgrx::pg_sys;

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
