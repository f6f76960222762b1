//! The labels of all rows of a table, for an index build.
//!
//! Core sorts the rows' values, in maintenance_work_mem and in files. Each value that differs from
//! the one before it gets the next rank, and so the next label. Ranks begin anew where a column
//! before has another value. Core then sorts the labels by row id, as the build reads the rows.
//! Writers are locked out.
use super::order::less_than;
use super::{Label, Order, RowValues, datum};
use crate::errors::or_raise;
use crate::keys;
use crate::pg::relation::Relation;
use crate::pg::{self, interrupts, nodes};
use crate::transaction::clock::PgClock;
use crate::transaction::session;
use mot_engine::key::label::of_rank;
use mot_engine::key::{IndexDefinition, KeyBuffer, KeyKind, KeyValue, encode_value};
use mot_engine::{RowId, Standing, TableRef, VersionRef};
use pgrx::pg_sys;
use std::cmp::Ordering;

/// The rows of a table in the order of an index.
pub struct Ranked {
    storage: TableRef,
    definition: IndexDefinition,
    sort: *mut pg_sys::Tuplesortstate,
    orders: Vec<Option<Order>>,
    /// The row that was read last, and the one before.
    slots: [*mut pg_sys::TupleTableSlot; 2],
    /// Rows that a predicate leaves out.
    outside: Vec<RowId>,
    /// What comparisons of one row make.
    memory: pg_sys::MemoryContext,
    /// Of the row that was read last: the rank of each column's value.
    ranks: Vec<u64>,
    has_read: bool,
}

impl Ranked {
    /// Sorts the rows of a table, whose writers are locked out, as an index of it orders them. What
    /// is made is in the current memory context, and goes with the statement after an error.
    pub fn sort(table: Relation<'_>, index: Relation<'_>, definition: IndexDefinition) -> Ranked {
        let count = definition.columns.len();
        let storage = crate::storage::described(table);
        // SAFETY: an open index has a type, a family and a collation for each key column. The sort
        // is this value's own.
        unsafe {
            let description = pg_sys::CreateTemplateTupleDesc(count as i32 + 1);
            for (at, attribute) in nodes::attributes(index.as_ptr())[..count]
                .iter()
                .enumerate()
            {
                let number = at as i16 + 1;
                let (name, own_type) = (std::ptr::null(), attribute.atttypid);
                pg_sys::TupleDescInitEntry(description, number, name, own_type, -1, 0);
                let collation = index.key_column(at).collation;
                pg_sys::TupleDescInitEntryCollation(description, number, collation);
            }
            let (last, name) = (count as i16 + 1, std::ptr::null());
            pg_sys::TupleDescInitEntry(description, last, name, pg_sys::INT8OID, -1, 0);
            let mut numbers: Vec<i16> = (1..=count as i16).collect();
            let mut operators: Vec<_> = (0..count).map(|at| less_than(index, at)).collect();
            let sort = pg_sys::tuplesort_begin_heap(
                description,
                count as i32,
                numbers.as_mut_ptr(),
                operators.as_mut_ptr(),
                (*index.as_ptr()).rd_indcollation,
                vec![false; count].as_mut_ptr(),
                pg_sys::maintenance_work_mem,
                std::ptr::null_mut(),
                0,
            );
            let kind = &raw const pg_sys::TTSOpsMinimalTuple;
            let slot = || pg_sys::MakeSingleTupleTableSlot(description, kind);
            let columns = definition.columns.iter().enumerate();
            let mut ranked = Ranked {
                storage,
                sort,
                orders: columns
                    .map(|(at, column)| {
                        (column.kind == KeyKind::Label).then(|| Order::own(index, at))
                    })
                    .collect(),
                definition,
                slots: [slot(), slot()],
                outside: Vec::new(),
                memory: pg::small_context(pg_sys::CurrentMemoryContext, c"mot label ranks"),
                ranks: vec![0; count],
                has_read: false,
            };
            ranked.add_rows(RowValues::new(table, index), description);
            pg_sys::tuplesort_performsort(sort);
            ranked
        }
    }

