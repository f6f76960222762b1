//! The physical replication slot `mot`: it keeps the WAL from the newest complete checkpoint on,
//! for the cases in which that checkpoint is older than PostgreSQL's own (restartpoints, a worker
//! that was down).
//!
//! Held (acquired) by the checkpoint worker as long as it lives. Every function may raise; the
//! worker runs them under [`super::catch`] and continues without a slot if they do, since the gate
//! alone suffices while it runs.
use super::version;
use mot_engine::Lsn;
use pgrx::pg_sys;
use std::ffi::CStr;

const NAME: &CStr = c"mot";

/// Whether the server can have replication slots at all.
pub fn possible() -> bool {
    // SAFETY: plain variables, set at server start.
    unsafe {
        pg_sys::max_replication_slots > 0
            && pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32
    }
}

/// Whether there is the slot: it is made when the first checkpoint is complete, be it the empty one
/// of a recovery that found none. Not before PostgreSQL has read its slots from disk.
pub fn exists() -> bool {
    // SAFETY: looks through shared memory under a lock.
    !unsafe { pg_sys::SearchNamedReplicationSlot(NAME.as_ptr(), true) }.is_null()
}

/// Where the slot's WAL begins; None if there is no slot, or one that keeps none: it was
/// invalidated, or never got a position.
fn begins() -> Option<Lsn> {
    // SAFETY: looks through shared memory under a lock; a slot's place stays. Its position is read
    // under its spinlock, and nothing between can raise.
    let at = unsafe {
        let slot = pg_sys::SearchNamedReplicationSlot(NAME.as_ptr(), true);
        if slot.is_null() {
            return None;
        }
        pg_sys::SpinLockAcquire(&raw mut (*slot).mutex);
        let at = match version::is_slot_invalidated(slot) {
            true => 0,
            false => (*slot).data.restart_lsn,
        };
        pg_sys::SpinLockRelease(&raw mut (*slot).mutex);
        at
    };
    (at != 0).then_some(Lsn(at))
}

/// Whether there is a slot that keeps the WAL from `from` on as long as it is valid.
pub fn reaches_back_to(from: Lsn) -> bool {
    begins().is_some_and(|begins| begins <= from)
}

/// Whether a checkpoint that begins after `at` was complete once: the slot is never at another
/// place.
pub fn is_ahead_of(at: Lsn) -> bool {
    begins().is_some_and(|begins| begins > at)
}

/// Whether this process holds the slot.
pub fn is_held() -> bool {
    // SAFETY: a plain variable of this process.
    !unsafe { pg_sys::MyReplicationSlot }.is_null()
}

/// Whether the WAL from the slot's position on stays whatever happens: a slot is held, and the
/// server may not take its WAL away. (It would, at the end of a checkpoint, and end the process
/// that holds the slot.)
pub fn keeps_wal() -> bool {
    is_held() && is_unlimited()
}

/// The same when this process is gone, and no process holds the slot.
pub fn keeps_wal_alone() -> bool {
    is_held() && stays_idle()
}

/// Whether slots keep whatever WAL they need.
pub fn is_unlimited() -> bool {
    // SAFETY: a plain setting.
    unsafe { pg_sys::max_slot_wal_keep_size_mb < 0 }
}

/// Whether the slot keeps its WAL although no process holds it.
pub fn stays_idle() -> bool {
    !version::are_idle_slots_taken() && is_unlimited()
}

/// Acquires the slot where it is, so that it is not taken for an idle one. Answers whether there is
/// one that keeps WAL.
pub fn hold_as_is() -> bool {
    // SAFETY: as below.
    unsafe {
        if !exists() {
            return false;
        }
        version::acquire_slot(NAME.as_ptr());
        let is_lost = version::is_slot_invalidated(pg_sys::MyReplicationSlot);
        if is_lost {
            pg_sys::ReplicationSlotRelease();
        }
        !is_lost
    }
}

/// Acquires the slot, making it if it is missing or was invalidated, so that it keeps the WAL from
/// `from` on.
pub fn hold(from: Lsn) {
    // SAFETY: the process has a PGPROC and no slot; StartupReplicationSlots has run (the caller
    // waits for recovery to be under way or over). All calls may raise.
    unsafe {
        let mut found = exists();
        if found {
            version::acquire_slot(NAME.as_ptr());
            if version::is_slot_invalidated(pg_sys::MyReplicationSlot) {
                pg_sys::ReplicationSlotRelease();
                pg_sys::ReplicationSlotDrop(NAME.as_ptr(), true);
                found = false;
            }
        }
        if !found {
            version::create_slot(NAME.as_ptr());
        }
    }
    advance(from);
    // SAFETY: this process holds the slot.
    unsafe { pg_sys::ReplicationSlotSave() };
}

/// Gives the slot up, which stays where it is. May raise.
pub fn release() {
    // SAFETY: this process holds the slot (caller); wakes the processes that wait for it.
    unsafe { pg_sys::ReplicationSlotRelease() }
}

/// Lets go of the WAL before `to`. PostgreSQL writes the position to disk at its next checkpoint;
/// an older one after a crash only keeps more.
pub fn advance(to: Lsn) {
    if !is_held() {
        return;
    }
    // SAFETY: this process holds the slot, so only it changes the data; readers take the spinlock.
    // Nothing between acquire and release can raise.
    unsafe {
        let slot = pg_sys::MyReplicationSlot;
        pg_sys::SpinLockAcquire(&raw mut (*slot).mutex);
        (*slot).data.restart_lsn = to.0;
        pg_sys::SpinLockRelease(&raw mut (*slot).mutex);
        pg_sys::ReplicationSlotMarkDirty();
        pg_sys::ReplicationSlotsComputeRequiredLSN();
    }
}
