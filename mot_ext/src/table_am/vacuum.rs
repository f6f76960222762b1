//! VACUUM of a table. The reclaim worker removes dead versions by itself. VACUUM writes the
//! catalog, counts, and says so.
use super::relation::{pages, row_count};
use crate::pg::node::Field;
use crate::pg::nodes;
use crate::pg::relation::{Relation, with_index};
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
///
/// # Safety
/// The relation is locked as VACUUM locks it.
pub unsafe fn vacuum(
    relation: Relation<'_>,
    parameters: Field<'_, pg_sys::VacuumParams>,
    _strategy: pg_sys::BufferAccessStrategy,
) {
    let report = Report::begin(relation, parameters.get());
    let storage = storage::table(relation);
    let rows = row_count(storage);
    // SAFETY: the caller's relation.
    unsafe {
        let resolved_below = match pg::is_under_postmaster() {
            true => resolve(relation, parameters, storage),
            // No process resolves anything in single-user mode. The next start reads from the log
            // what ends here.
            false => pg_sys::GetOldestNonRemovableTransactionId(relation.as_ptr()),
        };
        let bounds = (resolved_below, pg_sys::GetOldestMultiXactId());
        write_size(relation, pages(storage), rows, bounds);
        update_indexes(relation, storage, rows);
    }
    report.end(relation, storage, rows as i64);
}

/// Below which transaction no outcome is asked for any more. Waits for a sweep if core would freeze
/// younger rows.
///
/// # Safety
/// The relation is locked as VACUUM locks it.
unsafe fn resolve(
    relation: Relation<'_>,
    parameters: Field<'_, pg_sys::VacuumParams>,
    storage: TableRef,
) -> pg_sys::TransactionId {
    // SAFETY: the caller's relation, and the statement's parameters.
    let limit = unsafe { version::freeze_limit(relation.as_ptr(), parameters.as_ptr()) };
    // A temporary table's limit is its session's own horizon, to which no sweep comes.
    let is_shared = !storage.key().is_temporary();
    let published = narrow(horizon::outcome_bound::published());
    // As core compares: in a young cluster the limit is before its first transaction.
    // SAFETY: compares two numbers.
    if is_shared && unsafe { pg_sys::TransactionIdPrecedes(published, limit) } {
        horizon::sweep_requests::wait_for_sweep();
    }
    narrow(horizon::outcome_bound::published())
}

/// Writes the size of a relation and its freeze bounds into its row of pg_class.
///
/// # Safety
/// The relation is locked as VACUUM locks it.
unsafe fn write_size(
    relation: Relation<'_>,
    pages: u32,
    rows: f64,
    (frozen_below, multixacts_from): (pg_sys::TransactionId, pg_sys::MultiXactId),
) {
    let relation = relation.as_ptr();
    // SAFETY: the caller's relation.
    unsafe { version::update_statistics(relation, pages, rows, frozen_below, multixacts_from) };
}

/// Writes the entries of a table's indexes into their rows of pg_class, as VACUUM does. Their locks
/// are kept for the catalog's sake, as core does.
///
/// # Safety
/// The table is locked as VACUUM locks it.
unsafe fn update_indexes(relation: Relation<'_>, storage: TableRef, rows: f64) {
    let lock = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
    for index in relation.indexes() {
        with_index(index, lock, |index| {
            if !index.index_row().indisready {
                return;
            }
            let entries = match storage::find_index(storage, index) {
                Some(found) if index.has_predicate() => found.entry_count_estimate() as f64,
                _ => rows,
            };
            let none = (pg_sys::InvalidTransactionId, 0.into());
            // SAFETY: the index of the caller's table.
            unsafe { write_size(index, index.pages() as u32, entries, none) };
        });
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
    fn begin(relation: Relation<'_>, parameters: pg_sys::VacuumParams) -> Report {
        let (options, log_min_ms) = (parameters.options, parameters.log_min_duration);
        let worker = pg_sys::BackendType::B_AUTOVAC_WORKER;
        // SAFETY: a plain variable of this process.
        let is_worker = unsafe { pg_sys::MyBackendType } == worker;
        let is_verbose = options & pg_sys::VACOPT_VERBOSE != 0;
        let level = match (is_verbose, is_worker && log_min_ms >= 0) {
            (true, _) => Some(PgLogLevel::INFO),
            (false, true) => Some(PgLogLevel::LOG),
            (false, false) => None,
        };
        let table = level.map(|_| full_name(relation));
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

    fn end(self, relation: Relation<'_>, storage: TableRef, rows: i64) {
        let counted = storage.counters().stale_versions.load(Ordering::Relaxed);
        let dead = counted.max(0);
        // SAFETY: an open relation; reads the clock.
        let is_long = unsafe {
            version::report_vacuum(relation.as_ptr(), rows, dead, self.began);
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
fn full_name(relation: Relation<'_>) -> String {
    // SAFETY: catalog look-ups that give palloc'd strings.
    let (database, schema) = unsafe {
        let schema = pg_sys::get_namespace_name(relation.schema());
        (
            nodes::text(pg_sys::get_database_name(pg_sys::MyDatabaseId)),
            nodes::text(schema),
        )
    };
    format!("{database}.{schema}.{}", relation.name_text())
}
