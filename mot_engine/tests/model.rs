//! Random transactions against a simple model: rows as lists of versions.
//!
//! Several transactions with savepoints are interleaved by a random script, old snapshots stay open, and the moment between PostgreSQL's
//! decision and the engine's commit or abort is stretched over other transactions' work. After every step all snapshots must see what the model
//! says, through a row scan and through each index, and every writer's outcome must be the model's.

mod common;

use common::{Fate, Me, Positions, Row, Snap, World, image, row};
use mot_engine::key::IndexDefinition;
use mot_engine::{
    Build, CommandId, Direction, Entered, IndexRef, IndexScan, KeyRange, LockStrength, Locked,
    RowScan, Session, Slot, TableRef, Transaction, VersionRef, Written, Xid,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const TRANSACTIONS: usize = 4;
const SNAPSHOTS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Insert {
        t: usize,
        row: Row,
        retract: bool,
    },
    Update {
        t: usize,
        pick: usize,
        row: Row,
    },
    /// Changes no key.
    Touch {
        t: usize,
        pick: usize,
    },
    Delete {
        t: usize,
        pick: usize,
    },
    Lock {
        t: usize,
        pick: usize,
        strength: LockStrength,
    },
    Savepoint {
        t: usize,
    },
    RollbackTo {
        t: usize,
    },
    Release {
        t: usize,
    },
    /// PostgreSQL's decision; the engine hears of it with `Finish`.
    Decide {
        t: usize,
        commit: bool,
        log: bool,
    },
    Finish {
        t: usize,
    },
    Hold {
        at: usize,
    },
    Let {
        at: usize,
    },
    Sweep,
    Check,
}

fn rows() -> impl Strategy<Value = Row> {
    (0..8, 0..4, proptest::option::of(0..6)).prop_map(|(a, b, c)| Row { a, b, c })
}

fn steps() -> impl Strategy<Value = Step> {
    let t = 0..TRANSACTIONS;
    let strength = prop_oneof![
        Just(LockStrength::KeyShare),
        Just(LockStrength::Share),
        Just(LockStrength::NoKeyUpdate),
        Just(LockStrength::Update)
    ];
    prop_oneof![
        8 => (t.clone(), rows(), any::<bool>()).prop_map(|(t, row, retract)| Step::Insert { t, row, retract }),
        8 => (t.clone(), any::<usize>(), rows()).prop_map(|(t, pick, row)| Step::Update { t, pick, row }),
        5 => (t.clone(), any::<usize>()).prop_map(|(t, pick)| Step::Touch { t, pick }),
        5 => (t.clone(), any::<usize>()).prop_map(|(t, pick)| Step::Delete { t, pick }),
        4 => (t.clone(), any::<usize>(), strength).prop_map(|(t, pick, strength)| Step::Lock { t, pick, strength }),
        3 => t.clone().prop_map(|t| Step::Savepoint { t }),
        2 => t.clone().prop_map(|t| Step::RollbackTo { t }),
        1 => t.clone().prop_map(|t| Step::Release { t }),
        5 => (t.clone(), prop_oneof![3 => Just(true), 1 => Just(false)], any::<bool>())
            .prop_map(|(t, commit, log)| Step::Decide { t, commit, log }),
        6 => t.prop_map(|t| Step::Finish { t }),
        2 => (0..SNAPSHOTS).prop_map(|at| Step::Hold { at }),
        2 => (0..SNAPSHOTS).prop_map(|at| Step::Let { at }),
        3 => Just(Step::Sweep),
        1 => Just(Step::Check),
    ]
}

#[derive(Clone, Debug)]
struct ModelVersion {
    xid: u64,
    cid: u32,
    row: Option<Row>,
    strength: LockStrength,
}

#[derive(Default, Debug)]
struct ModelRow {
    /// Oldest first.
    versions: Vec<ModelVersion>,
    locks: Vec<(u64, LockStrength)>,
}

struct Running {
    me: Me,
    work: Transaction,
    cid: u32,
    /// Ids of the open levels; the first is the top-level one.
    levels: Vec<u64>,
    decided: Option<Fate>,
    /// Its first snapshot's bounds, if it is a REPEATABLE READ one.
    first: Option<Snap>,
}

