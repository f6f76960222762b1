//! Processes: signals, transactions, locks, replication slots.
use pgrx::pg_sys;
use std::ffi::c_int;
use std::ptr::NonNull;

/// Sets the handler of a signal.
pub unsafe fn set_signal_handler(signal: c_int, handler: pg_sys::pqsigfunc) {
    // SAFETY: the handler is safe to run at any time (caller).
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::pqsignal(signal, handler);
        #[cfg(feature = "pg18")]
        pg_sys::pqsignal_be(signal, handler);
    }
}

/// Acquires an existing replication slot, valid or not. May raise.
pub unsafe fn acquire_slot(name: *const std::ffi::c_char) {
    // SAFETY: the process has a PGPROC and no slot (caller).
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::ReplicationSlotAcquire(name, true);
        #[cfg(feature = "pg18")]
        pg_sys::ReplicationSlotAcquire(name, true, false);
    }
}

/// Whether a slot was invalidated.
pub unsafe fn is_slot_invalidated(slot: *const pg_sys::ReplicationSlot) -> bool {
    // SAFETY: this process holds the slot, so only it changes the data, or its spinlock (caller).
    unsafe {
        let data = &raw const (*slot).data;
        #[cfg(feature = "pg15")]
        return (*data).restart_lsn == 0 && (*data).invalidated_at != 0;
        #[cfg(not(feature = "pg15"))]
        return (*data).invalidated != pg_sys::ReplicationSlotInvalidationCause::RS_INVAL_NONE;
    }
}

/// Whether the server may take away a slot that was idle for long (since 18).
pub fn are_idle_slots_taken() -> bool {
    #[cfg(not(feature = "pg18"))]
    return false;
    #[cfg(feature = "pg18")]
    // SAFETY: a plain setting.
    unsafe {
        pg_sys::idle_replication_slot_timeout_secs > 0
    }
}

/// Logs, where `log_lock_failures` (since 18) asks for it, that a transaction is not waited for, as
/// `heap_lock_tuple` does. If it ends just then, nothing is logged. May raise.
pub fn log_lock_failure(xid: pg_sys::TransactionId) {
    #[cfg(not(feature = "pg18"))]
    let _ = xid;
    #[cfg(feature = "pg18")]
    // SAFETY: a plain setting. Core tries the lock, logs who has it, and keeps nothing.
    unsafe {
        if pg_sys::log_lock_failures {
            pg_sys::ConditionalXactLockTableWait(xid, true);
        }
    }
}

/// Makes a persistent physical slot and acquires it. May raise.
pub unsafe fn create_slot(name: *const std::ffi::c_char) {
    let persistent = pg_sys::ReplicationSlotPersistency::RS_PERSISTENT;
    // SAFETY: the process has a PGPROC and no slot (caller).
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        pg_sys::ReplicationSlotCreate(name, false, persistent, false);
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        pg_sys::ReplicationSlotCreate(name, false, persistent, false, false, false);
    }
}

/// The local transaction id of a process; 0 outside transactions.
pub fn local_transaction_of(process: &pg_sys::PGPROC) -> u32 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let field = &raw const process.lxid;
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    let field = &raw const process.vxid.lxid;
    // SAFETY: an aligned word that its process writes.
    unsafe { field.read_volatile() }
}

/// Whether `transaction_timeout`, which 17 brought, has passed and ends the session at the next
/// check for interrupts.
pub fn is_transaction_overdue() -> bool {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    return false;
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: plain variables of this process; a signal handler sets the first, so it is read anew
    // each time.
    unsafe {
        (&raw const pg_sys::TransactionTimeoutPending).read_volatile() != 0
            && pg_sys::TransactionTimeout > 0
    }
}

/// What the list of a lightweight lock's waiters begins with when there is none.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub const NO_WAITER: i32 = i32::MAX;
#[cfg(any(feature = "pg17", feature = "pg18"))]
pub const NO_WAITER: i32 = -1;

