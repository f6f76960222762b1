//! Definitions: what core's DDL cannot know of memory-optimized tables.
//!
//! | file | what it does |
//! |---|---|
//! | `utility` | the ProcessUtility hook and which code handles which statement |
//! | `object_access` | the object access hook: what was made, and what is dropped |
//! | [`tables`] | tables of the access method `mot`: a room of its own |
//! | `foreign_spelling` | FOREIGN TABLE in a statement means a table of the access method |
//! | `earlier_build` | the foreign-data wrapper, and foreign tables of an earlier build |
//! | `access_methods` | no other access method has our handlers |
//! | `database` | CREATE DATABASE and DROP DATABASE |
//! | `preload` | refuses DDL where the library is not preloaded |
//! | `catalog_query` | queries under the latest snapshot, as core reads catalogs |
//! | `identity`, `inheritance` | what names mean; whose columns a statement changes |
//!
//! The hooks are installed only when the library is preloaded; without it the handlers answer (so
//! `\d` and pg_dump work), tables cannot be used, and an event trigger of the extension refuses
//! DDL.
// PostgreSQL names its enum values in its own way; they appear as patterns throughout.
#![allow(non_upper_case_globals)]

mod access_methods;
mod catalog_query;
mod database;
mod earlier_build;
mod foreign_spelling;
mod identity;
mod inheritance;
mod object_access;
mod preload;
mod tables;
mod utility;

/// Installs the hooks; a line of `_PG_init`.
pub fn init() {
    // SAFETY: a plain flag that the postmaster sets before it calls any _PG_init.
    if unsafe { pgrx::pg_sys::process_shared_preload_libraries_in_progress } {
        utility::init();
        object_access::init();
    }
}
