//! Which tables `default_table_access_method = mot` means, and which tables cannot be
//! memory-optimized.
//!
//! - An extension's own tables stay heap tables, unless its script says USING mot. Its C code may
//!   write them by `heap_insert`, which asks no access method. So do tables that logical decoding
//!   reads as catalogs.
use crate::errors::refuse::unsupported;
use crate::pg::node::{List, Node};
use crate::pg::relation::{self, NO_LOCK};
use crate::pg::{catalog, version};
use crate::storage;
use pgrx::pg_sys;
use std::ffi::{CStr, c_int};

const SETTING: &CStr = c"default_table_access_method";
const HEAP: &CStr = c"heap";
/// A storage parameter of heap tables that logical decoding reads as catalogs.
const CATALOG_TABLE: &CStr = c"user_catalog_table";

/// Whether tables without USING are memory-optimized in this session.
pub fn is_default() -> bool {
    // SAFETY: a setting's value, a NUL-terminated string.
    unsafe {
        let name = pg_sys::default_table_access_method;
        !name.is_null() && CStr::from_ptr(name) == storage::TABLE_METHOD
    }
}

/// CREATE TABLE is about to run. Raises for one that cannot be memory-optimized.
pub fn check_create_table(node: Node<'_, pg_sys::CreateStmt>) {
    if !node.partspec() && !has_method_from_parent(node) {
        check_options(node.accessMethod().get(), node.options());
    }
}

/// Whether a statement's USING, if it has one, makes a memory-optimized table.
pub fn is_ours(method: Option<&CStr>) -> bool {
    match method {
        None => is_default(),
        Some(method) => method == storage::TABLE_METHOD,
    }
}

/// CREATE TABLE AS, SELECT INTO or CREATE MATERIALIZED VIEW is about to run. Raises for one that
/// cannot be memory-optimized.
pub fn check_create_table_as(node: Node<'_, pg_sys::CreateTableAsStmt>) {
    let made = node.made();
    check_options(made.accessMethod(), made.options());
}

/// Raises for a memory-optimized table that is to be a catalog of logical decoding.
fn check_options(method: Option<&CStr>, options: List<'_, pg_sys::DefElem>) {
    let is_known = storage::table_method() != pg_sys::InvalidOid;
    if is_ours(method) && is_known && sets_catalog_table(options) {
        refuse_catalog_table();
    }
}

/// Whether a partition has its access method from its parent, which says USING (17 and later).
fn has_method_from_parent(node: Node<'_, pg_sys::CreateStmt>) -> bool {
    version::PARTITIONS_HAVE_METHODS
        && node.partbound()
        && node
            .inhRelations()
            .iter()
            .map(crate::ddl::identity::lookup)
            .any(|parent| catalog::method_of(parent) != pg_sys::InvalidOid)
}

/// Whether storage parameters make a table a catalog for logical decoding.
pub fn sets_catalog_table(options: List<'_, pg_sys::DefElem>) -> bool {
    options
        .iter()
        .any(|option| option.is(CATALOG_TABLE) && option.is_true())
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
/// The caller has locked the table.
pub fn refuse_change_to_ours(table: pg_sys::Oid) {
    // SAFETY: a catalog look-up.
    let extension = unsafe { pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, table) };
    if extension != pg_sys::InvalidOid {
        let name = catalog::name(table).unwrap_or_default();
        unsupported(
            format!("table \"{name}\" of an extension cannot be made memory-optimized"),
            "Leave it a heap table: the extension may write it without asking its access method.",
        );
    }
    if relation::with(table, NO_LOCK, |opened| opened.is_catalog_table()) {
        refuse_catalog_table();
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
    let (name, value) = (name.as_ptr(), value.as_ptr());
    let (context, source) = (
        pg_sys::GucContext::PGC_USERSET,
        pg_sys::GucSource::PGC_S_SESSION,
    );
    let action = pg_sys::GucAction::GUC_ACTION_SAVE;
    // SAFETY: strings; core undoes the level with the (sub)transaction if the statement fails.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        pg_sys::set_config_option(name, value, context, source, action, true, 0, false);
        level
    }
}

/// Ends what `heap_for_script` or `no_workers` began.
pub fn restore(level: c_int) {
    // SAFETY: the level is the caller's own, and the innermost.
    unsafe { pg_sys::AtEOXact_GUC(true, level) };
}
