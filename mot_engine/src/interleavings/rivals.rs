//! A key that the server asks for: of two rows that come to have it beside each other, one at least
//! meets the other.

use super::beside::{CID, build, end, row, tuple};
use super::{Place, thread};
use crate::sync::is_broken;
use crate::{Entered, Newest, Rival, RowId, Session, Transaction, Written, Xid};
use mot_model::{explore, finds, threads};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const KEY: u64 = 7;

/// How a row comes to have the key.
#[derive(Copy, Clone)]
enum How {
    Inserted,
    /// It is this one, which had another key.
    Changed(RowId),
}

/// A transaction that asks for the key when its row is entered, and is taken back if it meets a
/// rival. Counts itself if it commits.
fn take_key(place: &Place, session: &Session, how: How, kept: &AtomicU64) {
    let (me, table) = (place.world.begin(), place.table);
    let mut work = Transaction::new();
    let xid = Xid(me.xid);
    let index = session.indexes(table, &me)[0];
    let (row_id, version) = match how {
        How::Inserted => work.insert(session, table, &tuple(KEY), xid, CID).unwrap(),
        How::Changed(row_id) => {
            let pin = session.memory().pin();
            let Newest::Live(seen) = session.newest(&me, table, row_id) else {
                panic!("the row is gone");
            };
            let new = tuple(KEY);
            let written = work.update(session, &me, table, row_id, seen, &new, xid, CID);
            let Ok(Written::Done(version)) = written else {
                panic!("{written:?}")
            };
            drop(pin);
            (row_id, version)
        }
    };
    let ask = || session.find_rival(&me, (table, index), row_id).unwrap();
    let asked_first = is_broken("rivals: entering the row first").then(ask);
    let entered = work.enter(session, &me, table, row_id, version).unwrap();
    assert_eq!(entered, Entered::Done);
    // Where both meet, both wait for each other, and the server ends one of them: here, both.
    let is_kept = asked_first.unwrap_or_else(ask) == Rival::None;
    end(place, session, &me, work, is_kept);
    kept.fetch_add(u64::from(is_kept), Ordering::Relaxed);
}

fn wanted_twice(changes: bool) {
    let place = Place::new();
    let session = place.join();
    let first = row(&place, &session);
    build(&place, &session, false);
    let kept = Arc::new(AtomicU64::new(0));
    let hows = [
        How::Inserted,
        if changes {
            How::Changed(first)
        } else {
            How::Inserted
        },
    ];
    threads(
        hows.map(|how| {
            let kept = kept.clone();
            thread(&place, move |place| {
                take_key(place, &place.join(), how, &kept);
            })
        })
        .into(),
    );
    let kept = kept.load(Ordering::Relaxed);
    assert!(kept <= 1, "{kept} rows have the key");
}

fn inserted_twice() {
    wanted_twice(false);
}

fn inserted_and_changed() {
    wanted_twice(true);
}

#[test]
fn one_meets_the_other() {
    explore("rivals, two rows", 1_500, inserted_twice);
    explore("rivals, a row and a change", 1_500, inserted_and_changed);
}

mod seen {
    use super::*;

    #[test]
    fn entering_the_row_first() {
        finds("rivals: entering the row first", 40_000, inserted_twice);
    }
}
