//! Storages of databases that are no more: found at the start, and freed.
//!
//! A server on which the library is not preloaded has no hook of ours, and nothing can refuse DROP
//! DATABASE there (`ddl::preload`): the tables' storages stay. The next start with the library
//! loads them again, and no statement could ever drop them. So once in each start as a primary
//!
//! 1. the checkpoint worker, which knows no catalog, looks for databases with storages that have no
//!    directory in the default tablespace (`Watch`). That is a hint and no more: the database may
//!    lie in another tablespace. Only then
//! 2. a worker with a connection to the shared catalogs is started, which asks `pg_database`
//!    (`free`) and drops in a transaction like any other, so it is logged, and standbys follow.
//!
//! **Why no live one is freed.** The transaction that makes a storage comes after the one that
//! makes its database, or is that one (a copied template). So when a storage is committed, its
//! database's row is. The worker lists the databases that have committed storages, and asks with a
//! newer catalog snapshot: no row then means that the row is deleted, and a deleted one never comes
//! back. What DROP DATABASE (with the library) is dropping meanwhile either still has its row, or
//! has dropped its storages with it. A database made later under the same oid, when oids have gone
//! round, keeps what it finds: its owner is unknown then.
use crate::pg::{self, interrupts};
use crate::transaction::{dropped_database, session};
use crate::{errors, shared_memory, upgrade};
use mot_engine::State;
use pgrx::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

/// Seconds after which a worker that failed is started again.
const RETRY_S: i32 = 60;

/// The checkpoint worker's look, once in its life.
#[derive(Default)]
pub struct Watch {
    has_looked: bool,
}

impl Watch {
    /// Called at every turn.
    pub fn look(&mut self) {
        // What a server that runs for pg_upgrade logs, it does not expect.
        if self.has_looked
            || upgrade::is_binary_upgrade()
            || shared_memory::engine().expect("preloaded").state() != State::Ready
        {
            return;
        }
        // SAFETY: reads shared state; never raises.
        if unsafe { pg_sys::RecoveryInProgress() } {
            return;
        }
        self.has_looked = true;
        let is_elsewhere = |database: &u32| !Path::new(&format!("base/{database}")).exists();
        if databases().iter().any(is_elsewhere) {
            start();
        }
    }
}

/// The databases that have storages.
fn databases() -> BTreeSet<u32> {
    let tables = session::join_uncounted().tables();
    tables
        .iter()
        .map(|walk| walk.table().key().database)
        .collect()
}

fn start() {
    let mut worker = crate::pg::worker::describe(
        c"mot orphans",
        c"mot_orphans_main",
        pg_sys::BgWorkerStartTime::BgWorkerStart_RecoveryFinished,
    );
    worker.bgw_flags |= pg_sys::BGWORKER_BACKEND_DATABASE_CONNECTION as i32;
    worker.bgw_restart_time = RETRY_S;
    // SAFETY: PostgreSQL copies the description into shared memory. May raise.
    let started = pg::catch(|| unsafe {
        pg_sys::RegisterDynamicBackgroundWorker(&mut worker, std::ptr::null_mut())
    });
    if !matches!(started, Ok(true)) {
        errors::report_orphans_unknown();
    }
}

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn mot_orphans_main(_arg: pg_sys::Datum) {
    interrupts::take_backend_signals();
    // SAFETY: the setting's strings are static; the connection sees shared catalogs only. Errors
    // end the process, which is then started again.
    unsafe {
        // A standby that is away must not keep this transaction open.
        pg_sys::SetConfigOption(
            c"synchronous_commit".as_ptr(),
            c"local".as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_OVERRIDE,
        );
        pg_sys::BackgroundWorkerInitializeConnectionByOid(
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            0,
        );
        pg_sys::StartTransactionCommand();
        free();
        pg_sys::CommitTransactionCommand();
        // Never again in this life of the server.
        pg_sys::proc_exit(0);
    }
}

/// Drops what belongs to no database.
fn free() {
    session::session();
    let has_committed = |database: &u32| {
        let storages = dropped_database::storages(pg_sys::Oid::from(*database));
        !storages.is_empty()
    };
    let databases: Vec<u32> = databases().into_iter().filter(has_committed).collect();
    // SAFETY: in a transaction. Nothing from before the list may answer below.
    unsafe { pg_sys::InvalidateCatalogSnapshot() };
    for database in databases {
        let database = pg_sys::Oid::from(database);
        // SAFETY: a catalog look-up, of a shared catalog.
        if !unsafe { pg_sys::get_database_name(database) }.is_null() {
            continue;
        }
        let tables = dropped_database::drop_storages(database);
        if tables > 0 {
            errors::report_orphans_freed(database, tables);
        }
    }
}
