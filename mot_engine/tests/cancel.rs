//! Long work given up at every point where it asks: it says so, gives everything back, and what was
//! there is as sound as before.

mod common;

use common::{Asked, Me, Row, TABLE, World, body, check};
use mot_engine::memory::Purpose;
use mot_engine::{
    Build, CommandId, Direction, EngineError, Entered, IndexRef, IndexScan, KeyRange, RowScan,
    Session, Snapshot, TableRef, Transaction, Xid,
};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A transaction whose user loses patience after so many questions.
fn impatient(me: &Me, questions: usize) -> Asked<'_, impl Fn() -> bool> {
    let left = Cell::new(questions);
    Asked {
        me,
        is_cancelled: move || {
            let now = left.get();
            left.set(now.saturating_sub(1));
            now == 0
        },
    }
}

const ROWS: i32 = 20_000;

/// Rows with keys that repeat in pairs of columns, some deleted, so that there is a free list.
fn filled(session: &Session, world: &World) -> TableRef {
    let me = world.begin();
    let (xid, cid) = (Xid(me.top), CommandId(1));
    let mut work = Transaction::new();
    let table = work.create_table(session, TABLE, xid).unwrap();
    let mut made = Vec::new();
    for a in 0..ROWS {
        let c = (a % 3 == 0).then_some(a / 2);
        let new = body(Row { a, b: a % 100, c });
        let (row_id, version) = work.insert(session, table, &new, xid, cid).unwrap();
        let entered = work.enter(session, &me, table, row_id, version).unwrap();
        assert_eq!(entered, Entered::Done);
        made.push((row_id, version));
    }
    commit(session, &me, &mut work);
    let me = world.begin();
    for (row_id, version) in made.into_iter().step_by(4) {
        let deleted = work.delete(session, &me, table, row_id, version, Xid(me.top), cid);
        deleted.unwrap();
    }
    commit(session, &me, &mut work);
    common::sweep(session, world, table);
    table
}

fn commit(session: &Session, me: &Me, work: &mut Transaction) {
    work.log(session, &mut common::Positions::new()).unwrap();
    me.end(common::Fate::Committed);
    work.commit(session);
}

fn used(session: &Session) -> Vec<i64> {
    for _ in 0..4 {
        session.memory().collect();
    }
    session.memory().flush();
    let memory = session.engine().memory();
    let bytes = Purpose::ALL.iter();
    bytes
        .map(|purpose| memory.purpose_bytes(*purpose))
        .collect()
}

#[test]
fn index_builds_end_when_asked_to_and_give_everything_back() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = filled(session, &world);
    for (oid, unique, columns) in [
        (101, true, &[(1, false)][..]),
        (102, false, &[(2, false), (1, true)]),
        (103, true, &[(3, false), (1, false)]),
    ] {
        let definition = common::definition(oid, unique, columns);
        let me = world.begin();
        let mut work = Transaction::new();
        let level = used(session);
        let mut questions = 0;
        loop {
            let clock = impatient(&me, questions);
            match work.create_index(session, &clock, table, &definition, Xid(me.top)) {
                Ok(Build::Done(_)) => break,
                Err(EngineError::Cancelled) => {}
                other => panic!("{other:?}"),
            }
            assert_eq!(used(session), level, "given up after {questions} questions");
            check(session, table, &me);
            questions += 1;
        }
        // Collecting, sorting, grouping and loading all ask.
        let entries = ROWS as usize * 3 / 4;
        assert!(
            questions > ROWS as usize / 1024 + entries / 4096 * 2,
            "only {questions} questions"
        );
        commit(session, &me, &mut work);
        check(session, table, &common::reader(&world));
    }
}

#[test]
fn checks_end_when_asked_to() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = filled(session, &world);
    let me = world.begin();
    let mut work = Transaction::new();
    let definition = common::definition(101, true, &[(1, false)]);
    let built = work.create_index(session, &me, table, &definition, Xid(me.top));
    let Ok(Build::Done(index)) = built else {
        panic!("{built:?}")
    };
    commit(session, &me, &mut work);

    let me = common::reader(&world);
    let mut questions = 0;
    let report = loop {
        let clock = impatient(&me, questions);
        match session.check(table, &clock, |problem| panic!("{problem:?}")) {
            Ok(report) => break report,
            Err(EngineError::Cancelled) => questions += 1,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(report, check(session, table, &me));
    assert_eq!(report.row_ids_free, ROWS as u64 / 4);
    // Rows, the tree's nodes, entries and free row ids are all walked step by step.
    let steps = (ROWS * 2 + ROWS / 4) as usize / 1024;
    assert!(questions > steps, "only {questions} questions");

    let clock = impatient(&me, 1);
    let bytes = session.index_bytes(&clock, index);
    assert!(matches!(bytes, Err(EngineError::Cancelled)));
    let questions = Cell::new(0);
    let clock = Asked {
        me: &me,
        is_cancelled: || {
            questions.set(questions.get() + 1);
            assert!(!session.memory().is_pinned());
            false
        },
    };
    let bytes = session.index_bytes(&clock, index);
    assert!(bytes.unwrap() > 0 && questions.get() > 1);
}

/// A snapshot whose user loses patience after so many questions, as PostgreSQL's does: by
/// unwinding.
struct Unwinding<'a, S> {
    snapshot: &'a S,
    session: &'a Session,
    questions: Cell<usize>,
}

