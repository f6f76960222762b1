//! Commit: sets COMMITTED in the transaction's versions, cuts out states between, updates counters.
//! It runs after PostgreSQL's commit record has decided, and cannot fail.
//!
//! From the moment PostgreSQL has decided, others may resolve our versions as committed, put theirs
//! on top and even prune ours. So each version is first looked up in its row's chain.

use super::examine::data_below;
use super::log::committed_below;
use super::pending_free::{release_index, release_table};
use super::pinned::Pinned;
use super::prefetch::PrefetchWindow;
use super::{Kind, Operation, Own, Transaction};
use crate::ids::RowId;
use crate::memory::Purpose;
use crate::pause::{Point, reach};
use crate::reclaim::{Part, leave, prune_row, take_states_out, tidy_row, without_stale_lock_flag};
use crate::row::{Anchor, VersionRef, flags, unlink};
use crate::session::{PendingPrunes, Session};
use crate::table::TableRef;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

impl Transaction {
    /// The transaction committed.
    pub fn commit(&mut self, session: &Session) {
        reach(Point::CommitBeforeHints);
        let mut pinned = Pinned::begin(session);
        let mut counts = Counts::default();
        let mut pending_prunes = session.pending_prunes.borrow_mut();
        pending_prunes.begin();
        let window = PrefetchWindow::of(&self.operations);
        for (position, operation) in self.operations.iter().enumerate() {
            pinned.step();
            window.prefetch(position, |_| true);
            match operation.kind() {
                Kind::Insert | Kind::Update | Kind::Delete => {
                    let grown = commit_row(session, &self.own, operation, &mut pending_prunes);
                    counts.add(operation, self.grown(operation, grown));
                    reach(Point::CommitBetweenHints);
                }
                Kind::Lock => unlock(session, &self.own, operation),
                Kind::CreateTable => operation
                    .table
                    .storage()
                    .created
                    .store(0, Ordering::Release),
                Kind::CreateIndex => {
                    operation
                        .index()
                        .storage()
                        .created
                        .store(0, Ordering::Release);
                }
                Kind::DropTable | Kind::DropIndex => {}
            }
        }
        self.commit_own_tables(&mut pinned, &mut counts);
        counts.flush();
        pending_prunes.take_out(session.horizon(), |table, row_id| {
            tidy_row(session, table, row_id)
        });
        drop(pending_prunes);
        reach(Point::CommitBeforeRelease);
        // Indexes first: an unlinked table may be freed at once, with its indexes.
        for operation in &self.operations {
            if operation.kind() == Kind::DropIndex {
                release_index(session, operation.index());
            }
        }
        for operation in &self.operations {
            if operation.kind() == Kind::DropTable {
                release_table(session, operation.table);
            }
        }
        pinned.end(Duration::ZERO);
        session
            .engine()
            .transactions()
            .commits
            .fetch_add(1, Ordering::Relaxed);
        self.clear();
    }
}

/// Tables whose counts a transaction holds back, so that one that goes back and forth between a few
/// adds to each one's counters once: others count there, too, and each change fetches the line from
/// another core.
const TABLES_COUNTED: usize = 8;

/// What a transaction adds to its tables' counters. Rows are counted by operation, not by what the
/// chains look like by now. Bytes miss a version that others superseded and pruned before its own
/// transaction came by; a start counts them anew.
#[derive(Default)]
pub(super) struct Counts {
    tables: [OfTable; TABLES_COUNTED],
}

/// What it adds to those of one table.
#[derive(Default)]
struct OfTable {
    table: Option<TableRef>,
    inserted: u64,
    updated: u64,
    deleted: u64,
    row_bytes: i64,
}

impl Counts {
    /// Counts an operation that made live rows longer by so many bytes.
    pub(super) fn add(&mut self, operation: &Operation, grown: i64) {
        let of = self.of(operation.table);
        match operation.kind() {
            Kind::Insert => of.inserted += 1,
            Kind::Update => of.updated += 1,
            _ => of.deleted += 1,
        }
        of.row_bytes += grown;
    }

    /// Counts rows that have no operations.
    pub(super) fn add_inserted(&mut self, table: TableRef, rows: u64, bytes: i64) {
        let of = self.of(table);
        of.inserted += rows;
        of.row_bytes += bytes;
    }

    fn of(&mut self, wanted: TableRef) -> &mut OfTable {
        let is_its = |of: &OfTable| of.table.is_none_or(|table| table == wanted);
        let at = self.tables.iter().position(is_its).unwrap_or_else(|| {
            self.flush();
            0
        });
        let of = &mut self.tables[at];
        of.table = Some(wanted);
        of
    }

