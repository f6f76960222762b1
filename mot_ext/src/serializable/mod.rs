//! SERIALIZABLE: PostgreSQL's own serializable snapshot isolation (predicate.c), informed of what
//! is read and written here.
//!
//! Core finds dangerous structures of rw-dependencies among transactions and raises 40001; it must
//! hear of each pair "R did not see what W, running beside it, wrote". Locks are core's, so one
//! guarantee covers heap and memory-optimized tables together.
//!
//! # Which code reports what
//!
//! | code | what, in this order |
//! |---|---|
//! | R, a scan of all rows | locks the table; then reads |
//! | R, a range of keys of an index | locks it; then reads entries, and the rows they lead to |
//! | R, a row by an index or a `ctid` | locks the version seen; then reads its chain again |
//! | R, before it hands out any row | reports whose states its snapshot passed over ([`Unseen`]) |
//! | W, INSERT | installs the row, makes its entries; then asks (table, entries) |
//! | W, UPDATE | installs the state, makes new entries; then asks (version, new entries) |
//! | W, DELETE | installs the tombstone; then asks (version) |
//! | W, a duplicate key | asks, as if the write were done, before it raises 23505 (below) |
//! | W, TRUNCATE, DROP TABLE | asks (anything of the table) |
//! | DDL that changes an index's keys under its oid | makes the index's locks the table's |
//!
//! W asks for readers of what is in the brackets. "Version" is the one that it replaced, with its
//! page and the table; "entries" are the ranges of each entry. Core makes an index's locks the
//! table's at DROP INDEX, too.
//!
//! A range is "all keys whose first n columns are these", for the n columns that the conditions fix
//! by one value each, named by a number of 32 bits ([`mot_engine::key::prefix_number`]), and locked
//! as a page of the index. Without fixed columns it is the whole index. An entry is in one range
//! for each n, and its maker asks for all. Equal numbers of different ranges cost a needless 40001,
//! never a missed one; so do rows whose slot is used again, and versions of a row whose places are
//! the same ([`RowPlace`]).
//!
//! # No pair is missed
//!
//! W's change c is what R would have seen differently. Both pass through core's lock of the target
//! they share (R's row or range or table, which c is in): one of them is first.
//! - R's lock is first: W's question comes after c is installed, finds the lock.
//! - W's question is first: c, and its entries, were installed before it; R reads after its lock,
//!   so R meets c. R's snapshot does not see it (or there is no dependency), so the walk to the
//!   state it does see passes c, or a later state on top of c, and reports.
//!
//! Core's partition locks order the memory accesses. When core promotes a lock it takes the coarser
//! one before it gives up the finer, and a question goes from fine to coarse; each of ours does,
//! for its own row or range.
//!
//! Which target do they share?
//! - c replaces the version that R saw, and R got it: from a scan of all rows, the table; else the
//!   version. R finds it before it can lock it, so it looks again after: c was there, or W finds
//!   the lock.
//! - c replaces a later version of that row: then another W' replaced the one that R saw, and W saw
//!   what W' wrote. R meets W'; W' comes before W. A cycle over R and W is one over R, W' and W: R
//!   -> W' is enough, and heap reports no more. If W has made the later version itself, it is the
//!   W' of the rule above.
//! - c makes a row, or moves one, into a range R read: the range.
//! - c changes a row that R's snapshot does not see, in a range R read: then another W' made the
//!   row, or moved it there, after R's snapshot. R meets W'; W' comes before W. A cycle over R and
//!   W is one over R, W' and W: R -> W' is enough.
//!
//! What is no longer in a chain does not matter: a state is taken out when its maker took it back,
//! when its own transaction replaced it (the later state has the same top-level transaction), or
//! when a newer one is committed below the horizon, which R's snapshot sees. Likewise an entry
//! stays while a state that R's snapshot sees, or one above it, has its key.
//!
//! W asks after it has written, where heapam asks before, under the page's lock: what matters is
//! only that it asks before it can commit. If the answer is 40001, abort takes the change back as
//! any other.
//!
//! What core makes of the pairs rests on which one committed first: `commit_order`.
//!
//! # A duplicate key
//!
//! PostgreSQL promises 40001, not 23505, to a transaction that looks for a key before writing it,
//! where another transaction R has done the same. The second try finds the key.
//!
//! So W, which meets R's key, asks all that it would ask after the write, then raises 23505.
//! The table or the old row belongs to that: an R that has read all rows has locked no range.
//! - R has committed, since W waits for a key's owner that runs. If W has looked and not found the
//!   key, it overlaps R, and core keeps R's locks as long as W runs.
//! - W did not see R's row: W's look reported R, or R's question found W's lock (above).
//! - R did not see W's row: W's question finds R's lock.
//! - Both pairs, and R has committed first: core fails W, at the question or before.
//!
//! # Cost
//!
//! Outside SERIALIZABLE: one test of the isolation level per statement and table, and one branch
//! per row. Inside: core's locks; compiled statements are not run.
//!
//! # What is not covered, as on heap tables
//!
//! Row locks (they conflict by themselves), a `ctid` that no row has, and transactions of other
//! isolation levels.
pub mod commit_order;

