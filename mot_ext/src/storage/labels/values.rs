//! The values of an index's key columns, computed from the bodies of stored rows.
use crate::executor::expressions::{evaluate, passes};
use crate::pg::list::items;
use crate::pg::memory::within;
use crate::pg::relation::Relation;
use crate::pg::{self, rights};
use mot_engine::key::without_tail;
use mot_engine::row::STAMP_BYTES;
use pgrx::pg_sys;

/// Most columns of an index, as core's arrays have them.
const COLUMNS_MAX: usize = pg_sys::INDEX_MAX_KEYS as usize;

/// Computes the values of an index's columns from bodies of its table's rows.
pub struct RowValues {
    /// All that lives as long as this does; the executor's memory is below it.
    memory: pg_sys::MemoryContext,
    estate: *mut pg_sys::EState,
    context: *mut pg_sys::ExprContext,
    info: *mut pg_sys::IndexInfo,
    /// `None`: not prepared yet; NULL: every row is in the index.
    predicate: Option<*mut pg_sys::ExprState>,
    /// What computes a column; NULL: not prepared yet, or not computed.
    expressions: [*mut pg_sys::ExprState; COLUMNS_MAX],
    writer: Option<Writer>,
    slot: *mut pg_sys::TupleTableSlot,
    table: pg_sys::Oid,
    /// The row's tuple.
    image: Vec<u8>,
    tuple: pg_sys::HeapTupleData,
    values: [pg_sys::Datum; COLUMNS_MAX],
    nulls: [bool; COLUMNS_MAX],
}

/// The writer of a row, for which values of others are read.
struct Writer {
    /// The table's owner, who evaluates expressions of rows that are hidden from the user.
    owner: pg_sys::Oid,
    user: pg_sys::Oid,
    is_hidden: bool,
}

impl RowValues {
    /// Of an index of a table, in a memory context below the current one.
    pub fn new(table: Relation<'_>, index: Relation<'_>) -> RowValues {
        // SAFETY: a context of the value's own below the current one.
        unsafe {
            let memory = pg::small_context(pg_sys::CurrentMemoryContext, c"mot key values");
            within(memory, || RowValues::in_memory(memory, table, index))
        }
    }

    /// In this memory, which is the current one.
    fn in_memory(
        memory: pg_sys::MemoryContext,
        table: Relation<'_>,
        index: Relation<'_>,
    ) -> RowValues {
        let kind = &raw const pg_sys::TTSOpsHeapTuple;
        // SAFETY: open relations; the row's description is a copy.
        let (estate, context, info, slot) = unsafe {
            let estate = pg_sys::CreateExecutorState();
            let description = pg_sys::CreateTupleDescCopyConstr(table.row_type());
            (
                estate,
                pg_sys::MakePerTupleExprContext(estate),
                pg_sys::BuildIndexInfo(index.as_ptr()),
                pg_sys::MakeSingleTupleTableSlot(description, kind),
            )
        };
        RowValues {
            memory,
            estate,
            context,
            info,
            predicate: None,
            expressions: [std::ptr::null_mut(); COLUMNS_MAX],
            writer: None,
            slot,
            table: table.oid(),
            image: Vec::new(),
            tuple: pg_sys::HeapTupleData::default(),
            values: [pg_sys::Datum::null(); COLUMNS_MAX],
            nulls: [true; COLUMNS_MAX],
        }
    }

    /// The same, for a row's writer: expressions of rows that are hidden from the current user
    /// are evaluated as the owner.
    pub fn for_writer(mut self, table: Relation<'_>) -> RowValues {
        self.writer = Some(Writer {
            owner: table.owner_and_schema().0,
            user: pg_sys::InvalidOid,
            is_hidden: false,
        });
        self
    }

    /// A place for a row's body, to be filled before it is read.
    pub fn image(&mut self) -> &mut Vec<u8> {
        self.image.clear();
        self.image.resize(STAMP_BYTES, 0);
        &mut self.image
    }

    /// One column of the body in the image; `None`: it is NULL. It lives until the next row is
    /// read. An expression runs code of users as the current user, who may see the row: it is in
    /// the condition of the statement. For a row's writer that may not be so.
    pub fn value(&mut self, at: usize) -> Option<pg_sys::Datum> {
        self.show();
        let mut is_null = false;
        // SAFETY: the slot is filled; an index has so many columns, and an expression for each that
        // names no attribute.
        let value = unsafe {
            match (*self.info).ii_IndexAttrNumbers[at] {
                0 => return self.computed(at),
                number => pg_sys::slot_getattr(self.slot, i32::from(number), &raw mut is_null),
            }
        };
        (!is_null).then_some(value)
    }

