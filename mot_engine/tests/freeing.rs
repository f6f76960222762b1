//! Dropped tables are freed in stretches: who frees them may be told to end between any two, and
//! another goes on.

mod common;

use common::{Row, World, body, transact};
use mot_engine::memory::Purpose;
use mot_engine::transaction::{free_pending, log_and_free_pending};
use mot_engine::{Build, CommandId, Engine, Entered, Log, Lsn, RowScan, Session, Written};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const ROWS: i32 = 20_000;

struct Told(Vec<String>);

impl Log for Told {
    fn append(&mut self, record: &[u8]) -> Lsn {
        self.0.push(mot_engine::log::describe(record));
        Lsn(1 << 40)
    }
}

/// Bytes in use by purpose, once everybody has given back what is not needed.
fn used(engine: &Engine) -> Vec<i64> {
    let session = engine.join().unwrap();
    for _ in 0..4 {
        session.memory().collect();
    }
    session.memory().flush();
    let bytes = |purpose: &Purpose| engine.memory().purpose_bytes(*purpose);
    Purpose::ALL.iter().map(bytes).collect()
}

/// A table with rows of several versions, keys that several rows share, and indexes of both kinds;
/// dropped, or only one of the indexes.
fn make_and_drop(session: &Session, world: &World, index_alone: bool) {
    let definitions = [(101, true, 1), (102, false, 2), (103, true, 3)]
        .map(|(oid, unique, column)| common::definition(oid, unique, &[(column, false)]));
    let table = common::table(session, world, &definitions);
    transact(session, world, |work, me, xid| {
        for a in 0..ROWS {
            let c = (a % 3 == 0).then_some(a);
            let new = body(Row { a, b: a % 7, c });
            let (row_id, version) = work
                .insert(session, table, &new, xid, CommandId(0))
                .unwrap();
            let entered = work.enter(session, me, table, row_id, version).unwrap();
            assert_eq!(entered, Entered::Done);
        }
    });
    // Every row has its key of a moment ago, and takes that of its neighbour: two rows a key.
    transact(session, world, |work, me, xid| {
        let snap = me.snapshot(1);
        let mut scan = RowScan::new(table);
        while let Some((row_id, seen)) = scan.next(session, &snap) {
            let old = common::row(seen.body());
            let new = body(Row { a: -old.a, ..old });
            let written = work
                .update(session, me, table, row_id, seen, &new, xid, CommandId(1))
                .unwrap();
            let Written::Done(version) = written else {
                panic!("{written:?}")
            };
            let entered = work.enter(session, me, table, row_id, version).unwrap();
            assert_eq!(entered, Entered::Done);
        }
    });
    transact(session, world, |work, me, xid| {
        if !index_alone {
            return work.drop_table(session, table, xid).unwrap();
        }
        work.drop_index(session, me, table, 101, xid).unwrap();
    });
    if index_alone {
        let again = common::definition(104, true, &[(1, false)]);
        transact(session, world, |work, me, xid| {
            let built = work.create_index(session, me, table, &again, xid).unwrap();
            assert!(matches!(built, Build::Done(_)));
        });
    }
}

/// Frees until the `stretches`th question, and unwinds there as a worker does that is told to end.
/// True: it came to its end.
fn free_for(session: &Session, stretches: usize, log: Option<&mut Told>) -> bool {
    struct Ends;
    let mut left = stretches;
    let pause = || {
        left -= 1;
        if left == 0 {
            resume_unwind(Box::new(Ends));
        }
    };
    let ended = catch_unwind(AssertUnwindSafe(|| match log {
        Some(log) => log_and_free_pending(session, log, pause).unwrap(),
        None => free_pending(session, pause),
    }));
    match ended {
        Ok(freed) => freed > 0,
        Err(payload) => {
            assert!(payload.is::<Ends>());
            false
        }
    }
}

#[test]
fn whoever_ends_between_two_stretches_leaves_the_rest_to_others() {
    for stretches in [1, 2, 7] {
        let (_region, engine) = common::engine(256 << 20);
        let world = World::new();
        // What the sessions themselves take.
        make_and_drop(&engine.join().unwrap(), &world, false);
        assert!(free_for(&engine.join().unwrap(), usize::MAX, None));
        let empty = used(&engine);
        make_and_drop(&engine.join().unwrap(), &world, false);
        let full: i64 = used(&engine).iter().sum();
        let mut told = Told(Vec::new());
        let mut times = 0;
        loop {
            let before: i64 = used(&engine).iter().sum();
            let done = free_for(&engine.join().unwrap(), stretches, Some(&mut told));
            times += 1;
            let after: i64 = used(&engine).iter().sum();
            assert!(after < before || times == 1, "{after} of {before} are left");
            if done {
                break;
            }
            assert!(after <= full);
        }
        assert!(times > 7 / stretches, "{times}");
        assert_eq!(used(&engine), empty);
        assert!(
            !free_for(&engine.join().unwrap(), 1, None),
            "nothing is pending free"
        );
    }
}

#[test]
fn an_index_of_a_table_that_stays() {
    let (_region, engine) = common::engine(256 << 20);
    let world = World::new();
    let session = engine.join().unwrap();
    make_and_drop(&session, &world, true);
    let mut times = 1;
    while !free_for(&session, 1, None) {
        times += 1;
    }
    assert!(times > 2, "{times}");
    let walks = session.tables();
    let table = walks[0].table();
    common::check(&session, table, &common::reader(&world));
}