use crate::errors::or_raise;
use crate::pg::predicate::{RowPlace, Subject};
use crate::pg::snapshot::Snapshot as Registered;
use crate::shared_memory::test_switch::{self, Step};
use crate::transaction::clock::{PgClock, PgSnapshot, narrow};
use crate::transaction::session;
use mot_engine::key::prefix_number;
use mot_engine::{Clock, CommandId, EngineError, RowId, Snapshot, TableRef, VersionRef, Xid};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

/// Whether the transaction is SERIALIZABLE.
pub fn is_on() -> bool {
    // SAFETY: a plain variable of this process.
    unsafe { pg_sys::XactIsoLevel == pg_sys::XACT_SERIALIZABLE as i32 }
}

/// Whether the transaction is SERIALIZABLE, and the table one that others use, too.
pub fn is_on_for(table: TableRef) -> bool {
    is_on() && !table.key().is_temporary()
}

/// A snapshot that may want to know how it is used.
pub trait Reading: Snapshot {
    /// Keys of an index are about to be read that begin with `columns` columns' encodings.
    fn begin_range(&self, index: pg_sys::Oid, columns: usize, prefix: &[u8]);
    /// Reads of ranges are not counted: several may be before a row is handed out.
    fn may_read_ahead(&self) -> bool;
}

/// Any other isolation level.
impl Reading for PgSnapshot<'_> {
    #[inline]
    fn begin_range(&self, _index: pg_sys::Oid, _columns: usize, _prefix: &[u8]) {}

    #[inline]
    fn may_read_ahead(&self) -> bool {
        true
    }
}

/// Makers of states that a snapshot passed over. Filled while the engine is pinned, so nothing may
/// be raised then.
#[derive(Default)]
struct Unseen {
    makers: RefCell<Vec<Xid>>,
    is_incomplete: Cell<bool>,
}

impl Unseen {
    fn add(&self, xid: Xid) {
        let mut makers = self.makers.borrow_mut();
        if makers.last() == Some(&xid) {
            return;
        }
        if makers.try_reserve(1).is_err() {
            self.is_incomplete.set(true);
            return;
        }
        makers.push(xid);
    }
}

/// Reading one table in a SERIALIZABLE transaction.
pub struct Reader {
    table: Box<Subject>,
    /// As core wants it.
    registered: Registered<'static>,
    snapshot: PgSnapshot<'static>,
    unseen: Unseen,
}

/// The transaction's snapshot, with note taken of what it does not see.
impl Snapshot for Reader {
    fn xmin(&self) -> Xid {
        self.snapshot.xmin()
    }

    fn own(&self, xid: Xid, cid: CommandId) -> Option<bool> {
        self.snapshot.own(xid, cid)
    }

    fn running(&self, xid: Xid) -> bool {
        let is_running = self.snapshot.running(xid);
        if is_running {
            self.unseen.add(xid);
        }
        is_running
    }

    fn did_commit(&self, xid: Xid) -> bool {
        self.snapshot.did_commit(xid)
    }

    /// What is passed over is reported before the next row is handed out: a row that no caller
    /// reads shall cost no transaction a 40001.
    fn may_resolve_early(&self) -> bool {
        false
    }

    fn between_groups(&self) {
        self.snapshot.between_groups();
    }
}

impl Reading for Reader {
    fn begin_range(&self, index: pg_sys::Oid, columns: usize, prefix: &[u8]) {
        if test_switch::skips(Step::PredicateLocks) {
            return;
        }
        let index = Subject::new(index);
        if columns == 0 {
            index.lock_all(self.registered);
        } else {
            index.lock_range(prefix_number(columns, prefix), self.registered);
        }
    }

    fn may_read_ahead(&self) -> bool {
        false
    }
}

impl Reader {
    /// For a table that is locked.
    pub fn new(table: pg_sys::Oid, registered: Registered<'static>) -> Box<Reader> {
        Box::new(Reader {
            table: Subject::new(table),
            registered,
            snapshot: PgSnapshot::new(registered),
            unseen: Unseen::default(),
        })
    }

