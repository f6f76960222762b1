//! The script's statements: each is run, and answered as the model says.

use super::Test;
use super::believed::{ModelRow, ModelVersion};
use super::common::{self, Fate, Row, body, row};
use mot_engine::{CommandId, Entered, LockStrength, Locked, RowId, VersionRef, Written, Xid};

impl Test {
    pub(super) fn insert(&mut self, t: usize, row: Row, retract: bool) {
        let running = self.running[t].as_mut().unwrap();
        let xid = *running.levels.last().unwrap();
        let cid = running.cid;
        let top = running.me.top;
        let (row_id, version) = running
            .work
            .insert(
                &self.session,
                self.table,
                &body(row),
                Xid(xid),
                CommandId(cid),
            )
            .unwrap();
        if let Some(old) = self.rows.remove(&row_id) {
            // The row id was used before: nobody may see that row any more.
            for snap in self.held.iter().flatten() {
                assert!(
                    self.visible(snap, &old).is_none(),
                    "{row_id:?} was reused too early"
                );
            }
            let newest = self.newest(&old);
            assert!(
                newest.is_none_or(|at| old.versions[at].row.is_none()),
                "{row_id:?} is in use"
            );
        }
        let expected = self.entering(row_id, top, None, row);
        let running = self.running[t].as_mut().unwrap();
        let clock = running.me.clone();
        let probed = running
            .work
            .probe(&self.session, &clock, self.table, None, &body(row))
            .unwrap();
        let entered = running
            .work
            .enter(&self.session, &clock, self.table, row_id, version)
            .unwrap();
        // A probe looks at the indexes of NULL keys, too, and at the row itself, which is not
        // entered yet.
        assert!(
            expected.contains(&probed),
            "probe: {probed:?}, expected {expected:?}"
        );
        assert!(
            expected.contains(&entered),
            "{entered:?}, expected {expected:?}"
        );
        self.assert_counted(row_id, version);
        let running = self.running[t].as_mut().unwrap();
        if entered == Entered::Done {
            running.note_made(row_id, version, Some(row), xid);
            let strength = LockStrength::NoKeyUpdate;
            let version = ModelVersion {
                xid,
                cid,
                row: Some(row),
                strength,
            };
            self.rows.insert(
                row_id,
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

    pub(super) fn change(
        &mut self,
        t: usize,
        row_id: RowId,
        seen: VersionRef,
        at: usize,
        new: Option<Row>,
    ) {
        let model = &self.rows[&row_id];
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
        let (obstacle, busy) = self.in_the_way(model, top, at, strength);
        let clock = running.me.clone();
        let given = new.map(Test::given);
        let work = &mut self.running[t].as_mut().unwrap().work;
        let (session, table) = (&self.session, self.table);
        let written = match new.zip(given.as_ref()) {
            Some((new, body)) => {
                let old = row(seen.body());
                let is_changed = |column| match column {
                    1 => old.a != new.a,
                    2 => old.b != new.b,
                    _ => old.c != new.c,
                };
                let (xid, cid) = (Xid(xid), CommandId(cid));
                match session.keys_unchanged(table, is_changed).unwrap() {
                    None => work.update(session, &clock, table, row_id, seen, body, xid, cid),
                    Some(unchanged) => work.update_non_key(
                        session, &clock, table, row_id, seen, body, xid, cid, unchanged,
                    ),
                }
            }
            None => work.delete(
                session,
                &clock,
                table,
                row_id,
                seen,
                Xid(xid),
                CommandId(cid),
            ),
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
        self.assert_counted(row_id, version);
        // A transaction that changed unique keys of the row before goes on holding them.
        let before = &self.rows[&row_id].versions[at];
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
            let expected = self.entering(row_id, top, old, new);
            let work = &mut self.running[t].as_mut().unwrap().work;
            let entered = work.enter(session, &clock, table, row_id, version).unwrap();
            assert!(
                expected.contains(&entered),
                "{entered:?}, expected {expected:?}"
            );
            if entered != Entered::Done {
                self.fail(t);
                return;
            }
        }
        let running = self.running[t].as_mut().unwrap();
        running.note_seen(row_id, seen, xid, true);
        running.note_made(row_id, version, new, xid);
        self.rows
            .get_mut(&row_id)
            .unwrap()
            .versions
            .push(model_version);
    }

    pub(super) fn lock(
        &mut self,
        t: usize,
        row_id: RowId,
        seen: VersionRef,
        at: usize,
        strength: LockStrength,
    ) {
        let model = &self.rows[&row_id];
        let running = self.running[t].as_ref().unwrap();
        let (xid, top) = (*running.levels.last().unwrap(), running.me.top);
        let (obstacle, busy) = self.in_the_way(model, top, at, strength);
        let clock = running.me.clone();
        let work = &mut self.running[t].as_mut().unwrap().work;
        let locked = work
            .lock(
                &self.session,
                &clock,
                self.table,
                row_id,
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
            let stays = strength > LockStrength::KeyShare;
            let running = self.running[t].as_mut().unwrap();
            running.note_seen(row_id, seen, xid, stays);
            self.rows
                .get_mut(&row_id)
                .unwrap()
                .locks
                .push((xid, strength));
        }
    }
}
