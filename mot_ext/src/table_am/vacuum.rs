//! VACUUM of a table. The reclaim worker removes dead versions by itself. VACUUM writes the
//! catalog, counts, and says so.
use super::relation::{pages, row_count};
use crate::pg::nodes;
use crate::pg::version::table_am as version;
use crate::transaction::clock::narrow;
use crate::transaction::horizon;
use crate::{pg, storage};
use mot_engine::TableRef;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::sync::atomic::Ordering;

/// `relation_vacuum`: the sweeper has done the work, or will. Below which transaction no outcome is
/// asked for any more is written into pg_class, so that core may cut its commit log. Where core
/// would freeze younger rows than that (FREEZE), a sweep is waited for.
pub unsafe fn vacuum(
    relation: pg_sys::Relation,
    parameters: *mut pg_sys::VacuumParams,
    _strategy: pg_sys::BufferAccessStrategy,
) {
    // SAFETY: as core calls it: an open relation, locked as VACUUM locks it, and its parameters.
    unsafe {
        let report = Report::begin(relation, parameters);
        let storage = storage::table(relation);
        let rows = row_count(storage);
        let resolved_below = if pg::is_under_postmaster() {
            let limit = version::freeze_limit(relation, parameters);
            // As core compares: in a young cluster the limit is before its first transaction.
            // A temporary table's limit is its session's own horizon, to which no sweep comes.
            let is_shared = !storage.key().is_temporary();
            let published = narrow(horizon::outcome_bound::published());
            if is_shared && pg_sys::TransactionIdPrecedes(published, limit) {
                horizon::sweep_requests::wait_for_sweep();
            }
            narrow(horizon::outcome_bound::published())
        } else {
            // No process resolves anything in single-user mode. The next start reads from the log
            // what ends here.
            pg_sys::GetOldestNonRemovableTransactionId(relation)
        };
        let multixacts_from = pg_sys::GetOldestMultiXactId();
        version::update_statistics(
            relation,
            pages(storage),
            rows,
            resolved_below,
            multixacts_from,
        );
        update_indexes(relation, storage, rows);
        report.end(relation, storage, rows as i64);
    }
}

/// Writes the entries of a table's indexes into their rows of pg_class, as VACUUM does.
unsafe fn update_indexes(relation: pg_sys::Relation, storage: TableRef, rows: f64) {
    let lock = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: an open table, locked as VACUUM locks it (caller). What is opened here is closed
    // here; its lock is kept for the catalog's sake, as core does.
    unsafe {
        let list = pg_sys::RelationGetIndexList(relation);
        let indexes = pgrx::PgList::<pg_sys::Oid>::from_pg(list);
        for index in indexes.iter_oid() {
            let opened = pg_sys::index_open(index, lock);
            let form = &*(*opened).rd_index;
            if form.indisready {
                let is_partial = !pg_sys::RelationGetIndexPredicate(opened).is_null();
                let entries = match storage::find_index(storage, opened) {
                    Some(found) if is_partial => found.entry_count_estimate() as f64,
                    _ => rows,
                };
                let pages = (*(*opened).rd_rel).relpages as u32;
                let (no_xid, no_multixact) = (pg_sys::InvalidTransactionId, 0.into());
                version::update_statistics(opened, pages, entries, no_xid, no_multixact);
            }
            pg_sys::index_close(opened, pg_sys::NoLock as pg_sys::LOCKMODE);
        }
    }
}

/// What VACUUM says of a table, and to whom: with VERBOSE to the client. An autovacuum worker
/// writes into the server's log, if it took long enough (log_autovacuum_min_duration).
struct Report {
    /// Database, schema and name.
    table: String,
    level: Option<PgLogLevel>,
    began: pg_sys::TimestampTz,
    /// Milliseconds from which on the server's log hears of it.
    log_min_ms: i32,
}

impl Report {
    /// # Safety
    /// An open relation, and the parameters of the VACUUM that begins.
    unsafe fn begin(relation: pg_sys::Relation, parameters: *mut pg_sys::VacuumParams) -> Report {
        // SAFETY: the caller's; a plain variable of this process.
        let (options, log_min_ms, is_worker) = unsafe {
            let worker = pg_sys::BackendType::B_AUTOVAC_WORKER;
            let is_worker = pg_sys::MyBackendType == worker;
            (
                (*parameters).options,
                (*parameters).log_min_duration,
                is_worker,
            )
        };
        let is_verbose = options & pg_sys::VACOPT_VERBOSE != 0;
        let level = match (is_verbose, is_worker && log_min_ms >= 0) {
            (true, _) => Some(PgLogLevel::INFO),
            (false, true) => Some(PgLogLevel::LOG),
            (false, false) => None,
        };
        // SAFETY: the caller's relation.
        let table = level.map(|_| unsafe { full_name(relation) });
        let report = Report {
            table: table.unwrap_or_default(),
            level,
            // SAFETY: reads the clock.
            began: unsafe { pg_sys::GetCurrentTimestamp() },
            log_min_ms,
        };
        if is_verbose {
            report.say(format!("vacuuming \"{}\"", report.table));
        }
        report
    }

    /// # Safety
    /// The relation of the beginning, open.
    unsafe fn end(self, relation: pg_sys::Relation, storage: TableRef, rows: i64) {
        let counted = storage.counters().stale_versions.load(Ordering::Relaxed);
        let dead = counted.max(0);
        // SAFETY: the caller's relation; reads the clock.
        let is_long = unsafe {
            version::report_vacuum(relation, rows, dead, self.began);
            let now = pg_sys::GetCurrentTimestamp();
            pg_sys::TimestampDifferenceExceeds(self.began, now, self.log_min_ms)
        };
        let title = match self.level {
            Some(PgLogLevel::LOG) if self.log_min_ms == 0 || is_long => {
                format!("automatic vacuum of table \"{}\"", self.table)
            }
            Some(PgLogLevel::INFO) => format!("finished vacuuming \"{}\"", self.table),
            _ => return,
        };
        self.say(format!(
            "{title}\ntuples: {rows} remain, {dead} are dead but not yet removed"
        ));
    }

    fn say(&self, text: String) {
        if let Some(level) = self.level {
            ereport!(level, PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, text);
        }
    }
}

/// Database, schema and name of a table, with dots between.
///
/// # Safety
/// An open relation.
unsafe fn full_name(relation: pg_sys::Relation) -> String {
    // SAFETY: the caller's relation; catalog look-ups that give palloc'd strings.
    unsafe {
        let form = &*(*relation).rd_rel;
        let database = nodes::text(pg_sys::get_database_name(pg_sys::MyDatabaseId));
        let schema = nodes::text(pg_sys::get_namespace_name(form.relnamespace));
        format!("{database}.{schema}.{}", nodes::name(&form.relname))
    }
}
