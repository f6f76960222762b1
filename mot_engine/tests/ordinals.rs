//! Ordinals of states, what a tuple id names, and rows that went to another partition.

mod common;

use common::{Fate, Me, Row, Snap, TABLE, Wal, World, body, reader, row};
use mot_engine::checkpoint::{CheckpointContext, CheckpointProgress, Pace, read_manifest, write};
use mot_engine::disk::DirectoryDisk;
use mot_engine::recovery::{Replayer, load};
use mot_engine::{
    Alias, CommandId, LockStrength, Locked, Lsn, NAMED_BY_ORDINAL, Newest, ORDINALS, Ordinal,
    RelationKey, RowId, Session, State, StateAt, TableRef, Transaction, Upon, VersionRef, Written,
    Xid,
};

fn a_row(b: i32) -> Row {
    Row {
        a: 1,
        b,
        c: Some(7),
    }
}

fn b_of(version: VersionRef) -> i32 {
    row(version.body()).b
}

/// A table and one session's calls on it.
struct Place<'a> {
    session: &'a Session,
    world: World,
    table: TableRef,
}

impl Place<'_> {
    fn new(session: &Session) -> Place<'_> {
        let world = World::new();
        let table = common::transact(session, &world, |work, _, xid| {
            work.create_table(session, TABLE, xid).unwrap()
        });
        Place {
            session,
            world,
            table,
        }
    }

    fn insert(&self, me: &Me, work: &mut Transaction, b: i32) -> (RowId, VersionRef) {
        let (xid, cid) = (Xid(me.top), CommandId(0));
        let new = body(a_row(b));
        work.insert(self.session, self.table, &new, xid, cid)
            .unwrap()
    }

    /// A committed row.
    fn row(&self, b: i32) -> RowId {
        common::transact(self.session, &self.world, |work, me, _| {
            self.insert(me, work, b).0
        })
    }

    fn newest(&self, me: &Me, row: RowId) -> VersionRef {
        match self.session.newest(me, self.table, row) {
            Newest::Live(version) => version,
            other => panic!("{other:?}"),
        }
    }

    fn update(&self, me: &Me, xid: u64, work: &mut Transaction, row: RowId, b: i32) -> VersionRef {
        self.update_by(me, (xid, 1), work, row, b)
    }

    fn update_by(
        &self,
        me: &Me,
        (xid, cid): (u64, u32),
        work: &mut Transaction,
        row: RowId,
        b: i32,
    ) -> VersionRef {
        let seen = self.newest(me, row);
        // As copied from a state that had an ordinal of its own.
        let mut new = body(a_row(b));
        new[1] |= 0xE0;
        new[2] |= 0xF0;
        new[3] = 0xAB;
        let (session, table) = (self.session, self.table);
        let written = work.update(
            session,
            me,
            table,
            row,
            seen,
            &new,
            Xid(xid),
            CommandId(cid),
        );
        let Ok(Written::Done(version)) = written else {
            panic!("{written:?}")
        };
        version
    }

    /// A committed update.
    fn change(&self, row: RowId, b: i32) {
        common::transact(self.session, &self.world, |work, me, _| {
            self.update(me, me.top, work, row, b);
        });
    }

    fn at(&self, me: &Me, row: RowId, ordinal: u16) -> Option<i32> {
        self.at_with(me, row, ordinal, None)
    }

    fn at_with(&self, me: &Me, row: RowId, ordinal: u16, snapshot: Option<&Snap>) -> Option<i32> {
        let _pin = self.session.memory().pin();
        let ordinal = Ordinal(ordinal);
        match self
            .session
            .state_at(me, self.table, row, ordinal, None, &[snapshot])
        {
            StateAt::One(version) => Some(b_of(version)),
            StateAt::None => None,
            StateAt::Overtaken => panic!("ambiguous"),
        }
    }
}

