//! Computed keys of a row: those of indexes on expressions, of partial indexes, and of columns with
//! labels (`labels.rs`).
//!
//! The engine keeps them in the row's tail (`mot_engine/src/key/computed.rs`). They are computed
//! here, when a row is formed, for every index that is live in the catalog: also for one that is
//! not ready yet.
//!
//! - Expressions and comparisons run code of users, so no engine latch and no pin is held
//!   meanwhile, and no row is half written. That code may write to the same table. So an evaluator
//!   in use is taken out of the cache.
//! - A transaction keeps what it has prepared (`evaluators.rs`), and so does a compiled statement
//!   whose expressions are plain (`compiled/computed.rs`).
//! - Each index is locked as core locks those of a table that it writes to.
//! - An index that is neither ready nor stored may be what a failed CREATE INDEX CONCURRENTLY has
//!   left. Its keys are computed for the build, if one runs, and an error there is the build's: the
//!   row has no such key then.
use super::definition::index_definition;
use super::kept_keys::{ColumnsRead, OldRow};
use super::labels::{LabelMaker, LabelSource};
use crate::errors::or_raise;
use crate::executor::expressions::passes;
use crate::keys::{self, IndexColumn};
use crate::pg;
use crate::pg::memory::within;
use crate::pg::relation::{Relation, try_with, with_index};
use crate::pg::subtransaction::attempt;
use crate::pg::tuple_slot::TupleSlot;
use crate::transaction::{relation, session};
use mot_engine::key::{KeyColumn, Tail, tail_bytes};
use mot_engine::{FileKey, TableRef, VersionRef};
use pgrx::pg_sys;

/// Most columns of an index, as core's arrays have them.
const COLUMNS_MAX: usize = pg_sys::INDEX_MAX_KEYS as usize;

/// One index whose keys are computed.
struct Computed {
    file: FileKey,
    /// The number of its entries in rows' tails: the index's oid, or its file's number where values
    /// have labels.
    number: u32,
    info: *mut pg_sys::IndexInfo,
    /// NULL: every row is in the index.
    predicate: *mut pg_sys::ExprState,
    columns: Vec<KeyColumn>,
    /// What its keys follow from; `None`: from all of the row.
    columns_read: Option<ColumnsRead>,
    /// Of an index whose values have labels.
    label_maker: Option<Box<LabelMaker>>,
    /// The table of an index that is not ready, for its writers.
    not_ready_in: Option<TableRef>,
    /// An error has ended its expressions half-way: they are not run again.
    has_failed: bool,
}

impl Computed {
    /// Of an index with computed keys, in the current memory context.
    ///
    /// # Safety
    /// The executor state lives as long as the value.
    unsafe fn new(
        table: Relation<'_>,
        index: Relation<'_>,
        estate: *mut pg_sys::EState,
    ) -> Computed {
        // SAFETY: an open index, and the caller's executor state.
        let (info, predicate) = unsafe {
            let info = pg_sys::BuildIndexInfo(index.as_ptr());
            (info, pg_sys::ExecPrepareQual((*info).ii_Predicate, estate))
        };
        let definition = index_definition(table, index);
        Computed {
            file: super::file_of(index),
            number: definition.computed.unwrap_or_default(),
            info,
            predicate,
            columns: definition.columns.clone(),
            columns_read: ColumnsRead::of(index, info),
            label_maker: definition
                .has_labels()
                .then(|| Box::new(LabelMaker::new(table, index, definition))),
            not_ready_in: None,
            has_failed: false,
        }
    }

    /// Whether an error in its expressions is that of a build: as long as there is none in the
    /// engine, whose rows all need their keys.
    fn may_fail(&self) -> bool {
        let is_built = |table| session::session().knows_file(table, self.file);
        self.not_ready_in.is_some_and(|table| !is_built(table))
    }

    /// Adds the key of the row that an UPDATE replaces to a tail, if the new row has it, too.
    ///
    /// # Safety
    /// The old row is shown by the first, which has this body; the slot is a filled one.
    unsafe fn keep(&self, tail: &mut Tail, old: (&OldRow, &[u8]), new: TupleSlot<'_>) -> bool {
        let (shown, body) = old;
        // SAFETY: the caller's rows.
        let is_equal = |columns: &ColumnsRead| unsafe { shown.has_equal(columns, new) };
        self.columns_read.as_ref().is_some_and(is_equal) && or_raise(tail.keep(body, self.number))
    }

