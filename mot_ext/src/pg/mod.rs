//! PostgreSQL's functions and structures, as the rooms above use them. Externs are declared here;
//! only files with a hook declare that hook, or core's own function of it.
//!
//! | files | what |
//! |---|---|
//! | `guard`, `report`, `violation`, `text` | errors of users' code, reports, text |
//! | `version/` | what differs between major versions: no other room asks |
//! | `argument`, `node`, `relation`, `tuple_slot` | typed views of what core passes |
//! | `index_scan`, `heap_tuple` | those of scans of indexes; tuples of our own |
//! | `memory`, `array`, `record` | memory contexts; arrays; values of row types |
//! | `nodes`, `list`, `depth`, `planning` | parse trees, plans |
//! | `executor`, `portal`, `wire` | execution, output |
//! | `parameters`, `partition_routing` | values of a statement; the partition of a row |
//! | `catalog`, `class_files`, `class_row`, `index_row`, `search_path` | the catalog |
//! | `inheritance`, `rights`, `index_routine`, `btree` | children, rights; indexes' functions |
//! | `owner`, `snapshot`, `subtransaction` | transactions and what they see |
//! | `predicate`, `sxact` | predicate locks |
//! | `interrupts`, `worker`, `checkpointer`, `title` | waits, background processes |
//! | `slot`, `timeline`, `unlogged`, `page` | WAL and files |
//! | `local`, `hook` | statics of a process; hooks |
//!
//! pgrx wraps each bound function in a thread check and a `sigsetjmp`. That is right wherever
//! PostgreSQL may raise an error. The functions declared `extern "C"` here never raise one, as
//! their sources in 15 to 18 show. Most are called for each row.
pub mod argument;
pub mod array;
pub mod btree;
pub mod catalog;
pub mod checkpointer;
pub mod class_files;
pub mod class_row;
pub mod copy;
pub mod datum;
pub mod decoding;
pub mod depth;
pub mod executor;
pub mod guard;
pub mod heap_tuple;
pub mod hook;
pub mod index_routine;
pub mod index_row;
pub mod index_scan;
pub mod inheritance;
pub mod interrupts;
pub mod list;
pub mod local;
pub mod memory;
pub mod node;
pub mod nodes;
pub mod owner;
pub mod page;
pub mod parameters;
pub mod partition_routing;
pub mod planning;
pub mod portal;
pub mod predicate;
pub mod record;
pub mod relation;
pub mod report;
pub mod rights;
pub mod search_path;
pub mod slot;
pub mod snapshot;
pub mod subtransaction;
pub mod sxact;
pub mod text;
pub mod timeline;
pub mod title;
pub mod tuple_slot;
pub mod unlogged;
pub mod version;
pub mod violation;
pub mod wire;
pub mod worker;

pub use version::next_full_xid;

use mot_engine::key::AttributeLayout;
use mot_engine::log::WalPages;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::PgTryBuilder;
use std::ffi::{CStr, c_int};
use std::panic::AssertUnwindSafe;

