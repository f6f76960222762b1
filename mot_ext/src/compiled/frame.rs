//! What every verb of a compiled statement needs: its memory, its executor state, the row type,
//! conditions and the row for the client.
//!
//! Everything is made at compile time, of copies, in the statement's own memory context; between
//! two executions it holds no resource of PostgreSQL's.

use super::checks::Checks;
use super::computed::ComputedKeys;
use super::expression::Projection;
use super::foreign_keys::{self, ForeignKeys, Queue};
use super::index_lock::IndexLock;
use super::opened::Opened;
use super::shape::Shape;
use super::targets::{are_all_columns, do_compute};
use crate::pg;
use crate::pg::memory::{empty, small_context_here, within};
use crate::pg::node::{Node, Owned};
use crate::pg::relation::Relation;
use crate::rows::{row_slot, tid, tuple};
use crate::storage;
use crate::table_am::RowChange;
use crate::transaction::relation;
use mot_engine::{CommandId, RowId, TableRef, VersionRef};
use pgrx::pg_sys;

/// A slot of core's, kept.
pub type OwnSlot = Owned<pg_sys::TupleTableSlot>;

/// A slot with a row.
pub type Row<'p> = Node<'p, pg_sys::TupleTableSlot>;

/// What every verb needs.
pub struct Frame {
    /// Holds everything made at compile time.
    pub context: pg_sys::MemoryContext,
    /// What others attach to an execution; emptied when it ends.
    pub(super) execution: pg_sys::MemoryContext,
    estate: Owned<pg_sys::EState>,
    values: Owned<pg_sys::ExprContext>,
    pub relation: pg_sys::Oid,
    /// The index that an execution locks, as core's would; invalid for none.
    pub(super) index: pg_sys::Oid,
    /// Its lock, of the table's mode.
    pub(super) index_lock: IndexLock,
    /// What an execution has open, and where it counts.
    pub(super) opened: Opened,
    work: RowWork,
    /// The table is a temporary one.
    pub(super) is_temporary: bool,
    /// Those of a table that is written to.
    foreign_keys: ForeignKeys,
    /// For what checks foreign keys after a change.
    pub(super) queue: Queue,
    /// The table's position in the range table.
    pub position: u32,
    /// The relation's row type, ours to keep.
    pub row_type: Owned<pg_sys::TupleDescData>,
    /// Its CHECK conditions, if it is written to.
    checks: Option<Checks>,
    /// What indexes have computed of a row, if it forms rows.
    keys: Option<ComputedKeys>,
    /// Fills the row for the client; `None`: none is asked for.
    pub projection: Option<Projection>,
    /// The type of the rows for the client.
    pub(super) result_type: Owned<pg_sys::TupleDescData>,
    /// A SELECT asks for all columns in their order: as in core, the client gets the row, whose
    /// system columns PL/pgSQL's records have, too.
    pub sends_row_itself: bool,
    /// A column for the client is more than a column of the table or a constant: to compute it may
    /// raise, or have effects.
    pub computes_columns: bool,

    /// An expression calls functions.
    pub(super) calls_functions: bool,
    /// Older rows lack columns whose values are in the catalog.
    pub(super) has_missing_values: bool,
}

/// What a statement does to rows of its table.
#[derive(Clone, Copy)]
struct RowWork {
    /// CMD_SELECT: nothing.
    operation: pg_sys::CmdType::Type,
    /// It locks rows that it reads.
    locks_rows: bool,
    /// Of an INSERT: it may change rows that are in the way.
    updates_conflicts: bool,
}

impl RowWork {
    fn of(shape: &Shape<'_>) -> RowWork {
        RowWork {
            operation: shape.operation(),
            locks_rows: shape.locks_rows(),
            updates_conflicts: shape.updates_conflicts(),
        }
    }

    /// Whether it writes rows.
    fn writes(self) -> bool {
        self.operation != pg_sys::CmdType::CMD_SELECT
    }

    /// Whether it makes new states of rows.
    fn forms_rows(self) -> bool {
        ![pg_sys::CmdType::CMD_SELECT, pg_sys::CmdType::CMD_DELETE].contains(&self.operation)
    }
}

/// What a statement keeps of its table.
struct TableParts {
    foreign_keys: ForeignKeys,
    keys: Option<ComputedKeys>,
    checks: Option<Checks>,
    row_type: Owned<pg_sys::TupleDescData>,
    is_temporary: bool,
}

