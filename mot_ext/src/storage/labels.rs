//! Labels: keys of values that only functions of an operator class can compare.
//!
//! A key column has labels where its values have no encoding (`IndexColumn::has_encoding`):
//!
//! - `keys` does not know its type;
//! - its class is neither the type's default nor one that compares texts by bytes;
//! - its texts need sort keys that there are not: different texts are equal to its collation, whose
//!   sort keys are not exact, or they are compared in lower case (citext), or a row type holds them
//!   (`IndexColumn::lacks_collation`).
//!
//! `mot_engine/src/key/label.rs` says what a label is.
//!
//! | file | what |
//! |---|---|
//! | `labels.rs` | the labels of a row that is formed ([`LabelMaker`]) |
//! | [`search`] | from a value to its equal, or its neighbours, in the index |
//! | [`order`] | the class's comparison |
//! | `values` | the values of key columns, read from stored rows |
//! | [`rank`] | the labels of all rows, for an index build |
//! | `transaction/label_locks.rs` | one session at a time labels values of an index |
//! | `index_am/labels.rs` | from the conditions of a scan to labels |
//!
//! **When a row is formed**, its labels are found or made, as its other computed keys are. The
//! index is searched with the class's comparison, which reads the values from the rows. An equal
//! value has its label already; a new value gets one between its neighbours'.
//!
//! Invariants:
//! - **Of any two states that one snapshot sees, the labels lie as their values do**, where the
//!   columns before have equal values. A writer that makes a label reads every state that any
//!   snapshot may yet see (`IndexScan::next_lasting`). Until its entry is made, no other writer
//!   makes a label of that index.
//! - A reader compares only with states that its own snapshot sees. So it does not matter what
//!   reclaim has removed, on the primary or on a standby.
//! - No engine latch or pin is held where a comparison runs: it may be code of users.
//! - Rows have labels once the index has its storage. Until then they are formed without, and the
//!   build gives them theirs.
//!
//! A comparison that contradicts itself does the same harm as in a btree: rows are not found.
//! `mot.check` reports it, and REINDEX repairs it.
mod order;
pub mod rank;
mod search;
mod values;

pub use order::Order;
pub use search::{ComparedStates, Neighbours, Search};
pub use values::RowValues;

use crate::errors::{labels, or_raise};
use crate::keys;
use crate::pg::local::ProcessLocal;
use crate::pg::relation::Relation;
use crate::transaction::clock::PgClock;
use crate::transaction::{label_locks, session};
use mot_engine::key::label::{self, Put};
use mot_engine::key::{IndexDefinition, KeyBuffer, KeyKind, KeyValue, Tail, encode_value};
use mot_engine::{EngineError, TableRef};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

/// A label's digits; empty: the column is NULL, or has an encoding.
pub type Label = Vec<u8>;

/// Where the labels of a row come from.
pub enum LabelSource {
    /// From the index, for a write: a value that it lacks gets a new one.
    IndexOrNew,
    /// From the index, for a check: a value that it lacks gets an empty one.
    Index,
    /// From the caller, by column. An empty list raises `KeyNotComputed`.
    Caller(Vec<Label>),
}

/// Finds or makes the labels of rows in one index.
pub struct LabelMaker {
    table: TableRef,
    definition: IndexDefinition,
    search: Search,
    /// By column.
    orders: Vec<Option<Order>>,
    /// Of the row that is formed, by column.
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    pub source: LabelSource,
}

impl LabelMaker {
    /// Of an index of a table, whose definition has labels. What is made is in the current memory
    /// context.
    pub fn new(
        table: Relation<'_>,
        index: Relation<'_>,
        definition: IndexDefinition,
    ) -> LabelMaker {
        let columns = definition.columns.iter().enumerate();
        let orders = columns
            .map(|(at, column)| (column.kind == KeyKind::Label).then(|| Order::own(index, at)))
            .collect();
        LabelMaker {
            table: super::described(table),
            search: Search::new(RowValues::new(table, index).for_writer(table)),
            definition,
            orders,
            values: Vec::new(),
            nulls: Vec::new(),
            source: LabelSource::IndexOrNew,
        }
    }

    /// Takes the values of a row that is in the index.
    ///
    /// # Safety
    /// They live until [`LabelMaker::enter`].
    pub unsafe fn take(&mut self, values: &[pg_sys::Datum], nulls: &[bool]) {
        let count = self.definition.columns.len();
        self.values.extend_from_slice(&values[..count]);
        self.nulls.extend_from_slice(&nulls[..count]);
    }

