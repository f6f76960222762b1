//! What every verb of a compiled statement needs: its memory, its executor state, the row type,
//! conditions and the row for the client.
//!
//! Everything is made at compile time, of copies, in the statement's own memory context; between
//! two executions it holds no resource of PostgreSQL's.

use super::checks::Checks;
use super::computed::ComputedKeys;
use super::foreign_keys::{self, ForeignKeys, Queue};
use super::index_lock::IndexLock;
use super::opened::Opened;
use super::shape::Shape;
use super::targets::{are_all_columns, do_compute};
use crate::executor::expressions::Value;
use crate::pg::list::{items, list};
use crate::pg::{self, version};
use crate::rows::{row_slot, tid, tuple};
use crate::storage;
use crate::table_am::RowChange;
use crate::transaction::relation;
use mot_engine::{CommandId, Slot, TableRef, VersionRef};
use pgrx::pg_sys;

/// What every verb needs.
pub struct Frame {
    /// Holds everything made at compile time.
    pub context: pg_sys::MemoryContext,
    /// What others attach to an execution; emptied when it ends.
    pub(super) execution: pg_sys::MemoryContext,
    pub estate: *mut pg_sys::EState,
    pub values: *mut pg_sys::ExprContext,
    pub relation: pg_sys::Oid,
    /// The index that an execution locks, as core's would; invalid for none.
    pub(super) index: pg_sys::Oid,
    /// Its lock, of the table's mode.
    pub(super) index_lock: IndexLock,
    /// What an execution has open, and where it counts.
    pub(super) opened: Opened,
    /// What it does to rows; CMD_SELECT: nothing.
    operation: pg_sys::CmdType::Type,
    /// The table is a temporary one.
    pub(super) is_temporary: bool,
    /// It locks rows that it reads.
    locks_rows: bool,
    /// Of an INSERT: it may change rows that are in the way.
    updates_conflicts: bool,
    /// Those of a table that is written to.
    foreign_keys: ForeignKeys,
    /// For what checks foreign keys after a change.
    pub(super) queue: Queue,
    /// The table's position in the range table.
    pub position: u32,
    /// The relation's row type, ours to keep.
    pub row_type: pg_sys::TupleDesc,
    /// Its CHECK conditions, if it is written to.
    checks: Option<Checks>,
    /// What indexes have computed of a row, if it forms rows.
    keys: Option<ComputedKeys>,
    /// Fills the row for the client; NULL: none is asked for.
    pub projection: *mut pg_sys::ProjectionInfo,
    pub(super) result_type: pg_sys::TupleDesc,
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

/// What a statement keeps of its table.
struct TableParts {
    foreign_keys: ForeignKeys,
    keys: Option<ComputedKeys>,
    checks: Option<Checks>,
    row_type: pg_sys::TupleDesc,
    is_temporary: bool,
}

impl TableParts {
    /// `None`: the general path has to run the statement.
    unsafe fn of(entry: *mut pg_sys::RangeTblEntry, shape: &Shape) -> Option<TableParts> {
        // SAFETY: the table is locked (caller); what is opened here is closed here.
        unsafe {
            if (*entry).rtekind != pg_sys::RTEKind::RTE_RELATION {
                return None;
            }
            let opened = pg_sys::relation_open((*entry).relid, pg_sys::NoLock as i32);
            let operation = shape.operation();
            let writes = operation != pg_sys::CmdType::CMD_SELECT;
            let (locks_rows, updates_conflicts) = (shape.locks_rows(), shape.updates_conflicts());
            let target = target(opened, operation, locks_rows, updates_conflicts);
            let keys = match target.is_some() && forms_rows(operation) {
                true => ComputedKeys::of(opened),
                false => Ok(None),
            };
            let is_simple = target.is_some() && keys.is_ok();
            let checks = if writes && is_simple {
                Checks::compile(opened)
            } else {
                None
            };
            let row_type = pg_sys::CreateTupleDescCopyConstr((*opened).rd_att);
            let persistence = (*(*opened).rd_rel).relpersistence as u8;
            pg_sys::relation_close(opened, pg_sys::NoLock as i32);
            let shows_system_columns = shape.targets_have_system_columns();
            if !is_simple || (writes && checks.is_none()) || shows_system_columns {
                return None;
            }
            Some(TableParts {
                foreign_keys: target.unwrap_or_default(),
                keys: keys.unwrap_or(None),
                checks,
                row_type,
                is_temporary: persistence == pg_sys::RELPERSISTENCE_TEMP,
            })
        }
    }
}

/// The type of the rows for the client, and what fills them; NULL: none is asked for.
unsafe fn result(
    shape: &Shape,
    values: *mut pg_sys::ExprContext,
    row_type: pg_sys::TupleDesc,
) -> (pg_sys::TupleDesc, *mut pg_sys::ProjectionInfo) {
    let none = std::ptr::null_mut();
    // SAFETY: expressions over the table's row type, in memory of the statement's (caller).
    unsafe {
        let Some(targets) = &shape.targets else {
            return (pg_sys::ExecTypeFromTL(none), std::ptr::null_mut());
        };
        let targets = copy_list(targets);
        let kind = pg_sys::ExecTypeFromTL(targets);
        let slot = pg_sys::MakeSingleTupleTableSlot(kind, &raw const pg_sys::TTSOpsVirtual);
        let projection =
            pg_sys::ExecBuildProjectionInfo(targets, values, slot, std::ptr::null_mut(), row_type);
        (kind, projection)
    }
}

impl Frame {
    /// Everything but the work; the current context is the statement's.
    pub(super) unsafe fn new(
        context: pg_sys::MemoryContext,
        shape: &Shape,
        entry: *mut pg_sys::RangeTblEntry,
    ) -> Option<Frame> {
        // SAFETY: the table is locked; memory of the statement's.
        unsafe {
            let TableParts {
                foreign_keys,
                keys,
                checks,
                row_type,
                is_temporary,
            } = TableParts::of(entry, shape)?;
            let operation = shape.operation();
            let writes = operation != pg_sys::CmdType::CMD_SELECT;
            let updates_conflicts = shape.updates_conflicts();
            let estate = pg_sys::CreateExecutorState();
            let execution = pg::small_context(context, c"mot execution");
            (*estate).es_query_cxt = execution;
            let values = pg_sys::CreateStandaloneExprContext();
            let (result_type, projection) = result(shape, values, row_type);
            let is_looked_at = foreign_keys.look_at(operation)
                || (updates_conflicts && foreign_keys.look_at(pg_sys::CmdType::CMD_UPDATE));
            let checks_call = checks.as_ref().is_some_and(|checks| checks.calls_functions);
            let keys_call = keys.as_ref().is_some_and(ComputedKeys::call_functions);
            Some(Frame {
                calls_functions: checks_call || keys_call || shape.calls_functions(),
                context,
                execution,
                estate,
                values,
                relation: (*entry).relid,
                index: shape.index(),
                index_lock: IndexLock::new((*entry).rellockmode),
                opened: Opened::NONE,
                operation,
                is_temporary,
                locks_rows: shape.locks_rows(),
                updates_conflicts,
                foreign_keys,
                queue: Queue::new(is_looked_at),
                position: shape.relation,
                row_type,
                checks,
                keys,
                projection,
                result_type,
                sends_row_itself: !writes
                    && shape
                        .targets
                        .as_ref()
                        .is_some_and(|targets| are_all_columns(targets, row_type)),
                computes_columns: shape.targets.as_ref().is_some_and(|all| do_compute(all)),
                has_missing_values: has_missing_values(row_type),
            })
        }
    }

