//! After replay: resolves what the log left open, and makes the tables ready for writers.
//!
//! - Definitions of transactions that committed stay, and others go; dropped ones the other way
//!   round. Those of transactions that may be prepared are left to the reclaimer
//!   (`reclaim/given_up.rs`).
//! - Row locks of the latter are put back (`transaction/kept_locks.rs`).
//! - Rows whose newest state has no hint are resolved. What did not commit is removed, and the next
//!   change of such a row is logged whole, since its LSN is that of a version that is gone.
//! - Empty row ids go to the free lists, and those behind the last segment can be given out anew.
//!   The load makes no segments for ranges without rows, so their row ids would otherwise be on no
//!   list, and lost.
//! - Rows are counted anew, because replay counted as if everything committed.
//!
//! Contract: no writer runs. Readers may (a standby that is promoted), so what is removed is
//! retired. The sweeper is kept out of the table that is being resolved: it could still be removing
//! entries of a row whose id is given away here.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::look::{look_at_row_ids, note};
use crate::clock::Clock;
use crate::engine::Engine;
use crate::engine::Reached;
use crate::errors::EngineError;
use crate::ids::{Lsn, RowId, Xid};
use crate::reclaim::{Quiet, clean_row};
use crate::row::{Anchor, Head, TxnStatus, VersionRef, flags, resolve_maker};
use crate::session::Session;
use crate::table::{DefinitionStatus, Outcome, TableRef, free_row_id, outcome};

/// What was found.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct Finished {
    /// Rows that had an unresolved state.
    pub rows_resolved: u64,
    /// States taken out because their transaction did not commit.
    pub versions_removed: u64,
    /// Row ids without a row, ready for new ones.
    pub row_ids_free: u64,
    /// Tables and indexes that are gone.
    pub definitions_removed: u64,
}

/// Resolves what is open and makes the tables ready for writers. `threads` look for it; the clock
/// is asked by the caller's thread alone.
pub fn finish(
    session: &Session,
    clock: &impl Clock,
    threads: usize,
) -> Result<Finished, EngineError> {
    let none = Xid(u64::MAX)..Xid(u64::MAX);
    finish_beside_prepared(session, clock, none, threads)
}

/// As `finish`, while transactions of `open` may be prepared. What is not known to have committed
/// of them stays open, in rows and in definitions. The sweeper resolves it when the server knows
/// which transactions these are. Their row locks are put back.
///
/// `open` ends where the server continues with new ids. A row whose maker's id is there is all that
/// is left of it, and is taken out. The id will be another transaction's, and its commit would be
/// taken for the row's.
pub fn finish_beside_prepared(
    session: &Session,
    clock: &impl Clock,
    open: Range<Xid>,
    threads: usize,
) -> Result<Finished, EngineError> {
    let mut finished = Finished::default();
    let clock = &BesidePrepared { clock, open };
    resolve_definitions_below(session, clock, Xid(u64::MAX), &mut finished);
    session.give_up_open_definitions();
    for walk in session.tables() {
        finish_table(session, clock, walk.table(), threads, &mut finished)?;
    }
    session.put_locks_back(|xid| clock.is_in_progress(xid))?;
    Ok(finished)
}

/// Resolves definitions while replay continues: for the reclaimer of a standby. Those whose
/// transaction is below `below` are resolved or unlinked, so that dropped tables give their memory
/// back and no outcome is asked for after the commit log was cut off. Returns how many tables and
/// indexes were unlinked.
///
/// `below` is a horizon of which it is known ([`AppliedHorizon`]) that everything logged by
/// transactions below it is applied. Replay workers may have rows of a table left that was rolled
/// back.
pub fn resolve_definitions(session: &Session, clock: &impl Clock, below: AppliedHorizon) -> u64 {
    let mut finished = Finished::default();
    resolve_definitions_below(session, clock, below.below, &mut finished);
    finished.definitions_removed
}

