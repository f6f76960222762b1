//! Row types that get or lose a column while keys hold their values.
//!
//! Core lets ALTER TYPE add and drop attributes of a type that columns of tables have, and ALTER
//! TABLE those of a table's row type. It writes no row. Values without the new column have NULL
//! there. A dropped one counts no more. An index's definition has the columns
//! (`keys/row_types.rs`). So indexes whose keys have such a type are built anew, in the same
//! statement. Heap's indexes stay as they are, and may be wrong from then on.
//!
//! The object access hook says which relations have got or lost a column. Which keys hold values of
//! their row types follows from the catalog's dependencies: columns, arrays, domains, ranges, other
//! row types, and functions in expressions.
use super::whose_index;
use crate::index_am::access_method::indexes_of;
use crate::keys::IndexColumn;
use crate::pg::local::ProcessLocal;
use crate::pg::relation::{self, Relation};
use crate::pg::{catalog, version};
use crate::storage;
use crate::storage::computed_keys::is_computed;
use mot_engine::key::KeyKind;
use pgrx::pg_sys;
use std::cell::{RefCell, RefMut};
use std::collections::HashSet;

/// `DependRelationId`, `DependReferenceIndexId` and columns of `catalog/pg_depend.h`.
const DEPENDENCIES: u32 = 2608;
const BY_REFERENCE: u32 = 2674;
const REFERENCED_CLASS: pg_sys::AttrNumber = 4;
const REFERENCED_OBJECT: pg_sys::AttrNumber = 5;
const REFERENCED_COLUMN: pg_sys::AttrNumber = 6;

/// How a row of `pg_depend` begins: what depends on something.
#[repr(C)]
struct Dependent {
    class: pg_sys::Oid,
    object: pg_sys::Oid,
}

/// Relations that have got or lost a column in a transaction since the last check.
struct Altered {
    /// When the transaction began: what a failed one has left does not count.
    transaction: pg_sys::TimestampTz,
    relations: Vec<pg_sys::Oid>,
}

static ALTERED: ProcessLocal<RefCell<Altered>> = ProcessLocal(RefCell::new(Altered {
    transaction: 0,
    relations: Vec::new(),
}));

/// A relation gets or loses a column, in whatever statement.
pub fn altered(relation: pg_sys::Oid) {
    let mut altered = of_transaction();
    if !altered.relations.contains(&relation) {
        altered.relations.push(relation);
    }
}

/// Whether a relation has got or lost a column since the last check.
pub fn are_altered() -> bool {
    !of_transaction().relations.is_empty()
}

/// What was noted in this transaction.
fn of_transaction() -> RefMut<'static, Altered> {
    // SAFETY: a plain variable of this process.
    let transaction = unsafe { pg_sys::GetCurrentTransactionStartTimestamp() };
    let mut altered = ALTERED.0.borrow_mut();
    if altered.transaction != transaction {
        altered.transaction = transaction;
        altered.relations.clear();
    }
    altered
}

/// Builds the indexes anew whose keys hold values of row types that have changed. May raise where a
/// new column has no encoding.
///
/// # Safety
/// The statement has ended, and its changes are visible. It has locked the tables.
pub unsafe fn build_changed() {
    let altered = std::mem::take(&mut of_transaction().relations);
    for relation in altered {
        // A relation that is gone has none.
        let row_type = catalog::row_type(relation);
        if row_type == pg_sys::InvalidOid {
            continue;
        }
        let (indexes, types) = values_of(row_type);
        for index in indexes {
            build_if_changed(index, &types);
        }
    }
}

/// Objects, by catalog and oid.
type Objects = HashSet<(pg_sys::Oid, pg_sys::Oid)>;

/// Indexes of memory-optimized tables that may have values of a type in their keys; and the objects
/// that depend on the type, other types among them.
fn values_of(of: pg_sys::Oid) -> (Vec<pg_sys::Oid>, Objects) {
    let mut seen = Objects::new();
    let mut left = vec![(pg_sys::TypeRelationId, of)];
    let mut indexes = Vec::new();
    while let Some(object) = left.pop() {
        if !seen.insert(object) {
            continue;
        }
        let (class, oid) = object;
        if class != pg_sys::RelationRelationId {
            left.extend(dependents(class, oid, None));
        } else if storage::is_mot_index(oid) {
            indexes.push(oid);
        } else {
            if storage::is_mot_table(oid) {
                left.extend(indexes_of(oid).into_iter().map(|index| (class, index)));
            }
            let row_type = catalog::row_type(oid);
            if row_type != pg_sys::InvalidOid {
                left.push((pg_sys::TypeRelationId, row_type));
            }
        }
    }
    indexes.sort_unstable_by_key(|oid: &pg_sys::Oid| oid.to_u32());
    (indexes, seen)
}

