//! What the server forgets beside transactions that end: it is told below which outcomes no
//! process asks any more (`reclaim/unresolved.rs`), and a later reader of a version without a hint
//! must not need one of those.

use super::chains::{insert, update};
use super::{Me, Place, thread};
use crate::row::flags;
use crate::{RowId, Session, Transaction, Xid};
use mot_model::{explore, finds, threads};

/// What the sweeper's owner does: asks what runs, then for marks, sweeps, and lets the server
/// forget.
fn sweep_and_forget(place: &Place, session: &Session) {
    let active = place.world.with(|server| {
        let running = server.running.first().copied();
        Xid(running.unwrap_or(server.next))
    });
    let marked = session.engine().oldest_unresolved();
    let done = session.sweep(&Me::nobody(&place.world), place.table, false, || {});
    if done.groups_kept_out == 0 {
        let below = marked.map_or(active, |marked| marked.min(active));
        place
            .world
            .with(|server| server.forgotten = server.forgotten.max(below.0));
    }
}

/// A reader that finds no hint at the row has to ask for the outcome, and reads the row again if
/// that is forgotten.
fn ask(place: &Place, session: &Session, row_id: RowId) {
    let is_resolved =
        |version: crate::VersionRef| version.flags() & (flags::COMMITTED | flags::ABORTED) != 0;
    for _ in 0..2 {
        let _pin = session.memory().pin();
        let newest = place
            .table
            .anchor(row_id)
            .and_then(|anchor| anchor.head().version());
        for version in std::iter::successors(newest, |version| version.next()) {
            if is_resolved(version) {
                continue;
            }
            let xid = version.xid().0;
            let is_forgotten = place.world.with(|server| xid < server.forgotten);
            assert!(
                !is_forgotten || is_resolved(version),
                "nobody knows any more what became of {xid}"
            );
        }
    }
}

/// A change of the row that is about to be committed, or prepared.
fn change(place: &Place, session: &Session, row_id: RowId, value: u64) -> (Me, Transaction) {
    let me = place.world.begin();
    let mut work = Transaction::new();
    session.begin_unresolved(Xid(me.xid));
    update(place, session, &me, &mut work, row_id, value);
    work.log(session, &mut place.world.clone()).unwrap();
    (me, work)
}

fn beside_a_sweep(ended: fn(&Place, &Session, RowId)) {
    let place = Place::new();
    let session = place.join();
    let row_id = insert(&place, &session, 1);
    threads(vec![
        thread(&place, move |place| ended(place, &place.join(), row_id)),
        thread(&place, move |place| {
            let session = place.join();
            sweep_and_forget(place, &session);
            sweep_and_forget(place, &session);
        }),
        thread(&place, move |place| ask(place, &place.join(), row_id)),
    ]);
    ask(&place, &session, row_id);
    sweep_and_forget(&place, &session);
    ask(&place, &session, row_id);
}

fn a_commit() {
    beside_a_sweep(|place, session, row_id| {
        let (me, mut work) = change(place, session, row_id, 2);
        me.commit(Some(2));
        work.commit(session);
        session.end_unresolved();
    });
}

fn an_abort() {
    beside_a_sweep(|place, session, row_id| {
        let (me, mut work) = change(place, session, row_id, 2);
        me.abort();
        work.abort(session);
        session.end_unresolved();
    });
}

/// Ended by a session that knows nothing of the rows.
fn a_prepared_transaction() {
    beside_a_sweep(|place, session, row_id| {
        let (me, mut work) = change(place, session, row_id, 2);
        work.give_up(session);
        session.end_unresolved();
        me.commit(Some(2));
    });
}

#[test]
fn nobody_asks_for_what_is_forgotten() {
    explore("unresolved, a commit", 1_500, a_commit);
    explore("unresolved, an abort", 1_500, an_abort);
    explore(
        "unresolved, a prepared transaction",
        1_500,
        a_prepared_transaction,
    );
}

mod seen {
    use super::*;

    const RUNS: usize = 40_000;

    #[test]
    fn the_mark() {
        finds("unresolved: the mark", RUNS, a_commit);
    }

    #[test]
    fn the_mark_of_one_that_is_taken_back() {
        finds("unresolved: the mark", RUNS, an_abort);
    }

    #[test]
    fn the_dirty_bit_of_what_is_given_up() {
        finds(
            "prepare: the dirty bit of what it gives up",
            RUNS,
            a_prepared_transaction,
        );
    }
}
