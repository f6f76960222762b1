//! Images of a transaction's own states: an index that is built gives its rows keys.

mod common;

use common::{Fate, Me, Row, World, body, reader};
use mot_engine::{
    Alias, CommandId, LockStrength, Locked, Newest, Ordinal, RelationKey, RowId, Session, StateAt,
    TableRef, Transaction, VersionRef, Written, Xid,
};

const FILE: RelationKey = RelationKey::of_file(1, 0, 100);

fn a_row(b: i32) -> Vec<u8> {
    body(Row {
        a: 1,
        b,
        c: Some(7),
    })
}

/// A transaction and the row that it changes.
struct Writer<'a> {
    session: &'a Session,
    table: TableRef,
    me: Me,
    work: Transaction,
    row_id: RowId,
}

/// How a tuple id names a state: by an alias, or by its ordinal.
type Id = (Option<Alias>, Ordinal);

impl<'a> Writer<'a> {
    /// In a transaction that has inserted the row.
    fn begin(session: &'a Session, world: &World) -> Writer<'a> {
        let table = common::transact(session, world, |work, _, xid| {
            work.create_table(session, FILE, xid).unwrap()
        });
        let me = world.begin();
        let mut work = Transaction::new();
        let (xid, command) = (Xid(me.top), CommandId(1));
        let inserted = work.insert(session, table, &a_row(0), xid, command);
        Writer {
            session,
            table,
            row_id: inserted.unwrap().0,
            me,
            work,
        }
    }

    fn savepoint(&mut self) -> Xid {
        let inner = Xid(self.me.savepoint());
        self.work.set_level(2).unwrap();
        inner
    }

    fn roll_back(&mut self, inner: Xid) {
        self.me.abort_one(inner.0);
        self.work.savepoint_abort(self.session, 2);
        self.work.set_level(1).unwrap();
    }

    fn commit(mut self, world: &World) {
        self.me.end(Fate::Committed);
        self.work.commit(self.session);
        common::check(self.session, self.table, &reader(world));
    }

    fn lock(&mut self, seen: VersionRef, xid: Xid) -> Locked {
        let (session, table, row_id) = (self.session, self.table, self.row_id);
        let strength = LockStrength::Update;
        let locked = self
            .work
            .lock(session, &self.me, table, row_id, seen, strength, xid);
        locked.unwrap()
    }

    fn newest(&self) -> VersionRef {
        match self.session.newest(&self.me, self.table, self.row_id) {
            Newest::Live(version) => version,
            other => panic!("{other:?}"),
        }
    }

    fn update(&mut self, xid: Xid, b: i32) {
        let seen = self.newest();
        let (session, table, row_id) = (self.session, self.table, self.row_id);
        let (new, command) = (a_row(b), CommandId(1));
        let written = self
            .work
            .update(session, &self.me, table, row_id, seen, &new, xid, command);
        assert!(matches!(written, Ok(Written::Done(_))), "{written:?}");
    }

    /// Another image of the newest state, by a subtransaction.
    fn replace(&mut self, xid: Xid) -> VersionRef {
        let (seen, new) = (self.newest(), a_row(-1));
        let (session, table, row_id) = (self.session, self.table, self.row_id);
        let put = self
            .work
            .replace_own(session, &self.me, (table, row_id), (seen, &new), xid);
        let Ok(Written::Done(image)) = put else {
            panic!("{put:?}")
        };
        image
    }

    fn id(&self, version: VersionRef) -> Id {
        let alias = self.work.alias(self.table, self.row_id, version);
        (alias, version.ordinal())
    }

    /// What an id names, by what a snapshot of a later command reads and by nothing.
    fn named(&self, (alias, ordinal): Id) -> [StateAt; 2] {
        if let Some(alias) = alias {
            let (_, _, version) = self.work.aliased(alias).expect("an alias of this row");
            return [StateAt::One(version); 2];
        }
        let later = self.me.snapshot(2);
        let listed = self.work.own_row(self.table, self.row_id);
        let _pin = self.session.memory().pin();
        [None, Some(&later)].map(|reading| {
            let (session, me) = (self.session, &self.me);
            session.state_at(me, self.table, self.row_id, ordinal, listed, &[reading])
        })
    }
}

/// An image has the name of the state that it stands for, after every number of changes. A rollback
/// to a savepoint gives that state its name back.
#[test]
fn an_own_image_has_the_name_of_its_state() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let mut writer = Writer::begin(session, &world);
    let xid = Xid(writer.me.top);
    for changes in [0, 1, 70, 1100] {
        (0..changes).for_each(|change| writer.update(xid, change));
        let seen = writer.newest();
        let id = writer.id(seen);
        let inner = writer.savepoint();
        for _ in 0..2 {
            let image = writer.replace(inner);
            assert_eq!(writer.id(image), id);
            assert_eq!((image.cid(), image.xid()), (seen.cid(), inner));
            assert_eq!(writer.named(id), [StateAt::One(image); 2]);
            // Whoever has read the former one may lock the row.
            assert_eq!(writer.lock(seen, inner), Locked::Done);
        }
        writer.roll_back(inner);
        assert_eq!(writer.newest(), seen);
        assert_eq!(writer.id(seen), id);
        assert_eq!(writer.named(id), [StateAt::One(seen); 2]);
    }
    writer.commit(&world);
}

/// A row whose states are listed above an image: a savepoint takes all of them back.
#[test]
fn what_is_listed_above_an_image_is_taken_back() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let mut writer = Writer::begin(session, &world);
    let xid = Xid(writer.me.top);
    let first = writer.newest();
    for changes_after in [1, 4, 10, 70] {
        let inner = writer.savepoint();
        (0..60).for_each(|change| writer.update(inner, change));
        writer.replace(inner);
        (0..changes_after).for_each(|change| writer.update(inner, change));
        let last = writer.newest();
        assert_eq!(writer.named(writer.id(last)), [StateAt::One(last); 2]);
        writer.roll_back(inner);
        assert_eq!(writer.newest(), first);
        assert_eq!(writer.named(writer.id(first)), [StateAt::One(first); 2]);
    }
    (0..200).for_each(|change| writer.update(xid, change));
    let last = writer.newest();
    assert_eq!(writer.named(writer.id(last)), [StateAt::One(last); 2]);
    writer.commit(&world);
}
