//! What a standby does beside its replay.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::Tally;
use crate::checkpoint::{
    self, CheckpointContext, CheckpointProgress, Pace, generations, next_generation, remove_old,
};
use crate::disk::simulated::SimulatedDisk;
use crate::errors::EngineError;
use crate::ids::{Lsn, Xid};
use crate::recovery::tests::{Entry, Outcomes, Random, Replayed, SYSTEM, TestClock, Wal};
use crate::recovery::{AppliedHorizon, resolve_definitions};

/// Writes checkpoints and sweeps while replay goes on.
pub(super) struct Standby<'a> {
    pub(super) disk: &'a SimulatedDisk,
    pub(super) tally: &'a RefCell<Tally>,
    pub(super) random: Random,
    /// In a hundred records.
    pub(super) odds: u64,
    pub(super) applied: AppliedHorizon,
}

impl Standby<'_> {
    pub(super) fn replayed(&mut self, at: &Replayed<'_>) -> Result<(), EngineError> {
        if self.random.below(100) >= self.odds {
            return Ok(());
        }
        let outcomes = outcomes_at(at.wal, at.lsn);
        let finished_below = outcomes.running.borrow().first().copied();
        let finished_below = Xid(finished_below.unwrap_or(u64::MAX));
        let engine = at.session.engine();
        engine.raise_horizon(finished_below);
        let clock = TestClock {
            outcomes: &outcomes,
            me: 0,
        };
        for walk in at.session.tables() {
            at.session.sweep(&clock, walk.table(), true, || {});
        }
        self.applied.raise(engine, finished_below);
        resolve_definitions(at.session, &clock, self.applied);
        let below = self.applied.below();
        at.session.drop_ended_locks(|xid| xid < below)?;
        crate::transaction::free_pending(at.session, || ());
        let newest = generations(self.disk)?.first().copied();
        // What was loaded may be ahead of what was replayed; a server waits until it is not.
        if let Some(newest) = newest
            && checkpoint::read_manifest(self.disk, newest)?.flushed.0 >= at.lsn
        {
            return Ok(());
        }
        let progress = CheckpointProgress::default();
        let mut context = CheckpointContext {
            system_id: SYSTEM,
            timeline: 1,
            redo: Lsn(at.lsn),
            generation: next_generation(self.disk)?,
            finished_below,
            is_final: false,
            threads: 1,
            pace: Pace::unlimited(),
            progress: &progress,
            outcomes: &mut |open| {
                let committed = outcomes.committed.borrow();
                let has_committed = |xid: &Xid| committed.contains(&xid.0);
                Ok(open.iter().copied().filter(has_committed).collect())
            },
            // The log up to here was read from the disk.
            flush: &mut |_| Ok(Lsn(at.lsn)),
        };
        let written = checkpoint::write(at.session, self.disk, &mut context)?;
        let mut tally = self.tally.borrow_mut();
        tally.checkpoints_in_replay += 1;
        tally.ranges_reused += written.ranges_reused;
        tally.ranges_in_part += written.ranges_in_part;
        remove_old(self.disk, 1, |_| false).map(drop)
    }
}

/// What a standby knows that has replayed up to `lsn`: whose commit it has not seen may be running.
fn outcomes_at(wal: &Wal, lsn: u64) -> Outcomes {
    let outcomes = Outcomes::default();
    let mut aborted = BTreeSet::new();
    for (at, entry) in &wal.entries {
        match entry {
            Entry::Commit { xid } if *at <= lsn => {
                outcomes.committed.borrow_mut().insert(*xid);
            }
            // Of no transaction: what was freed.
            Entry::Record { xid: 0, .. } => {}
            Entry::Abort { xid } if *at <= lsn => {
                aborted.insert(*xid);
            }
            Entry::Commit { xid }
            | Entry::Record { xid, .. }
            | Entry::Prepare { xid }
            | Entry::Abort { xid } => {
                outcomes.running.borrow_mut().insert(*xid);
            }
        }
    }
    let committed = outcomes.committed.borrow();
    outcomes
        .running
        .borrow_mut()
        .retain(|xid| !committed.contains(xid) && !aborted.contains(xid));
    drop(committed);
    outcomes
}
