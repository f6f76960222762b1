//! The reclaim worker: keeps the shared horizon fresh, and removes what no writer meets again.
//!
//! - The horizon says below which transaction ids superseded versions are dead to everybody; writers prune under it
//!   themselves. It is PostgreSQL's own (`GetOldestNonRemovableTransactionId`), which on a standby includes the standby's
//!   readers.
//! - Only this process frees dropped tables and indexes.
//! - Starts when the server is consistent: before that a standby does not know which transactions are running on the
//!   primary, and a running one's versions would be taken for an aborted one's.
//! - An error (the commit log cannot be read) is logged; the next round tries again.
use super::{reload_if_asked, shutdown_asked};
use crate::clock;
use crate::pg::{self, interrupts, report};
use crate::session;
use crate::settings;
use crate::shmem;
use mot_engine::{Session, State, Xid};
use pgrx::prelude::*;
use std::sync::atomic::Ordering;

/// An idle round is as many times longer than a busy one.
const IDLE_ROUNDS: i64 = 25;
/// Pause after an error, in milliseconds.
const ERROR_PAUSE_MS: i64 = 5_000;

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn mot_reclaimer_main(_arg: pg_sys::Datum) {
    super::begin();
    let session = session::join_uncounted();
    let mut reclaimer = Reclaimer {
        seen: Activity::default(),
    };
    while !shutdown_asked() {
        reload_if_asked();
        let nap_ms = i64::from(settings::RECLAIM_NAPTIME_MS.get());
        let pause_ms = match pg::catch(|| reclaimer.round(session)) {
            Ok(true) => nap_ms,
            Ok(false) => nap_ms * IDLE_ROUNDS,
            Err(error) => {
                session.reset();
                report::error_without_jump(&format!("mot could not reclaim row versions: {error}"));
                ERROR_PAUSE_MS
            }
        };
        interrupts::sleep_ms(pause_ms);
    }
}

/// What tells whether anything happened since the last round.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
struct Activity {
    next_xid: u64,
    commits: u64,
    aborts: u64,
    replayed: u64,
}

impl Activity {
    fn now() -> Self {
        let engine = shmem::engine().expect("preloaded");
        let counters = engine.transactions();
        Activity {
            next_xid: pg::next_full_xid(),
            commits: counters.commits.load(Ordering::Relaxed),
            aborts: counters.aborts.load(Ordering::Relaxed),
            replayed: shmem::control()
                .recovery
                .replayed_lsn
                .load(Ordering::Relaxed),
        }
    }
}

struct Reclaimer {
    seen: Activity,
}

impl Reclaimer {
    /// One round; false if there was nothing to do.
    fn round(&mut self, session: &Session) -> bool {
        let engine = session.engine();
        if !matches!(engine.state(), State::Ready | State::Replaying) {
            return false;
        }
        let now = Activity::now();
        let horizon = horizon();
        let moved = horizon > engine.horizon();
        engine.raise_horizon(horizon);
        let work = mot_engine::transaction::free_doomed(session);
        session.memory().collect();
        let busy = work > 0 || moved || now != self.seen;
        self.seen = now;
        busy
    }
}

/// Versions superseded by a committed transaction below this are dead to everybody.
fn horizon() -> Xid {
    // SAFETY: computes over the ProcArray; NULL asks for all databases, which is the safest answer.
    clock::widen(unsafe { pg_sys::GetOldestNonRemovableTransactionId(std::ptr::null_mut()) })
}
