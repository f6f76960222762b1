//! Definitions: collations, rights, columns, indexes.
use pgrx::pg_sys;
use std::ffi::c_int;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    /// Raises for an oid that is no collation.
    #[cfg(not(feature = "pg18"))]
    fn lc_collate_is_c(collation: pg_sys::Oid) -> bool;
    /// As above. The result lives as long as the process.
    #[cfg(feature = "pg18")]
    fn pg_newlocale_from_collation(collation: pg_sys::Oid) -> *const Locale;
    /// Raises; makes nothing where there is one, or none is needed.
    fn AlterTableCreateToastTable(
        table: pg_sys::Oid,
        options: pg_sys::Datum,
        lock: pg_sys::LOCKMODE,
    );
}

/// How `struct pg_locale_struct` of `utils/pg_locale.h` begins.
#[cfg(feature = "pg18")]
#[repr(C)]
struct Locale {
    _provider: std::ffi::c_char,
    _deterministic: bool,
    collate_is_c: bool,
}

/// Whether a collation orders by bytes; raises for an oid that is no collation.
pub fn orders_by_bytes(collation: pg_sys::Oid) -> bool {
    // SAFETY: one guarded call of a function without side effects but its cache, whose entries stay.
    #[allow(ffi_unwind_calls)]
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_sys::ffi::pg_guard_ffi_boundary(|| lc_collate_is_c(collation));
        #[cfg(feature = "pg18")]
        return (*pg_sys::ffi::pg_guard_ffi_boundary(|| pg_newlocale_from_collation(collation)))
            .collate_is_c;
    }
}

/// Gives a heap table that the caller has locked exclusively the TOAST table that it needs.
pub unsafe fn make_toast_table(table: pg_sys::Oid) {
    let lock = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: one guarded call; the table is there (caller).
    #[allow(ffi_unwind_calls)]
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            AlterTableCreateToastTable(table, pg_sys::Datum::from(0), lock)
        });
    }
}

/// A callback of RangeVarGetRelidExtended: raises unless the user may refresh the materialized
/// view.
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn may_refresh(
    relation: *const pg_sys::RangeVar,
    relid: pg_sys::Oid,
    old_relid: pg_sys::Oid,
    argument: *mut std::ffi::c_void,
) {
    // SAFETY: core's own callback with core's own arguments.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        pg_sys::RangeVarCallbackOwnsTable(relation, relid, old_relid, argument);
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        pg_sys::RangeVarCallbackMaintainsTable(relation, relid, old_relid, argument);
    }
}

/// The subtransaction that gave an open relation the first of its new files in this transaction.
pub unsafe fn first_file_subtransaction(relation: pg_sys::Relation) -> pg_sys::SubTransactionId {
    // SAFETY: an open relation (caller).
    unsafe {
        #[cfg(feature = "pg15")]
        return (*relation).rd_firstRelfilenodeSubid;
        #[cfg(not(feature = "pg15"))]
        return (*relation).rd_firstRelfilelocatorSubid;
    }
}

/// Builds an index anew, in a new file.
pub unsafe fn rebuild_index(index: pg_sys::Oid) {
    let mut params = pg_sys::ReindexParams {
        options: 0,
        tablespaceOid: pg_sys::InvalidOid,
    };
    // SAFETY: the index is there, and its table is locked (caller); may raise.
    unsafe {
        let persistence = pg_sys::get_rel_persistence(index);
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        pg_sys::reindex_index(index, false, persistence, &raw mut params);
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        pg_sys::reindex_index(std::ptr::null(), index, false, persistence, &raw mut params);
    }
}

/// Whether the current user owns a table.
pub fn owns_class(relid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up; may raise.
    unsafe {
        let user = pg_sys::GetUserId();
        #[cfg(feature = "pg15")]
        return pg_sys::pg_class_ownercheck(relid, user);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::RelationRelationId, relid, user);
    }
}

/// Whether the current user owns the database.
pub fn owns_database() -> bool {
    // SAFETY: a catalog look-up; may raise.
    unsafe {
        let (database, user) = (pg_sys::MyDatabaseId, pg_sys::GetUserId());
        #[cfg(feature = "pg15")]
        return pg_sys::pg_database_ownercheck(database, user);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::DatabaseRelationId, database, user);
    }
}

