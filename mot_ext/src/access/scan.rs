//! Scans of compiled statements: all rows in the order of their ids, or an index's in key order.
//! Not for SERIALIZABLE, which core's executor runs.
//!
//! - The state is made at Begin and hangs on the query's memory context; the scan itself starts at
//!   the first row asked for, and anew after each ReScan, when parameters have their values.
//! - A row is handed out in place, in one `HeapTupleData` per scan. It stays valid as long as the
//!   statement's snapshot is registered; a caller that keeps it longer copies it, as for any slot
//!   that does not own its tuple.
//! - The snapshot's own rule about command ids keeps a statement from seeing what it writes itself.
mod source;

use super::search::Search;
use crate::errors;
use crate::executor::expressions::Value;
use crate::executor::filter::{Filter, Verdict};
use crate::pg::interrupts;
use crate::rows::{tid, tuple};
use crate::transaction::clock::PgSnapshot;
use crate::transaction::session;
use mot_engine::{RowId, RowScan, Session, TableRef, VersionRef};
use pgrx::pg_sys;
use source::Source;

/// A running scan.
pub struct Scan {
    pub session: &'static Session,
    pub table: TableRef,
    pub relation: pg_sys::Oid,
    pub snapshot: PgSnapshot<'static>,
    pub tuple: pg_sys::HeapTupleData,
    source: Source,
    is_started: bool,
    /// Rows given since they were asked for.
    found: u64,
    /// Of one whole key: its entry was looked up. Means nothing before the start.
    is_sought: bool,
    /// Drops rows before the scan hands them out.
    filter: Option<Box<Filter>>,
    /// Evaluated before the first row is looked for, for the errors.
    ahead: Vec<Value>,
}

impl Scan {
    /// Prepares a scan of a relation that is locked.
    pub fn of_table(
        relation: pg_sys::Oid,
        table: TableRef,
        search: &Search,
        arguments: &[Value],
        snapshot: PgSnapshot<'static>,
    ) -> Scan {
        let session = session::session();
        let source = Source::new(session, table, search, arguments);
        Scan {
            session,
            table,
            relation,
            snapshot,
            tuple: tuple::empty(),
            source,
            is_started: false,
            found: 0,
            is_sought: false,
            filter: None,
            ahead: Vec::new(),
        }
    }

    /// Begins anew, with new parameter values, at the next row asked for.
    pub fn rewind(&mut self) {
        self.is_started = false;
        if let Some(filter) = &mut self.filter {
            filter.rewind();
        }
    }

    /// Begins anew under another snapshot, as what is kept for the next execution does.
    pub fn rewind_under(&mut self, snapshot: PgSnapshot<'static>) {
        self.snapshot = snapshot;
        self.rewind();
    }

    /// Ends an execution, before another begins anew: the memory of a very long list of keys is not
    /// kept for it.
    #[inline]
    pub fn end(&mut self) {
        if let Source::Index(source) = &mut self.source {
            source.end();
        }
    }

    /// How many rows it has given since this was asked last.
    pub fn take_found(&mut self) -> u64 {
        std::mem::take(&mut self.found)
    }

    /// Drops rows by a filter of the same table from now on.
    pub fn set_filter(&mut self, filter: Option<Filter>) {
        self.filter = filter.map(Box::new);
    }

    /// Has these evaluated before the first row is looked for: some are arguments of index
    /// conditions that the scan does without, and core evaluates all.
    pub fn evaluate_ahead(&mut self, values: Vec<Value>) {
        self.ahead = values;
    }