impl TableParts {
    /// Of a table that is locked; `None`: the general path has to run the statement.
    ///
    /// # Safety
    /// The current memory context lives as long as the value.
    unsafe fn of(table: Relation<'_>, work: RowWork) -> Option<TableParts> {
        let foreign_keys = target(table, work)?;
        let keys = match work.forms_rows() {
            true => ComputedKeys::of(table).ok()?,
            false => None,
        };
        let checks = match work.writes() {
            // SAFETY: the caller's memory context.
            true => Some(unsafe { Checks::compile(table.description()) }?),
            false => None,
        };
        Some(TableParts {
            foreign_keys,
            keys,
            checks,
            // SAFETY: a copy in the caller's memory context.
            row_type: unsafe { Owned::new(table.description().copied()) },
            is_temporary: table.persistence() == pg_sys::RELPERSISTENCE_TEMP,
        })
    }
}

/// An executor state of ours, whose memory for an execution is `execution`.
///
/// # Safety
/// The current memory context, and that one, live as long as the value.
unsafe fn executor_state(execution: pg_sys::MemoryContext) -> Owned<pg_sys::EState> {
    // SAFETY: a state just made, in the caller's memory context.
    unsafe {
        let estate = pg_sys::CreateExecutorState();
        (*estate).es_query_cxt = execution;
        Owned::new(estate)
    }
}

impl Frame {
    /// Everything but the work. The table is locked.
    ///
    /// # Safety
    /// `context` is the current memory context, and lives as long as the value.
    pub(super) unsafe fn new(
        context: pg_sys::MemoryContext,
        shape: &Shape<'_>,
        entry: Node<'_, pg_sys::RangeTblEntry>,
    ) -> Option<Frame> {
        let is_relation = entry.rtekind() == pg_sys::RTEKind::RTE_RELATION;
        if !is_relation || shape.targets_have_system_columns() {
            return None;
        }
        let work = RowWork::of(shape);
        let table = relation::LockedRelation::closed(entry.relid());
        // SAFETY: the caller's memory context.
        let parts = table.with(|table| unsafe { TableParts::of(table, work) })?;
        let execution = small_context_here(c"mot execution");
        // SAFETY: as above.
        let (estate, values) = unsafe {
            let estate = executor_state(execution);
            (estate, Owned::new(pg_sys::CreateStandaloneExprContext()))
        };
        let row_type = parts.row_type.view();
        // SAFETY: as above; the expressions are over the table's row type.
        let compile = |targets: &Vec<_>| unsafe {
            Projection::compile(targets, values.view(), Some(row_type))
        };
        let projection = shape.targets.as_ref().map(compile);
        // SAFETY: as above. A type without columns where there are no targets.
        let result_type = unsafe {
            Owned::new(match &projection {
                Some(projection) => projection.row_type().as_ptr(),
                None => pg_sys::ExecTypeFromTL(std::ptr::null_mut()),
            })
        };
        let foreign_keys = parts.foreign_keys;
        let is_looked_at = foreign_keys.look_at(work.operation)
            || (work.updates_conflicts && foreign_keys.look_at(pg_sys::CmdType::CMD_UPDATE));
        let (checks, keys) = (parts.checks, parts.keys);
        let checks_call = checks.as_ref().is_some_and(|checks| checks.calls_functions);
        let keys_call = keys.as_ref().is_some_and(ComputedKeys::call_functions);
        let are_columns = |targets: &Vec<_>| are_all_columns(targets, row_type.columns());
        let targets = shape.targets.as_ref();
        Some(Frame {
            calls_functions: checks_call || keys_call || shape.calls_functions(),
            context,
            execution,
            estate,
            relation: entry.relid(),
            index: shape.index(),
            index_lock: IndexLock::new(entry.rellockmode()),
            opened: Opened::NONE,
            work,
            is_temporary: parts.is_temporary,
            foreign_keys,
            queue: Queue::new(is_looked_at),
            position: shape.relation,
            checks,
            keys,
            projection,
            result_type,
            sends_row_itself: !work.writes() && targets.is_some_and(are_columns),
            computes_columns: targets.is_some_and(|all| do_compute(all)),
            has_missing_values: row_type.has_missing_values(),
            values,
            row_type: parts.row_type,
        })
    }

