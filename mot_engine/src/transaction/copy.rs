//! A table's rows in another storage, with all that snapshots may still see of them: what CLUSTER,
//! VACUUM FULL and a change of the tablespace ask for. The caller's lock keeps all others out
//! of both tables. REFRESH MATERIALIZED VIEW fills the view's other storage by the same rules.
//!
//! Protocol:
//!
//! 1. **Versions keep their makers.** A row's committed states go along with their transaction ids
//!    and commands, from the newest down to the first that every snapshot sees. So a snapshot that
//!    is older than the copy sees in it what it saw in the table. No other transaction has
//!    unfinished work here: a running or prepared transaction would hold a lock.
//! 2. **The copy is no change.** Committed states are known to be committed, and have no operation:
//!    commit and abort have nothing to do with them. The storage was made by this transaction, and
//!    goes with it.
//! 3. **The own newest state** of a row, a deletion too, is put on top as a change of the current
//!    (sub)transaction, with its operation. The storage ends no later than that. Own states between
//!    are not seen: no query of the transaction reads the table meanwhile. Own row locks stay
//!    behind. The caller's lock, which ends when the storage does or with the transaction, is the
//!    stronger one.
//! 4. **The log is written at the end** (`log.rs`), as of any change: of each row that is not dead
//!    the newest committed state, as an insert, and behind these the operations. Only what is
//!    logged is marked as LOGGED. So checkpoints hold that, and not the older states, which no
//!    snapshot sees after a restart. A row that is dead but seen by a snapshot is not logged.
//! 5. **Replay makes the rows of this transaction**, for the older states are not in the log. The
//!    log says that the storage is a copy, and replay notes which transaction made it
//!    ([`TableRef::copied_by`]). A snapshot of a standby that does not see this transaction must
//!    not read the storage: it would miss every row. The caller raises instead. A storage that a
//!    checkpoint had while its creator ran counts as a copy, too.
//!
//! What could break it, and why it does not:
//! - The sweeper takes states out of both tables meanwhile. It takes what no snapshot sees; the
//!   reader is pinned; and the newest committed state of a row stays, since no transaction commits
//!   another one. So what is listed for the log stays where it is.
//! - A clock unwinds in the middle of a row: it is asked about a whole chain before anything is
//!   made of it.
//! - A checkpoint between copy and log has the storage without rows, or not at all. Their records
//!   are behind its redo position.
//! - A crash behind the log and before the commit record: the storage's creator did not commit, and
//!   it is unlinked with all that is in it.
//! - The row is changed, or deleted, behind the copy by the same transaction: the copied state is
//!   logged first, in a record of its own.

use super::insert::check_length;
use super::{Kind, Transaction};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{CommandId, Ordinal, RowId, Xid};
use crate::memory::{Purpose, Urgency};
use crate::row::{Head, TxnStatus, VersionRef, block_bytes, flags, resolve_maker};
use crate::session::Session;
use crate::table::TableRef;
use std::sync::atomic::Ordering;

/// What a copied state keeps of its flags.
const KEPT: u32 = flags::TOMBSTONE | flags::KEYS_CHANGED | flags::UNIQUE_KEYS_CHANGED;

/// Appends the body that a state is to have in the copy. May unwind with a PostgreSQL error.
pub type Form<'a> = dyn FnMut(VersionRef, &mut Vec<u8>) -> Result<(), EngineError> + 'a;

/// Which rows are meant.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// All that a snapshot sees.
    All,
    /// Those that are deleted, which no index scan of what is there now gives.
    Gone,
}

/// What became of a row's states, deletions not counted.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct CopiedRow {
    /// The row in the other table; `None` if no snapshot sees any of it.
    pub row: Option<RowId>,
    /// States that were copied.
    pub copied: u64,
    /// Those of them that were replaced or deleted, for older snapshots.
    pub recently_dead: u64,
    /// States that no snapshot sees.
    pub dead: u64,
}

/// A copy of one table into another one, which the current (sub)transaction has made and no code
/// has used.
pub struct TableCopy<'a, C> {
    session: &'a Session,
    clock: &'a C,
    from: TableRef,
    to: TableRef,
    xid: Xid,
    /// What a committed transaction below this superseded is seen by no snapshot.
    horizon: Xid,
    body: Vec<u8>,
}

impl<'a, C: Clock> TableCopy<'a, C> {
    /// Begins the copy. `xid` is that of the current (sub)transaction.
    pub fn begin(
        session: &'a Session,
        clock: &'a C,
        from: TableRef,
        to: TableRef,
        xid: Xid,
    ) -> Self {
        to.storage().holds_copies.store(1, Ordering::Release);
        TableCopy {
            session,
            clock,
            from,
            to,
            xid,
            horizon: session.horizon(),
            body: Vec::new(),
        }
    }

