//! What commits leave behind and later commits of the session take out, beside other sessions'
//! commits on the same rows, the sweeper and a reader.

use super::chains::{insert, update};
use super::{Me, Place, thread, value_of};
use crate::{Newest, RowId, Session, Transaction};
use mot_model::{explore, finds, threads};
use std::sync::Arc;

/// Two rows, each with the number it begins with.
const ROWS: usize = 2;
/// Bits of a row's number in the server's word for both.
const NUMBER_BITS: usize = 32;

fn numbers(word: u64) -> [u64; ROWS] {
    std::array::from_fn(|row| word >> (NUMBER_BITS * row) & u64::from(u32::MAX))
}

/// Gives a row another number, in a transaction of its own whose commit prunes what the session's
/// earlier ones left.
fn change(place: &Place, session: &Session, row_ids: [RowId; ROWS], row: usize, number: u64) {
    session.engine().raise_horizon(place.world.horizon());
    let me = place.world.begin();
    let mut work = Transaction::new();
    update(place, session, &me, &mut work, row_ids[row], number);
    work.log(session, &mut place.world.clone()).unwrap();
    place.world.with(|server| {
        server.running.remove(&me.xid);
        server.committed.insert(me.xid);
        let mut now = numbers(server.value);
        now[row] = number;
        server.value = now[0] | now[1] << NUMBER_BITS;
    });
    work.commit(session);
}

/// Gives both rows a number in one transaction, whose end asks for the one while it works at the
/// other: by then another may have put states on both and taken these out.
fn change_both(place: &Place, session: &Session, row_ids: [RowId; ROWS], number: u64) {
    session.engine().raise_horizon(place.world.horizon());
    let me = place.world.begin();
    let mut work = Transaction::new();
    for row_id in row_ids {
        update(place, session, &me, &mut work, row_id, number);
    }
    work.log(session, &mut place.world.clone()).unwrap();
    me.commit(Some(number | number << NUMBER_BITS));
    work.commit(session);
    session.memory().collect();
}

/// As the sweeper does: rows that were left with something to do, and no others.
fn sweep(place: &Place, session: &Session) {
    session.engine().raise_horizon(place.world.horizon());
    session.sweep(&Me::nobody(&place.world), place.table, false, || {});
}

fn read(place: &Place, session: &Session, row_ids: [RowId; ROWS]) {
    let snapshot = Me::nobody(&place.world).snapshot();
    for _ in 0..2 {
        let seen = row_ids.map(|row_id| {
            let version = session.visible(place.table, row_id, &snapshot);
            value_of(version.expect("the row is there").body())
        });
        assert_eq!(seen, numbers(snapshot.value));
    }
}

/// The rows, with numbers 1 and 2.
fn rows(place: &Place, session: &Session) -> [RowId; ROWS] {
    [1, 1 | 2 << NUMBER_BITS].map(|word| {
        let number = numbers(word).into_iter().max().expect("two");
        let row_id = insert(place, session, number);
        place.world.with(|server| server.value = word);
        row_id
    })
}

/// Two sessions commit twice each, on two rows, in turns that differ.
fn two_commits_on_two_rows() {
    let place = Place::new();
    let session = place.join();
    let row_ids = rows(&place, &session);
    let writer = |first: usize, number: u64| {
        thread(&place, move |place| {
            let session = place.join();
            change(place, &session, row_ids, first, number);
            change(place, &session, row_ids, 1 - first, number + 1);
        })
    };
    beside_sweeper_and_reader(&place, &session, row_ids, [writer(0, 10), writer(1, 20)]);
}

/// Two sessions change both rows, each in one transaction.
fn two_commits_of_two_rows() {
    let place = Place::new();
    let session = place.join();
    let row_ids = rows(&place, &session);
    let writer = |number: u64| {
        thread(&place, move |place| {
            change_both(place, &place.join(), row_ids, number);
        })
    };
    beside_sweeper_and_reader(&place, &session, row_ids, [writer(10), writer(20)]);
}

/// Runs two writers beside a sweeper that frees what is dead and a reader; then looks what is left.
fn beside_sweeper_and_reader(
    place: &Arc<Place>,
    session: &Session,
    row_ids: [RowId; ROWS],
    [one, other]: [Box<dyn FnOnce() + Send>; 2],
) {
    let sweeper = thread(place, |place| {
        let session = place.join();
        sweep(place, &session);
        session.memory().collect();
    });
    let reader = thread(place, move |place| read(place, &place.join(), row_ids));
    threads(vec![one, other, sweeper, reader]);
    finish(place, session, row_ids);
}

/// No snapshot sees anything old any more: each row is its newest state, and the sweeper has found
/// what the commits left.
fn finish(place: &Arc<Place>, session: &Session, row_ids: [RowId; ROWS]) {
    sweep(place, session);
    let me = Me::nobody(&place.world);
    let pin = session.memory().pin();
    let expected = numbers(place.world.with(|server| server.value));
    for (row_id, number) in row_ids.into_iter().zip(expected) {
        let Newest::Live(version) = session.newest(&me, place.table, row_id) else {
            panic!("the row is gone");
        };
        assert_eq!(value_of(version.body()), number);
        assert!(version.next().is_none(), "what nobody needs is taken out");
    }
    drop(pin);
    let mut problems = Vec::new();
    session
        .check(place.table, &me, |problem| problems.push(problem))
        .unwrap();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn commits_take_out_what_nobody_sees() {
    explore(
        "pending prunes, two commits on two rows",
        1_500,
        two_commits_on_two_rows,
    );
}

#[test]
fn commits_ask_ahead_beside_others() {
    explore(
        "pending prunes, two commits of two rows each",
        1_500,
        two_commits_of_two_rows,
    );
}

mod seen {
    use super::*;

    const RUNS: usize = 40_000;

    #[test]
    fn noting_rest_of_what_is_still_on_top() {
        finds(
            "rows: noting as quiescent what is still on top",
            RUNS,
            two_commits_on_two_rows,
        );
    }

    #[test]
    fn the_dirty_bit_of_what_a_commit_left() {
        finds(
            "commit: the dirty bit of what it left",
            RUNS,
            two_commits_on_two_rows,
        );
    }

    #[test]
    fn the_horizon_of_a_commit() {
        finds("rows: the horizon", RUNS, two_commits_on_two_rows);
    }
}