    /// Whether the relation is still what the statement was compiled for. It looks up anew which
    /// keys are computed.
    pub(super) unsafe fn fits(&mut self) -> bool {
        // SAFETY: the table is locked; what is opened here is closed here.
        unsafe {
            relation::Relation::closed(self.relation).with(|opened| {
                pg_sys::equalTupleDescs((*opened).rd_att, self.row_type)
                    && storage::is_table(opened)
                    && target(
                        opened,
                        self.operation,
                        self.locks_rows,
                        self.updates_conflicts,
                    ) == Some(self.foreign_keys)
                    && self.renew_keys(opened)
            })
        }
    }

    /// Looks up which keys are computed; false: core has to form the rows, or there were none, or
    /// are none any more.
    unsafe fn renew_keys(&mut self, opened: pg_sys::Relation) -> bool {
        if !forms_rows(self.operation) {
            return true;
        }
        // SAFETY: the caller's open table, which is locked for writing.
        match unsafe { ComputedKeys::of(opened) } {
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

    /// Forms the row of a slot with its computed keys, in the current memory context.
    pub unsafe fn form<'a>(&self, slot: *mut pg_sys::TupleTableSlot) -> &'a [u8] {
        // SAFETY: a filled slot of the table's row type.
        unsafe { self.add_keys(tuple::form(slot), slot) }
    }

    /// A row that was formed without the keys that indexes compute, with all of them.
    pub unsafe fn add_keys<'a>(
        &self,
        row: &'a [u8],
        slot: *mut pg_sys::TupleTableSlot,
    ) -> &'a [u8] {
        // SAFETY: a filled slot of the table's row type.
        let add = |keys: &ComputedKeys| unsafe { keys.add(row, slot) };
        self.keys.as_ref().map_or(row, add)
    }

