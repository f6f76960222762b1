//! Definitions of transactions that were given up, resolved beside sessions that create and drop
//! (`reclaim/given_up.rs`).

use super::{Me, Place, thread};
use crate::transaction::free_pending;
use crate::{RelationKey, Session, Transaction, Xid};
use mot_model::{explore, finds, threads};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const OTHER: RelationKey = RelationKey::of_file(1, 0, 3);

/// A round of the sweeping process, to which others have left something, too.
fn round(place: &Place, session: &Session) {
    session.leave_definitions_open();
    session.resolve_given_up(&Me::nobody(&place.world));
    free_pending(session, || ());
}

/// A transaction of a session drops the table, and commits. Only the session unlinks it.
fn drop_and_commit(place: &Place) {
    let session = place.join();
    let me = place.world.begin();
    let mut work = Transaction::new();
    work.drop_table(&session, place.table, Xid(me.xid)).unwrap();
    work.log(&session, &mut place.world.clone()).unwrap();
    me.commit(None);
    let pending = place
        .table
        .storage()
        .is_pending_free
        .load(Ordering::Acquire);
    assert_eq!(pending, 0, "unlinked before its session came by");
    work.commit(&session);
}

/// The table's drop was prepared, and rolled back; no process has resolved that.
fn roll_a_drop_back(place: &Place) {
    let session = place.join();
    let me = place.world.begin();
    let mut work = Transaction::new();
    work.drop_table(&session, place.table, Xid(me.xid)).unwrap();
    work.log(&session, &mut place.world.clone()).unwrap();
    work.give_up(&session);
    me.abort();
}

fn beside_rounds(before: fn(&Place)) {
    let place = Place::new();
    before(&place);
    threads(vec![
        thread(&place, drop_and_commit),
        thread(&place, |place| {
            let session = place.join();
            for _ in 0..2 {
                round(place, &session);
            }
        }),
    ]);
    let session = place.join();
    round(&place, &session);
    assert!(session.tables().is_empty(), "it was dropped");
}

fn a_drop() {
    beside_rounds(|_| ());
}

fn a_drop_behind_one_that_was_rolled_back() {
    beside_rounds(roll_a_drop_back);
}

/// A table is made by a transaction that is prepared, and then ended by any session.
fn a_prepared_creation() {
    for commits in [false, true] {
        let place = Place::new();
        let work = move |place: &Place| {
            let session = place.join();
            let me = place.world.begin();
            let mut work = Transaction::new();
            work.create_table(&session, OTHER, Xid(me.xid)).unwrap();
            work.log(&session, &mut place.world.clone()).unwrap();
            work.give_up(&session);
            if commits {
                me.commit(None);
            } else {
                me.abort();
            }
        };
        let sweep = |place: &Place| {
            let session = place.join();
            for _ in 0..2 {
                session.resolve_given_up(&Me::nobody(&place.world));
            }
        };
        threads(vec![thread(&place, work), thread(&place, sweep)]);
        is_resolved(&place, 1 + usize::from(commits));
    }
}

/// The next round leaves so many tables, and nothing open.
fn is_resolved(place: &Arc<Place>, tables: usize) {
    let session = place.join();
    session.resolve_given_up(&Me::nobody(&place.world));
    let walks = session.tables();
    assert_eq!(walks.len(), tables, "storages that are left");
    let open = walks.iter().filter(|walk| walk.table().makers().has_open());
    assert_eq!(open.count(), 0, "definitions that are not resolved");
}

#[test]
fn drops_are_their_sessions() {
    explore("a drop beside rounds", 2_000, a_drop);
    explore(
        "a drop behind one that was rolled back",
        2_000,
        a_drop_behind_one_that_was_rolled_back,
    );
}

#[test]
fn what_was_given_up_is_resolved() {
    explore("a prepared creation", 2_000, a_prepared_creation);
}

mod seen {
    use super::*;

    const RUNS: usize = 20_000;

    #[test]
    fn whose_session_resolves() {
        finds("definitions: whose session resolves them", RUNS, a_drop);
    }

    #[test]
    fn the_mark_of_an_older_drop() {
        finds(
            "definitions: the mark of an older drop",
            RUNS,
            a_drop_behind_one_that_was_rolled_back,
        );
    }

    #[test]
    fn that_something_is_open() {
        finds(
            "prepare: the definitions that it gives up",
            RUNS,
            a_prepared_creation,
        );
    }
}
