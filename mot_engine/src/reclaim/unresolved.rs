//! The bound below which no transaction's outcome will be asked for.
//!
//! The server may forget outcomes that no session needs: in PostgreSQL, VACUUM truncates the commit
//! log. A version whose hint says neither COMMITTED nor ABORTED still needs its transaction's
//! outcome. The process that sweeps finds the bound, and the code that truncates the log gets it:
//!
//! 1. A := the oldest transaction that is running now.
//! 2. M := the oldest mark ([`Engine::oldest_unresolved`]).
//! 3. Every table is swept; no group of rows is passed over
//!    ([`Sweep::groups_kept_out`](super::Sweep::groups_kept_out)).
//! 4. No outcome below min(A, M) will be asked for.
//!
//! **Why that holds**, for a version of a transaction X below the bound. X had ended at 1, because
//! it is below A, and all its versions were made before. There are two cases:
//!
//! - Its session sets COMMITTED in the versions that are left, or removes them. X was marked from
//!   its first write until that was done, so it was done at 2.
//! - No session does: the session gave X up (PREPARE), or was lost (a crash). Then the dirty bits
//!   of its rows were set before X could end, or before the first sweep, which visits every row.
//!
//! In both cases, if another process was cleaning a row, its dirty bit was set before the mark
//! went. So 3 has visited the version and set its hint.
//!
//! - The mark is set while the transaction runs, and taken off (Release) after the last hint and
//!   the last dirty bit are set. A process that reads 0 (Acquire) sees both. If a transaction had
//!   ended at 1 and is still marked, 2 sees the mark: both pass the server's lock on running ones.
//! - While X runs its mark changes nothing: A is not above it.
//! - A version below a committed one that every snapshot sees is not resolved: it is removed
//!   without, here or by the next process that meets it.
//! - If the server forgot an outcome all the same (before this process gave a bound, or by damage),
//!   the version is left as it is, and reported. To hold the bound for it for ever would help
//!   no reader.

use crate::engine::Engine;
use crate::ids::Xid;
use crate::session::Session;
use crate::sync::{Ordering, is_broken};

impl Session {
    /// From its first write until [`Session::end_unresolved`] this transaction (top level) may have
    /// versions that only the server's outcome resolves.
    pub fn begin_unresolved(&self, xid: Xid) {
        debug_assert!(xid != Xid::NONE);
        if !is_broken("unresolved: the mark") {
            self.line.unresolved.store(xid.0, Ordering::Relaxed);
        }
    }

    /// The transaction has ended or was given up. All its rows have their hints, are taken back, or
    /// are noted for the sweeper.
    pub fn end_unresolved(&self) {
        self.line.unresolved.store(0, Ordering::Release);
    }
}

impl Engine {
    /// The oldest transaction that has written and whose session has not set the hints of all its
    /// rows yet.
    pub fn oldest_unresolved(self) -> Option<Xid> {
        let marks = self.root().sessions.iter();
        marks
            .map(|line| line.unresolved.load(Ordering::Acquire))
            .filter(|mark| *mark != 0)
            .min()
            .map(Xid)
    }
}
