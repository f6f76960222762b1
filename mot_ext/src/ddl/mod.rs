//! Definitions: from SQL statements to catalog rows and engine storage.
//!
//! | file | what it does |
//! |---|---|
//! | `utility` | the ProcessUtility hook and who handles which statement |
//! | `create_table`, `create_table_as` | CREATE FOREIGN TABLE, and CREATE TABLE [AS] under `mot.create_tables` |
//! | `made` | what a CREATE TABLE has made, and what it has found |
//! | `constraints` | takes PRIMARY KEY and UNIQUE out of definitions |
//! | `index`, `index_columns` | CREATE INDEX and the indexes behind constraints |
//! | `alter`, `rows`, `retype`, `ownership` | ALTER TABLE and what it must do to rows and indexes |
//! | `set_aside`, `starting_values` | what is dropped before core's part, and what is done after it |
//! | `domain` | ALTER DOMAIN: values in rows that a new constraint forbids |
//! | `partition` | ATTACH PARTITION and PARTITION OF: rows that the new bounds leave in the wrong place |
//! | `drop` | DROP and the object access hook |
//! | `database` | CREATE DATABASE and DROP DATABASE |
//! | `event_triggers` | event triggers of statements that core does not get |
//! | `preload` | refuses DDL where the library is not preloaded |
//! | `maintenance`, `lock`, `copy` | VACUUM, REINDEX, COMMENT; LOCK; COPY |
//! | `references` | refuses foreign keys that reference a memory-optimized table |
//! | `attached` | what triggers a table can have; no rules, policies, publications |
//! | `am` | the index access method and its operator classes |
//! | `definition`, `storage` | catalog rows to engine definitions, and every call that changes engine storage |
//! | `check` | `mot.check`, sizes, storages |
//! | `row_work` | statements over rows, without privileges, triggers and conditions |
//! | `latest` | queries under the latest snapshot, as core reads catalogs |
//! | `search_path` | whose operators the text of our own statements means |
//! | [`tables`] | tables of the access method `mot`: a room of its own |
//! | `identity`, `nodes`, `inheritance`, `refuse` | whose relation it is; parse trees; errors |
//!
//! The hooks are installed only when the library is preloaded; without it the handlers answer (so `\d` and pg_dump work), tables cannot
//! be used, and an event trigger of the extension refuses DDL.
// PostgreSQL names its enum values in its own way; they appear as patterns throughout.
#![allow(non_upper_case_globals)]

mod alter;
mod am;
mod attached;
mod check;
mod constraints;
mod copy;
mod create_table;
mod create_table_as;
pub mod database;
mod definition;
mod domain;
mod drop;
mod event_triggers;
mod identity;
mod index;
mod index_columns;
mod inheritance;
mod latest;
mod lock;
mod made;
mod maintenance;
mod nodes;
mod ownership;
mod partition;
mod preload;
mod references;
mod refuse;
mod retype;
mod row_work;
mod rows;
mod search_path;
mod set_aside;
mod starting_values;
mod storage;
pub mod tables;
mod utility;

pub use definition::index_definition;
#[cfg(debug_assertions)]
pub use identity::is_mot_table;
pub use storage::{duplicated, keep_from_older, materialize, truncate};

/// Installs the hooks; a line of `_PG_init`.
pub fn init() {
    // SAFETY: a plain flag that the postmaster sets before it calls any _PG_init.
    if unsafe { pgrx::pg_sys::process_shared_preload_libraries_in_progress } {
        utility::init();
        drop::init();
    }
}
