//! Building an index's storage from its table's rows, with writers locked out or beside them
//! (index_am/README.md).
use super::build_report::{duplicated, keep_from_older, tuple_of};
use super::compute_rows::{compute_keys_of_rows, put_keys_of_rows, rows_with_other_keys};
use super::definition::index_definition;
use super::missing::missing_values;
use super::{core_keys, duplicate, file_of, find, long_key, table};
use crate::errors::{self, or_raise};
use crate::pg::relation::{self, NO_LOCK, Relation};
use crate::pg::{self, catalog, interrupts};
use crate::transaction::clock::{PgClock, narrow};
use crate::transaction::{session, xact};
use mot_engine::key::IndexDefinition;
use mot_engine::pause::{Point, reach};
use mot_engine::{Build, EngineError, IndexRef, Newest, RowId, TableRef, Xid};
use pgrx::pg_sys;

/// Whether every snapshot may use an index that was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Built {
    /// It has an entry for each row that any snapshot sees.
    ForAll,
    /// A snapshot that is older than the build may see rows that have no entry.
    ForYounger,
}

/// What becomes of an index in which two rows have one unique key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Repeated {
    /// 23505 is raised.
    Refused,
    /// Both are entered. Core asks for that where it rewrites a table: an index that a failed build
    /// left is rebuilt with the others, and stays invalid. So does one that goes to another
    /// tablespace.
    Entered,
}

/// Makes and fills the storage of an index on a table, both locked as `ambuild` finds them. The
/// storage of an earlier file of the index (REINDEX) is dropped.
pub fn build_index(heap: Relation<'_>, index: Relation<'_>, repeated: Repeated) -> Built {
    let storage = table(heap);
    let (mut definition, oid) = (definition(heap, index), index.oid());
    let session = session::session();
    if is_there(storage, index) {
        return Built::ForAll;
    }
    refuse_other_number(storage, &definition);
    // Also one that a rollback to a savepoint may bring back: it is dropped by this transaction
    // alone.
    let replaced = session.find_index(storage, oid.to_u32(), &PgClock);
    if replaced.is_some() {
        let xid = xact::write_xid();
        let dropped = xact::current().drop_index(session, &PgClock, storage, oid.to_u32(), xid);
        or_raise(dropped);
    }
    let mut has_replaced = false;
    if definition.computed.is_some() {
        match replaced {
            // Labels are given anew, under another number.
            Some(_) if !definition.has_labels() => {
                has_replaced = compute_keys_of_rows(heap, index);
            }
            _ => put_keys_of_rows(heap, index),
        }
    }
    let made = create_index(storage, &mut definition);
    if let Ok(Build::Done(made) | Build::DoneBesideOlder(made)) = made {
        core_keys::note_made(index, made);
        let is_asked = repeated == Repeated::Refused && !definition.unique;
        // Writers are locked out, so no writer is waited for.
        let find = || find_repeated(index, storage, made, Xid(0), |_| false);
        if let Some(rows) = is_asked.then(find).flatten() {
            duplicated(heap, index, storage, rows[0])
        }
    }
    match made {
        Ok(Build::Done(_)) if !has_replaced => Built::ForAll,
        // States that were replaced have another key, or none.
        Ok(Build::Done(_) | Build::DoneBesideOlder(_)) => {
            // SAFETY: a variable of this process.
            if replaced.is_some() || unsafe { pg_sys::ReindexIsProcessingIndex(oid) } {
                // Core marks an index that was not there before.
                // SAFETY: the index's row in the catalog is there, and locked with the index.
                unsafe { keep_from_older(oid) };
            }
            Built::ForYounger
        }
        Ok(Build::Duplicate { .. }) if repeated == Repeated::Entered => {
            enter_all(storage, &definition);
            Built::ForAll
        }
        Ok(Build::Duplicate { row_ids, .. }) => duplicated(heap, index, storage, row_ids[0]),
        Err(error) => long_key::or_raise(Err(error), heap, oid),
    }
}

/// Raises where another index of the table has the number of a file as its own, by which rows'
/// tails have its keys.
fn refuse_other_number(storage: TableRef, definition: &IndexDefinition) {
    let session = session::session();
    let is_taken = |index: IndexRef| {
        let other = or_raise(session.definition(index));
        other.computed == definition.computed
            && other.file != definition.file
            && (other.has_labels() || definition.has_labels())
    };
    let mut indexes = session.indexes(storage, &PgClock).into_iter();
    if definition.computed.is_some() && indexes.any(is_taken) {
        errors::labels::number_is_taken(definition.relation);
    }
}

