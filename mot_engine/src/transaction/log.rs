//! Logging: a transaction's changes become records of the log.
//!
//! It runs before the commit record, may fail, and runs once: nothing is changed after it.
//! Definitions come first. Then come all rows of tables that were filled as they were made, by
//! copies (`copy.rs`) or by inserts (`own_tables.rs`). At last comes the newest state of each
//! changed row. A record has at most [`LOG_RECORD_BYTES_MAX`](crate::log::LOG_RECORD_BYTES_MAX)
//! bytes; one longer row is a record of its own.
//!
//! **Order.** Rows go table by table. A procedure may change a stock and add an order's line for
//! each item, in turns. In that order each row would name its table again, and an inserted row
//! would have no similar one before it. Replay accepts any order: a row is in one table, at most
//! once in a record, and its indexes are its table's. Within a table the order stays. Tables that
//! are not logged, and temporary ones, are left out.
//!
//! Operations are put in order [`OPERATIONS_SORTED`] at a time, so that memory stays bounded. If
//! they are of few tables, as is the rule, they are walked once for each table. Otherwise the rows
//! are sorted.
//!
//! **Marks.** The session's `logging` flag is up from before a record is appended until its last
//! row is marked. So a checkpoint that waits for the mark finds every row marked whose record is
//! before its redo position. It waits for one record at most. [`Anchor::mark_version`] says how LSN
//! and flag are set together, and `checkpoint/README.md` why that matters.
//!
//! **Pins.** While a session is pinned no garbage is freed, and appending a record can take
//! long. So the session is pinned while it walks chains, and not while it appends and marks. What
//! it keeps meanwhile is [`Changed`].

use super::examine::{data_below, newest_data};
use super::own_tables::state_to_log;
use super::prefetch::PrefetchWindow;
use super::{Kind, Operation, Own, Transaction};
use crate::errors::EngineError;
use crate::ids::{Lsn, RowId};
use crate::key::IndexDefinition;
use crate::log::{Base, DefinitionsWriter, RowsWriter};
use crate::memory::Pin;
use crate::pause::{Point, reach};
use crate::row::{Anchor, TombstoneNote, VersionRef, flags};
use crate::session::Session;
use crate::table::TableRef;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Where records go.
pub trait Log {
    /// Appends a record and returns its end. May unwind with a PostgreSQL error.
    fn append(&mut self, record: &[u8]) -> Lsn;

    /// Runs `work`, which appends a record and marks its rows. No checkpoint of PostgreSQL's passes
    /// between the two.
    fn held<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T
    where
        Self: Sized,
    {
        work(self)
    }
}

/// Operations that are put in the order of their tables at a time.
const OPERATIONS_SORTED: usize = 1 << 16;

/// Most tables for each of which the operations are walked once. The rows of a transaction that
/// changes more tables are sorted.
const TABLES_PICKED: usize = 12;

/// Rows for which the list keeps memory between transactions.
const ROWS_KEPT: usize = 1024;

/// Records under construction; their memory is kept between transactions.
#[derive(Default)]
pub(super) struct Writers {
    rows: RowsWriter,
    definitions: DefinitionsWriter,
    /// Changed rows in the order of the log.
    order: Vec<Changed>,
}

/// A row to be logged: its operation, and its newest state.
///
/// The state stays where it is until the transaction ends: no other transaction puts a state on a
/// row that we own, or removes an unfinished one, and we change nothing more. The anchor lives as
/// long as the table. So neither needs a pin.
#[derive(Copy, Clone)]
pub(super) struct Changed {
    table: TableRef,
    row_id: RowId,
    /// Of its operation, among those listed at a time.
    position: u32,
    pub(super) anchor: &'static Anchor,
    pub(super) version: VersionRef,
}

/// Some tables, in the order in which they came.
#[derive(Default)]
struct Tables {
    tables: [Option<TableRef>; TABLES_PICKED],
    count: usize,
}