unsafe extern "C" {
    /// Walks the backend's own transaction stack; raises nothing.
    #[link_name = "TransactionIdIsCurrentTransactionId"]
    fn transaction_id_is_current(xid: pg_sys::TransactionId) -> bool;
    /// Reads one field of the current transaction state; raises nothing.
    #[link_name = "GetCurrentTransactionNestLevel"]
    fn get_current_transaction_nest_level() -> c_int;
    /// Reads one field of the current transaction state; raises nothing.
    #[link_name = "GetCurrentSubTransactionId"]
    fn get_current_subtransaction_id() -> pg_sys::SubTransactionId;
    /// Sets a flag in shared memory and signals the postmaster; raises nothing.
    #[link_name = "SendPostmasterSignal"]
    fn send_postmaster_signal(reason: c_int);
    /// Reads one field of the current transaction state; raises nothing.
    #[link_name = "IsInParallelMode"]
    fn in_parallel_mode() -> bool;
    /// Reads a variable of this process; raises nothing.
    #[link_name = "ActiveSnapshotSet"]
    fn is_snapshot_active() -> bool;
    /// Reads the top of this process's stack, which the caller knows not to be empty; raises
    /// nothing.
    #[link_name = "GetActiveSnapshot"]
    fn get_active_snapshot() -> pg_sys::Snapshot;
    /// Counts up a local counter; raises nothing.
    #[link_name = "GetNextLocalTransactionId"]
    fn get_next_local_transaction_id() -> u32;
    /// Reads one field of the current transaction state; raises nothing.
    #[link_name = "GetCurrentFullTransactionIdIfAny"]
    fn get_full_xid_if_any() -> pg_sys::FullTransactionId;
    /// Reads one field of the top transaction's state; raises nothing.
    #[link_name = "GetTopFullTransactionIdIfAny"]
    fn get_top_full_xid_if_any() -> pg_sys::FullTransactionId;
    /// Reads a variable of this process, and sets a flag. Raises in parallel workers only.
    #[link_name = "GetCurrentCommandId"]
    fn get_current_command_id(used: bool) -> pg_sys::CommandId;
    /// Reads a variable of this process; raises nothing.
    #[link_name = "GetUserId"]
    fn get_user_id() -> pg_sys::Oid;
    /// Gives memory back. Only a context's children and callbacks can raise.
    #[link_name = "MemoryContextReset"]
    fn reset_bare_context(context: pg_sys::MemoryContext);
}

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    /// Enters the shared invalidation array; may raise FATAL.
    fn SharedInvalBackendInit(send_only: bool);
    #[cfg(debug_assertions)]
    fn RequestCheckpoint(flags: c_int);
    fn GetOldestRestartPoint(redo: *mut u64, timeline: *mut u32);
    fn PrescanPreparedTransactions(
        xids: *mut *mut pg_sys::TransactionId,
        count: *mut c_int,
    ) -> pg_sys::TransactionId;
}

/// How this server's WAL is laid out in pages.
pub fn wal_pages() -> WalPages {
    WalPages {
        page: u64::from(pg_sys::XLOG_BLCKSZ),
        header: size_of::<pg_sys::XLogPageHeaderData>() as u64,
        // SAFETY: a plain variable that is set at start.
        segment: unsafe { pg_sys::wal_segment_size } as u64,
        long_header: size_of::<pg_sys::XLogLongPageHeaderData>() as u64,
    }
}

/// The number of this process's transaction among its own; another one has another.
#[inline]
pub fn local_transaction() -> u32 {
    // SAFETY: this process's own PGPROC, which a process that runs statements has.
    unsafe { *version::local_transaction() }
}

/// The oldest prepared transaction that replay has left; the next transaction id if there is none.
/// For the end of replay: PostgreSQL itself asks the same a moment later. May raise.
pub fn oldest_prepared_xid() -> u32 {
    // SAFETY: the startup process (or the single-user process) at the end of replay, which owns the
    // state of prepared transactions; errors pass the guard.
    #[allow(ffi_unwind_calls)]
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            PrescanPreparedTransactions(std::ptr::null_mut(), std::ptr::null_mut())
        })
    }
    .into_inner()
}

/// While a record is replayed: this id, too, was given out where the log is. Does what PostgreSQL
/// does with the id in a record's header before it replays that. May raise.
pub fn observe_xid(xid: pg_sys::TransactionId) {
    // SAFETY: the startup process (or the single-user process) in the midst of replay, which alone
    // may. As in core a standby that can be read, or will be, takes all ids up to this one for
    // running until it learns of their ends.
    unsafe {
        pg_sys::AdvanceNextFullTransactionIdPastXid(xid);
        if pg_sys::standbyState >= pg_sys::HotStandbyState::STANDBY_INITIALIZED {
            pg_sys::RecordKnownAssignedTransactionIds(xid);
        }
    }
}

