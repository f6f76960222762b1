//! The foreign-data wrapper `mot`: a name by which `CREATE FOREIGN TABLE` is spelled, and no more.
//!
//! A server of it has no foreign tables (`foreign_spelling`). A data directory of an earlier build
//! may: then its tables were foreign tables, and this build has no code for them. Whatever uses
//! one, or is to change its definition, raises 55000, and nothing is changed.
//!
//! The handlers answer without `shared_preload_libraries`.
use crate::errors;
use crate::pg::{catalog, text};
use pgrx::pg_sys;
use pgrx::prelude::*;
use pgrx::{Array, Internal};
use std::ffi::{CStr, c_void};

/// The handler's name as a symbol, which the catalog has.
const SYMBOL: &CStr = c"fdw_handler_wrapper";

#[pg_extern(sql = "
CREATE FUNCTION mot.fdw_handler() RETURNS fdw_handler
  STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION mot.fdw_handler() IS 'marks the foreign-data wrapper whose tables are memory-optimized tables';
")]
fn fdw_handler() -> Internal {
    errors::table_of_earlier_build()
}

/// The handler of the access method that indexes of foreign tables had. No SQL object of this build
/// calls it.
#[pg_extern(sql = false)]
fn index_handler(_call: pg_sys::FunctionCallInfo) -> Internal {
    errors::table_of_earlier_build()
}

#[pg_extern(sql = "
CREATE FUNCTION mot.fdw_validator(text[], oid) RETURNS void
  STRICT LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION mot.fdw_validator(text[], oid) IS 'checks options of memory-optimized tables: there are none';
")]
fn fdw_validator(options: Array<'_, &[u8]>, catalog: pg_sys::Oid) {
    // It is called for a table without options, too, if that is a foreign table: then the wrapper's
    // handler is not ours, or the library not preloaded.
    if catalog == pg_sys::ForeignTableRelationId {
        errors::unsupported(
            "foreign tables of the foreign-data wrapper of memory-optimized tables",
            "Preload the library mot, and give the wrapper its handler: ALTER FOREIGN DATA WRAPPER ... HANDLER \
             mot.fdw_handler.",
        );
    }
    if let Some(option) = options.iter().flatten().next() {
        let name = option.split(|byte| *byte == b'=').next();
        errors::invalid_option(&text::decode(name.unwrap_or_default()));
    }
}

extension_sql!(
    "
CREATE FOREIGN DATA WRAPPER mot HANDLER mot.fdw_handler VALIDATOR mot.fdw_validator;
CREATE SERVER mot FOREIGN DATA WRAPPER mot;
COMMENT ON SERVER mot IS 'memory-optimized tables: CREATE FOREIGN TABLE ... SERVER mot';
GRANT USAGE ON FOREIGN SERVER mot TO PUBLIC;
",
    name = "foreign_server",
    requires = [fdw_handler, fdw_validator]
);

/// Whether a foreign server is of a wrapper of ours, under whatever name.
pub fn is_our_server(server: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups; both return palloc'd structs, or null of what is gone.
    unsafe {
        let server = pg_sys::GetForeignServerExtended(server, pg_sys::FSV_MISSING_OK as u16);
        if server.is_null() {
            return false;
        }
        let missing_ok = pg_sys::FDW_MISSING_OK as u16;
        let wrapper = pg_sys::GetForeignDataWrapperExtended((*server).fdwid, missing_ok);
        !wrapper.is_null() && is_handler((*wrapper).fdwhandler)
    }
}

/// Whether a function is the handler above, under whatever name.
///
/// Only the library of what bears our symbol is loaded: that of another handler may be gone.
fn is_handler(function: pg_sys::Oid) -> bool {
    if catalog::function_source(function).is_none_or(|source| source != SYMBOL.to_bytes()) {
        return false;
    }
    let mut called = pg_sys::FmgrInfo::default();
    // SAFETY: a function that is there.
    unsafe { pg_sys::fmgr_info(function, &raw mut called) };
    called
        .fn_addr
        .is_some_and(|address| address as *const c_void == fdw_handler_wrapper as *const c_void)
}

/// Raises if a relation is a table of an earlier build, or an index of one.
pub fn refuse(relation: pg_sys::Oid) {
    if is_one(relation) {
        errors::table_of_earlier_build();
    }
}

/// Whether a relation is a table of an earlier build, or an index of one.
pub fn is_one(relation: pg_sys::Oid) -> bool {
    let table = match catalog::kind(relation) {
        pg_sys::RELKIND_FOREIGN_TABLE => relation,
        pg_sys::RELKIND_INDEX => catalog::table_if_any(relation),
        _ => return false,
    };
    catalog::kind(table) == pg_sys::RELKIND_FOREIGN_TABLE
        && catalog::server_of(table).is_some_and(is_our_server)
}