    unsafe fn add_rows(&mut self, mut values: RowValues, description: pg_sys::TupleDesc) {
        let count = self.definition.columns.len();
        // SAFETY: a slot of the sort's row type, filled as virtual slots are.
        unsafe {
            let kind = &raw const pg_sys::TTSOpsVirtual;
            let slot = pg_sys::MakeSingleTupleTableSlot(description, kind);
            for row in (0..self.storage.row_ids_end().0).map(RowId) {
                if interrupts::is_pending() {
                    interrupts::check_for_interrupts();
                }
                let Some(version) = self.state(row) else {
                    continue;
                };
                values.image().extend_from_slice(version.body());
                let Some((of_row, are_null)) = values.read_if_inside() else {
                    self.outside.push(row);
                    continue;
                };
                pg_sys::ExecClearTuple(slot);
                for at in 0..count {
                    *(*slot).tts_values.add(at) = of_row[at];
                    *(*slot).tts_isnull.add(at) = are_null[at];
                }
                *(*slot).tts_values.add(count) = pg_sys::Datum::from(row.0 as i64);
                *(*slot).tts_isnull.add(count) = false;
                pg_sys::ExecStoreVirtualTuple(slot);
                pg_sys::tuplesort_puttupleslot(self.sort, slot);
            }
            pg_sys::ExecDropSingleTupleTableSlot(slot);
        }
        values.close();
    }

    /// The state of a row that is in the index.
    fn state(&self, row: RowId) -> Option<VersionRef> {
        match session::session().standing(&PgClock, self.storage, row) {
            Standing::Gone => None,
            Standing::Own(version) | Standing::Committed(version) | Standing::Under(version, _) => {
                Some(version)
            }
        }
    }

    /// The labels of all rows, as these lie. Rows that are not in the index have none.
    pub fn by_row(mut self) -> LabelsByRow {
        // SAFETY: the sort is its own.
        let mut labels = unsafe { LabelsByRow::new(self.orders.len()) };
        for row in std::mem::take(&mut self.outside) {
            labels.add(row, &[]);
        }
        while let Some((row, of_row)) = self.next_with_labels() {
            labels.add(row, &of_row);
        }
        labels.sort();
        self.close();
        labels
    }

    /// The next row, and its labels by column.
    fn next_with_labels(&mut self) -> Option<(RowId, Vec<Label>)> {
        let row = self.next()?;
        let ranks = self.ranks.iter().enumerate();
        let labels = ranks.map(
            |(at, rank)| match self.orders[at].is_some() && self.is_value(at) {
                true => of_rank(*rank),
                false => Label::new(),
            },
        );
        Some((row, labels.collect()))
    }

    /// Whether the row that was read last has a value in a column.
    fn is_value(&self, at: usize) -> bool {
        // SAFETY: `next` has filled the slot.
        unsafe { !*(*self.slots[0]).tts_isnull.add(at) }
    }

    /// Reads the next row, and the ranks of its values.
    fn next(&mut self) -> Option<RowId> {
        if interrupts::is_pending() {
            interrupts::check_for_interrupts();
        }
        self.slots.swap(0, 1);
        let (slot, count) = (self.slots[0], self.orders.len());
        // SAFETY: the sort's rows are of the slot's type, and copied into it.
        unsafe {
            let none = std::ptr::null_mut();
            if !pg_sys::tuplesort_gettupleslot(self.sort, true, true, slot, none) {
                return None;
            }
            pg_sys::slot_getsomeattrs_int(slot, count as i32 + 1);
            pg_sys::MemoryContextReset(self.memory);
            let old = pg_sys::MemoryContextSwitchTo(self.memory);
            let is_first = !std::mem::replace(&mut self.has_read, true);
            let mut differs = is_first;
            for at in 0..count {
                if differs {
                    self.ranks[at] = 0;
                } else if self.has_changed(at) {
                    self.ranks[at] += 1;
                    differs = true;
                }
            }
            pg_sys::MemoryContextSwitchTo(old);
            Some(RowId((*(*slot).tts_values.add(count)).value() as u64))
        }
    }

    /// Whether a column of the row that was read last has another value than the row before.
    unsafe fn has_changed(&mut self, at: usize) -> bool {
        let [new, old] = self.slots;
        // SAFETY: both slots are filled, and of the sort's row type.
        unsafe {
            let value = |slot: *mut pg_sys::TupleTableSlot| *(*slot).tts_values.add(at);
            let is_null = |slot: *mut pg_sys::TupleTableSlot| *(*slot).tts_isnull.add(at);
            match (is_null(old), is_null(new)) {
                (true, true) => return false,
                (false, false) => {}
                _ => return true,
            }
            if let Some(order) = &mut self.orders[at] {
                return order.compare(value(new), value(old)) != Ordering::Equal;
            }
            let column = &self.definition.columns[at];
            let key = |slot| {
                let mut key = KeyBuffer::new();
                let value: KeyValue<'_> = keys::value(column.kind, value(slot), false);
                or_raise(encode_value(column, value, &mut key));
                key
            };
            key(new).as_slice() != key(old).as_slice()
        }
    }

