//! What the model believes: rows as lists of versions, who sees which, and what stands in a
//! writer's way.

use super::Test;
use super::common::{self, Fate, Row, Snap};
use mot_engine::{CommandId, Entered, LockStrength, RowId, Written, Xid};

#[derive(Clone, Debug)]
pub(super) struct ModelVersion {
    pub(super) xid: u64,
    pub(super) cid: u32,
    pub(super) row: Option<Row>,
    pub(super) strength: LockStrength,
}

#[derive(Default, Debug)]
pub(super) struct ModelRow {
    /// Oldest first.
    pub(super) versions: Vec<ModelVersion>,
    pub(super) locks: Vec<(u64, LockStrength)>,
}

impl Test {
    pub(super) fn sees(&self, snap: &Snap, version: &ModelVersion) -> bool {
        let fate = self.world.fate(version.xid);
        if fate == Fate::Running && snap.top != 0 && self.world.top(version.xid) == snap.top {
            return version.cid < snap.cid;
        }
        version.xid < snap.xmax && !snap.running.contains(&version.xid) && fate == Fate::Committed
    }

    pub(super) fn visible(&self, snap: &Snap, model: &ModelRow) -> Option<(Row, usize)> {
        let found = model
            .versions
            .iter()
            .rposition(|version| self.sees(snap, version))?;
        Some((model.versions[found].row?, found))
    }

    /// Fate for a transaction, with its own work told apart.
    pub(super) fn is_other_running(&self, xid: u64, top: u64) -> bool {
        self.world.fate(xid) == Fate::Running && self.world.top(xid) != top
    }

    pub(super) fn newest(&self, model: &ModelRow) -> Option<usize> {
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
        // A KEY SHARE locker passes over committed changes that left the keys alone, to the state
        // it saw.
        let mut has_passed = false;
        // The oldest of the own states above the one seen, and the newest, which is told of where
        // another transaction's change came first.
        let (mut own, mut newest_own) = (None, None);
        for (position, version) in model.versions.iter().enumerate().rev() {
            match self.world.fate(version.xid) {
                Fate::Aborted => continue,
                Fate::Running if self.world.top(version.xid) != top => continue,
                Fate::Running | Fate::Committed if position == seen => {
                    // Of what another's change left alone, the own state holds the lock.
                    return own.filter(|_| !has_passed);
                }
                Fate::Running => {
                    own = Some(Written::SelfModified(CommandId(version.cid)));
                    let is_gone = version.row.is_none();
                    newest_own = newest_own.or(if is_gone { Some(Written::Gone) } else { own });
                }
                Fate::Committed if !strength.conflicts(version.strength) => has_passed = true,
                Fate::Committed if own.is_some() => return newest_own,
                Fate::Committed if version.row.is_none() => return Some(Written::Gone),
                Fate::Committed => return Some(Written::Changed),
            }
        }
        if own.is_some() {
            return newest_own;
        }
        Some(if has_passed {
            Written::Changed
        } else {
            Written::Gone
        })
    }

    /// What is in the way of a writer or locker that saw the state at `seen`, and whom it must wait
    /// for.
    pub(super) fn in_the_way(
        &self,
        model: &ModelRow,
        top: u64,
        seen: usize,
        strength: LockStrength,
    ) -> (Option<Written>, Vec<u64>) {
        let obstacle = self.obstacle(model, top, seen, strength);
        let busy = match obstacle {
            // It stays changed, however another's transaction ends.
            Some(_) => Vec::new(),
            None => self.busy(model, top, strength),
        };
        (obstacle, busy)
    }

    /// What making the entries of a row may answer: for each unique index in order, everything any
    /// other row could cause.
    pub(super) fn entering(
        &self,
        row_id: RowId,
        top: u64,
        old: Option<Row>,
        new: Row,
    ) -> Vec<Entered> {
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
                if *other == row_id {
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
                    Some(xid) if any => answers.push(Entered::Busy(Xid(xid), index.relation_oid())),
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
}
