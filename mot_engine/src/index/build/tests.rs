//! Index builds over many parts and turns: from rows, and from keys gathered while rows were
//! loaded.

use super::gather::{Allowance, Gatherer, Harvest};
use super::keys::Sorter;
use super::plan::Plan;
use super::steps::{Build, build_by_hints, build_gathered, turn_bytes};
use crate::all_committed::AllCommitted;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::errors::EngineError;
use crate::ids::{CommandId, FileKey, IndexId, RelationKey, RowId, Xid};
use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};
use crate::limits::KEY_BYTES_MAX;
use crate::memory::{ArenaOptions, HugePages, Memory, Purpose, Region, Urgency};
use crate::scan::{Direction, IndexScan, KeyRange};
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use crate::{Newest, Transaction, Written};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

mod beside;
mod rival;

const KEY: RelationKey = RelationKey::of_file(1, 0, 2);
const ROWS: u64 = 3000;

/// A text of a common beginning, which makes layers, and a number.
fn body(number: u64) -> Vec<u8> {
    let mut body = vec![0; 6];
    body[0] = 1;
    body[4] = 24;
    let text = format!("a common beginning {:05}", number * 7919 % 10_007);
    body.push((text.len() as u8 + 1) << 1 | 1);
    body.extend_from_slice(text.as_bytes());
    body
}

fn definition(relation: u32, unique: bool) -> IndexDefinition {
    IndexDefinition {
        relation,
        file: FileKey::NONE,
        unique,
        nulls_not_distinct: false,
        columns: vec![KeyColumn {
            attnum: 1,
            kind: KeyKind::Text,
            descending: false,
            nulls_first: false,
            nullable: false,
            collation: None,
        }],
        layout: vec![AttributeLayout {
            len: -1,
            align: 4,
            by_value: false,
        }],
        missing: Vec::new(),
        computed: None,
    }
}

fn with_table(numbers: impl Iterator<Item = u64>, test: impl FnOnce(&Session, TableRef)) {
    let region = Region::create(64 << 20, HugePages::Off).expect("memory");
    // SAFETY: the region is fresh and outlives the engine.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
    let session = Engine::format(memory)
        .and_then(Engine::join)
        .expect("formats");
    let mut transaction = Transaction::new();
    let table = transaction
        .create_table(&session, KEY, Xid(3))
        .expect("memory");
    for number in numbers {
        transaction
            .insert(&session, table, &body(number), Xid(3), CommandId(0))
            .expect("memory");
    }
    transaction.commit(&session);
    test(&session, table);
}

fn row_ids_of(session: &Session, table: TableRef, index: IndexRef) -> Vec<u64> {
    let mut scan = IndexScan::new();
    scan.start(table, index, &KeyRange::new(), Direction::Forward);
    std::iter::from_fn(|| scan.next(session, &AllCommitted).expect("scans"))
        .map(|(row_id, _)| row_id.0)
        .collect()
}

/// The header of an index that no caller will find.
fn unpublished(
    session: &Session,
    table: TableRef,
    id: IndexId,
    definition: &IndexDefinition,
) -> IndexRef {
    let (local, urgency) = (&session.local, Urgency::Ordinary);
    IndexRef::allocate(local, id, table.0, definition, 0, urgency).expect("memory")
}

/// Some leaves of a large index stand for the others; a small one is counted.
#[test]
fn sizes_are_estimated() {
    for rows in [100, 40_000] {
        with_table(0..rows, |session, table| {
            let built = Transaction::new()
                .create_index(
                    session,
                    &AllCommitted,
                    table,
                    &definition(10, false),
                    Xid(4),
                )
                .expect("builds");
            let Build::Done(index) = built else {
                panic!("nothing is unique")
            };
            let counted = session.index_bytes(&AllCommitted, index).expect("counts");
            let estimated = session.index_bytes_estimate(index) - IndexRef::STORAGE_BYTES;
            assert!(
                estimated.abs_diff(counted) <= counted / 4,
                "{estimated} of {counted}"
            );
            assert!(rows > 100 || estimated == counted);
        });
    }
}

/// Many parts and turns, one thread and several: the same index, every row once and in order.
#[test]
fn parts_make_the_whole_index() {
    with_table(0..ROWS, |session, table| {
        let mut order: Vec<u64> = (0..ROWS).collect();
        order.sort_by_key(|number| number * 7919 % 10_007);
        let mut transaction = Transaction::new();
        for unique in [false, true] {
            let relation = 10 + u32::from(unique);
            let built = transaction
                .create_index(
                    session,
                    &AllCommitted,
                    table,
                    &definition(relation, unique),
                    Xid(4),
                )
                .expect("builds");
            let Build::Done(index) = built else {
                panic!("no key occurs twice")
            };
            assert_eq!(row_ids_of(session, table, index), order);
            assert_eq!(index.entry_count_estimate(), ROWS);
            let plan = Plan::make(session, table, index, turn_bytes(session)).expect("plans");
            let parts = plan.split_keys.parts();
            assert!(
                parts > 100 && plan.parts_per_turn < parts / 20,
                "{parts} parts"
            );
            for threads in [1, 3] {
                let id = IndexId(100 + threads as u64);
                let again = unpublished(session, table, id, &definition(50, unique));
                build_by_hints(session, table, again, threads).expect("builds");
                assert_eq!(row_ids_of(session, table, again), order);
                // SAFETY: never published.
                unsafe { crate::transaction::free_index(session, again) };
            }
        }
        transaction.commit(session);
        session
            .check(table, &AllCommitted, |problem| panic!("{problem:?}"))
            .expect("looks at all");
    });
}

/// A clock that raises, as PostgreSQL's does when the commit log cannot be read, after it was asked
/// so often.
struct Raising(Cell<u32>);