    /// The caller knows that what was superseded below this is seen by no session that can read the
    /// table: the engine's own horizon is that of a moment ago, and of all tables.
    pub fn raise_horizon(&mut self, horizon: Xid) {
        self.horizon = self.horizon.max(horizon);
    }

    /// Copies a row, if it is meant. With `form` each state gets a new body.
    pub fn row(
        &mut self,
        work: &mut Transaction,
        row_id: RowId,
        which: Which,
        mut form: Option<&mut Form<'_>>,
    ) -> Result<CopiedRow, EngineError> {
        let _pin = self.session.local.pin();
        let mut result = CopiedRow::default();
        let anchor = self.from.anchor(row_id);
        let Some(top) = anchor.and_then(|anchor| anchor.head().version()) else {
            return Ok(result);
        };
        resolve(top, self.clock)?;
        let seen = Seen::from(top, self.horizon);
        let newest = seen.clone().next();
        if which == Which::Gone && newest.is_some_and(|newest| !newest.is_tombstone()) {
            return Ok(result);
        }
        let is_row = |newest: VersionRef| !newest.is_tombstone() || seen.clone().nth(1).is_some();
        if !newest.is_some_and(is_row) {
            result.dead = states(top);
            return Ok(result);
        }
        let own = newest.filter(|newest| !newest.is_known_committed());
        if own.is_some() {
            work.begin_operation(self.to.key(), self.xid)?;
        }
        let _charge = self.session.charge(self.to);
        let mut copy = Chain::new(self.session);
        for version in seen {
            self.body.clear();
            let body = match &mut form {
                Some(form) if !version.is_tombstone() => {
                    form(version, &mut self.body)?;
                    &self.body[..]
                }
                _ => version.body(),
            };
            let xid = match version.is_known_committed() {
                true => version.xid(),
                false => self.xid,
            };
            copy.put_below(version, xid, body)?;
            result.copied += u64::from(!version.is_tombstone());
        }
        result.dead = states(top).saturating_sub(result.copied);
        let is_live = newest.is_some_and(|newest| !newest.is_tombstone());
        result.recently_dead = result.copied - u64::from(is_live);
        result.row = Some(self.publish(work, copy, own)?);
        Ok(result)
    }

    /// Gives a chain its row.
    fn publish(
        &self,
        work: &mut Transaction,
        copy: Chain<'_>,
        own: Option<VersionRef>,
    ) -> Result<RowId, EngineError> {
        let to = self.to;
        let (row_id, newest) = copy.publish(to)?;
        let counters = to.counters();
        if own.is_some() {
            let committed = newest_committed(newest);
            let kind = match (newest.is_tombstone(), committed) {
                (true, _) => Kind::Delete,
                (false, Some(_)) => Kind::Update,
                (false, None) => Kind::Insert,
            };
            work.push(kind, to, row_id, newest.address());
        }
        let below = chain(newest).skip(1).count();
        if below > 0 {
            let stale = &counters.stale_versions;
            stale.fetch_add(below as i64 - i64::from(own.is_some()), Ordering::Relaxed);
            to.set_dirty(row_id);
        }
        Ok(row_id)
    }
}

impl Transaction {
    /// Puts a row that every snapshot sees, older ones too, into a table that the current
    /// (sub)transaction has made and that holds nothing else. Core wants REFRESH MATERIALIZED VIEW
    /// to fill the view so: a session that reads it behind the refresh finds the new rows.
    ///
    /// Such a row is one that was copied of a transaction older than all others. No process reaches
    /// it before the maker of the table commits, and a rollback takes it back with the table.
    pub fn insert_frozen(
        &mut self,
        session: &Session,
        table: TableRef,
        body: &[u8],
    ) -> Result<(RowId, VersionRef), EngineError> {
        debug_assert!(!self.own_tables.counts_rows_of(table));
        let _charge = session.charge(table);
        let _pin = session.local.pin();
        table.storage().holds_copies.store(1, Ordering::Release);
        let mut row = Chain::new(session);
        let known = flags::KEYS_CHANGED | flags::COMMITTED;
        row.put_state_below(body, Xid::FROZEN, CommandId(0), known, Ordinal(0))?;
        row.publish(table)
    }
}

/// The newest committed state of a chain, if that is a row.
fn newest_committed(newest: VersionRef) -> Option<VersionRef> {
    chain(newest)
        .find(VersionRef::is_known_committed)
        .filter(|version| !version.is_tombstone())
}