/// Whether the current user may run ANALYZE and the like on a table: its owner, and since 17 who has MAINTAIN.
pub fn may_maintain(relid: pg_sys::Oid) -> bool {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    return owns_class(relid);
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: a catalog look-up; may raise.
    unsafe {
        let wanted = pg_sys::ACL_MAINTAIN as pg_sys::AclMode;
        pg_sys::pg_class_aclcheck(relid, pg_sys::GetUserId(), wanted)
            == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// The privileges of which one is enough for LOCK TABLE in a mode.
pub fn lock_privileges(mode: pg_sys::LOCKMODE) -> pg_sys::AclMode {
    let writes = pg_sys::ACL_UPDATE | pg_sys::ACL_DELETE | pg_sys::ACL_TRUNCATE;
    let mode = mode as u32;
    #[cfg(feature = "pg15")]
    let wanted = match mode {
        pg_sys::AccessShareLock => pg_sys::ACL_SELECT,
        pg_sys::RowExclusiveLock => pg_sys::ACL_INSERT | writes,
        _ => writes,
    };
    #[cfg(not(feature = "pg15"))]
    let wanted = {
        let mut wanted = writes;
        #[cfg(not(feature = "pg16"))]
        {
            wanted |= pg_sys::ACL_MAINTAIN;
        }
        if mode <= pg_sys::AccessShareLock {
            wanted |= pg_sys::ACL_SELECT;
        }
        if mode <= pg_sys::RowExclusiveLock {
            wanted |= pg_sys::ACL_INSERT;
        }
        wanted
    };
    wanted as pg_sys::AclMode
}

/// Whether the current user may create objects in a schema.
pub fn may_create_in(namespace: pg_sys::Oid) -> pg_sys::AclResult::Type {
    // SAFETY: a catalog look-up; may raise.
    unsafe {
        let (user, mode) = (pg_sys::GetUserId(), pg_sys::ACL_CREATE as pg_sys::AclMode);
        #[cfg(feature = "pg15")]
        return pg_sys::pg_namespace_aclcheck(namespace, user, mode);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_aclcheck(pg_sys::NamespaceRelationId, namespace, user, mode);
    }
}

/// Whether a user may call a function.
pub fn may_execute(function: pg_sys::Oid, user: pg_sys::Oid) -> pg_sys::AclResult::Type {
    let mode = pg_sys::ACL_EXECUTE as pg_sys::AclMode;
    // SAFETY: a catalog look-up; may raise.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_proc_aclcheck(function, user, mode);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, user, mode);
    }
}

/// The attributes of a row type, `natts` of them one behind the other.
pub unsafe fn attributes(descriptor: pg_sys::TupleDesc) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: a live descriptor; since 18 the attributes follow their compact forms, of which there are as many.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (*descriptor).attrs.as_ptr();
        #[cfg(feature = "pg18")]
        return (&raw const (*descriptor).compact_attrs)
            .cast::<pg_sys::CompactAttribute>()
            .add((*descriptor).natts as usize)
            .cast();
    }
}

/// Whether the catalog promises that no row has NULL in a column. Since 18 a NOT NULL constraint may be one that old rows were not judged by.
pub unsafe fn promises_no_null(descriptor: pg_sys::TupleDesc, position: usize) -> bool {
    // SAFETY: a live descriptor with an attribute at this position (caller); the compact forms are as many as the attributes.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (*attributes(descriptor).add(position)).attnotnull;
        #[cfg(feature = "pg18")]
        return (*(&raw const (*descriptor).compact_attrs)
            .cast::<pg_sys::CompactAttribute>()
            .add(position))
        .attnullability as u8
            == pg_sys::ATTNULLABLE_VALID;
    }
}

/// Whether some column of a table with these constraints is computed, when its rows are written or (since 18) when they are read.
pub fn has_generated_columns(constraints: &pg_sys::TupleConstr) -> bool {
    #[cfg(feature = "pg18")]
    if constraints.has_generated_virtual {
        return true;
    }
    constraints.has_generated_stored
}

/// Whether a column is computed when its row is read (since 18): its place in the row is NULL.
pub fn is_virtual(column: &pg_sys::FormData_pg_attribute) -> bool {
    /// `catalog/pg_attribute.h`, from 18 on.
    const VIRTUAL: u8 = b'v';
    column.attgenerated as u8 == VIRTUAL
}

/// Whether a CHECK condition is enforced.
pub fn is_enforced(_check: &pg_sys::ConstrCheck) -> bool {
    #[cfg(not(feature = "pg18"))]
    return true;
    #[cfg(feature = "pg18")]
    return _check.ccenforced;
}

/// Whether a key says WITHOUT OVERLAPS, which no version before 18 can.
pub fn is_temporal(_key: &pg_sys::Constraint) -> bool {
    #[cfg(not(feature = "pg18"))]
    return false;
    #[cfg(feature = "pg18")]
    return _key.without_overlaps;
}

/// Makes a column NOT NULL in a table definition, as core does for those of a primary key. Since 18 that takes a constraint among the
/// definition's elements, which core merges with what else is said of the column: it is returned.
pub unsafe fn make_not_null(column: *mut pg_sys::ColumnDef) -> Option<*mut pg_sys::Node> {
    // SAFETY: a live node of the caller's own.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        {
            (*column).is_not_null = true;
            None
        }
        #[cfg(feature = "pg18")]
        {
            let name = pg_sys::makeString((*column).colname);
            Some(pg_sys::makeNotNullConstraint(name.cast()).cast())
        }
    }
}