/// What it unwinds with.
struct LostPatience;

impl<S: Snapshot> Snapshot for Unwinding<'_, S> {
    fn xmin(&self) -> Xid {
        self.snapshot.xmin()
    }
    fn own(&self, xid: Xid, cid: CommandId) -> Option<bool> {
        self.snapshot.own(xid, cid)
    }
    fn running(&self, xid: Xid) -> bool {
        self.snapshot.running(xid)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.snapshot.did_commit(xid)
    }
    fn between_groups(&self) {
        assert!(!self.session.memory().is_pinned(), "asked while pinned");
        match self.questions.get().checked_sub(1) {
            Some(left) => self.questions.set(left),
            None => resume_unwind(Box::new(LostPatience)),
        }
    }
}

/// The rows a scan of everything sees; `None` if it ended before for want of patience.
fn count_rows(
    session: &Session,
    table: TableRef,
    through: Option<(IndexRef, Direction)>,
    snapshot: &impl Snapshot,
) -> Option<usize> {
    let counted = catch_unwind(AssertUnwindSafe(|| {
        let mut rows = 0;
        if let Some((index, direction)) = through {
            let mut scan = IndexScan::new();
            scan.start(table, index, &KeyRange::new(), direction);
            while scan.next(session, snapshot).unwrap().is_some() {
                rows += 1;
            }
        } else {
            let mut scan = RowScan::new(table);
            while scan.next(session, snapshot).is_some() {
                rows += 1;
            }
        }
        rows
    }));
    match counted {
        Ok(rows) => Some(rows),
        Err(reason) if reason.is::<LostPatience>() => None,
        Err(reason) => resume_unwind(reason),
    }
}

#[test]
fn scans_of_rows_that_nobody_sees_end_when_asked_to() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = filled(session, &world);
    let (me, mut work) = (world.begin(), Transaction::new());
    let definition = common::definition(101, true, &[(1, false)]);
    let built = work.create_index(session, &me, table, &definition, Xid(me.top));
    let Ok(Build::Done(index)) = built else {
        panic!("{built:?}")
    };
    commit(session, &me, &mut work);

    // All rows but the last go, and somebody old keeps them from being swept.
    let old = common::reader(&world).snapshot(0);
    let me = world.begin();
    let mut scan = IndexScan::new();
    scan.start(table, index, &KeyRange::new(), Direction::Forward);
    let mut rows = Vec::new();
    while let Some(row) = scan.next(session, &old).unwrap() {
        rows.push(row);
    }
    for (row_id, version) in &rows[..rows.len() - 1] {
        let (xid, cid) = (Xid(me.top), CommandId(1));
        let deleted = work.delete(session, &me, table, *row_id, *version, xid, cid);
        deleted.unwrap();
    }
    commit(session, &me, &mut work);

    let new = common::reader(&world).snapshot(0);
    for (through, least_questions) in [
        (None, ROWS as usize / 4096),
        (Some((index, Direction::Forward)), rows.len() / 256 - 1),
        (Some((index, Direction::Backward)), rows.len() / 256 - 1),
    ] {
        let mut patience = 0;
        loop {
            let snapshot = Unwinding {
                snapshot: &new,
                session,
                questions: Cell::new(patience),
            };
            match count_rows(session, table, through, &snapshot) {
                Some(seen) => {
                    assert_eq!(seen, 1);
                    break;
                }
                None => patience += 1,
            }
            assert!(!session.memory().is_pinned());
        }
        assert!(patience >= least_questions, "{patience} questions");
        // Where rows are seen, their reader asks.
        assert_eq!(count_rows(session, table, through, &old), Some(rows.len()));
    }
    check(session, table, &common::reader(&world));
}
