//! `mot.check`: proves that a table's rows, indexes and catalog agree; and which storages exist.
//!
//! The check holds ShareLock: readers continue, writers wait. On a standby that lock does not
//! exist; there it is exact only while replay is paused (`pg_wal_replay_pause`): what it finds
//! while replay continues proves nothing, and it says so instead.
use crate::errors::refuse::raise;
use crate::pg::relation::{Relation, with_index};
use crate::pg::{catalog, index_row, version};
use crate::storage::{definition, rows_with_other_keys};
use crate::transaction::clock::PgClock;
use crate::transaction::{applied, session};
use crate::{errors, shared_memory};
use mot_engine::{IndexId, IndexRef, Problem, State, TableRef};
use pgrx::prelude::*;
use pgrx::{PgRelation, pg_sys};

/// Problems named in the error's detail; the others are counted.
const PROBLEMS_SHOWN_MAX: usize = 20;

/// A table opened to be read as a whole; closed at drop, its lock kept to the end of the
/// transaction.
pub(super) struct Opened {
    table: Relation<'static>,
    pub(super) storage: TableRef,
}

impl Opened {
    /// Opens the user's own memory-optimized table; raises for anything else. It can be changed
    /// meanwhile.
    pub(super) fn owned(relid: pg_sys::Oid) -> Opened {
        Opened::owned_with(relid, pg_sys::AccessShareLock)
    }

    /// The same of one that no session changes meanwhile, as far as a standby allows that.
    fn owned_and_still(relid: pg_sys::Oid) -> Opened {
        // SAFETY: reads shared state.
        let lock = if unsafe { pg_sys::RecoveryInProgress() } {
            pg_sys::AccessShareLock
        } else {
            pg_sys::ShareLock
        };
        Opened::owned_with(relid, lock)
    }

    fn owned_with(relid: pg_sys::Oid, lock: u32) -> Opened {
        if !crate::storage::is_mot_table(relid) {
            let name = catalog::name(relid).unwrap_or_default();
            raise(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not a memory-optimized table"),
                None,
                None,
            );
        }
        if !version::owns_class(relid) {
            // SAFETY: catalog look-ups for the error's message.
            unsafe {
                pg_sys::aclcheck_error(
                    pg_sys::AclResult::ACLCHECK_NOT_OWNER,
                    pg_sys::get_relkind_objtype(pg_sys::get_rel_relkind(relid)),
                    pg_sys::get_rel_name(relid),
                );
            }
        }
        // SAFETY: raises if it is gone; it is closed when the value is dropped.
        let table = unsafe { Relation::enter(pg_sys::table_open(relid, lock as pg_sys::LOCKMODE)) };
        let storage = crate::storage::described(table);
        Opened { table, storage }
    }

    /// Locks the table's indexes to the transaction's end: the lock on the table does not keep one
    /// from being dropped CONCURRENTLY.
    fn lock_indexes(&self) {
        for oid in session::session().index_oids(self.storage, &PgClock) {
            // SAFETY: a lock.
            unsafe { pg_sys::LockRelationOid(oid.into(), pg_sys::AccessShareLock as i32) };
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // After an error PostgreSQL closes it itself.
        if !std::thread::panicking() {
            // SAFETY: opened above, and no other code closes it.
            unsafe { pg_sys::table_close(self.table.as_ptr(), pg_sys::NoLock as pg_sys::LOCKMODE) };
        }
    }
}

/// The position of replay.
struct Stand {
    state: State,
    /// The end of the last record that was replayed.
    replayed: u64,
}

impl Stand {
    /// Once all is applied that was replayed.
    fn wait() -> Stand {
        let state = shared_memory::engine().map_or(State::Empty, |engine| engine.state());
        // SAFETY: reads a shared position under a spinlock; never raises.
        let replayed = unsafe { pg_sys::GetXLogReplayRecPtr(std::ptr::null_mut()) };
        // Handed over before the record counted as replayed.
        applied::wait_until_applied();
        Stand { state, replayed }
    }

