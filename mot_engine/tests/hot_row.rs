//! A row that always has a waiter: each locks its newest state as soon as the one before has ended,
//! before that one has tidied up, and changes it.

mod common;

use common::{Fate, Me, Row, World, body, check, reader, sweep};
use mot_engine::row::flags::{LOCK_ONLY, NO_LOCKS_BELOW};
use mot_engine::{
    CommandId, Engine, Entered, LockStrength, Locked, Newest, RowId, Session, TableRef,
    Transaction, VersionRef, Written, Xid,
};

/// States that one after the other put upon the row.
const HANDOVERS: i32 = 200;

struct Hot {
    session: Session,
    world: World,
    table: TableRef,
    row_id: RowId,
}

impl Hot {
    fn new(engine: Engine) -> Hot {
        let session = engine.join().unwrap();
        let world = World::new();
        let table = common::table(&session, &world, &[]);
        let row_id = common::transact(&session, &world, |work, me, xid| {
            let (row_id, version) = work
                .insert(&session, table, &state(0), xid, CommandId(1))
                .unwrap();
            let entered = work.enter(&session, me, table, row_id, version).unwrap();
            assert_eq!(entered, Entered::Done);
            row_id
        });
        Hot {
            session,
            world,
            table,
            row_id,
        }
    }

    fn newest(&self, me: &Me) -> VersionRef {
        match self.session.newest(me, self.table, self.row_id) {
            Newest::Live(version) => version,
            other => panic!("{other:?}"),
        }
    }

    fn lock(&self, me: &Me, work: &mut Transaction, strength: LockStrength) -> Locked {
        let (seen, xid) = (self.newest(me), Xid(me.top));
        work.lock(
            &self.session,
            me,
            self.table,
            self.row_id,
            seen,
            strength,
            xid,
        )
        .unwrap()
    }

    /// Locks, changes, ends; the one before, which has ended, tidies up in between.
    fn take_over(&self, before: Option<Transaction>, b: i32) -> Transaction {
        let me = self.world.begin();
        let mut work = Transaction::new();
        assert_eq!(
            self.lock(&me, &mut work, LockStrength::NoKeyUpdate),
            Locked::Done
        );
        if let Some(mut before) = before {
            before.commit(&self.session);
        }
        let (seen, xid) = (self.newest(&me), Xid(me.top));
        let written = work
            .update(
                &self.session,
                &me,
                self.table,
                self.row_id,
                seen,
                &state(b),
                xid,
                CommandId(1),
            )
            .unwrap();
        assert!(matches!(written, Written::Done(_)), "{written:?}");
        me.end(Fate::Committed);
        work
    }

    fn hand_over(&self) {
        let mut last = None;
        for b in 1..=HANDOVERS {
            last = Some(self.take_over(last, b));
            check(&self.session, self.table, &reader(&self.world));
        }
        last.unwrap().commit(&self.session);
    }

    /// Entries of the chain down to the first state that says that no locks follow; all if none
    /// does.
    fn looked_through_for_locks(&self) -> usize {
        let mut at = Some(self.newest(&reader(&self.world)));
        let mut count = 0;
        while let Some(version) = at {
            count += 1;
            if version.flags() & (NO_LOCKS_BELOW | LOCK_ONLY) == NO_LOCKS_BELOW {
                break;
            }
            at = version.next();
        }
        count
    }
}

fn state(b: i32) -> Vec<u8> {
    body(Row { a: 1, b, c: None })
}

#[test]
fn locks_are_looked_for_among_few_states_though_an_old_snapshot_keeps_all() {
    let (_region, engine) = common::engine(64 << 20);
    let hot = Hot::new(engine);
    let old = reader(&hot.world).snapshot(0);
    hot.hand_over();
    let looked = hot.looked_through_for_locks();
    assert!(looked <= 4, "{looked} of {HANDOVERS} states");
    drop(old);
    sweep(&hot.session, &hot.world, hot.table);
    assert_eq!(
        check(&hot.session, hot.table, &reader(&hot.world)).versions,
        1
    );
}

#[test]
fn a_key_share_lock_far_below_is_found() {
    let (_region, engine) = common::engine(64 << 20);
    let hot = Hot::new(engine);
    let holder = hot.world.begin();
    let mut held = Transaction::new();
    assert_eq!(
        hot.lock(&holder, &mut held, LockStrength::KeyShare),
        Locked::Done
    );
    hot.hand_over();
    sweep(&hot.session, &hot.world, hot.table);
    let me = hot.world.begin();
    let mut work = Transaction::new();
    let strongest = LockStrength::Update;
    assert_eq!(
        hot.lock(&me, &mut work, strongest),
        Locked::Busy(Xid(holder.top))
    );
    holder.end(Fate::Committed);
    assert_eq!(hot.lock(&me, &mut work, strongest), Locked::Done);
    held.commit(&hot.session);
    me.end(Fate::Aborted);
    work.abort(&hot.session);
    sweep(&hot.session, &hot.world, hot.table);
    let left = check(&hot.session, hot.table, &reader(&hot.world)).versions;
    assert_eq!(left, 1);
}
