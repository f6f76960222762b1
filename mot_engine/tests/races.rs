//! Races replayed step by step: a clock that lets another session act at the very moment it is
//! asked.

mod common;

use common::{Fate, Me, Row, World, body};
use mot_engine::{Build, Clock, CommandId, Entered, RowId, Transaction, Written, Xid};
use std::cell::RefCell;

type Act<'a> = Box<dyn FnOnce() + 'a>;

/// Answers as the world does, after something has happened once.
struct Meanwhile<'a> {
    me: Me,
    act: RefCell<Option<Act<'a>>>,
}

impl Meanwhile<'_> {
    fn happen(&self) {
        let act = self.act.borrow_mut().take();
        if let Some(act) = act {
            act();
        }
    }
}

impl Clock for Meanwhile<'_> {
    fn is_current(&self, xid: Xid) -> bool {
        self.me.is_current(xid)
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        self.me.is_in_progress(xid)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.happen();
        self.me.did_commit(xid)
    }
}

/// The same, before anybody is told that a transaction has ended.
struct MeanwhileAsked<'a>(Meanwhile<'a>);

impl Clock for MeanwhileAsked<'_> {
    fn is_current(&self, xid: Xid) -> bool {
        self.0.me.is_current(xid)
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        self.0.happen();
        self.0.me.is_in_progress(xid)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.0.me.did_commit(xid)
    }
}

/// A row leaves key 1 and its transaction has committed, though its session has not stamped it yet.
/// While an inserter of key 1 resolves that row, somebody else moves it back to key 1: the outcome
/// "free" must not survive.
#[test]
fn a_key_taken_back_while_it_is_resolved_is_not_free() {
    let (_region, engine) = common::engine(32 << 20);
    let (session, other_session) = (engine.join().unwrap(), engine.join().unwrap());
    let world = World::new();
    let me = world.begin();
    let mut work = Transaction::new();
    let table = work
        .create_table(&session, common::TABLE, Xid(me.top))
        .unwrap();
    let definition = common::definition(101, true, &[(1, false)]);
    let build = work
        .create_index(&session, &me, table, &definition, Xid(me.top))
        .unwrap();
    let Build::Done(_) = build else {
        panic!("{build:?}")
    };
    let row = |a| body(Row { a, b: 0, c: None });
    let (row_id, version) = work
        .insert(&session, table, &row(1), Xid(me.top), CommandId(1))
        .unwrap();
    assert_eq!(
        work.enter(&session, &me, table, row_id, version).unwrap(),
        Entered::Done
    );
    me.end(Fate::Committed);
    work.commit(&session);

    let leaver = world.begin();
    let mut leaving = Transaction::new();
    let (xid, cid) = (Xid(leaver.top), CommandId(1));
    let written = leaving
        .update(&session, &leaver, table, row_id, version, &row(2), xid, cid)
        .unwrap();
    let Written::Done(left) = written else {
        panic!("{written:?}")
    };
    assert_eq!(
        leaving
            .enter(&session, &leaver, table, row_id, left)
            .unwrap(),
        Entered::Done
    );
    leaver.end(Fate::Committed);

    let returner = world.begin();
    let mut returning = Transaction::new();
    let inserter = world.begin();
    let mut inserting = Transaction::new();
    let (new, fresh) = inserting
        .insert(&session, table, &row(1), Xid(inserter.top), CommandId(1))
        .unwrap();
    let clock = Meanwhile {
        me: inserter.clone(),
        act: RefCell::new(Some(Box::new(|| {
            let (xid, cid) = (Xid(returner.top), CommandId(1));
            let written = returning
                .update(
                    &other_session,
                    &returner,
                    table,
                    row_id,
                    left,
                    &row(1),
                    xid,
                    cid,
                )
                .unwrap();
            let Written::Done(back) = written else {
                panic!("{written:?}")
            };
            let entered = returning
                .enter(&other_session, &returner, table, row_id, back)
                .unwrap();
            assert_eq!(entered, Entered::Done);
        }))),
    };
    let entered = inserting
        .enter(&session, &clock, table, new, fresh)
        .unwrap();
    assert!(clock.act.borrow().is_none(), "the row was resolved");
    assert!(matches!(entered, Entered::Busy(by, _) if by == Xid(returner.top)));
    drop(clock);
    leaving.commit(&session);
    returner.end(Fate::Committed);
    returning.commit(&other_session);
    assert!(matches!(
        inserting
            .enter(&session, &inserter, table, new, fresh)
            .unwrap(),
        Entered::Duplicate(_)
    ));
    inserter.end(Fate::Aborted);
    inserting.abort(&session);
    common::sweep(&session, &world, table);
    let report = common::check(&session, table, &common::reader(&world));
    assert_eq!((report.rows, report.entries, row_id), (1, 1, RowId(0)));
}