    /// Whether replay has begun with another record since, was in the midst of one, or is over.
    fn has_moved(&self) -> bool {
        if self.state != State::Replaying {
            return false;
        }
        let state = shared_memory::engine().map_or(State::Empty, |engine| engine.state());
        // SAFETY: as above. The end of the record that is being replayed, or was last.
        let begun = unsafe { pg_sys::GetCurrentReplayRecPtr(std::ptr::null_mut()) };
        state != self.state || begun != self.replayed
    }
}

/// Checks a table; raises XX001 with what disagrees.
#[pg_extern(name = "check", strict, volatile, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn check_table(
    table: PgRelation,
) -> TableIterator<
    'static,
    (
        name!(rows, i64),
        name!(entries, i64),
        name!(versions, i64),
        name!(row_ids_free, i64),
    ),
> {
    let opened = Opened::owned_and_still(table.oid());
    // A standby may replay the drop of an index that was dropped or replaced concurrently: it locks
    // that index alone.
    opened.lock_indexes();
    let stand = Stand::wait();
    let unproven = invalid_indexes(&opened);
    let mut duplicates = 0;
    let mut shown = Vec::new();
    let report = session::session()
        .check(opened.storage, &PgClock, |problem| {
            if let Problem::Duplicate { index, .. } = problem
                && unproven.contains(&index)
            {
                duplicates += 1;
            } else if shown.len() < PROBLEMS_SHOWN_MAX {
                shown.push(format!("{problem:?}"));
            }
        })
        .unwrap_or_else(|error| errors::raise(error));
    let mut problems = report.problems as usize - duplicates;
    let mut other_keys = 0;
    for difference in catalog_differences(&opened) {
        problems += 1;
        other_keys += usize::from(matches!(difference, Difference::Keys(_)));
        shown.push(difference.into_text());
    }
    if problems > 0 {
        let name = opened.table.name_text();
        if stand.has_moved() {
            changed_by_replay(&name);
        }
        let hint = match other_keys == problems {
            true => "REINDEX these indexes: functions that they call are not immutable.",
            false => HINT_DAMAGED,
        };
        raise(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            format!("memory-optimized table \"{name}\" is damaged: {problems} problems found"),
            Some(shown.join("\n")),
            Some(hint.into()),
        );
    }
    TableIterator::once((
        report.rows as i64,
        report.entries as i64,
        report.versions as i64,
        report.row_ids_free as i64,
    ))
}

const HINT_DAMAGED: &str = "Restart the server to build all indexes anew from the rows; keep a copy of the \
    data directory for study.";

/// Raises 55000: what was found may be the work of replay.
fn changed_by_replay(table: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("memory-optimized table \"{table}\" was changed by replay while it was checked"),
        None,
        Some(
            "Pause replay with pg_wal_replay_pause(), and check the table again when \
             pg_get_wal_replay_pause_state() says \"paused\"."
                .into(),
        ),
    )
}

/// Where an index is not what the catalog says, in words.
enum Difference {
    /// It is another one, or one side has none.
    Definition(String),
    /// Its keys are others than its expressions give.
    Keys(String),
}

impl Difference {
    fn into_text(self) -> String {
        match self {
            Difference::Definition(text) | Difference::Keys(text) => text,
        }
    }
}

/// Where the engine's indexes are not the catalog's.
fn catalog_differences(opened: &Opened) -> Vec<Difference> {
    let session = session::session();
    let engine = session.indexes(opened.storage, &PgClock);
    let mut differences = Vec::new();
    let catalog = opened.table.indexes();
    for index in &engine {
        let is_listed = |oid: &pg_sys::Oid| oid.to_u32() == index.relation_oid();
        let is_dead = states(index.relation_oid().into()).is_some_and(|states| !states.is_live);
        // Core lists no dead ones; a DROP INDEX CONCURRENTLY may have left one behind.
        if !catalog.iter().any(is_listed) && !is_dead {
            let text = format!("index {} is not in pg_index", index.relation_oid());
            differences.push(Difference::Definition(text));
        }
    }
    for oid in catalog {
        let Some(index) = engine
            .iter()
            .find(|index| index.relation_oid() == oid.to_u32())
        else {
            // One that is not ready has none: its build was given up.
            if states(oid).is_none_or(|states| states.is_ready) {
                let text = format!("index {} has no storage", oid.to_u32());
                differences.push(Difference::Definition(text));
            }
            continue;
        };
        let different = definition_difference(opened.table, oid, *index);
        differences.extend(different.map(Difference::Definition));
        if index.is_computed() {
            differences.extend(key_difference(opened.table, oid).map(Difference::Keys));
        }
    }
    differences
}

