//! Definitions: collations, rights, columns, indexes.
use pgrx::pg_sys;
use std::ffi::c_void;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    /// Raises for an oid that is no collation, and for a locale that the machine does not have. The
    /// result lives as long as the process.
    fn pg_newlocale_from_collation(collation: pg_sys::Oid) -> *const c_void;
    /// Raises for an oid that is no collation.
    #[cfg(not(feature = "pg18"))]
    fn lc_ctype_is_c(collation: pg_sys::Oid) -> bool;
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
    _collate_is_c: bool,
    ctype_is_c: bool,
}

/// Whether `lower` changes the letters of ASCII alone under the database's default collation.
pub fn folds_ascii() -> bool {
    let collation = pg_sys::DEFAULT_COLLATION_OID;
    // SAFETY: one guarded call of a function without side effects but its cache, whose entries
    // stay.
    #[allow(ffi_unwind_calls)]
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_sys::ffi::pg_guard_ffi_boundary(|| lc_ctype_is_c(collation));
        #[cfg(feature = "pg18")]
        return (*pg_sys::ffi::pg_guard_ffi_boundary(|| pg_newlocale_from_collation(collation))
            .cast::<Locale>())
        .ctype_is_c;
    }
}

/// Has core open a collation's locale: it warns of another version than the catalog has, and raises
/// if the machine does not have it.
pub fn open_locale(collation: pg_sys::Oid) {
    // SAFETY: one guarded call of a function without side effects but its cache, whose entries
    // stay.
    #[allow(ffi_unwind_calls)]
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| pg_newlocale_from_collation(collation));
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

/// Raises unless the current user may make tables with a foreign server.
///
/// # Safety
/// A live server.
pub unsafe fn check_server_usage(server: *const pg_sys::ForeignServer) {
    // SAFETY: catalog look-ups of the caller's server; they may raise.
    unsafe {
        let (user, mode) = (pg_sys::GetUserId(), pg_sys::ACL_USAGE as pg_sys::AclMode);
        let oid = (*server).serverid;
        #[cfg(feature = "pg15")]
        let answer = pg_sys::pg_foreign_server_aclcheck(oid, user, mode);
        #[cfg(not(feature = "pg15"))]
        let answer = pg_sys::object_aclcheck(pg_sys::ForeignServerRelationId, oid, user, mode);
        if answer != pg_sys::AclResult::ACLCHECK_OK {
            let kind = pg_sys::ObjectType::OBJECT_FOREIGN_SERVER;
            pg_sys::aclcheck_error(answer, kind, (*server).servername);
        }
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

/// Whether a role may look names up in a schema.
pub fn may_use_schema(schema: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    let mode = pg_sys::ACL_USAGE as pg_sys::AclMode;
    // SAFETY: a catalog look-up; may raise.
    unsafe {
        #[cfg(feature = "pg15")]
        let answer = pg_sys::pg_namespace_aclcheck(schema, role, mode);
        #[cfg(not(feature = "pg15"))]
        let answer = pg_sys::object_aclcheck(pg_sys::NamespaceRelationId, schema, role, mode);
        answer == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// The attributes of a row type, `natts` of them one behind the other.
pub unsafe fn attributes(descriptor: pg_sys::TupleDesc) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: a live descriptor; since 18 the attributes follow their compact forms, of which there
    // are as many.
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

/// Whether the catalog promises that no row has NULL in a column. Since 18 a NOT NULL constraint
/// may be one that old rows were not checked by.
pub unsafe fn promises_no_null(descriptor: pg_sys::TupleDesc, position: usize) -> bool {
    // SAFETY: a live descriptor with an attribute at this position (caller); the compact forms are
    // as many as the attributes.
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

/// Whether some column of a table with these constraints is computed, when its rows are written or
/// (since 18) when they are read.
pub fn has_generated_columns(constraints: &pg_sys::TupleConstr) -> bool {
    #[cfg(feature = "pg18")]
    if constraints.has_generated_virtual {
        return true;
    }
    constraints.has_generated_stored
}

/// Whether a CHECK condition is enforced.
pub fn is_enforced(_check: &pg_sys::ConstrCheck) -> bool {
    #[cfg(not(feature = "pg18"))]
    return true;
    #[cfg(feature = "pg18")]
    return _check.ccenforced;
}

/// Whether a partitioned table has an access method, which its new partitions get (since 17).
pub const PARTITIONS_HAVE_METHODS: bool = cfg!(any(feature = "pg17", feature = "pg18"));

/// Whether a subcommand of ALTER TABLE gives a generated column another expression (since 17).
pub fn changes_generated_column(_subtype: pg_sys::AlterTableType::Type) -> bool {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    return false;
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    return _subtype == pg_sys::AlterTableType::AT_SetExpression;
}