/// Indexes of memory-optimized tables that have a column of a row type in an expression.
pub fn indexes_with(relation: pg_sys::Oid, column: i16) -> Vec<pg_sys::Oid> {
    let class = pg_sys::RelationRelationId;
    dependents(class, relation, Some(column))
        .into_iter()
        .filter(|(of, object)| *of == class && storage::is_mot_index(*object))
        .map(|(_, index)| index)
        .collect()
}

/// Types, functions and relations that depend on an object, or on a column of it.
fn dependents(
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    column: Option<i16>,
) -> Vec<(pg_sys::Oid, pg_sys::Oid)> {
    let mut keys = vec![
        key(REFERENCED_CLASS, pg_sys::F_OIDEQ, class.into()),
        key(REFERENCED_OBJECT, pg_sys::F_OIDEQ, object.into()),
    ];
    if let Some(column) = column {
        let column = pg_sys::Datum::from(i32::from(column));
        keys.push(key(REFERENCED_COLUMN, pg_sys::F_INT4EQ, column));
    }
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let found = relation::try_with(DEPENDENCIES.into(), lock, |catalog| {
        rows_by_reference(catalog, &mut keys)
    });
    let mut found = found.expect("the catalog is there");
    found.retain(|(class, _)| {
        matches!(
            *class,
            pg_sys::TypeRelationId | pg_sys::ProcedureRelationId | pg_sys::RelationRelationId
        )
    });
    found
}

/// A condition of a look-up: a column is equal to a value.
fn key(column: pg_sys::AttrNumber, function: u32, value: pg_sys::Datum) -> pg_sys::ScanKeyData {
    let mut key = pg_sys::ScanKeyData::default();
    let equal = pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber;
    // SAFETY: a key that is filled here, with core's own function.
    unsafe { pg_sys::ScanKeyInit(&raw mut key, column, equal, function.into(), value) };
    key
}

/// What depends on something, by rows of `pg_depend` that its index finds with these keys.
fn rows_by_reference(
    catalog: Relation<'_>,
    keys: &mut [pg_sys::ScanKeyData],
) -> Vec<(pg_sys::Oid, pg_sys::Oid)> {
    let (index, snapshot) = (BY_REFERENCE.into(), std::ptr::null_mut());
    let (count, keys) = (keys.len() as i32, keys.as_mut_ptr());
    let mut found = Vec::new();
    // SAFETY: the open catalog and an index of it; the keys are of its columns. A row, which begins
    // so, stays until the next one is read.
    unsafe {
        let scan = pg_sys::systable_beginscan(catalog.as_ptr(), index, true, snapshot, count, keys);
        while let Some(row) = pg_sys::systable_getnext(scan).as_mut() {
            let dependent = &*pg_sys::heap_tuple_get_struct::<Dependent>(row);
            found.push((dependent.class, dependent.object));
        }
        pg_sys::systable_endscan(scan);
    }
    found
}

/// Builds an index anew whose definition has another row type than the catalog. A dependency names
/// it, so it is there.
fn build_if_changed(index: pg_sys::Oid, types: &Objects) {
    // As core's REINDEX its table is locked before it, and as by one that may change rows.
    let exclusive = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
    catalog::lock(catalog::table_of(index), exclusive);
    let shared = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let is_changed = relation::with_index(index, shared, |opened| {
        let is_changed = has_other_row_type(opened, types);
        if is_changed {
            whose_index::refuse_other_methods(opened);
        }
        is_changed
    });
    if is_changed {
        // SAFETY: the index is there, and its table is locked.
        unsafe { version::rebuild_index(index) };
    }
}

/// Whether a key column's row type in the catalog is not that of the index's definition. Also,
/// whether the column has labels of values that hold one of these types. Values that differed may
/// be equal now, but their labels are not.
fn has_other_row_type(index: Relation<'_>, types: &Objects) -> bool {
    let is_computed = is_computed(index);
    let Some(definition) = storage::definition_of(index) else {
        return false;
    };
    let attributes = index.description().columns();
    let mut columns = definition.columns.iter().enumerate();
    columns.any(|(at, column)| match column.kind {
        KeyKind::Label => types.contains(&(pg_sys::TypeRelationId, attributes[at].atttypid)),
        kind if kind.record().is_some() => {
            IndexColumn::of(index, at).kind_in(is_computed) != Some(kind)
        }
        _ => false,
    })
}