/// Has the clock say of each state whose it is. What is copied goes by the hints.
fn resolve(top: VersionRef, clock: &impl Clock) -> Result<(), EngineError> {
    for version in chain(top) {
        if !version.is_lock() && resolve_maker(version, clock) == TxnStatus::Running {
            return Err(EngineError::Corrupt {
                what: "another transaction's unfinished work in a table that is locked",
            });
        }
    }
    Ok(())
}

/// States of a row that are no deletions.
fn states(top: VersionRef) -> u64 {
    chain(top).filter(VersionRef::has_keys).count() as u64
}

/// What is in a chain from a version on. Taken out meanwhile, that still leads on.
fn chain(top: VersionRef) -> impl Iterator<Item = VersionRef> {
    std::iter::successors(Some(top), VersionRef::next)
}

/// States that a snapshot may see, newest first: the newest of the own transaction, and the
/// committed ones down to the first that all see.
#[derive(Clone)]
struct Seen {
    at: Option<VersionRef>,
    above: Option<VersionRef>,
    horizon: Xid,
    has_own: bool,
}

impl Seen {
    /// Of a row of which each state was resolved. The caller is pinned.
    fn from(top: VersionRef, horizon: Xid) -> Seen {
        Seen {
            at: Some(top),
            above: None,
            horizon,
            has_own: false,
        }
    }
}

impl Iterator for Seen {
    type Item = VersionRef;

    fn next(&mut self) -> Option<VersionRef> {
        while let Some(version) = self.at {
            self.at = version.next();
            let now = version.flags();
            if now & (flags::LOCK_ONLY | flags::ABORTED) != 0 {
                continue;
            }
            let above = self.above.replace(version);
            if above.is_some_and(|above| version.is_former_image_of(above)) {
                continue;
            }
            if now & flags::COMMITTED == 0 {
                if !std::mem::replace(&mut self.has_own, true) {
                    return Some(version);
                }
                continue;
            }
            if version.xid() < self.horizon {
                self.at = None;
            }
            return Some(version);
        }
        None
    }
}

/// A chain that no process reaches yet; freed unless it is kept.
struct Chain<'a> {
    session: &'a Session,
    newest: Option<VersionRef>,
    oldest: Option<VersionRef>,
}

impl<'a> Chain<'a> {
    fn new(session: &'a Session) -> Chain<'a> {
        Chain {
            session,
            newest: None,
            oldest: None,
        }
    }

    /// Puts a copy of a state below all others.
    fn put_below(&mut self, state: VersionRef, xid: Xid, body: &[u8]) -> Result<(), EngineError> {
        let kept = state.flags() & (KEPT | flags::COMMITTED);
        self.put_state_below(body, xid, state.cid(), kept, state.ordinal())
    }

    /// Puts a state below all others.
    fn put_state_below(
        &mut self,
        body: &[u8],
        xid: Xid,
        cid: CommandId,
        flags: u32,
        ordinal: Ordinal,
    ) -> Result<(), EngineError> {
        check_length(body)?;
        let local = &self.session.local;
        let bytes = block_bytes(body.len());
        let block = local.allocate(bytes, Purpose::Rows, Urgency::Ordinary)?;
        // SAFETY: the block is fresh and large enough; the body's length was checked.
        let version = unsafe { VersionRef::write(block, body, xid, cid, flags) };
        version.put_ordinal(ordinal);
        match self.oldest {
            Some(above) => above.set_next(Head::empty().with_address(version.address())),
            None => self.newest = Some(version),
        }
        self.oldest = Some(version);
        Ok(())
    }

    /// Gives the chain a row, and has the table count it. Its newest state.
    fn publish(mut self, table: TableRef) -> Result<(RowId, VersionRef), EngineError> {
        let session = self.session;
        let row_id = session
            .batches
            .borrow_mut()
            .take(&session.local, session.catalog(), table)?;
        let anchor = table.anchor(row_id);
        let anchor = anchor.expect("a row id that was handed out has an anchor");
        let newest = self.newest.take().expect("a row has a state");
        let head = Head::empty().with_address(newest.address());
        while !anchor.publish(Head::empty(), head) {
            anchor.wait_unlatched();
        }
        if let Some(committed) = newest_committed(newest) {
            let counters = table.counters();
            let bytes = committed.image_bytes() as i64;
            counters.rows.fetch_add(1, Ordering::Relaxed);
            counters.row_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok((row_id, newest))
    }
}

impl Drop for Chain<'_> {
    fn drop(&mut self) {
        let mut at = self.newest.take();
        while let Some(version) = at {
            at = version.next();
            // SAFETY: never published.
            unsafe {
                let (block, bytes) = (version.block(), version.block_bytes());
                self.session.local.free(block, bytes, Purpose::Rows);
            }
        }
    }
}
