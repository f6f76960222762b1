//! `mot`: memory-optimized tables inside an unmodified PostgreSQL.
//!
//! Everything that names PostgreSQL is in this crate. Everything that knows how rows and indexes
//! lie in memory is in `mot_engine`. Each directory here, or file beside this one, is a *room*,
//! which uses only those below it. `core_suite/tests/rooms` has the order, and ARCHITECTURE.md says
//! what is in each. `_PG_init` below starts those that have something to register.
//!
//! Handlers of the access methods and of the foreign-data wrapper also answer without
//! `shared_preload_libraries`, because `\d`, DROP and pg_dump call them. Then nothing is mapped,
//! and using a table raises 55000.
//!
//! # One INSERT, from its plan to its redo
//!
//! Paths are of this crate's rooms, or, with `engine`, of `mot_engine/src`.
//!
//! 1. Core's ModifyTable calls `tuple_insert`: `table_am::insert`. A plan that is compiled runs in
//!    `compiled::insert` instead.
//! 2. `table_am::target` forms the tuple; `storage::computed_keys` adds the tail with its computed
//!    keys.
//! 3. `rows::insert` (`Target::place`; compiled: `Target::insert`) calls the engine. Where that
//!    answers `Busy` it waits (`transaction::wait`) and enters again. `rows::write` raises 23505
//!    for a duplicate key (`Target::duplicate`).
//! 4. engine `transaction/insert.rs` takes a row id, writes the version into the arena and puts it
//!    on the row's anchor. engine `transaction/enter.rs` makes the index entries and checks
//!    uniqueness (`index/entry/together.rs`, `enter.rs`).
//! 5. Core calls `aminsert` for each index: `index_am::handler`. The entry is there, so it does
//!    nothing, except for keys that core checks itself.
//! 6. PRE_COMMIT: `transaction::xact` calls engine `transaction/log.rs`, which finds the
//!    transaction's rows and makes records of them (`log/write.rs`). `transaction::wal_log`
//!    inserts the records into the WAL. Core's commit record follows. Core flushes it, notes the
//!    commit in the commit log, and waits for synchronous standbys.
//! 7. COMMIT: engine `transaction/commit.rs` sets COMMITTED in the versions.
//! 8. Redo: `recovery::rmgr` receives each record, and `recovery::replay` gives it to engine
//!    `recovery/parallel.rs`. That applies it, or hands it to replay workers
//!    (`recovery/workers.rs`).
//! 9. engine `recovery/replay.rs` puts the version on its row, makes the entries
//!    (`recovery/replay/row.rs`, `ReplayedRow`) and stores the record's LSN in the anchor.
//! 10. Redo learns no outcome. Readers and the sweeper ask the commit log (engine `row/chain.rs`,
//!     `resolve_maker`).
//! 11. A start after a crash first loads the newest checkpoint and reads the gap behind it
//!     (`recovery::load`). Then it replays as in 8. At the end `finish_after_replay` takes out
//!     what did not commit.
#![deny(ffi_unwind_calls)]
#![allow(clippy::missing_safety_doc)]

#[cfg(panic = "abort")]
compile_error!("PostgreSQL errors unwind through this library: build it with panic=unwind");

use pgrx::prelude::*;

mod access;
mod checkpoint;
mod compiled;
mod ddl;
mod decoding;
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
mod upgrade;
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
