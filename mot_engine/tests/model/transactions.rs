//! The script's transactions: levels, decisions, ends, and what a statement of each sees.

use super::Test;
use super::common::{self, Fate, Me, Snap, row};
use super::looks::OldSnap;
use super::named::Named;
use super::script::Step;
use mot_engine::{RowId, Transaction, VersionRef};

pub(super) struct Running {
    pub(super) me: Me,
    pub(super) work: Transaction,
    pub(super) cid: u32,
    /// Ids of the open levels; the first is the top-level one.
    pub(super) levels: Vec<u64>,
    pub(super) decided: Option<Fate>,
    /// Its first snapshot's bounds, if it is a REPEATABLE READ one.
    pub(super) first: Option<Snap>,
    /// The tuple ids that it has.
    pub(super) named: Vec<Named>,
}

impl Test {
    /// The transaction of a script's number, begun if need be; `None` while it waits for its end.
    pub(super) fn open(&mut self, t: usize) -> bool {
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
                named: Vec::new(),
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
    pub(super) fn statement(&self, t: usize) -> Snap {
        let running = self.running[t].as_ref().unwrap();
        let mut snap = running.me.snapshot(running.cid);
        if let Some(first) = &running.first {
            snap.xmax = first.xmax;
            snap.running = first.running.clone();
            // xmin may stay the newer one: ids below it are finished, but not all that are finished
            // are seen.
        }
        snap
    }

    /// A row the transaction sees, by the engine's own look.
    pub(super) fn pick(&mut self, t: usize, pick: usize) -> Option<(RowId, VersionRef, usize)> {
        let snap = self.statement(t);
        let seen: Vec<(RowId, usize)> = self
            .rows
            .iter()
            .filter_map(|(row_id, model)| Some((*row_id, self.visible(&snap, model)?.1)))
            .collect();
        if seen.is_empty() {
            return None;
        }
        let (row_id, position) = seen[pick % seen.len()];
        let version = if self.running[t].as_ref().unwrap().first.is_some() {
            // xmin of such a statement's snapshot is newer than what it may see: look with the
            // snapshot it has.
            self.look_old(t, row_id)
        } else {
            self.session.visible(self.table, row_id, &snap)
        };
        let version = version.expect("the model sees it");
        self.note_picked(t, row_id, version);
        Some((row_id, version, position))
    }

    pub(super) fn look_old(&self, t: usize, row_id: RowId) -> Option<VersionRef> {
        let running = self.running[t].as_ref().unwrap();
        let first = running.first.as_ref().unwrap();
        self.session.visible(
            self.table,
            row_id,
            &OldSnap {
                first,
                cid: running.cid,
            },
        )
    }

    pub(super) fn apply(&mut self, step: &Step) {
        match *step {
            Step::Insert { t, row, retract } => {
                if self.open(t) {
                    self.insert(t, row, retract);
                }
            }
            Step::Update { t, pick, row } => {
                if self.open(t)
                    && let Some((row_id, seen, position)) = self.pick(t, pick)
                {
                    self.change(t, row_id, seen, position, Some(row));
                }
            }
            Step::Touch { t, pick } => {
                if self.open(t)
                    && let Some((row_id, seen, position)) = self.pick(t, pick)
                {
                    let row = row(seen.body());
                    self.change(t, row_id, seen, position, Some(row));
                }
            }
            Step::Delete { t, pick } => {
                if self.open(t)
                    && let Some((row_id, seen, position)) = self.pick(t, pick)
                {
                    self.change(t, row_id, seen, position, None);
                }
            }
            Step::Lock { t, pick, strength } => {
                if self.open(t)
                    && let Some((row_id, seen, position)) = self.pick(t, pick)
                {
                    self.lock(t, row_id, seen, position, strength);
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

    pub(super) fn finish(&mut self, t: usize) {
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

    pub(super) fn roll_back(&mut self, t: usize) {
        let running = self.running[t].as_mut().unwrap();
        let level = running.levels.len() as i32;
        let xid = running.levels.pop().unwrap();
        running.me.abort_one(xid);
        running.work.savepoint_abort(&self.session, level);
        let fate = self.world.fate(xid);
        assert_eq!(fate, Fate::Aborted);
        self.forget_aborted();
    }

    /// A released savepoint's id lives on; if the level above is rolled back it must end, too. The
    /// model gives its work the id above.
    pub(super) fn adopt(&mut self, t: usize) {
        let running = self.running[t].as_mut().unwrap();
        let released = running.levels.pop().unwrap();
        let above = *running.levels.last().unwrap();
        running.me.adopt(released, above);
    }

    pub(super) fn forget_aborted(&mut self) {
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

    /// An error in a statement: the innermost level is rolled back.
    pub(super) fn fail(&mut self, t: usize) {
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
}