    /// Computes its key of the row that the context shows, and adds it to a tail; or keeps the
    /// values, for a label.
    ///
    /// # Safety
    /// The context, and the state that it is of, are those with which this was made. The context
    /// shows a filled slot, and the current memory context is that of the row.
    unsafe fn add_to(
        &mut self,
        tail: &mut Tail,
        estate: *mut pg_sys::EState,
        context: *mut pg_sys::ExprContext,
    ) {
        let mut values = [pg_sys::Datum::null(); COLUMNS_MAX];
        let mut nulls = [true; COLUMNS_MAX];
        // SAFETY: the caller's; the arrays have a place for each column.
        unsafe {
            if !self.predicate.is_null() && !passes(self.predicate, context) {
                or_raise(tail.leave_out(self.number));
                return;
            }
            let (given, are_null) = (values.as_mut_ptr(), nulls.as_mut_ptr());
            let slot = (*context).ecxt_scantuple;
            pg_sys::FormIndexDatum(self.info, slot, estate, given, are_null);
            if let Some(label_maker) = &mut self.label_maker {
                label_maker.take(&values, &nulls);
                return;
            }
            let columns = self.columns.iter().enumerate();
            let values =
                columns.map(|(at, column)| keys::value(column.kind, values[at], nulls[at]));
            or_raise(tail.enter(self.number, &self.columns, values));
        }
    }
}

/// Goes back to a memory context, also where an error unwinds: what is current then may be freed.
struct Back(pg_sys::MemoryContext);

impl Drop for Back {
    fn drop(&mut self) {
        // SAFETY: the caller's context, which outlives the call.
        unsafe { pg_sys::MemoryContextSwitchTo(self.0) };
    }
}

/// Computes the keys of a table's rows, of some of its indexes.
pub struct Evaluator {
    /// All that the executor makes is in it.
    memory: pg_sys::MemoryContext,
    estate: *mut pg_sys::EState,
    context: *mut pg_sys::ExprContext,
    indexes: Vec<Computed>,
    old: OldRow,
    /// What was computed last.
    pub tail: Tail,
}

impl Evaluator {
    /// Without indexes yet.
    fn new(table: Relation<'_>) -> Evaluator {
        // SAFETY: below a context that lives as long as the process.
        let memory = unsafe { pg::small_context(pg_sys::TopMemoryContext, c"mot computed keys") };
        // SAFETY: nodes of its own, in that memory.
        let (estate, context, old) = unsafe {
            within(memory, || {
                let estate = pg_sys::CreateExecutorState();
                let context = pg_sys::MakePerTupleExprContext(estate);
                (estate, context, OldRow::of(table))
            })
        };
        Evaluator {
            memory,
            estate,
            context,
            indexes: Vec::new(),
            old,
            tail: Tail::default(),
        }
    }

    /// For all indexes that are live and have computed keys, of a table that is locked for writing.
    pub fn of_table(table: Relation<'_>) -> Evaluator {
        let mut evaluator = Evaluator::new(table);
        let lock = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
        for oid in computed_indexes(table) {
            with_index(oid, lock, |index| {
                let is_ready = index.index_row().indisready;
                let computed = evaluator.add(table, index);
                computed.not_ready_in = (!is_ready).then(|| super::described(table));
            });
        }
        evaluator
    }

    /// For one index with computed keys.
    pub fn of_index(table: Relation<'_>, index: Relation<'_>) -> Evaluator {
        let mut evaluator = Evaluator::new(table);
        evaluator.add(table, index);
        evaluator
    }

    fn add(&mut self, table: Relation<'_>, index: Relation<'_>) -> &mut Computed {
        let estate = self.estate;
        // SAFETY: the executor state and what is made are in the evaluator's memory.
        let computed = unsafe { within(self.memory, || Computed::new(table, index, estate)) };
        self.indexes.push(computed);
        self.indexes.last_mut().expect("one was added")
    }

    /// Whether some index is not ready: an error in its expressions may be a build's.
    pub fn has_unready(&self) -> bool {
        self.indexes
            .iter()
            .any(|index| index.not_ready_in.is_some())
    }

    /// Whether values of some index have labels.
    pub fn has_labels(&self) -> bool {
        self.indexes.iter().any(|index| index.label_maker.is_some())
    }

    /// Says how the labels of the next rows come about.
    pub fn set_label_source(&mut self, source: impl Fn() -> LabelSource) {
        for label_maker in self
            .indexes
            .iter_mut()
            .filter_map(|index| index.label_maker.as_mut())
        {
            label_maker.source = source();
        }
    }

    /// The expressions of its indexes, and their predicates.
    pub fn expressions(&self) -> impl Iterator<Item = *mut pg_sys::List> {
        // SAFETY: of the evaluator's own memory.
        let lists = |index: &Computed| unsafe {
            [(*index.info).ii_Expressions, (*index.info).ii_Predicate]
        };
        self.indexes.iter().flat_map(lists)
    }

    /// Computes the keys of the row in a slot into the tail, behind what that has.
    ///
    /// # Safety
    /// A filled slot of the table's row type.
    pub unsafe fn compute(&mut self, slot: TupleSlot<'_>) {
        // SAFETY: the caller's slot.
        unsafe { self.compute_where(slot, None, |_| true) };
    }

