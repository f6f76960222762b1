//! Damage done by hand must be reported: a check that sees nothing proves nothing.

use super::Problem;
use crate::clock::NoClock;
use crate::common::{self, Fate, Positions, Row, World, body};
use crate::index::{append_row_id, enter_key};
use crate::key::{KeyBuffer, encode_row};
use crate::memory::Urgency;
use crate::row::Head;
use crate::session::Session;
use crate::table::{EntryForm, IndexRef, TableRef};
use crate::transaction::Transaction;
use crate::{Build, CommandId, Entered, RowId, Written, Xid};
use mot_index::Tree;
use std::sync::atomic::Ordering;

struct Scene {
    world: World,
    session: Session,
    table: TableRef,
    unique: IndexRef,
    other: IndexRef,
    _region: crate::memory::Region,
}

/// Ten rows; row 3 has moved in the second index and its old state is still needed.
fn scene() -> Scene {
    let (region, engine) = common::engine(32 << 20);
    let session = engine.join().unwrap();
    let world = World::new();
    let me = world.begin();
    let mut work = Transaction::new();
    let table = work
        .create_table(&session, common::TABLE, Xid(me.top))
        .unwrap();
    let [unique, other] = [
        common::definition(101, true, &[(1, false)]),
        common::definition(102, false, &[(2, false)]),
    ]
    .map(|definition| {
        match work
            .create_index(&session, &me, table, &definition, Xid(me.top))
            .unwrap()
        {
            Build::Done(index) | Build::DoneBesideOlder(index) => index,
            Build::Duplicate { row_ids } => panic!("{row_ids:?} in an empty table"),
        }
    });
    for a in 0..10 {
        let new = body(Row { a, b: a, c: None });
        let (row_id, version) = work
            .insert(&session, table, &new, Xid(me.top), CommandId(1))
            .unwrap();
        assert_eq!(row_id, RowId(a as u64));
        assert_eq!(
            work.enter(&session, &me, table, row_id, version).unwrap(),
            Entered::Done
        );
    }
    work.log(&session, &mut Positions::new()).unwrap();
    me.end(Fate::Committed);
    work.commit(&session);
    let me = world.begin();
    let snap = me.snapshot(1);
    let seen = session.visible(table, RowId(3), &snap).unwrap();
    let new = body(Row {
        a: 3,
        b: 33,
        c: None,
    });
    let (xid, cid) = (Xid(me.top), CommandId(1));
    let written = work
        .update(&session, &me, table, RowId(3), seen, &new, xid, cid)
        .unwrap();
    let Written::Done(version) = written else {
        panic!("{written:?}")
    };
    assert_eq!(
        work.enter(&session, &me, table, RowId(3), version).unwrap(),
        Entered::Done
    );
    drop(snap);
    me.end(Fate::Committed);
    work.commit(&session);
    let scene = Scene {
        world,
        session,
        table,
        unique,
        other,
        _region: region,
    };
    assert_eq!(scene.problems(), []);
    scene
}

impl Scene {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let clock = common::reader(&self.world);
        let report = self
            .session
            .check(self.table, &clock, |problem| problems.push(problem));
        assert_eq!(report.unwrap().problems, problems.len() as u64);
        problems
    }

    fn key(&self, index: IndexRef, row_id: RowId, row: Row) -> Vec<u8> {
        let mut key = KeyBuffer::new();
        let definition = self.session.definition(index).unwrap();
        let has_null = encode_row(definition, &body(row), &mut key).unwrap().0;
        if index.form(has_null) == EntryForm::Suffixed {
            append_row_id(&mut key, row_id).unwrap();
        }
        key.as_slice().to_vec()
    }

    fn with_tree(
        &self,
        index: IndexRef,
        change: impl FnOnce(Tree<'_, crate::session::NodeMemory<'_>>),
    ) {
        let _pin = self.session.local.pin();
        let memory = self.session.tree_memory(Urgency::Ordinary);
        // SAFETY: pinned while it is used.
        change(unsafe { Tree::new(&index.storage().root, &memory) });
    }
}