/// Unlinks the indexes whose drop has committed, and those whose maker was rolled back, while
/// replay continues: for its dispatcher, between two records and with nothing handed over, when a
/// table has no place for an index that the log names. Returns how many there were. What the
/// clock takes for running stays: the very record that finds no place may have made an index.
///
/// No horizon is needed. A session that looks an index up or scans it holds a lock on the table.
/// One that drops it has had the strongest one. An index whose maker was rolled back exists for
/// no session. So none looks it up, not even `mot.check`, beside which it may have been made. A
/// process that only walks a table's indexes is pinned, which is waited for before anything is
/// freed. Beside readers the commit log may have a drop's commit before it is replayed. That lock
/// is held until then, so no session looks the index up any more.
pub fn resolve_gone_indexes(session: &Session, clock: &impl Clock) -> u64 {
    let catalog = session.catalog();
    let mut unlinked = 0;
    for walk in session.tables() {
        let _pin = session.local.pin();
        let table = walk.table();
        for index in table.all_indexes() {
            let storage = index.storage();
            let created = storage.created.load(Ordering::Acquire);
            let creation = outcome(created, clock, Xid(u64::MAX));
            let dropped = Xid(storage.dropped.load(Ordering::Acquire));
            let is_dropped = dropped.is_some() && clock.did_commit(dropped);
            if is_dropped || matches!(creation, Outcome::Aborted) {
                catalog.defer_free_of_index(index);
                unlinked += 1;
            }
        }
    }
    unlinked
}

/// A horizon below which everything logged is applied. The caller keeps it from round to round.
#[derive(Copy, Clone, Default, Debug)]
pub struct AppliedHorizon {
    below: Xid,
    /// A later horizon, and what was handed over after it was found.
    next: Option<(Xid, Lsn)>,
}

impl AppliedHorizon {
    /// All transactions below have ended, and what they logged is applied.
    pub fn below(self) -> Xid {
        self.below
    }

    /// Takes a horizon that was just found into account, as soon as replay has come that far:
    /// perhaps only in a later round.
    pub fn raise(&mut self, engine: Engine, horizon: Xid) {
        let (horizon, handed) = *self.next.get_or_insert((horizon, engine.replay_handed()));
        if engine.replay_reached(handed) == Reached::Yes {
            self.below = self.below.max(horizon);
            self.next = None;
        }
    }
}

/// The clock while the prepared transactions are not known.
struct BesidePrepared<'a, C> {
    clock: &'a C,
    open: Range<Xid>,
}

impl<C: Clock> Clock for BesidePrepared<'_, C> {
    fn is_current(&self, xid: Xid) -> bool {
        self.clock.is_current(xid)
    }

    fn is_in_progress(&self, xid: Xid) -> bool {
        // What the commit log has of ids that were never known is not asked: it may not even have a
        // place for them.
        xid < self.open.end
            && (self.clock.is_in_progress(xid)
                || (self.open.contains(&xid) && !self.clock.did_commit(xid)))
    }

    fn did_commit(&self, xid: Xid) -> bool {
        xid < self.open.end && self.clock.did_commit(xid)
    }
}

/// Resolves or unlinks the definitions that transactions below `below` created or dropped.
pub(super) fn resolve_definitions_below(
    session: &Session,
    clock: &impl Clock,
    below: Xid,
    finished: &mut Finished,
) {
    let catalog = session.catalog();
    for walk in session.tables() {
        // At a promotion the reclaimer may be freeing what it resolved itself.
        let _pin = session.local.pin();
        let table = walk.table();
        if table.makers().resolve(clock, below) == DefinitionStatus::Gone {
            catalog.defer_free(table);
            finished.definitions_removed += 1;
            continue;
        }
        for index in table.all_indexes() {
            if index.makers().resolve(clock, below) == DefinitionStatus::Gone {
                catalog.defer_free_of_index(index);
                finished.definitions_removed += 1;
            }
        }
    }
}

/// Row ids of a part of a table that need more than a look.
#[derive(Default)]
struct Seen {
    empty: Vec<RowId>,
    open: Vec<RowId>,
    complete: Count,
}

/// Live rows and the bytes of their images.
#[derive(Copy, Clone, Default)]
struct Count {
    rows: i64,
    row_bytes: i64,
}

impl Count {
    fn add(&mut self, newest: Option<VersionRef>) {
        if let Some(version) = newest.filter(|version| !version.is_tombstone()) {
            self.rows += 1;
            self.row_bytes += version.image_bytes() as i64;
        }
    }
}