    /// All rows are about to be read.
    pub fn begin_all(&self) {
        if test_switch::skips(Step::PredicateLocks) {
            return;
        }
        self.table.lock_all(self.registered);
    }

    /// A row was found. Locks it, and finds which transactions changed it.
    pub fn found(&self, table: TableRef, row: RowId, version: VersionRef) {
        // Asked only whether it is ours, for no lock is needed then. An id of an earlier turn of
        // the circle is not, though it has the same 32 bits.
        let maker = if PgClock.is_current(version.xid()) {
            narrow(version.xid())
        } else {
            pg_sys::FrozenTransactionId
        };
        if !test_switch::skips(Step::PredicateLocks) {
            self.table
                .lock_row(place(row, version), maker, self.registered);
        }
        session::session().visible(table, row, self);
        // A state may follow that differs in its computed keys alone: a writer that changes that
        // one asks for readers of it.
        let is_followed = !self.unseen.makers.borrow().is_empty();
        if is_followed && session::session().has_computed_keys(table) {
            self.begin_all();
        }
    }

    /// Reports the writers of what was not seen since the last time; raises 40001 if that, or
    /// anything before, dooms the transaction.
    pub fn report(&self) {
        let mut makers = self.unseen.makers.take();
        if self.unseen.is_incomplete.take() {
            or_raise::<()>(Err(EngineError::OutOfProcessMemory));
        }
        if !self.table.is_watched(self.registered) || makers.is_empty() {
            return;
        }
        makers.sort_unstable();
        makers.dedup();
        for maker in &makers {
            self.report_maker(*maker);
        }
        // Only the memory.
        makers.clear();
        self.unseen.makers.replace(makers);
    }

    fn report_maker(&self, maker: Xid) {
        // Work that was taken back has no writer.
        if !PgClock.is_in_progress(maker) && !PgClock.did_commit(maker) {
            return;
        }
        // SAFETY: the snapshot counts it as running, so it is not below its xmin, and
        // TransactionXmin is not above that.
        unsafe {
            let top = pg_sys::SubTransGetTopmostTransaction(narrow(maker));
            if !pg_sys::TransactionIdPrecedes(top, pg_sys::TransactionXmin) {
                self.table.conflict_out(top, self.registered);
            }
        }
    }
}

/// A row was inserted, its entries made.
pub fn inserted(oid: pg_sys::Oid, table: TableRef, version: VersionRef) {
    Subject::new(oid).conflict_in();
    entered(table, None, version);
}

/// A row was changed from the state `seen`, new entries made.
pub fn updated(
    oid: pg_sys::Oid,
    table: TableRef,
    row: RowId,
    seen: VersionRef,
    version: VersionRef,
) {
    Subject::new(oid).conflict_in_row(place(row, seen));
    if version.changed_keys() {
        entered(table, Some(seen), version);
    }
}

/// A row was deleted, of which `seen` was the state.
pub fn deleted(oid: pg_sys::Oid, row: RowId, seen: VersionRef) {
    Subject::new(oid).conflict_in_row(place(row, seen));
}

fn place(row: RowId, version: VersionRef) -> RowPlace {
    RowPlace::new(row, version.ordinal())
}

/// A new row, or the state that follows `seen`, has the key of another row: 23505 is next. Asks for
/// all readers that the write would have asked for; 40001 is the truer reason.
pub fn met_duplicate(
    oid: pg_sys::Oid,
    table: TableRef,
    row: RowId,
    seen: Option<VersionRef>,
    version: VersionRef,
) {
    match seen {
        None => Subject::new(oid).conflict_in(),
        Some(seen) => Subject::new(oid).conflict_in_row(place(row, seen)),
    }
    entered(table, seen, version);
}

/// Entries of a state were made, or would be.
fn entered(table: TableRef, seen: Option<VersionRef>, version: VersionRef) {
    let old = seen.as_ref().map(VersionRef::body);
    let ranges = or_raise(session::session().entry_ranges(table, old, version.body()));
    let mut index: Option<(u32, Box<Subject>)> = None;
    for range in ranges {
        let subject = match &mut index {
            Some((oid, subject)) if *oid == range.index => subject,
            other => {
                let oid = pg_sys::Oid::from(range.index);
                &mut other.insert((range.index, Subject::new(oid))).1
            }
        };
        subject.conflict_in_range(range.number);
    }
}

/// All rows of a table go: TRUNCATE, DROP TABLE.
pub fn emptied(oid: pg_sys::Oid) {
    Subject::new(oid).conflict_in_all();
}