impl Clock for Raising {
    fn is_current(&self, xid: Xid) -> bool {
        AllCommitted.is_current(xid)
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        AllCommitted.is_in_progress(xid)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        Clock::did_commit(&AllCommitted, xid)
    }
    fn is_cancelled(&self) -> bool {
        match self.0.get().checked_sub(1) {
            Some(left) => self.0.set(left),
            None => resume_unwind(Box::new("the clock")),
        }
        false
    }
}

#[test]
fn a_clock_that_raises_leaves_nothing_behind() {
    with_table(0..ROWS, |session, table| {
        // Some keys lead to two rows, of which one is deleted.
        let mut transaction = Transaction::new();
        for number in 0..ROWS / 3 {
            let row_id = RowId(number * 3);
            let seen = session.newest(&AllCommitted, table, row_id);
            let Newest::Live(seen) = seen else {
                panic!("{seen:?}")
            };
            let (xid, cid) = (Xid(4), CommandId(0));
            let deleted = transaction.delete(session, &AllCommitted, table, row_id, seen, xid, cid);
            assert!(matches!(deleted, Ok(Written::Done(_))));
            transaction
                .insert(session, table, &body(number * 3), xid, cid)
                .expect("memory");
        }
        transaction.commit(session);
        let bytes = || {
            session.memory().flush();
            let memory = session.memory().memory();
            [Purpose::Index, Purpose::Catalog].map(|purpose| memory.purpose_bytes(purpose))
        };
        let before = bytes();
        let mut raised = 0;
        for asked in (0..).step_by(211) {
            let clock = Raising(Cell::new(asked));
            let built = catch_unwind(AssertUnwindSafe(|| {
                transaction.create_index(session, &clock, table, &definition(10, true), Xid(5))
            }));
            match built {
                Err(_) => {
                    assert_eq!(bytes(), before, "asked {asked} times");
                    raised += 1;
                }
                Ok(built) => {
                    let built = built.expect("builds");
                    assert!(matches!(built, Build::Done(_)), "{built:?}");
                    break;
                }
            }
        }
        assert!(raised > 30, "raised {raised} times");
        transaction.commit(session);
        session
            .check(table, &AllCommitted, |problem| panic!("{problem:?}"))
            .expect("looks at all");
    });
}

#[test]
fn a_duplicate_leaves_nothing_behind() {
    let numbers = (0..ROWS).chain([ROWS / 2]);
    with_table(numbers, |session, table| {
        let bytes = || {
            session.memory().flush();
            session.memory().memory().purpose_bytes(Purpose::Index)
        };
        let before = bytes();
        let mut transaction = Transaction::new();
        let built = transaction
            .create_index(session, &AllCommitted, table, &definition(10, true), Xid(4))
            .expect("builds");
        let row_ids = [RowId(ROWS / 2), RowId(ROWS)];
        assert_eq!(built, Build::Duplicate { row_ids });
        assert_eq!(bytes(), before);
        // Recovery keeps both under one key until the log has been replayed.
        let definition = definition(10, true);
        let id = IndexId(100);
        let index = unpublished(session, table, id, &definition);
        build_by_hints(session, table, index, 2).expect("builds");
        assert_eq!(index.entry_count_estimate(), ROWS + 1);
        assert_eq!(row_ids_of(session, table, index).len() as u64, ROWS + 1);
        // SAFETY: never published.
        unsafe { crate::transaction::free_index(session, index) };
        assert_eq!(bytes(), before);
    });
}

/// Gathers as two threads with blocks of 64 rows would, one after the other.
fn gathered(session: &Session, table: TableRef, index: IndexRef, bytes: u64) -> Harvest {
    let allowance = Allowance::of(bytes);
    let harvest = Harvest::default();
    let gatherer = || Gatherer::new(session, table, index, &harvest, &allowance).expect("decodes");
    let mut threads = [gatherer(), gatherer()];
    let end = table.row_ids_end().0;
    // Blocks are taken and handed over in any order.
    for unit in (0..end.div_ceil(64)).rev() {
        let first = unit * 64;
        let gatherer = &mut threads[unit as usize % 2];
        gatherer.begin(64);
        for row_id in (first..end.min(first + 64)).map(RowId) {
            let anchor = table.anchor(row_id).expect("has rows");
            gatherer.row(row_id, anchor).expect("has a key");
        }
        gatherer.end(RowId(first), &mut Sorter::default());
    }
    harvest
}

/// The same index as from rows; and where gathering takes too much memory, it is built from rows.
#[test]
fn gathered_keys_make_the_whole_index() {
    let numbers = (0..ROWS).chain([ROWS / 2]);
    with_table(numbers, |session, table| {
        let mut wanted: Option<Vec<u64>> = None;
        for (number, unique, bytes, threads) in [
            (0, false, u64::MAX, 1),
            (1, true, u64::MAX, 3),
            (2, true, 10_000, 2),
            (3, false, 0, 2),
        ] {
            let definition = definition(50, unique);
            let id = IndexId(100 + number);
            let index = unpublished(session, table, id, &definition);
            let harvest = gathered(session, table, index, bytes);
            assert_eq!(harvest.is_given_up(), bytes < u64::MAX);
            build_gathered(session, table, index, harvest, threads).expect("builds");
            assert_eq!(index.entry_count_estimate(), ROWS + 1);
            let row_ids = row_ids_of(session, table, index);
            assert_eq!(row_ids.len() as u64, ROWS + 1);
            assert_eq!(*wanted.get_or_insert_with(|| row_ids.clone()), row_ids);
            // SAFETY: never published.
            unsafe { crate::transaction::free_index(session, index) };
        }
    });
}
