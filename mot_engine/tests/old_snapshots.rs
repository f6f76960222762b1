//! Old snapshots keep what they see, and not what comes between that and everybody else's states.
//! (Random interleavings with every snapshot compared: `model.rs`, whose sweeps are told of old
//! snapshots, too.)

mod common;

use common::{Fate, Row, Snap, World, body, row};
use mot_engine::{
    CommandId, Engine, Entered, LockStrength, Locked, OldSnapshots, RowId, Session, TableRef,
    Transaction, Written, Xid,
};

struct Place {
    session: Session,
    world: World,
    table: TableRef,
    row_id: RowId,
}

impl Place {
    /// A table with a unique index on `a` and one row.
    fn new(engine: Engine) -> Place {
        let session = engine.join().unwrap();
        let world = World::new();
        let definition = common::definition(101, true, &[(1, false)]);
        let table = common::table(&session, &world, &[definition]);
        let first = body(Row {
            a: 1,
            b: 0,
            c: None,
        });
        let row_id = common::transact(&session, &world, |work, me, xid| {
            let (row_id, version) = work
                .insert(&session, table, &first, xid, CommandId(1))
                .unwrap();
            let entered = work.enter(&session, me, table, row_id, version).unwrap();
            assert_eq!(entered, Entered::Done);
            row_id
        });
        Place {
            session,
            world,
            table,
            row_id,
        }
    }

    /// A transaction of its own gives the row another state.
    fn set(&self, a: i32, b: i32) {
        let me = self.world.begin();
        let snap = me.snapshot(1);
        let seen = self
            .session
            .visible(self.table, self.row_id, &snap)
            .unwrap();
        let mut work = Transaction::new();
        let new = body(Row { a, b, c: None });
        let xid = Xid(me.top);
        let written = work.update(
            &self.session,
            &me,
            self.table,
            self.row_id,
            seen,
            &new,
            xid,
            CommandId(1),
        );
        let Ok(Written::Done(version)) = written else {
            panic!("{written:?}")
        };
        let entered = work.enter(&self.session, &me, self.table, self.row_id, version);
        assert_eq!(entered.unwrap(), Entered::Done);
        me.end(Fate::Committed);
        work.commit(&self.session);
    }

    fn snapshot(&self) -> Snap {
        common::reader(&self.world).snapshot(0)
    }

    fn sees(&self, snap: &Snap) -> i32 {
        row(self
            .session
            .visible(self.table, self.row_id, snap)
            .unwrap()
            .body())
        .b
    }

    /// Sweeps, told of all old snapshots but those untold; how many states are left then.
    fn sweep(&self, untold: &[&Snap]) -> u64 {
        let old = self
            .world
            .old_snapshots(|xmin, xmax| !untold.iter().any(|s| (s.xmin, s.xmax) == (xmin, xmax)));
        self.sweep_minding(old)
    }

    fn sweep_minding(&self, old: OldSnapshots) -> u64 {
        self.session.engine().raise_horizon(self.world.horizon());
        self.session.set_old_snapshots(old);
        let clock = common::reader(&self.world);
        self.session.sweep(&clock, self.table, true, || {});
        common::check(&self.session, self.table, &clock).versions
    }
}

#[test]
fn what_lies_between_old_and_new_snapshots_goes() {
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine);
    for b in 1..=5 {
        place.set(1, b);
    }
    let old = place.snapshot();
    for b in 6..=2000 {
        place.set(1, b);
    }
    let later = place.snapshot();
    for b in 2001..=4000 {
        place.set(1, b);
    }
    assert_eq!(place.sweep_minding(OldSnapshots::default()), 3996);
    // One for each of both snapshots, and the newest.
    assert_eq!(place.sweep(&[]), 3);
    assert_eq!((place.sees(&old), place.sees(&later)), (5, 2000));
    assert_eq!(place.sees(&place.snapshot()), 4000);
    drop(old);
    assert_eq!(place.sweep(&[]), 2);
    assert_eq!(place.sees(&later), 2000);
    drop(later);
    assert_eq!(place.sweep(&[]), 1);
}

