//! The commit protocol beside the checkpoint's walk: LSN and LOGGED flag, the `logging` flag and
//! the round.

use super::{Place, body, thread};
use crate::checkpoint::begin_round;
use crate::ids::CommandId;
use crate::row::{Anchor, VersionRef, flags};
use crate::{Lsn, Newest, RowId, Session, Transaction, Written, Xid};
use mot_model::{explore, finds, threads};
use std::ptr::NonNull;
use std::sync::Arc;

const CID: CommandId = CommandId(1);
const VERSIONS: u64 = 3;

/// An anchor of its own, and blocks for the versions that come on top of each other.
struct Row {
    anchor: Anchor,
    blocks: Vec<[u128; 3]>,
}

impl Row {
    fn version(&self, number: u64) -> VersionRef {
        let address = self.blocks[number as usize].as_ptr() as u64;
        // SAFETY: the blocks live as long as the row, and hold versions.
        unsafe { VersionRef::from_address(address) }.unwrap()
    }
}

/// A process that reads a row while its versions are being logged gets the LSN of the newest logged
/// version it saw.
fn marks() {
    let body = [0; crate::row::BODY_BYTES_MIN];
    let mut blocks = vec![[0u128; 3]; VERSIONS as usize + 1];
    for (number, block) in blocks.iter_mut().enumerate() {
        let block = NonNull::from(block).cast::<u8>();
        let cid = CommandId(number as u32);
        // SAFETY: the block is 16-byte aligned, has 48 bytes, and is used once.
        unsafe { VersionRef::write(block, &body, Xid(1), cid, 0) };
    }
    let row = Arc::new(Row {
        anchor: Anchor::new(),
        blocks,
    });
    let written = row.clone();
    threads(vec![
        Box::new(move || {
            for number in 1..=VERSIONS {
                let version = written.version(number);
                let head = written.anchor.head();
                version.set_next(head);
                assert!(
                    written
                        .anchor
                        .publish(head, head.with_address(version.address()))
                );
                written.anchor.mark_version(version, Lsn(number));
            }
        }),
        Box::new(move || {
            for _ in 0..2 {
                let mut newest = 0;
                let lsn = row.anchor.read_with_lsn(|| {
                    newest = 0;
                    let mut next = row.anchor.head().version();
                    while let Some(version) = next {
                        if version.flags() & flags::LOGGED != 0 {
                            newest = u64::from(version.cid().0);
                            break;
                        }
                        next = version.next();
                    }
                });
                assert_eq!(lsn, Lsn(newest));
            }
        }),
    ]);
}

fn logged_update(place: &Place, session: &Session, row_id: RowId, value: u64) {
    let me = place.world.begin();
    let mut work = Transaction::new();
    let pin = session.memory().pin();
    let Newest::Live(seen) = session.newest(&me, place.table, row_id) else {
        panic!("the row is there, and ours alone");
    };
    let (xid, table) = (Xid(me.xid), place.table);
    let written = work
        .update(session, &me, table, row_id, seen, &body(value), xid, CID)
        .unwrap();
    assert!(matches!(written, Written::Done(_)), "{written:?}");
    drop(pin);
    work.log(session, &mut place.world.clone()).unwrap();
    me.commit(Some(value));
    work.commit(session);
}

/// The same with one row that is written once.
fn round_of_one() {
    let place = Place::new();
    let session = place.join();
    let row_id = insert(&place, &session);
    let looked: Looked<Lsn> = Arc::default();
    let found = looked.clone();
    threads(vec![
        thread(&place, move |place| {
            logged_update(place, &place.join(), row_id, 1)
        }),
        thread(&place, move |place| {
            let redo = place.world.with(|server| server.log_end);
            let round = begin_round(place.engine).expect("nothing is replayed");
            let lsn = place.table.anchor(row_id).unwrap().lsn();
            assert!(lsn.0 >= redo, "a record before R is not on its row");
            *found.lock().unwrap() = Some((round, lsn));
        }),
    ]);
    let (round, lsn) = looked.lock().unwrap().take().unwrap();
    told_of(&place, row_id, round, lsn);
}

/// What came after a checkpoint's look is a change for the next one.
fn told_of(place: &Place, row_id: RowId, round: u64, lsn: Lsn) {
    let now = place.table.anchor(row_id).unwrap().lsn();
    let told = place.table.has_changed(row_id, round);
    assert!(
        now == lsn || told,
        "the next checkpoint would take a changed range for unchanged"
    );
}

fn insert(place: &Place, session: &Session) -> RowId {
    let me = place.world.begin();
    let mut work = Transaction::new();
    let (row_id, _) = work
        .insert(session, place.table, &body(0), Xid(me.xid), CID)
        .unwrap();
    work.log(session, &mut place.world.clone()).unwrap();
    me.commit(None);
    work.commit(session);
    row_id
}

/// What a checkpoint found: its round and what it looked at.
type Looked<T> = Arc<std::sync::Mutex<Option<(u64, T)>>>;

/// A checkpoint fixes R, begins its round and looks at the rows of two sessions, each of which
/// writes to its row, leaves and comes again.
fn rounds() {
    let place = Place::new();
    let session = place.join();
    let row_ids = [0, 1].map(|_| insert(&place, &session));
    let looked: Looked<[Lsn; 2]> = Arc::default();
    let found = looked.clone();
    let writer = |row_id: RowId| {
        thread(&place, move |place| {
            for value in 1..3 {
                // A new session each time: it may get the line that the other one has left.
                logged_update(place, &place.join(), row_id, value);
            }
        })
    };
    threads(vec![
        writer(row_ids[0]),
        writer(row_ids[1]),
        thread(&place, move |place| {
            let ends = |place: &Place| place.world.with(|server| server.log_end);
            let redo = ends(place);
            let round = begin_round(place.engine).expect("nothing is replayed");
            let lsns = row_ids.map(|row_id| place.table.anchor(row_id).unwrap().lsn());
            assert!(
                lsns.iter().any(|lsn| lsn.0 >= redo),
                "a record before R is not on its row: {redo} {lsns:?}"
            );
            *found.lock().unwrap() = Some((round, lsns));
        }),
    ]);
    let (round, lsns) = looked.lock().unwrap().take().unwrap();
    for (row_id, lsn) in row_ids.into_iter().zip(lsns) {
        told_of(&place, row_id, round, lsn);
    }
}

#[test]
fn lsn_and_flag_are_read_together() {
    explore("commit, LSN and flag", 6_000, marks);
}

#[test]
fn rounds_lose_no_mark() {
    explore("commit, marks and rounds", 1_500, rounds);
    explore("commit, one mark and a round", 3_000, round_of_one);
}

mod seen {
    use super::*;

    const RUNS: usize = 40_000;

    #[test]
    fn the_odd_word_of_a_mark() {
        finds("log: the odd word of a mark", RUNS, marks);
    }

    #[test]
    fn the_release_of_a_flag() {
        finds("rows: the release of a flag", RUNS, marks);
    }

    #[test]
    fn waiting_for_who_is_logging() {
        finds("log: waiting for who is logging", RUNS, round_of_one);
    }

    #[test]
    fn the_round_behind_the_mark() {
        finds("log: the round behind the mark", RUNS, round_of_one);
    }

    #[test]
    fn the_fence_of_a_mark() {
        finds("log: the fence of a mark", RUNS, round_of_one);
    }
}
