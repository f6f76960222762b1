//! Looking for a value among the labels of an index, with its class's comparison.
//!
//! The labels between two known neighbours are halved: the entry next to the middle is looked at.
//! That takes as many comparisons as a search in a balanced tree, and a few more where labels lie
//! unevenly. Values mostly come behind all others, so the last entry is looked at first.
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

/// Which states of rows are looked at.
#[derive(Clone, Copy)]
pub enum Seen<'a> {
    /// Those that any snapshot may see in time to come.
    Lasting,
    /// Those that a snapshot sees, which stays registered.
    By(&'a PgSnapshot<'static>),
}

/// Where a value lies.
#[derive(Debug)]
pub enum Neighbours {
    /// Some row has it: its label.
    Equal(Label),
    /// Between these labels, or beyond all where there is none.
    Between(Option<Label>, Option<Label>),
}

/// One end of the labels that are looked through.
#[derive(Clone, Copy)]
enum End<'a> {
    Open,
    Excluded(&'a [u8]),
    Included(&'a [u8]),
}

/// Which entry between two ends is looked at.
#[derive(Clone, Copy)]
enum Which {
    Lowest,
    Highest,
}

/// A column of an index, and its place.
type Place<'a> = (TableRef, IndexRef, (&'a KeyColumn, usize));

/// What searches need; it is used again.
pub struct Search {
    values: RowValues,
    scan: IndexScan,
    range: KeyRange,
    key: KeyBuffer,
}

impl Search {
    /// With what reads the values of the index's rows.
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
        place: Place<'_>,
        prefix: &[u8],
        (order, value): (&mut Order, pg_sys::Datum),
        seen: Seen<'_>,
    ) -> Neighbours {
        let mut compare = |search: &mut Search, low: End<'_>, high: End<'_>, which| {
            // SAFETY: the caller's value and snapshot.
            unsafe {
                search.compare(
                    place,
                    prefix,
                    (low, high, which),
                    (&mut *order, value),
                    seen,
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

    /// The label of an entry between two ends, and how its value lies to the one looked for.
    ///
    /// # Safety
    /// As for [`Search::neighbours`].
    unsafe fn compare(
        &mut self,
        (table, index, (column, at)): Place<'_>,
        prefix: &[u8],
        (low, high, which): (End<'_>, End<'_>, Which),
        (order, value): (&mut Order, pg_sys::Datum),
        seen: Seen<'_>,
    ) -> Option<(Label, Ordering)> {
        self.set_range(column, prefix, low, high);
        let direction = match (which, column.descending) {
            (Which::Lowest, false) | (Which::Highest, true) => Direction::Forward,
            (Which::Highest, false) | (Which::Lowest, true) => Direction::Backward,
        };
        let session = session::session();
        self.scan.start(table, index, &self.range, direction);
        let image = self.values.image();
        let label = match seen {
            Seen::Lasting => {
                let found = self.scan.next_lasting(session, &PgClock, |version, key| {
                    image.extend_from_slice(version.body());
                    label::of_key(column, &key[prefix.len()..])
                });
                or_raise(found)?
            }
            Seen::By(snapshot) => {
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
