//! GROUP BY over the rows of a scan: from a row's values to its group, and the aggregates of each.
use super::accumulate::{Accumulator, Kept};
use super::grouping::{self, Groups, Key};
use super::running::{General, Running, Values};
use crate::executor::filter::{Groups as RowGroup, Numbers, ROWS, Rows, members};
use pgrx::pg_sys;

/// GROUP BY under way.
pub struct Grouping {
    keys: Vec<(Key, General)>,
    pub groups: Groups,
    /// Of the group of rows: the values of each key, and where it is NULL; put together; and the
    /// rows' groups.
    columns: Vec<(Box<Numbers>, Rows)>,
    values: Box<[grouping::Values; ROWS]>,
    found: Box<[usize; ROWS]>,
    /// Bytes that the groups may take.
    limit: usize,
    /// The most passes that an execution took.
    pub passes: u32,
}

impl Grouping {
    /// Of the keys, for so many aggregates.
    pub fn new(keys: Vec<(Key, General)>, aggregates: usize, kept: *mut Kept) -> Grouping {
        Grouping {
            columns: keys.iter().map(|_| (Box::new([0; ROWS]), 0)).collect(),
            keys,
            groups: Groups::new(aggregates, kept),
            values: Box::new([grouping::Values::default(); ROWS]),
            found: Box::new([0; ROWS]),
            limit: 0,
            passes: 0,
        }
    }

    /// Begins to read all rows.
    pub unsafe fn begin(&mut self) {
        self.limit = grouping::memory_limit();
        self.passes = self.passes.max(1);
        // SAFETY: as there.
        unsafe { self.groups.begin(self.limit) }
    }

    /// Begins to read all rows again, for groups that did not fit; false: all were given.
    pub unsafe fn begin_next(&mut self) -> bool {
        // SAFETY: as there.
        let is_more = unsafe { self.groups.begin_next(self.limit) };
        self.passes = self.passes.max(self.groups.pass);
        is_more
    }

    /// A key's value as a datum; `None`: NULL.
    pub fn key(&self, number: usize, values: &grouping::Values) -> Option<pg_sys::Datum> {
        let is_null = values.null >> number & 1 != 0;
        let kind = self.keys[number].0.kind;
        (!is_null).then(|| kind.to_datum(values.numbers[number]))
    }

    /// Evaluates the keys of a group of rows; false: core has to be asked about one.
    pub unsafe fn evaluate(&mut self, rows_of: &RowGroup<'_>, rows: Rows) -> bool {
        for ((key, _), (numbers, null)) in self.keys.iter().zip(&mut self.columns) {
            // SAFETY: rows of the layout's table.
            let lacking = unsafe { rows_of.numbers(&key.number, rows, numbers) };
            if lacking.unsure != 0 {
                return false;
            }
            *null = lacking.null;
        }
        grouping::put_together(rows, &self.columns, &mut self.values);
        true
    }

    /// Adds what was evaluated of the rows.
    pub unsafe fn add_group(&mut self, rows: Rows, calls: &[Running]) {
        let mut there = 0;
        let kept = self.groups.kept;
        for at in members(rows) {
            let new = calls.iter().map(|running| running.accumulator(kept));
            if let Some(group) = self.groups.find(self.values[at], new) {
                self.found[at] = group;
                there |= 1 << at;
            }
        }
        for (number, running) in calls.iter().enumerate() {
            let rows = members(running.rows & there);
            let groups = &mut self.groups;
            match &running.values {
                Values::None => rows.for_each(|at| {
                    groups.accumulator(self.found[at], number).add_rows(1);
                }),
                Values::Numbers(values) => rows.for_each(|at| {
                    let accumulator = groups.accumulator(self.found[at], number);
                    accumulator.add_number(values[at]);
                }),
                // SAFETY: numbers of the rows.
                Values::Fixed(values) => rows.for_each(|at| unsafe {
                    let accumulator = groups.accumulator(self.found[at], number);
                    accumulator.add_one_fixed(values[at]);
                }),
            }
        }
    }

    /// The accumulators of the group of the row in the slot, as core evaluates its keys; `None`: it
    /// is another pass's.
    pub unsafe fn find(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
        context: *mut pg_sys::ExprContext,
        calls: &[Running],
    ) -> Option<&mut [Accumulator]> {
        let mut values = grouping::Values::default();
        for (at, (key, general)) in self.keys.iter().enumerate() {
            // SAFETY: the slot has the row, and is the context's.
            let value = unsafe {
                let old = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
                let value = general.value(slot, context);
                pg_sys::MemoryContextSwitchTo(old);
                value
            };
            match value {
                Some(value) => values.numbers[at] = key.kind.of_datum(value),
                None => values.null |= 1 << at,
            }
        }
        let kept = self.groups.kept;
        let new = calls.iter().map(|running| running.accumulator(kept));
        let group = self.groups.find(values, new)?;
        Some(self.groups.accumulators_of(group))
    }
}
