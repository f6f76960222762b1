//! Tables that a transaction has made, and the rows that it inserts into one at the nest level at
//! which it made it.
//!
//! Whatever takes such a row back takes the table back with it. So the row needs no operation, and
//! a load of any size takes no memory of its process:
//!
//! - An insert has its operation until the next operation is reserved, for it may be retracted
//!   alone. Then the operation goes, and the table counts one row more (`let_go`).
//! - A row that a deeper level inserted keeps its operation, and so does each change of a row.
//! - A table that holds copies (`copy.rs`) has rows that are known to be committed. Its inserts
//!   keep their operations.
//! - Commit, log and PREPARE go through the row ids of a table that counts rows. No other session
//!   reads or writes it before the transaction is over, by PostgreSQL's lock. All rows that are
//!   there are the transaction's, so the log names them by row id, with operations or without.
//!
//! An id whose rows have no operations any more counts as used since the table was made: no
//! savepoint that ends later may forget it (`Own::forget_since`).

use super::commit::{Counts, last_own, live_bytes};
use super::pinned::Pinned;
use super::{Kind, Operation, Own, Transaction};
use crate::errors::EngineError;
use crate::ids::{RowId, TableId, Xid};
use crate::row::{Anchor, VersionRef, flags};
use crate::table::TableRef;
use std::sync::atomic::Ordering;

/// A table that the transaction has made.
#[derive(Copy, Clone)]
pub(super) struct OwnTable {
    /// Its id: those of later tables are larger.
    id: TableId,
    table: TableRef,
    /// Position of the operation that made it.
    made_at: usize,
    /// Inserted rows that have no operation.
    rows: u64,
}

impl OwnTable {
    /// Whether it is there when the transaction ends.
    fn is_kept(&self) -> bool {
        self.table.storage().dropped.load(Ordering::Acquire) == 0
    }
}

/// The tables that a transaction has made, in order.
#[derive(Default)]
pub(super) struct OwnTables {
    tables: Vec<OwnTable>,
    /// The last operation is an insert into the table at this place, by this id, and may go.
    last: Option<(usize, Xid)>,
}

impl OwnTables {
    /// Room for one more.
    pub(super) fn reserve(&mut self) -> Result<(), EngineError> {
        self.tables
            .try_reserve(1)
            .map_err(|_| EngineError::OutOfProcessMemory)
    }

    /// A table that the operation at this position makes; room was reserved.
    pub(super) fn add(&mut self, table: TableRef, made_at: usize) {
        let id = table.id();
        debug_assert!(self.tables.last().is_none_or(|last| last.id < id));
        self.tables.push(OwnTable {
            id,
            table,
            made_at,
            rows: 0,
        });
    }

    /// The operations from this position on are taken back.
    pub(super) fn forget_since(&mut self, position: usize) {
        self.last = None;
        while self.tables.pop_if(|own| own.made_at >= position).is_some() {}
    }

    pub(super) fn clear(&mut self) {
        self.tables.clear();
        self.last = None;
    }

    /// Whether rows of the table have no operations.
    #[inline]
    pub(super) fn counts_rows_of(&self, table: TableRef) -> bool {
        let place = self.place(table);
        place.is_some_and(|at| self.tables[at].rows > 0)
    }

    /// The tables that the log has to name by row id.
    pub(super) fn logged(&self) -> impl Iterator<Item = TableRef> {
        let is_meant = |own: &&OwnTable| own.rows > 0 && own.table.is_logged() && own.is_kept();
        self.tables.iter().filter(is_meant).map(|own| own.table)
    }

    fn place(&self, table: TableRef) -> Option<usize> {
        if self.tables.is_empty() {
            return None;
        }
        let found = self.tables.binary_search_by_key(&table.id(), |own| own.id);
        found.ok()
    }
}

impl Transaction {
    /// Notes that the last operation is an insert into a table that is not resolved yet, by this
    /// id.
    pub(super) fn note_own_insert(&mut self, table: TableRef, xid: Xid) {
        let Some(at) = self.own_tables.place(table) else {
            return;
        };
        let made = &self.operations[self.own_tables.tables[at].made_at];
        debug_assert!(made.kind() == Kind::CreateTable && made.table == table);
        let holds_copies = table.storage().holds_copies.load(Ordering::Relaxed) != 0;
        if made.level() == self.level && !holds_copies {
            self.own_tables.last = Some((at, xid));
        }
    }

    /// Lets the operation of the last insert go, if it may.
    #[inline]
    pub(super) fn let_go(&mut self) {
        let Some((at, xid)) = self.own_tables.last.take() else {
            return;
        };
        let own = &mut self.own_tables.tables[at];
        own.rows += 1;
        self.own.lower(xid, own.made_at);
        let gone = self.operations.pop();
        debug_assert!(
            gone.is_some_and(|gone| gone.kind() == Kind::Insert && gone.table == own.table)
        );
    }

    /// Rows that the transaction has added to those that a table counts, less those that it has
    /// deleted. Goes through what it has done.
    pub fn rows_added(&self, table: TableRef) -> i64 {
        let place = self.own_tables.place(table);
        let own = place.map_or(0, |at| self.own_tables.tables[at].rows as i64);
        let done = self.operations.iter().filter(|done| done.table == table);
        let added = done.map(|done| match done.kind() {
            Kind::Insert => 1,
            Kind::Delete => -1,
            _ => 0,
        });
        own + added.sum::<i64>()
    }

    /// By how many bytes an operation's table grows, if no other code counts its bytes.
    #[inline]
    pub(super) fn grown(&self, operation: &Operation, bytes: i64) -> i64 {
        match self.own_tables.counts_rows_of(operation.table) {
            true => 0,
            false => bytes,
        }
    }

    /// Sets COMMITTED in the rows that have no operations, and counts them, with the bytes of all
    /// rows of their tables.
    pub(super) fn commit_own_tables(&self, pinned: &mut Pinned<'_>, counts: &mut Counts) {
        self.end_own_tables(pinned, counts, flags::COMMITTED, |_, _| {});
    }

    /// Leaves the rows that have no operations to processes that resolve them by the clock.
    pub(super) fn give_up_own_tables(&self, pinned: &mut Pinned<'_>, counts: &mut Counts) {
        self.end_own_tables(pinned, counts, flags::COUNTED_EARLY, TableRef::set_dirty);
    }

    fn end_own_tables(
        &self,
        pinned: &mut Pinned<'_>,
        counts: &mut Counts,
        flag: u32,
        see: impl Fn(TableRef, RowId),
    ) {
        let filled = self.own_tables.tables.iter().filter(|own| own.rows > 0);
        for own in filled.filter(|own| own.is_kept()) {
            let mut bytes = 0;
            for row_id in (0..own.table.row_ids_end().0).map(RowId) {
                pinned.step();
                let Some(anchor) = own.table.anchor(row_id) else {
                    continue;
                };
                let Some(version) = last_own(anchor, &self.own) else {
                    continue;
                };
                bytes += live_bytes(version);
                // Those that have operations, and those that others have resolved, have it.
                if version.flags() & flag == 0 {
                    version.add_flags(flag);
                    see(own.table, row_id);
                }
            }
            counts.add_inserted(own.table, own.rows, bytes);
        }
    }
}

/// The state of a row of an own table that is to be logged.
pub(super) fn state_to_log(anchor: &Anchor, own: &Own) -> Option<VersionRef> {
    last_own(anchor, own).filter(|version| !version.is_tombstone())
}
