//! Keys entered together, and in which order.
use super::super::enter_key;
use super::*;
use crate::Transaction;
use crate::all_committed::AllCommitted;
use crate::engine::Engine;
use crate::ids::{CommandId, FileKey, RelationKey, Xid};
use crate::index::Build;
use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind, encode_row};
use crate::memory::{ArenaOptions, HugePages, Memory, Region};
use crate::scan::{Direction, IndexScan, KeyRange};

const ROWS: u32 = 4000;
const COLUMNS: usize = 3;

fn body(values: [u32; COLUMNS]) -> Vec<u8> {
    let mut body = vec![0; 6];
    body[0] = COLUMNS as u8;
    body[4] = 24;
    values
        .iter()
        .for_each(|value| body.extend_from_slice(&value.to_le_bytes()));
    body
}

fn definition(relation: u32, unique: bool, columns: &[u16]) -> IndexDefinition {
    let column = |attnum: &u16| KeyColumn {
        attnum: *attnum,
        kind: KeyKind::Int4,
        descending: false,
        nulls_first: false,
        nullable: false,
        collation: None,
    };
    let layout = AttributeLayout {
        len: 4,
        align: 4,
        by_value: true,
    };
    IndexDefinition {
        relation,
        file: FileKey::NONE,
        unique,
        nulls_not_distinct: false,
        columns: columns.iter().map(column).collect(),
        layout: vec![layout; COLUMNS],
        missing: Vec::new(),
        computed: None,
    }
}

/// More indexes than are entered together; one of the first and one of the last may refuse a
/// row.
fn definitions() -> Vec<IndexDefinition> {
    (0..KEYS_TOGETHER as u32 + 3)
        .map(|number| match number {
            2 => definition(number, true, &[1]),
            9 => definition(number, true, &[3]),
            _ if number % 2 == 0 => definition(number, false, &[2]),
            _ => definition(number, false, &[1, 2, 3]),
        })
        .collect()
}

/// What stands in the way, and at the index of which oid.
fn enter_alone(session: &Session, table: TableRef, row_id: RowId, new: VersionRef) -> Option<u32> {
    let _pin = session.local.pin();
    for index in table.all_indexes() {
        let outcome = session.with_keys(|[key, scratch, ..]| {
            let definition = session.definition(index).expect("decodes");
            let has_null = encode_row(definition, new.body(), key).expect("encodes").0;
            let clock = Some(&AllCommitted);
            enter_key(session, table, index, has_null, key, scratch, row_id, clock)
        });
        match outcome.expect("memory") {
            EntryOutcome::Done => {}
            EntryOutcome::Duplicate => return Some(index.relation_oid()),
            EntryOutcome::Busy(xid) => panic!("{xid:?} has ended"),
        }
    }
    None
}

/// A session of a new engine in a fresh region, which outlives it.
fn session_in(region: &Region) -> Session {
    // SAFETY: the callers' regions are declared before their sessions.
    let memory = unsafe { Memory::format(region, &ArenaOptions::default()) }.expect("formats");
    Engine::format(memory)
        .and_then(Engine::join)
        .expect("formats")
}

#[test]
fn a_row_is_refused_by_the_index_of_the_lowest_oid() {
    let region = Region::create(64 << 20, HugePages::Off).expect("memory");
    let session = &session_in(&region);
    let mut work = Transaction::new();
    let key = RelationKey::of_file(1, 0, 1);
    let table = work.create_table(session, key, Xid(3)).expect("memory");
    let make = |work: &mut Transaction, relation: u32| {
        let definition = definition(relation, true, &[1]);
        let built = work.create_index(session, &AllCommitted, table, &definition, Xid(3));
        assert!(matches!(built, Ok(Build::Done(_))));
    };
    let by_oid = || -> Vec<u32> {
        let _pin = session.local.pin();
        let oids = table.indexes_by_oid().map(IndexRef::relation_oid);
        oids.collect()
    };
    // More than are entered together.
    let mut made = vec![];
    for relation in [50, 7, 30, 90, 20, 60, 80, 10, 70, 40, 1] {
        make(&mut work, relation);
        made.push(relation);
        made.sort_unstable();
        assert_eq!(by_oid(), made);
    }
    let mut put = || {
        let body = body([1, 2, 3]);
        let made = work.insert(session, table, &body, Xid(3), CommandId(0));
        let (row_id, version) = made.expect("memory");
        enter_all(session, table, row_id, version)
    };
    assert_eq!(put(), None);
    assert_eq!(put(), Some(1));
}

fn enter_all(session: &Session, table: TableRef, row_id: RowId, new: VersionRef) -> Option<u32> {
    let _pin = session.local.pin();
    let uniqueness = Uniqueness {
        clock: &AllCommitted,
        prune: crate::reclaim::prune_row,
    };
    match enter_row(session, table, row_id, new, None, Some(uniqueness)).expect("memory") {
        None => None,
        Some(Obstacle::Duplicate(index)) => Some(index.relation_oid()),
        Some(Obstacle::Busy(xid, _)) => panic!("{xid:?} has ended"),
    }
}

fn entries(session: &Session, table: TableRef) -> Vec<Vec<u64>> {
    let row_ids = |index: IndexRef| {
        let mut scan = IndexScan::new();
        scan.start(table, index, &KeyRange::new(), Direction::Forward);
        std::iter::from_fn(|| scan.next(session, &AllCommitted).expect("scans"))
            .map(|(row_id, _)| row_id.0)
            .collect()
    };
    table.all_indexes().map(row_ids).collect()
}

#[test]
fn keys_entered_together_lie_where_they_lie_entered_alone() {
    let region = Region::create(64 << 20, HugePages::Off).expect("memory");
    let session = &session_in(&region);
    let mut work = Transaction::new();
    let tables = [1, 2].map(|relation| {
        let key = RelationKey::of_file(1, 0, relation);
        let table = work.create_table(session, key, Xid(3)).expect("memory");
        for definition in definitions() {
            let built = work.create_index(session, &AllCommitted, table, &definition, Xid(3));
            assert!(matches!(built, Ok(Build::Done(_))));
        }
        table
    });
    let mut refused = [0; 2];
    for number in 0..ROWS {
        // In no order, and now and then a value that was there.
        let first = number * 7919 % (ROWS - ROWS / 10);
        let last = number * 104_729 % (ROWS - ROWS / 4);
        let body = body([first, number % 7, last]);
        let obstacles = tables.map(|table| {
            let (row_id, version) = work
                .insert(session, table, &body, Xid(3), CommandId(0))
                .expect("memory");
            let obstacle = if table == tables[0] {
                enter_all(session, table, row_id, version)
            } else {
                enter_alone(session, table, row_id, version)
            };
            if obstacle.is_some() {
                work.retract(session);
            }
            obstacle
        });
        assert_eq!(obstacles[0], obstacles[1], "row {number}");
        match obstacles[0] {
            Some(2) => refused[0] += 1,
            Some(9) => refused[1] += 1,
            other => assert_eq!(other, None),
        }
    }
    assert!(refused.iter().all(|times| *times > 100), "{refused:?}");
    work.commit(session);
    assert_eq!(entries(session, tables[0]), entries(session, tables[1]));
    for table in tables {
        let checked = session.check(table, &AllCommitted, |problem| panic!("{problem:?}"));
        checked.expect("looks at all");
    }
}