    /// The executor state.
    #[inline]
    pub fn estate(&self) -> Node<'_, pg_sys::EState> {
        self.estate.view()
    }

    /// What expressions are evaluated in: the rows that they are over, and parameters.
    #[inline]
    pub fn values(&self) -> Node<'_, pg_sys::ExprContext> {
        self.values.view()
    }

    /// Whether the relation is still what the statement was compiled for. It looks up anew which
    /// keys are computed. The table is locked.
    pub(super) fn fits(&mut self) -> bool {
        relation::LockedRelation::closed(self.relation).with(|table| {
            table.description().is_alike(self.row_type.view())
                && storage::is_table(table)
                && target(table, self.work) == Some(self.foreign_keys)
                && self.renew_keys(table)
        })
    }

    /// Looks up which keys are computed; false: core has to form the rows, or there were none, or
    /// are none any more. The table is locked for writing.
    fn renew_keys(&mut self, table: Relation<'_>) -> bool {
        if !self.work.forms_rows() {
            return true;
        }
        match ComputedKeys::of(table) {
            Ok(keys) if keys.is_some() == self.keys.is_some() => {
                self.calls_functions |= keys.as_ref().is_some_and(ComputedKeys::call_functions);
                self.keys = keys;
                true
            }
            _ => false,
        }
    }

    /// Whether a new state may be the old one's bytes with some values written over them. Others
    /// are taken apart: where conditions or indexes read them, or values are in the catalog.
    pub fn may_patch(&self) -> bool {
        !self.has_checks() && !self.has_missing_values && self.keys.is_none()
    }

    /// A row that was formed of a slot without the keys that indexes compute, with all of them,
    /// in the current memory context.
    ///
    /// # Safety
    /// A filled slot of the table's row type, and an old version that the row may replace, which is
    /// kept meanwhile. The row is used no longer than the context is kept.
    pub unsafe fn add_keys<'a>(
        &self,
        formed: &'a [u8],
        row: Row<'_>,
        old: Option<VersionRef>,
    ) -> &'a [u8] {
        // SAFETY: the caller's.
        let add = |keys: &ComputedKeys| unsafe { keys.add(formed, row, old) };
        self.keys.as_ref().map_or(formed, add)
    }

    /// The same with the key of one index alone.
    ///
    /// # Safety
    /// As for [`Frame::add_keys`].
    pub unsafe fn add_key<'a>(
        &self,
        formed: &'a [u8],
        row: Row<'_>,
        index: pg_sys::Oid,
    ) -> &'a [u8] {
        // SAFETY: the caller's.
        let add = |keys: &ComputedKeys| unsafe { keys.add_one(formed, row, index) };
        self.keys.as_ref().map_or(formed, add)
    }

    /// Counts a row that was changed, where core counts.
    ///
    /// # Safety
    /// In an execution, which has the table locked.
    #[inline]
    pub unsafe fn count_change(&self, change: RowChange) {
        // SAFETY: the caller's.
        unsafe { self.opened.count_change(self.relation, change) };
    }

    /// What core's functions on triggers need of the statement.
    ///
    /// # Safety
    /// In an execution. Its queue is used, so it has the table open.
    pub unsafe fn queued(&self) -> foreign_keys::Of<'_> {
        let table = (self.opened.table(), self.position);
        // SAFETY: the caller's; the statement's own memory.
        unsafe { foreign_keys::Of::new(self.context, self.estate(), table) }
    }

    /// Points `tuple` at a version of a row, with its tuple id.
    pub fn point(
        &self,
        tuple: &mut pg_sys::HeapTupleData,
        table: TableRef,
        row: RowId,
        version: VersionRef,
    ) {
        let tid = tid::of(table, row, version);
        tuple::point(tuple, tid, version, self.relation);
    }

    /// A slot for rows of the table, in place.
    ///
    /// # Safety
    /// The current memory context lives as long as the slot, and so does the frame.
    pub unsafe fn row_slot(&self) -> OwnSlot {
        // SAFETY: the caller's.
        unsafe { self.slot_of(row_slot::kind()) }
    }

    /// A slot for values of the table's columns.
    ///
    /// # Safety
    /// As for [`Frame::row_slot`].
    pub unsafe fn virtual_slot(&self) -> OwnSlot {
        // SAFETY: the caller's.
        unsafe { self.slot_of(&raw const pg_sys::TTSOpsVirtual) }
    }

    /// # Safety
    /// As for [`Frame::row_slot`].
    unsafe fn slot_of(&self, kind: *const pg_sys::TupleTableSlotOps) -> OwnSlot {
        // SAFETY: the row type lives as long as the slot (caller).
        unsafe {
            Owned::new(pg_sys::MakeSingleTupleTableSlot(
                self.row_type.as_ptr(),
                kind,
            ))
        }
    }

    /// The command id of this execution's writes.
    pub fn command(&self) -> CommandId {
        CommandId(self.estate().es_output_cid())
    }

    /// Counts a row for the client.
    #[inline]
    pub fn count_processed(&self) {
        let estate = self.estate();
        estate.set_processed(estate.es_processed() + 1);
    }

    /// Whether there are CHECK conditions to ask.
    fn has_checks(&self) -> bool {
        self.checks
            .as_ref()
            .is_some_and(|checks| !checks.is_empty())
    }

    /// Memory for one row.
    #[inline]
    pub fn per_row(&self) -> pg_sys::MemoryContext {
        self.values().ecxt_per_tuple_memory()
    }

    /// Does something in the memory for one row.
    ///
    /// # Safety
    /// What is made there is used no longer than [`Frame::empty_row`] is not called.
    #[inline]
    pub unsafe fn within_row<T>(&self, action: impl FnOnce() -> T) -> T {
        // SAFETY: the statement's own context; the caller's promise.
        unsafe { within(self.per_row(), action) }
    }

    /// Empties the memory for one row.
    ///
    /// # Safety
    /// Nothing in it is used any more.
    #[inline]
    pub unsafe fn empty_row(&self) {
        // SAFETY: the statement's own context; the caller's promise.
        unsafe { empty(self.per_row()) };
    }

    /// Empties the memory for one row that core's functions on triggers and constraints use, if
    /// there is any.
    pub fn empty_checks(&self) {
        if let Some(checks) = self.estate().es_per_tuple_exprcontext() {
            // SAFETY: a live context, which core's functions use while they run.
            unsafe { empty(checks.ecxt_per_tuple_memory()) };
        }
    }

    /// Raises what a new row violates: NOT NULL and CHECK. There is nothing else: `simple_target`.
    ///
    /// # Safety
    /// A filled slot of the table's row type, taken apart.
    pub unsafe fn check<'p>(&'p self, row: Row<'p>) {
        row.set_table(self.relation);
        // SAFETY: the caller's slot, which nobody changes meanwhile.
        let (_, nulls) = unsafe { row.columns() };
        let mut columns = self.row_type.view().columns().iter().zip(nulls);
        let is_whole = !columns.any(|(column, is_null)| *is_null && column.attnotnull);
        // SAFETY: the caller's slot.
        let passes = |checks: &Checks| unsafe { checks.pass(self.values(), row) };
        if !is_whole || !self.checks.as_ref().is_none_or(passes) {
            // SAFETY: the caller's slot.
            unsafe { self.raise_violation(row) };
        }
    }

    /// Forms the row of a slot with its computed keys, in the current memory context, after
    /// [`Frame::check`].
    ///
    /// # Safety
    /// As for both.
    #[inline]
    pub unsafe fn check_and_form<'a>(&self, row: Row<'_>, old: VersionRef) -> &'a [u8] {
        // SAFETY: the caller's.
        unsafe {
            self.check(row);
            self.add_keys(tuple::form(row.as_ptr()), row, Some(old))
        }
    }

    /// Has core find the words for what a row violates.
    ///
    /// # Safety
    /// A filled slot of the table's row type.
    #[cold]
    unsafe fn raise_violation(&self, row: Row<'_>) {
        relation::LockedRelation::closed(self.relation).with(|opened| {
            let (row, estate) = (row.as_ptr(), self.estate.as_ptr());
            // SAFETY: an open table, a filled slot of its row type, and the statement's own state.
            unsafe { pg::executor::check_constraints(opened.as_ptr(), self.position, row, estate) }
        });
    }
}

/// The foreign keys that check what a statement does to an open relation; `None`: core has to do
/// it.
///
/// A row that is locked in a partition may have moved to another one, which core reports by an
/// error. Core refuses changes of rows that a publication cannot name; the question raises.
fn target(table: Relation<'_>, work: RowWork) -> Option<ForeignKeys> {
    let is_method = storage::is_table(table);
    if !work.writes() {
        let may_move = is_method && table.is_partition();
        return (!work.locks_rows || !may_move).then(ForeignKeys::default);
    }
    if is_method {
        table.check_replica_identity(work.operation);
        if work.updates_conflicts {
            table.check_replica_identity(pg_sys::CmdType::CMD_UPDATE);
        }
    }
    simple_target(table)
}

/// The foreign keys of a table whose rows can be written without core's help otherwise: no other
/// triggers, no computed columns, no partition bounds, no keys that core checks.
fn simple_target(table: Relation<'_>) -> Option<ForeignKeys> {
    let has_keys_of_core = storage::is_table(table) && storage::has_keys_of_core(table);
    let is_free = !table.description().has_generated_columns();
    if !is_free || has_keys_of_core || table.is_partition() {
        return None;
    }
    ForeignKeys::of(table)
}
