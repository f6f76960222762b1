//! One transaction that changes the same row thousands of times: each statement, COMMIT, ROLLBACK
//! and ROLLBACK TO take steps for what they change, not for what the transaction did before. Steps
//! are counted ([`steps_taken`]), so it shows on any machine.
#![cfg(debug_assertions)]

mod common;

use common::{Fate, Me, Row, World, body, check, reader, row};
use mot_engine::steps::steps_taken;
use mot_engine::{
    CommandId, Entered, LockStrength, Locked, Newest, RowId, Session, TableRef, Transaction,
    VersionRef, Written, Xid,
};

/// Changes of one row.
const CHANGES: i32 = 1000;
/// Steps that are few for one change, whatever came before: along chains and row ids of keys, in
/// three indexes.
const FEW: u64 = 60;
/// Steps more for one that lists the transaction's states of its row (`own_rows`), or tries to.
const LISTED: u64 = 128;

/// One session, and a transaction that goes on.
struct Long<'a> {
    session: &'a Session,
    table: TableRef,
    me: Me,
    work: Transaction,
    /// Ids of the open levels, the transaction's own first.
    open: Vec<u64>,
    cid: u32,
    /// Most steps that one statement took, and those of all.
    most: u64,
    total: u64,
}

impl<'a> Long<'a> {
    fn begin(session: &'a Session, world: &'a World, table: TableRef) -> Long<'a> {
        let me = world.begin();
        let open = vec![me.top];
        Long {
            session,
            table,
            me,
            work: Transaction::new(),
            open,
            cid: 0,
            most: 0,
            total: 0,
        }
    }

    fn xid(&self) -> Xid {
        Xid(*self.open.last().unwrap())
    }

    /// A statement: counts its steps.
    fn statement<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        self.cid += 1;
        let before = steps_taken();
        let done = run(self);
        self.most = self.most.max(steps_taken() - before);
        self.total += steps_taken() - before;
        done
    }

    fn enter(&mut self, row_id: RowId, version: VersionRef) {
        let entered = self
            .work
            .enter(self.session, &self.me, self.table, row_id, version);
        assert_eq!(entered.unwrap(), Entered::Done);
    }

    fn insert(&mut self, new: Row) -> RowId {
        self.statement(|this| {
            let (xid, cid) = (this.xid(), CommandId(this.cid));
            let made = this
                .work
                .insert(this.session, this.table, &body(new), xid, cid);
            let (row_id, version) = made.unwrap();
            this.enter(row_id, version);
            row_id
        })
    }

    fn update(&mut self, row_id: RowId, change: impl FnOnce(Row) -> Row) {
        self.statement(|this| {
            let snapshot = this.me.snapshot(this.cid);
            let seen = this.session.visible(this.table, row_id, &snapshot).unwrap();
            let new = body(change(row(seen.body())));
            let written = this.work.update(
                this.session,
                &this.me,
                this.table,
                row_id,
                seen,
                &new,
                this.xid(),
                CommandId(this.cid),
            );
            let Ok(Written::Done(version)) = written else {
                panic!("{written:?}")
            };
            this.enter(row_id, version);
        });
    }

    fn delete(&mut self, row_id: RowId) {
        self.statement(|this| {
            let snapshot = this.me.snapshot(this.cid);
            let seen = this.session.visible(this.table, row_id, &snapshot).unwrap();
            let written = this.work.delete(
                this.session,
                &this.me,
                this.table,
                row_id,
                seen,
                this.xid(),
                CommandId(this.cid),
            );
            assert!(matches!(written, Ok(Written::Done(_))), "{written:?}");
        });
    }

    fn lock(&mut self, row_id: RowId, strength: LockStrength) -> Locked {
        self.statement(|this| {
            let Newest::Live(seen) = this.session.newest(&this.me, this.table, row_id) else {
                panic!("the row is there")
            };
            let xid = this.xid();
            this.work
                .lock(
                    this.session,
                    &this.me,
                    this.table,
                    row_id,
                    seen,
                    strength,
                    xid,
                )
                .unwrap()
        })
    }

    fn savepoint(&mut self) {
        self.open.push(self.me.savepoint());
        self.level();
    }

    fn level(&mut self) {
        self.work.set_level(self.open.len() as i32).unwrap();
    }

    fn release(&mut self) {
        let level = self.open.len() as i32;
        let xid = self.open.pop().unwrap();
        self.me.adopt(xid, *self.open.last().unwrap());
        self.work.savepoint_commit(level);
        self.level();
    }

    /// Steps it took.
    fn roll_back_to_savepoint(&mut self) -> u64 {
        let level = self.open.len() as i32;
        self.me.abort_one(self.open.pop().unwrap());
        let before = steps_taken();
        self.work.savepoint_abort(self.session, level);
        let taken = steps_taken() - before;
        self.level();
        taken
    }

    /// Steps that log and commit took; most of one statement, and those of all.
    fn commit(mut self) -> (u64, [u64; 2]) {
        let before = steps_taken();
        self.work
            .log(self.session, &mut common::Positions::new())
            .unwrap();
        self.me.end(Fate::Committed);
        self.work.commit(self.session);
        (steps_taken() - before, [self.most, self.total])
    }

    fn roll_back(mut self) -> (u64, [u64; 2]) {
        self.me.end(Fate::Aborted);
        let before = steps_taken();
        self.work.abort(self.session);
        (steps_taken() - before, [self.most, self.total])
    }
}

