//! Looking at what is committed now, while rows come and go.
#![cfg(debug_assertions)]

mod common;

use common::{Fate, Row, World, body, definition, key};
use mot_engine::pause::{Point, set_hook};
use mot_engine::{
    CommandId, Direction, Entered, IndexScan, KeyRange, Now, RowId, Session, TableRef, Transaction,
    VersionRef, Written, Xid,
};
use std::cell::RefCell;

const INDEX: u32 = 77;

thread_local! {
    /// What happens at the next stop between a scan's entries and its rows.
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

fn at_entries(point: Point) {
    if point == Point::ScanAfterEntries
        && let Some(work) = MEANWHILE.with(RefCell::take)
    {
        work();
    }
}

fn row(a: i32) -> Row {
    Row { a, b: 0, c: None }
}

/// Inserts a row, with its key's entry.
fn insert(
    session: &Session,
    work: &mut Transaction,
    me: &common::Me,
    table: TableRef,
    a: i32,
) -> (RowId, VersionRef) {
    let (xid, body) = (Xid(me.top), body(row(a)));
    let (row_id, version) = work
        .insert(session, table, &body, xid, CommandId(1))
        .unwrap();
    let entered = work.enter(session, me, table, row_id, version).unwrap();
    assert_eq!(entered, Entered::Done);
    (row_id, version)
}

/// The key leads to a row that is gone and to one of a transaction that rolls back after the
/// entries were read: its row id is free at once, and the next row in it, of another key, is
/// committed. INSERT ... ON CONFLICT would change that one.
#[test]
fn a_row_in_a_row_id_that_an_abort_gave_back_is_not_the_key_s() {
    let (_region, engine) = common::engine(32 << 20);
    let session = engine.join().unwrap();
    let world = World::new();
    let by_a = definition(INDEX, true, &[(1, false)]);
    let table = common::table(&session, &world, std::slice::from_ref(&by_a));
    let index = session
        .find_index(table, INDEX, &common::reader(&world))
        .unwrap();
    let (first, version) = common::transact(&session, &world, |work, me, _| {
        insert(&session, work, me, table, 1)
    });
    common::transact(&session, &world, |work, me, xid| {
        let gone = work.delete(&session, me, table, first, version, xid, CommandId(1));
        assert!(matches!(gone, Ok(Written::Done(_))), "{gone:?}");
    });

    let other = engine.join().unwrap();
    let me = world.begin();
    let mut work = Transaction::new();
    let (second, _) = insert(&other, &mut work, &me, table, 1);
    assert_ne!(first, second);
    let meanwhile = {
        let world = world.clone();
        move || {
            me.end(Fate::Aborted);
            work.abort(&other);
            // After those that the process has at hand.
            let is_used_again = (2..100).any(|a| {
                let insert =
                    |work: &mut _, me: &_, _| insert(&other, work, me, table, a).0 == second;
                common::transact(&other, &world, insert)
            });
            assert!(is_used_again, "the row id has another row");
        }
    };
    MEANWHILE.with(|place| *place.borrow_mut() = Some(Box::new(meanwhile)));
    set_hook(Some(at_entries));
    let mut range = KeyRange::new();
    range.set_point(&key(&by_a, row(1))).unwrap();
    let mut scan = IndexScan::new();
    scan.start(table, index, &range, Direction::Forward);
    let clock = common::reader(&world);
    let found = scan.next(&session, &Now(&clock)).unwrap();
    set_hook(None);
    assert!(
        MEANWHILE.with(|place| place.borrow().is_none()),
        "nothing happened meanwhile"
    );
    assert!(found.is_none(), "a row of another key: {found:?}");
}
