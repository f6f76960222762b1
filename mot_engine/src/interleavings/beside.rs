//! An index that is built beside writers: afterwards every version that any snapshot sees has its
//! entry, no entry leads astray, and no two rows have one unique key.

use super::{Me, Place, body, thread};
use crate::ids::CommandId;
use crate::ids::FileKey;
use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};
use crate::{
    Entered, IndexRef, KeysUnchanged, Newest, Problem, RowId, Session, Transaction, Written, Xid,
};
use mot_model::{explore, finds, threads};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const CID: CommandId = CommandId(1);
/// What the row's column holds at first, and later.
const BEFORE: u64 = 1;
const AFTER: u64 = 2;

fn definition(unique: bool) -> IndexDefinition {
    let int8 = AttributeLayout {
        len: 8,
        align: 8,
        by_value: true,
    };
    IndexDefinition {
        relation: 3,
        file: FileKey::NONE,
        unique,
        nulls_not_distinct: false,
        columns: vec![KeyColumn {
            attnum: 1,
            kind: KeyKind::Int8,
            descending: false,
            nulls_first: false,
            nullable: false,
            collation: None,
        }],
        layout: vec![int8],
        missing: Vec::new(),
        computed: None,
    }
}

/// A tuple of one column.
pub(super) fn tuple(value: u64) -> Vec<u8> {
    let mut tuple = body(value);
    tuple[0] = 1;
    tuple
}

/// A row, in a table without indexes.
pub(super) fn row(place: &Place, session: &Session) -> RowId {
    let me = place.world.begin();
    let mut work = Transaction::new();
    let (row_id, version) = work
        .insert(session, place.table, &tuple(BEFORE), Xid(me.xid), CID)
        .unwrap();
    let entered = work
        .enter(session, &me, place.table, row_id, version)
        .unwrap();
    assert_eq!(entered, Entered::Done);
    end(place, session, &me, work, true);
    row_id
}

pub(super) fn end(place: &Place, session: &Session, me: &Me, mut work: Transaction, is_kept: bool) {
    if is_kept {
        work.log(session, &mut place.world.clone()).unwrap();
        me.commit(None);
        work.commit(session);
    } else {
        me.abort();
        work.abort(session);
    }
}

/// Moves the row's key, and keeps that or takes it back. `unchanged`: of a statement that began
/// when no index had the column.
fn move_key(
    place: &Place,
    session: &Session,
    row_id: RowId,
    is_kept: bool,
    unchanged: Option<KeysUnchanged>,
) {
    let me = place.world.begin();
    let mut work = Transaction::new();
    let pin = session.memory().pin();
    let Newest::Live(seen) = session.newest(&me, place.table, row_id) else {
        panic!("the row is gone");
    };
    let (xid, new) = (Xid(me.xid), tuple(AFTER));
    let table = place.table;
    let written = match unchanged {
        None => work.update(session, &me, table, row_id, seen, &new, xid, CID),
        Some(unchanged) => {
            work.update_non_key(session, &me, table, row_id, seen, &new, xid, CID, unchanged)
        }
    };
    let Ok(Written::Done(version)) = written else {
        panic!("{written:?}")
    };
    drop(pin);
    let entered = work
        .enter(session, &me, place.table, row_id, version)
        .unwrap();
    assert_eq!(entered, Entered::Done);
    end(place, session, &me, work, is_kept);
}

/// What core does up to `indisready`.
pub(super) fn build(place: &Place, session: &Session, unique: bool) -> IndexRef {
    let me = place.world.begin();
    let mut work = Transaction::new();
    let definition = definition(unique);
    let index = work
        .begin_index(session, place.table, &definition, Xid(me.xid))
        .unwrap();
    session.fill_index(&me, place.table, index, || {}).unwrap();
    end(place, session, &me, work, true);
    index
}

fn sweep(place: &Place, session: &Session) {
    session.engine().raise_horizon(place.world.horizon());
    session.sweep(&Me::nobody(&place.world), place.table, true, || {});
}

fn problems(place: &Arc<Place>, session: &Session) -> Vec<Problem> {
    let mut problems = Vec::new();
    session
        .check(place.table, &Me::nobody(&place.world), |problem| {
            problems.push(problem)
        })
        .unwrap();
    problems
}

