//! `mot`: memory-optimized tables inside an unmodified PostgreSQL.
//!
//! This crate is the glue: everything that names PostgreSQL lives here, everything that knows how rows and indexes lie in
//! memory lives in `mot_engine`. `_PG_init` below is the table of contents; each line is one mechanism with its own room.
//!
//! The library answers without `shared_preload_libraries` too (the access-method and wrapper handlers are called by `\d`,
//! `DROP` and `pg_dump`), but then nothing is mapped and touching a table raises 55000.
#![deny(ffi_unwind_calls)]
#![allow(clippy::missing_safety_doc)]

#[cfg(panic = "abort")]
compile_error!("PostgreSQL errors unwind through this library: build it with panic=unwind");

use pgrx::prelude::*;

mod clock;
mod compiled;
mod ddl;
mod errors;
mod executor;
mod fdw;
mod horizon;
mod index_am;
mod keys;
#[cfg(debug_assertions)]
mod pauses;
mod pg;
mod planner;
mod prepared_locks;
mod relation;
mod session;
mod settings;
mod shmem;
mod stats;
mod storage;
mod table_am;
mod test_switch;
mod wait;
mod wal;
mod warm;
mod workers;
mod xact;

::pgrx::pg_module_magic!();

#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    errors::init();
    settings::init();
    shmem::init();
    wal::init();
    workers::init();
    ddl::init();
    compiled::init();
    fdw::commit_order::init();
    planner::init();
    xact::init();
}
