//! `mot`: memory-optimized tables inside an unmodified PostgreSQL.
//!
//! This crate is the glue: everything that names PostgreSQL lives here, everything that knows how
//! rows and indexes lie in memory lives in `mot_engine`. `_PG_init` below is the table of contents;
//! each line is one mechanism with its own room. A room uses only those below it:
//! `core_suite/tests/rooms` has the order, ARCHITECTURE.md says what is in each.
//!
//! The library answers without `shared_preload_libraries` too (the access-method and wrapper
//! handlers are called by `\d`, `DROP` and `pg_dump`), but then nothing is mapped and touching a
//! table raises 55000.
#![deny(ffi_unwind_calls)]
#![allow(clippy::missing_safety_doc)]

#[cfg(panic = "abort")]
compile_error!("PostgreSQL errors unwind through this library: build it with panic=unwind");

use pgrx::prelude::*;

mod access;
mod checkpoint;
mod compiled;
mod ddl;
mod errors;
mod executor;
mod index_am;
mod keys;
mod monitoring;
mod pg;
mod plan_nodes;
mod planner;
mod reclaim;
mod recovery;
mod rows;
mod serializable;
mod shared_memory;
mod storage;
mod table_am;
mod transaction;
mod workers;

::pgrx::pg_module_magic!();

#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    errors::init();
    shared_memory::settings::init();
    shared_memory::init(shared_memory::Before {
        open: recovery::warm::open,
        follows_shutdown: recovery::warm::follows_shutdown,
    });
    keys::init();
    recovery::init();
    workers::init();
    ddl::init();
    compiled::init();
    serializable::commit_order::init();
    planner::init();
    transaction::init();
}