#[test]
fn each_change_counts_one_and_a_new_row_begins_with_none() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    let place = Place::new(session);
    let me = place.world.begin();
    let mut work = Transaction::new();
    let (row, version) = place.insert(&me, &mut work, 0);
    assert_eq!(version.ordinal(), Ordinal(0));
    for change in 1..=20 {
        let version = place.update(&me, me.top, &mut work, row, change);
        assert_eq!(version.ordinal(), Ordinal(change as u16));
        assert_eq!(common::row(version.body()), a_row(change));
    }
    me.end(Fate::Committed);
    work.commit(session);
    // The commit has cut out the states in between; nobody counts anew.
    place.change(row, 21);
    let me = reader(&place.world);
    assert_eq!(place.newest(&me, row).ordinal(), Ordinal(21));
    assert!(!place.newest(&me, row).is_moved_away());
}

#[test]
fn an_ordinal_rolled_back_is_given_out_again_once_its_state_is_gone() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    let place = Place::new(session);
    let row = place.row(0);
    let me = place.world.begin();
    let mut work = Transaction::new();
    let before = place.update(&me, me.top, &mut work, row, 1);
    let inner = me.savepoint();
    work.set_level(2).unwrap();
    assert_eq!(
        place.update(&me, inner, &mut work, row, 2).ordinal(),
        Ordinal(2)
    );
    assert_eq!(place.at(&me, row, 2), Some(2));
    // PostgreSQL has decided, and the engine has not heard of it: the state lies there, and counts
    // for nobody.
    me.abort_one(inner);
    assert_eq!(place.at(&me, row, 2), None);
    work.savepoint_abort(session, 2);
    work.set_level(1).unwrap();
    assert_eq!(place.at(&me, row, 2), None);
    assert_eq!(place.newest(&me, row), before);
    let again = place.update(&me, me.top, &mut work, row, 3);
    assert_eq!(again.ordinal(), Ordinal(2));
    assert_eq!(place.at(&me, row, 2), Some(3));
    me.end(Fate::Committed);
    work.commit(session);
}

#[test]
fn a_tuple_id_names_what_its_transaction_made_or_replaced() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    let place = Place::new(session);
    let row = place.row(0);
    place.change(row, 1);
    let me = place.world.begin();
    let mut work = Transaction::new();
    let other = reader(&place.world);
    place.update(&me, me.top, &mut work, row, 2);
    place.update(&me, me.top, &mut work, row, 3);
    let named = |me: &Me| [0, 1, 2, 3, 4].map(|ordinal| place.at(me, row, ordinal));
    assert_eq!(named(&me)[1..], [Some(1), Some(2), Some(3), None]);
    // Another's unfinished work is nobody's else.
    assert_eq!(named(&other)[1..], [Some(1), None, None, None]);
    common::sweep(session, &place.world, place.table);
    assert_eq!(named(&me)[1..], [Some(1), Some(2), Some(3), None]);
    let seen = place.newest(&me, row);
    let (xid, cid) = (Xid(me.top), CommandId(2));
    let deleted = work.delete(session, &me, place.table, row, seen, xid, cid);
    let Ok(Written::Done(tombstone)) = deleted else {
        panic!("{deleted:?}")
    };
    assert_eq!(tombstone.ordinal(), Ordinal(4));
    assert_eq!(named(&me)[1..], [Some(1), Some(2), Some(3), None]);
    me.end(Fate::Committed);
    work.commit(session);
    assert_eq!(named(&other), [None; 5]);
    common::sweep(session, &place.world, place.table);
    assert_eq!(named(&other), [None; 5]);
}

/// KEY SHARE lets others change the row.
#[test]
fn a_locked_state_is_named_below_newer_ones_and_so_is_the_newest() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    let place = Place::new(session);
    let row = place.row(0);
    let me = place.world.begin();
    let snapshot = me.snapshot(0);
    let mut work = Transaction::new();
    let seen = place.newest(&me, row);
    let lock = |work: &mut Transaction, me: &Me, seen, strength| {
        let (table, xid) = (place.table, Xid(me.top));
        let locked = work.lock(session, me, table, row, seen, strength, xid);
        assert_eq!(locked.unwrap(), Locked::Done);
    };
    lock(&mut work, &me, seen, LockStrength::KeyShare);
    for b in 1..=3 {
        place.change(row, b);
    }
    let named = |snapshot| [0, 1, 2, 3].map(|ordinal| place.at_with(&me, row, ordinal, snapshot));
    assert_eq!(named(None), [Some(0), None, None, Some(3)]);
    assert_eq!(named(Some(&snapshot)), [Some(0), None, None, Some(3)]);
    drop(snapshot);
    // A lock upon the newest state, of another transaction.
    let late = place.world.begin();
    let mut late_work = Transaction::new();
    let newest = place.newest(&late, row);
    lock(&mut late_work, &late, newest, LockStrength::Share);
    common::sweep(session, &place.world, place.table);
    assert_eq!(place.at(&late, row, 3), Some(3));
    for (me, mut work) in [(me, work), (late, late_work)] {
        me.end(Fate::Committed);
        work.commit(session);
    }
}