/// Where this process keeps the number of its virtual transaction.
pub fn local_transaction() -> *mut u32 {
    // SAFETY: this process's own PGPROC; the caller has one.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return &raw mut (*pg_sys::MyProc).lxid;
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        return &raw mut (*pg_sys::MyProc).vxid.lxid;
    }
}

/// The next 64-bit transaction id, read without a lock: one aligned 64-bit load, and a stale answer
/// is good enough for every use here (relating a 32-bit id to its epoch).
#[inline]
pub fn next_full_xid() -> u64 {
    // SAFETY: the variable cache lives in shared memory from before any backend starts; the field
    // is 8-byte aligned.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let next = &raw const (*pg_sys::ShmemVariableCache).nextXid.value;
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        let next = &raw const (*pg_sys::TransamVariables).nextXid.value;
        next.read_volatile()
    }
}

/// The oldest transaction that the commit log still knows.
pub fn oldest_clog_xid() -> pg_sys::TransactionId {
    // SAFETY: an aligned word in shared memory that is there from before any process starts.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let oldest = &raw const (*pg_sys::ShmemVariableCache).oldestClogXid;
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        let oldest = &raw const (*pg_sys::TransamVariables).oldestClogXid;
        oldest.read_volatile()
    }
}

/// Whether a virtual transaction is this process's.
pub fn is_own_virtual(transaction: &pg_sys::VirtualTransactionId) -> bool {
    // SAFETY: this process's own PGPROC; the caller has one.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return transaction.backendId == (*pg_sys::MyProc).backendId;
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        return transaction.procNumber == (*pg_sys::MyProc).vxid.procNumber;
    }
}

/// The checkpointer's place among the processes; none while there is none.
pub fn checkpointer(all: &pg_sys::PROC_HDR) -> Option<NonNull<pg_sys::PGPROC>> {
    #[cfg(not(feature = "pg18"))]
    {
        let latch = NonNull::new(all.checkpointerLatch)?;
        let offset = std::mem::offset_of!(pg_sys::PGPROC, procLatch);
        // SAFETY: it is the latch of a place, at that offset.
        Some(unsafe { latch.byte_sub(offset).cast() })
    }
    #[cfg(feature = "pg18")]
    {
        let number = usize::try_from(all.checkpointerProc).ok()?;
        // SAFETY: a number that is not negative is of a place in the list.
        NonNull::new(unsafe { all.allProcs.add(number) })
    }
}

/// In the startup process: does what it does between records. May raise, or end the process.
///
/// # Safety
/// This is the startup process.
pub unsafe fn process_startup_interrupts() {
    #[allow(ffi_unwind_calls)]
    unsafe extern "C-unwind" {
        #[cfg_attr(not(feature = "pg18"), link_name = "HandleStartupProcInterrupts")]
        #[cfg_attr(feature = "pg18", link_name = "ProcessStartupProcInterrupts")]
        fn process_interrupts();
    }
    // SAFETY: the caller's process; errors pass the guard.
    #[allow(ffi_unwind_calls)]
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| process_interrupts())
    }
}

/// PMSIGNAL_BACKGROUND_WORKER_CHANGE of `storage/pmsignal.h`.
pub const PMSIGNAL_BACKGROUND_WORKER_CHANGE: c_int = if cfg!(feature = "pg18") { 6 } else { 5 };

/// Rings by which the record of a serializable transaction is in the list of all: on 15 that list
/// is of another kind.
pub const RINGS_OF_ALL_SXACTS: usize = if cfg!(feature = "pg15") { 0 } else { 1 };

/// Where the headers of 15, and of 16 to 18, put `topXid` in such a record.
pub const SXACT_TOP_XID_AT: usize = if cfg!(feature = "pg15") { 128 } else { 144 };

/// The timeline on which this server inserts WAL; 0 while its recovery has not chosen it.
pub fn insertion_timeline() -> u32 {
    // SAFETY: both read a value of shared memory. The one that 15 and 16 have asserts, in builds
    // with assertions, that recovery is over; what it answers is the same before.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return pg_sys::GetWALInsertionTimeLine();
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        return pg_sys::GetWALInsertionTimeLineIfSet();
    }
}
