//! Indexes whose keys are computed by who forms a row: rows in them and outside them, rows from
//! before the index, and what a build, a check and a sweep make of them.

mod common;

use common::{Me, Row, World, body, check, computed, definition, engine, formed, reader, sweep};
use mot_engine::{
    Build, CommandId, EngineError, Entered, LockStrength, RowId, Session, TableRef, Transaction,
    Written, Xid,
};

const fn row(a: i32, b: i32, c: Option<i32>) -> Row {
    Row { a, b, c }
}

struct Place<'a> {
    s: &'a Session,
    world: World,
    table: TableRef,
}

impl Place<'_> {
    fn transact<T>(&self, work: impl FnOnce(&mut Transaction, &Me, Xid) -> T) -> T {
        common::transact(self.s, &self.world, work)
    }

    fn add(&self, new: &[u8]) -> Result<(RowId, Entered), EngineError> {
        let me = self.world.begin();
        let mut work = Transaction::new();
        let xid = Xid(me.top);
        let (row_id, version) = work.insert(self.s, self.table, new, xid, CommandId(0))?;
        let entered = work.enter(self.s, &me, self.table, row_id, version);
        let is_done = matches!(entered, Ok(Entered::Done));
        let fate = match is_done {
            true => common::Fate::Committed,
            false => common::Fate::Aborted,
        };
        me.end(fate);
        match is_done {
            true => work.commit(self.s),
            false => work.abort(self.s),
        }
        entered.map(|entered| (row_id, entered))
    }

    /// Changes a row; the strength of the row lock that it took.
    fn change(&self, row_id: RowId, new: &[u8]) -> LockStrength {
        self.transact(|work, me, xid| {
            let (s, table) = (self.s, self.table);
            let seen = s.visible(table, row_id, &me.snapshot(1)).unwrap();
            let strength = Transaction::strength_of_update(s, table, seen, new).unwrap();
            let written = work.update(s, me, table, row_id, seen, new, xid, CommandId(1));
            let Ok(Written::Done(version)) = written else {
                panic!("{written:?}")
            };
            let entered = work.enter(s, me, table, row_id, version);
            assert_eq!(entered.unwrap(), Entered::Done);
            strength
        })
    }

    fn build(&self, unique: bool) -> Result<Build, EngineError> {
        self.transact(|work, me, xid| {
            work.create_index(self.s, me, self.table, &computed(501, unique), xid)
        })
    }

    /// Entries of the index.
    fn entries(&self) -> u64 {
        let clock = reader(&self.world);
        check(self.s, self.table, &clock);
        let index = self.s.find_index(self.table, 501, &clock).unwrap();
        index.entry_count_estimate()
    }
}

fn with_place(test: impl FnOnce(&Place<'_>)) {
    let (_region, engine) = engine(1 << 26);
    let s = &engine.join().unwrap();
    let world = World::new();
    let table = common::table(s, &world, &[definition(101, true, &[(1, false)])]);
    test(&Place { s, world, table });
}

#[test]
fn a_row_without_its_key_is_refused_by_build_and_writer() {
    with_place(|place| {
        let (row_id, _) = place.add(&body(row(1, 1, Some(1)))).unwrap();
        assert!(matches!(
            place.build(false),
            Err(EngineError::KeyNotComputed)
        ));
        place.change(row_id, &formed(row(1, 1, Some(1))));
        sweep(place.s, &place.world, place.table);
        assert!(matches!(place.build(false), Ok(Build::Done(_))));
        assert_eq!(place.entries(), 1);
        let bare = place.add(&body(row(2, 1, Some(1))));
        assert!(matches!(bare, Err(EngineError::KeyNotComputed)));
        assert_eq!(place.entries(), 1);
    });
}

#[test]
fn older_states_without_a_key_keep_the_index_from_who_sees_them() {
    with_place(|place| {
        let (row_id, _) = place.add(&body(row(1, 1, Some(1)))).unwrap();
        let old = reader(&place.world).snapshot(0);
        place.change(row_id, &formed(row(1, 1, Some(1))));
        assert!(matches!(place.build(false), Ok(Build::DoneBesideOlder(_))));
        assert_eq!(place.entries(), 1);
        drop(old);
        sweep(place.s, &place.world, place.table);
        assert_eq!(place.entries(), 1);
    });
}

#[test]
fn rows_come_into_a_partial_index_and_leave_it() {
    with_place(|place| {
        let (outside, _) = place.add(&formed(row(1, 5, None))).unwrap();
        let (inside, _) = place.add(&formed(row(2, 5, Some(1)))).unwrap();
        // A row outside is no row that older snapshots would miss.
        let Ok(Build::Done(index)) = place.build(true) else {
            panic!("not built");
        };
        assert!(!index.has_left_out());
        assert_eq!(place.entries(), 1);
        place.add(&formed(row(3, 5, None))).unwrap();
        let (_, entered) = place.add(&formed(row(4, 5, Some(2)))).unwrap();
        assert_eq!(entered, Entered::Duplicate(index));
        // Its key is no key of the row: the lock is the weaker one.
        let strength = place.change(outside, &formed(row(1, 6, Some(1))));
        assert_eq!(strength, LockStrength::NoKeyUpdate);
        place.change(inside, &formed(row(2, 5, None)));
        sweep(place.s, &place.world, place.table);
        assert_eq!(place.entries(), 1);
        place.add(&formed(row(5, 5, Some(7)))).unwrap();
        assert_eq!(place.entries(), 2);
        assert!(!index.has_left_out());
    });
}