/// What `xmax` tells.
#[test]
fn it_is_told_who_has_replaced_or_locked_a_state() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    let place = Place::new(session);
    let row = place.row(0);
    let upon = |me: &Me, ordinal: u16| {
        let is_named = |version: VersionRef| version.ordinal() == Ordinal(ordinal);
        session.upon(me, place.table, row, is_named)
    };
    let me = place.world.begin();
    let other = place.world.begin();
    assert_eq!(upon(&me, 0), Upon::Nothing);
    let lock = |work: &mut Transaction, me: &Me| {
        let (table, xid, strength) = (place.table, Xid(me.top), LockStrength::KeyShare);
        let seen = place.newest(me, row);
        let locked = work.lock(session, me, table, row, seen, strength, xid);
        assert_eq!(locked.unwrap(), Locked::Done);
    };
    let (mut work, mut other_work) = (Transaction::new(), Transaction::new());
    lock(&mut work, &me);
    lock(&mut other_work, &other);
    assert_eq!(upon(&me, 0), Upon::Lock(Xid(me.top)));
    assert_eq!(upon(&other, 0), Upon::Lock(Xid(other.top)));
    place.update(&me, me.top, &mut work, row, 1);
    assert_eq!(upon(&me, 0), Upon::State(Xid(me.top), CommandId(1)));
    // Others are told of unfinished work, too.
    assert_eq!(upon(&other, 0), Upon::State(Xid(me.top), CommandId(1)));
    assert_eq!(upon(&me, 1), Upon::Nothing);
    let inner = me.savepoint();
    work.set_level(2).unwrap();
    place.update(&me, inner, &mut work, row, 2);
    assert_eq!(upon(&me, 1), Upon::State(Xid(inner), CommandId(1)));
    me.abort_one(inner);
    assert_eq!(upon(&me, 1), Upon::Nothing);
    work.savepoint_abort(session, 2);
    work.set_level(1).unwrap();
    assert_eq!(upon(&me, 1), Upon::Nothing);
    let top = me.top;
    me.end(Fate::Committed);
    work.commit(session);
    assert_eq!(upon(&other, 0), Upon::State(Xid(top), CommandId(1)));
    other.end(Fate::Committed);
    other_work.commit(session);
    assert_eq!(upon(&reader(&place.world), 1), Upon::Nothing);
}

/// A tuple id that was handed out of a state: its alias, or its ordinal.
#[derive(Clone, Copy)]
enum Id {
    Alias(Alias),
    Ordinal(Ordinal),
}

impl Place<'_> {
    fn id(&self, work: &Transaction, row: RowId, version: VersionRef) -> Id {
        match work.alias(self.table, row, version) {
            Some(alias) => Id::Alias(alias),
            None => Id::Ordinal(version.ordinal()),
        }
    }

    fn named(
        &self,
        me: &Me,
        work: &Transaction,
        row: RowId,
        id: Id,
        snapshot: Option<&Snap>,
    ) -> StateAt {
        let ordinal = match id {
            Id::Alias(alias) => {
                let Some((table, named, version)) = work.aliased(alias) else {
                    return StateAt::None;
                };
                assert_eq!((table, named), (self.table, row));
                return StateAt::One(version);
            }
            Id::Ordinal(ordinal) => ordinal,
        };
        let listed = work.own_row(self.table, row);
        self.session
            .state_at(me, self.table, row, ordinal, listed, &[snapshot])
    }
}

