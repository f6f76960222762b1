//! Which tables `default_table_access_method = mot` means, and which tables cannot be
//! memory-optimized.
//!
//! - An extension's own tables stay heap tables, unless its script says USING mot. Its C code may
//!   write them by `heap_insert`, which asks no access method. So do tables that logical decoding
//!   reads as catalogs.
use crate::errors::refuse::unsupported;
use crate::index_am::access_method;
use crate::pg::{nodes, version};
use crate::storage;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char, c_int};

const SETTING: &CStr = c"default_table_access_method";
const HEAP: &CStr = c"heap";
/// A storage parameter of heap tables that logical decoding reads as catalogs.
const CATALOG_TABLE: &str = "user_catalog_table";

/// Whether tables without USING are memory-optimized in this session.
pub fn is_default() -> bool {
    // SAFETY: a setting's value, a NUL-terminated string.
    unsafe {
        let name = pg_sys::default_table_access_method;
        !name.is_null() && CStr::from_ptr(name) == storage::TABLE_METHOD
    }
}

/// CREATE TABLE is about to run. Raises for one that cannot be memory-optimized.
///
/// # Safety
/// A live node.
pub unsafe fn check_create_table(node: *mut pg_sys::CreateStmt) {
    // SAFETY: the caller's node.
    unsafe {
        let stmt = &*node;
        if stmt.partspec.is_null() && !has_method_from_parent(stmt) {
            check_options(stmt.accessMethod, stmt.options);
        }
    }
}

/// Whether CREATE TABLE may make a memory-optimized table. A partition may have the method of its
/// parent.
///
/// # Safety
/// A live node.
pub unsafe fn may_be_ours(node: *mut pg_sys::CreateStmt) -> bool {
    // SAFETY: the caller's node.
    unsafe {
        let stmt = &*node;
        is_ours(stmt.accessMethod) || stmt.accessMethod.is_null() && has_method_from_parent(stmt)
    }
}

/// Whether a statement's USING, NULL without one, makes a memory-optimized table.
///
/// # Safety
/// NULL, or a name of the statement.
pub unsafe fn is_ours(method: *const c_char) -> bool {
    // SAFETY: the caller's name.
    unsafe {
        if method.is_null() {
            is_default()
        } else {
            CStr::from_ptr(method) == storage::TABLE_METHOD
        }
    }
}

/// CREATE TABLE AS, SELECT INTO or CREATE MATERIALIZED VIEW is about to run. Raises for one that
/// cannot be memory-optimized.
///
/// # Safety
/// A live node.
pub unsafe fn check_create_table_as(node: *mut pg_sys::CreateTableAsStmt) {
    // SAFETY: the caller's node.
    unsafe {
        let into = &*(*node).into;
        check_options(into.accessMethod, into.options);
    }
}

/// Raises for a memory-optimized table that is to be a catalog of logical decoding.
unsafe fn check_options(method: *const c_char, options: *mut pg_sys::List) {
    // SAFETY: parts of a live statement (caller).
    unsafe {
        let is_known = storage::table_method() != pg_sys::InvalidOid;
        if is_ours(method) && is_known && sets_catalog_table(options) {
            refuse_catalog_table();
        }
    }
}

/// Whether a partition has its access method from its parent, which says USING (17 and later).
unsafe fn has_method_from_parent(stmt: &pg_sys::CreateStmt) -> bool {
    if !version::PARTITIONS_HAVE_METHODS || stmt.partbound.is_null() {
        return false;
    }
    // SAFETY: the names of a live statement's parents; a catalog look-up.
    unsafe {
        nodes::items::<pg_sys::RangeVar>(stmt.inhRelations)
            .into_iter()
            .map(|parent| crate::ddl::identity::lookup(parent))
            .any(|parent| access_method::of(parent) != pg_sys::InvalidOid)
    }
}

/// Whether storage parameters make a table a catalog for logical decoding.
///
/// # Safety
/// A live list of DefElem nodes.
pub unsafe fn sets_catalog_table(options: *mut pg_sys::List) -> bool {
    // SAFETY: the caller's list.
    unsafe {
        nodes::items::<pg_sys::DefElem>(options)
            .into_iter()
            .filter(|option| nodes::text((**option).defname) == CATALOG_TABLE)
            .any(|option| pg_sys::defGetBoolean(option))
    }
}

/// Raises for a table that logical decoding is to read as a catalog.
pub fn refuse_catalog_table() -> ! {
    unsupported(
        "memory-optimized tables cannot be catalogs of logical decoding",
        "Leave user_catalog_table out, or say USING heap.",
    )
}

/// Raises for a table that cannot become memory-optimized.
///
/// # Safety
/// The caller has locked the table.
pub unsafe fn refuse_change_to_ours(table: pg_sys::Oid) {
    // SAFETY: the table is opened and closed here; its options, if it has any, are those of tables.
    unsafe {
        let extension = pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, table);
        if extension != pg_sys::InvalidOid {
            unsupported(
                format!(
                    "table \"{}\" of an extension cannot be made memory-optimized",
                    nodes::text(pg_sys::get_rel_name(table))
                ),
                "Leave it a heap table: the extension may write it without asking its access method.",
            );
        }
        let opened = pg_sys::relation_open(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        let options = (*opened).rd_options.cast::<pg_sys::StdRdOptions>();
        let is_catalog = !options.is_null() && (*options).user_catalog_table;
        pg_sys::relation_close(opened, pg_sys::NoLock as pg_sys::LOCKMODE);
        if is_catalog {
            refuse_catalog_table();
        }
    }
}

/// Makes heap the default while an extension's script runs; what `restore` takes back. `None`: the
/// default is not ours.
pub fn heap_for_script() -> Option<c_int> {
    if !is_default() {
        return None;
    }
    Some(set(SETTING, HEAP))
}

/// Lets no parallel worker start for this statement; what `restore` takes back. What is changed in
/// the catalog for its time is explained in this process's memory alone.
pub fn no_workers() -> c_int {
    set(c"max_parallel_workers", c"0")
}

/// Gives a setting a value for this statement.
fn set(name: &CStr, value: &CStr) -> c_int {
    // SAFETY: core undoes the level with the (sub)transaction if the statement fails.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
        level
    }
}

/// Ends what `heap_for_script` or `no_workers` began.
pub fn restore(level: c_int) {
    // SAFETY: the level is the caller's own, and the innermost.
    unsafe { pg_sys::AtEOXact_GUC(true, level) };
}