struct Test {
    world: World,
    session: Session,
    table: TableRef,
    indexes: Vec<(IndexRef, IndexDefinition)>,
    rows: BTreeMap<Slot, ModelRow>,
    running: Vec<Option<Running>>,
    held: Vec<Option<Snap>>,
    log: Positions,
}

impl Test {
    fn sees(&self, snap: &Snap, version: &ModelVersion) -> bool {
        let fate = self.world.fate(version.xid);
        if fate == Fate::Running && snap.top != 0 && self.world.top(version.xid) == snap.top {
            return version.cid < snap.cid;
        }
        version.xid < snap.xmax && !snap.running.contains(&version.xid) && fate == Fate::Committed
    }

    fn visible(&self, snap: &Snap, model: &ModelRow) -> Option<(Row, usize)> {
        let found = model
            .versions
            .iter()
            .rposition(|version| self.sees(snap, version))?;
        Some((model.versions[found].row?, found))
    }

    /// Fate for a transaction, with its own work told apart.
    fn is_other_running(&self, xid: u64, top: u64) -> bool {
        self.world.fate(xid) == Fate::Running && self.world.top(xid) != top
    }

    fn newest(&self, model: &ModelRow) -> Option<usize> {
        model
            .versions
            .iter()
            .rposition(|version| self.world.fate(version.xid) != Fate::Aborted)
    }

    /// Whom a writer of this strength must wait for.
    fn busy(&self, model: &ModelRow, top: u64, strength: LockStrength) -> Vec<u64> {
        let mut busy: Vec<u64> = model
            .locks
            .iter()
            .filter(|(xid, held)| self.is_other_running(*xid, top) && strength.conflicts(*held))
            .map(|(xid, _)| *xid)
            .collect();
        // The newest states, as long as they are unfinished ones that do not conflict.
        for version in model.versions.iter().rev() {
            match self.world.fate(version.xid) {
                Fate::Aborted => {}
                Fate::Running if self.world.top(version.xid) != top => {
                    if strength.conflicts(version.strength) {
                        busy.push(version.xid);
                        break;
                    }
                }
                _ => break,
            }
        }
        busy
    }

    /// What a writer or locker finds that need not wait: `None` if nothing is in its way.
    fn obstacle(
        &self,
        model: &ModelRow,
        top: u64,
        seen: usize,
        strength: LockStrength,
    ) -> Option<Written> {
        // A KEY SHARE locker passes over committed changes that left the keys alone, to the state it saw.
        let mut has_passed = false;
        for (position, version) in model.versions.iter().enumerate().rev() {
            match self.world.fate(version.xid) {
                Fate::Aborted => continue,
                Fate::Running if self.world.top(version.xid) != top => continue,
                _ if position == seen => return None,
                Fate::Running => return Some(Written::SelfModified(CommandId(version.cid))),
                Fate::Committed if version.row.is_none() => return Some(Written::Gone),
                Fate::Committed if !strength.conflicts(version.strength) => has_passed = true,
                Fate::Committed => return Some(Written::Changed),
            }
        }
        Some(if has_passed {
            Written::Changed
        } else {
            Written::Gone
        })
    }

    /// What making the entries of a row may answer: for each unique index in order, everything any other row could cause.
    fn entering(&self, slot: Slot, top: u64, old: Option<Row>, new: Row) -> Vec<Entered> {
        for (index, definition) in &self.indexes {
            let key = common::key(definition, new);
            if !definition.unique || (definition.columns[0].nullable && new.c.is_none()) {
                continue;
            }
            if old.is_some_and(|old| common::key(definition, old) == key) {
                continue;
            }
            let has = |version: &ModelVersion| {
                version
                    .row
                    .is_some_and(|row| common::key(definition, row) == key)
            };
            let mut answers = Vec::new();
            for (other, model) in &self.rows {
                if *other == slot {
                    continue;
                }
                let mut waits_for = None;
                let mut any = false;
                for version in model.versions.iter().rev() {
                    match self.world.fate(version.xid) {
                        Fate::Aborted => {}
                        Fate::Running if self.world.top(version.xid) != top => {
                            waits_for.get_or_insert(version.xid);
                            any |= has(version);
                        }
                        _ => {
                            any |= has(version);
                            break;
                        }
                    }
                }
                match waits_for {
                    Some(xid) if any => answers.push(Entered::Busy(Xid(xid))),
                    None if any => answers.push(Entered::Duplicate(*index)),
                    _ => {}
                }
            }
            if !answers.is_empty() {
                return answers;
            }
        }
        vec![Entered::Done]
    }