#[test]
fn a_snapshot_that_is_not_told_keeps_all_since() {
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine);
    let told = place.snapshot();
    for b in 1..=10 {
        place.set(1, b);
    }
    let untold = place.snapshot();
    for b in 11..=20 {
        place.set(1, b);
    }
    // Of the first ten only the last, of the others all, and the state that the first snapshot
    // sees.
    assert_eq!(place.sweep(&[&untold]), 1 + 1 + 10);
    assert_eq!((place.sees(&told), place.sees(&untold)), (0, 10));
}

/// A transaction that began before the old snapshot and commits after it: the snapshot's bounds do
/// not tell that its state is not seen.
#[test]
fn what_ran_while_a_snapshot_was_taken_stays() {
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine);
    let straddler = place.world.begin();
    let old = place.snapshot();
    let seen = place
        .session
        .visible(place.table, place.row_id, &place.snapshot())
        .unwrap();
    let mut work = Transaction::new();
    let new = body(Row {
        a: 1,
        b: 1,
        c: None,
    });
    let xid = Xid(straddler.top);
    let written = work.update(
        &place.session,
        &straddler,
        place.table,
        place.row_id,
        seen,
        &new,
        xid,
        CommandId(1),
    );
    assert!(matches!(written, Ok(Written::Done(_))), "{written:?}");
    straddler.end(Fate::Committed);
    work.commit(&place.session);
    for b in 2..=20 {
        place.set(1, b);
    }
    assert_eq!(place.sweep(&[]), 3);
    assert_eq!(place.sees(&old), 0);
}

/// A KEY SHARE locker that comes from an old state passes over changes that left the keys alone. It
/// must still meet one that did not.
#[test]
fn a_change_of_a_unique_key_stays_for_key_share_lockers() {
    let (_region, engine) = common::engine(32 << 20);
    let place = Place::new(engine);
    let old = place.snapshot();
    let seen = place
        .session
        .visible(place.table, place.row_id, &old)
        .unwrap();
    place.set(1, 1);
    place.set(2, 2);
    place.set(2, 3);
    place.set(2, 4);
    assert_eq!(place.sweep(&[]), 3);
    let me = place.world.begin();
    let mut work = Transaction::new();
    let locked = work.lock(
        &place.session,
        &me,
        place.table,
        place.row_id,
        seen,
        LockStrength::KeyShare,
        Xid(me.top),
    );
    assert_eq!(locked.unwrap(), Locked::Changed);
    me.end(Fate::Aborted);
    work.abort(&place.session);
}

/// ON CONFLICT meets the newest state, which an old snapshot does not see and nothing keeps.
#[test]
fn a_state_taken_out_since_it_was_met_is_not_ones_own() {
    let (_region, engine) = common::engine(16 << 20);
    let place = Place::new(engine);
    let old = place.snapshot();
    place.set(1, 1);
    let met = place
        .session
        .visible(place.table, place.row_id, &place.snapshot())
        .unwrap();
    let me = place.world.begin();
    let is_own = |version| {
        place
            .session
            .is_own_state(&me, place.table, place.row_id, version)
    };
    assert!(!is_own(met));
    place.set(1, 2);
    place.set(1, 3);
    let kept = place.sweep(&[]);
    assert!(!is_own(met), "{kept}");
    assert_eq!(place.sees(&old), 0);

    let snap = me.snapshot(1);
    let seen = place
        .session
        .visible(place.table, place.row_id, &snap)
        .unwrap();
    let mut work = Transaction::new();
    let new = body(Row {
        a: 1,
        b: 4,
        c: None,
    });
    let written = work.update(
        &place.session,
        &me,
        place.table,
        place.row_id,
        seen,
        &new,
        Xid(me.top),
        CommandId(1),
    );
    let Ok(Written::Done(mine)) = written else {
        panic!("{written:?}")
    };
    assert!(is_own(mine));
    assert!(!is_own(seen));
    me.end(Fate::Aborted);
    work.abort(&place.session);
}