/// The redo position of PostgreSQL's newest complete checkpoint or restartpoint. May raise.
pub fn completed_redo() -> u64 {
    let (mut redo, mut timeline) = (0, 0);
    // SAFETY: copies two values from shared memory, under a lock; errors pass the guard.
    #[allow(ffi_unwind_calls)]
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| GetOldestRestartPoint(&mut redo, &mut timeline));
    }
    redo
}

/// Asks the checkpointer for a checkpoint and does not wait for it. May raise.
#[cfg(debug_assertions)]
pub fn request_checkpoint() {
    const IMMEDIATE: c_int = 4;
    const FORCE: c_int = 8;
    // SAFETY: a backend of a running server; errors pass the guard.
    #[allow(ffi_unwind_calls)]
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| RequestCheckpoint(IMMEDIATE | FORCE));
    }
}

/// Whether `xid` is this transaction or a live subtransaction of it. PostgreSQL compares 32 bits;
/// rows keep the ids of their makers for ever, and a row of an earlier turn of the circle is not
/// ours.
pub fn is_current_xid(xid: u64) -> bool {
    // SAFETY: never raises; reads process-local state only.
    let is_on_circle =
        unsafe { transaction_id_is_current(pg_sys::TransactionId::from_inner(xid as u32)) };
    // A transaction's own ids are all within half a circle of the top one's, which is there if any
    // is; a parallel worker has its leader's.
    is_on_circle && top_full_xid_if_any().is_some_and(|top| widen_xid(xid as u32, top) == xid)
}

/// The 64-bit id of the current transaction, if it has one.
pub fn top_full_xid_if_any() -> Option<u64> {
    // SAFETY: never raises; reads process-local state only.
    let xid = unsafe { get_top_full_xid_if_any() };
    (xid.value != 0).then_some(xid.value)
}

/// The active snapshot; NULL if there is none.
#[inline]
pub fn active_snapshot() -> pg_sys::Snapshot {
    // SAFETY: never raises; reads process-local state only, a snapshot only where there is one.
    unsafe {
        match is_snapshot_active() {
            true => get_active_snapshot(),
            false => std::ptr::null_mut(),
        }
    }
}

/// Nesting depth of the current subtransaction; 1 is the top transaction.
pub fn nest_level() -> i32 {
    // SAFETY: never raises; reads process-local state only.
    unsafe { get_current_transaction_nest_level() }
}

/// The current subtransaction's number within its transaction.
#[inline]
pub fn subtransaction() -> pg_sys::SubTransactionId {
    // SAFETY: never raises; reads process-local state only.
    unsafe { get_current_subtransaction_id() }
}

/// Whether what begins now is run by a portal that is older than the current savepoint. What a SQL
/// function that gives its rows one by one began then lives as long as the portal, and so may
/// continue after that savepoint was rolled back.
#[inline]
pub fn is_in_portal_older_than_savepoint() -> bool {
    // SAFETY: plain variables of this process; an active portal is a live one.
    unsafe {
        pg_sys::CurrentResourceOwner != pg_sys::CurTransactionResourceOwner
            && (pg_sys::ActivePortal.is_null()
                || (*pg_sys::ActivePortal).createSubid != pg_sys::GetCurrentSubTransactionId())
    }
}

/// The 64-bit id of the current (sub)transaction, if it has one.
#[inline]
pub fn full_xid_if_any() -> Option<u64> {
    // SAFETY: never raises; reads process-local state only.
    let xid = unsafe { get_full_xid_if_any() };
    (xid.value != 0).then_some(xid.value)
}

/// The current command id, marked as used. Raises in a parallel worker, which must not write.
#[inline]
pub fn use_command_id() -> pg_sys::CommandId {
    // SAFETY: inside a transaction; in a worker the guarded call raises.
    unsafe {
        if pg_sys::ParallelWorkerNumber >= 0 {
            return pg_sys::GetCurrentCommandId(true);
        }
        get_current_command_id(true)
    }
}

