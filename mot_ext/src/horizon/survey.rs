//! The reclaimer's question to all processes: what must be kept for whom.
use super::{line, local_xid, processes};
use crate::clock::widen;
use mot_engine::OldSnapshots;
use pgrx::pg_sys;

/// ProcArrayLock's place in MainLWLockArray (`storage/lwlocknames.h`).
const PROC_ARRAY_LOCK: usize = 4;

/// Old snapshots told of beyond this number count as not told: each is looked at for each version.
const TOLD_MAX: usize = 64;

/// What is known of everybody's snapshots; `None` on a standby. May raise.
pub fn survey() -> Option<OldSnapshots> {
    // SAFETY: reads shared state; never raises.
    if unsafe { pg_sys::RecoveryInProgress() } {
        return None;
    }
    // Room first: nothing may fail under the lock.
    let mut told = Vec::with_capacity(TOLD_MAX);
    let mut recent = widen(oldest_active());
    let mut slots_xmin = pg_sys::InvalidTransactionId;
    // SAFETY: two words under a shared lock.
    unsafe { pg_sys::ProcArrayGetReplicationSlotXmin(&mut slots_xmin, std::ptr::null_mut()) };
    if slots_xmin != pg_sys::InvalidTransactionId {
        recent = recent.min(widen(slots_xmin));
    }
    // SAFETY: PostgreSQL's own lock; an error before its release would be cleaned up by the caller (`pg::catch`), and none can come.
    let lock = unsafe { &raw mut (*pg_sys::MainLWLockArray.add(PROC_ARRAY_LOCK)).lock };
    // SAFETY: as above.
    unsafe { pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE) };
    for (place, process) in processes().iter().enumerate() {
        // SAFETY: aligned words and a byte that their process writes.
        let (xmin, xid, flags) = unsafe {
            (
                (&raw const process.xmin).read_volatile(),
                (&raw const process.xid).read_volatile(),
                (&raw const process.statusFlags).read_volatile(),
            )
        };
        // As in core's horizons: a VACUUM reads no rows of ours, a decoding walsender only catalogs.
        let reads_nothing =
            u32::from(flags) & (pg_sys::PROC_IN_VACUUM | pg_sys::PROC_IN_LOGICAL_DECODING) != 0;
        if xmin == pg_sys::InvalidTransactionId || reads_nothing {
            continue;
        }
        let told_exactly = (xid == pg_sys::InvalidTransactionId && told.len() < TOLD_MAX)
            .then(|| line(place)?.read(local_xid(process), widen(xmin)))
            .flatten();
        match told_exactly {
            Some(bounds) => told.push(bounds),
            None => recent = recent.min(widen(xmin)),
        }
    }
    // SAFETY: taken above.
    unsafe { pg_sys::LWLockRelease(lock) };
    Some(OldSnapshots { recent, told })
}

/// The oldest transaction that is running; the next one if none is.
fn oldest_active() -> pg_sys::TransactionId {
    // SAFETY: looks through the ProcArray under its lock; not in recovery.
    unsafe { pg_sys::GetOldestActiveTransactionId() }
}