/// A table of two rows: `a` has a unique index, `b` and `c` others.
struct Place {
    session: Session,
    world: World,
    table: TableRef,
    row_ids: [RowId; 2],
    _region: mot_engine::memory::Region,
}

impl Place {
    fn new() -> Place {
        let (region, engine) = common::engine(128 << 20);
        let session = engine.join().unwrap();
        let world = World::new();
        let indexes = [
            common::definition(101, true, &[(1, false)]),
            common::definition(102, false, &[(2, false)]),
            common::definition(103, false, &[(3, false)]),
        ];
        let table = common::table(&session, &world, &indexes);
        let mut first = Long::begin(&session, &world, table);
        let row_ids = START.map(|row| first.insert(row));
        first.commit();
        Place {
            session,
            world,
            table,
            row_ids,
            _region: region,
        }
    }

    fn begin(&self) -> Long<'_> {
        Long::begin(&self.session, &self.world, self.table)
    }

    /// Both rows are this now, alone in their chains after a sweep, and every entry is there once.
    fn has(&self, rows: [Row; 2]) {
        let me = reader(&self.world);
        check(&self.session, self.table, &me);
        common::sweep(&self.session, &self.world, self.table);
        let snapshot = me.snapshot(0);
        let now = self.row_ids.map(|row_id| {
            let seen = self.session.visible(self.table, row_id, &snapshot);
            row(seen.expect("the row is there").body())
        });
        assert_eq!(now, rows);
        drop(snapshot);
        let report = check(&self.session, self.table, &me);
        assert_eq!(report.versions, 2);
        for index in self.session.indexes(self.table, &me) {
            assert_eq!(
                index.entry_count_estimate(),
                2,
                "of index {}",
                index.relation_oid()
            );
        }
    }
}

const START: [Row; 2] = [new_row(0), new_row(-1)];

const fn new_row(a: i32) -> Row {
    Row { a, b: 0, c: None }
}

/// Each statement and the end of a transaction of so many changes took few steps a change.
fn took_few((end, [most, all]): (u64, [u64; 2]), changes: i32) {
    let changes = changes as u64;
    assert!(most <= FEW + LISTED, "a statement took {most} steps");
    assert!(all <= FEW * changes, "all statements took {all} steps");
    assert!(
        end <= FEW * changes,
        "the end of {changes} changes took {end} steps"
    );
}

fn next_b(row: Row) -> Row {
    Row {
        b: row.b + 1,
        ..row
    }
}

fn next_of_all(row: Row) -> Row {
    Row {
        a: row.a + 10,
        b: row.b + 1,
        c: Some(row.b),
    }
}

/// What `change` makes of a row when it is applied so often.
fn often(row: Row, times: i32, change: impl Fn(Row) -> Row) -> Row {
    (0..times).fold(row, |row, _| change(row))
}

#[test]
fn keys_of_one_row_changed_again_and_again() {
    for change in [next_b, next_of_all] {
        let place = Place::new();
        let row_id = place.row_ids[0];
        let mut long = place.begin();
        (0..CHANGES).for_each(|_| long.update(row_id, change));
        took_few(long.roll_back(), CHANGES);
        place.has(START);

        let mut long = place.begin();
        (0..CHANGES).for_each(|_| long.update(row_id, change));
        took_few(long.commit(), CHANGES);
        place.has([often(START[0], CHANGES, change), START[1]]);
    }
}

