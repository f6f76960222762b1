//! Ordinals: a writer counts on from what lies below at the moment at which its state is published,
//! whatever comes or goes meanwhile.

use super::chains::{insert, update};
use super::{Me, Place, thread};
use crate::{Ordinal, RowId, Session, Transaction, VersionRef};
use mot_model::{explore, finds, threads};

/// Changes the row and looks at its chain: ordinals rise from old to new, also beside what was
/// rolled back and still lies there.
fn change(place: &Place, session: &Session, row_id: RowId, value: u64, commits: bool) {
    let me = place.world.begin();
    let mut work = Transaction::new();
    update(place, session, &me, &mut work, row_id, value);
    assert_rising(place, session, row_id);
    if commits {
        work.log(session, &mut place.world.clone()).unwrap();
        me.commit(Some(value));
        work.commit(session);
    } else {
        me.abort();
        work.abort(session);
    }
}

fn assert_rising(place: &Place, session: &Session, row_id: RowId) {
    let _pin = session.memory().pin();
    let newest = place.table.anchor(row_id).unwrap().head().version();
    let states: Vec<Ordinal> = std::iter::successors(newest, VersionRef::next)
        .map(|version| version.ordinal())
        .collect();
    assert!(
        states.is_sorted_by(|newer, older| newer > older),
        "{states:?}"
    );
}

/// One that commits between others that take back what they did.
fn beside_rollbacks() {
    let place = Place::new();
    let session = place.join();
    let row_id = insert(&place, &session, 1);
    threads(vec![
        thread(&place, move |place| {
            change(place, &place.join(), row_id, 2, true)
        }),
        thread(&place, move |place| {
            change(place, &place.join(), row_id, 3, false)
        }),
        thread(&place, move |place| {
            change(place, &place.join(), row_id, 4, false)
        }),
    ]);
    assert_rising(&place, &session, row_id);
    let me = Me::nobody(&place.world);
    let crate::Newest::Live(newest) = session.newest(&me, place.table, row_id) else {
        panic!("the row is gone")
    };
    assert!((1..=3).contains(&newest.ordinal().0));
}

#[test]
fn ordinals_rise() {
    explore("ordinals, beside rollbacks", 1_500, beside_rollbacks);
}

mod seen {
    use super::*;

    #[test]
    fn the_ordinal_of_another_attempt() {
        finds(
            "rows: the ordinal of another attempt",
            40_000,
            beside_rollbacks,
        );
    }
}
