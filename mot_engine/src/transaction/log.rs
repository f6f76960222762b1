//! Telling the log what a transaction changed.
//!
//! Runs before the commit record, may fail, and runs once: nothing is changed after it. Definitions first, then the last state of each
//! row, in records of at most [`LOG_RECORD_BYTES_MAX`](crate::log::LOG_RECORD_BYTES_MAX) bytes (one longer row is a record of its own).
//!
//! The session's `logging` mark is up from before the first record is appended until the last row is marked, so that a checkpoint that waits
//! for it finds every row whose record lies before its redo position marked. How a row is
//! marked so that LSN and flag are never seen apart: [`Anchor::mark_version`]; why that matters: checkpoint/README.md.

use super::examine::{data_below, newest_data};
use super::{Kind, Operation, Own, Transaction};
use crate::errors::EngineError;
use crate::ids::Lsn;
use crate::log::{Base, DefinitionsWriter, RowsWriter};
use crate::pause::{Point, reach};
use crate::row::{Anchor, VersionRef, flags};
use crate::session::Session;
use std::sync::atomic::Ordering;

/// Where records go.
pub trait Log {
    /// Appends a record and returns its end. May unwind with a PostgreSQL error.
    fn append(&mut self, record: &[u8]) -> Lsn;
}

/// Records under construction; their memory is kept between transactions.
#[derive(Default)]
pub(super) struct Writers {
    rows: RowsWriter,
    definitions: DefinitionsWriter,
}

/// The `logging` mark, taken back by unwinding, too.
struct Mark<'a>(&'a Session);

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.0.end_logging();
    }
}

impl Transaction {
    /// Logs everything that survived. Returns the end of the last record; 0 if there was nothing to log.
    pub fn log(&mut self, session: &Session, log: &mut impl Log) -> Result<Lsn, EngineError> {
        self.writers.rows.clear();
        self.writers.definitions.clear();
        reach(Point::CommitBeforeLog);
        let early = crate::sync::is_broken("log: the round behind the mark");
        let early = early.then(|| session.engine().round());
        session.begin_logging();
        let mark = Mark(session);
        let round = early.unwrap_or_else(|| session.engine().round());
        let _pin = session.local.pin();
        let mut last = Lsn::NONE;
        self.is_logged = true;
        for operation in &self.operations {
            define(operation, session, &mut self.writers.definitions)?;
        }
        if !self.writers.definitions.is_empty() {
            last = append(session, log, self.writers.definitions.record());
            reach(Point::CommitBeforeMarks);
            for operation in &self.operations {
                mark_definition(operation, last);
            }
        }
        let mut first_unmarked = 0;
        for position in 0..self.operations.len() {
            let operation = self.operations[position];
            let Some((anchor, version)) = surviving(&self.own, &operation) else {
                continue;
            };
            let body_bytes = version.image_bytes();
            if !self.writers.rows.has_room(body_bytes) {
                last = append(session, log, self.writers.rows.record());
                let marked = &self.operations[first_unmarked..position];
                mark_rows(&self.own, marked, last, round);
                first_unmarked = position;
                self.writers.rows.clear();
            }
            describe(&operation, anchor, version, &mut self.writers.rows)?;
        }
        if !self.writers.rows.is_empty() {
            last = append(session, log, self.writers.rows.record());
            reach(Point::CommitBeforeMarks);
            mark_rows(&self.own, &self.operations[first_unmarked..], last, round);
            self.writers.rows.clear();
        }
        session
            .engine()
            .root()
            .last_lsn
            .fetch_max(last.0, Ordering::AcqRel);
        drop(mark);
        reach(Point::CommitAfterLog);
        Ok(last)
    }
}

fn append(session: &Session, log: &mut impl Log, record: &[u8]) -> Lsn {
    let counters = session.engine().transactions();
    counters.log_records.fetch_add(1, Ordering::Relaxed);
    counters
        .log_bytes
        .fetch_add(record.len() as u64, Ordering::Relaxed);
    log.append(record)
}

/// The row of a data operation whose version is the row's last state.
fn surviving(own: &Own, operation: &Operation) -> Option<(&'static Anchor, VersionRef)> {
    if !operation.kind().is_data() {
        return None;
    }
    let anchor = operation.table.anchor(operation.slot())?;
    let version = newest_data(anchor)?;
    (version.address() == operation.address() && own.has(version.xid()))
        .then_some((anchor, version))
}

/// The committed state below a transaction's own versions: they have no COMMITTED hint yet, what they were put upon has.
pub(super) fn committed_below(version: VersionRef) -> Option<VersionRef> {
    let mut at = data_below(version);
    while let Some(below) = at {
        if below.flags() & flags::COMMITTED != 0 {
            return Some(below);
        }
        at = data_below(below);
    }
    None
}

fn describe(
    operation: &Operation,
    anchor: &Anchor,
    version: VersionRef,
    rows: &mut RowsWriter,
) -> Result<(), EngineError> {
    let table = operation.table.id();
    let slot = operation.slot();
    let base = committed_below(version).filter(|base| !base.is_tombstone());
    match (base, version.is_tombstone()) {
        (None, true) => Ok(()),
        (Some(_), true) => rows.delete(table, slot),
        (None, false) => rows.insert(table, slot, version.body()),
        (Some(base), false) => {
            let differs_from =
                (is_last_logged(version, base) && !anchor.needs_full_image()).then(|| Base {
                    lsn: anchor.lsn(),
                    body: base.body(),
                });
            rows.update(table, slot, differs_from, version.body())
        }
    }
}

/// Whether `base`, which lies below `version`, is the row's last logged state. A logged state of an aborted transaction can lie between.
fn is_last_logged(version: VersionRef, base: VersionRef) -> bool {
    let mut at = version.next();
    while let Some(below) = at {
        if below.flags() & flags::LOGGED != 0 {
            return below == base;
        }
        at = below.next();
    }
    false
}

fn mark_rows(own: &Own, operations: &[Operation], lsn: Lsn, round: u64) {
    for operation in operations {
        if let Some((anchor, version)) = surviving(own, operation) {
            let (table, slot) = (operation.table, operation.slot());
            table.mark_logged(slot, anchor, version, lsn, round);
        }
    }
}

/// From now on a checkpoint may tell of the definition: without its record, a crash could hand its xid to another transaction.
fn mark_definition(operation: &Operation, lsn: Lsn) {
    let word = match operation.kind() {
        Kind::CreateTable => &operation.table.storage().created_lsn,
        Kind::DropTable => &operation.table.storage().dropped_lsn,
        Kind::CreateIndex => &operation.index().storage().created_lsn,
        Kind::DropIndex => &operation.index().storage().dropped_lsn,
        Kind::Insert | Kind::Update | Kind::Delete | Kind::Lock => return,
    };
    word.store(lsn.0, Ordering::Release);
}

fn define(
    operation: &Operation,
    session: &Session,
    definitions: &mut DefinitionsWriter,
) -> Result<(), EngineError> {
    let table = operation.table.id();
    match operation.kind() {
        Kind::CreateTable => definitions.create_table(table, operation.table.key()),
        Kind::DropTable => definitions.drop_table(table),
        Kind::CreateIndex => {
            let index = operation.index();
            definitions.create_index(index.id(), table, session.definition(index)?)
        }
        Kind::DropIndex => definitions.drop_index(operation.index().id(), table),
        Kind::Insert | Kind::Update | Kind::Delete | Kind::Lock => Ok(()),
    }
}