/// Whether an index of this very file is there, and has all rows, for there never was one: core
/// builds the indexes of a temporary table with ON COMMIT DELETE ROWS at each commit.
fn is_there(storage: TableRef, index: Relation<'_>) -> bool {
    let oid = index.oid().to_u32();
    let is_it = |found: IndexRef| found.relation_oid() == oid;
    storage.row_ids_end() == RowId(0) && super::find_index(storage, index).is_some_and(is_it)
}

/// Builds an index to whose file core has brought what another file had, without a call of
/// `ambuild`: that of an index that it drops (ALTER TYPE that keeps an index), or the index's own
/// in another tablespace.
pub fn rebuild_reused_index(heap: pg_sys::Oid, index: pg_sys::Oid, repeated: Repeated) {
    relation::with(heap, NO_LOCK, |heap| {
        relation::with(index, NO_LOCK, |index| {
            // The statement keeps writers from the table, and all sessions from the index.
            let is_partial =
                find(heap).is_some() && build_index(heap, index, repeated) == Built::ForYounger;
            if is_partial {
                // Core sees no build, and marks nothing.
                // SAFETY: the index is locked.
                unsafe { keep_from_older(index.oid()) };
            }
        });
    });
}

/// Makes the indexes of one storage on another one, with their files' names: of a table whose own
/// file alone is a new one. Both are locked exclusively.
///
/// # Safety
/// The storages are of one table of this database.
pub unsafe fn build_same_indexes(from: TableRef, to: TableRef) {
    // SAFETY: the index's row in the catalog is there, and locked with its table (caller).
    build_each_index(from, to, |index| unsafe { keep_from_older(index) });
}

/// As [`build_same_indexes`], of any two storages that no other session uses. `beside_older` hears
/// of each index that snapshots from before must not use.
pub(super) fn build_each_index(from: TableRef, to: TableRef, beside_older: impl Fn(pg_sys::Oid)) {
    let session = session::session();
    for index in session.indexes(from, &PgClock) {
        let mut definition = or_raise(IndexDefinition::from_bytes(index.definition_bytes()));
        match or_raise(create_index(to, &mut definition)) {
            Build::Done(_) => {}
            Build::DoneBesideOlder(_) => beside_older(definition.relation.into()),
            // Of an invalid index, which a failed build left.
            Build::Duplicate { .. } => enter_all(to, &definition),
        }
    }
}

/// Makes an index of all rows, whatever keys repeat. Writers are locked out.
fn enter_all(storage: TableRef, definition: &IndexDefinition) {
    let xid = xact::write_xid();
    let made = xact::current().begin_index(session::session(), storage, definition, xid);
    or_raise(fill(storage, or_raise(made)));
}

/// The definition of an index that is built, with its file.
fn definition(heap: Relation<'_>, index: Relation<'_>) -> IndexDefinition {
    let mut definition = IndexDefinition {
        file: file_of(index),
        ..index_definition(heap, index)
    };
    // Core takes a NOT NULL away without notice to an access method. A key without a mark for NULL
    // would then have no place for one. It takes none away from the columns of a table's primary
    // key. What REINDEX CONCURRENTLY leaves of one is invalid, and has no entries for NULL.
    if !index.index_row().indisprimary {
        mark_nulls(&mut definition);
    }
    if definition.computed.is_none() {
        definition.missing = missing_values(heap, &definition.columns);
    }
    definition
}

/// Makes an index of all rows. Its keys get marks for NULL if a row has, or had, NULL where there
/// is none: before the row got its primary key, in an invalid index that was one, or still, which
/// core finds next.
fn create_index(storage: TableRef, definition: &mut IndexDefinition) -> Result<Build, EngineError> {
    let (session, xid) = (session::session(), xact::write_xid());
    let made = xact::current().create_index(session, &PgClock, storage, definition, xid);
    let Err(EngineError::NullWithoutMark) = made else {
        return made;
    };
    mark_nulls(definition);
    xact::current().create_index(session, &PgClock, storage, definition, xid)
}

/// Gives the keys of an index a mark for NULL in each column.
fn mark_nulls(definition: &mut IndexDefinition) {
    for column in &mut definition.columns {
        column.nullable = true;
    }
}

