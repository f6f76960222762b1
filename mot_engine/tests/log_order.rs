//! A transaction that goes back and forth between tables is logged table by table, each row once,
//! and each row knows its record.

mod common;

use common::{Fate, Me, Row, Wal, World, body, engine};
use mot_engine::limits::{LOG_RECORD_BYTES_OF_LONG_ROW_MAX, ROW_BYTES_MAX};
use mot_engine::log::{BaseLsn, Change, Record};
use mot_engine::row::STAMP_BYTES;
use mot_engine::{
    CommandId, EngineError, Lsn, Newest, RelationKey, RowId, Session, TableRef, Transaction,
    VersionRef, Written, Xid,
};
use std::collections::HashMap;

const TABLES: u32 = 3;
/// More than are gone through one by one.
const MANY_TABLES: u32 = 30;

fn create(s: &Session, world: &World, wal: &mut Wal, tables: u32) -> Vec<TableRef> {
    let (me, mut t) = (world.begin(), Transaction::new());
    let tables = (0..tables)
        .map(|number| {
            let key = RelationKey::of_file(1, 0, 100 + number);
            t.create_table(s, key, Xid(me.top)).unwrap()
        })
        .collect();
    end(s, &me, &mut t, wal, Fate::Committed);
    tables
}

fn end(s: &Session, me: &Me, t: &mut Transaction, wal: &mut Wal, fate: Fate) {
    wal.xid = me.top;
    t.log(s, wal).unwrap();
    me.end(fate);
    match fate {
        Fate::Committed => t.commit(s),
        _ => t.abort(s),
    }
}

/// A row that differs from all others in much of its padding.
fn wide(number: i32, padding: usize) -> Vec<u8> {
    let mut body = body(Row {
        a: number,
        b: 1,
        c: Some(2),
    });
    let mut state = number as u32;
    body.extend((0..padding).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    }));
    body
}

fn insert(s: &Session, me: &Me, t: &mut Transaction, table: TableRef, body: &[u8]) -> RowId {
    let inserted = t.insert(s, table, body, Xid(me.top), CommandId(0));
    inserted.unwrap().0
}

fn update(
    s: &Session,
    me: &Me,
    t: &mut Transaction,
    (table, row_id): (TableRef, RowId),
) -> VersionRef {
    let Newest::Live(seen) = s.newest(me, table, row_id) else {
        panic!("the row is there")
    };
    let mut body = seen.body().to_vec();
    body[10] ^= 1;
    let written = t.update(s, me, table, row_id, seen, &body, Xid(me.top), CommandId(1));
    match written.unwrap() {
        Written::Done(version) => version,
        other => panic!("{other:?}"),
    }
}

/// The changes of the records from `first` on: table, row, end of the record, and the base of a
/// difference.
fn changes(wal: &Wal, first: usize) -> Vec<(u64, RowId, Lsn, Option<BaseLsn>)> {
    let mut changes = Vec::new();
    for (lsn, _, record) in &wal.records[first..] {
        let Record::Rows(mut reader) = Record::parse(record).unwrap() else {
            panic!("only rows were changed")
        };
        while let Some(row) = reader.next().unwrap() {
            let base = match row.change {
                Change::Change { base, .. } => Some(base),
                _ => None,
            };
            changes.push((row.table.0, row.row_id, *lsn, base));
        }
    }
    changes
}

/// How often a record goes over to another table.
fn switches(changes: &[(u64, RowId, Lsn, Option<BaseLsn>)]) -> usize {
    changes
        .windows(2)
        .filter(|pair| pair[0].0 != pair[1].0)
        .count()
}

#[test]
fn rows_of_a_table_stand_together_and_cost_their_difference() {
    rows_stand_together(TABLES as usize);
}

#[test]
fn rows_of_many_tables_stand_together_and_cost_their_difference() {
    rows_stand_together(MANY_TABLES as usize);
}

fn rows_stand_together(count: usize) {
    const ROWS_EACH: usize = 10;
    let (_region, engine) = engine(64 << 20);
    let s = &engine.join().unwrap();
    let world = World::new();
    let mut wal = Wal::default();
    let tables = create(s, &world, &mut wal, count as u32);
    let first = wal.records.len();
    let bytes = |wal: &Wal, record: usize| wal.records[record].2.len();

    for nth in 0..2 {
        let table_of = |number| [number % count, number / ROWS_EACH][nth];
        let (me, mut t) = (world.begin(), Transaction::new());
        let rows: Vec<_> = (0..ROWS_EACH * count)
            .map(|number| {
                let table = tables[table_of(number)];
                let body = wide(1, 40);
                (table.id().0, insert(s, &me, &mut t, table, &body))
            })
            .collect();
        end(s, &me, &mut t, &mut wal, Fate::Committed);
        let logged = changes(&wal, first + nth);
        assert_eq!(switches(&logged), count - 1);
        for table in &tables {
            let of_table = |(id, row_id): (u64, RowId)| (id == table.id().0).then_some(row_id);
            let told: Vec<_> = logged
                .iter()
                .filter_map(|change| of_table((change.0, change.1)))
                .collect();
            let made: Vec<_> = rows.iter().filter_map(|&row| of_table(row)).collect();
            assert_eq!(told, made, "in the order of the statements");
        }
    }
    // Told alternately the same rows take as many bytes as told table by table.
    assert!(bytes(&wal, first) <= bytes(&wal, first + 1) + 2 * count);
}

