//! The server's record of a SERIALIZABLE transaction (SERIALIZABLEXACT of
//! `storage/predicate_internals.h`, as 15 to 18 have it), as far as `serializable/commit_order.rs`
//! needs it.
//!
//! It is in shared memory and is read and written under SerializableXactHashLock, as predicate.c
//! does. The layout is not in the bindings; [`is_known`] compares what can be compared before it is
//! relied upon.
use super::version;
use pgrx::pg_sys;
use std::mem::offset_of;

/// SerializableXactHashLock's place in MainLWLockArray (`storage/lwlocknames.h`).
const SERIALIZABLE_XACT_HASH_LOCK: usize = 28;

const COMMITTED: u32 = 0x01;
const PREPARED: u32 = 0x02;
const ROLLED_BACK: u32 = 0x04;
const DOOMED: u32 = 0x08;
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
    /// The last number before its snapshot; with CONFLICT_OUT, the lowest `prepare_number` of those
    /// it did not see and that were first.
    snapshot_or_earliest: u64,
    out_conflicts: Ring,
    in_conflicts: Ring,
    locks: Ring,
    finished: Ring,
    /// Of the list of all records, where it is a ring.
    listed: [Ring; version::RINGS_OF_ALL_SXACTS],
    lock: pg_sys::LWLock,
    possible_conflicts: Ring,
    top_xid: u32,
    finished_before: u32,
    xmin: u32,
    flags: u32,
    pid: i32,
    process: i32,
}

/// "`reader` did not see what `writer` wrote": a member of the reader's `out_conflicts` by its
/// first field, of the writer's `in_conflicts` by its second.
#[repr(C)]
struct Conflict {
    out_link: Ring,
    in_link: Ring,
    reader: *mut Sxact,
    writer: *mut Sxact,
}

const _: () = assert!(
    offset_of!(Sxact, prepare_number) == 8
        && offset_of!(Sxact, snapshot_or_earliest) == 24
        && offset_of!(Sxact, out_conflicts) == 32
        && offset_of!(Sxact, top_xid) == version::SXACT_TOP_XID_AT
        && offset_of!(Sxact, flags) == version::SXACT_TOP_XID_AT + 12
        && offset_of!(Sxact, pid) == version::SXACT_TOP_XID_AT + 16
        && offset_of!(Conflict, writer) == 40
);

/// Whether the current transaction's record, if it has one, looks as described here. Before commit.
pub fn is_known() -> bool {
    // SAFETY: raises nothing; the record is this process' own as long as the transaction runs, and
    // these fields of it are not changed by others.
    unsafe {
        let own = own_serializable_xact();
        own.is_null()
            || ((*own).pid == pg_sys::MyProcPid
                && (*own).top_xid == pg_sys::GetTopTransactionIdIfAny().into_inner())
    }
}

/// The current transaction's record, if that ring of it has members. Unlocked, one pointer is
/// compared: what matters to the caller entered the ring before, and a lock is taken between.
unsafe fn own_with(ring: impl Fn(*mut Sxact) -> *mut Ring) -> Option<*mut Sxact> {
    // SAFETY: see `is_known`, which was asked before; the process' own record does not go before
    // its transaction.
    unsafe {
        let own = own_serializable_xact();
        let has_members = !own.is_null() && {
            let head = ring(own);
            (&raw const (*head).next).read_volatile() != head
        };
        has_members.then_some(own)
    }
}

