//! A row whose key changes, and whose KEYS_MOVED is then cleared, beside readers that look for it
//! by both keys. Each finds it by the key that it has for its snapshot, and by no other.

use super::{Me, Place, body, thread};
use crate::ids::CommandId;
use crate::ids::FileKey;
use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};
use crate::row::Head;
use crate::{
    Build, Direction, Entered, IndexScan, KeyRange, Newest, RowId, Session, Transaction,
    VersionRef, Written, Xid,
};
use mot_model::{explore, finds, threads};
use std::sync::Arc;

const CID: CommandId = CommandId(1);
const INDEX: u32 = 3;
/// What the row's column holds at first, and later.
const BEFORE: u64 = 1;
const AFTER: u64 = 2;

fn definition() -> IndexDefinition {
    let int8 = AttributeLayout {
        len: 8,
        align: 8,
        by_value: true,
    };
    IndexDefinition {
        relation: INDEX,
        file: FileKey::NONE,
        unique: false,
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
fn tuple(value: u64) -> Vec<u8> {
    let mut tuple = body(value);
    tuple[0] = 1;
    tuple
}

fn enter(
    place: &Place,
    session: &Session,
    me: &Me,
    work: &mut Transaction,
    (row_id, version): (RowId, VersionRef),
) {
    let entered = work
        .enter(session, me, place.table, row_id, version)
        .unwrap();
    assert_eq!(entered, Entered::Done);
}

/// An index, and a row.
fn row(place: &Place, session: &Session) -> RowId {
    let me = place.world.begin();
    let mut work = Transaction::new();
    let xid = Xid(me.xid);
    let built = work.create_index(session, &me, place.table, &definition(), xid);
    assert!(matches!(built, Ok(Build::Done(_))), "{built:?}");
    let row = work
        .insert(session, place.table, &tuple(BEFORE), xid, CID)
        .unwrap();
    enter(place, session, &me, &mut work, row);
    work.log(session, &mut place.world.clone()).unwrap();
    me.commit(Some(BEFORE));
    work.commit(session);
    row.0
}

/// Moves the row's key, and keeps that or takes it back. No other thread changes the row.
fn move_key(place: &Place, session: &Session, row_id: RowId, is_kept: bool) {
    let me = place.world.begin();
    let mut work = Transaction::new();
    let pin = session.memory().pin();
    let Newest::Live(seen) = session.newest(&me, place.table, row_id) else {
        panic!("the row is gone");
    };
    let (xid, new) = (Xid(me.xid), tuple(AFTER));
    let written = work.update(session, &me, place.table, row_id, seen, &new, xid, CID);
    let Ok(Written::Done(version)) = written else {
        panic!("{written:?}")
    };
    enter(place, session, &me, &mut work, (row_id, version));
    drop(pin);
    if is_kept {
        work.log(session, &mut place.world.clone()).unwrap();
        me.commit(Some(AFTER));
        work.commit(session);
    } else {
        me.abort();
        work.abort(session);
    }
}

fn sweep(place: &Place, session: &Session) {
    session.engine().raise_horizon(place.world.horizon());
    // All rows, as after a recovery: also while the writer is at work at one.
    session.sweep(&Me::nobody(&place.world), place.table, true, || {});
}

/// Looks for the row by both keys under one snapshot.
fn look(place: &Place, session: &Session) {
    let index = place.table.all_indexes().next().expect("there is one");
    let snapshot = Me::nobody(&place.world).snapshot();
    for value in [AFTER, BEFORE] {
        let mut key = crate::key::KeyBuffer::new();
        crate::key::encode_row(&definition(), &tuple(value), &mut key).unwrap();
        let mut range = KeyRange::new();
        range.set_prefix(key.as_slice()).unwrap();
        let mut scan = IndexScan::new();
        scan.start(place.table, index, &range, Direction::Forward);
        let found = scan.next(session, &snapshot).unwrap().is_some();
        assert_eq!(found, value == snapshot.value, "by {value}");
    }
}

fn beside_a_sweeper(is_kept: bool) {
    let place = Place::new();
    let session = place.join();
    let row_id = row(&place, &session);
    threads(vec![
        thread(&place, move |place| {
            let session = place.join();
            move_key(place, &session, row_id, is_kept);
            sweep(place, &session);
        }),
        thread(&place, |place| sweep(place, &place.join())),
        thread(&place, |place| look(place, &place.join())),
    ]);
    finish(&place, &session, row_id);
}

fn moved() {
    beside_a_sweeper(true);
}

fn taken_back() {
    beside_a_sweeper(false);
}

fn finish(place: &Arc<Place>, session: &Session, row_id: RowId) {
    sweep(place, session);
    let head = place
        .table
        .anchor(row_id)
        .expect("it was handed out")
        .head();
    assert!(!head.has(Head::KEYS_MOVED), "nobody needs the other key");
    let mut problems = Vec::new();
    session
        .check(place.table, &Me::nobody(&place.world), |problem| {
            problems.push(problem)
        })
        .unwrap();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn a_row_is_found_by_its_key_alone() {
    explore("KEYS_MOVED, a key that moves", 1_500, moved);
    explore("KEYS_MOVED, a key that is taken back", 1_500, taken_back);
}

mod seen {
    use super::*;

    const RUNS: usize = 40_000;
    const TELLING: &str = "reclaim: telling scans that KEYS_MOVED is cleared";

    #[test]
    fn telling_scans_of_a_key_that_moved() {
        finds(TELLING, RUNS, moved);
    }

    #[test]
    fn telling_scans_of_a_key_that_was_taken_back() {
        finds(TELLING, RUNS, taken_back);
    }

    #[test]
    fn waiting_for_who_is_cleaning() {
        finds(
            "reclaim: clearing KEYS_MOVED behind a cleaner",
            RUNS,
            taken_back,
        );
    }
}
