//! Scanning: all rows in slot order, or an index's in key order.
//!
//! - The state is made at Begin and hangs on the query's memory context; the scan itself starts at the first row asked for, and
//!   anew after each ReScan, when parameters have their values.
//! - A row is handed out in place, in one `HeapTupleData` per scan. It stays valid as long as the statement's snapshot is
//!   registered; whoever keeps it longer copies it, as for any slot that does not own its tuple.
//! - The snapshot's own rule about command ids keeps a statement from seeing what it writes itself.
use super::bounds::Bounds;
use super::expressions::{Value, get_tid, passes};
use super::filter::{Filter, Verdict};
use super::lock_rows::{self, For, Outcome};
use super::private::{Private, items};
use super::serializable::{self, Reader, Reading};
use super::tuple;
use super::write::Target;
use crate::clock::{PgClock, PgSnapshot};
use crate::errors;
use crate::pg::fields::FieldKeeper;
use crate::pg::interrupts;
use crate::relation;
use crate::session;
use crate::wait::WaitPolicy;
use mot_engine::key::IndexDefinition;
use mot_engine::{
    Direction, EngineError, IndexRef, IndexScan, KeyRange, LockStrength, RowScan, Session,
    SharedRowScan, Slot, Snapshot, TableRef, VersionRef,
};
use pgrx::PgMemoryContexts;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Where rows come from.
enum Source {
    Rows(Rows),
    /// One row, by its identity; asked for once.
    Row {
        identity: Value,
        is_read: bool,
    },
    Index(IndexSource),
}

/// All rows; beside parallel workers those parts that this process takes.
#[derive(Default)]
struct Rows {
    scan: Option<RowScan>,
    /// In the query's shared memory; taken back before that goes.
    shared: Option<&'static SharedRowScan>,
}

impl Rows {
    fn begin(&mut self, table: TableRef) {
        self.scan = match self.shared {
            Some(shared) => shared.take(table),
            None => Some(RowScan::new(table)),
        };
    }

    #[inline]
    fn next<S: Snapshot>(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &S,
    ) -> Option<(Slot, VersionRef)> {
        loop {
            if let Some(found) = self.scan.as_mut()?.next(session, snapshot) {
                return Some(found);
            }
            self.scan = Some(self.shared?.take(table)?);
        }
    }
}

struct IndexSource {
    index: IndexRef,
    oid: pg_sys::Oid,
    scan: IndexScan,
    bounds: Bounds,
    range: KeyRange,
    direction: Direction,
    is_in_range: bool,
}

/// A running scan.
pub struct Scan {
    pub session: &'static Session,
    pub table: TableRef,
    pub relation: pg_sys::Oid,
    pub snapshot: PgSnapshot<'static>,
    pub tuple: pg_sys::HeapTupleData,
    source: Source,
    is_started: bool,
    /// Of one whole key: its entry was looked up. Means nothing before the start.
    is_sought: bool,
    row_lock: Option<RowLock>,
    /// Drops rows before anybody sees them.
    filter: Option<Box<Filter>>,
    /// Keeps what an error says of a row to lock that was waited for.
    lock_fields: FieldKeeper,
    /// In a SERIALIZABLE transaction.
    reader: Option<Box<Reader>>,
}

/// For the target of an UPDATE or DELETE with row triggers: rows are locked as they are returned. The node's filter is taken over
/// from it, so that rows it drops are not locked and no condition is evaluated twice.
#[derive(Clone, Copy)]
struct RowLock {
    target: Target,
    strength: LockStrength,
    filter: *mut pg_sys::ExprState,
}

impl Scan {
    /// Prepares the scan of a node.
    pub unsafe fn new(
        node: *mut pg_sys::ForeignScanState,
        private: &Private,
        arguments: &[Value],
    ) -> Scan {
        // SAFETY: an initialized node whose relation is open and locked; the snapshot is registered as long as the query runs.
        unsafe {
            let opened = (*node).ss.ss_currentRelation;
            let registered = (*(*node).ss.ps.state).es_snapshot;
            let snapshot = PgSnapshot::new(registered);
            let table = relation::table(opened);
            let oid = (*opened).rd_id;
            let mut scan = Scan::of_table(oid, table, private, arguments, snapshot);
            scan.row_lock = RowLock::new(node, private, opened);
            scan.filter = Filter::of_node(node).map(Box::new);
            scan.reader = serializable::is_on().then(|| Reader::new(oid, registered));
            scan
        }
    }

