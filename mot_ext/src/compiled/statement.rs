//! A compiled statement: made from a plan once, run as often as the plan is.
//!
//! - Its expressions are copies, in a memory context of its own: nothing points into the plan.
//! - It appears in core's protocol as a query descriptor with an executor state of ours and no plan
//!   state. Between two executions it holds no PostgreSQL resource: no open relation, no snapshot,
//!   no lock.
//! - While an execution may be suspended (a cursor, a portal) it holds the relation open, as core
//!   does: DDL in the same session must find it in use; so it does while an execution calls
//!   functions, whatever those may do. One that goes from Start to End in one go without does
//!   not.
//! - One execution at a time: a statement that runs itself again (a function in a cursor's loop)
//!   takes the general path.
use super::arbiters::Arbiters;
use super::change::{Change, ChangeInputs};
use super::client::{Client, Wire};
use super::frame::Frame;
use super::insert::Insert;
use super::opened::{Entries, Opened};
use super::rights::Rights;
use super::select::Select;
use super::shape::{Shape, Verb};
use super::upsert::Upsert;
use crate::pg::memory::{empty, small_context_here, within};
use crate::pg::node::Node;
use crate::pg::version;
use crate::storage;
use crate::transaction::clock::PgSnapshot;
use crate::transaction::{relation, xact};
use mot_engine::TableRef;
use pgrx::pg_sys;
use std::ffi::c_int;

enum Work {
    Select(Select),
    Insert(Insert),
    Change(Change),
}

impl Work {
    /// Whether core's executor marks the command's id as used when it starts this.
    fn uses_command(&self) -> bool {
        match self {
            Work::Select(select) => select.locks_rows(),
            Work::Insert(_) | Work::Change(_) => true,
        }
    }

    /// Whether an execution that has started scans: core begins a scan with the first row it asks
    /// for.
    fn scans(&self) -> bool {
        match self {
            Work::Select(select) => select.may_read(),
            Work::Change(_) => true,
            Work::Insert(_) => false,
        }
    }

    /// The indexes that an ON CONFLICT asks.
    fn arbiters(&mut self) -> Option<&mut Arbiters> {
        match self {
            Work::Insert(insert) => insert.arbiters(),
            Work::Select(_) | Work::Change(_) => None,
        }
    }
}

/// A compiled statement.
pub struct Statement {
    frame: Frame,
    work: Work,
    /// `transaction::relation::generation` of the storage the work knows.
    storage_generation: u64,
    rights: Rights,
    /// Its relations as they were found last.
    entries: Entries,
    /// Sends rows past core's receiver; `None` if it cannot send such rows.
    wire: Option<Wire>,
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: the statement's own context; no execution uses it.
        unsafe { pg_sys::MemoryContextDelete(self.frame.context) };
    }
}

/// Why a plan has to run through core's executor.
pub enum Uncompiled {
    /// It is not simple enough.
    Never,
    /// Its table has no storage yet.
    Now,
}

impl Statement {
    /// Compiles a plan whose tables are locked.
    pub fn compile(query: Node<'_, pg_sys::QueryDesc>) -> Result<Statement, Uncompiled> {
        let plan = query.plan();
        let shape = Shape::of(plan).ok_or(Uncompiled::Never)?;
        // Before anything of the table can be wrong, as core does it.
        version::check_permissions(plan);
        let entry = plan.entry(shape.relation);
        let storage_generation = relation::generation();
        let table = relation::LockedRelation::closed(entry.relid())
            .with(storage::find_of_method)
            .ok_or(Uncompiled::Now)?;
        // Under the current context until it is whole: an error on the way takes it along.
        let context = small_context_here(c"mot compiled statement");
        // SAFETY: a context that lives as long as the statement.
        let made = unsafe {
            within(context, || {
                let frame = Frame::new(context, &shape, entry)?;
                let work = work(&frame, &shape, table, query)?;
                Some((frame, work))
            })
        };
        let Some((frame, work)) = made else {
            // SAFETY: no code uses what was made.
            unsafe { pg_sys::MemoryContextDelete(context) };
            return Err(Uncompiled::Never);
        };
        // SAFETY: the statement's own context.
        let wire = unsafe { Wire::new(frame.result_type.view(), context) };
        // SAFETY: the statement's own context, which `drop` deletes.
        unsafe { pg_sys::MemoryContextSetParent(context, pg_sys::CacheMemoryContext) };
        Ok(Statement {
            frame,
            work,
            rights: Rights::unknown(),
            entries: Entries::NONE,
            wire,
            storage_generation,
        })
    }

    /// Locks what core's executor would lock, and looks up what has changed since. False: core's
    /// executor has to run it.
    fn prepare(&mut self, plan: Node<'_, pg_sys::PlannedStmt>) -> bool {
        self.rights.check(plan);
        if self.frame.is_temporary {
            // SAFETY: a plain variable of this process. As core notes where it opens such a table:
            // PREPARE TRANSACTION refuses it.
            unsafe { pg_sys::MyXactFlags |= pg_sys::XACT_FLAGS_ACCESSEDTEMPNAMESPACE as c_int };
        }
        if self.frame.index != pg_sys::InvalidOid {
            // What others have done to the index is known after that.
            self.frame.index_lock.take(self.frame.index);
        }
        if let Some(arbiters) = self.work.arbiters() {
            arbiters.lock();
        }
        self.storage_generation == relation::generation() || self.find_storage()
    }