/// Under SerializableXactHashLock, alone. Raises nothing: the lock is free for the taking, and few
/// locks are held.
unsafe fn locked(work: impl FnOnce()) {
    // SAFETY: a lock of the server's main array; released before this returns, and `work` raises
    // nothing.
    unsafe {
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(SERIALIZABLE_XACT_HASH_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        work();
        pg_sys::LWLockRelease(lock);
    }
}

/// The members of a ring. Locked, as long as they are read.
unsafe fn members(head: *mut Ring) -> impl Iterator<Item = *mut Ring> {
    // SAFETY: a ring's members change under the lock only, which the caller holds.
    let next = |at: *mut Ring| unsafe { (*at).next };
    std::iter::successors(Some(next(head)), move |at| Some(next(*at)))
        .take_while(move |at| *at != head)
}

/// Whether another transaction may miss what this transaction wrote, which has passed its last
/// check and is not noted as committed. Locked.
unsafe fn may_be_missed(sxact: *mut Sxact) -> bool {
    // SAFETY: a live record.
    unsafe {
        (*sxact).top_xid != 0 && (*sxact).flags & (PREPARED | COMMITTED | READ_ONLY) == PREPARED
    }
}

/// Notes of `sxact`, of which it is not noted yet, that a transaction it did not see was first,
/// which passed the last check as number `check`. Locked.
unsafe fn mark(sxact: *mut Sxact, check: u64) {
    // SAFETY: a live record.
    unsafe {
        (*sxact).snapshot_or_earliest = (*sxact).snapshot_or_earliest.max(check);
        (*sxact).flags |= CONFLICT_OUT;
    }
}

/// Notes of the current transaction, which has committed and is not released, that a transaction it
/// did not see may have been first, if one of them has passed its last check. Raises nothing.
pub fn note_earlier_commits() {
    // SAFETY: those that committed before this one entered the ring before that, and ProcArrayLock
    // was taken between. Records in rings are live.
    unsafe {
        let Some(own) = own_with(|own| &raw mut (*own).out_conflicts) else {
            return;
        };
        locked(|| {
            let earliest = members(&raw mut (*own).out_conflicts)
                .map(|member| (*member.cast::<Conflict>()).writer)
                .filter(|writer| (**writer).flags & PREPARED != 0)
                .map(|writer| (*writer).prepare_number)
                .min();
            if let Some(earliest) = earliest.filter(|_| may_be_missed(own)) {
                mark(own, earliest);
            }
        });
    }
}

/// Notes of the current transaction, which is prepared to be committed by any session, that
/// a transaction it did not see may be first, if there is one that has not failed; and lets
/// [`note_for_prepared`] know it. Raises nothing.
pub fn note_later_commits() {
    // SAFETY: the record is this process' own until PREPARE is through.
    unsafe {
        let own = own_serializable_xact();
        if own.is_null() {
            return;
        }
        locked(|| {
            let earliest = members(&raw mut (*own).out_conflicts)
                .map(|member| (*member.cast::<Conflict>()).writer)
                .filter(|writer| (**writer).flags & (DOOMED | ROLLED_BACK) == 0)
                .map(|writer| match (*writer).flags & PREPARED {
                    // Its number will be a higher one.
                    0 => (*own).prepare_number,
                    _ => (*writer).prepare_number,
                })
                .min();
            if let Some(earliest) = earliest.filter(|_| may_be_missed(own)) {
                mark(own, earliest);
            }
            // As PREPARE does a moment later.
            (*own).pid = 0;
        });
    }
}

/// The current transaction is about to be checked and to commit: notes of those that are prepared,
/// and did not see what it wrote, that it may be first. Raises nothing.
pub fn note_for_prepared() {
    // SAFETY: each member for this transaction's writes was made one by this process; records
    // in rings are live.
    unsafe {
        let Some(own) = own_with(|own| &raw mut (*own).in_conflicts) else {
            return;
        };
        locked(|| {
            for member in members(&raw mut (*own).in_conflicts) {
                let link = member.byte_sub(offset_of!(Conflict, in_link));
                let reader = (*link.cast::<Conflict>()).reader;
                let is_marked = (*reader).flags & CONFLICT_OUT != 0;
                if (*reader).pid == 0 && may_be_missed(reader) && !is_marked {
                    // Lower than this transaction's number will be, as is what an earlier mark
                    // says.
                    mark(reader, (*reader).prepare_number);
                }
            }
        });
    }
}
