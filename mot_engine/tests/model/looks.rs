//! Every way of looking at the rows, compared with what the model says.

use super::Test;
use super::common::{self, Row, Snap, row};
use mot_engine::key::IndexDefinition;
use mot_engine::{
    CommandId, Direction, IndexRef, IndexScan, KeyRange, RowId, RowScan, VersionRef, Xid,
};
use std::collections::BTreeMap;

impl Test {
    /// Every open snapshot sees what the model says, in every way of looking.
    pub(super) fn compare(&self) {
        let now = common::reader(&self.world).snapshot(0);
        for snap in self.held.iter().flatten().chain([&now]) {
            self.compare_one(snap);
        }
        for running in self.running.iter().flatten() {
            if running.decided.is_none() && running.first.is_none() {
                self.compare_one(&running.me.snapshot(running.cid + 1));
            }
            self.compare_named(running);
        }
    }

    pub(super) fn compare_one(&self, snap: &Snap) {
        let expected: BTreeMap<RowId, Row> = self
            .rows
            .iter()
            .filter_map(|(row_id, model)| Some((*row_id, self.visible(snap, model)?.0)))
            .collect();
        let mut scan = RowScan::new(self.table);
        let mut found = BTreeMap::new();
        // What was looked up with others is taken without a look, now and then.
        let mut next = || match scan.at_hand() {
            Some((row_id, version)) if row_id.0 % 2 == 1 => {
                scan.take_at_hand();
                Some((row_id, version))
            }
            _ => scan.next(&self.session, snap),
        };
        while let Some((row_id, version)) = next() {
            assert!(found.insert(row_id, row(version.body())).is_none());
            self.assert_named(row_id, version, snap);
        }
        assert_eq!(found, expected);
        for (index, definition) in &self.indexes {
            let mut ordered: Vec<(Vec<u8>, RowId, Row)> = expected
                .iter()
                .map(|(row_id, row)| (common::key(definition, *row), *row_id, *row))
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
                    let seen = with_key.first().map(|(_, row_id, row)| (*row_id, *row));
                    let told = |found: (RowId, VersionRef)| (found.0, row(found.1.body()));
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

    pub(super) fn scan(
        &self,
        index: IndexRef,
        range: &KeyRange,
        direction: Direction,
        snap: &Snap,
        definition: &IndexDefinition,
    ) -> Vec<(Vec<u8>, RowId, Row)> {
        let mut scan = IndexScan::new();
        scan.start(self.table, index, range, direction);
        std::iter::from_fn(|| scan.next(&self.session, snap).unwrap())
            .map(|(row_id, version)| {
                let row = row(version.body());
                (common::key(definition, row), row_id, row)
            })
            .collect()
    }
}

/// A REPEATABLE READ transaction's snapshot in a later command.
pub(super) struct OldSnap<'a> {
    pub(super) first: &'a Snap,
    pub(super) cid: u32,
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