    /// Begins an execution: `ExecutorStart`. False: core's executor has to run it.
    ///
    /// # Safety
    /// Its tables are locked. [`Statement::end`] follows, or an abort, before the query is gone.
    pub unsafe fn start(&mut self, query: Node<'_, pg_sys::QueryDesc>, flags: c_int) -> bool {
        if !self.prepare(query.plan()) {
            return false;
        }
        let (estate, values) = (self.frame.estate(), self.frame.values());
        // SAFETY: an execution that failed had no End. The query, with its parameters, lives as
        // long as this one (caller).
        unsafe {
            empty(self.frame.execution);
            estate.begin_alone(query);
            values.set_parameters(query.params());
        }
        version::count_from_zero(estate);
        // Core's check of a row that violated something made them in the memory that was just
        // emptied.
        estate.forget_contexts();
        if self.work.uses_command() {
            estate.set_command(xact::command_id().0);
        }
        // SAFETY: the execution ends before the query does (caller).
        let snapshot = unsafe { query.snapshot().unbound() };
        match &mut self.work {
            Work::Select(select) => select.start(PgSnapshot::new(snapshot)),
            Work::Insert(insert) => insert.start(snapshot),
            Work::Change(change) => change.start(PgSnapshot::new(snapshot)),
        }
        // SAFETY: all of it is locked now.
        unsafe { self.open(may_be_suspended(query)) };
        self.frame.queue.start(flags);
        let (estate, root) = (self.frame.estate(), std::ptr::null_mut());
        // SAFETY: what the statement has lives longer than the execution.
        unsafe { query.give(estate, root, self.frame.result_type.view()) };
        true
    }

    /// Opens what the execution has to have open, and counts its scan.
    ///
    /// # Safety
    /// The table, the index and those of ON CONFLICT are locked.
    unsafe fn open(&mut self, may_be_suspended: bool) {
        let frame = &mut self.frame;
        // Core's functions on triggers read the open table, and run SQL.
        let must_be_open = frame.calls_functions || may_be_suspended || frame.queue.is_used();
        let known = match must_be_open {
            true => None,
            false => Opened::closed(&self.entries),
        };
        // SAFETY: the table and the index are locked.
        let open = || unsafe { Opened::open(frame.relation, frame.index, &mut self.entries) };
        frame.opened = known.unwrap_or_else(open);
        if self.work.scans() {
            frame.opened.count_scan();
        }
        if let Some(arbiters) = self.work.arbiters() {
            // SAFETY: as above.
            unsafe {
                match must_be_open {
                    true => arbiters.open(frame.relation),
                    false => arbiters.find_counters(frame.relation),
                }
            }
        }
    }

