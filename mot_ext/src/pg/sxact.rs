//! The server's record of a SERIALIZABLE transaction (SERIALIZABLEXACT of `storage/predicate_internals.h`, as 15 to 18 have it), as far as
//! `fdw/commit_order.rs` needs it.
//!
//! It lies in shared memory and is read and written under SerializableXactHashLock, as predicate.c does. The layout is not in the bindings;
//! [`is_known`] compares what can be compared before it is relied upon.
use pgrx::pg_sys;
use std::mem::offset_of;

/// SerializableXactHashLock's place in MainLWLockArray (`storage/lwlocknames.h`).
const SERIALIZABLE_XACT_HASH_LOCK: usize = 28;

const COMMITTED: u32 = 0x01;
const PREPARED: u32 = 0x02;
const CONFLICT_OUT: u32 = 0x10;
const READ_ONLY: u32 = 0x20;

unsafe extern "C" {
    /// Hands out a variable of the process; raises nothing.
    #[link_name = "ShareSerializableXact"]
    fn own_serializable_xact() -> *mut Sxact;
}

/// A ring's head, or a member's part of it.
#[repr(C)]
struct Ring {
    previous: *mut Ring,
    next: *mut Ring,
}

#[repr(C)]
struct Sxact {
    virtual_xid: [u32; 2],
    /// Given out before the transaction is seen as committed.
    prepare_number: u64,
    /// Given out after.
    commit_number: u64,
    /// The last number before its snapshot; with CONFLICT_OUT, the lowest `prepare_number` of those it did not see and that were first.
    snapshot_or_earliest: u64,
    out_conflicts: Ring,
    in_conflicts: Ring,
    locks: Ring,
    finished: Ring,
    #[cfg(not(feature = "pg15"))]
    listed: Ring,
    lock: pg_sys::LWLock,
    possible_conflicts: Ring,
    top_xid: u32,
    finished_before: u32,
    xmin: u32,
    flags: u32,
    pid: i32,
    process: i32,
}

/// "`reader` did not see what `writer` wrote": a member of the reader's `out_conflicts` by its first field.
#[repr(C)]
struct Conflict {
    out_link: Ring,
    in_link: Ring,
    reader: *mut Sxact,
    writer: *mut Sxact,
}

/// Where the headers of 15, and of 17 and 18, put it.
const TOP_XID_AT: usize = if cfg!(feature = "pg15") { 128 } else { 144 };
const _: () = assert!(
    offset_of!(Sxact, prepare_number) == 8
        && offset_of!(Sxact, snapshot_or_earliest) == 24
        && offset_of!(Sxact, out_conflicts) == 32
        && offset_of!(Sxact, top_xid) == TOP_XID_AT
        && offset_of!(Sxact, flags) == TOP_XID_AT + 12
        && offset_of!(Sxact, pid) == TOP_XID_AT + 16
        && offset_of!(Conflict, writer) == 40
);

/// Whether the current transaction's record, if it has one, looks as described here. Before commit.
pub fn is_known() -> bool {
    // SAFETY: raises nothing; the record is this process' own as long as the transaction runs, and these fields of it are not changed by others.
    unsafe {
        let own = own_serializable_xact();
        own.is_null()
            || ((*own).pid == pg_sys::MyProcPid
                && (*own).top_xid == pg_sys::GetTopTransactionIdIfAny().into_inner())
    }
}

/// Notes of the current transaction, which has committed and is not released, that somebody it did not see may have been first, if one of them
/// has passed its last check. Raises nothing: the lock is free for the taking, and few locks are held.
pub fn note_earlier_commits() {
    // SAFETY: see `is_known`, which was asked before. A ring's members change under the lock only. Unlocked, one pointer is compared: whoever
    // committed before this transaction entered the ring before that, and ProcArrayLock lies between.
    unsafe {
        let own = own_serializable_xact();
        if own.is_null() {
            return;
        }
        let head = &raw mut (*own).out_conflicts;
        if (&raw const (*head).next).read_volatile() == head {
            return;
        }
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(SERIALIZABLE_XACT_HASH_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        // Nobody misses what a reader did not write.
        let may_be_missed =
            (*own).top_xid != 0 && (*own).flags & (PREPARED | COMMITTED | READ_ONLY) == PREPARED;
        let mut earliest = u64::MAX;
        let mut member = (*head).next;
        while may_be_missed && member != head {
            let writer = (*member.cast::<Conflict>()).writer;
            if (*writer).flags & PREPARED != 0 {
                earliest = earliest.min((*writer).prepare_number);
            }
            member = (*member).next;
        }
        if earliest != u64::MAX {
            (*own).snapshot_or_earliest = (*own).snapshot_or_earliest.max(earliest);
            (*own).flags |= CONFLICT_OUT;
        }
        pg_sys::LWLockRelease(lock);
    }
}
