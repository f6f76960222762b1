//! PostgreSQL's clock: transaction ids, the commit log and snapshots, as the engine's `Clock` and
//! `Snapshot` see them.
//!
//! - An xid of the engine is PostgreSQL's full 64-bit id. PostgreSQL's own functions take 32 bits;
//!   an id is cut on the way in and widened on the way out against the next id, which is right
//!   while both are within 2^31 of each other.
//! - `is_current` never raises and is called without a guard; `is_in_progress`, `did_commit` and an
//!   overflowed snapshot may read the commit log or pg_subtrans from disk and so may raise: the
//!   engine calls them with no latch held.
//! - A [`PgSnapshot`] borrows the arrays of PostgreSQL's snapshot: it must not outlive the
//!   registration of that snapshot.
use super::applied;
use crate::pg;
use mot_engine::{Clock, CommandId, Snapshot, Xid};
use pgrx::pg_sys;

/// The status of transactions, from PostgreSQL.
#[derive(Clone, Copy, Debug, Default)]
pub struct PgClock;

/// PostgreSQL's 32 bits of an id.
pub fn narrow(xid: Xid) -> pg_sys::TransactionId {
    pg_sys::TransactionId::from_inner(xid.0 as u32)
}

/// The full id of one of PostgreSQL's 32-bit ids that is not far from the next id.
pub fn widen(xid: pg_sys::TransactionId) -> Xid {
    Xid(pg::widen_xid(xid.into_inner(), pg::next_full_xid()))
}

/// The full id of one of PostgreSQL's 32-bit ids that is at most `next` and less than 2^32 behind
/// it: for ids of a long stretch of the log, which may be further back than PostgreSQL itself ever
/// has to look.
pub fn widen_before(xid: pg_sys::TransactionId, next: Xid) -> Xid {
    let xid = xid.into_inner();
    let behind = u64::from((next.0 as u32).wrapping_sub(xid));
    Xid(match next.0.checked_sub(behind) {
        Some(full) if xid >= pg_sys::FirstNormalTransactionId.into_inner() => full,
        // Special ids keep their value, and there is none before the first.
        _ => pg::widen_xid(xid, next.0),
    })
}

/// The oldest transaction that is running, prepared ones included; the next one if none is. Not in
/// recovery. May raise.
pub fn oldest_active() -> Xid {
    // SAFETY: looks through the ProcArray under its lock.
    widen(unsafe { pg_sys::GetOldestActiveTransactionId() })
}

/// PostgreSQL's horizon of rows in all databases: every transaction below it has ended, for
/// every snapshot, too. This process may ask [`PgClock`] from now on.
///
/// Snapshots, prepared transactions, standbys' feedback and slots that keep rows (`xmin`) hold it
/// back. Slots of logical decoding, which keep rows of catalogs (`catalog_xmin`), do not, as on
/// heap tables: decoding reads no rows of ours. They do hold back
/// `GetOldestNonRemovableTransactionId(NULL)`, which is about catalogs shared by all databases.
///
/// A process that asks PostgreSQL which transactions are in progress rests on two variables of its
/// process that only the taking of a snapshot keeps fresh, and is to call this first, again and
/// again, if it takes none:
/// - RecentXmin: no transaction below it is asked about;
/// - TransactionXmin: a subtransaction is not followed to its parents from there down, and one
///   whose parent may still decide is asked in pg_subtrans, which is cut off below.
///
/// As a process begins they are 3, and on the circle of 32-bit ids every id of the upper half
/// precedes 3, as it does one that has fallen half a circle behind: a subtransaction that
/// PostgreSQL does not keep at hand would be its own top, and taken for one that has ended. The
/// oldest running transaction is right for both: no transaction below it runs, whatever is followed
/// from an id at or above it ends at a transaction that runs or at one that does not matter, and
/// pg_subtrans reaches back to it as long as a transaction runs that it would be read for. (Cut off
/// meanwhile, reading it is an error, not an answer.) The horizon itself is too old: after a start
/// our workers show one that pg_subtrans does not reach back to
/// (`transaction::horizon::outcome_bound`). On a standby, where they show none, the horizon is the
/// oldest that runs, or is read.
pub fn fresh_horizon() -> Xid {
    // SAFETY: computes over the ProcArray, of which this process is a member. In recovery it counts
    // the transactions known to run on the primary. The others are plain variables of this process;
    // where it has a snapshot, it is in the horizon.
    let oldest = unsafe {
        let mut oldest = pg_sys::InvalidTransactionId;
        let mut of_catalogs = pg_sys::InvalidTransactionId;
        pg_sys::GetReplicationHorizons(&raw mut oldest, &raw mut of_catalogs);
        let running = match pg_sys::RecoveryInProgress() {
            true => oldest,
            false => pg_sys::GetOldestActiveTransactionId(),
        };
        pg_sys::RecentXmin = running;
        pg_sys::TransactionXmin = running;
        oldest
    };
    widen(oldest)
}

impl Clock for PgClock {
    fn is_current(&self, xid: Xid) -> bool {
        pg::is_current_xid(xid.0)
    }

    fn is_in_progress(&self, xid: Xid) -> bool {
        // SAFETY: any id may be asked about; may raise, which the trait allows.
        unsafe { pg_sys::TransactionIdIsInProgress(narrow(xid)) }
    }

    fn did_commit(&self, xid: Xid) -> bool {
        did_commit(xid)
    }

    fn is_cancelled(&self) -> bool {
        pg::interrupts::is_cancel_pending()
    }
}

