//! Look-ups in the catalog, and locks of relations: each a guarded call, in a transaction.
use super::text;
use pgrx::pg_sys::{self, LOCKMODE, Oid};
use std::ffi::{CStr, CString};

/// Columns of `pg_range` (`catalog/pg_range.h`).
const RANGE_COLLATION: pg_sys::AttrNumber = 4;
const RANGE_SUBTYPE_CLASS: pg_sys::AttrNumber = 5;

/// Columns of `pg_aggregate` (`catalog/pg_aggregate.h`).
const TRANSITION: pg_sys::AttrNumber = 4;
const FINAL: pg_sys::AttrNumber = 5;

/// The kind of a relation; 0: it is gone.
pub fn kind(relation: Oid) -> u8 {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_rel_relkind(relation) as u8 }
}

/// Whether a relation is a partitioned table.
pub fn is_partitioned(relation: Oid) -> bool {
    kind(relation) == pg_sys::RELKIND_PARTITIONED_TABLE
}

/// A relation's name; `None`: it is gone.
pub fn name(relation: Oid) -> Option<String> {
    // SAFETY: a catalog look-up, which gives a string or NULL.
    unsafe {
        let name = pg_sys::get_rel_name(relation);
        (!name.is_null()).then(|| text::from_c(name))
    }
}

/// The relation of a name in a schema; invalid: there is none.
pub fn find(schema: Oid, name: &CStr) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) }
}

/// A relation's row type; invalid: it has none, or is gone.
pub fn row_type(relation: Oid) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_rel_type_id(relation) }
}

/// An index's table. Raises if the index is gone.
pub fn table_of(index: Oid) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::IndexGetRelation(index, false) }
}

/// An index's table; invalid: the index is gone.
pub fn table_if_any(index: Oid) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::IndexGetRelation(index, true) }
}

/// The constraint whose index this is; invalid: it is of none.
pub fn constraint_of(index: Oid) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_index_constraint(index) }
}

/// A relation's schema.
pub fn schema_of(relation: Oid) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_rel_namespace(relation) }
}

/// A schema's name; `None`: it is gone.
pub fn schema_name(schema: Oid) -> Option<CString> {
    // SAFETY: a catalog look-up, which gives a string or NULL.
    unsafe {
        let name = pg_sys::get_namespace_name(schema);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_owned())
    }
}

/// Whether a relation is a partition, or an index of one that is attached to its parent's.
pub fn is_partition(relation: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_rel_relispartition(relation) }
}

/// The text of a function, of one in C its symbol, in the database's encoding; `None`: it is gone,
/// or has none.
pub fn function_source(function: Oid) -> Option<Vec<u8>> {
    let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
    let column = pg_sys::Anum_pg_proc_prosrc as i16;
    let mut is_null = false;
    let source = read(cache, function, |row| {
        // SAFETY: a row of this cache, whose column is a text.
        unsafe {
            let source = pg_sys::SysCacheGetAttr(cache, row, column, &raw mut is_null);
            (!is_null).then(|| {
                let text = pg_sys::text_to_cstring(source.cast_mut_ptr());
                let copy = CStr::from_ptr(text).to_bytes().to_owned();
                pg_sys::pfree(text.cast());
                copy
            })
        }
    });
    source.flatten()
}

/// What `pg_proc` says of a function.
pub struct Function {
    /// Its language.
    pub language: Oid,
    /// It gives sets.
    pub gives_sets: bool,
    /// What it may do in a parallel query.
    pub parallel: u8,
    /// Its rights are those of a new function: everybody may call it.
    pub is_unrestricted: bool,
}

/// A function's row of `pg_proc`; `None`: it is gone.
pub fn function(oid: Oid) -> Option<Function> {
    let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
    let column = pg_sys::Anum_pg_proc_proacl as i16;
    read(cache, oid, |row| {
        let mut is_unrestricted = false;
        // SAFETY: a row of this catalog.
        let form = unsafe {
            pg_sys::SysCacheGetAttr(cache, row, column, &raw mut is_unrestricted);
            &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_proc>(row)
        };
        Function {
            language: form.prolang,
            gives_sets: form.proretset,
            parallel: form.proparallel as u8,
            is_unrestricted,
        }
    })
}

/// The function of an operator; invalid: the operator is gone.
pub fn operator_function(operator: Oid) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_opcode(operator) }
}

/// Whether values of one type are values of another one, too, without a function.
pub fn is_binary_coercible(from: Oid, to: Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::IsBinaryCoercible(from, to) }
}

/// Whether a role has a right on a relation.
pub fn may(relation: Oid, role: Oid, right: u32) -> bool {
    // SAFETY: a catalog look-up, which may raise.
    let answer = unsafe { pg_sys::pg_class_aclcheck(relation, role, right as pg_sys::AclMode) };
    answer == pg_sys::AclResult::ACLCHECK_OK
}

/// The type of an array type's elements; invalid: it is none.
pub fn element_type(array: Oid) -> Oid {
    // SAFETY: a catalog look-up.
    unsafe { pg_sys::get_element_type(array) }
}

/// The server of a foreign table; `None`: it is none.
pub fn server_of(table: Oid) -> Option<Oid> {
    let cache = pg_sys::SysCacheIdentifier::FOREIGNTABLEREL as i32;
    read(cache, table, |row| {
        // SAFETY: a row of this catalog.
        unsafe {
            (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_foreign_table>(row)).ftserver
        }
    })
}