#[test]
fn two_rows_changed_in_turn() {
    let place = Place::new();
    for is_committed in [false, true] {
        let mut long = place.begin();
        for _ in 0..CHANGES {
            place
                .row_ids
                .iter()
                .for_each(|row_id| long.update(*row_id, next_b));
        }
        if is_committed {
            took_few(long.commit(), 2 * CHANGES);
            place.has(START.map(|row| often(row, CHANGES, next_b)));
        } else {
            took_few(long.roll_back(), 2 * CHANGES);
            place.has(START);
        }
    }
}

#[test]
fn a_row_made_changed_and_deleted_by_one_transaction() {
    for is_committed in [false, true] {
        let place = Place::new();
        let mut long = place.begin();
        let row_id = long.insert(Row { a: 7, ..START[0] });
        (0..CHANGES).for_each(|_| long.update(row_id, next_of_all));
        long.delete(row_id);
        let taken = match is_committed {
            true => long.commit(),
            false => long.roll_back(),
        };
        took_few(taken, CHANGES);
        place.has(START);
    }
}

#[test]
fn part_of_the_changes_taken_back() {
    let place = Place::new();
    let row_id = place.row_ids[0];
    let mut long = place.begin();
    (0..CHANGES).for_each(|_| long.update(row_id, next_b));
    long.savepoint();
    (0..CHANGES).for_each(|_| long.update(row_id, next_of_all));
    long.savepoint();
    (0..CHANGES).for_each(|_| long.update(row_id, next_of_all));
    long.release();
    // Once down to what stays is what each key that goes is worth, and no more than that once.
    let taken = long.roll_back_to_savepoint();
    assert!(taken <= FEW * 2 * CHANGES as u64, "{taken}");
    (0..CHANGES).for_each(|_| long.update(row_id, next_b));
    took_few(long.commit(), 2 * CHANGES);
    place.has([often(START[0], 2 * CHANGES, next_b), START[1]]);
}

#[test]
fn a_subtransaction_for_each_change() {
    let place = Place::new();
    let row_id = place.row_ids[0];
    for is_committed in [false, true] {
        let mut long = place.begin();
        for _ in 0..CHANGES {
            long.savepoint();
            long.update(row_id, next_b);
            long.release();
        }
        if is_committed {
            took_few(long.commit(), CHANGES);
            place.has([often(START[0], CHANGES, next_b), START[1]]);
        } else {
            took_few(long.roll_back(), CHANGES);
            place.has(START);
        }
    }
}

#[test]
fn a_row_that_its_transaction_has_locked() {
    for strength in [LockStrength::KeyShare, LockStrength::Update] {
        let place = Place::new();
        let row_id = place.row_ids[0];
        let mut long = place.begin();
        for _ in 0..CHANGES {
            assert_eq!(long.lock(row_id, strength), Locked::Done);
            long.update(row_id, next_b);
        }
        took_few(long.commit(), CHANGES);
        place.has([often(START[0], CHANGES, next_b), START[1]]);
    }
}

/// Foreign keys of others refer to the row all the while: their locks come between the states, and
/// stay.
#[test]
fn locks_of_others_between_the_states_stay() {
    let place = Place::new();
    let row_id = place.row_ids[0];
    for is_committed in [true, false] {
        let mut long = place.begin();
        let mut others = Vec::new();
        let (session, world) = (&place.session, &place.world);
        for change in 0..CHANGES {
            long.update(row_id, next_b);
            if change % 100 == 0 {
                let mut other = Long::begin(session, world, place.table);
                let seen = session.visible(place.table, row_id, &other.me.snapshot(0));
                let locked = other.work.lock(
                    session,
                    &other.me,
                    place.table,
                    row_id,
                    seen.unwrap(),
                    LockStrength::KeyShare,
                    other.xid(),
                );
                assert_eq!(locked.unwrap(), Locked::Done);
                others.push(other);
            }
        }
        let (end, _) = if is_committed {
            long.commit()
        } else {
            long.roll_back()
        };
        assert!(end <= FEW * CHANGES as u64, "{end}");
        while let Some(other) = others.pop() {
            let mut strong = Long::begin(session, world, place.table);
            assert!(matches!(
                strong.lock(row_id, LockStrength::Update),
                Locked::Busy(_)
            ));
            strong.roll_back();
            other.commit();
        }
        let mut strong = Long::begin(session, world, place.table);
        assert_eq!(strong.lock(row_id, LockStrength::Update), Locked::Done);
        strong.roll_back();
        place.has([often(START[0], CHANGES, next_b), START[1]]);
    }
}

