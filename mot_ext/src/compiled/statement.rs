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
use super::frame::{Frame, empty, within};
use super::insert::Insert;
use super::opened::{Entries, Opened};
use super::rights::Rights;
use super::select::Select;
use super::shape::{Shape, Verb};
use super::upsert::Upsert;
use crate::pg::{self, version};
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
    pub unsafe fn compile(query: *mut pg_sys::QueryDesc) -> Result<Statement, Uncompiled> {
        // SAFETY: core's query descriptor; on an error the new contexts are small, and go with the
        // parent set below.
        unsafe {
            let plan = (*query).plannedstmt;
            let shape = Shape::of(plan).ok_or(Uncompiled::Never)?;
            // Before anything of the table can be wrong, as core does it.
            version::check_permissions(plan);
            let entry = pg_sys::rt_fetch(shape.relation, (*plan).rtable);
            let storage_generation = relation::generation();
            let table = relation::Relation::closed((*entry).relid)
                .with(storage::find_of_method)
                .ok_or(Uncompiled::Now)?;
            // Under the current context until it is whole: an error on the way takes it along.
            let context =
                pg::small_context(pg_sys::CurrentMemoryContext, c"mot compiled statement");
            let frame = within(context, || Frame::new(context, &shape, entry));
            let work = frame.and_then(|frame| {
                let work = within(context, || work(&frame, &shape, table, query))?;
                Some((frame, work))
            });
            let Some((frame, work)) = work else {
                pg_sys::MemoryContextDelete(context);
                return Err(Uncompiled::Never);
            };
            let wire = Wire::new(frame.result_type, context);
            pg_sys::MemoryContextSetParent(context, pg_sys::CacheMemoryContext);
            Ok(Statement {
                frame,
                work,
                rights: Rights::unknown(),
                entries: Entries::NONE,
                wire,
                storage_generation,
            })
        }
    }

    /// Begins an execution: `ExecutorStart`. False: core's executor has to run it.
    pub unsafe fn start(&mut self, query: *mut pg_sys::QueryDesc, flags: c_int) -> bool {
        // SAFETY: core's query descriptor; the tables are locked.
        unsafe {
            let plan = (*query).plannedstmt;
            self.rights.check(plan);
            if self.frame.is_temporary {
                // As core notes where it opens such a table: PREPARE TRANSACTION refuses it.
                pg_sys::MyXactFlags |= pg_sys::XACT_FLAGS_ACCESSEDTEMPNAMESPACE as c_int;
            }
            if self.frame.index != pg_sys::InvalidOid {
                // What others have done to the index is known after that.
                self.frame.index_lock.take(self.frame.index);
            }
            if let Some(arbiters) = self.work.arbiters() {
                arbiters.lock();
            }
            if self.storage_generation != relation::generation() && !self.find_storage() {
                return false;
            }
            // An execution that failed had no End.
            empty(self.frame.execution);
            let estate = &mut *self.frame.estate;
            estate.es_plannedstmt = plan;
            estate.es_range_table = (*plan).rtable;
            estate.es_range_table_size = (*(*plan).rtable).length as u32;
            estate.es_sourceText = (*query).sourceText;
            estate.es_snapshot = (*query).snapshot;
            estate.es_param_list_info = (*query).params;
            version::count_from_zero(estate);
            // Core's check of a row that violated something made them in the memory that was just
            // emptied.
            estate.es_per_tuple_exprcontext = std::ptr::null_mut();
            estate.es_exprcontexts = std::ptr::null_mut();
            (*self.frame.values).ecxt_param_list_info = (*query).params;
            match &mut self.work {
                Work::Select(select) => select.start(PgSnapshot::new((*query).snapshot)),
                Work::Insert(insert) => {
                    estate.es_output_cid = xact::command_id().0;
                    insert.start((*query).snapshot);
                }
                Work::Change(change) => {
                    estate.es_output_cid = xact::command_id().0;
                    change.start(PgSnapshot::new((*query).snapshot));
                }
            }
            self.open(may_be_suspended(query));
            self.frame.queue.start(flags);
            (*query).tupDesc = self.frame.result_type;
            (*query).estate = self.frame.estate;
            (*query).planstate = std::ptr::null_mut();
            true
        }
    }

    /// Opens what the execution has to have open, and counts its scan.
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
        if !matches!(self.work, Work::Insert(_)) {
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
    pub fn estate(&self) -> *mut pg_sys::EState {
        self.frame.estate
    }

    /// Runs it: `ExecutorRun`.
    pub unsafe fn run(
        &mut self,
        query: *mut pg_sys::QueryDesc,
        direction: pg_sys::ScanDirection::Type,
        rows_max: u64,
    ) {
        // SAFETY: core's query descriptor, started by `start`.
        unsafe {
            let timing = (*query).totaltime;
            if !timing.is_null() {
                pg_sys::InstrStartNode(timing);
            }
            let estate = self.frame.estate;
            (*estate).es_processed = 0;
            (*estate).es_direction = direction;
            (*query).already_executed = true;
            let gets_rows = !self.frame.projection.is_null();
            within(self.frame.execution, || {
                let moves = direction != pg_sys::ScanDirection::NoMovementScanDirection;
                if moves && let Work::Select(select) = &mut self.work {
                    select.seek(&self.frame);
                }
                let mut client = Client::begin(query, gets_rows, self.wire.as_mut());
                if moves {
                    // 0 asks for all.
                    let rows_max = if rows_max == 0 { u64::MAX } else { rows_max };
                    match &mut self.work {
                        Work::Select(select) => select.run(&self.frame, &mut client, rows_max),
                        Work::Insert(insert) => insert.run(&self.frame, &mut client),
                        Work::Change(change) => change.run(&self.frame, &mut client, rows_max),
                    }
                }
                client.end();
            });
            version::sum_up(estate);
            if !timing.is_null() {
                pg_sys::InstrStopNode(timing, (*estate).es_processed as f64);
            }
        }
    }

    /// Whether changes have been queued for Finish to fire; once for an execution.
    pub fn take_level(&self) -> bool {
        self.frame.queue.take_level()
    }

    /// Ends the execution: `ExecutorEnd`.
    pub unsafe fn end(&mut self, query: *mut pg_sys::QueryDesc) {
        // SAFETY: as for `run`.
        unsafe {
            self.count_found();
            self.end_work();
            self.frame.queue.end(self.frame.estate);
            if let Some(arbiters) = self.work.arbiters() {
                arbiters.close();
            }
            self.frame.opened.close();
            empty((*self.frame.values).ecxt_per_tuple_memory);
            empty(self.frame.execution);
            (*query).tupDesc = std::ptr::null_mut();
            (*query).estate = std::ptr::null_mut();
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
        self.frame.queue.forget(self.frame.estate);
        // SAFETY: the statement's own contexts; no execution uses it.
        unsafe {
            empty(self.frame.per_row());
            empty(self.frame.execution);
        }
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
            Work::Insert(_) => {}
            Work::Change(change) => change.end(),
        }
    }

    /// Looks the storage up anew: it may have been replaced. False also if the relation is another
    /// one than was compiled for: a SQL function runs its plans until the calling query ends,
    /// whatever changes between two calls.
    unsafe fn find_storage(&mut self) -> bool {
        let generation = relation::generation();
        // SAFETY: the table is locked.
        if !unsafe { self.frame.fits() } {
            return false;
        }
        let relation = relation::Relation::closed(self.frame.relation);
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
unsafe fn may_be_suspended(query: *mut pg_sys::QueryDesc) -> bool {
    // SAFETY: core's query descriptor.
    unsafe {
        match (*(*query).dest).mydest {
            pg_sys::CommandDest::DestSPI => false,
            pg_sys::CommandDest::DestSQLFunction => true,
            _ => (*query).operation == pg_sys::CmdType::CMD_SELECT,
        }
    }
}

unsafe fn work(
    frame: &Frame,
    shape: &Shape,
    table: TableRef,
    query: *mut pg_sys::QueryDesc,
) -> Option<Work> {
    // SAFETY: the shape's own plan, of a query with a snapshot.
    unsafe {
        let snapshot = PgSnapshot::new((*query).snapshot);
        match &shape.verb {
            Verb::Select {
                access,
                lock,
                rows_max,
            } => Some(Work::Select(Select::new(
                frame, access, *lock, *rows_max, table, snapshot,
            ))),
            Verb::Insert {
                values,
                conflict,
                counts_rows,
            } => {
                let upsert = match conflict {
                    Some(conflict) => Some(Upsert::new(frame, conflict, table, snapshot)?),
                    None => None,
                };
                Insert::new(frame, values, upsert, *counts_rows, table).map(Work::Insert)
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
                Some(Work::Change(Change::new(
                    frame, access, assigned, *is_delete, inputs,
                )))
            }
        }
    }
}
