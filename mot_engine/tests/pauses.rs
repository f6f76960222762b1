//! Errors that come out of pause points: what was made and not published yet is given back.
#![cfg(debug_assertions)]

mod common;

use common::{Fate, Me, Row, World, body};
use mot_engine::memory::Purpose;
use mot_engine::pause::{Point, set_hook};
use mot_engine::{CommandId, LockStrength, RowId, Session, TableRef, Transaction, VersionRef, Xid};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// More than enough for a leak to show: memory is counted as processes take it, many blocks at a
/// time.
const FAILURES: i64 = 20_000;

struct Place {
    session: Session,
    world: World,
    table: TableRef,
    row_id: RowId,
    seen: VersionRef,
}

fn with_a_row(session: Session) -> Place {
    let world = World::new();
    let me = world.begin();
    let mut work = Transaction::new();
    let xid = Xid(me.top);
    let table = work.create_table(&session, common::TABLE, xid).unwrap();
    let (row_id, seen) = work
        .insert(&session, table, &row(0), xid, CommandId(1))
        .unwrap();
    me.end(Fate::Committed);
    work.commit(&session);
    Place {
        session,
        world,
        table,
        row_id,
        seen,
    }
}

fn row(b: i32) -> Vec<u8> {
    body(Row { a: 1, b, c: None })
}

fn fail_before_publishing(point: Point) {
    if matches!(point, Point::WriteBeforePublish | Point::LockBeforePublish) {
        std::panic::resume_unwind(Box::new(point.name()));
    }
}

/// Runs `work` in transactions, fails it before it publishes anything, and compares memory.
fn leaves_no_memory(work: impl Fn(&Place, &mut Transaction, &Me)) {
    let (_region, engine) = common::engine(32 << 20);
    let place = with_a_row(engine.join().unwrap());
    let bytes = || engine.memory().purpose_bytes(Purpose::Rows);
    let fail = || {
        let me = place.world.begin();
        let mut transaction = Transaction::new();
        let failed = catch_unwind(AssertUnwindSafe(|| work(&place, &mut transaction, &me)));
        let error = failed.expect_err("work ends in a panic");
        assert!(error.is::<&'static str>(), "the point was not reached");
        me.end(Fate::Aborted);
        transaction.abort(&place.session);
    };
    set_hook(Some(fail_before_publishing));
    // A first one, for what processes take ahead; then so many that a leak is more than that.
    fail();
    let before = bytes();
    for _ in 0..FAILURES {
        fail();
    }
    set_hook(None);
    assert!(
        bytes() - before < FAILURES * 16,
        "{} bytes are left",
        bytes() - before
    );
    common::check(&place.session, place.table, &common::reader(&place.world));
}

#[test]
fn a_failed_update_leaves_no_version() {
    leaves_no_memory(|place, transaction, me| {
        let (xid, cid) = (Xid(me.top), CommandId(1));
        let written = transaction.update(
            &place.session,
            me,
            place.table,
            place.row_id,
            place.seen,
            &row(1),
            xid,
            cid,
        );
        panic!("{written:?}");
    });
}

#[test]
fn a_failed_delete_leaves_no_tombstone() {
    leaves_no_memory(|place, transaction, me| {
        let (xid, cid) = (Xid(me.top), CommandId(1));
        let written = transaction.delete(
            &place.session,
            me,
            place.table,
            place.row_id,
            place.seen,
            xid,
            cid,
        );
        panic!("{written:?}");
    });
}

#[test]
fn a_failed_lock_leaves_no_entry() {
    leaves_no_memory(|place, transaction, me| {
        let locked = transaction.lock(
            &place.session,
            me,
            place.table,
            place.row_id,
            place.seen,
            LockStrength::Update,
            Xid(me.top),
        );
        panic!("{locked:?}");
    });
}
