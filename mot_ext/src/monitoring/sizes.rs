//! What tables and indexes take in memory.
//!
//! - `mot.table_size`, `mot.index_size` and `mot.total_size` count for the owner, and walk indexes.
//! - PostgreSQL's own functions count the bytes of files, of which a memory-optimized table has
//!   none. The planner (`planner::shown_sizes`) calls the functions of the same names here instead,
//!   which add what is in memory. That takes no longer for a large table: rows have counters, and a
//!   large index is estimated by some of its leaves.
use super::check::Opened;
use crate::errors::or_raise;
use crate::errors::refuse::raise;
use crate::pg::relation::try_with;
use crate::pg::{catalog, nodes, rights};
use crate::shared_memory;
use crate::storage;
use crate::transaction::clock::PgClock;
use crate::transaction::session;
use mot_engine::{IndexRef, State, TableRef};
use pgrx::prelude::*;
use pgrx::{PgRelation, pg_sys};

const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// What of a table is counted.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Rows,
    Indexes,
    All,
}

/// Bytes of a table's rows and row directory.
#[pg_extern(strict, volatile, parallel_unsafe)]
fn table_size(table: PgRelation) -> i64 {
    of_rows(Opened::owned(table.oid()).storage) as i64
}

/// Bytes of an index's nodes. Walks the index.
#[pg_extern(strict, volatile, parallel_unsafe)]
fn index_size(index: PgRelation) -> i64 {
    if !storage::is_mot_index(index.oid()) {
        // SAFETY: a catalog look-up.
        let name = unsafe { nodes::text(pg_sys::get_rel_name(index.oid())) };
        raise(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("\"{name}\" is not an index of a memory-optimized table"),
            None,
            None,
        );
    }
    // SAFETY: a catalog look-up.
    let table = unsafe { pg_sys::IndexGetRelation(index.oid(), false) };
    let opened = Opened::owned(table);
    of_index(opened.storage, index.oid().to_u32(), counted) as i64
}

/// Bytes of a table's rows, row directory and indexes. Walks the indexes.
#[pg_extern(strict, volatile, parallel_unsafe)]
fn total_size(table: PgRelation) -> i64 {
    let opened = Opened::owned(table.oid());
    (of_rows(opened.storage) + of_indexes(opened.storage, counted)) as i64
}

#[pg_extern(sql = "
CREATE FUNCTION mot.pg_relation_size(regclass) RETURNS bigint
  VOLATILE STRICT PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
GRANT EXECUTE ON FUNCTION mot.pg_relation_size(regclass) TO PUBLIC;
COMMENT ON FUNCTION mot.pg_relation_size(regclass) IS 'pg_catalog.pg_relation_size, with what memory-optimized \
tables take in memory';
")]
fn relation_size(relation: pg_sys::Oid) -> Option<i64> {
    require(pg_sys::F_PG_RELATION_SIZE_REGCLASS);
    fork_size(relation, "main")
}

#[pg_extern(sql = "
CREATE FUNCTION mot.pg_relation_size(regclass, text) RETURNS bigint
  VOLATILE STRICT PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
GRANT EXECUTE ON FUNCTION mot.pg_relation_size(regclass, text) TO PUBLIC;
COMMENT ON FUNCTION mot.pg_relation_size(regclass, text) IS 'pg_catalog.pg_relation_size, with what \
memory-optimized tables take in memory';
")]
fn fork_size(relation: pg_sys::Oid, fork: &str) -> Option<i64> {
    let files = of_files(
        (
            pg_sys::pg_relation_size,
            pg_sys::F_PG_RELATION_SIZE_REGCLASS_TEXT,
        ),
        &[relation.into_datum(), fork.into_datum()],
    )?;
    match fork {
        "main" => Some(files + in_memory(relation, Part::Rows)),
        _ => Some(files),
    }
}

#[pg_extern(sql = "
CREATE FUNCTION mot.pg_table_size(regclass) RETURNS bigint
  VOLATILE STRICT PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
GRANT EXECUTE ON FUNCTION mot.pg_table_size(regclass) TO PUBLIC;
COMMENT ON FUNCTION mot.pg_table_size(regclass) IS 'pg_catalog.pg_table_size, with what memory-optimized \
tables take in memory';
")]
fn size_of_table(relation: pg_sys::Oid) -> Option<i64> {
    let files = of_files(
        (pg_sys::pg_table_size, pg_sys::F_PG_TABLE_SIZE),
        &[relation.into_datum()],
    )?;
    Some(files + in_memory(relation, Part::Rows))
}

#[pg_extern(sql = "
CREATE FUNCTION mot.pg_indexes_size(regclass) RETURNS bigint
  VOLATILE STRICT PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