    /// All columns of the body in the image, and which are NULL, if the row is in the index by its
    /// predicate. They live until the next row is read. Expressions run code of users.
    pub fn read_if_inside(&mut self) -> Option<(&[pg_sys::Datum], &[bool])> {
        self.show();
        // SAFETY: this value's own predicate and executor state, whose slot is filled.
        let is_inside = unsafe {
            let (info, estate) = (self.info, self.estate);
            let prepare = || pg_sys::ExecPrepareQual((*info).ii_Predicate, estate);
            let predicate = *self.predicate.get_or_insert_with(prepare);
            passes(predicate, self.context)
        };
        is_inside.then(|| self.form())
    }

    /// A column that an expression computes of the row in the slot.
    fn computed(&mut self, at: usize) -> Option<pg_sys::Datum> {
        if let Some(writer) = &mut self.writer {
            let user = pg::user();
            if writer.user != user {
                writer.is_hidden = user != writer.owner && rights::are_rows_hidden(self.table);
                writer.user = user;
                // What is prepared was found callable by another user.
                self.expressions = [std::ptr::null_mut(); COLUMNS_MAX];
            }
            if writer.is_hidden {
                return rights::as_owner(writer.owner, || self.evaluate(at));
            }
        }
        self.evaluate(at)
    }

    /// The same, as the current user. The other expressions are not needed here.
    fn evaluate(&mut self, at: usize) -> Option<pg_sys::Datum> {
        let expression = self.expression(at);
        let compute = || {
            // SAFETY: the slot is filled; the executor's state is this value's own.
            unsafe { evaluate(expression, self.context) }
        };
        let (value, is_null) = self.with_row_memory(compute);
        (!is_null).then_some(value)
    }

    /// What computes a column that names no attribute.
    fn expression(&mut self, at: usize) -> *mut pg_sys::ExprState {
        if self.expressions[at].is_null() {
            // SAFETY: the executor's state is this value's own. There is an expression for each
            // column that names no attribute, in their order.
            self.expressions[at] = unsafe {
                let numbers = &(&(*self.info).ii_IndexAttrNumbers)[..at];
                let before = numbers.iter().filter(|number| **number == 0).count();
                let all = items::<pg_sys::Expr>((*self.info).ii_Expressions);
                pg_sys::ExecPrepareExpr(all[before], self.estate)
            };
        }
        self.expressions[at]
    }

    /// Shows the body in the image in the slot.
    fn show(&mut self) {
        let body = without_tail(&self.image[STAMP_BYTES..]).len();
        self.tuple = pg_sys::HeapTupleData {
            t_len: (STAMP_BYTES + body) as u32,
            t_data: self.image.as_mut_ptr().cast(),
            t_tableOid: self.table,
            ..Default::default()
        };
        // SAFETY: the tuple is of the table's row type, and stays while the slot shows it: until
        // the next one. The executor's state is this value's own.
        unsafe {
            pg_sys::MemoryContextReset((*self.context).ecxt_per_tuple_memory);
            pg_sys::ExecStoreHeapTuple(&raw mut self.tuple, self.slot, false);
            (*self.context).ecxt_scantuple = self.slot;
        }
    }

    /// The values of the row in the slot.
    fn form(&mut self) -> (&[pg_sys::Datum], &[bool]) {
        // SAFETY: the slot is filled; the executor's state is this value's own.
        unsafe {
            let of_row = (*self.context).ecxt_per_tuple_memory;
            let old = pg_sys::MemoryContextSwitchTo(of_row);
            let (values, nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
            pg_sys::FormIndexDatum(self.info, self.slot, self.estate, values, nulls);
            pg_sys::MemoryContextSwitchTo(old);
        }
        (&self.values, &self.nulls)
    }

    /// Runs a comparison in memory that goes with the next row.
    pub fn with_row_memory<T>(&self, action: impl FnOnce() -> T) -> T {
        // SAFETY: this value's own memory.
        unsafe { within((*self.context).ecxt_per_tuple_memory, action) }
    }

    /// Gives back what was made ahead of the context that it is in. A scan's goes with that
    /// alone: it is dropped when the contexts below are gone.
    pub fn close(self) {
        // SAFETY: its own memory, with nothing else in it.
        unsafe {
            pg_sys::FreeExecutorState(self.estate);
            pg_sys::MemoryContextDelete(self.memory);
        }
    }
}