    /// The executor state that its queries get.
    pub fn estate(&self) -> Node<'_, pg_sys::EState> {
        self.frame.estate()
    }

    /// Runs it: `ExecutorRun`.
    ///
    /// # Safety
    /// A query that `start` began in this statement.
    pub unsafe fn run(
        &mut self,
        query: Node<'_, pg_sys::QueryDesc>,
        direction: pg_sys::ScanDirection::Type,
        rows_max: u64,
    ) {
        query.start_timing();
        self.frame.estate().set_processed(0);
        self.frame.estate().set_direction(direction);
        query.set_executed(true);
        let moves = direction != pg_sys::ScanDirection::NoMovementScanDirection;
        // 0 asks for all.
        let rows_max = if rows_max == 0 { u64::MAX } else { rows_max };
        // SAFETY: the statement's own context, which End empties; the caller's query.
        unsafe {
            within(self.frame.execution, || {
                self.send(query, moves.then_some(rows_max));
            });
        }
        version::sum_up(self.frame.estate());
        query.stop_timing(self.frame.estate().es_processed());
    }

    /// Sends the client up to so many rows; `None`: the caller wants no move.
    ///
    /// # Safety
    /// As for [`Statement::run`].
    unsafe fn send(&mut self, query: Node<'_, pg_sys::QueryDesc>, rows_max: Option<u64>) {
        if rows_max.is_some()
            && let Work::Select(select) = &mut self.work
        {
            // SAFETY: an execution that has begun (caller).
            unsafe { select.seek(&self.frame) };
        }
        let gets_rows = self.frame.projection.is_some();
        // SAFETY: the caller's query, whose run begins.
        let mut client = unsafe { Client::begin(query, gets_rows, self.wire.as_mut()) };
        if let Some(rows_max) = rows_max {
            // SAFETY: as above.
            unsafe {
                match &mut self.work {
                    Work::Select(select) => select.run(&self.frame, &mut client, rows_max),
                    Work::Insert(insert) => insert.run(&self.frame, &mut client),
                    Work::Change(change) => change.run(&self.frame, &mut client, rows_max),
                }
            }
        }
        client.end();
    }

    /// Whether changes have been queued for Finish to fire; once for an execution.
    pub fn take_level(&self) -> bool {
        self.frame.queue.take_level()
    }

    /// Ends the execution: `ExecutorEnd`.
    ///
    /// # Safety
    /// As for [`Statement::run`].
    pub unsafe fn end(&mut self, query: Node<'_, pg_sys::QueryDesc>) {
        self.count_found();
        self.end_work();
        // SAFETY: in the execution that opened all of it.
        unsafe {
            self.frame.queue.end(self.frame.estate());
            if let Some(arbiters) = self.work.arbiters() {
                arbiters.close();
            }
            self.frame.opened.close();
        }
        // SAFETY: this execution is over.
        unsafe { self.empty() };
        query.take_back();
    }

    /// Empties the memory of an execution.
    ///
    /// # Safety
    /// It is over.
    unsafe fn empty(&self) {
        // SAFETY: the statement's own contexts, which no execution uses (caller).
        unsafe {
            self.frame.empty_row();
            empty(self.frame.execution);
        }
    }

    /// After an execution that failed, and had no End: the next one may be long in coming, and the
    /// memory of a long row is not kept for it.
    pub fn fail(&mut self) {
        if let Some(wire) = &mut self.wire {
            wire.trim();
        }
        self.count_found();
        self.end_work();
        // PostgreSQL closes what was open.
        if let Some(arbiters) = self.work.arbiters() {
            arbiters.forget();
        }
        self.frame.opened = Opened::NONE;
        self.frame.queue.forget(self.frame.estate());
        // SAFETY: PostgreSQL has ended the execution.
        unsafe { self.empty() };
    }

    /// Counts what the scan has given.
    fn count_found(&mut self) {
        let scan = match &mut self.work {
            Work::Select(select) => select.scan(),
            Work::Change(change) => change.scan(),
            Work::Insert(_) => return,
        };
        let rows = scan.take_found();
        self.frame.opened.count_found(rows);
    }

    fn end_work(&mut self) {
        match &mut self.work {
            Work::Select(select) => select.end(),
            Work::Insert(insert) => insert.end(),
            Work::Change(change) => change.end(),
        }
    }

    /// Looks the storage up anew: it may have been replaced. False also if the relation is another
    /// one than was compiled for: a SQL function runs its plans until the calling query ends,
    /// whatever changes between two calls.
    fn find_storage(&mut self) -> bool {
        let generation = relation::generation();
        if !self.frame.fits() {
            return false;
        }
        let relation = relation::LockedRelation::closed(self.frame.relation);
        let Some(table) = relation.with(storage::find_of_method) else {
            return false;
        };
        match &mut self.work {
            Work::Select(select) => select.move_to(table),
            Work::Insert(insert) => {
                if !insert.move_to(table, &self.frame) {
                    return false;
                }
            }
            Work::Change(change) => change.move_to(table),
        }
        self.storage_generation = generation;
        true
    }
}

/// Whether others may run statements between this query's Start and its End. SPI runs what it does
/// not open a cursor for to the end, and so does every caller that changes rows, but SQL functions.
fn may_be_suspended(query: Node<'_, pg_sys::QueryDesc>) -> bool {
    match query.receiver().mydest() {
        pg_sys::CommandDest::DestSPI => false,
        pg_sys::CommandDest::DestSQLFunction => true,
        _ => query.operation() == pg_sys::CmdType::CMD_SELECT,
    }
}

/// What a statement does with its frame.
///
/// # Safety
/// The current memory context is the frame's, and lives as long as the value.
unsafe fn work(
    frame: &Frame,
    shape: &Shape<'_>,
    table: TableRef,
    query: Node<'_, pg_sys::QueryDesc>,
) -> Option<Work> {
    // SAFETY: each execution begins with a snapshot of its own.
    let snapshot = PgSnapshot::new(unsafe { query.snapshot().unbound() });
    match &shape.verb {
        Verb::Select {
            access,
            lock,
            rows_max,
        } => {
            let lock = *lock;
            // SAFETY: the caller's memory context.
            let select = unsafe { Select::new(frame, access, lock, *rows_max, table, snapshot) };
            Some(Work::Select(select))
        }
        Verb::Insert {
            values,
            conflict,
            counts_rows,
        } => {
            let upsert = match conflict {
                // SAFETY: as above.
                Some(conflict) => Some(unsafe { Upsert::new(frame, conflict, table, snapshot) }?),
                None => None,
            };
            // SAFETY: as above.
            let insert = unsafe { Insert::new(frame, values, upsert, *counts_rows, table) };
            insert.map(Work::Insert)
        }
        Verb::Change {
            access,
            assigned,
            is_delete,
            counts_rows,
        } => {
            let inputs = ChangeInputs {
                table,
                snapshot,
                counts_rows: *counts_rows,
            };
            // SAFETY: as above.
            let change = unsafe { Change::new(frame, access, assigned, *is_delete, inputs) };
            Some(Work::Change(change))
        }
    }
}
