//! From a value to its equal, or its neighbours, among the entries of an index.
//!
//! This is a binary search over labels: it makes the label in the middle between two known
//! neighbours, and compares the value with that of the next entry. It takes as many comparisons as
//! a search in a balanced tree, and a few more where labels lie unevenly. New values are mostly the
//! largest, so the last entry is compared first.
use super::{Label, Order, RowValues};
use crate::errors::or_raise;
use crate::pg::interrupts;
use crate::transaction::clock::{PgClock, PgSnapshot};
use crate::transaction::session;
use mot_engine::key::label::{self, Put};
use mot_engine::key::{KeyBuffer, KeyColumn, KeyValue, encode_value};
use mot_engine::{Direction, IndexRef, IndexScan, KeyRange, TableRef};
use pgrx::pg_sys;
use std::cmp::Ordering;

/// The byte of a key column that has a value.
const HAS_VALUE: u8 = 1;

/// With which states of rows a value is compared.
#[derive(Clone, Copy)]
pub enum ComparedStates<'a> {
    /// With all that some snapshot may yet see: for writers.
    Lasting,
    /// With those that this snapshot sees, which stays registered: for scans.
    By(&'a PgSnapshot<'static>),
}

/// The place of a value among those of an index.
#[derive(Debug)]
pub enum Neighbours {
    /// Some row has an equal value: its label.
    Equal(Label),
    /// Between the values with these labels. `None`: all others are above it, or below it.
    Between(Option<Label>, Option<Label>),
}

/// One end of a range of labels.
#[derive(Clone, Copy)]
enum End<'a> {
    Open,
    Excluded(&'a [u8]),
    Included(&'a [u8]),
}

/// Which entry between two ends is compared.
#[derive(Clone, Copy)]
enum Which {
    Lowest,
    Highest,
}

/// A key column of an index, and its position from 0.
type KeyColumnRef<'a> = (TableRef, IndexRef, (&'a KeyColumn, usize));

/// A search, which may be repeated for other values.
pub struct Search {
    values: RowValues,
    scan: IndexScan,
    range: KeyRange,
    key: KeyBuffer,
}

impl Search {
    /// `values` reads the values of the index's rows.
    pub fn new(values: RowValues) -> Search {
        Search {
            values,
            scan: IndexScan::new(),
            range: KeyRange::new(),
            key: KeyBuffer::new(),
        }
    }

    /// Looks for a value among the rows whose keys begin with `prefix`. Runs code of users.
    ///
    /// # Safety
    /// The value is one that `order` compares with, and lives in a memory context that is not reset
    /// here. A snapshot stays registered.
    pub unsafe fn neighbours(
        &mut self,
        column: KeyColumnRef<'_>,
        prefix: &[u8],
        (order, value): (&mut Order, pg_sys::Datum),
        states: ComparedStates<'_>,
    ) -> Neighbours {
        let mut compare = |search: &mut Search, low: End<'_>, high: End<'_>, which| {
            // SAFETY: the caller's value and snapshot.
            unsafe {
                search.compare(
                    column,
                    prefix,
                    (low, high, which),
                    (&mut *order, value),
                    states,
                )
            }
        };
        let last = compare(self, End::Open, End::Open, Which::Highest);
        let mut high = match last {
            None => return Neighbours::Between(None, None),
            Some((label, Ordering::Less)) => return Neighbours::Between(Some(label), None),
            Some((label, Ordering::Equal)) => return Neighbours::Equal(label),
            Some((label, Ordering::Greater)) => label,
        };
        let below_all = End::Excluded(&high);
        let first = compare(self, End::Open, below_all, Which::Lowest);
        let mut low = match first {
            None => return Neighbours::Between(None, Some(high)),
            Some((label, Ordering::Greater)) => return Neighbours::Between(None, Some(label)),
            Some((label, Ordering::Equal)) => return Neighbours::Equal(label),
            Some((label, Ordering::Less)) => label,
        };
        loop {
            if interrupts::is_pending() {
                interrupts::check_for_interrupts();
            }
            let middle = label::between(Some(&low), Some(&high), Put::Middle);
            let (from, to) = (End::Included(&middle), End::Excluded(&high));
            let above = compare(self, from, to, Which::Lowest);
            let found = match above {
                Some(found) => found,
                None => {
                    let (from, to) = (End::Excluded(&low), End::Excluded(&middle));
                    let below = compare(self, from, to, Which::Highest);
                    match below {
                        // It is next to the upper one.
                        Some((label, Ordering::Less)) => {
                            return Neighbours::Between(Some(label), Some(high));
                        }
                        Some(found) => found,
                        None => return Neighbours::Between(Some(low), Some(high)),
                    }
                }
            };
            match found {
                (label, Ordering::Equal) => return Neighbours::Equal(label),
                (label, Ordering::Less) => low = label,
                (label, Ordering::Greater) => high = label,
            }
        }
    }