    /// The transaction of a script's number, begun if need be; `None` while it waits for its end.
    fn open(&mut self, t: usize) -> bool {
        if self.running[t].is_none() {
            let me = self.world.begin();
            let first = (t % 2 == 1).then(|| me.snapshot(0));
            let levels = vec![me.top];
            self.running[t] = Some(Running {
                me,
                work: Transaction::new(),
                cid: 0,
                levels,
                decided: None,
                first,
            });
        }
        let running = self.running[t].as_mut().unwrap();
        if running.decided.is_some() {
            return false;
        }
        running.cid += 1;
        running.work.set_level(running.levels.len() as i32).unwrap();
        true
    }

    /// What a statement of the transaction sees.
    fn statement(&self, t: usize) -> Snap {
        let running = self.running[t].as_ref().unwrap();
        let mut snap = running.me.snapshot(running.cid);
        if let Some(first) = &running.first {
            snap.xmax = first.xmax;
            snap.running = first.running.clone();
            // xmin may stay the newer one: ids below it are finished, but not all that are finished are seen.
        }
        snap
    }

    /// A row the transaction sees, by the engine's own look.
    fn pick(&self, t: usize, pick: usize) -> Option<(Slot, VersionRef, usize)> {
        let snap = self.statement(t);
        let seen: Vec<(Slot, usize)> = self
            .rows
            .iter()
            .filter_map(|(slot, model)| Some((*slot, self.visible(&snap, model)?.1)))
            .collect();
        if seen.is_empty() {
            return None;
        }
        let (slot, position) = seen[pick % seen.len()];
        let version = if self.running[t].as_ref().unwrap().first.is_some() {
            // xmin of such a statement's snapshot is newer than what it may see: look with the snapshot it has.
            self.look_old(t, slot)
        } else {
            self.session.visible(self.table, slot, &snap)
        };
        Some((slot, version.expect("the model sees it"), position))
    }

