//! Conditions on columns with labels: a scan first looks for the label of the argument
//! (`storage/labels.rs`), among the rows that it sees.
//!
//! - A condition bounds the scan only if each column before has one value.
//! - If no row has the argument's value, a comparison takes a label between the neighbours', which
//!   no row stores. Rows that others enter there meanwhile are not seen by the scan's snapshot.
//! - Core evaluates the conditions again over each row that is found.
use super::keys::{Condition, has, is_of, test_of};
use crate::access::bounds::Bounds;
use crate::access::conditions::Test;
use crate::access::search::Key;
use crate::errors::or_raise;
use crate::executor::expressions::Value;
use crate::pg;
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
    /// For scans of an open index of an open table. All that is made is in a memory context.
    ///
    /// # Safety
    /// Both are open; the context outlives the value.
    pub unsafe fn new(
        table: pg_sys::Relation,
        index: pg_sys::Relation,
        memory: pg_sys::MemoryContext,
    ) -> ScanLabels {
        // SAFETY: the caller's relations and context.
        unsafe {
            let old = pg_sys::MemoryContextSwitchTo(memory);
            let made = ScanLabels {
                search: Search::new(RowValues::new(table, index)),
                orders: Vec::new(),
                memory,
                arguments: pg::small_context(memory, c"mot labels"),
            };
            pg_sys::MemoryContextSwitchTo(old);
            made
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
    unsafe fn order(
        &mut self,
        index: pg_sys::Relation,
        column: usize,
        argument: pg_sys::Oid,
    ) -> Option<usize> {
        let is_it = |(at, of, _): &(usize, pg_sys::Oid, _)| (*at, *of) == (column, argument);
        let known = self.orders.iter().position(is_it);
        let place = known.unwrap_or_else(|| {
            // SAFETY: the caller's open index, and this value's own context.
            let order = unsafe {
                let old = pg_sys::MemoryContextSwitchTo(self.memory);
                let order = Order::with(index, column, argument);
                pg_sys::MemoryContextSwitchTo(old);
                order
            };
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
    ///
    /// # Safety
    /// An open index, `before` of its columns before this one, and core's keys for it.
    pub unsafe fn conditions(
        &mut self,
        index: pg_sys::Relation,
        (before, column): (Bounds, usize),
        scan_keys: &[pg_sys::ScanKeyData],
    ) -> Option<Vec<(usize, Condition)>> {
        let keys = scan_keys.iter().enumerate();
        let keys: Vec<_> = keys.filter(|(_, key)| is_of(key, column)).collect();
        let mut found = Vec::new();
        if keys.is_empty() {
            return Some(found);
        }
        let Some(prefix) = prefix(before, column)? else {
            return Some(found);
        };
        for (at, key) in keys {
            // SAFETY: the caller's.
            let condition = unsafe { self.condition(index, column, &prefix, key)? };
            found.extend(condition.map(|condition| (at, condition)));
        }
        Some(found)
    }

    /// A scan key as a condition; an inner `None`: it is none, and core tests it. `None`: no row
    /// passes.
    unsafe fn condition(
        &mut self,
        index: pg_sys::Relation,
        column: usize,
        prefix: &[u8],
        key: &pg_sys::ScanKeyData,
    ) -> Option<Option<Condition>> {
        let other = pg_sys::SK_SEARCHNULL
            | pg_sys::SK_SEARCHNOTNULL
            | pg_sys::SK_ISNULL
            | pg_sys::SK_ROW_HEADER;
        if has(key, other) {
            return Some(None);
        }
        let Some(test) = test_of(key) else {
            return Some(None);
        };
        // SAFETY: the caller's index and key.
        unsafe {
            let argument = match key.sk_subtype {
                pg_sys::InvalidOid => *(*index).rd_opcintype.add(column),
                other => other,
            };
            let Some(order) = self.labels.order(index, column, argument) else {
                return Some(None);
            };
            let argument = match test {
                Test::AnyOf => self.labels_of_list((column, order), prefix, key.sk_argument)?,
                Test::Equal => {
                    let found = self.look_for((column, order), prefix, key.sk_argument);
                    let Neighbours::Equal(label) = found else {
                        return None;
                    };
                    self.datum(&label)
                }
                _ => match self.look_for((column, order), prefix, key.sk_argument) {
                    Neighbours::Equal(label) => self.datum(&label),
                    Neighbours::Between(below, above) => {
                        let (below, above) = (below.as_deref(), above.as_deref());
                        self.datum(&label::between(below, above, Put::Middle))
                    }
                },
            };
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
    }

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
    unsafe fn labels_of_list(
        &mut self,
        column: (usize, usize),
        prefix: &[u8],
        list: pg_sys::Datum,
    ) -> Option<pg_sys::Datum> {
        // SAFETY: an array of the operator's argument type; core's functions fill the places.
        unsafe {
            let old = pg_sys::MemoryContextSwitchTo(self.labels.arguments);
            let array = pg_sys::pg_detoast_datum(list.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
            let (mut width, mut by_value, mut align) = (0, false, 0);
            let element = (*array).elemtype;
            pg_sys::get_typlenbyvalalign(element, &mut width, &mut by_value, &mut align);
            let (mut values, mut nulls, mut count) = (ptr::null_mut(), ptr::null_mut(), 0);
            pg_sys::deconstruct_array(
                array,
                element,
                i32::from(width),
                by_value,
                align,
                &mut values,
                &mut nulls,
                &mut count,
            );
            pg_sys::MemoryContextSwitchTo(old);
            let mut found = Vec::new();
            for at in 0..count as usize {
                if !*nulls.add(at)
                    && let Neighbours::Equal(label) = self.look_for(column, prefix, *values.add(at))
                {
                    found.push(self.datum(&label));
                }
            }
            if found.is_empty() {
                return None;
            }
            let old = pg_sys::MemoryContextSwitchTo(self.labels.arguments);
            let array = pg_sys::construct_array(
                found.as_mut_ptr(),
                found.len() as i32,
                pg_sys::BYTEAOID,
                -1,
                false,
                pg_sys::TYPALIGN_INT as std::ffi::c_char,
            );
            pg_sys::MemoryContextSwitchTo(old);
            Some(pg_sys::Datum::from(array))
        }
    }

    unsafe fn datum(&self, label: &[u8]) -> pg_sys::Datum {
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