/// A deferred trigger asks at the end for every state that there was.
#[test]
fn each_of_a_transactions_states_has_an_id_of_its_own() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let place = Place::new(session);
    let rows = [place.row(0), place.row(0)];
    let replaced = rows.map(|row| place.newest(&reader(&place.world), row));
    let me = place.world.begin();
    let before = me.snapshot(1);
    let mut work = Transaction::new();
    let mut given = Vec::new();
    for change in 1..=3 * u32::from(ORDINALS) {
        // Now and then a command changes both rows.
        let cids = [2 * change, 2 * change + change % 3 % 2];
        for (row, cid) in rows.into_iter().zip(cids) {
            let by = (me.top, cid);
            let version = place.update_by(&me, by, &mut work, row, change as i32);
            given.push((row, version, place.id(&work, row, version)));
        }
    }
    let with_alias = |given: &&(RowId, VersionRef, Id)| matches!(given.2, Id::Alias(_));
    let aliases = given.iter().filter(with_alias).count();
    assert_eq!(aliases, given.len() - rows.len() * NAMED_BY_ORDINAL);
    let after = me.snapshot(u32::MAX);
    for snapshot in [None, Some(&before), Some(&after)] {
        for (row, version, id) in given.iter().chain(&given[..500]) {
            let named = place.named(&me, &work, *row, *id, snapshot);
            assert_eq!(named, StateAt::One(*version));
        }
        for (row, version) in rows.into_iter().zip(replaced) {
            let id = Id::Ordinal(version.ordinal());
            let named = place.named(&me, &work, row, id, snapshot);
            assert_eq!(named, StateAt::One(version));
        }
    }
    drop((before, after));
    me.end(Fate::Committed);
    work.commit(session);
    // Committed states are named as all others are, and an alias means nothing to the next one.
    for (row, version, id) in &given {
        assert!(work.alias(place.table, *row, *version).is_none());
        if let Id::Alias(alias) = id {
            assert!(work.aliased(*alias).is_none());
        }
    }
    common::check(session, place.table, &reader(&place.world));
}

/// What is taken back has no name, and what stays keeps its own.
#[test]
fn savepoints_take_names_back_with_their_states() {
    let (_region, engine) = common::engine(64 << 20);
    let session = &engine.join().unwrap();
    let place = Place::new(session);
    let me = place.world.begin();
    let mut work = Transaction::new();
    let (row, first) = place.insert(&me, &mut work, 0);
    let mut given = vec![(first, place.id(&work, row, first))];
    // Around the first list, the first alias and the ends of its blocks.
    for changes in [40, 63, 64, 65, 900, 1023, 1024, 1025, 5000] {
        for fate in [Fate::Committed, Fate::Aborted] {
            let inner = me.savepoint();
            work.set_level(2).unwrap();
            let kept = given.len();
            for change in 0..changes {
                let version = place.update(&me, inner, &mut work, row, change);
                given.push((version, place.id(&work, row, version)));
            }
            if fate == Fate::Committed {
                work.savepoint_commit(2);
            } else {
                let gone = given.split_off(kept);
                me.abort_one(inner);
                work.savepoint_abort(session, 2);
                for (_, id) in gone {
                    let named = place.named(&me, &work, row, id, None);
                    assert_eq!(named, StateAt::None);
                }
            }
            work.set_level(1).unwrap();
            let version = place.update(&me, me.top, &mut work, row, changes);
            given.push((version, place.id(&work, row, version)));
        }
        for (version, id) in &given {
            let named = place.named(&me, &work, row, *id, None);
            assert_eq!(named, StateAt::One(*version));
        }
    }
    me.end(Fate::Aborted);
    work.abort(session);
    assert!(work.own_row(place.table, row).is_none());
}