/// More rows than are sorted at a time, and more bytes than a record takes.
#[test]
fn a_large_transaction_logs_each_row_once_and_marks_it_with_its_record() {
    const ROWS: usize = 75_000;
    let (_region, engine) = engine(128 << 20);
    let s = &engine.join().unwrap();
    let world = World::new();
    let mut wal = Wal::default();
    let tables = create(s, &world, &mut wal, TABLES);
    let first = wal.records.len();

    let (me, mut t) = (world.begin(), Transaction::new());
    let rows: Vec<_> = (0..ROWS)
        .map(|number| {
            let table = tables[number % tables.len()];
            let row_id = insert(s, &me, &mut t, table, &wide(number as i32, 100));
            if number % 9 == 0 {
                // Its first state is not to be logged.
                update(s, &me, &mut t, (table, row_id));
            }
            (table, row_id)
        })
        .collect();
    end(s, &me, &mut t, &mut wal, Fate::Committed);
    assert!(wal.records.len() - first > 2, "several records");
    let logged = changes(&wal, first);
    assert_eq!(logged.len(), ROWS);
    assert!(switches(&logged) < 10);
    let records: HashMap<_, _> = logged
        .iter()
        .map(|&(table, row_id, lsn, _)| ((table, row_id), lsn))
        .collect();
    assert_eq!(records.len(), ROWS);

    let first = wal.records.len();
    let (me, mut t) = (world.begin(), Transaction::new());
    for &row in rows.iter().step_by(100) {
        update(s, &me, &mut t, row);
    }
    end(s, &me, &mut t, &mut wal, Fate::Committed);
    for (table, row_id, _, base) in changes(&wal, first) {
        assert_eq!(base, Some(BaseLsn::of(records[&(table, row_id)])));
    }
}

/// What was logged and rolled back is logged in full the next time, whatever its place among the
/// tables.
#[test]
fn a_rolled_back_record_is_nobodys_base() {
    let (_region, engine) = engine(16 << 20);
    let s = &engine.join().unwrap();
    let world = World::new();
    let mut wal = Wal::default();
    let tables = create(s, &world, &mut wal, TABLES);

    let (me, mut t) = (world.begin(), Transaction::new());
    let rows: Vec<_> = (0..12)
        .map(|number| {
            let table = tables[number % 3];
            (
                table,
                insert(s, &me, &mut t, table, &wide(number as i32, 40)),
            )
        })
        .collect();
    end(s, &me, &mut t, &mut wal, Fate::Committed);
    let (me, mut t) = (world.begin(), Transaction::new());
    for &row in &rows {
        update(s, &me, &mut t, row);
    }
    end(s, &me, &mut t, &mut wal, Fate::Aborted);
    let first = wal.records.len();
    let (me, mut t) = (world.begin(), Transaction::new());
    for &row in rows.iter().rev() {
        update(s, &me, &mut t, row);
    }
    end(s, &me, &mut t, &mut wal, Fate::Committed);
    let logged = changes(&wal, first);
    assert_eq!(logged.len(), rows.len());
    assert!(logged.iter().all(|change| change.3.is_none()));
}

/// A row that no log record can hold is refused by its statement: when COMMIT comes to log it, it
/// is too late for the user.
#[test]
fn rows_too_long_for_the_log_are_refused_at_once() {
    let (_region, engine) = common::engine(16 << 20);
    let session = &engine.join().unwrap();
    let world = World::new();
    let table = common::table(session, &world, &[]);
    let too_long = vec![0; LOG_RECORD_BYTES_OF_LONG_ROW_MAX - STAMP_BYTES - 20];
    let refused = |answer: Result<(), EngineError>| {
        let Err(EngineError::RowTooLong { bytes, max }) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(bytes, STAMP_BYTES + too_long.len());
        assert!(max < LOG_RECORD_BYTES_OF_LONG_ROW_MAX);
    };
    let row = Row {
        a: 1,
        b: 2,
        c: None,
    };
    common::transact(session, &world, |work, me, xid| {
        let cid = CommandId(1);
        refused(work.insert(session, table, &too_long, xid, cid).map(|_| ()));
        let (row_id, seen) = work.insert(session, table, &body(row), xid, cid).unwrap();
        let cid = CommandId(2);
        let unchanged = session.keys_unchanged(table, |_| false).unwrap();
        let unchanged = unchanged.expect("no column is meant");
        refused(
            work.update(session, me, table, row_id, seen, &too_long, xid, cid)
                .map(|_| ()),
        );
        refused(
            work.update_non_key(
                session, me, table, row_id, seen, &too_long, xid, cid, unchanged,
            )
            .map(|_| ()),
        );
    });
    // One that is just short enough is not refused for its length.
    common::transact(session, &world, |work, _, xid| {
        let longest = vec![0; ROW_BYTES_MAX - STAMP_BYTES];
        let full = work.insert(session, table, &longest, xid, CommandId(1));
        assert!(matches!(full, Err(EngineError::ArenaFull(_))), "{full:?}");
    });
}