impl Tables {
    /// Adds a table, if it is not among them; `false` if it finds no room.
    fn add(&mut self, table: TableRef) -> bool {
        if self.tables[..self.count].contains(&Some(table)) {
            return true;
        }
        let Some(place) = self.tables.get_mut(self.count) else {
            return false;
        };
        *place = Some(table);
        self.count += 1;
        true
    }

    fn iter(&self) -> impl Iterator<Item = TableRef> {
        self.tables.iter().copied().flatten()
    }
}

/// The `logging` flag, which is also lowered by unwinding.
pub(super) struct Mark<'a>(&'a Session);

impl<'a> Mark<'a> {
    /// Raises it. Then reads the engine's checkpoint round, for the marks of rows.
    pub(super) fn raise(session: &'a Session) -> (Mark<'a>, u64) {
        let early = crate::sync::is_broken("log: the round behind the mark");
        let early = early.then(|| session.engine().round());
        session.begin_logging();
        let mark = Mark(session);
        (mark, early.unwrap_or_else(|| session.engine().round()))
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.0.end_logging();
    }
}

impl Transaction {
    /// Logs everything that survived. Returns the end of the last record; 0 if there was nothing to
    /// log.
    pub fn log(&mut self, session: &Session, log: &mut impl Log) -> Result<Lsn, EngineError> {
        self.writers.rows.clear();
        self.writers.definitions.clear();
        reach(Point::CommitBeforeLog);
        let mut last = Lsn::NONE;
        self.is_logged = true;
        for operation in &self.operations {
            if is_logged_definition(operation) {
                define(operation, &mut self.writers.definitions)?;
            }
        }
        if !self.writers.definitions.is_empty() {
            let (record, operations) = (self.writers.definitions.record(), &self.operations);
            last = log.held(|log| {
                let _mark = Mark::raise(session);
                let end = append(session, log, record);
                reach(Point::CommitBeforeMarks);
                for operation in operations {
                    if is_logged_definition(operation) {
                        mark_definition(operation, end);
                    }
                }
                end
            });
        }
        for operation in &self.operations {
            if let Some(table) = filled_by_copy(operation) {
                let end = self.writers.log_all(session, table, log, copied_state)?;
                last = end.unwrap_or(last);
            }
        }
        for table in self.own_tables.logged() {
            let state = |anchor: &Anchor| state_to_log(anchor, &self.own);
            let end = self.writers.log_all(session, table, log, state)?;
            last = end.unwrap_or(last);
        }
        let is_left = |table: TableRef| table.is_logged() && !self.own_tables.counts_rows_of(table);
        for some in self.operations.chunks(OPERATIONS_SORTED) {
            let pin = session.local.pin();
            self.writers.list(&self.own, some, is_left)?;
            if let Some(end) = self.writers.log_rows(session, pin, log, describe)? {
                last = end;
            }
        }
        session
            .engine()
            .root()
            .last_lsn
            .fetch_max(last.0, Ordering::AcqRel);
        reach(Point::CommitAfterLog);
        Ok(last)
    }
}

impl Writers {
    /// Lists the surviving rows of those tables that are still to be logged, in the order of the
    /// log.
    fn list(
        &mut self,
        own: &Own,
        operations: &[Operation],
        is_left: impl Fn(TableRef) -> bool,
    ) -> Result<(), EngineError> {
        self.order.clear();
        self.order
            .try_reserve(operations.len())
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        let mut tables = Tables::default();
        if operations
            .iter()
            .all(|operation| tables.add(operation.table))
        {
            for table in tables.iter().filter(|table| is_left(*table)) {
                self.push_surviving(own, operations, |its| its == table);
            }
        } else {
            self.push_surviving(own, operations, is_left);
            // In place: a stable sort asks for memory in a way that cannot fail.
            self.order
                .sort_unstable_by_key(|changed| (changed.table.id(), changed.position));
        }
        Ok(())
    }