    /// The label of an entry between two ends, and how its value compares with the one looked for.
    ///
    /// # Safety
    /// As for [`Search::neighbours`].
    unsafe fn compare(
        &mut self,
        (table, index, (column, at)): KeyColumnRef<'_>,
        prefix: &[u8],
        (low, high, which): (End<'_>, End<'_>, Which),
        (order, value): (&mut Order, pg_sys::Datum),
        states: ComparedStates<'_>,
    ) -> Option<(Label, Ordering)> {
        self.set_range(column, prefix, low, high);
        let direction = match (which, column.descending) {
            (Which::Lowest, false) | (Which::Highest, true) => Direction::Forward,
            (Which::Highest, false) | (Which::Lowest, true) => Direction::Backward,
        };
        let session = session::session();
        self.scan.start(table, index, &self.range, direction);
        let image = self.values.image();
        let label = match states {
            ComparedStates::Lasting => {
                let found = self.scan.next_lasting(session, &PgClock, |version, key| {
                    image.extend_from_slice(version.body());
                    label::of_key(column, &key[prefix.len()..])
                });
                or_raise(found)?
            }
            ComparedStates::By(snapshot) => {
                let (_, version) = or_raise(self.scan.next(session, snapshot))?;
                image.extend_from_slice(version.body());
                label::of_key(column, &self.scan.entry_key()[prefix.len()..])
            }
        };
        let label = label.expect("a key between two labels has one");
        let of_row = self.values.value(at);
        let compare = || match of_row {
            // A function that is not immutable had another answer when the row was formed.
            None => Ordering::Less,
            // SAFETY: the row's value, which stays until the next one is read, and the caller's.
            Some(of_row) => unsafe { order.compare(of_row, value) },
        };
        Some((label, self.values.with_row_memory(compare)))
    }

    /// Sets the range of the keys that begin with `prefix`, and whose labels lie between two ends.
    fn set_range(&mut self, column: &KeyColumn, prefix: &[u8], low: End<'_>, high: End<'_>) {
        let Search { range, key, .. } = self;
        let mut end = |label: &[u8]| {
            key.clear();
            or_raise(key.push(prefix));
            or_raise(encode_value(column, KeyValue::Bytes(label), key));
            key.as_slice().to_vec()
        };
        let mut all = prefix.to_vec();
        all.extend(column.nullable.then_some(HAS_VALUE));
        or_raise(range.set_prefix(&all));
        // In the order of keys, which a descending column turns round.
        let (first, last) = match column.descending {
            false => (low, high),
            true => (high, low),
        };
        or_raise(match first {
            End::Open => Ok(()),
            End::Excluded(label) => range.set_low(&end(label), false),
            End::Included(label) => range.set_low(&end(label), true),
        });
        or_raise(match last {
            End::Open => Ok(()),
            End::Excluded(label) => range.set_high(&end(label), false),
            End::Included(label) => range.set_high(&end(label), true),
        });
    }
}