#[test]
fn a_lost_entry_is_reported() {
    let scene = scene();
    let key = scene.key(
        scene.unique,
        RowId(5),
        Row {
            a: 5,
            b: 5,
            c: None,
        },
    );
    scene.with_tree(scene.unique, |tree| assert!(tree.remove(&key).is_some()));
    let problems = scene.problems();
    assert!(problems.contains(&Problem::MissingEntry {
        index: scene.unique.id(),
        row_id: RowId(5)
    }));
    assert!(problems.contains(&Problem::Counter {
        what: "index entries",
        counted: 10,
        found: 9
    }));
    // Also that of an older state a snapshot may still look for.
    let old = scene.key(
        scene.other,
        RowId(3),
        Row {
            a: 3,
            b: 3,
            c: None,
        },
    );
    scene.with_tree(scene.other, |tree| assert!(tree.remove(&old).is_some()));
    let lost = Problem::MissingEntry {
        index: scene.other.id(),
        row_id: RowId(3),
    };
    assert!(scene.problems().contains(&lost));
}

#[test]
fn an_entry_that_leads_nowhere_is_reported() {
    for row_id in [RowId(4), RowId(11), RowId(100_000)] {
        let scene = scene();
        let key = scene.key(
            scene.other,
            row_id,
            Row {
                a: 0,
                b: 77,
                c: None,
            },
        );
        scene.with_tree(scene.other, |tree| {
            assert_eq!(tree.insert(&key, row_id.0 << 1), Ok(None));
        });
        let stray = Problem::StrayEntry {
            index: scene.other.id(),
            row_id,
        };
        assert!(scene.problems().contains(&stray), "{row_id:?}");
    }
}

#[test]
fn a_move_that_readers_are_not_told_of_is_reported() {
    let scene = scene();
    let mut latched = scene.table.anchor(RowId(3)).unwrap().latch();
    latched.head = latched.head.without_flags(Head::KEYS_MOVED);
    drop(latched);
    let unmarked = Problem::UnmarkedMove {
        index: scene.other.id(),
        row_id: RowId(3),
    };
    assert_eq!(scene.problems(), [unmarked.clone(), unmarked]);
}

#[test]
fn two_rows_of_one_key_are_reported() {
    let scene = scene();
    let me = scene.world.begin();
    let mut work = Transaction::new();
    let new = body(Row {
        a: 5,
        b: 0,
        c: None,
    });
    let (row_id, version) = work
        .insert(&scene.session, scene.table, &new, Xid(me.top), CommandId(1))
        .unwrap();
    let pin = scene.session.local.pin();
    for index in [scene.unique, scene.other] {
        scene.session.with_keys(|[key, scratch, ..]| {
            let definition = scene.session.definition(index).unwrap();
            let has_null = encode_row(definition, version.body(), key).unwrap().0;
            let (session, table) = (&scene.session, scene.table);
            enter_key::<NoClock>(session, table, index, has_null, key, scratch, row_id, None)
                .unwrap();
        });
    }
    drop(pin);
    me.end(Fate::Committed);
    work.commit(&scene.session);
    let duplicate = Problem::Duplicate {
        index: scene.unique.id(),
        row_ids: [RowId(5), row_id],
    };
    assert_eq!(scene.problems(), [duplicate]);
}

#[test]
fn chains_lists_and_counters_are_checked() {
    let scene = scene();
    scene.table.counters().rows.fetch_add(1, Ordering::Relaxed);
    let counter = Problem::Counter {
        what: "rows",
        counted: 11,
        found: 10,
    };
    assert_eq!(scene.problems(), [counter]);
    scene.table.counters().rows.fetch_sub(1, Ordering::Relaxed);
    scene
        .table
        .storage()
        .free_count
        .fetch_add(1, Ordering::Relaxed);
    let list = Problem::FreeList {
        what: "the list is not as long as counted",
    };
    assert_eq!(scene.problems(), [list]);
    scene
        .table
        .storage()
        .free_count
        .fetch_sub(1, Ordering::Relaxed);
    // A chain that leads to another row's version: that one's entry leads to its own row alone.
    let swapped = scene.table.anchor(RowId(1)).unwrap().head();
    scene.table.anchor(RowId(2)).unwrap().latch().head = swapped;
    let problems = scene.problems();
    assert!(
        problems.iter().any(
            |problem| matches!(problem, Problem::MissingEntry { row_id, .. } if *row_id == RowId(2))
        ),
        "{problems:?}"
    );
}