/// Others' changes go on above a KEY SHARE lock. What it was put on is named, and so is what a
/// snapshot sees: the newest state of the same ordinal is not.
#[test]
fn what_was_locked_is_named_though_others_have_used_its_ordinal_again() {
    let (_region, engine) = common::engine(32 << 20);
    let session = &engine.join().unwrap();
    let place = Place::new(session);
    let row = place.row(-5);
    let me = place.world.begin();
    let snapshot = me.snapshot(0);
    let mut work = Transaction::new();
    let seen = place.newest(&me, row);
    let (table, xid, strength) = (place.table, Xid(me.top), LockStrength::KeyShare);
    let locked = work.lock(session, &me, table, row, seen, strength, xid);
    assert_eq!(locked.unwrap(), Locked::Done);
    for change in 1..=i32::from(ORDINALS) {
        place.change(row, change);
    }
    assert_eq!(place.at(&me, row, 0), Some(-5));
    assert_eq!(place.at_with(&me, row, 0, Some(&snapshot)), Some(-5));
    assert_eq!(place.at(&me, row, 1), None);
    assert_eq!(place.at(&reader(&place.world), row, 0), Some(8192));
    drop(snapshot);
    me.end(Fate::Committed);
    work.commit(session);
}

/// A re-evaluation locks the newest state, which has the ordinal of what the statement's snapshot
/// sees. To take the snapshot's would change nothing for ever, to take the other would lose an
/// update.
#[test]
fn a_state_that_overtakes_the_snapshots_ordinal_is_told_apart() {
    let (_region, engine) = common::engine(32 << 20);
    let session = &engine.join().unwrap();
    let place = Place::new(session);
    let row = place.row(-5);
    let me = place.world.begin();
    let snapshot = me.snapshot(0);
    for change in 1..=i32::from(ORDINALS) {
        place.change(row, change);
    }
    assert_eq!(place.at_with(&me, row, 0, Some(&snapshot)), Some(-5));
    assert_eq!(place.at(&me, row, 0), Some(8192));
    assert_eq!(place.at_with(&me, row, 1, Some(&snapshot)), None);
    let mut work = Transaction::new();
    let newest = place.newest(&me, row);
    let (table, xid, strength) = (place.table, Xid(me.top), LockStrength::NoKeyUpdate);
    let locked = work.lock(session, &me, table, row, newest, strength, xid);
    assert_eq!(locked.unwrap(), Locked::Done);
    let named = session.state_at(&me, table, row, Ordinal(0), None, &[Some(&snapshot)]);
    assert_eq!(named, StateAt::Overtaken);
    // Two snapshots may see two of them, too.
    let late = me.snapshot(1);
    let named = session.state_at(
        &me,
        table,
        row,
        Ordinal(0),
        None,
        &[Some(&snapshot), Some(&late)],
    );
    assert_eq!(named, StateAt::Overtaken);
    drop((snapshot, late));
    me.end(Fate::Committed);
    work.commit(session);
}

#[test]
fn whoever_finds_a_row_gone_is_told_where_it_went() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    let place = Place::new(session);
    let row = place.row(0);
    let other = reader(&place.world);
    let (table, cid) = (place.table, CommandId(1));
    for fate in [Fate::Aborted, Fate::Committed] {
        let me = place.world.begin();
        let mut work = Transaction::new();
        let seen = place.newest(&me, row);
        let moved = work.delete_moved_away(session, &me, table, row, seen, Xid(me.top), cid);
        let Ok(Written::Done(tombstone)) = moved else {
            panic!("{moved:?}")
        };
        assert!(tombstone.is_moved_away());
        assert_eq!(tombstone.ordinal(), Ordinal(1));
        assert!(session.is_moved_away(&me, table, row));
        assert!(!session.is_moved_away(&other, table, row));
        me.end(fate);
        assert_eq!(
            session.is_moved_away(&other, table, row),
            fate == Fate::Committed
        );
        match fate {
            Fate::Committed => work.commit(session),
            _ => work.abort(session),
        }
    }
    assert!(session.is_moved_away(&other, table, row));
    assert!(!session.is_moved_away(&other, table, RowId(77)));
}