fn finish_table(
    session: &Session,
    clock: &impl Clock,
    table: TableRef,
    threads: usize,
    finished: &mut Finished,
) -> Result<(), EngineError> {
    let _quiet = Quiet::begin(table);
    let storage = table.storage();
    let end = storage.row_ids_end.load(Ordering::Acquire);
    let end_now = storage.directory.end_of_segments(end);
    storage.row_ids_end.store(end_now, Ordering::Release);
    let mut count = Count::default();
    let parts: Vec<Seen> = look_at_row_ids(session, table, threads, look)?;
    // Backwards, so that low row ids come first on the free list.
    for seen in parts.into_iter().rev() {
        count.rows += seen.complete.rows;
        count.row_bytes += seen.complete.row_bytes;
        for row_id in seen.empty.into_iter().rev() {
            free_row_id(table, row_id);
            finished.row_ids_free += 1;
        }
        for row_id in seen.open {
            finished.rows_resolved += 1;
            finish_row(session, clock, table, row_id, finished, &mut count);
        }
    }
    // Before the sweeper is let in: other tables are still to be finished, and no process lists for
    // this one again.
    storage.lists_free.store(1, Ordering::Release);
    let counters = table.counters();
    counters.rows.store(count.rows, Ordering::Relaxed);
    counters.row_bytes.store(count.row_bytes, Ordering::Relaxed);
    Ok(())
}

/// Puts a row id where what it needs is done.
fn look(row_id: RowId, anchor: &Anchor, seen: &mut Seen) -> Result<(), EngineError> {
    let head = anchor.head();
    let list = match head.version() {
        None if !head.may_be_given_away() => return Ok(()),
        None => &mut seen.empty,
        Some(version) if is_complete(version) => {
            seen.complete.add(Some(version));
            return Ok(());
        }
        Some(_) => &mut seen.open,
    };
    note(list, row_id)
}

/// Nothing to resolve, nothing to remove.
fn is_complete(version: VersionRef) -> bool {
    let now = version.flags();
    now & flags::COMMITTED != 0 && now & (flags::TOMBSTONE | flags::LOCK_ONLY) == 0
}

/// Resolves a row from the top down to its newest committed state.
///
/// An open state on top is of a prepared transaction, or may be: it is counted as committed, and
/// held with the greatest strength.
fn finish_row(
    session: &Session,
    clock: &impl Clock,
    table: TableRef,
    row_id: RowId,
    finished: &mut Finished,
    count: &mut Count,
) {
    let _pin = session.local.pin();
    let Some(anchor) = table.anchor(row_id) else {
        return;
    };
    let mut at = anchor.head().version();
    let mut kept = None;
    let mut is_open = false;
    while let Some(version) = at {
        at = version.next();
        match resolve_maker(version, clock) {
            TxnStatus::Running | TxnStatus::Mine => {
                if !is_open && !version.is_lock() {
                    version.add_flags(flags::COUNTED_EARLY | flags::UNIQUE_KEYS_CHANGED);
                    count.add(Some(version));
                    table.set_dirty(row_id);
                    is_open = true;
                }
            }
            TxnStatus::Committed if !version.is_lock() => {
                kept = Some(version);
                break;
            }
            _ => {
                remove(session, table, row_id, version);
                finished.versions_removed += 1;
            }
        }
    }
    if is_open {
        return;
    }
    count.add(kept);
    match kept {
        Some(version) if version.is_tombstone() => {
            table.set_dirty(row_id);
            table
                .counters()
                .stale_versions
                .fetch_add(1, Ordering::Relaxed);
        }
        Some(_) => {}
        None => {
            if anchor.head().may_be_given_away() {
                free_row_id(table, row_id);
                finished.row_ids_free += 1;
            }
        }
    }
}

/// Takes a version out of its row, with the entries only it needed.
fn remove(session: &Session, table: TableRef, row_id: RowId, version: VersionRef) {
    clean_row(session, table, row_id, |head, taken| {
        *head = head.with_flags(Head::FULL_IMAGE_NEXT);
        taken.take(head, version);
    });
}