/// As [`build_index`], beside writers, which enter their rows from now on and are asked for
/// uniqueness when the transaction commits: with it core marks the index as ready. Raises 23505 for
/// two committed rows with one unique key. The transaction has a snapshot.
pub fn build_index_beside_writers(heap: Relation<'_>, index: Relation<'_>) {
    let storage = table(heap);
    let definition = definition(heap, index);
    refuse_other_number(storage, &definition);
    if definition.has_labels() {
        // A label is between those of all other rows, so all rows get theirs at once. Writers
        // wait until the index is ready.
        catalog::lock(heap.oid(), pg_sys::ShareLock as pg_sys::LOCKMODE);
    }
    if definition.computed.is_some() {
        // Core has waited for all that do not know the index.
        put_keys_of_rows(heap, index);
    }
    let xid = xact::write_xid();
    let begun = xact::current().begin_index(session::session(), storage, &definition, xid);
    let made = or_raise(begun);
    core_keys::note_made(index, made);
    reach(Point::BuildBeforeRows);
    fill_or_raise((heap, index), storage, made);
    reach(Point::BuildBeforeDuplicates);
    // What runs may be of writers that ask for nothing yet: that is for the validation.
    if let Some(rows) = find_repeated(index, storage, made, Xid(0), |_| false) {
        duplicated(heap, index, storage, rows[0])
    }
    reach(Point::BuildBeforeReady);
}

/// Fills an index beside writers. Raises what keeps a row out of it: also an error of the index's
/// expression that a writer passed over before the engine knew the index (`computed_keys.rs`).
fn fill_or_raise((heap, index): (Relation<'_>, Relation<'_>), storage: TableRef, made: IndexRef) {
    let mut filled = fill(storage, made);
    if let Err(EngineError::KeyNotComputed) = filled {
        // A committed row raises its error here. Another one may go with its transaction.
        rows_with_other_keys(heap, index);
        heap.wait_for_writers();
        filled = fill(storage, made);
    }
    if let Err(EngineError::KeyNotComputed) = filled {
        rows_with_other_keys(heap, index);
        errors::row_without_key(&index.name_text());
    }
    long_key::or_raise(filled, heap, index.oid());
}

/// `index_validate_scan`: every writer enters and asks the index by now, and all that did not have
/// ended. Raises 23505, in the words of an insert, for two rows with one unique key. Both are
/// locked as core locks them, and the transaction has a snapshot.
pub fn validate_index(heap: Relation<'_>, index: Relation<'_>) {
    let storage = table(heap);
    let made = super::index(storage, index);
    reach(Point::ValidateBeforeRows);
    fill_or_raise((heap, index), storage, made);
    // A writer that was not asked may have come right behind one that was, and runs.
    let asked_from = Xid(pg::next_full_xid());
    if let Some(rows) = find_repeated(index, storage, made, asked_from, wait_for) {
        violated(heap, index, storage, rows[1])
    }
    if made.has_left_out() {
        // Core waits for snapshots from before its own alone, and for none of a standby. When it
        // marks the index as valid, the index's row in the catalog is younger than every snapshot
        // that sees such a state.
        // SAFETY: the index is locked.
        unsafe { keep_from_older(index.oid()) };
    }
}

/// Enters the rows that are there. Returns their number.
fn fill(storage: TableRef, index: IndexRef) -> Result<u64, EngineError> {
    session::session().fill_index(&PgClock, storage, index, pause)
}

/// Two rows with one key of an index that is unique in the catalog.
fn find_repeated(
    opened: Relation<'_>,
    storage: TableRef,
    index: IndexRef,
    asked_from: Xid,
    wait: impl FnMut(Xid) -> bool,
) -> Option<[RowId; 2]> {
    if !opened.index_row().indisunique {
        return None;
    }
    let place = (storage, index);
    or_raise(session::session().find_duplicate(&PgClock, place, asked_from, wait, pause))
}

fn pause() {
    if interrupts::is_pending() {
        interrupts::check_for_interrupts();
    }
}

/// Waits as an insert of the key would.
fn wait_for(xid: Xid) -> bool {
    let none = std::ptr::null_mut();
    // SAFETY: waits for a transaction, without a relation for the message.
    unsafe {
        pg_sys::XactLockTableWait(narrow(xid), none, none.cast(), pg_sys::XLTW_Oper::XLTW_None)
    };
    true
}

/// Raises 23505 for a row whose key another one has. The snapshot keeps the row.
fn violated(heap: Relation<'_>, index: Relation<'_>, storage: TableRef, row: RowId) -> ! {
    let Newest::Live(version) = session::session().newest(&PgClock, storage, row) else {
        duplicated(heap, index, storage, row)
    };
    let mut row = tuple_of(version, heap.oid());
    // SAFETY: a tuple of the table's.
    unsafe { duplicate::raise(heap, index.oid(), &raw mut row) }
}