    /// Prepares a scan of a relation that is locked, without the lock of a statement with triggers; not for SERIALIZABLE.
    pub fn of_table(
        relation: pg_sys::Oid,
        table: TableRef,
        private: &Private,
        arguments: &[Value],
        snapshot: PgSnapshot<'static>,
    ) -> Scan {
        let session = session::session();
        let source = if private.is_by_identity() {
            Source::Row {
                identity: arguments[0],
                is_read: false,
            }
        } else if private.index() == pg_sys::InvalidOid {
            Source::Rows(Rows::default())
        } else {
            let index = find_index(session, table, private.index());
            Source::Index(IndexSource {
                index,
                oid: private.index(),
                scan: IndexScan::new(),
                bounds: Bounds::new(definition(session, index), &private.keys(), arguments),
                range: KeyRange::new(),
                direction: if private.is_backward() {
                    Direction::Backward
                } else {
                    Direction::Forward
                },
                is_in_range: false,
            })
        };
        Scan {
            session,
            table,
            relation,
            snapshot,
            tuple: tuple::empty(),
            source,
            is_started: false,
            is_sought: false,
            row_lock: None,
            filter: None,
            lock_fields: FieldKeeper::new(),
            reader: None,
        }
    }

    /// Begins anew, with new parameter values, at the next row asked for.
    pub fn rewind(&mut self) {
        self.is_started = false;
        if let Some(filter) = &mut self.filter {
            filter.rewind();
        }
    }

    /// Begins anew under another snapshot.
    pub fn rewind_under(&mut self, snapshot: PgSnapshot<'static>) {
        self.snapshot = snapshot;
        self.rewind();
    }

    /// Drops rows by a filter of the same table from now on.
    pub fn set_filter(&mut self, filter: Option<Filter>) {
        self.filter = filter.map(Box::new);
    }

