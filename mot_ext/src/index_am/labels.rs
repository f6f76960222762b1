//! Conditions on columns with labels: a scan first looks for the label of the argument
//! (`storage/labels.rs`), among the rows that it sees.
//!
//! - A condition bounds the scan only if each column before has one value.
//! - If no row has the argument's value, a comparison takes a label between the neighbours', which
//!   no row stores. Rows that others enter there meanwhile are not seen by the scan's snapshot.
//! - Core evaluates the conditions again over each row that is found.
use super::keys::{Condition, test_of};
use crate::access::bounds::Bounds;
use crate::access::conditions::Test;
use crate::access::search::Key;
use crate::errors::or_raise;
use crate::executor::expressions::Value;
use crate::pg::index_scan::{ScanKey, ScanKeys};
use crate::pg::relation::Relation;
use crate::pg::{self, array, memory};
use crate::storage::labels::{self, ComparedStates, Neighbours, Order, RowValues, Search};
use mot_engine::key::label::{self, Put};
use mot_engine::{Direction, IndexRef, KeyRange, TableRef};
use pgrx::pg_sys;
use std::ptr;

/// What a scan keeps from one rescan to the next to look for labels.
pub struct ScanLabels {
    search: Search,
    /// By column and type of the argument.
    orders: Vec<(usize, pg_sys::Oid, Option<Order>)>,
    /// Where orders lie.
    memory: pg_sys::MemoryContext,
    /// Where the labels of this rescan lie.
    arguments: pg_sys::MemoryContext,
}

impl ScanLabels {
    /// For scans of an index of a table. All that is made is in a memory context.
    ///
    /// # Safety
    /// The context outlives the value.
    pub unsafe fn new(
        table: Relation<'_>,
        index: Relation<'_>,
        memory: pg_sys::MemoryContext,
    ) -> ScanLabels {
        let values = || RowValues::new(table, index);
        ScanLabels {
            // SAFETY: the caller's context outlives what is made.
            search: Search::new(unsafe { memory::within(memory, values) }),
            orders: Vec::new(),
            memory,
            // SAFETY: the same.
            arguments: unsafe { pg::small_context(memory, c"mot labels") },
        }
    }

    /// For one rescan: the storage that it reads, and the snapshot. Frees the labels found before.
    pub fn at<'a>(
        &'a mut self,
        place: (TableRef, IndexRef),
        states: ComparedStates<'a>,
    ) -> ArgumentLabels<'a> {
        // SAFETY: this value's own context; no code uses what was found for the scan before.
        unsafe { pg_sys::MemoryContextReset(self.arguments) };
        ArgumentLabels {
            labels: self,
            place,
            states,
        }
    }

    /// The comparison of a column with values of a type; `None`: there is none.
    fn order(
        &mut self,
        index: Relation<'_>,
        column: usize,
        argument: pg_sys::Oid,
    ) -> Option<usize> {
        let is_it = |(at, of, _): &(usize, pg_sys::Oid, _)| (*at, *of) == (column, argument);
        let known = self.orders.iter().position(is_it);
        let place = known.unwrap_or_else(|| {
            let make = || Order::with(index, column, argument);
            // SAFETY: this value's own context.
            let order = unsafe { memory::within(self.memory, make) };
            self.orders.push((column, argument, order));
            self.orders.len() - 1
        });
        self.orders[place].2.is_some().then_some(place)
    }
}

/// Looks for the labels of the arguments of one rescan.
pub struct ArgumentLabels<'a> {
    labels: &'a mut ScanLabels,
    place: (TableRef, IndexRef),
    states: ComparedStates<'a>,
}