/// The current user.
#[inline]
pub fn user() -> pg_sys::Oid {
    // SAFETY: never raises; reads process-local state only.
    unsafe { get_user_id() }
}

/// Empties a context that has neither children nor callbacks.
#[inline]
pub unsafe fn empty_bare_context(context: pg_sys::MemoryContext) {
    // SAFETY: a live context of that kind (caller): never raises.
    unsafe {
        debug_assert!((*context).firstchild.is_null() && (*context).reset_cbs.is_null());
        reset_bare_context(context);
    }
}

/// Whether this process is a parallel worker.
pub fn is_parallel_worker() -> bool {
    // SAFETY: a plain variable of this process.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}

/// Whether parallel workers are at work for this backend, so that it must not write.
pub fn is_in_parallel_mode() -> bool {
    // SAFETY: never raises; reads process-local state only.
    unsafe { in_parallel_mode() }
}

/// A setting's value as text; `None` if there is no such setting (its library is not loaded). The
/// text is valid until the next call.
pub fn setting(name: &CStr) -> Option<&CStr> {
    // SAFETY: raises nothing for a setting that may be missing.
    unsafe {
        let value = pg_sys::GetConfigOption(name.as_ptr(), true, false);
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

/// A memory context for little.
pub unsafe fn small_context(
    parent: pg_sys::MemoryContext,
    name: &'static CStr,
) -> pg_sys::MemoryContext {
    // SAFETY: a live parent (caller); the name lives for ever.
    unsafe {
        pg_sys::AllocSetContextCreateInternal(
            parent,
            name.as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_SMALL_MAXSIZE as usize,
        )
    }
}

/// Makes the postmaster look for background workers that should be running now.
pub fn poke_postmaster() {
    // SAFETY: never raises; the caller is a child of the postmaster.
    unsafe { send_postmaster_signal(version::PMSIGNAL_BACKGROUND_WORKER_CHANGE) }
}

/// The 64-bit id of `xid`, which is within 2^31 of the next one. Special ids (below 3) keep their
/// value.
pub fn widen_xid(xid: u32, next: u64) -> u64 {
    if xid < 3 {
        return u64::from(xid);
    }
    let distance = (next as u32).wrapping_sub(xid) as i32;
    next.wrapping_sub(i64::from(distance) as u64)
}

/// Puts this process into the ProcArray, so that a checkpoint sees its `delayChkptFlags`. A
/// background worker without a database connection is not there by itself.
pub fn enter_proc_array() {
    // SAFETY: called once per process, with a PGPROC, outside any transaction, before the process
    // has other PostgreSQL state.
    unsafe {
        pg_sys::InitProcessPhase2();
        #[allow(ffi_unwind_calls)]
        pg_sys::ffi::pg_guard_ffi_boundary(|| SharedInvalBackendInit(true));
    }
}

/// Gives this process a fresh virtual transaction id: a process that waits for the old one to end
/// its checkpoint delay continues.
pub fn renew_virtual_xid() {
    // SAFETY: never raises; a process in the ProcArray has a backend id, which the counter hangs
    // on.
    unsafe {
        let lxid = get_next_local_transaction_id();
        let field = version::local_transaction();
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        field.write_volatile(lxid);
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
}

/// Ends the virtual transaction id of [`renew_virtual_xid`].
pub fn clear_virtual_xid() {
    // SAFETY: plain store into this process's own PGPROC.
    unsafe {
        let field = version::local_transaction();
        field.write_volatile(0);
    }
}

/// Delays PostgreSQL's checkpoint at its first gate, between the choice of its redo position and
/// its work.
pub const DELAY_START: c_int = pg_sys::DELAY_CHKPT_START as c_int;
/// Delays PostgreSQL's checkpoint at its second gate, before its completion.
pub const DELAY_COMPLETE: c_int = pg_sys::DELAY_CHKPT_COMPLETE as c_int;

/// Raises and lowers this process's checkpoint delay flags.
pub fn change_delay_flags(raise: c_int, lower: c_int) {
    // SAFETY: plain store into this process's own PGPROC; the checkpointer reads it under
    // ProcArrayLock.
    unsafe {
        let flags = &raw mut (*pg_sys::MyProc).delayChkptFlags;
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        flags.write_volatile((flags.read_volatile() | raise) & !lower);
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
}

/// How the first `count` attributes of a row type lie in its rows.
pub unsafe fn attribute_layouts(row_type: pg_sys::TupleDesc, count: usize) -> Vec<AttributeLayout> {
    // SAFETY: a live row type with at least so many attributes, which lie one behind the other.
    let attributes = unsafe { std::slice::from_raw_parts(version::attributes(row_type), count) };
    let layouts = attributes.iter().map(|attribute| AttributeLayout {
        len: attribute.attlen,
        align: match attribute.attalign as u8 {
            pg_sys::TYPALIGN_CHAR => 1,
            pg_sys::TYPALIGN_SHORT => 2,
            pg_sys::TYPALIGN_INT => 4,
            _ => 8,
        },
        by_value: attribute.attbyval,
    });
    layouts.collect()
}

/// Whether this is a child of a postmaster (false in single-user mode and in the postmaster
/// itself).
pub fn is_under_postmaster() -> bool {
    // SAFETY: a plain flag set once per process.
    unsafe { pg_sys::IsUnderPostmaster }
}

/// Whether the postmaster is gone: no server can start before this process has let go of the shared
/// memory. For any thread: both numbers are the process's.
pub fn is_orphaned() -> bool {
    // SAFETY: a plain variable set once per process, and a call that cannot fail.
    is_under_postmaster() && unsafe { libc::getppid() != pg_sys::PostmasterPid }
}

/// The same for a process that its end has just woken: this process may not have another parent
/// yet. For its main thread.
pub fn is_postmaster_gone() -> bool {
    #[allow(ffi_unwind_calls)]
    unsafe extern "C-unwind" {
        fn PostmasterIsAliveInternal() -> bool;
    }
    // SAFETY: looks whether the pipe that the postmaster holds open has reached its end; errors
    // pass the guard.
    #[allow(ffi_unwind_calls)]
    unsafe {
        is_under_postmaster() && !pg_sys::ffi::pg_guard_ffi_boundary(|| PostmasterIsAliveInternal())
    }
}

/// Brings a process without a transaction back to a sane state after it caught a PostgreSQL error.
pub fn clean_up_after_error() {
    // SAFETY: what every auxiliary process of PostgreSQL does after a caught error; neither call
    // raises.
    unsafe {
        pg_sys::LWLockReleaseAll();
        pg_sys::ConditionVariableCancelSleep();
    }
}

/// Runs `action` and turns a PostgreSQL error, or a panic, in it into its message. For processes
/// without a transaction: what PostgreSQL's abort would clean up is cleaned up here.
pub fn catch<T>(action: impl FnOnce() -> T) -> Result<T, String> {
    PgTryBuilder::new(AssertUnwindSafe(|| Ok(action())))
        .catch_others(|error| Err(describe(error)))
        .catch_rust_panic(|error| Err(describe(error)))
        .execute()
        .inspect_err(|_| clean_up_after_error())
}

fn describe(error: CaughtError) -> String {
    let report = match &error {
        CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => report,
        CaughtError::RustPanic { ereport, .. } => ereport,
    };
    match (report.detail(), report.hint()) {
        (Some(detail), _) if !detail.is_empty() => format!("{} ({detail})", report.message()),
        _ => report.message().to_owned(),
    }
}