    /// The next row that the snapshot sees and the filter does not drop, and whether it passes;
    /// `instrument` counts what is dropped.
    #[inline]
    pub unsafe fn next_passing(
        &mut self,
        context: *mut pg_sys::ExprContext,
        instrument: *mut pg_sys::Instrumentation,
    ) -> Option<(RowId, VersionRef, Verdict)> {
        loop {
            // SAFETY: the context of the node or statement that the scan belongs to, and its
            // instrumentation or NULL.
            unsafe {
                let (row, version) = self.next(context)?;
                let Some(filter) = &self.filter else {
                    return Some((row, version, Verdict::Unsure));
                };
                let verdict = filter.look(version, context);
                if verdict != Verdict::Fails {
                    return Some((row, version, verdict));
                }
                if !instrument.is_null() {
                    (*instrument).nfiltered1 += 1.0;
                }
            }
            if interrupts::is_pending() {
                interrupts::check_for_interrupts();
            }
        }
    }

    /// The same relation's storage, looked up anew.
    pub fn move_to(&mut self, table: TableRef) {
        self.table = table;
        if let Source::Index(source) = &mut self.source {
            source.move_to(self.session, table);
        }
    }

    /// If one whole key is asked for, looks its entry up: the row's memory is on its way then,
    /// while the caller does something else.
    pub unsafe fn seek(&mut self, context: *mut pg_sys::ExprContext) {
        let Source::Index(source) = &mut self.source else {
            return;
        };
        if !source.bounds.is_one_point() || self.is_started {
            return;
        }
        self.is_started = true;
        self.is_sought = false;
        // SAFETY: the arguments were compiled for the node whose context this is.
        let sought = unsafe {
            evaluate(&self.ahead, context);
            source.look_up(self.session, self.table, context)
        };
        self.is_sought = sought.unwrap_or_else(|error| errors::raise(error));
    }

    /// Begins, if it has not begun.
    #[inline]
    unsafe fn begin(&mut self, context: *mut pg_sys::ExprContext) {
        if !self.is_started {
            self.is_started = true;
            match &mut self.source {
                Source::Rows(rows) => *rows = Some(RowScan::new(self.table)),
                // SAFETY: the arguments were compiled for the node whose context this is.
                Source::Index(source) => unsafe {
                    evaluate(&self.ahead, context);
                    source.begin(context);
                },
            }
        }
    }

    /// Shows a row in a slot of [`crate::rows::row_slot`], until the next one. The statement's
    /// snapshot keeps the version.
    #[inline]
    pub unsafe fn show(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
        row: RowId,
        version: VersionRef,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let tid = tid::of(self.table, row, version);
            tuple::point(&mut self.tuple, tid, version, self.relation);
            tuple::store(slot, &raw mut self.tuple);
        }
    }

    /// The next row the snapshot sees.
    #[inline]
    pub unsafe fn next(
        &mut self,
        context: *mut pg_sys::ExprContext,
    ) -> Option<(RowId, VersionRef)> {
        // SAFETY: the caller's.
        let found = unsafe { self.find_next(context) };
        self.found += u64::from(found.is_some());
        found
    }

    #[inline]
    unsafe fn find_next(
        &mut self,
        context: *mut pg_sys::ExprContext,
    ) -> Option<(RowId, VersionRef)> {
        if let Source::Index(source) = &mut self.source
            && source.bounds.is_one_point()
        {
            let (session, table) = (self.session, self.table);
            if !std::mem::replace(&mut self.is_started, true) {
                self.is_sought = false;
                // SAFETY: the arguments were compiled for the node whose context this is.
                let found = unsafe {
                    evaluate(&self.ahead, context);
                    source.find(session, table, &self.snapshot, context)
                };
                let found = found.unwrap_or_else(|error| errors::raise(error));
                self.is_sought = found.is_some();
                return found.flatten();
            }
            if !self.is_sought || source.scan.is_exhausted() {
                return None;
            }
            let found = source.scan.next(session, &self.snapshot);
            return found.unwrap_or_else(|error| errors::raise(error));
        }
        // SAFETY: as for this function.
        unsafe { self.begin(context) };
        self.source.next(self.session, self.table, &self.snapshot)
    }
}

/// Evaluates values for the errors they may raise.
#[inline]
unsafe fn evaluate(values: &[Value], context: *mut pg_sys::ExprContext) {
    for value in values {
        // SAFETY: compiled for the node whose context this is.
        unsafe { value.get(context) };
    }
}