fn beside_a_move(is_kept: bool, began_before: bool) {
    let place = Place::new();
    let session = place.join();
    let row_id = row(&place, &session);
    let unchanged = session.keys_unchanged(place.table, |_| true).unwrap();
    let unchanged = unchanged.filter(|_| began_before);
    threads(vec![
        thread(&place, |place| {
            build(place, &place.join(), false);
        }),
        thread(&place, move |place| {
            let session = place.join();
            move_key(place, &session, row_id, is_kept, unchanged);
            sweep(place, &session);
        }),
    ]);
    let found = problems(&place, &session);
    assert!(found.is_empty(), "{found:?}");
}

fn moved() {
    beside_a_move(true, false);
}

fn moved_by_an_older_statement() {
    beside_a_move(true, true);
}

fn taken_back() {
    beside_a_move(false, false);
}

/// Inserts a row, unless its key is taken.
fn insert(place: &Place, session: &Session) {
    let me = place.world.begin();
    let mut work = Transaction::new();
    let (row_id, version) = work
        .insert(session, place.table, &tuple(BEFORE), Xid(me.xid), CID)
        .unwrap();
    let is_kept = loop {
        match work
            .enter(session, &me, place.table, row_id, version)
            .unwrap()
        {
            Entered::Done => break true,
            Entered::Duplicate(_) => break false,
            Entered::Busy(xid, _) => me.wait_for(xid),
        }
    };
    end(place, session, &me, work, is_kept);
}

/// Two rows that want one key, beside the making of a unique index: it is refused, or they are not
/// both there.
fn wanted_twice() {
    let place = Place::new();
    let session = place.join();
    let is_valid = Arc::new(AtomicBool::new(false));
    let tells = is_valid.clone();
    threads(vec![
        thread(&place, move |place| {
            let session = place.join();
            let index = build(place, &session, true);
            let me = place.world.begin();
            // Core's wait for writers.
            let earlier = place.world.with(|server| server.running.clone());
            for xid in earlier.into_iter().filter(|xid| *xid < me.xid) {
                me.wait_for(Xid(xid));
            }
            let place_of_index = (place.table, index);
            session.fill_index(&me, place.table, index, || {}).unwrap();
            let asked_from = place.world.with(|server| Xid(server.next));
            let wait = |xid| {
                me.wait_for(xid);
                true
            };
            let found = session.find_duplicate(&me, place_of_index, asked_from, wait, || {});
            tells.store(matches!(found, Ok(None)), Ordering::Relaxed);
            end(place, &session, &me, Transaction::new(), true);
        }),
        thread(&place, |place| insert(place, &place.join())),
        thread(&place, |place| insert(place, &place.join())),
    ]);
    let is_valid = is_valid.load(Ordering::Relaxed);
    let found = problems(&place, &session);
    let is_duplicate = |problem: &Problem| matches!(problem, Problem::Duplicate { .. });
    assert!(!is_valid || !found.iter().any(is_duplicate), "{found:?}");
    let is_other = found.iter().any(|problem| !is_duplicate(problem));
    assert!(!is_other, "{found:?}");
}

#[test]
fn every_version_has_its_entry() {
    explore("beside, a key that moves", 1_500, moved);
    explore("beside, a key that is taken back", 1_500, taken_back);
    let moved = moved_by_an_older_statement;
    explore("beside, a key that an older statement moves", 1_500, moved);
}

#[test]
fn no_two_rows_have_a_key() {
    explore("beside, a key that is wanted twice", 1_500, wanted_twice);
}

mod seen {
    use super::*;

    const RUNS: usize = 40_000;

    #[test]
    fn waiting_for_who_is_pinned() {
        finds("index builds: waiting for who is pinned", RUNS, moved);
    }

    #[test]
    fn looking_at_the_row_again() {
        finds("index builds: looking at the row again", RUNS, taken_back);
    }

    #[test]
    fn the_latch_of_the_second_look() {
        let step = "index builds: the latch of the second look";
        finds(step, RUNS, moved_by_an_older_statement);
    }

    #[test]
    fn an_index_that_came() {
        let step = "updates of no key: an index that came";
        finds(step, RUNS, moved_by_an_older_statement);
    }

    #[test]
    fn those_who_run() {
        finds("index builds: those who run", 3 * RUNS, wanted_twice);
    }

    #[test]
    fn saying_that_keys_have_moved() {
        finds("index builds: saying that keys have moved", RUNS, moved);
    }
}
