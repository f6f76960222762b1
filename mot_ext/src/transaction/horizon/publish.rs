//! A backend publishes the bounds of its snapshot, if it has only one.
use super::{line, local_xid, processes};
use crate::pg::local::ProcessLocal;
use crate::pg::snapshot;
use crate::shared_memory;
use crate::transaction::clock::PgSnapshot;
#[cfg(debug_assertions)]
use mot_engine::Xid;
use mot_engine::{OldSnapshot, Snapshot};
use pgrx::prelude::*;
use std::cell::Cell;

struct PublishState {
    /// The local transaction whose snapshot was published last.
    published: Cell<u32>,
    will_clear: Cell<bool>,
}

static STATE: ProcessLocal<PublishState> = ProcessLocal(PublishState {
    published: Cell::new(0),
    will_clear: Cell::new(false),
});

/// Called at the start of every statement: the first one of a REPEATABLE READ transaction publishes
/// its snapshot. May raise a PostgreSQL error, which jumps over the caller's frame.
#[inline]
pub fn publish() {
    // SAFETY: plain variables of this process.
    let has_one_snapshot = unsafe {
        pg_sys::XactIsoLevel == pg_sys::XACT_REPEATABLE_READ as i32 && pg_sys::FirstSnapshotSet
    };
    if has_one_snapshot {
        // SAFETY: inside a transaction.
        unsafe { publish_once() };
    }
}

#[pg_guard]
#[inline(never)]
unsafe extern "C-unwind" fn publish_once() {
    // SAFETY: a backend's own PGPROC; it is one of the array.
    let (lxid, place) = unsafe {
        let mine = pg_sys::MyProc;
        (
            local_xid(&*mine),
            mine.offset_from(processes().as_ptr()) as usize,
        )
    };
    // SAFETY: a plain variable of this process.
    let is_worker = unsafe { pg_sys::ParallelWorkerNumber } >= 0;
    if lxid == STATE.published.get() || is_worker || shared_memory::engine().is_none() {
        return;
    }
    let Some(line) = line(place) else {
        return;
    };
    if !STATE.will_clear.replace(true) {
        // SAFETY: registered once per process; the argument is the line's place.
        unsafe { pg_sys::on_shmem_exit(Some(clear), pg_sys::Datum::from(place)) };
    }
    // SAFETY: the transaction's only snapshot, which stays as long as the transaction; nothing is
    // taken, for it is set.
    let taken = unsafe { pg_sys::GetTransactionSnapshot() };
    // SAFETY: as above.
    if unsafe { (*taken).takenDuringRecovery } {
        // A standby surveys nothing, and reading this one would wait for replay, which a statement
        // without our tables need not.
        STATE.published.set(lxid);
        return;
    }
    // SAFETY: as above.
    let snapshot = PgSnapshot::new(unsafe { snapshot::Snapshot::enter(taken) });
    line.write(
        lxid,
        OldSnapshot {
            xmin: snapshot.xmin(),
            xmax: snapshot.xmax(),
        },
    );
    STATE.published.set(lxid);
}

/// The next process that has this PGPROC may get the same local transaction id.
#[pg_guard]
unsafe extern "C-unwind" fn clear(_code: std::ffi::c_int, place: pg_sys::Datum) {
    if let Some(line) = line(place.value()) {
        line.clear();
    }
}

/// For tests: leaves in this process's line what an older transaction with the same local id would
/// have published.
#[cfg(debug_assertions)]
pub fn plant_stale() {
    // SAFETY: a backend's own PGPROC; it is one of the array.
    let (lxid, place) = unsafe {
        let mine = pg_sys::MyProc;
        (
            local_xid(&*mine),
            mine.offset_from(processes().as_ptr()) as usize,
        )
    };
    if let Some(line) = line(place) {
        let (xmin, xmax) = (Xid(3), Xid(4));
        line.write(lxid, OldSnapshot { xmin, xmax });
    }
}
