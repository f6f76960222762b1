//! The survey: the reclaimer reads from all processes what must be kept, and for which.
use super::{line, local_xid, outcome_bound, processes, while_still};
use crate::transaction::clock::{oldest_active, widen};
use mot_engine::{OldSnapshot, OldSnapshots, Xid};
use pgrx::pg_sys;

/// Published snapshots beyond this number count as not published: a sweep tests each of them for
/// each version.
const PUBLISHED_MAX: usize = 64;

/// The published snapshots, and the bound of all others; `None` on a standby. May raise.
pub fn survey() -> Option<OldSnapshots> {
    // SAFETY: reads shared state; never raises.
    if unsafe { pg_sys::RecoveryInProgress() } {
        return None;
    }
    // Room first: nothing may fail under the lock.
    let mut snapshots = Vec::with_capacity(PUBLISHED_MAX);
    let mut recent = oldest_active();
    let mut slots_xmin = pg_sys::InvalidTransactionId;
    // SAFETY: two words under a shared lock.
    unsafe { pg_sys::ProcArrayGetReplicationSlotXmin(&mut slots_xmin, std::ptr::null_mut()) };
    if slots_xmin != pg_sys::InvalidTransactionId {
        recent = recent.min(widen(slots_xmin));
    }
    while_still(|| look(&mut snapshots, &mut recent));
    Some(OldSnapshots { recent, snapshots })
}

/// Reads every process. Allocates nothing.
fn look(snapshots: &mut Vec<OldSnapshot>, recent: &mut Xid) {
    let show_bound = outcome_bound::shown_by();
    for (place, process) in processes().iter().enumerate() {
        // SAFETY: aligned words and a byte that their process writes.
        let (xmin, xid, flags) = unsafe {
            (
                (&raw const process.xmin).read_volatile(),
                (&raw const process.xid).read_volatile(),
                (&raw const process.statusFlags).read_volatile(),
            )
        };
        // As in core's horizons: a VACUUM reads no rows of ours, a decoding walsender only
        // catalogs.
        let reads_nothing =
            u32::from(flags) & (pg_sys::PROC_IN_VACUUM | pg_sys::PROC_IN_LOGICAL_DECODING) != 0;
        if xmin == pg_sys::InvalidTransactionId
            || reads_nothing
            || show_bound.contains(&Some(place))
        {
            continue;
        }
        let published = (xid == pg_sys::InvalidTransactionId && snapshots.len() < PUBLISHED_MAX)
            .then(|| line(place)?.read(local_xid(process), widen(xmin)))
            .flatten();
        match published {
            Some(bounds) => snapshots.push(bounds),
            None => *recent = (*recent).min(widen(xmin)),
        }
    }
}