/// Ordinals and marks of the states that the log and a checkpoint tell of are those that the server
/// had.
#[test]
fn log_and_checkpoint_keep_ordinals_and_marks() {
    let (_region, engine) = common::engine(16 << 20);
    engine.set_state(State::Ready);
    let session = &engine.join().unwrap();
    let place = Place::new(session);
    let mut wal = Wal::default();
    let me = place.world.begin();
    let mut work = Transaction::new();
    let logged = work.create_table(session, RelationKey::of_file(1, 9, 5), Xid(me.top));
    let place = Place {
        table: logged.unwrap(),
        ..place
    };
    let rows: Vec<RowId> = (0..4).map(|b| place.insert(&me, &mut work, b).0).collect();
    let end = |me: Me, mut work: Transaction, wal: &mut Wal| {
        wal.xid = me.top;
        work.log(session, wal).unwrap();
        me.end(Fate::Committed);
        work.commit(session);
    };
    end(me, work, &mut wal);
    // Keeps tombstones from the sweeper, and from whoever tidies up.
    let old = reader(&place.world).snapshot(0);
    let (table, cid) = (place.table, CommandId(1));
    for round in 0..3 {
        let me = place.world.begin();
        let mut work = Transaction::new();
        for row in &rows[..3] {
            for change in 0..=round {
                place.update(&me, me.top, &mut work, *row, change);
            }
        }
        end(me, work, &mut wal);
    }
    let me = place.world.begin();
    let mut work = Transaction::new();
    let (seen, other) = (place.newest(&me, rows[0]), place.newest(&me, rows[1]));
    let xid = Xid(me.top);
    let moved = work.delete_moved_away(session, &me, table, rows[0], seen, xid, cid);
    let deleted = work.delete(session, &me, table, rows[1], other, xid, cid);
    assert!(matches!(
        (moved, deleted),
        (Ok(Written::Done(_)), Ok(Written::Done(_)))
    ));
    end(me, work, &mut wal);

    let clock = reader(&place.world);
    let newest = |session: &Session, table: TableRef| {
        let _pin = session.memory().pin();
        let tops = rows.iter().map(|row| {
            let is_moved = session.is_moved_away(&clock, table, *row);
            let state =
                |ordinal| session.state_at(&clock, table, *row, ordinal, None, &[None::<&Snap>]);
            let found = (0..20)
                .rev()
                .find_map(|ordinal| match state(Ordinal(ordinal)) {
                    StateAt::One(version) => Some((ordinal, version.body().to_vec())),
                    _ => None,
                });
            (is_moved, found)
        });
        tops.collect::<Vec<_>>()
    };
    let here = newest(session, table);
    let marks: Vec<bool> = here.iter().map(|(is_moved, _)| *is_moved).collect();
    assert_eq!(marks, [true, false, false, false]);
    let ordinals: Vec<u16> = here
        .iter()
        .flat_map(|top| &top.1)
        .map(|top| top.0)
        .collect();
    assert_eq!(ordinals, [6, 0]);

    let directory = tempfile::tempdir().unwrap();
    let disk = DirectoryDisk::open(directory.path()).unwrap();
    let redo = Lsn(wal.end);
    let mut context = CheckpointContext {
        system_id: 1,
        timeline: 1,
        redo,
        generation: 1,
        finished_below: place.world.horizon(),
        is_final: false,
        threads: 1,
        pace: Pace::unlimited(),
        progress: &CheckpointProgress::default(),
        outcomes: &mut |_| Ok(Vec::new()),
        flush: &mut |_| Ok(redo),
    };
    write(session, &disk, &mut context).unwrap();
    drop(old);

    let find = |session: &Session| session.find_table(table.key(), &clock).expect("exists");
    let (_region, loaded) = common::engine(16 << 20);
    loaded.set_state(State::Loading);
    let manifest = read_manifest(&disk, 1).unwrap();
    assert_eq!(load(loaded, &disk, &manifest, 1).unwrap().rows, 2);
    let there = &loaded.join().unwrap();
    assert_eq!(newest(there, find(there)), here);

    let (_region, replayed) = common::engine(16 << 20);
    replayed.set_state(State::Replaying);
    let there = &replayed.join().unwrap();
    let mut replayer = Replayer::new(1);
    for (lsn, xid, record) in &wal.records {
        replayer.apply(there, record, *lsn, *xid).unwrap();
    }
    assert_eq!(newest(there, find(there)), here);
}