GRANT EXECUTE ON FUNCTION mot.pg_indexes_size(regclass) TO PUBLIC;
COMMENT ON FUNCTION mot.pg_indexes_size(regclass) IS 'pg_catalog.pg_indexes_size, with what memory-optimized \
tables take in memory';
")]
fn size_of_indexes(relation: pg_sys::Oid) -> Option<i64> {
    let files = of_files(
        (pg_sys::pg_indexes_size, pg_sys::F_PG_INDEXES_SIZE),
        &[relation.into_datum()],
    )?;
    Some(files + in_memory(relation, Part::Indexes))
}

#[pg_extern(sql = "
CREATE FUNCTION mot.pg_total_relation_size(regclass) RETURNS bigint
  VOLATILE STRICT PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
GRANT EXECUTE ON FUNCTION mot.pg_total_relation_size(regclass) TO PUBLIC;
COMMENT ON FUNCTION mot.pg_total_relation_size(regclass) IS 'pg_catalog.pg_total_relation_size, with what \
memory-optimized tables take in memory';
")]
fn size_of_all(relation: pg_sys::Oid) -> Option<i64> {
    let files = of_files(
        (
            pg_sys::pg_total_relation_size,
            pg_sys::F_PG_TOTAL_RELATION_SIZE,
        ),
        &[relation.into_datum()],
    )?;
    Some(files + in_memory(relation, Part::All))
}

/// A function of core and its oid.
type OfCore = (unsafe fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum, u32);

/// What a function of core answers to a user who may call it; `None` for a relation that is gone.
fn of_files((function, oid): OfCore, arguments: &[Option<pg_sys::Datum>]) -> Option<i64> {
    require(oid);
    // SAFETY: a function of core with arguments of its types, none of them NULL.
    unsafe { pgrx::direct_function_call(function, arguments) }
}

/// Raises 42501 unless the user may call a function of core.
fn require(function: u32) {
    let kind = pg_sys::ObjectType::OBJECT_FUNCTION;
    // SAFETY: inside a statement.
    unsafe { rights::require_execute(pg_sys::Oid::from(function), pg_sys::GetUserId(), kind) };
}

/// Bytes of a relation in memory: 0 of one that is not there, is not ours, or is temporary and of
/// another session; 0 of all while the tables are not loaded. Other relations are not locked.
fn in_memory(relation: pg_sys::Oid, part: Part) -> i64 {
    let state = shared_memory::engine().map(|engine| engine.state());
    if !matches!(state, Some(State::Ready | State::Replaying)) {
        return 0;
    }
    let is_index = storage::is_mot_index(relation);
    if !is_index && !storage::is_mot_table(relation) || is_index && part == Part::Indexes {
        return 0;
    }
    // An index's table is locked ahead of the index, as core does.
    let table = match is_index {
        true => catalog::table_if_any(relation),
        false => relation,
    };
    if table == pg_sys::InvalidOid {
        return 0;
    }
    let bytes = try_with(table, LOCK, |table| match storage::find_of_method(table) {
        None => 0,
        Some(storage) if is_index => of_index(storage, relation.to_u32(), estimated),
        Some(storage) => of_table(storage, part),
    });
    bytes.unwrap_or_default() as i64
}

/// Bytes of a part of a table that is locked, estimated.
fn of_table(storage: TableRef, part: Part) -> u64 {
    match part {
        Part::Rows => of_rows(storage),
        Part::Indexes => of_indexes(storage, estimated),
        Part::All => of_rows(storage) + of_indexes(storage, estimated),
    }
}

/// Bytes of a table's rows and row directory, by counters.
fn of_rows(storage: TableRef) -> u64 {
    storage.row_count_estimate() * storage.row_bytes_average() + storage.anchor_bytes()
}

/// Bytes of the indexes of a table that is locked.
fn of_indexes(storage: TableRef, measure: fn(IndexRef) -> u64) -> u64 {
    let indexes = session::session().index_oids(storage, &PgClock);
    let bytes = |index| of_index(storage, index, measure);
    indexes.into_iter().map(bytes).sum()
}

/// Bytes of an index of a table that is locked: 0 if the index is gone.
fn of_index(storage: TableRef, index: u32, measure: fn(IndexRef) -> u64) -> u64 {
    // The lock on the table does not keep REINDEX CONCURRENTLY from dropping the index.
    // SAFETY: a lock, given back as soon as the index was read.
    unsafe { pg_sys::LockRelationOid(index.into(), LOCK) };
    let found = session::session().find_index(storage, index, &PgClock);
    let bytes = found.map_or(0, measure);
    // SAFETY: the lock of above.
    unsafe { pg_sys::UnlockRelationOid(index.into(), LOCK) };
    bytes
}

fn counted(index: IndexRef) -> u64 {
    or_raise(session::session().index_bytes(&PgClock, index))
}

fn estimated(index: IndexRef) -> u64 {
    session::session().index_bytes_estimate(index)
}
