//! The replica identity of an old row (heapam's `ExtractReplicaIdentity`): what a subscriber finds
//! the row by.
use crate::pg::datum;
use crate::pg::heap_tuple::OwnTuple;
use crate::pg::local::ProcessLocal;
use crate::pg::relation::Relation;
use crate::transaction::relation::generation;
use mot_engine::VersionRef;
use mot_engine::key::without_tail;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::rc::Rc;

/// What is logged of an old row.
pub enum Identity {
    /// Nothing.
    None,
    /// All columns.
    Row(VersionRef),
    /// Those of the identity's key; the others are NULL.
    Key(OwnTuple),
}

impl Identity {
    /// Gives back what it took of the statement's memory.
    pub fn free(self) {
        if let Identity::Key(key) = self {
            key.free();
        }
    }

    /// Its body.
    pub fn body(&self) -> Option<&[u8]> {
        match self {
            Identity::None => None,
            Identity::Row(version) => Some(without_tail(version.body())),
            Identity::Key(key) => Some(key.body()),
        }
    }
}

/// Of a row that is deleted.
pub fn of_deleted(relation: Relation<'_>, old: VersionRef) -> Identity {
    of(relation, old, |_, _| true)
}

/// Of a row that is updated: its key only if that has changed.
pub fn of_updated(relation: Relation<'_>, old: VersionRef, new: VersionRef) -> Identity {
    of(relation, old, |key, was| {
        let is = Columns::of(relation, new);
        key.iter().any(|at| !was.has_equal(&is, relation, *at))
    })
}

/// Of a row, whose key is asked for if the function says so, by the key's columns from 0.
fn of(
    relation: Relation<'_>,
    old: VersionRef,
    is_key_wanted: impl FnOnce(&[usize], &Columns) -> bool,
) -> Identity {
    match relation.replica_identity() {
        pg_sys::REPLICA_IDENTITY_NOTHING => return Identity::None,
        pg_sys::REPLICA_IDENTITY_FULL => return Identity::Row(old),
        _ => {}
    }
    let key = key_columns(relation);
    if key.is_empty() {
        return Identity::None;
    }
    let mut columns = Columns::of(relation, old);
    if !is_key_wanted(&key, &columns) {
        return Identity::None;
    }
    Identity::Key(columns.form_of(relation, &key))
}

/// The columns, from 0, of a relation's key.
type KeyColumns = Rc<[usize]>;

/// A relation, by its oid, and what the process knew of relations when its key was looked up.
type At = (u32, u64);

/// The key that was asked for last: a statement asks for each row.
static LAST: ProcessLocal<RefCell<Option<(At, KeyColumns)>>> = ProcessLocal(RefCell::new(None));

/// The columns of the key by which a publication names a relation's rows.
fn key_columns(relation: Relation<'_>) -> KeyColumns {
    let now = (relation.oid().to_u32(), generation());
    let last = LAST.0.borrow().clone();
    if let Some((at, columns)) = last
        && at == now
    {
        return columns;
    }
    let columns: KeyColumns = relation.identity_columns().into();
    if generation() == now.1 {
        LAST.0.replace(Some((now, columns.clone())));
    }
    columns
}

/// The columns of a version.
struct Columns {
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl Columns {
    /// Those of a version that stays meanwhile: they point into it.
    fn of(relation: Relation<'_>, version: VersionRef) -> Columns {
        let count = relation.description().columns().len();
        let (mut values, mut nulls) = (vec![pg_sys::Datum::null(); count], vec![true; count]);
        let mut tuple = pg_sys::HeapTupleData {
            t_len: version.tuple_bytes() as u32,
            t_data: version.image_ptr().cast_mut().cast(),
            ..Default::default()
        };
        // SAFETY: a version is a tuple of the relation's row type; the arrays have a place for each
        // column.
        unsafe {
            let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
            pg_sys::heap_deform_tuple(&raw mut tuple, relation.row_type(), values, nulls);
        }
        Columns { values, nulls }
    }

    /// Whether another version of the table has the same bytes in a column.
    fn has_equal(&self, other: &Columns, relation: Relation<'_>, at: usize) -> bool {
        let attribute = &relation.description().columns()[at];
        let value = |columns: &Columns| (!columns.nulls[at]).then_some(columns.values[at]);
        // SAFETY: values of the column's type.
        unsafe { datum::is_equal(attribute, value(self), value(other)) }
    }

    /// A tuple that has these columns alone.
    fn form_of(&mut self, relation: Relation<'_>, key: &[usize]) -> OwnTuple {
        for (at, is_null) in self.nulls.iter_mut().enumerate() {
            *is_null |= !key.contains(&at);
        }
        // SAFETY: a value for each column, or NULL; the new tuple is in the current memory context,
        // which lives until the change is logged.
        unsafe {
            let (values, nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
            OwnTuple::enter(pg_sys::heap_form_tuple(relation.row_type(), values, nulls))
        }
    }
}
