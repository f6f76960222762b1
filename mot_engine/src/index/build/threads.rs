//! The threads of an index build: one thread, whose work may be cancelled, or those of recovery.

use crate::clock::{Clock, check_cancelled};
use crate::engine::Engine;
use crate::errors::EngineError;
use crate::ids::Xid;
use crate::session::Session;
use crate::threads::on_threads;
use std::sync::atomic::Ordering;

/// The threads that do the work.
pub(super) trait BuildThreads {
    type Clock: Clock;

    /// Whether live rows that share a key of a unique index are reported.
    const REPORTS_DUPLICATES: bool;

    /// Calls `work` once for each unit below `units`, with a session of the calling thread.
    fn run(
        &self,
        units: usize,
        work: impl Fn(&Session, &Self::Clock, usize) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError>;
}

/// The calling thread alone, which may be cancelled between units.
pub(super) struct Alone<'a, C, const REPORTS_DUPLICATES: bool> {
    pub(super) session: &'a Session,
    pub(super) clock: &'a C,
}

impl<C: Clock, const REPORTS_DUPLICATES: bool> BuildThreads for Alone<'_, C, REPORTS_DUPLICATES> {
    type Clock = C;
    const REPORTS_DUPLICATES: bool = REPORTS_DUPLICATES;

    fn run(
        &self,
        units: usize,
        work: impl Fn(&Session, &C, usize) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError> {
        for unit in 0..units {
            check_cancelled(self.clock)?;
            work(self.session, self.clock, unit)?;
        }
        Ok(())
    }
}

/// Threads of recovery.
pub(super) struct Threads {
    pub(super) engine: Engine,
    pub(super) threads: usize,
}

impl BuildThreads for Threads {
    type Clock = HintsOnly;
    const REPORTS_DUPLICATES: bool = false;

    fn run(
        &self,
        units: usize,
        work: impl Fn(&Session, &HintsOnly, usize) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError> {
        on_threads(self.threads, units, |_, next| {
            let session = self.engine.join_for_recovery()?;
            let clock = HintsOnly(self.engine);
            while let Some(unit) = next.take() {
                check_cancelled(&clock)?;
                work(&session, &clock, unit)?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// Leaves open what has no hint.
#[derive(Copy, Clone)]
pub(super) struct HintsOnly(pub(super) Engine);

impl Clock for HintsOnly {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }

    fn is_in_progress(&self, _xid: Xid) -> bool {
        true
    }

    fn did_commit(&self, _xid: Xid) -> bool {
        false
    }

    fn is_cancelled(&self) -> bool {
        self.0.progress().load_is_unwanted.load(Ordering::Relaxed) != 0
    }
}
