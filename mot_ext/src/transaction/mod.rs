//! The engine's transaction beside PostgreSQL's, and this process's part in the engine.
//!
//! | file | what |
//! |---|---|
//! | `xact` | the callbacks at the ends of transactions and subtransactions |
//! | `session` | this process's session with the engine |
//! | `clock`, `applied` | transaction ids and snapshots; a standby's reader waits for replay |
//! | [`horizon`] | published snapshots, and which outcomes may still be asked for |
//! | [`wait`] | waiting for a row, as heapam waits |
//! | `label_locks` | the locks under which values get their labels |
//! | `wal_log` | records of the transaction in PostgreSQL's WAL |
//! | `relation` | the process's cache of storages, which an abort empties |
//! | `dropped_database` | storages that go with a database, at its transaction's PRE_COMMIT |
//! | `temporary_drops` | ON COMMIT DROP ahead of core, before changes are logged |
//! | `unconfirmed` | rows that are in place, and neither confirmed nor taken back |
//! | `wake` | ends the reclaimer's long sleep |
//! | `pauses` | where tests stop processes |
//!
//! Everything that reads or writes rows is above this room, and calls it.
pub mod applied;
pub mod clock;
pub mod dropped_database;
pub mod horizon;
pub mod label_locks;
#[cfg(debug_assertions)]
pub mod pauses;
pub mod relation;
pub mod session;
pub mod temporary_drops;
pub mod unconfirmed;
pub mod wait;
mod wake;
pub mod wal_log;
pub mod xact;

/// Registers what ends with a transaction; a line of `_PG_init`.
pub fn init() {
    xact::init();
}