impl ArgumentLabels<'_> {
    /// The scan keys of a column as conditions on its labels, each with its place; none if the
    /// columns before have several values, or something else than a value is asked for. `None`: no
    /// row passes.
    pub fn conditions(
        &mut self,
        index: Relation<'_>,
        (before, column): (Bounds, usize),
        scan_keys: ScanKeys<'_>,
    ) -> Option<Vec<(usize, Condition)>> {
        let keys = scan_keys.iter().enumerate();
        let keys: Vec<_> = keys.filter(|(_, key)| key.is_of(column)).collect();
        let mut found = Vec::new();
        if keys.is_empty() {
            return Some(found);
        }
        let Some(prefix) = prefix(before, column)? else {
            return Some(found);
        };
        for (at, key) in keys {
            let condition = self.condition(index, column, &prefix, key)?;
            found.extend(condition.map(|condition| (at, condition)));
        }
        Some(found)
    }

    /// A scan key as a condition; an inner `None`: it is none, and core tests it. `None`: no row
    /// passes.
    fn condition(
        &mut self,
        index: Relation<'_>,
        column: usize,
        prefix: &[u8],
        key: ScanKey<'_>,
    ) -> Option<Option<Condition>> {
        let other = pg_sys::SK_SEARCHNULL
            | pg_sys::SK_SEARCHNOTNULL
            | pg_sys::SK_ISNULL
            | pg_sys::SK_ROW_HEADER;
        if key.has(other) {
            return Some(None);
        }
        let Some(test) = test_of(key) else {
            return Some(None);
        };
        let argument = match key.argument_type() {
            pg_sys::InvalidOid => index.key_column(column).input,
            other => other,
        };
        let Some(order) = self.labels.order(index, column, argument) else {
            return Some(None);
        };
        let (value, _) = key.argument();
        // SAFETY: core's condition has a value, or a list of such, of the type that is compared.
        let argument = unsafe { self.label((column, order), prefix, (test, value)) }?;
        Some(Some(Condition {
            key: Key {
                column,
                test,
                // A label, which is no value of any type.
                argument_type: pg_sys::InvalidOid,
            },
            argument: Some(Value::Constant(argument, false)),
            is_inexact: true,
        }))
    }

    /// The label that stands for an argument in a test, or a list of such; `None`: no row passes.
    ///
    /// # Safety
    /// As of [`ArgumentLabels::look_for`], of each member of a list.
    unsafe fn label(
        &mut self,
        column: (usize, usize),
        prefix: &[u8],
        (test, argument): (Test, pg_sys::Datum),
    ) -> Option<pg_sys::Datum> {
        if test == Test::AnyOf {
            // SAFETY: the caller's list.
            return unsafe { self.labels_of_list(column, prefix, argument) };
        }
        // SAFETY: the caller's value.
        match unsafe { self.look_for(column, prefix, argument) } {
            Neighbours::Equal(label) => Some(self.datum(&label)),
            Neighbours::Between(..) if test == Test::Equal => None,
            Neighbours::Between(below, above) => {
                let (below, above) = (below.as_deref(), above.as_deref());
                Some(self.datum(&label::between(below, above, Put::Middle)))
            }
        }
    }

    /// Looks for a value among those of the rows.
    ///
    /// # Safety
    /// It is of the type that the order compares with, and lives in a context that is not reset
    /// here.
    unsafe fn look_for(
        &mut self,
        (column, order): (usize, usize),
        prefix: &[u8],
        value: pg_sys::Datum,
    ) -> Neighbours {
        let (table, index) = self.place;
        let definition = or_raise(crate::transaction::session::session().definition(index));
        let ScanLabels { search, orders, .. } = &mut *self.labels;
        let order = orders[order].2.as_mut().expect("it was found");
        let place = (table, index, (&definition.columns[column], column));
        // SAFETY: the caller's value, of the type that the order compares with.
        unsafe { search.neighbours(place, prefix, (order, value), self.states) }
    }

    /// An array of the labels that values of a list have; `None`: no row has one.
    ///
    /// # Safety
    /// As of [`ArgumentLabels::look_for`], of each member.
    unsafe fn labels_of_list(
        &mut self,
        column: (usize, usize),
        prefix: &[u8],
        list: pg_sys::Datum,
    ) -> Option<pg_sys::Datum> {
        // SAFETY: an array (caller).
        let members = || unsafe { array::members(list) };
        // SAFETY: this scan's own context, which keeps them for this rescan.
        let members = unsafe { memory::within(self.labels.arguments, members) };
        let mut found = Vec::new();
        for member in members.into_iter().flatten() {
            // SAFETY: the caller's.
            if let Neighbours::Equal(label) = unsafe { self.look_for(column, prefix, member) } {
                found.push(self.datum(&label));
            }
        }
        if found.is_empty() {
            return None;
        }
        // SAFETY: byte strings.
        let make = || unsafe { array::of_bytes(&mut found) };
        // SAFETY: this scan's own context.
        Some(unsafe { memory::within(self.labels.arguments, make) })
    }

    fn datum(&self, label: &[u8]) -> pg_sys::Datum {
        // SAFETY: this scan's own context.
        unsafe { labels::datum(label, self.labels.arguments) }
    }
}

/// What the keys of all rows begin with whose columns before one have the values asked for; an
/// inner `None`: these are several. `None`: no row has them.
fn prefix(mut before: Bounds, column: usize) -> Option<Option<Vec<u8>>> {
    if column == 0 {
        return Some(Some(Vec::new()));
    }
    let mut range = KeyRange::new();
    // SAFETY: the arguments are constants, which need no context to be evaluated in.
    unsafe { before.begin(ptr::null_mut()) };
    if !or_raise(before.next_range(Direction::Forward, &mut range)) {
        return None;
    }
    let (columns, prefix) = before.prefix();
    let prefix = (columns == column).then(|| prefix.to_vec());
    let is_one = !or_raise(before.next_range(Direction::Forward, &mut range));
    Some(prefix.filter(|_| is_one))
}