    fn look_old(&self, t: usize, slot: Slot) -> Option<VersionRef> {
        let running = self.running[t].as_ref().unwrap();
        let first = running.first.as_ref().unwrap();
        self.session.visible(
            self.table,
            slot,
            &OldSnap {
                first,
                cid: running.cid,
            },
        )
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Insert { t, row, retract } => {
                if self.open(t) {
                    self.insert(t, row, retract);
                }
            }
            Step::Update { t, pick, row } => {
                if self.open(t)
                    && let Some((slot, seen, position)) = self.pick(t, pick)
                {
                    self.change(t, slot, seen, position, Some(row));
                }
            }
            Step::Touch { t, pick } => {
                if self.open(t)
                    && let Some((slot, seen, position)) = self.pick(t, pick)
                {
                    let row = row(seen.image());
                    self.change(t, slot, seen, position, Some(row));
                }
            }
            Step::Delete { t, pick } => {
                if self.open(t)
                    && let Some((slot, seen, position)) = self.pick(t, pick)
                {
                    self.change(t, slot, seen, position, None);
                }
            }
            Step::Lock { t, pick, strength } => {
                if self.open(t)
                    && let Some((slot, seen, position)) = self.pick(t, pick)
                {
                    self.lock(t, slot, seen, position, strength);
                }
            }
            Step::Savepoint { t } => {
                if self.open(t) {
                    let running = self.running[t].as_mut().unwrap();
                    let xid = running.me.savepoint();
                    running.levels.push(xid);
                }
            }
            Step::RollbackTo { t } => {
                if self.open(t) && self.running[t].as_ref().unwrap().levels.len() > 1 {
                    self.roll_back(t);
                }
            }
            Step::Release { t } => {
                if self.open(t) && self.running[t].as_ref().unwrap().levels.len() > 1 {
                    let running = self.running[t].as_mut().unwrap();
                    running.work.savepoint_commit(running.levels.len() as i32);
                    // What the released level wrote ends with the level above.
                    self.adopt(t);
                }
            }
            Step::Decide { t, commit, log } => {
                if let Some(running) = &mut self.running[t]
                    && running.decided.is_none()
                {
                    if commit || log {
                        running.work.log(&self.session, &mut self.log).unwrap();
                    }
                    let fate = if commit {
                        Fate::Committed
                    } else {
                        Fate::Aborted
                    };
                    running.me.end(fate);
                    running.decided = Some(fate);
                    running.first = None;
                }
            }
            Step::Finish { t } => self.finish(t),
            Step::Hold { at } => {
                self.held[at].get_or_insert_with(|| common::reader(&self.world).snapshot(0));
            }
            Step::Let { at } => self.held[at] = None,
            Step::Sweep => common::sweep(&self.session, &self.world, self.table),
            // Whoever may check holds off writers until they have heard of their end.
            Step::Check if self.running.iter().flatten().any(|r| r.decided.is_some()) => {}
            Step::Check => {
                common::check(&self.session, self.table, &common::reader(&self.world));
            }
        }
    }

    fn finish(&mut self, t: usize) {
        if let Some(running) = &mut self.running[t]
            && let Some(fate) = running.decided
        {
            match fate {
                Fate::Committed => running.work.commit(&self.session),
                _ => running.work.abort(&self.session),
            }
            assert!(running.work.is_empty());
            self.running[t] = None;
        }
    }

    fn roll_back(&mut self, t: usize) {
        let running = self.running[t].as_mut().unwrap();
        let level = running.levels.len() as i32;
        let xid = running.levels.pop().unwrap();
        running.me.abort_one(xid);
        running.work.savepoint_abort(&self.session, level);
        let fate = self.world.fate(xid);
        assert_eq!(fate, Fate::Aborted);
        self.forget_aborted();
    }

    /// A released savepoint's id lives on; if the level above is rolled back it must end, too. The model gives its work the id above.
    fn adopt(&mut self, t: usize) {
        let running = self.running[t].as_mut().unwrap();
        let released = running.levels.pop().unwrap();
        let above = *running.levels.last().unwrap();
        running.me.adopt(released, above);
    }

    fn forget_aborted(&mut self) {
        let world = self.world.clone();
        for model in self.rows.values_mut() {
            model
                .versions
                .retain(|version| world.fate(version.xid) != Fate::Aborted);
            model
                .locks
                .retain(|(xid, _)| world.fate(*xid) == Fate::Running);
        }
    }

    fn insert(&mut self, t: usize, row: Row, retract: bool) {
        let running = self.running[t].as_mut().unwrap();
        let xid = *running.levels.last().unwrap();
        let cid = running.cid;
        let top = running.me.top;
        let (slot, version) = running
            .work
            .insert(
                &self.session,
                self.table,
                &image(row),
                Xid(xid),
                CommandId(cid),
            )
            .unwrap();
        if let Some(old) = self.rows.remove(&slot) {
            // The slot was used before: nobody may see that row any more.
            for snap in self.held.iter().flatten() {
                assert!(
                    self.visible(snap, &old).is_none(),
                    "{slot:?} was reused too early"
                );
            }
            let newest = self.newest(&old);
            assert!(
                newest.is_none_or(|at| old.versions[at].row.is_none()),
                "{slot:?} is in use"
            );
        }
        let expected = self.entering(slot, top, None, row);
        let running = self.running[t].as_mut().unwrap();
        let clock = running.me.clone();
        let probed = running
            .work
            .probe(&self.session, &clock, self.table, None, &image(row))
            .unwrap();
        let entered = running
            .work
            .enter(&self.session, &clock, self.table, slot, version)
            .unwrap();
        // A probe looks at the indexes of NULL keys, too, and at the row itself, which is not entered yet.
        assert!(
            expected.contains(&probed),
            "probe: {probed:?}, expected {expected:?}"
        );
        assert!(
            expected.contains(&entered),
            "{entered:?}, expected {expected:?}"
        );
        if entered == Entered::Done {
            let strength = LockStrength::NoKeyUpdate;
            let version = ModelVersion {
                xid,
                cid,
                row: Some(row),
                strength,
            };
            self.rows.insert(
                slot,
                ModelRow {
                    versions: vec![version],
                    locks: vec![],
                },
            );
        } else if retract {
            running.work.retract(&self.session);
        } else {
            self.fail(t);
        }
    }

    /// An error in a statement: the innermost level is rolled back.
    fn fail(&mut self, t: usize) {
        if self.running[t].as_ref().unwrap().levels.len() > 1 {
            self.roll_back(t);
        } else {
            let running = self.running[t].as_mut().unwrap();
            running.me.end(Fate::Aborted);
            running.decided = Some(Fate::Aborted);
            running.first = None;
            self.finish(t);
        }
    }

    fn change(&mut self, t: usize, slot: Slot, seen: VersionRef, at: usize, new: Option<Row>) {
        let model = &self.rows[&slot];
        let old = model.versions[at].row;
        let unique_keys_change = match (old, new) {
            (Some(old), Some(new)) => self.indexes.iter().any(|(_, definition)| {
                definition.unique && common::key(definition, old) != common::key(definition, new)
            }),
            _ => true,
        };
        let strength = if unique_keys_change {
            LockStrength::Update
        } else {
            LockStrength::NoKeyUpdate
        };
        let running = self.running[t].as_ref().unwrap();
        let (xid, cid, top) = (*running.levels.last().unwrap(), running.cid, running.me.top);
        let obstacle = self.obstacle(model, top, at, strength);
        let busy = match obstacle {
            // It stays changed, however another's transaction ends.
            Some(Written::Changed | Written::Gone) => Vec::new(),
            _ => self.busy(model, top, strength),
        };
        let clock = running.me.clone();
        let work = &mut self.running[t].as_mut().unwrap().work;
        let (session, table) = (&self.session, self.table);
        let written = match new {
            Some(new) => {
                let image = image(new);
                let old = row(seen.image());
                let is_changed = |column| match column {
                    1 => old.a != new.a,
                    2 => old.b != new.b,
                    _ => old.c != new.c,
                };
                let update = match session.has_key_on(table, is_changed).unwrap() {
                    true => Transaction::update,
                    false => Transaction::update_beside_keys,
                };
                update(
                    work,
                    session,
                    &clock,
                    table,
                    slot,
                    seen,
                    &image,
                    Xid(xid),
                    CommandId(cid),
                )
            }
            None => work.delete(session, &clock, table, slot, seen, Xid(xid), CommandId(cid)),
        }
        .unwrap();
        match written {
            Written::Busy(xid) => assert!(busy.contains(&xid.0), "{xid:?}, expected {busy:?}"),
            other => {
                assert!(busy.is_empty(), "{other:?}, expected to wait for {busy:?}");
                match obstacle {
                    Some(obstacle) => assert_eq!(other, obstacle),
                    None => assert!(matches!(other, Written::Done(_)), "{other:?}"),
                }
            }
        }
        let Written::Done(version) = written else {
            return;
        };
        // A transaction that changed unique keys of the row before goes on holding them.
        let before = &self.rows[&slot].versions[at];
        let is_own = self.world.fate(before.xid) == Fate::Running
            && self.world.top(before.xid) == top
            && before.strength == LockStrength::Update;
        let model_version = ModelVersion {
            xid,
            cid,
            row: new,
            strength: if is_own { before.strength } else { strength },
        };
        if let Some(new) = new {
            let expected = self.entering(slot, top, old, new);
            let work = &mut self.running[t].as_mut().unwrap().work;
            let entered = work.enter(session, &clock, table, slot, version).unwrap();
            assert!(
                expected.contains(&entered),
                "{entered:?}, expected {expected:?}"
            );
            if entered != Entered::Done {
                self.fail(t);
                return;
            }
        }
        self.rows
            .get_mut(&slot)
            .unwrap()
            .versions
            .push(model_version);
    }

    fn lock(&mut self, t: usize, slot: Slot, seen: VersionRef, at: usize, strength: LockStrength) {
        let model = &self.rows[&slot];
        let running = self.running[t].as_ref().unwrap();
        let (xid, top) = (*running.levels.last().unwrap(), running.me.top);
        let obstacle = self.obstacle(model, top, at, strength);
        let busy = match obstacle {
            // It stays changed, however another's transaction ends.
            Some(Written::Changed | Written::Gone) => Vec::new(),
            _ => self.busy(model, top, strength),
        };
        let clock = running.me.clone();
        let work = &mut self.running[t].as_mut().unwrap().work;
        let locked = work
            .lock(
                &self.session,
                &clock,
                self.table,
                slot,
                seen,
                strength,
                Xid(xid),
            )
            .unwrap();
        if let Locked::Busy(xid) = locked {
            assert!(busy.contains(&xid.0), "{xid:?}, expected {busy:?}");
            return;
        }
        assert!(busy.is_empty(), "{locked:?}, expected to wait for {busy:?}");
        let expected = match obstacle {
            None => Locked::Done,
            Some(Written::Changed) => Locked::Changed,
            Some(Written::Gone) => Locked::Gone,
            Some(Written::SelfModified(cid)) => Locked::SelfModified(cid),
            Some(other) => panic!("{other:?} is no obstacle"),
        };
        assert_eq!(locked, expected);
        if locked == Locked::Done {
            self.rows
                .get_mut(&slot)
                .unwrap()
                .locks
                .push((xid, strength));
        }
    }

    /// Every open snapshot sees what the model says, in every way of looking.
    fn compare(&self) {
        let now = common::reader(&self.world).snapshot(0);
        for snap in self.held.iter().flatten().chain([&now]) {
            self.compare_one(snap);
        }
        for running in self.running.iter().flatten() {
            if running.decided.is_none() && running.first.is_none() {
                self.compare_one(&running.me.snapshot(running.cid + 1));
            }
        }
    }

    fn compare_one(&self, snap: &Snap) {
        let expected: BTreeMap<Slot, Row> = self
            .rows
            .iter()
            .filter_map(|(slot, model)| Some((*slot, self.visible(snap, model)?.0)))
            .collect();
        let mut scan = RowScan::new(self.table);
        let mut found = BTreeMap::new();
        while let Some((slot, version)) = scan.next(&self.session, snap) {
            assert_eq!(version.slot(), slot);
            assert!(found.insert(slot, row(version.image())).is_none());
        }
        assert_eq!(found, expected);
        for (index, definition) in &self.indexes {
            let mut ordered: Vec<(Vec<u8>, Slot, Row)> = expected
                .iter()
                .map(|(slot, row)| (common::key(definition, *row), *slot, *row))
                .collect();
            ordered.sort();
            for direction in [Direction::Forward, Direction::Backward] {
                let mut all = self.scan(*index, &KeyRange::new(), direction, snap, definition);
                if direction == Direction::Backward {
                    all.reverse();
                }
                let mut sorted = all.clone();
                sorted.sort();
                assert_eq!(sorted, ordered);
                assert!(all.is_sorted_by_key(|(key, ..)| key.clone()));
            }
            let key_of = |probe: i32| {
                let wanted = Row {
                    a: probe,
                    b: probe % 4,
                    c: Some(probe),
                };
                common::key(definition, wanted)
            };
            for (low, high, inclusive) in [
                (0, 3, (true, true)),
                (3, 5, (false, true)),
                (1, 6, (true, false)),
                (2, 4, (false, false)),
                (5, 2, (true, true)),
                (4, 4, (true, true)),
            ] {
                let (low, high) = (key_of(low), key_of(high));
                let mut range = KeyRange::new();
                range.set_low(&low, inclusive.0).unwrap();
                range.set_high(&high, inclusive.1).unwrap();
                let within: Vec<_> = ordered
                    .iter()
                    .filter(|(key, ..)| *key > low || *key == low && inclusive.0)
                    .filter(|(key, ..)| *key < high || *key == high && inclusive.1)
                    .cloned()
                    .collect();
                for direction in [Direction::Forward, Direction::Backward] {
                    let mut found = self.scan(*index, &range, direction, snap, definition);
                    if direction == Direction::Backward {
                        found.reverse();
                    }
                    assert!(found.is_sorted_by_key(|(key, ..)| key.clone()));
                    found.sort();
                    assert_eq!(found, within);
                }
            }
            for probe in [0, 3, 5] {
                let key = key_of(probe);
                let mut range = KeyRange::new();
                if definition.unique {
                    range.set_point(&key).unwrap();
                } else {
                    range.set_prefix(&key).unwrap();
                }
                let mut found = self.scan(*index, &range, Direction::Forward, snap, definition);
                found.sort();
                let with_key: Vec<_> = ordered
                    .iter()
                    .filter(|(other, ..)| *other == key)
                    .cloned()
                    .collect();
                assert_eq!(found, with_key);
                if definition.unique {
                    let mut scan = IndexScan::new();
                    let at_once = scan.find(&self.session, self.table, *index, &key, snap);
                    let seen = with_key.first().map(|(_, slot, row)| (*slot, *row));
                    let told = |found: (Slot, VersionRef)| (found.0, row(found.1.image()));
                    assert_eq!(at_once.unwrap().map(told), seen);
                    assert_eq!(scan.next(&self.session, snap).unwrap(), None);
                    let (session, table) = (&self.session, self.table);
                    scan.look_up(session, table, *index, &key).unwrap();
                    let in_two_steps = scan.next(session, snap).unwrap();
                    assert_eq!(in_two_steps.map(told), seen);
                }
            }
        }
    }

    fn scan(
        &self,
        index: IndexRef,
        range: &KeyRange,
        direction: Direction,
        snap: &Snap,
        definition: &IndexDefinition,
    ) -> Vec<(Vec<u8>, Slot, Row)> {
        let mut scan = IndexScan::new();
        scan.start(self.table, index, range, direction);
        std::iter::from_fn(|| scan.next(&self.session, snap).unwrap())
            .map(|(slot, version)| {
                let row = row(version.image());
                (common::key(definition, row), slot, row)
            })
            .collect()
    }
}

