//! What a sweep must not forget, and what it must not give away.

mod common;

use common::{Fate, Me, Row, World, image};
use mot_engine::{
    Build, CommandId, Entered, Session, Slot, Sweep, TableRef, Transaction, Written, Xid,
};

struct Place {
    session: Session,
    world: World,
    table: TableRef,
}

impl Place {
    /// An empty table with a unique index on `a`, or on `c`.
    fn new(session: Session, column: u16) -> Place {
        let world = World::new();
        let me = world.begin();
        let mut work = Transaction::new();
        let xid = Xid(me.top);
        let table = work.create_table(&session, common::TABLE, xid).unwrap();
        let definition = common::definition(101, true, &[(column, false)]);
        let build = work.create_index(&session, &me, table, &definition, xid);
        let Ok(Build::Done(_)) = build else {
            panic!("{build:?}")
        };
        me.end(Fate::Committed);
        work.commit(&session);
        Place {
            session,
            world,
            table,
        }
    }

    /// A transaction of its own.
    fn transact<T>(&self, work: impl FnOnce(&mut Transaction, &Me, Xid) -> T) -> T {
        let me = self.world.begin();
        let mut transaction = Transaction::new();
        let done = work(&mut transaction, &me, Xid(me.top));
        me.end(Fate::Committed);
        transaction.commit(&self.session);
        done
    }

    fn add(&self, row: Row) -> Slot {
        self.transact(|work, me, xid| {
            let new = image(row);
            let (slot, version) = work
                .insert(&self.session, self.table, &new, xid, CommandId(1))
                .unwrap();
            let entered = work.enter(&self.session, me, self.table, slot, version);
            assert_eq!(entered.unwrap(), Entered::Done);
            slot
        })
    }

    fn change(&self, slot: Slot, row: Row) {
        self.transact(|work, me, xid| {
            let (session, table) = (&self.session, self.table);
            let seen = session.visible(table, slot, &me.snapshot(1)).unwrap();
            let (new, cid) = (image(row), CommandId(1));
            let written = work.update(session, me, table, slot, seen, &new, xid, cid);
            let Ok(Written::Done(version)) = written else {
                panic!("{written:?}")
            };
            let entered = work.enter(session, me, table, slot, version);
            assert_eq!(entered.unwrap(), Entered::Done);
        });
    }

    fn sweep(&self, all: bool, pause: impl FnMut()) -> Sweep {
        let engine = self.session.engine();
        engine.raise_horizon(self.world.horizon());
        let clock = common::reader(&self.world);
        self.session.sweep(&clock, self.table, all, pause)
    }

    fn versions(&self) -> u64 {
        common::check(&self.session, self.table, &common::reader(&self.world)).versions
    }
}

fn numbered(a: i32, b: i32) -> Row {
    Row { a, b, c: None }
}

/// The sweep takes the bits of a whole word of groups at once, and the table may have grown into that word since the sweep began.
#[test]
fn rows_added_and_changed_while_a_sweep_is_under_way_are_swept() {
    /// Slots that share a word of dirty bits.
    const WORD: u64 = 512;
    const ADDED: i32 = 1500;
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine.join().unwrap(), 1);
    let first = place.add(numbered(1, 0));
    for a in 2..=600 {
        place.add(numbered(a, 0));
    }
    place.change(first, numbered(1, 1));
    let end = place.table.slots_end().0;
    assert_ne!(end % WORD, 0, "the end lies inside a word of bits");
    let old = common::reader(&place.world).snapshot(0);
    let mut added = false;
    place.sweep(false, || {
        if !std::mem::replace(&mut added, true) {
            for a in 1001..=1000 + ADDED {
                let slot = place.add(numbered(a, 0));
                place.change(slot, numbered(a, 1));
            }
        }
    });
    assert!(added, "the sweep pauses after its first word of bits");
    assert!(place.table.slots_end().0 / WORD > end / WORD);
    drop(old);
    place.sweep(false, || {});
    assert_eq!(place.versions(), 600 + ADDED as u64);
}