    /// Adds the surviving rows of some tables to the list; memory was reserved.
    #[inline]
    fn push_surviving(
        &mut self,
        own: &Own,
        operations: &[Operation],
        is_meant: impl Fn(TableRef) -> bool,
    ) {
        let window = PrefetchWindow::of(operations);
        for (position, operation) in operations.iter().enumerate() {
            window.prefetch(position, &is_meant);
            if is_meant(operation.table)
                && let Some((anchor, version)) = surviving(own, operation)
            {
                self.order.push(Changed {
                    table: operation.table,
                    row_id: operation.row_id(),
                    position: position as u32,
                    anchor,
                    version,
                });
            }
        }
    }

    /// Logs all rows of a table that the transaction has made, as inserts, in the order of their
    /// row ids: of each the state that `state` chooses.
    fn log_all(
        &mut self,
        session: &Session,
        table: TableRef,
        log: &mut impl Log,
        state: impl Fn(&Anchor) -> Option<VersionRef>,
    ) -> Result<Option<Lsn>, EngineError> {
        let mut last = None;
        let end = table.row_ids_end().0;
        for from in (0..end).step_by(OPERATIONS_SORTED) {
            let pin = session.local.pin();
            self.list_all(
                table,
                from..end.min(from + OPERATIONS_SORTED as u64),
                &state,
            )?;
            last = self.log_rows(session, pin, log, describe_all)?.or(last);
        }
        Ok(last)
    }

    /// Lists the rows in a range of row ids that have a state to be logged.
    fn list_all(
        &mut self,
        table: TableRef,
        row_ids: Range<u64>,
        state: impl Fn(&Anchor) -> Option<VersionRef>,
    ) -> Result<(), EngineError> {
        self.order.clear();
        self.order
            .try_reserve((row_ids.end - row_ids.start) as usize)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        for (position, row_id) in row_ids.map(RowId).enumerate() {
            let Some(anchor) = table.anchor(row_id) else {
                continue;
            };
            if let Some(version) = state(anchor) {
                self.order.push(Changed {
                    table,
                    row_id,
                    position: position as u32,
                    anchor,
                    version,
                });
            }
        }
        Ok(())
    }

    /// Logs and marks the listed rows. Returns the end of the last record.
    fn log_rows<'a>(
        &mut self,
        session: &'a Session,
        mut pin: Pin<'a>,
        log: &mut impl Log,
        describe: fn(&Changed, &mut RowsWriter) -> Result<(), EngineError>,
    ) -> Result<Option<Lsn>, EngineError> {
        let mut last = None;
        let mut unmarked = 0;
        let window = PrefetchWindow::of(&self.order);
        for (position, changed) in self.order.iter().enumerate() {
            window.prefetch_states(position);
            if !self.rows.has_room(changed.version.image_bytes()) {
                drop(pin);
                let logged = &self.order[unmarked..position];
                last = Some(append_rows(session, log, &mut self.rows, logged));
                unmarked = position;
                pin = session.local.pin();
            }
            describe(changed, &mut self.rows)?;
        }
        drop(pin);
        if !self.rows.is_empty() {
            let logged = &self.order[unmarked..];
            last = Some(append_rows(session, log, &mut self.rows, logged));
        }
        self.order.clear();
        self.order.shrink_to(ROWS_KEPT);
        Ok(last)
    }
}

/// Appends a record and marks the rows that it names.
fn append_rows(
    session: &Session,
    log: &mut impl Log,
    rows: &mut RowsWriter,
    logged: &[Changed],
) -> Lsn {
    let end = log.held(|log| {
        let (_mark, round) = Mark::raise(session);
        let end = append(session, log, rows.record());
        reach(Point::CommitBeforeMarks);
        mark_rows(logged, end, round);
        end
    });
    rows.clear();
    end
}