/// An old snapshot needs many states of the row, which lie below those of the transaction.
#[test]
fn a_row_of_which_an_old_snapshot_needs_many_states() {
    let place = Place::new();
    let row_id = place.row_ids[0];
    let mut snapshots = Vec::new();
    for _ in 0..CHANGES {
        snapshots.push(reader(&place.world).snapshot(0));
        let mut short = place.begin();
        short.update(row_id, next_b);
        short.commit();
    }
    let mut long = place.begin();
    for _ in 0..CHANGES {
        long.update(row_id, |row| Row {
            c: Some(row.c.unwrap_or(0) + 1),
            ..row
        });
    }
    took_few(long.roll_back(), CHANGES);
    drop(snapshots);
    place.has([often(START[0], CHANGES, next_b), START[1]]);
}

/// A key that is deleted and inserted again and again has so many row ids; each is looked at once
/// by each insert.
#[test]
fn a_key_deleted_and_inserted_again() {
    const TIMES: i32 = 200;
    for is_committed in [false, true] {
        let place = Place::new();
        let mut long = place.begin();
        let mut row_id = place.row_ids[0];
        for _ in 0..TIMES {
            long.delete(row_id);
            row_id = long.insert(START[0]);
        }
        let most = long.most;
        assert!(most <= FEW * TIMES as u64, "an insert took {most} steps");
        let (end, _) = match is_committed {
            true => long.commit(),
            false => long.roll_back(),
        };
        let times = TIMES as u64;
        assert!(end <= 4 * times * times, "{end}");
        if is_committed {
            common::sweep(&place.session, &place.world, place.table);
            let left = check(&place.session, place.table, &reader(&place.world));
            assert_eq!(left.versions, 2);
        } else {
            place.has(START);
        }
    }
}

/// All rows get one value, after the index that forbids that was dropped by the same transaction.
#[test]
fn rows_made_equal_after_their_unique_index_was_dropped() {
    for is_committed in [true, false] {
        let place = Place::new();
        let (session, world, table) = (&place.session, &place.world, place.table);
        let mut first = place.begin();
        let row_ids: Vec<RowId> = (1..=CHANGES)
            .map(|a| first.insert(Row { a, ..START[0] }))
            .collect();
        first.commit();

        let mut long = place.begin();
        long.update(row_ids[0], |row| Row { a: -7, ..row });
        // Two drops: one that is taken back, with what was written after it, and one that is not.
        for times in 0..2 {
            long.savepoint();
            let xid = long.xid();
            let dropped = long.work.drop_index(session, &long.me, table, 101, xid);
            assert!(dropped.unwrap());
            for row_id in &row_ids {
                long.update(*row_id, |row| Row { a: 7, ..row });
            }
            if times == 0 {
                let taken = long.roll_back_to_savepoint();
                assert!(taken <= FEW * CHANGES as u64, "{taken}");
                let taken = long.me.snapshot(long.cid + 1);
                let seen = session.visible(table, row_ids[0], &taken).unwrap();
                assert_eq!(row(seen.body()).a, -7);
                let other = body(Row { a: -7, ..START[0] });
                let probed = long.work.probe(session, &long.me, table, None, &other);
                assert!(matches!(probed, Ok(Entered::Duplicate(_))), "{probed:?}");
            } else {
                long.release();
            }
        }
        // One that finds no room for its row id makes some for as many as there are.
        assert!(long.total <= 3 * FEW * CHANGES as u64, "{}", long.total);
        let (taken, _) = if is_committed {
            long.commit()
        } else {
            long.roll_back()
        };
        assert!(taken <= 2 * FEW * CHANGES as u64, "{taken}");
        common::sweep(session, world, table);
        let report = check(session, table, &reader(world));
        assert_eq!(report.versions, CHANGES as u64 + 2);
        let left = session.find_index(table, 101, &reader(world));
        assert_eq!(left.is_none(), is_committed);
    }
}