    /// Adds a key to a tail: that of the row whose values were taken. Nothing, if none were, or
    /// while the index has no storage.
    ///
    /// # Safety
    /// The memory context of the values is not reset here.
    pub unsafe fn enter(&mut self, tail: &mut Tail) {
        let (values, nulls) = (
            std::mem::take(&mut self.values),
            std::mem::take(&mut self.nulls),
        );
        if values.is_empty() {
            return;
        }
        // SAFETY: the caller's values.
        if let Some(labels) = unsafe { self.labels(&values, &nulls) } {
            let columns = &self.definition.columns;
            let keys = columns
                .iter()
                .enumerate()
                .map(|(at, column)| match column.kind {
                    KeyKind::Label if nulls[at] => KeyValue::Null,
                    KeyKind::Label => KeyValue::Bytes(&labels[at]),
                    // SAFETY: the caller's values.
                    kind => unsafe { keys::value(kind, values[at], nulls[at]) },
                });
            let number = self.definition.computed.unwrap_or_default();
            or_raise(tail.enter(number, columns, keys));
        }
        (self.values, self.nulls) = (values, nulls);
        self.values.clear();
        self.nulls.clear();
    }

    /// The labels of a row, by column.
    unsafe fn labels(&mut self, values: &[pg_sys::Datum], nulls: &[bool]) -> Option<Vec<Label>> {
        if let LabelSource::Caller(labels) = &self.source {
            if labels.is_empty() {
                or_raise::<()>(Err(EngineError::KeyNotComputed));
            }
            return Some(labels.clone());
        }
        let oid = self.definition.relation;
        let may_make = matches!(self.source, LabelSource::IndexOrNew);
        let session = session::session();
        if may_make && session.find_index(self.table, oid, &PgClock).is_some() {
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
                    self.search.neighbours(
                        place,
                        prefix.as_slice(),
                        (order, value),
                        ComparedStates::Lasting,
                    )
                };
                label = match found {
                    Neighbours::Equal(label) => label,
                    Neighbours::Between(below, above) if may_make => made(oid, below, above),
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

/// The labels that this process made last in an index, the newest first.
///
/// Values often come in ascending or descending order: a *run*. Its next value is put close to its
/// last one, since the middle of the gap would make labels longer by a bit each time.
type Recent = VecDeque<Label>;

/// Most of these of an index, and so most runs at a time.
const RECENT_MAX: usize = 16;
/// Most indexes of which they are remembered.
const INDEXES_REMEMBERED_MAX: usize = 64;
/// A label of a run that is longer than this is put into the middle if it is shorter there.
const RUN_BYTES_MAX: usize = 24;

static RECENT: ProcessLocal<RefCell<Option<HashMap<u32, Recent>>>> =
    ProcessLocal(RefCell::new(None));

/// A new label between two neighbours.
fn made(index: u32, below: Option<Label>, above: Option<Label>) -> Label {
    let mut recent = RECENT.0.borrow_mut();
    let recent = recent.get_or_insert_default();
    if recent.len() >= INDEXES_REMEMBERED_MAX && !recent.contains_key(&index) {
        recent.clear();
    }
    let recent = recent.entry(index).or_default();
    let between = |put| label::between(below.as_deref(), above.as_deref(), put);
    let mut label = between(place(recent, below.as_ref(), above.as_ref()));
    if label.len() > RUN_BYTES_MAX {
        let middle = between(Put::Middle);
        if middle.len() < label.len() {
            label = middle;
        }
    }
    if label.len() > label::LABEL_BYTES_MAX {
        labels::no_more_labels(index);
    }
    recent.truncate(RECENT_MAX - 1);
    recent.push_front(label.clone());
    label
}

/// Where a label is put between two others: close to the one that belongs to a run of this process.
/// If both do, two runs come towards each other, and the one with the older label continues. If
/// neither does, the longer label counts as the newer one, and so as a run's.
fn place(recent: &Recent, below: Option<&Label>, above: Option<&Label>) -> Put {
    let (Some(below), Some(above)) = (below, above) else {
        return match (below, above) {
            (Some(_), None) => Put::Ascending,
            (None, Some(_)) => Put::Descending,
            _ => Put::Middle,
        };
    };
    let age = |label: &Label| recent.iter().position(|made| made == label);
    let order = match (age(below), age(above)) {
        (Some(below), Some(above)) => below.cmp(&above),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => below.len().cmp(&above.len()),
    };
    match order {
        Ordering::Greater => Put::Ascending,
        Ordering::Less => Put::Descending,
        Ordering::Equal => Put::Middle,
    }
}