pub(super) fn append(session: &Session, log: &mut impl Log, record: &[u8]) -> Lsn {
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
    let anchor = operation.table.anchor(operation.row_id())?;
    let version = newest_data(anchor)?;
    (version.address() == operation.address() && own.has(version.xid()))
        .then_some((anchor, version))
}

/// The committed state below a transaction's own versions: they have no COMMITTED hint yet, what
/// they were put upon has.
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

fn describe(changed: &Changed, rows: &mut RowsWriter) -> Result<(), EngineError> {
    let (table, row_id) = (changed.table.id(), changed.row_id);
    let (anchor, version) = (changed.anchor, changed.version);
    let base = committed_below(version).filter(|base| !base.is_tombstone());
    match (base, version.is_tombstone()) {
        (None, true) => Ok(()),
        (Some(_), true) => rows.delete(table, row_id, TombstoneNote::of(version.body())),
        (None, false) => rows.insert(table, row_id, version.body()),
        (Some(base), false) => {
            let differs_from =
                (is_last_logged(version, base) && !anchor.needs_full_image()).then(|| Base {
                    lsn: anchor.lsn(),
                    body: base.body(),
                });
            rows.update(table, row_id, differs_from, version.body())
        }
    }
}

/// A table that the operation has made and that rows were copied into, which are to be logged,
/// unless it is gone again.
fn filled_by_copy(operation: &Operation) -> Option<TableRef> {
    if operation.kind() != Kind::CreateTable {
        return None;
    }
    let storage = operation.table.storage();
    let is_filled = operation.table.is_logged()
        && storage.holds_copies.load(Ordering::Acquire) != 0
        && storage.dropped.load(Ordering::Acquire) == 0;
    is_filled.then_some(operation.table)
}

/// The newest committed state that was copied into a table.
fn copied_state(anchor: &Anchor) -> Option<VersionRef> {
    std::iter::successors(anchor.head().version(), VersionRef::next)
        .find(|version| !version.is_lock() && version.is_known_committed())
        .filter(|newest| !newest.is_tombstone())
}

fn describe_all(changed: &Changed, rows: &mut RowsWriter) -> Result<(), EngineError> {
    rows.insert(changed.table.id(), changed.row_id, changed.version.body())
}

/// Whether `base`, which is below `version`, is the row's last logged state. A logged state of an
/// aborted transaction may lie between.
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

fn mark_rows(rows: &[Changed], lsn: Lsn, round: u64) {
    let window = PrefetchWindow::of(rows);
    for (position, changed) in rows.iter().enumerate() {
        window.prefetch_marks(position);
        let (row_id, anchor) = (changed.row_id, changed.anchor);
        let (table, version) = (changed.table, changed.version);
        table.mark_logged(row_id, anchor, version, lsn, round);
    }
}

fn is_logged_definition(operation: &Operation) -> bool {
    !operation.kind().is_of_row() && operation.table.persistence().logs_definitions()
}

/// From now on a checkpoint may hold the definition. Without its record in the log, the xid could
/// be given to another transaction after a crash.
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

fn define(operation: &Operation, definitions: &mut DefinitionsWriter) -> Result<(), EngineError> {
    let table = operation.table.id();
    match operation.kind() {
        Kind::CreateTable => {
            definitions.create_table(
                table,
                operation.table.key(),
                operation.table.persistence(),
            )?;
            match filled_by_copy(operation) {
                Some(_) => definitions.holds_copies(table),
                None => Ok(()),
            }
        }
        Kind::DropTable => definitions.drop_table(table),
        Kind::CreateIndex => {
            let index = operation.index();
            let definition = IndexDefinition::from_bytes(index.definition_bytes())?;
            definitions.create_index(index.id(), table, &definition)
        }
        Kind::DropIndex => definitions.drop_index(operation.index().id(), table),
        Kind::Insert | Kind::Update | Kind::Delete | Kind::Lock => Ok(()),
    }
}