    /// The same of a row that replaces an old one, with the old one's keys where they are its own.
    ///
    /// # Safety
    /// As for [`Evaluator::compute`]; the old version is kept meanwhile.
    pub unsafe fn compute_changed(&mut self, slot: TupleSlot<'_>, old: Option<VersionRef>) {
        // SAFETY: the caller's slot and version.
        unsafe { self.compute_where(slot, old, |_| true) };
    }

    /// The same for one of the indexes.
    ///
    /// # Safety
    /// As for [`Evaluator::compute`].
    pub unsafe fn compute_one(&mut self, slot: TupleSlot<'_>, index: pg_sys::Oid) {
        // SAFETY: the caller's slot.
        unsafe { self.compute_where(slot, None, |number| number == index.to_u32()) };
    }

    /// # Safety
    /// As for [`Evaluator::compute_changed`].
    unsafe fn compute_where(
        &mut self,
        slot: TupleSlot<'_>,
        version: Option<VersionRef>,
        is_wanted: impl Fn(u32) -> bool,
    ) {
        let Evaluator {
            estate,
            context,
            indexes,
            old,
            tail,
            ..
        } = self;
        let body = version.filter(|version| tail_bytes(version.body()) > 0);
        if let Some(version) = body {
            // SAFETY: a version of the table's, which is kept meanwhile (caller).
            unsafe { old.show(version) };
        }
        let body = body.as_ref().map(VersionRef::body);
        let (estate, context) = (*estate, *context);
        // SAFETY: the evaluator's own executor state. What expressions make goes with the next row.
        unsafe {
            let of_row = (*context).ecxt_per_tuple_memory;
            pg_sys::MemoryContextReset(of_row);
            (*context).ecxt_scantuple = slot.as_ptr();
            let _back = Back(pg_sys::MemoryContextSwitchTo(of_row));
            let is_asked = |index: &&mut Computed| is_wanted(index.number) && !index.has_failed;
            for index in indexes.iter_mut().filter(is_asked) {
                if body.is_some_and(|body| index.keep(tail, (old, body), slot)) {
                    continue;
                }
                if index.may_fail() {
                    let end = tail.end();
                    let add = || index.add_to(tail, estate, context);
                    index.has_failed = attempt(add).is_none();
                    if index.has_failed {
                        tail.go_back(end);
                    }
                } else {
                    index.add_to(tail, estate, context);
                }
            }
            (*context).ecxt_scantuple = std::ptr::null_mut();
            old.clear();
            // Behind all expressions, which may wait for others: no lock is held there.
            let makers = indexes
                .iter_mut()
                .filter_map(|index| index.label_maker.as_mut());
            makers.for_each(|label_maker| label_maker.enter(tail));
        }
    }
}

impl Drop for Evaluator {
    fn drop(&mut self) {
        // SAFETY: its own memory, in which there is nothing else. After an error no callbacks run,
        // as core's clean-up runs none.
        unsafe {
            let has_failed = self.indexes.iter().any(|index| index.has_failed);
            if !has_failed && !std::thread::panicking() {
                pg_sys::FreeExecutorState(self.estate);
            }
            pg_sys::MemoryContextDelete(self.memory);
        }
    }
}

/// The live indexes of a locked table that have computed keys.
fn computed_indexes(table: Relation<'_>) -> Vec<pg_sys::Oid> {
    let mut indexes = table.indexes();
    indexes.retain(|oid| has_computed_keys(*oid));
    indexes
}

/// Whether the keys of an index of a locked table are computed; not of one that is gone.
pub fn has_computed_keys(index: pg_sys::Oid) -> bool {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    try_with(index, lock, |opened| {
        opened.is_index() && is_computed(opened)
    })
    .unwrap_or(false)
}

/// Whether an index of a locked table has computed keys, by the catalog.
pub fn are_on(table: Relation<'_>) -> bool {
    relation::has_computed_keys(table.oid(), || !computed_indexes(table).is_empty())
}

/// Whether the keys of an index are computed: it is on expressions, has a predicate, or types that
/// have no encoding.
pub fn is_computed(index: Relation<'_>) -> bool {
    // An index keeps what it was built with, whatever the catalog says of its types by now.
    if let Some(stored) = super::definition_of(index) {
        return stored.computed.is_some();
    }
    let count = index.index_row().indnkeyatts as usize;
    let has_encoding = |at| IndexColumn::of(index, at).has_encoding(false);
    is_on_expressions(index) || !(0..count).all(has_encoding)
}

/// Whether an index is on expressions, or has a predicate.
pub fn is_on_expressions(index: Relation<'_>) -> bool {
    index.key_columns().contains(&0) || index.has_predicate()
}