/// A REPEATABLE READ transaction's snapshot in a later command.
struct OldSnap<'a> {
    first: &'a Snap,
    cid: u32,
}

impl mot_engine::Snapshot for OldSnap<'_> {
    fn xmin(&self) -> Xid {
        self.first.xmin()
    }
    fn own(&self, xid: Xid, cid: CommandId) -> Option<bool> {
        let mine = mot_engine::Snapshot::own(self.first, xid, CommandId(0)).is_some();
        mine.then_some(cid.0 < self.cid)
    }
    fn running(&self, xid: Xid) -> bool {
        self.first.running(xid)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.first.did_commit(xid)
    }
}

fn run(script: &[Step]) {
    let (_region, engine) = common::engine(32 << 20);
    let session = engine.join().unwrap();
    let world = World::new();
    let me = world.begin();
    let mut work = Transaction::new();
    let table = work
        .create_table(&session, common::TABLE, Xid(me.top))
        .unwrap();
    let mut indexes = Vec::new();
    for (oid, unique, columns) in [
        (101, true, &[(1, false)][..]),
        (102, false, &[(2, true)][..]),
        (103, true, &[(3, false)][..]),
        (104, false, &[(3, true), (1, false)][..]),
    ] {
        let definition = common::definition(oid, unique, columns);
        let build = work
            .create_index(&session, &me, table, &definition, Xid(me.top))
            .unwrap();
        let Build::Done(index) = build else {
            panic!("{build:?}")
        };
        indexes.push((index, definition));
    }
    me.end(Fate::Committed);
    work.commit(&session);
    let mut test = Test {
        world,
        session,
        table,
        indexes,
        rows: BTreeMap::new(),
        running: (0..TRANSACTIONS).map(|_| None).collect(),
        held: (0..SNAPSHOTS).map(|_| None).collect(),
        log: Positions::new(),
    };
    for step in script {
        test.apply(step);
        test.forget_aborted();
        test.compare();
    }
    for t in 0..TRANSACTIONS {
        test.apply(&Step::Decide {
            t,
            commit: t % 2 == 0,
            log: true,
        });
        test.apply(&Step::Finish { t });
    }
    test.forget_aborted();
    test.compare();
    test.held.clear();
    common::sweep(&test.session, &test.world, test.table);
    test.compare();
    let report = common::check(&test.session, test.table, &common::reader(&test.world));
    // Nobody is left who needs more than each row's newest state.
    assert_eq!(report.versions, report.rows);
    assert_eq!(report.entries, report.rows * test.indexes.len() as u64);
    test.session.memory().collect();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_does_what_the_model_does(script in proptest::collection::vec(steps(), 1..120)) {
        run(&script);
    }
}

/// How many scripts to run: PROPTEST_CASES, or a number that takes a second or two.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(200)
}