    /// The same with the key of one index alone.
    pub unsafe fn add_key<'a>(
        &self,
        row: &'a [u8],
        slot: *mut pg_sys::TupleTableSlot,
        index: pg_sys::Oid,
    ) -> &'a [u8] {
        // SAFETY: a filled slot of the table's row type.
        let add = |keys: &ComputedKeys| unsafe { keys.add_one(row, slot, index) };
        self.keys.as_ref().map_or(row, add)
    }

    /// Counts a row that was changed, where core counts.
    #[inline]
    pub unsafe fn count_change(&self, change: RowChange) {
        // SAFETY: the statement has locked its table.
        unsafe { self.opened.count_change(self.relation, change) };
    }

    /// What core's functions on triggers need of the statement.
    pub fn queued(&self) -> foreign_keys::Of {
        foreign_keys::Of {
            context: self.context,
            estate: self.estate,
            table: self.opened.table(),
            position: self.position,
        }
    }

    /// Points `tuple` at a version of a row, with its tuple id.
    pub fn point(
        &self,
        tuple: &mut pg_sys::HeapTupleData,
        table: TableRef,
        row: Slot,
        version: VersionRef,
    ) {
        tuple::point(tuple, row, version, self.relation);
        tuple.t_self = tid::of(table, row, version);
    }

    /// A slot for rows of the table, in place.
    pub unsafe fn row_slot(&self) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: the row type lives as long as the slot.
        unsafe { pg_sys::MakeSingleTupleTableSlot(self.row_type, row_slot::kind()) }
    }

    /// The command id of this execution's writes.
    pub unsafe fn command(&self) -> CommandId {
        // SAFETY: the statement's own state.
        CommandId(unsafe { (*self.estate).es_output_cid })
    }

    /// Whether there are CHECK conditions to ask.
    fn has_checks(&self) -> bool {
        self.checks
            .as_ref()
            .is_some_and(|checks| !checks.is_empty())
    }

    /// Memory for one row.
    pub unsafe fn per_row(&self) -> pg_sys::MemoryContext {
        // SAFETY: the statement's own context.
        unsafe { (*self.values).ecxt_per_tuple_memory }
    }

    /// Empties the memory for one row that core's functions on triggers and constraints use, if
    /// there is any.
    pub unsafe fn empty_checks(&self) {
        // SAFETY: the statement's own executor state.
        unsafe {
            let checks = (*self.estate).es_per_tuple_exprcontext;
            if !checks.is_null() {
                empty((*checks).ecxt_per_tuple_memory);
            }
        }
    }

    /// Raises what a new row violates: NOT NULL and CHECK. There is nothing else:
    /// `is_simple_target`.
    pub unsafe fn check(&self, row: *mut pg_sys::TupleTableSlot) {
        // SAFETY: a filled slot of the row type; on a violation the relation is opened and core
        // finds the words.
        unsafe {
            (*row).tts_tableOid = self.relation;
            let attributes = version::attributes(self.row_type);
            let is_missing = |position: usize| {
                *(*row).tts_isnull.add(position) && (*attributes.add(position)).attnotnull
            };
            let is_whole = !(0..(*self.row_type).natts as usize).any(is_missing);
            let passes = |checks: &Checks| checks.pass(self.values, row);
            if !is_whole || !self.checks.as_ref().is_none_or(passes) {
                relation::Relation::closed(self.relation).with(|opened| {
                    pg::executor::check_constraints(opened, self.position, row, self.estate)
                });
            }
        }
    }
}

