//! GROUP BY over the rows of a scan: from a row's values to its group, and the aggregates of each.
use super::numeric::{Accumulator, Kept, datum};
use super::running::{General, Running};
use crate::pg::memory;
use crate::pg::node::Node;
use mot_programs::aggregate::{Groups, Key, KeyValues, put_together};
use mot_programs::filter::{Groups as RowGroup, NoParameters, Numbers, ROWS, Rows, members};
use pgrx::pg_sys;

/// How often the expected groups have to fit for the path to be offered, for expectations err.
pub const TIMES_FITTING: f64 = 4.0;

/// Bytes that hash tables may take.
pub fn memory_limit() -> usize {
    // SAFETY: plain variables of this process.
    let (work_mem, multiplier) = unsafe { (pg_sys::work_mem, pg_sys::hash_mem_multiplier) };
    (f64::from(work_mem) * 1024.0 * multiplier) as usize
}

/// Bytes that a group of so many aggregates takes.
pub fn bytes_of_group(aggregates: usize) -> usize {
    mot_programs::aggregate::bytes_of_group::<Kept>(aggregates)
}

/// GROUP BY under way.
pub struct Grouping {
    keys: Vec<(Key, General)>,
    pub groups: Groups<Kept>,
    kept: Kept,
    /// Of the group of rows: the values of each key, and where it is NULL; put together; and the
    /// rows' groups.
    columns: Vec<(Box<Numbers>, Rows)>,
    values: Box<[KeyValues; ROWS]>,
    found: Box<[usize; ROWS]>,
    /// Bytes that the groups may take.
    limit: usize,
    /// The most passes that an execution took.
    pub passes: u32,
}

impl Grouping {
    /// Of the keys, for so many aggregates.
    pub fn new(keys: Vec<(Key, General)>, aggregates: usize, kept: Kept) -> Grouping {
        Grouping {
            columns: keys.iter().map(|_| (Box::new([0; ROWS]), 0)).collect(),
            keys,
            groups: Groups::new(aggregates, kept),
            kept,
            values: Box::new([KeyValues::default(); ROWS]),
            found: Box::new([0; ROWS]),
            limit: 0,
            passes: 0,
        }
    }

    /// Begins to read all rows.
    pub fn begin(&mut self) {
        self.limit = memory_limit();
        self.passes = self.passes.max(1);
        self.groups.begin(self.limit);
    }

    /// Begins to read all rows again, for groups that did not fit; false: all were given.
    pub fn begin_next(&mut self) -> bool {
        let is_more = self.groups.begin_next(self.limit);
        self.passes = self.passes.max(self.groups.pass);
        is_more
    }

    /// A key's value as a datum; `None`: NULL.
    pub fn key(&self, number: usize, values: &KeyValues) -> Option<pg_sys::Datum> {
        let is_null = values.null >> number & 1 != 0;
        let kind = self.keys[number].0.kind;
        (!is_null).then(|| datum(kind, values.numbers[number]))
    }

    /// Evaluates the keys of a group of rows; false: core has to be asked about one.
    pub unsafe fn evaluate(&mut self, rows_of: &RowGroup<'_, NoParameters>, rows: Rows) -> bool {
        for ((key, _), (numbers, null)) in self.keys.iter().zip(&mut self.columns) {
            // SAFETY: rows of the layout's table.
            let lacking = unsafe { rows_of.numbers(&key.number, rows, numbers) };
            if lacking.unsure != 0 {
                return false;
            }
            *null = lacking.null;
        }
        put_together(rows, &self.columns, &mut self.values);
        true
    }

    /// Adds what was evaluated of the rows.
    pub fn add_group(&mut self, rows: Rows, calls: &[Running]) {
        let mut there = 0;
        for at in members(rows) {
            let new = calls
                .iter()
                .map(|running| running.step.accumulator(self.kept));
            if let Some(group) = self.groups.find(self.values[at], new) {
                self.found[at] = group;
                there |= 1 << at;
            }
        }
        for (number, running) in calls.iter().enumerate() {
            running
                .step
                .add_each(there, &self.found, &mut self.groups, number);
        }
    }

    /// The accumulators of the group of the row in the slot, as core evaluates its keys; `None`: it
    /// is another pass's.
    ///
    /// # Safety
    /// The slot has a row of the scan's, and is the context's, which is the scan's node's.
    pub unsafe fn find(
        &mut self,
        slot: Node<'_, pg_sys::TupleTableSlot>,
        context: Node<'_, pg_sys::ExprContext>,
        calls: &[Running],
    ) -> Option<&mut [Accumulator]> {
        let mut values = KeyValues::default();
        for (at, (key, general)) in self.keys.iter().enumerate() {
            // SAFETY: the caller's row and context.
            let value = || unsafe { general.value(slot, context) };
            // SAFETY: a live context's own memory; a key's value is no pointer.
            let value = unsafe { memory::within(context.ecxt_per_tuple_memory(), value) };
            match value {
                Some(value) => values.numbers[at] = key.kind.of_word(value.value() as u64),
                None => values.null |= 1 << at,
            }
        }
        let new = calls
            .iter()
            .map(|running| running.step.accumulator(self.kept));
        let group = self.groups.find(values, new)?;
        Some(self.groups.accumulators_of(group))
    }
}