/// A transaction had a key for a while, and none when it committed. Who asked while it had it, and
/// is told of its end before he knows what became of the row, must not find the key taken: no
/// committed state ever had it.
#[test]
fn a_key_that_was_held_for_a_while_is_free() {
    for is_deleted in [true, false] {
        let (_region, engine) = common::engine(32 << 20);
        let (session, other_session) = (engine.join().unwrap(), engine.join().unwrap());
        let world = World::new();
        let by_a = common::definition(101, true, &[(1, false)]);
        let table = common::table(&session, &world, &[by_a]);
        let row = |a| body(Row { a, b: 0, c: None });
        let cid = CommandId(1);

        let leaver = world.begin();
        let mut leaving = Transaction::new();
        let (row_id, held) = leaving
            .insert(&other_session, table, &row(1), Xid(leaver.top), cid)
            .unwrap();
        let entered = leaving.enter(&other_session, &leaver, table, row_id, held);
        assert_eq!(entered.unwrap(), Entered::Done);

        let inserter = world.begin();
        let mut inserting = Transaction::new();
        let (new, fresh) = inserting
            .insert(&session, table, &row(1), Xid(inserter.top), cid)
            .unwrap();
        let clock = MeanwhileAsked(Meanwhile {
            me: inserter.clone(),
            act: RefCell::new(Some(Box::new(|| {
                let (session, xid) = (&other_session, Xid(leaver.top));
                let written = if is_deleted {
                    leaving.delete(session, &leaver, table, row_id, held, xid, cid)
                } else {
                    leaving.update(session, &leaver, table, row_id, held, &row(2), xid, cid)
                };
                let Ok(Written::Done(left)) = written else {
                    panic!("{written:?}")
                };
                if !is_deleted {
                    let entered = leaving.enter(session, &leaver, table, row_id, left);
                    assert_eq!(entered.unwrap(), Entered::Done);
                }
                leaver.end(Fate::Committed);
                leaving.commit(session);
            }))),
        });
        let entered = inserting.enter(&session, &clock, table, new, fresh);
        assert!(clock.0.act.borrow().is_none(), "the row was resolved");
        assert_eq!(entered.unwrap(), Entered::Done);
        drop(clock);
        inserter.end(Fate::Committed);
        inserting.commit(&session);
        common::sweep(&session, &world, table);
        let report = common::check(&session, table, &common::reader(&world));
        let rows = if is_deleted { 1 } else { 2 };
        assert_eq!((report.rows, report.entries), (rows, rows));
    }
}

/// A writer resolves a state that is being superseded at that moment: it must not go on top.
#[test]
fn a_row_changed_while_it_is_resolved_is_resolved_again() {
    let (_region, engine) = common::engine(32 << 20);
    let (session, other_session) = (engine.join().unwrap(), engine.join().unwrap());
    let world = World::new();
    let me = world.begin();
    let mut work = Transaction::new();
    let table = work
        .create_table(&session, common::TABLE, Xid(me.top))
        .unwrap();
    let row = |b| body(Row { a: 1, b, c: None });
    let (row_id, version) = work
        .insert(&session, table, &row(1), Xid(me.top), CommandId(1))
        .unwrap();
    me.end(Fate::Committed);

    let first = world.begin();
    let mut first_work = Transaction::new();
    let second = world.begin();
    let mut second_work = Transaction::new();
    let clock = Meanwhile {
        me: second.clone(),
        act: RefCell::new(Some(Box::new(|| {
            let (xid, cid) = (Xid(first.top), CommandId(1));
            let written = first_work
                .update(
                    &other_session,
                    &first,
                    table,
                    row_id,
                    version,
                    &row(2),
                    xid,
                    cid,
                )
                .unwrap();
            assert!(matches!(written, Written::Done(_)), "{written:?}");
        }))),
    };
    let (xid, cid) = (Xid(second.top), CommandId(1));
    let written = second_work
        .update(&session, &clock, table, row_id, version, &row(3), xid, cid)
        .unwrap();
    assert_eq!(written, Written::Busy(Xid(first.top)));
    drop(clock);
    work.commit(&session);
    first.end(Fate::Aborted);
    let written = second_work
        .update(&session, &second, table, row_id, version, &row(3), xid, cid)
        .unwrap();
    assert!(matches!(written, Written::Done(_)), "{written:?}");
    // Only now does the first session hear of its end; the state it takes out lies below.
    second.end(Fate::Committed);
    first_work.abort(&other_session);
    second_work.commit(&session);
    common::sweep(&session, &world, table);
    let report = common::check(&session, table, &common::reader(&world));
    assert_eq!((report.rows, report.versions), (1, 1));
}
