//! A transaction that changes one row several times, and takes its states out all at once, beside
//! those that lock, read and sweep the row.

use super::chains::{insert, update};
use super::{Me, Place, body, thread, value_of};
use crate::{
    CommandId, LockStrength, Locked, Newest, RowId, Session, Transaction, VersionRef, Xid,
};
use mot_model::{explore, finds, threads};

const FIRST: u64 = 1;
const LAST: u64 = 4;

/// Changes the row again and again, and commits or aborts.
fn change_often(place: &Place, session: &Session, row_id: RowId, commits: bool) {
    let me = place.world.begin();
    let mut work = Transaction::new();
    for value in FIRST + 1..=LAST {
        update(place, session, &me, &mut work, row_id, value);
    }
    work.log(session, &mut place.world.clone()).unwrap();
    if commits {
        me.commit(Some(LAST));
        work.commit(session);
    } else {
        me.abort();
        work.abort(session);
    }
}

fn lock(
    place: &Place,
    session: &Session,
    me: &Me,
    work: &mut Transaction,
    row_id: RowId,
    seen: VersionRef,
    strength: LockStrength,
) -> Locked {
    let xid = Xid(me.xid);
    work.lock(session, me, place.table, row_id, seen, strength, xid)
        .unwrap()
}

/// Locks the row as a foreign key does, which does not mind what changes it. While it holds the
/// lock no other gets a stronger one.
fn refer(place: &Place, session: &Session, row_id: RowId) {
    let me = place.world.begin();
    let mut work = Transaction::new();
    let snapshot = me.snapshot();
    let seen = session.visible(place.table, row_id, &snapshot);
    let seen = seen.expect("the row is there");
    let locked = lock(
        place,
        session,
        &me,
        &mut work,
        row_id,
        seen,
        LockStrength::KeyShare,
    );
    assert_eq!(locked, Locked::Done);
    for _ in 0..3 {
        let other = place.world.begin();
        let mut strong = Transaction::new();
        let pin = session.memory().pin();
        if let Newest::Live(seen) = session.newest(&other, place.table, row_id) {
            let strength = LockStrength::Update;
            let locked = lock(place, session, &other, &mut strong, row_id, seen, strength);
            assert_ne!(locked, Locked::Done, "somebody's lock is lost");
        }
        drop(pin);
        other.abort();
        strong.abort(session);
    }
    drop(snapshot);
    me.commit(None);
    work.commit(session);
}

fn sweep(place: &Place, session: &Session) {
    session.engine().raise_horizon(place.world.horizon());
    session.sweep(&Me::nobody(&place.world), place.table, true, || {});
}

fn read(place: &Place, session: &Session, row_id: RowId) {
    let snapshot = Me::nobody(&place.world).snapshot();
    for _ in 0..2 {
        let seen = session.visible(place.table, row_id, &snapshot);
        let seen = seen.expect("the row is there");
        assert_eq!(value_of(seen.body()), snapshot.value);
    }
}

fn beside_others(commits: bool) {
    let place = Place::new();
    let session = place.join();
    let row_id = insert(&place, &session, FIRST);
    threads(vec![
        thread(&place, move |place| {
            change_often(place, &place.join(), row_id, commits)
        }),
        thread(&place, move |place| refer(place, &place.join(), row_id)),
        thread(&place, move |place| {
            let session = place.join();
            sweep(place, &session);
            session.memory().collect();
        }),
        thread(&place, move |place| read(place, &place.join(), row_id)),
    ]);
    sweep(&place, &session);
    sweep(&place, &session);
    let me = Me::nobody(&place.world);
    let pin = session.memory().pin();
    let Newest::Live(version) = session.newest(&me, place.table, row_id) else {
        panic!("the row is gone");
    };
    assert_eq!(value_of(version.body()), if commits { LAST } else { FIRST });
    assert!(version.next().is_none(), "what nobody needs is taken out");
    drop(pin);
    let mut problems = Vec::new();
    session
        .check(place.table, &me, |problem| problems.push(problem))
        .unwrap();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn locks_and_readers_do_not_mind() {
    explore("own versions, committed", 1_500, || beside_others(true));
    explore("own versions, taken back", 1_500, || beside_others(false));
}

/// A new row, locked and changed by its maker, and taken back: its lock goes after its states.
/// Another thread sweeps, two others make rows, perhaps in its row id.
fn a_new_row_taken_back() {
    let place = Place::new();
    let session = place.join();
    threads(vec![
        thread(&place, |place| {
            let session = place.join();
            let me = place.world.begin();
            let xid = Xid(me.xid);
            let mut work = Transaction::new();
            let made = work.insert(&session, place.table, &body(FIRST), xid, CommandId(1));
            let (row_id, seen) = made.unwrap();
            let strength = LockStrength::Update;
            let locked = lock(place, &session, &me, &mut work, row_id, seen, strength);
            assert_eq!(locked, Locked::Done);
            update(place, &session, &me, &mut work, row_id, LAST);
            me.abort();
            work.abort(&session);
        }),
        thread(&place, |place| sweep(place, &place.join())),
        thread(&place, |place| insert_and_read(place, 10)),
        thread(&place, |place| insert_and_read(place, 11)),
    ]);
    sweep(&place, &session);
    let mut problems = Vec::new();
    let me = Me::nobody(&place.world);
    let report = session
        .check(place.table, &me, |problem| problems.push(problem))
        .unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(report.rows, 2);
    assert_eq!(report.versions, 2);
}

fn insert_and_read(place: &Place, value: u64) {
    let session = place.join();
    let row_id = insert(place, &session, value);
    let snapshot = Me::nobody(&place.world).snapshot();
    let seen = session.visible(place.table, row_id, &snapshot);
    assert_eq!(value_of(seen.expect("the row is there").body()), value);
}

#[test]
fn a_row_id_is_given_away_once() {
    explore(
        "own versions, a new row taken back",
        3_000,
        a_new_row_taken_back,
    );
}

mod seen {
    use super::*;

    #[test]
    fn the_row_id_of_a_cleaner() {
        finds(
            "reclaim: the row id of a cleaner",
            RUNS,
            a_new_row_taken_back,
        );
    }

    const RUNS: usize = 40_000;

    #[test]
    fn what_stays_in_between() {
        finds("reclaim: what stays of own versions", RUNS, || {
            beside_others(true)
        });
    }

    #[test]
    fn the_latch_of_a_chain() {
        finds("rows: the latch of a chain", RUNS, || beside_others(false));
    }
}