    /// Gives back what was made.
    pub fn close(self) {
        // SAFETY: made by `sort`, and shown to no other code.
        unsafe {
            pg_sys::tuplesort_end(self.sort);
            pg_sys::MemoryContextDelete(self.memory);
            for slot in self.slots {
                pg_sys::ExecDropSingleTupleTableSlot(slot);
            }
        }
    }
}

/// Labels of rows, sorted by core in the order of the rows.
pub struct LabelsByRow {
    sort: *mut pg_sys::Tuplesortstate,
    slot: *mut pg_sys::TupleTableSlot,
    columns: usize,
}

impl LabelsByRow {
    unsafe fn new(columns: usize) -> LabelsByRow {
        let name = std::ptr::null();
        // SAFETY: a description of a number and a bytea for each column; core's operator and no
        // collation for the number.
        unsafe {
            let description = pg_sys::CreateTemplateTupleDesc(columns as i32 + 1);
            pg_sys::TupleDescInitEntry(description, 1, name, pg_sys::INT8OID, -1, 0);
            for column in 0..columns as i16 {
                pg_sys::TupleDescInitEntry(description, column + 2, name, pg_sys::BYTEAOID, -1, 0);
            }
            let sort = pg_sys::tuplesort_begin_heap(
                description,
                1,
                [1_i16].as_mut_ptr(),
                [pg_sys::Oid::from(pg_sys::Int8LessOperator)].as_mut_ptr(),
                [pg_sys::InvalidOid].as_mut_ptr(),
                [false].as_mut_ptr(),
                pg_sys::maintenance_work_mem,
                std::ptr::null_mut(),
                0,
            );
            let kind = &raw const pg_sys::TTSOpsMinimalTuple;
            LabelsByRow {
                sort,
                slot: pg_sys::MakeSingleTupleTableSlot(description, kind),
                columns,
            }
        }
    }

    fn add(&mut self, row: RowId, labels: &[Label]) {
        let slot = self.slot;
        // SAFETY: the slot has a value for each column; the sort copies them.
        unsafe {
            pg_sys::ExecClearTuple(slot);
            *(*slot).tts_values = pg_sys::Datum::from(row.0 as i64);
            *(*slot).tts_isnull = false;
            let mut made = Vec::new();
            for at in 0..self.columns {
                let label = labels.get(at).filter(|label| !label.is_empty());
                *(*slot).tts_isnull.add(at + 1) = label.is_none();
                if let Some(label) = label {
                    let datum = datum(label, pg_sys::CurrentMemoryContext);
                    *(*slot).tts_values.add(at + 1) = datum;
                    made.push(datum);
                }
            }
            pg_sys::ExecStoreVirtualTuple(slot);
            pg_sys::tuplesort_puttupleslot(self.sort, slot);
            pg_sys::ExecClearTuple(slot);
            for datum in made {
                pg_sys::pfree(datum.cast_mut_ptr());
            }
        }
    }

    fn sort(&mut self) {
        // SAFETY: its own sort, which is not sorted yet.
        unsafe { pg_sys::tuplesort_performsort(self.sort) };
    }

    /// The next row, and its labels by column.
    pub fn next(&mut self) -> Option<(RowId, Vec<Label>)> {
        let slot = self.slot;
        // SAFETY: the sort's rows are of the slot's type, and copied into it.
        unsafe {
            let none = std::ptr::null_mut();
            if !pg_sys::tuplesort_gettupleslot(self.sort, true, true, slot, none) {
                return None;
            }
            pg_sys::slot_getsomeattrs_int(slot, self.columns as i32 + 1);
            let row = RowId((*(*slot).tts_values).value() as u64);
            let label = |at| match *(*slot).tts_isnull.add(at) {
                true => Label::new(),
                // A bytea of a minimal tuple may have a short header.
                false => match keys::value(KeyKind::Bytea, *(*slot).tts_values.add(at), false) {
                    KeyValue::Bytes(label) => label.to_vec(),
                    _ => unreachable!("a bytea has bytes"),
                },
            };
            Some((row, (1..=self.columns).map(label).collect()))
        }
    }

    /// Gives back what was made.
    pub fn close(self) {
        // SAFETY: made by `new`, and shown to no other code.
        unsafe {
            pg_sys::tuplesort_end(self.sort);
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
        }
    }
}