/// The function that gives an access method's routine; `None`: there is no such method.
pub fn handler_of(method: Oid) -> Option<Oid> {
    read(pg_sys::SysCacheIdentifier::AMOID as i32, method, |row| {
        // SAFETY: a row of this catalog.
        unsafe { (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_am>(row)).amhandler }
    })
}

/// The access method of a relation; invalid: it has none, or is gone.
pub fn method_of(relation: Oid) -> Oid {
    let method = read(pg_sys::SysCacheIdentifier::RELOID as i32, relation, |row| {
        // SAFETY: a row of this catalog.
        unsafe { (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_class>(row)).relam }
    });
    method.unwrap_or(pg_sys::InvalidOid)
}

/// The owner of a function; `None`: it is gone.
pub fn owner_of_function(function: Oid) -> Option<Oid> {
    read(
        pg_sys::SysCacheIdentifier::PROCOID as i32,
        function,
        |row| {
            // SAFETY: a row of this catalog.
            unsafe { (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_proc>(row)).proowner }
        },
    )
}

/// The transition function and the final function of an aggregate; invalid: there is none.
pub fn functions_of_aggregate(aggregate: Oid) -> [Oid; 2] {
    let cache = pg_sys::SysCacheIdentifier::AGGFNOID as i32;
    let functions = read(cache, aggregate, |row| {
        // SAFETY: a row of this cache, whose columns are never NULL.
        [TRANSITION, FINAL].map(|column| unsafe { oid_of(cache, row, column) })
    });
    functions.unwrap_or([pg_sys::InvalidOid; 2])
}

/// The operator class and the collation by which a range type compares its bounds; `None`: it is
/// gone.
pub fn range(range: Oid) -> Option<(Oid, Oid)> {
    let cache = pg_sys::SysCacheIdentifier::RANGETYPE as i32;
    read(cache, range, |row| {
        // SAFETY: a row of this cache, whose columns are never NULL.
        let oid = |column| unsafe { oid_of(cache, row, column) };
        (oid(RANGE_SUBTYPE_CLASS), oid(RANGE_COLLATION))
    })
}

/// A column of a cache's row.
///
/// # Safety
/// The row is the cache's, and held. The column has an oid, and is not NULL.
unsafe fn oid_of(cache: i32, row: pg_sys::HeapTuple, column: pg_sys::AttrNumber) -> Oid {
    let mut is_null = false;
    // SAFETY: the caller's row.
    let value = unsafe { pg_sys::SysCacheGetAttr(cache, row, column, &raw mut is_null) };
    Oid::from(value.value() as u32)
}

/// What ANALYZE has found of a column's values.
#[derive(Clone, Copy)]
pub struct ColumnStatistics {
    /// How many there are; 0: unknown. If negative: the part of the number of rows.
    pub distinct: f64,
    /// The part of the rows that have NULL.
    pub nulls: f64,
}

/// The statistics of a column of a table, without those of its children; `None`: there are none.
pub fn statistics(table: Oid, column: i16) -> Option<ColumnStatistics> {
    // SAFETY: a cache by table, column and whether children count.
    let row = unsafe {
        pg_sys::SearchSysCache3(
            pg_sys::SysCacheIdentifier::STATRELATTINH as i32,
            pg_sys::Datum::from(table),
            pg_sys::Datum::from(column),
            pg_sys::Datum::from(false),
        )
    };
    read_found(row, |row| {
        // SAFETY: a row of this catalog, which begins with these fields.
        let found =
            unsafe { &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_statistic>(row) };
        ColumnStatistics {
            distinct: f64::from(found.stadistinct),
            nulls: f64::from(found.stanullfrac),
        }
    })
}

/// Reads the row that a cache has of an object; `None`: there is none.
fn read<T>(cache: i32, object: Oid, read: impl FnOnce(pg_sys::HeapTuple) -> T) -> Option<T> {
    // SAFETY: a cache by oid.
    read_found(
        unsafe { pg_sys::SearchSysCache1(cache, object.into()) },
        read,
    )
}

/// Reads the row that a cache was asked for; `None`: there is none. The row goes when `read`
/// returns, or by core after an error.
fn read_found<T>(row: pg_sys::HeapTuple, read: impl FnOnce(pg_sys::HeapTuple) -> T) -> Option<T> {
    if row.is_null() {
        return None;
    }
    let found = read(row);
    // SAFETY: the row from above.
    unsafe { pg_sys::ReleaseSysCache(row) };
    Some(found)
}

/// Locks a relation to the end of the transaction.
pub fn lock(relation: Oid, mode: LOCKMODE) {
    // SAFETY: a lock of the lock manager's.
    unsafe { pg_sys::LockRelationOid(relation, mode) };
}

/// The same, if no other session is in the way; whether it is locked.
pub fn lock_if_free(relation: Oid, mode: LOCKMODE) -> bool {
    // SAFETY: a lock of the lock manager's.
    unsafe { pg_sys::ConditionalLockRelationOid(relation, mode) }
}

/// Makes what this transaction has done to the catalog visible to what follows.
pub fn make_changes_visible() {
    // SAFETY: in a transaction.
    unsafe { pg_sys::CommandCounterIncrement() };
}