/// What the commit log says of a finished transaction.
fn did_commit(xid: Xid) -> bool {
    // SAFETY: any id may be asked about; may raise, which the trait allows.
    unsafe { pg_sys::TransactionIdDidCommit(narrow(xid)) }
}

/// Whether the commit log says at this moment that a transaction has committed. PostgreSQL's own
/// answer remembers the last transaction that had ended, and replay of a commit record does not
/// make it forget an "aborted" that a crash had left of an id that was given out again. May raise.
pub fn is_marked_committed(xid: Xid) -> bool {
    let mut lsn = 0;
    // SAFETY: any id that was given out may be asked about.
    let status = unsafe { pg_sys::TransactionIdGetStatus(narrow(xid), &raw mut lsn) };
    status as u32 == pg_sys::TRANSACTION_STATUS_COMMITTED
}

/// The clock about transactions that have ended, whatever the server still knows of running ones.
pub struct EndedClock;

impl Clock for EndedClock {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }

    fn is_in_progress(&self, _xid: Xid) -> bool {
        false
    }

    fn did_commit(&self, xid: Xid) -> bool {
        did_commit(xid)
    }
}

/// One of PostgreSQL's MVCC snapshots.
#[derive(Clone, Copy, Debug)]
pub struct PgSnapshot<'a> {
    xmin: Xid,
    xmax: Xid,
    command: u32,
    /// Running top-level transactions.
    tops: &'a [u32],
    /// Running subtransactions; on a standby all running transactions.
    subs: &'a [u32],
    overflowed: bool,
    in_recovery: bool,
    resolves_ahead: bool,
}

impl<'a> PgSnapshot<'a> {
    /// The same, for a scan that resolves no row before it is asked for.
    pub fn one_by_one(self) -> Self {
        PgSnapshot {
            resolves_ahead: false,
            ..self
        }
    }

    /// No transaction from here on had begun.
    pub fn xmax(&self) -> Xid {
        self.xmax
    }

    /// Reads an MVCC snapshot of PostgreSQL.
    ///
    /// On a standby it waits until the tables have what the snapshot sees; so it may raise, and no
    /// latch may be held.
    pub fn new(snapshot: pg::snapshot::Snapshot<'a>) -> Self {
        debug_assert!(snapshot.is_mvcc());
        let snapshot = snapshot.as_ptr();
        // SAFETY: a valid snapshot.
        if unsafe { (*snapshot).takenDuringRecovery } {
            applied::wait_until_applied();
        }
        // SAFETY: the snapshot is valid and registered for `'a`, and PostgreSQL never changes a
        // snapshot's arrays once it is taken; TransactionId is a transparent u32.
        unsafe {
            let s = &*snapshot;
            let next = pg::next_full_xid();
            PgSnapshot {
                xmin: Xid(pg::widen_xid(s.xmin.into_inner(), next)),
                xmax: Xid(pg::widen_xid(s.xmax.into_inner(), next)),
                command: s.curcid,
                tops: slice(s.xip, s.xcnt as usize),
                subs: slice(s.subxip, s.subxcnt.max(0) as usize),
                overflowed: s.suboverflowed,
                in_recovery: s.takenDuringRecovery,
                resolves_ahead: true,
            }
        }
    }
}

/// Empty without an array: a copied snapshot whose subtransactions have overflowed has none, though
/// their count stays.
///
/// # Safety
/// `start` points to `len` ids that outlive `'a`, or is NULL, or `len` is 0.
unsafe fn slice<'a>(start: *const pg_sys::TransactionId, len: usize) -> &'a [u32] {
    const { assert!(size_of::<pg_sys::TransactionId>() == size_of::<u32>()) };
    if len == 0 || start.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start.cast(), len) }
}

impl Snapshot for PgSnapshot<'_> {
    fn xmin(&self) -> Xid {
        self.xmin
    }

    fn own(&self, xid: Xid, cid: CommandId) -> Option<bool> {
        pg::is_current_xid(xid.0).then_some(cid.0 < self.command)
    }

    /// `XidInMVCCSnapshot`, arm by arm.
    fn running(&self, xid: Xid) -> bool {
        if xid < self.xmin {
            return false;
        }
        if xid >= self.xmax {
            return true;
        }
        let mut short = xid.0 as u32;
        if !self.in_recovery {
            if !self.overflowed {
                if self.subs.contains(&short) {
                    return true;
                }
            } else {
                short = topmost(short);
                if pg::widen_xid(short, xid.0) < self.xmin.0 {
                    return false;
                }
            }
            return self.tops.contains(&short);
        }
        if self.overflowed {
            short = topmost(short);
            if pg::widen_xid(short, xid.0) < self.xmin.0 {
                return false;
            }
        }
        self.subs.contains(&short)
    }

    fn did_commit(&self, xid: Xid) -> bool {
        did_commit(xid)
    }

    fn may_resolve_early(&self) -> bool {
        self.resolves_ahead
    }

    fn between_groups(&self) {
        pg::interrupts::check_for_interrupts();
    }
}

/// The top-level transaction of a subtransaction, from pg_subtrans.
fn topmost(xid: u32) -> u32 {
    // SAFETY: the id is not older than the snapshot's xmin, which PostgreSQL keeps pg_subtrans for;
    // may raise.
    unsafe { pg_sys::SubTransGetTopmostTransaction(pg_sys::TransactionId::from_inner(xid)) }
        .into_inner()
}
