//! Keys that core checks: those of exclusion constraints, and of unique ones that the engine does
//! not check.
//!
//! The engine refuses a second row of a unique key at once. A deferrable constraint may be broken
//! until it is due, so its index is not unique to the engine. Core asks the index access method
//! instead (`index_am/uniqueness.rs`), and must hear of each update that changes a key.
//!
//! REINDEX CONCURRENTLY builds such an index's successor as one that is not deferrable, and marks
//! it as deferrable when it is built. So a unique index that is built beside a deferrable one of
//! the same columns is not unique to the engine, either.
use super::computed_keys::is_on_expressions;
use super::{find_index, table, with_index_and_table};
use crate::pg::index_row;
use crate::pg::relation::Relation;
use crate::transaction::clock::PgClock;
use crate::transaction::{relation, session};
use mot_engine::IndexRef;
use pgrx::pg_sys;

/// Whether core checks keys of a locked table behind each change of a row. Asked ahead of each
/// update.
pub fn has_keys_of_core(heap: Relation<'_>) -> bool {
    relation::has_keys_of_core(heap.oid(), || find_keys_of_core(heap))
}

fn find_keys_of_core(heap: Relation<'_>) -> bool {
    let storage = table(heap);
    let forms = forms_of(heap);
    let mut found = false;
    for (oid, form) in forms {
        found |= form.is_exclusion;
        if form.is_unique {
            // One without storage may be built in either way.
            let index = session::session().find_index(storage, oid.to_u32(), &PgClock);
            found |= index.is_none_or(note_unique);
        }
    }
    found
}

/// Whether an index is left to core that is unique in the catalog. Row locks take its columns for a
/// key, as on heap tables: a writer that changes them asks here first.
fn note_unique(index: IndexRef) -> bool {
    let is_left = !index.is_unique();
    if is_left {
        index.set_unique_to_server();
    }
    is_left
}

/// The same of an index that is being made: REINDEX does not notify sessions that know its table.
pub fn note_made(opened: Relation<'_>, index: IndexRef) {
    if opened.index_row().indisunique {
        note_unique(index);
    }
}

/// Whether the engine keeps an index's keys unique. The index may be about to be built.
pub fn is_kept_unique(heap: Relation<'_>, index: Relation<'_>) -> bool {
    let row = index.index_row();
    let form = Form::new(&row, index.key_columns().to_vec());
    // No constraint has computed keys, or a predicate.
    let may_be_copy = !form.is_ready && !is_on_expressions(index);
    let is_copy = may_be_copy && has_deferrable_twin(heap, &form);
    form.is_unique && form.is_immediate && !is_copy
}

/// Whether a deferrable unique index has the same columns.
fn has_deferrable_twin(heap: Relation<'_>, form: &Form) -> bool {
    forms_of(heap)
        .into_iter()
        .any(|(_, other)| other.is_unique && !other.is_immediate && other.columns == form.columns)
}

/// Whether the catalog has an index as unique.
pub fn is_unique_to_core(index: pg_sys::Oid) -> bool {
    form_of(index).is_some_and(|form| form.is_unique)
}

/// Whether the engine keeps the keys of an index unique whose constraint is deferrable.
pub fn is_kept_though_deferrable(index: pg_sys::Oid) -> bool {
    with_index_and_table(index, |heap, index| {
        let is_deferrable = !index.index_row().indimmediate;
        let found = || find_index(table(heap), index);
        is_deferrable && found().is_some_and(|index| index.is_unique())
    })
    .unwrap_or(false)
}

/// What the catalog says of an index.
struct Form {
    is_unique: bool,
    is_exclusion: bool,
    is_immediate: bool,
    is_ready: bool,
    /// The key columns.
    columns: Vec<i16>,
}

impl Form {
    fn of(form: &pg_sys::FormData_pg_index) -> Form {
        // SAFETY: an index has as many columns as its form says.
        let columns = unsafe { form.indkey.values.as_slice(form.indnkeyatts as usize) };
        Form::new(form, columns.to_vec())
    }

    fn new(form: &pg_sys::FormData_pg_index, columns: Vec<i16>) -> Form {
        Form {
            is_unique: form.indisunique,
            is_exclusion: form.indisexclusion,
            is_immediate: form.indimmediate,
            is_ready: form.indisready,
            columns,
        }
    }
}

/// The indexes of a table that the catalog has as live.
fn forms_of(heap: Relation<'_>) -> Vec<(pg_sys::Oid, Form)> {
    let forms = heap
        .indexes()
        .into_iter()
        .filter_map(|oid| form_of(oid).map(|form| (oid, form)));
    forms.collect()
}

/// `None`: the catalog has no such index.
fn form_of(index: pg_sys::Oid) -> Option<Form> {
    index_row::read(index, |_, form| Form::of(form))
}