/// The foreign keys that check what a statement does to an open relation; `None`: core has to do
/// it.
///
/// A row that is locked in a partition may have moved to another one, which core reports by an
/// error. Core refuses changes of rows that a publication cannot name; the question raises.
unsafe fn target(
    relation: pg_sys::Relation,
    operation: pg_sys::CmdType::Type,
    locks_rows: bool,
    updates_conflicts: bool,
) -> Option<ForeignKeys> {
    // SAFETY: an open relation (caller).
    unsafe {
        let is_method = storage::is_table(relation);
        if operation == pg_sys::CmdType::CMD_SELECT {
            let may_move = is_method && (*(*relation).rd_rel).relispartition;
            return (!locks_rows || !may_move).then(ForeignKeys::default);
        }
        if is_method {
            pg_sys::CheckCmdReplicaIdentity(relation, operation);
            if updates_conflicts {
                pg_sys::CheckCmdReplicaIdentity(relation, pg_sys::CmdType::CMD_UPDATE);
            }
        }
        simple_target(relation)
    }
}

/// The foreign keys of a table whose rows can be written without core's help otherwise: no other
/// triggers, no computed columns, no partition bounds, no keys that core checks.
unsafe fn simple_target(relation: pg_sys::Relation) -> Option<ForeignKeys> {
    // SAFETY: an open relation.
    unsafe {
        let constraints = (*(*relation).rd_att).constr;
        let is_free = constraints.is_null() || !version::has_generated_columns(&*constraints);
        let has_keys_of_core = storage::is_table(relation) && storage::has_keys_of_core(relation);
        if !is_free || has_keys_of_core || (*(*relation).rd_rel).relispartition {
            return None;
        }
        ForeignKeys::of(relation)
    }
}

/// Whether a statement makes new states of rows.
fn forms_rows(operation: pg_sys::CmdType::Type) -> bool {
    ![pg_sys::CmdType::CMD_SELECT, pg_sys::CmdType::CMD_DELETE].contains(&operation)
}

/// Whether older rows lack a column whose value is in the catalog.
unsafe fn has_missing_values(row_type: pg_sys::TupleDesc) -> bool {
    // SAFETY: the table's row type.
    unsafe {
        let attributes = version::attributes(row_type);
        (0..(*row_type).natts as usize).any(|at| (*attributes.add(at)).atthasmissing)
    }
}

/// A copy of expressions, in the current context.
pub unsafe fn copy_list<T>(nodes: &[*mut T]) -> *mut pg_sys::List {
    // SAFETY: nodes of a finished plan.
    unsafe {
        let list = list(nodes);
        pg_sys::copyObjectImpl(list.cast()).cast()
    }
}

/// The values of conditions, compiled over copies.
pub unsafe fn compile_values(expressions: &[*mut pg_sys::Expr]) -> Vec<Value> {
    // SAFETY: plain expressions of a finished plan; the copies live in the statement's context.
    unsafe {
        items::<pg_sys::Expr>(copy_list(expressions))
            .into_iter()
            .map(|copy| Value::new(copy, std::ptr::null_mut()))
            .collect()
    }
}

/// A condition, compiled over a copy.
pub unsafe fn compile_conditions(conditions: &[*mut pg_sys::Expr]) -> *mut pg_sys::ExprState {
    // SAFETY: as for `compile_values`.
    unsafe { pg_sys::ExecInitQual(copy_list(conditions), std::ptr::null_mut()) }
}

/// Makes `context` the current one while `action` runs; an error puts PostgreSQL's own back.
pub unsafe fn within<T>(context: pg_sys::MemoryContext, action: impl FnOnce() -> T) -> T {
    // SAFETY: a live context (caller).
    unsafe {
        let old = pg_sys::MemoryContextSwitchTo(context);
        let result = action();
        pg_sys::MemoryContextSwitchTo(old);
        result
    }
}

/// Empties a context that is not empty already.
#[inline]
pub unsafe fn empty(context: pg_sys::MemoryContext) {
    // SAFETY: a live context (caller).
    unsafe {
        let known = &*context;
        if !known.firstchild.is_null() || !known.reset_cbs.is_null() {
            pg_sys::MemoryContextReset(context);
        } else if !known.isReset {
            pg::empty_bare_context(context);
        }
    }
}
