//! Which transactions' outcomes may still have to be asked for.
//!
//! The server may forget the outcomes of transactions that nobody needs (PostgreSQL: VACUUM cuts
//! the commit log off). A version whose hint says neither COMMITTED nor ABORTED needs its
//! transaction's. Who makes the server forget is told a bound, and this is how it is found, by the
//! one process that sweeps:
//!
//! 1. A := the oldest transaction that is running now.
//! 2. M := the oldest mark ([`Engine::oldest_unjudged`]).
//! 3. Every table is swept; no group of rows is passed over
//!    ([`Sweep::groups_kept_out`](super::Sweep::groups_kept_out)).
//! 4. No outcome below min(A, M) will be asked for.
//!
//! Why that holds, of a version of transaction X below the bound. X had ended at 1, for it is below
//! A, and everything it made was made before. Then either its session stamps the versions that are
//! left or takes them out, and X was marked from its first write until that was done, so it had
//! been done at 2. Or nobody does: the session gave it up (PREPARE), or was lost (a crash). Then
//! its rows were noted as having something to do before X could end, or before the first sweep,
//! which looks at every row. In both cases what a session leaves behind in a row that somebody else
//! is cleaning is noted before the mark goes. So 3 has looked at the version and settled its hint.
//!
//! - The mark is set while the transaction runs, and taken off (Release) after the last hint is set
//!   and the last row noted. Whoever reads 0 (Acquire) sees both. That 2 sees a mark of who had
//!   ended at 1 is the server's lock over who runs, which both pass.
//! - While X runs its mark changes nothing: A is not above it.
//! - A version below a committed one that everybody sees is not looked at: it is taken out unasked,
//!   here or by who comes next.
//! - What the server forgot all the same (before this process began to tell it, or by damage) is
//!   left as it is, and reported: it is not to hold the bound for ever, for that helps nobody.

use crate::engine::Engine;
use crate::ids::Xid;
use crate::session::Session;
use crate::sync::{Ordering, is_broken};

impl Session {
    /// From its first write until [`Session::end_unjudged`] this transaction (top level) may have
    /// versions that only the server's outcome judges.
    pub fn begin_unjudged(&self, xid: Xid) {
        debug_assert!(xid != Xid::NONE);
        if !is_broken("unjudged: the mark") {
            self.line.unjudged.store(xid.0, Ordering::Relaxed);
        }
    }

    /// The transaction has ended or was given up, and all its rows are stamped, taken back, or
    /// noted for the sweeper.
    pub fn end_unjudged(&self) {
        self.line.unjudged.store(0, Ordering::Release);
    }
}

impl Engine {
    /// The oldest transaction that has written and whose session has not seen to all its rows yet.
    pub fn oldest_unjudged(self) -> Option<Xid> {
        let marks = self.root().sessions.iter();
        marks
            .map(|line| line.unjudged.load(Ordering::Acquire))
            .filter(|mark| *mark != 0)
            .min()
            .map(Xid)
    }
}