/// What the catalog says of an index that is built or dropped beside writers.
struct States {
    is_ready: bool,
    is_valid: bool,
    is_live: bool,
}

/// `None`: the catalog has no such index.
fn states(index: pg_sys::Oid) -> Option<States> {
    index_row::read(index, |_, form| States {
        is_ready: form.indisready,
        is_valid: form.indisvalid,
        is_live: form.indislive,
    })
}

/// Indexes that may have two rows with one unique key: their build beside writers failed for that,
/// or they are being dropped.
fn invalid_indexes(opened: &Opened) -> Vec<IndexId> {
    let indexes = session::session().indexes(opened.storage, &PgClock);
    let is_invalid = |index: &IndexRef| {
        states(index.relation_oid().into()).is_some_and(|states| !states.is_valid)
    };
    let invalid = indexes.into_iter().filter(is_invalid);
    invalid.map(IndexRef::id).collect()
}

/// What of a definition matters for keys must be what the catalog says. A column that became NOT
/// NULL later keeps its NULL mark. A primary key that a failed REINDEX CONCURRENTLY has left
/// invalid has none, though its column may have lost NOT NULL with the table's new key.
fn definition_difference(table: Relation<'_>, oid: pg_sys::Oid, index: IndexRef) -> Option<String> {
    let built = session::session()
        .definition(index)
        .unwrap_or_else(|error| errors::raise(error));
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let (stated, is_valid) = with_index(oid, lock, |index| {
        let stated = definition::index_definition(table, index);
        (stated, index.index_row().indisvalid)
    });
    // An index that is not unique to the engine has its keys checked by core.
    let same = (stated.unique || !built.unique)
        && built.nulls_not_distinct == stated.nulls_not_distinct
        && built.layout == stated.layout
        && built.computed == stated.computed
        && built.columns.len() == stated.columns.len()
        && built
            .columns
            .iter()
            .zip(&stated.columns)
            .all(|(built, stated)| {
                built.attnum == stated.attnum
                    && built.kind == stated.kind
                    && built.descending == stated.descending
                    && built.nulls_first == stated.nulls_first
                    && (built.nullable || !stated.nullable || !is_valid)
            });
    (!same).then(|| {
        format!(
            "index {} is built as {built:?}, stated as {stated:?}",
            oid.to_u32()
        )
    })
}

/// Computed keys must be what the columns of their rows give. The functions of an index run as the
/// table's owner, as when core builds it.
fn key_difference(table: Relation<'_>, oid: pg_sys::Oid) -> Option<String> {
    let mut user = pg_sys::InvalidOid;
    let mut context = 0;
    let (owner, _) = table.owner_and_schema();
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: after an error core gives the user and the settings back.
    let rows = with_index(oid, lock, |index| unsafe {
        pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context);
        let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
        pg_sys::SetUserIdAndSecContext(owner, restricted);
        let settings = pg_sys::NewGUCNestLevel();
        let rows = rows_with_other_keys(table, index);
        pg_sys::AtEOXact_GUC(false, settings);
        pg_sys::SetUserIdAndSecContext(user, context);
        rows
    });
    (rows > 0).then(|| {
        format!(
            "index {} has other keys of {rows} rows than its expressions give",
            oid.to_u32()
        )
    })
}

extension_sql!(
    r#"
REVOKE EXECUTE ON FUNCTION mot.storages() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mot.storages() TO pg_monitor;
"#,
    name = "rights_on_storages",
    requires = [storages, "views"]
);

/// Every storage that exists for the caller, of all databases. For pg_monitor.
#[pg_extern(strict, volatile, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn storages() -> TableIterator<
    'static,
    (
        name!(database, pg_sys::Oid),
        name!(relation, pg_sys::Oid),
        name!(table_id, i64),
        name!(rows, i64),
    ),
> {
    let session = session::session();
    let found: Vec<_> = session
        .tables()
        .iter()
        .map(|walk| walk.table())
        .filter(|table| session.find_table(table.key(), &PgClock) == Some(*table))
        .map(|table| {
            (
                pg_sys::Oid::from(table.key().database),
                pg_sys::Oid::from(table.key().relation),
                table.id().0 as i64,
                table.row_count_estimate() as i64,
            )
        })
        .collect();
    TableIterator::new(found)
}
