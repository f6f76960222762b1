//! Compiled statements: simple plans on one memory-optimized table, run without core's executor.
//!
//! README.md beside this file says which plans, why the result is the same, and what keeps a
//! compiled form true.
mod access;
mod arbiters;
mod cache;
mod change;
mod checks;
mod client;
mod computed;
mod conflict;
mod entry;
mod expression;
mod foreign_keys;
mod frame;
mod hooks;
mod index_lock;
mod insert;
mod mark;
mod nodes;
mod opened;
mod parent;
mod parent_check;
mod plain;
mod rights;
mod row_change;
mod select;
mod shape;
mod statement;
mod survey;
mod table_scans;
mod targets;
mod tree;
mod upsert;
mod watch;

pub use cache::refuse_other_hooks;

/// Installs the executor hooks while the server loads its libraries; a library loaded later has no
/// tables to serve.
pub fn init() {
    // SAFETY: a plain flag that the postmaster sets before it calls any _PG_init.
    if unsafe { pgrx::pg_sys::process_shared_preload_libraries_in_progress } {
        hooks::init();
        mark::init();
    }
}
