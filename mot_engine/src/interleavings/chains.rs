//! Version chains: pushed, stamped, taken back and pruned beside readers, which see the state of
//! their snapshot and nothing else.

use super::{Me, Place, body, thread, value_of};
use crate::ids::CommandId;
use crate::{Newest, RowId, Session, Transaction, VersionRef, Written, Xid};
use mot_model::{explore, finds, threads};
use std::sync::Arc;

const CID: CommandId = CommandId(1);

/// A committed row.
pub(super) fn insert(place: &Place, session: &Session, value: u64) -> RowId {
    let me = place.world.begin();
    let mut work = Transaction::new();
    let (row_id, _) = work
        .insert(session, place.table, &body(value), Xid(me.xid), CID)
        .unwrap();
    work.log(session, &mut place.world.clone()).unwrap();
    me.commit(Some(value));
    work.commit(session);
    row_id
}

/// Puts a state on the row, waiting for its owner.
pub(super) fn update(
    place: &Place,
    session: &Session,
    me: &Me,
    work: &mut Transaction,
    row_id: RowId,
    value: u64,
) {
    loop {
        let _pin = session.memory().pin();
        let seen = match session.newest(me, place.table, row_id) {
            Newest::Live(seen) => seen,
            Newest::Busy(xid) => {
                drop(_pin);
                me.wait_for(xid);
                continue;
            }
            other => panic!("the row is gone: {other:?}"),
        };
        match work
            .update(
                session,
                me,
                place.table,
                row_id,
                seen,
                &body(value),
                Xid(me.xid),
                CID,
            )
            .unwrap()
        {
            Written::Done(_) => return,
            Written::Busy(xid) => {
                drop(_pin);
                me.wait_for(xid);
            }
            Written::Changed => {}
            other => panic!("{other:?}"),
        }
    }
}

fn committed_update(place: &Place, session: &Session, row_id: RowId, value: u64) {
    let me = place.world.begin();
    let mut work = Transaction::new();
    update(place, session, &me, &mut work, row_id, value);
    work.log(session, &mut place.world.clone()).unwrap();
    me.commit(Some(value));
    work.commit(session);
}

fn aborted_update(place: &Place, session: &Session, row_id: RowId) {
    let me = place.world.begin();
    let mut work = Transaction::new();
    update(place, session, &me, &mut work, row_id, 666);
    me.abort();
    work.abort(session);
}

fn sweep(place: &Place, session: &Session) {
    session.engine().raise_horizon(place.world.horizon());
    session.sweep(&Me::nobody(&place.world), place.table, true, || {});
}

/// Reads the row twice under one snapshot, and looks at the first answer again after the pin is
/// gone.
fn read(place: &Place, session: &Session, row_id: RowId) {
    let snapshot = Me::nobody(&place.world).snapshot();
    let check = |version: VersionRef| {
        assert_eq!(value_of(version.body()), snapshot.value);
        assert!(
            !version.is_tombstone(),
            "a version handed out stays what it was"
        );
    };
    let first = session
        .visible(place.table, row_id, &snapshot)
        .expect("the row is there");
    check(first);
    check(
        session
            .visible(place.table, row_id, &snapshot)
            .expect("the row is there"),
    );
    check(first);
}

/// Two that commit, one that takes back, one that sweeps, one that reads.
fn beside_readers() {
    let place = Place::new();
    let session = place.join();
    let row_id = insert(&place, &session, 1);
    threads(vec![
        thread(&place, move |place| {
            let session = place.join();
            committed_update(place, &session, row_id, 2);
            committed_update(place, &session, row_id, 3);
        }),
        thread(&place, move |place| {
            aborted_update(place, &place.join(), row_id)
        }),
        thread(&place, move |place| {
            let session = place.join();
            sweep(place, &session);
            for _ in 0..3 {
                session.memory().collect();
            }
        }),
        thread(&place, move |place| read(place, &place.join(), row_id)),
    ]);
    finish(&place, &session, row_id, 3);
}

/// One commits, one sweeps, one reads: what a snapshot sees stays until it is gone.
fn swept_beside_a_reader() {
    let place = Place::new();
    let session = place.join();
    let row_id = insert(&place, &session, 1);
    threads(vec![
        thread(&place, move |place| {
            committed_update(place, &place.join(), row_id, 2)
        }),
        thread(&place, move |place| {
            let session = place.join();
            sweep(place, &session);
            sweep(place, &session);
        }),
        thread(&place, move |place| read(place, &place.join(), row_id)),
    ]);
    finish(&place, &session, row_id, 2);
}

/// PostgreSQL has decided, and the session is slow to stamp: others resolve its version, put theirs
/// on top, prune it and use its memory again.
fn stamped_late() {
    let place = Place::new();
    let session = place.join();
    let row_id = insert(&place, &session, 1);
    threads(vec![
        thread(&place, move |place| {
            committed_update(place, &place.join(), row_id, 2)
        }),
        thread(&place, move |place| {
            let session = place.join();
            committed_update(place, &session, row_id, 3);
            for _ in 0..3 {
                sweep(place, &session);
                session.memory().collect();
            }
            insert(place, &session, 3);
        }),
    ]);
    let value = place.world.with(|server| server.value);
    sweep(&place, &session);
    assert!(matches!(value, 2 | 3));
}

fn finish(place: &Arc<Place>, session: &Session, row_id: RowId, value: u64) {
    let me = Me::nobody(&place.world);
    sweep(place, session);
    sweep(place, session);
    let _pin = session.memory().pin();
    let Newest::Live(version) = session.newest(&me, place.table, row_id) else {
        panic!("the row is gone");
    };
    assert_eq!(value_of(version.body()), value);
    assert!(version.next().is_none(), "what nobody needs is taken out");
    drop(_pin);
    let mut problems = Vec::new();
    session
        .check(place.table, &me, |problem| problems.push(problem))
        .unwrap();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn readers_see_their_snapshot() {
    explore("chains, beside readers", 1_500, beside_readers);
    explore(
        "chains, swept beside a reader",
        1_500,
        swept_beside_a_reader,
    );
}

#[test]
fn outcomes_do_not_reach_memory_used_again() {
    explore("chains, stamped late", 1_500, stamped_late);
}

mod seen {
    use super::*;

    const RUNS: usize = 40_000;

    #[test]
    fn the_release_of_a_version() {
        finds("rows: the release of a version", RUNS, beside_readers);
    }

    #[test]
    fn the_latch_of_a_chain() {
        finds("rows: the latch of a chain", RUNS, beside_readers);
    }

    #[test]
    fn the_horizon() {
        finds("rows: the horizon", RUNS, swept_beside_a_reader);
    }

    #[test]
    fn retiring_what_others_may_read() {
        finds(
            "memory: retiring what others may read",
            RUNS,
            beside_readers,
        );
    }

    #[test]
    fn looking_for_a_version_in_its_chain() {
        finds(
            "commit: looking for a version in its chain",
            RUNS,
            stamped_late,
        );
    }
}