    /// The next row that the snapshot sees and the filter does not drop, and whether it passes; `instrument` counts what is dropped.
    #[inline]
    pub unsafe fn next_passing(
        &mut self,
        context: *mut pg_sys::ExprContext,
        instrument: *mut pg_sys::Instrumentation,
    ) -> Option<(Slot, VersionRef, Verdict)> {
        loop {
            // SAFETY: the context of the node or statement that the scan belongs to, and its instrumentation or NULL.
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

    /// Says, to whom it concerns, that all rows are about to be read: before it is settled which those are.
    pub fn begin_reading_all(&self) {
        if let Some(reader) = &self.reader {
            reader.begin_all();
        }
    }

    /// Shares the scan of all rows with the query's other processes; `None`: no longer, and what was shared is read as far as it ever will be.
    ///
    /// # Safety
    /// What is shared stays until it is taken back.
    pub unsafe fn share(&mut self, shared: Option<&'static SharedRowScan>) {
        if let Source::Rows(rows) = &mut self.source {
            if rows.shared.is_some() && shared.is_none() {
                rows.scan = None;
            }
            rows.shared = shared;
        }
    }

    /// The same relation's storage, looked up anew.
    pub fn move_to(&mut self, table: TableRef) {
        self.table = table;
        if let Source::Index(source) = &mut self.source {
            source.index = find_index(self.session, table, source.oid);
            source
                .bounds
                .set_definition(definition(self.session, source.index));
        }
    }

    /// If one whole key is asked for, looks its entry up: the row's memory is on its way then, while the caller does something else.
    pub unsafe fn seek(&mut self, context: *mut pg_sys::ExprContext) {
        let Source::Index(source) = &mut self.source else {
            return;
        };
        if !source.bounds.is_one_point() || self.reader.is_some() || self.is_started {
            return;
        }
        self.is_started = true;
        self.is_sought = false;
        // SAFETY: the arguments were compiled for the node whose context this is.
        let sought = unsafe { source.bounds.point(context) }.and_then(|key| {
            let Some(key) = key else {
                return Ok(false);
            };
            let index = source.index;
            source.scan.look_up(self.session, self.table, index, key)?;
            Ok(true)
        });
        self.is_sought = sought.unwrap_or_else(|error| errors::raise(error));
    }

    /// The next row the snapshot sees.
    #[inline]
    pub unsafe fn next(&mut self, context: *mut pg_sys::ExprContext) -> Option<(Slot, VersionRef)> {
        if let Source::Index(source) = &mut self.source
            && source.bounds.is_one_point()
            && self.reader.is_none()
        {
            let (session, table) = (self.session, self.table);
            if !std::mem::replace(&mut self.is_started, true) {
                self.is_sought = false;
                // SAFETY: the arguments were compiled for the node whose context this is.
                let found = unsafe { source.find(session, table, &self.snapshot, context) };
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
        if !self.is_started {
            self.is_started = true;
            match &mut self.source {
                Source::Rows(rows) => {
                    if let Some(reader) = &self.reader {
                        reader.begin_all();
                    }
                    rows.begin(self.table);
                }
                Source::Row { is_read, .. } => *is_read = false,
                Source::Index(source) => {
                    source.is_in_range = false;
                    // SAFETY: the arguments were compiled for the node whose context this is.
                    unsafe { source.bounds.begin(context) };
                }
            }
        }
        let Some(reader) = &self.reader else {
            // SAFETY: as for this function.
            return unsafe {
                self.source
                    .next(self.session, self.table, &self.snapshot, context)
            };
        };
        // SAFETY: as for this function.
        let found = unsafe {
            self.source
                .next(self.session, self.table, &**reader, context)
        };
        if let Some((row, version)) = found
            && !matches!(self.source, Source::Rows(_))
        {
            reader.found(self.table, row, version);
        }
        reader.report();
        found
    }
}

impl Source {
    /// The next row the snapshot sees.
    #[inline]
    unsafe fn next<R: Reading>(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &R,
        context: *mut pg_sys::ExprContext,
    ) -> Option<(Slot, VersionRef)> {
        match self {
            Source::Rows(rows) => rows.next(session, table, snapshot),
            Source::Row { identity, is_read } => {
                if std::mem::replace(is_read, true) {
                    return None;
                }
                // SAFETY: compiled for the node whose context this is.
                let slot = unsafe { tuple::slot_of(get_tid(identity, context)?)? };
                let version = session.visible(table, slot, snapshot)?;
                Some((slot, version))
            }
            Source::Index(source) => match source.next(session, table, snapshot) {
                Ok(found) => found,
                Err(error) => errors::raise(error),
            },
        }
    }
}

impl RowLock {
    unsafe fn new(
        node: *mut pg_sys::ForeignScanState,
        private: &Private,
        relation: pg_sys::Relation,
    ) -> Option<RowLock> {
        let strength = private.row_lock()?;
        // SAFETY: an initialized node. In a re-evaluation core hands the row in and filters it itself.
        unsafe {
            if !(*(*node).ss.ps.state).es_epq_active.is_null() {
                return None;
            }
            let filter = (*node).ss.ps.qual;
            (*node).ss.ps.qual = std::ptr::null_mut();
            Some(RowLock {
                target: Target::new(relation),
                strength,
                filter,
            })
        }
    }
}

impl IndexSource {
    /// The first row with the one key that is asked for; `None` if no row can have it. A snapshot that is older than the index may see others.
    #[inline]
    unsafe fn find(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &PgSnapshot<'static>,
        context: *mut pg_sys::ExprContext,
    ) -> Result<Option<Option<(Slot, VersionRef)>>, EngineError> {
        // SAFETY: as for the caller.
        match unsafe { self.bounds.point(context)? } {
            Some(key) => {
                let found = self.scan.find(session, table, self.index, key, snapshot)?;
                Ok(Some(found))
            }
            None => Ok(None),
        }
    }

    fn next<R: Reading>(
        &mut self,
        session: &Session,
        table: TableRef,
        snapshot: &R,
    ) -> Result<Option<(Slot, VersionRef)>, EngineError> {
        loop {
            if self.is_in_range {
                if let Some(found) = self.scan.next(session, snapshot)? {
                    return Ok(Some(found));
                }
                self.is_in_range = false;
            }
            // Rows of several keys: their misses overlap.
            if snapshot.may_read_ahead()
                && self.index.is_unique()
                && let Some(keys) = self.bounds.take_points()
            {
                match self.direction {
                    Direction::Forward => self.scan.start_points(table, self.index, keys)?,
                    Direction::Backward => {
                        self.scan.start_points(table, self.index, keys.rev())?;
                    }
                }
                self.is_in_range = true;
                continue;
            }
            if !self.bounds.next_range(self.direction, &mut self.range)? {
                return Ok(None);
            }
            let (columns, prefix) = self.bounds.prefix();
            snapshot.begin_range(self.oid, columns, prefix);
            self.scan
                .start(table, self.index, &self.range, self.direction);
            self.is_in_range = true;
        }
    }
}

fn find_index(session: &Session, table: TableRef, oid: pg_sys::Oid) -> IndexRef {
    match session.find_index(table, oid.to_u32(), &PgClock) {
        Some(index) => index,
        // SAFETY: a look into the catalog; a name is not kept.
        None if unsafe { pg_sys::get_rel_name(oid) }.is_null() => errors::index_dropped(),
        None => errors::raise(mot_engine::EngineError::Corrupt {
            what: "an index of the catalog is not in memory",
        }),
    }
}

fn definition(session: &'static Session, index: IndexRef) -> &'static IndexDefinition {
    session
        .definition(index)
        .unwrap_or_else(|error| errors::raise(error))
}

/// The node's scan; NULL when it was only initialized for EXPLAIN.
pub unsafe fn state<'a>(node: *mut pg_sys::ForeignScanState) -> &'a mut Scan {
    // SAFETY: Begin stored a Scan there, which lives as long as the query's memory context.
    unsafe { &mut *(*node).fdw_state.cast::<Scan>() }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn begin_foreign_scan(
    node: *mut pg_sys::ForeignScanState,
    flags: std::ffi::c_int,
) {
    if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0 {
        return;
    }
    // SAFETY: an initialized node of a plan of ours; the current memory context is the query's.
    unsafe {
        let plan = (*node).ss.ps.plan.cast::<pg_sys::ForeignScan>();
        let arguments = compile(&items((*plan).fdw_exprs), node);
        let private = Private::new((*plan).fdw_private);
        let scan = Scan::new(node, &private, &arguments);
        (*node).fdw_state = keep(node, scan).cast();
    }
}

/// Compiles expressions of a node's plan.
pub unsafe fn compile(
    expressions: &[*mut pg_sys::Expr],
    node: *mut pg_sys::ForeignScanState,
) -> Vec<Value> {
    expressions
        .iter()
        // SAFETY: the node's own plan outlives its state.
        .map(|expression| unsafe { Value::new(*expression, node.cast()) })
        .collect()
}

/// Hangs a value on the query's memory context: it is dropped with it, after an error too.
pub unsafe fn keep<T>(node: *mut pg_sys::ForeignScanState, value: T) -> *mut T {
    // SAFETY: an initialized node.
    let context = unsafe { (*(*node).ss.ps.state).es_query_cxt };
    PgMemoryContexts::For(context).leak_and_drop_on_delete(value)
}

#[pg_guard]
pub unsafe extern "C-unwind" fn iterate_foreign_scan(
    node: *mut pg_sys::ForeignScanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a node that went through Begin; its scan slot is of the heap kind.
    unsafe {
        let slot = (*node).ss.ss_ScanTupleSlot;
        let scan = state(node);
        let context = (*node).ss.ps.ps_ExprContext;
        let instrument = (*node).ss.ps.instrument;
        while let Some((row, version, verdict)) = scan.next_passing(context, instrument) {
            tuple::point(&mut scan.tuple, version, scan.relation);
            tuple::store(slot, &raw mut scan.tuple);
            let is_returned = match (scan.row_lock, &scan.filter) {
                (Some(lock), _) => lock_row(node, scan, lock, row, version),
                (None, Some(filter)) if verdict == Verdict::Unsure => {
                    (*context).ecxt_scantuple = slot;
                    filter.ask(context)
                }
                _ => true,
            };
            if is_returned {
                return slot;
            }
            if !instrument.is_null() {
                (*instrument).nfiltered1 += 1.0;
            }
            pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
            if interrupts::is_pending() {
                interrupts::check_for_interrupts();
            }
        }
        tuple::clear(slot);
        slot
    }
}

/// Locks the row in the scan slot if it passes the node's conditions, in its newest state if that passes too; that state is in
/// the slot then.
unsafe fn lock_row(
    node: *mut pg_sys::ForeignScanState,
    scan: &mut Scan,
    lock: RowLock,
    row: Slot,
    version: VersionRef,
) -> bool {
    // SAFETY: the node's own slot, context and conditions.
    unsafe {
        let slot = (*node).ss.ss_ScanTupleSlot;
        let context = (*node).ss.ps.ps_ExprContext;
        (*context).ecxt_scantuple = slot;
        if !passes(lock.filter, context) {
            return false;
        }
        let (strength, policy, purpose) = (lock.strength, WaitPolicy::Block, For::Changing);
        scan.lock_fields.enter();
        let outcome = lock_rows::lock(&lock.target, row, version, strength, policy, purpose);
        scan.lock_fields.leave();
        match outcome {
            Outcome::Locked(newest) if newest == version => true,
            Outcome::Locked(newest) => {
                tuple::point(&mut scan.tuple, newest, scan.relation);
                tuple::store(slot, &raw mut scan.tuple);
                passes((*node).fdw_recheck_quals, context) && passes(lock.filter, context)
            }
            // The statement changed it already: it finds out again when it comes to change it.
            Outcome::SelfModified => true,
            Outcome::Lost => false,
        }
    }
}

#[pg_guard]
pub unsafe extern "C-unwind" fn rescan_foreign_scan(node: *mut pg_sys::ForeignScanState) {
    // SAFETY: a node that went through Begin.
    unsafe { state(node) }.rewind();
}

/// Nothing to do: the state goes with the query's memory context.
#[pg_guard]
pub unsafe extern "C-unwind" fn end_foreign_scan(_node: *mut pg_sys::ForeignScanState) {}