/// Whether a subcommand of ALTER TABLE gives a generated column another expression (since 17).
pub fn changes_generated_column(_subtype: pg_sys::AlterTableType::Type) -> bool {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    return false;
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    return _subtype == pg_sys::AlterTableType::AT_SetExpression;
}

/// The constraint that ALTER CONSTRAINT names.
pub unsafe fn altered_constraint(command: &pg_sys::AlterTableCmd) -> *const std::ffi::c_char {
    // SAFETY: the definition of a live command of this kind.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (*command.def.cast::<pg_sys::Constraint>()).conname;
        #[cfg(feature = "pg18")]
        return (*command.def.cast::<pg_sys::ATAlterConstraint>()).conname;
    }
}

/// The description of an index on plain columns that is valid from the begin.
pub unsafe fn make_index_info(
    keys: usize,
    am: pg_sys::Oid,
    is_unique: bool,
    are_nulls_equal: bool,
) -> *mut pg_sys::IndexInfo {
    let none = std::ptr::null_mut();
    let keys = keys as c_int;
    // SAFETY: plain values; no expressions, no predicate.
    unsafe {
        pg_sys::makeIndexInfo(
            keys,
            keys,
            am,
            none,
            none,
            is_unique,
            are_nulls_equal,
            true,
            false,
            // `summarizing`, then `withoutoverlaps`.
            #[cfg(not(feature = "pg15"))]
            false,
            #[cfg(feature = "pg18")]
            false,
        )
    }
}

/// What [`create_index`] needs; the arrays have a value per key.
pub struct NewIndex<'a> {
    pub table: pg_sys::Relation,
    pub name: *const std::ffi::c_char,
    pub info: *mut pg_sys::IndexInfo,
    pub columns: *mut pg_sys::List,
    pub am: pg_sys::Oid,
    pub collations: &'a mut [pg_sys::Oid],
    pub classes: &'a mut [pg_sys::Oid],
    pub options: &'a mut [i16],
    pub flags: u32,
}

/// Makes the catalog entries of an index; invalid if there is one of the name and that is no error.
pub unsafe fn create_index(new: NewIndex<'_>) -> pg_sys::Oid {
    let none = pg_sys::InvalidOid;
    let mut constraint = pg_sys::InvalidOid;
    // SAFETY: an open, locked table and arrays of the right length (caller); may raise.
    unsafe {
        pg_sys::index_create(
            new.table,
            new.name,
            none,
            none,
            none,
            none,
            new.info,
            new.columns,
            new.am,
            none,
            new.collations.as_mut_ptr(),
            new.classes.as_mut_ptr(),
            #[cfg(any(feature = "pg17", feature = "pg18"))]
            std::ptr::null(),
            new.options.as_mut_ptr(),
            #[cfg(any(feature = "pg17", feature = "pg18"))]
            std::ptr::null(),
            pg_sys::Datum::from(0),
            new.flags as pg_sys::bits16,
            0,
            false,
            false,
            &raw mut constraint,
        )
    }
}

/// Tells the planner what the strategies of our operator classes mean, which are those of btree: 18 does not take them for granted, and
/// without it no path is known to be sorted.
#[cfg_attr(not(feature = "pg18"), allow(unused_variables))]
pub unsafe fn set_order(am: *mut pg_sys::IndexAmRoutine) {
    #[cfg(feature = "pg18")]
    // SAFETY: a fresh node of the caller's.
    unsafe {
        (*am).amtranslatestrategy = Some(order::of_strategy);
        (*am).amtranslatecmptype = Some(order::strategy_of);
    }
}

/// `CompareType` numbers "less" to "greater" as btree numbers its strategies.
///
/// "Equal" is answered in one direction only. The families of all access methods that know their `=` as one count for what a join by it may be
/// merged with, and values of two types are put into one equivalence only where those are the same: ours hold one type each where btree's hold
/// several, so heap tables, too, would be joined without (`fdw/relation_info.rs`).
#[cfg(feature = "pg18")]
mod order {
    use pgrx::pg_sys::{CompareType, Oid, StrategyNumber};

    pub unsafe extern "C-unwind" fn of_strategy(
        strategy: StrategyNumber,
        _family: Oid,
    ) -> CompareType::Type {
        match strategy {
            1 | 2 | 4 | 5 => CompareType::Type::from(strategy),
            _ => CompareType::COMPARE_INVALID,
        }
    }

    pub unsafe extern "C-unwind" fn strategy_of(
        kind: CompareType::Type,
        _family: Oid,
    ) -> StrategyNumber {
        match kind {
            CompareType::COMPARE_LT..=CompareType::COMPARE_GT => kind as StrategyNumber,
            _ => 0,
        }
    }
}