    pub(super) fn flush(&mut self) {
        for of in &mut self.tables {
            std::mem::take(of).flush();
        }
    }
}

impl OfTable {
    fn flush(self) {
        let counts = self;
        let Some(counters) = counts.table.map(TableRef::counters) else {
            return;
        };
        let add = |counter: &AtomicU64, count: u64| {
            if count != 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        };
        add(&counters.inserted, counts.inserted);
        add(&counters.updated, counts.updated);
        add(&counters.deleted, counts.deleted);
        let add = |counter: &AtomicI64, count: i64| {
            if count != 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        };
        add(
            &counters.rows,
            counts.inserted as i64 - counts.deleted as i64,
        );
        add(&counters.row_bytes, counts.row_bytes);
        add(
            &counters.stale_versions,
            (counts.updated + counts.deleted) as i64,
        );
    }
}

/// Sets COMMITTED in a row's last state and tidies up. Returns by how much the bytes of live rows
/// changed.
fn commit_row(
    session: &Session,
    own: &Own,
    operation: &Operation,
    pending_prunes: &mut PendingPrunes,
) -> i64 {
    let table = operation.table;
    let row_id = operation.row_id();
    let Some(anchor) = table.anchor(row_id) else {
        return 0;
    };
    if crate::sync::is_broken("commit: looking for a version in its chain") {
        // SAFETY: not at all: the test that asks for this wants to see that.
        let version = unsafe { VersionRef::from_address(operation.address()) };
        version.expect("an address").add_flags(flags::COMMITTED);
        return 0;
    }
    let Some(version) = last_own(anchor, own) else {
        // Resolved by others, superseded and pruned already.
        return 0;
    };
    if version.address() != operation.address() {
        // An earlier state of this transaction: cut out together with the last one.
        return 0;
    }
    let base = base_below(version, own);
    version.add_flags(flags::COMMITTED);
    let grown = live_bytes(version) - base.map_or(0, live_bytes);
    let has_own_between = data_below(version) != base;
    if has_own_between {
        trim(session, table, row_id, own, version);
    }
    let horizon = session.engine().horizon();
    if base.is_some_and(|base| base.xid() < horizon && base.next().is_some()) {
        prune_row(session, table, row_id);
    }
    if base.is_some() || has_own_between || version.is_tombstone() {
        if !crate::sync::is_broken("commit: the dirty bit of what it left") {
            table.set_dirty(row_id);
        }
        pending_prunes.add(table, row_id, version.xid());
    }
    grown
}

/// Bytes that a state adds to those of live rows.
pub(super) fn live_bytes(version: VersionRef) -> i64 {
    if version.is_tombstone() {
        0
    } else {
        version.image_bytes() as i64
    }
}

/// The committed state this transaction put its own upon. Its own earlier ones may have been
/// resolved committed by others meanwhile.
pub(super) fn base_below(version: VersionRef, own: &Own) -> Option<VersionRef> {
    let mut at = committed_below(version);
    while let Some(below) = at.filter(|below| own.has(below.xid())) {
        at = committed_below(below);
    }
    at
}

/// The row's newest state that this transaction made.
pub(super) fn last_own(anchor: &Anchor, own: &Own) -> Option<VersionRef> {
    let mut at = anchor.head().version();
    while let Some(version) = at {
        if version.flags() & (flags::LOCK_ONLY | flags::ABORTED) == 0 && own.has(version.xid()) {
            return Some(version);
        }
        at = version.next();
    }
    None
}

/// Cuts out the states that this transaction replaced itself, which no other transaction ever saw.
pub(super) fn trim(session: &Session, table: TableRef, row_id: RowId, own: &Own, last: VersionRef) {
    let part = |version: VersionRef| {
        let is_state = version.flags() & (flags::LOCK_ONLY | flags::ABORTED) == 0;
        if is_state && version != last && own.has(version.xid()) {
            Part::Meant
        } else {
            Part::Kept
        }
    };
    take_states_out(session, table, row_id, part, |_, _| {});
}

/// Takes a row lock's entry out of its chain.
pub(super) fn unlock(session: &Session, own: &Own, operation: &Operation) {
    let Some(anchor) = operation.table.anchor(operation.row_id()) else {
        return;
    };
    let _charge = session.charge(operation.table);
    let latched = anchor.latch();
    let mut head = latched.head;
    let Some(entry) = own.find(head, operation) else {
        return;
    };
    unlink(&mut head, entry);
    // The row may be gone: its states were taken back before.
    let (table, row_id) = (operation.table, operation.row_id());
    leave(table, row_id, latched, without_stale_lock_flag(head));
    // SAFETY: just unlinked.
    unsafe {
        session
            .local
            .retire(entry.block(), entry.block_bytes(), Purpose::Rows)
    };
}
