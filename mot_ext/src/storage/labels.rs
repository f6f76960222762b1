//! Keys of types that only functions of their operator classes can compare: labels
//! (`mot_engine/src/key/label.rs`).
//!
//! A row's label is found, or made, when the row is formed: as its other computed keys are. The
//! index is searched with the class's comparison ([`search`]), which reads the values from the
//! rows. A value that is there has its label; another one gets a label between its neighbours'.
//!
//! Invariants:
//! - **Of any two states that one snapshot sees, the labels lie as their values do**, within one
//!   value of the columns before. Who labels a value looks at every state that may last
//!   (`IndexScan::next_lasting`), and nobody else labels one until its entry is made
//!   (`transaction/label_locks.rs`).
//! - A reader compares with states that its own snapshot sees alone. So it does not matter what
//!   reclaim has taken out, on the primary or on a standby.
//! - No engine latch or pin is held where a comparison runs: it may be code of users.
//! - A row is in the index once the index has its storage. Until then rows are formed without a
//!   label, and the build gives them theirs ([`rank`]).
//!
//! What a class says wrongly is as wrong here as in a btree: rows are not found. `mot.check` tells,
//! and REINDEX cures.
mod order;
pub mod rank;
mod search;
mod values;

pub use order::Order;
pub use search::{Neighbours, Search, Seen};
pub use values::RowValues;

use crate::errors::{labels, or_raise};
use crate::keys;
use crate::pg::local::ProcessLocal;
use crate::transaction::clock::PgClock;
use crate::transaction::{label_locks, session};
use mot_engine::TableRef;
use mot_engine::key::label::{self, Put};
use mot_engine::key::{IndexDefinition, KeyBuffer, KeyKind, KeyValue, Tail, encode_value};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;

/// A label's digits; empty: the column is NULL, or has an encoding.
pub type Label = Vec<u8>;

/// How an evaluator comes by the labels of a row.
pub enum Labelling {
    /// They are found, or made, in the index as it is.
    Written,
    /// They are found there: a value that is not there has an empty one.
    Found,
    /// They are given, by column.
    Given(Vec<Label>),
}

/// What labels rows of one index.
pub struct Labeller {
    table: TableRef,
    definition: IndexDefinition,
    search: Search,
    /// By column.
    orders: Vec<Option<Order>>,
    pub labelling: Labelling,
}

impl Labeller {
    /// Of an open index of an open table, whose definition has labels. What is made lies in the
    /// current memory context.
    ///
    /// # Safety
    /// Both are open.
    pub unsafe fn new(
        table: pg_sys::Relation,
        index: pg_sys::Relation,
        definition: IndexDefinition,
    ) -> Labeller {
        let columns = definition.columns.iter().enumerate();
        // SAFETY: the caller's relations.
        unsafe {
            let orders = columns
                .map(|(at, column)| (column.kind == KeyKind::Label).then(|| Order::own(index, at)))
                .collect();
            Labeller {
                table: super::described(table),
                search: Search::new(RowValues::new(table, index)),
                definition,
                orders,
                labelling: Labelling::Written,
            }
        }
    }

    /// Adds a row's key to a tail; nothing while the index has no storage.
    ///
    /// # Safety
    /// The values are of the index's columns, and live in a memory context that is not reset here.
    pub unsafe fn enter(&mut self, tail: &mut Tail, values: &[pg_sys::Datum], nulls: &[bool]) {
        // SAFETY: the caller's values.
        let Some(labels) = (unsafe { self.labels(values, nulls) }) else {
            return;
        };
        let columns = &self.definition.columns;
        let values = columns.iter().enumerate().map(|(at, column)| {
            match column.kind {
                KeyKind::Label if nulls[at] => KeyValue::Null,
                KeyKind::Label => KeyValue::Bytes(&labels[at]),
                // SAFETY: the caller's values.
                kind => unsafe { keys::value(kind, values[at], nulls[at]) },
            }
        });
        or_raise(tail.enter(self.definition.relation, columns, values));
    }

    /// The labels of a row, by column.
    unsafe fn labels(&mut self, values: &[pg_sys::Datum], nulls: &[bool]) -> Option<Vec<Label>> {
        if let Labelling::Given(labels) = &self.labelling {
            return Some(labels.clone());
        }
        let oid = self.definition.relation;
        let is_written = matches!(self.labelling, Labelling::Written);
        let session = session::session();
        if is_written && session.find_index(self.table, oid, &PgClock).is_some() {
            label_locks::acquire(oid);
        }
        // Behind the wait for the lock, in which a build may have put another one in its place.
        let index = session.find_index(self.table, oid, &PgClock)?;
        let definition = or_raise(session.definition(index));
        let mut labels = Vec::with_capacity(definition.columns.len());
        let mut prefix = KeyBuffer::new();
        for (at, column) in definition.columns.iter().enumerate() {
            let mut label = Label::new();
            if column.kind == KeyKind::Label && !nulls[at] {
                let order = self.orders[at].as_mut().expect("a label's column has one");
                let place = (self.table, index, (column, at));
                // SAFETY: the caller's value, which is of the class's type.
                let found = unsafe {
                    let value = values[at];
                    self.search
                        .neighbours(place, prefix.as_slice(), (order, value), Seen::Lasting)
                };
                label = match found {
                    Neighbours::Equal(label) => label,
                    Neighbours::Between(below, above) if is_written => made(oid, below, above),
                    Neighbours::Between(..) => label,
                };
            }
            let value = match column.kind {
                KeyKind::Label if nulls[at] => KeyValue::Null,
                KeyKind::Label => KeyValue::Bytes(&label),
                // SAFETY: the caller's value.
                kind => unsafe { keys::value(kind, values[at], nulls[at]) },
            };
            or_raise(encode_value(column, value, &mut prefix));
            labels.push(label);
        }
        Some(labels)
    }
}

/// A label as a datum of type bytea, in a memory context.
///
/// # Safety
/// The context is there.
pub unsafe fn datum(label: &[u8], memory: pg_sys::MemoryContext) -> pg_sys::Datum {
    let bytes = pg_sys::VARHDRSZ + label.len();
    // SAFETY: a new varlena of so many bytes.
    unsafe {
        let made = pg_sys::MemoryContextAlloc(memory, bytes).cast::<pg_sys::varlena>();
        pgrx::set_varsize_4b(made, bytes as i32);
        let payload = made.cast::<u8>().add(pg_sys::VARHDRSZ);
        std::ptr::copy_nonoverlapping(label.as_ptr(), payload, label.len());
        pg_sys::Datum::from(made)
    }
}

/// Between which labels the last one of an index was made: values often come in a row.
static LAST: ProcessLocal<RefCell<Option<HashMap<u32, [Option<Label>; 2]>>>> =
    ProcessLocal(RefCell::new(None));

/// A new label between two neighbours.
fn made(index: u32, below: Option<Label>, above: Option<Label>) -> Label {
    let mut last = LAST.0.borrow_mut();
    let put = match last.get_or_insert_default().get(&index) {
        Some([_, last]) if *last == above => Put::Ascending,
        Some([last, _]) if *last == below => Put::Descending,
        _ => Put::Middle,
    };
    let label = label::between(below.as_deref(), above.as_deref(), put);
    last.get_or_insert_default().insert(index, [below, above]);
    drop(last);
    if label.len() > label::LABEL_BYTES_MAX {
        labels::no_more_labels(index);
    }
    label
}
