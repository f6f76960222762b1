//! Round trips, damage, and the stability of the form.

mod golden;

use proptest::prelude::*;

use super::write::{EDITS_SHIFT, OPERATION_INSERT_LIKE};
use super::*;
use crate::errors::EngineError;
use crate::ids::{FileKey, IndexId, RelationKey, RowId, TableId};
use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind, MissingValue};
use crate::row::TombstoneNote;
use crate::table::Persistence;

#[derive(Clone, Debug)]
enum Row {
    Insert(Vec<u8>),
    Update {
        base: Option<(u64, Vec<u8>)>,
        body: Vec<u8>,
    },
    Delete(TombstoneNote),
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(0..3_u8, 0..80),
        prop::collection::vec(any::<u8>(), 0..80),
        (2040..2060_usize).prop_map(|length| vec![7; length]),
    ]
}

fn row() -> impl Strategy<Value = (u64, u64, Row)> {
    let change = prop_oneof![
        body().prop_map(Row::Insert),
        (prop::option::of((any::<u64>(), body())), body())
            .prop_map(|(base, body)| Row::Update { base, body }),
        (0..40_000_u64).prop_map(|number| {
            let note = TombstoneNote::from_number(number % 50);
            Row::Delete(note.unwrap_or_default())
        }),
    ];
    let row_id = prop_oneof![0..200_u64, Just(RowId::MAX.0), 0..=RowId::MAX.0];
    (prop_oneof![1..4_u64, any::<u64>()], row_id, change)
}

fn write(rows: &[(u64, u64, Row)]) -> RowsWriter {
    let mut writer = RowsWriter::new();
    for (table, row_id, row) in rows {
        let (table, row_id) = (TableId(*table), RowId(*row_id));
        match row {
            Row::Insert(body) => writer.insert(table, row_id, body),
            Row::Update { base, body } => {
                let base = base.as_ref().map(|(lsn, body)| Base {
                    lsn: Lsn(*lsn),
                    body,
                });
                writer.update(table, row_id, base, body)
            }
            Row::Delete(note) => writer.delete(table, row_id, *note),
        }
        .expect("memory");
    }
    writer
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn rows_survive(rows in prop::collection::vec(row(), 1..30)) {
        let writer = write(&rows);
        let Ok(Record::Rows(mut reader)) = Record::parse(writer.record()) else {
            return Err(TestCaseError::fail("not a Rows record"));
        };
        for (table, row_id, row) in &rows {
            let read = reader.next().expect("reads").expect("has more");
            prop_assert_eq!((read.table.0, read.row_id.0), (*table, *row_id));
            match (row, read.change) {
                (Row::Insert(body), Change::Insert { body: read }) => prop_assert_eq!(body, read),
                (Row::Update { body, .. }, Change::Replace { body: read }) => {
                    prop_assert_eq!(body, read);
                }
                (
                    Row::Update { base: Some((lsn, base)), body },
                    Change::Change { base: named, edits, delta },
                ) => {
                    prop_assert_eq!(named, BaseLsn::of(Lsn(*lsn)));
                    let mut out = Vec::new();
                    apply_delta(base, delta, edits, &mut out).expect("applies");
                    prop_assert_eq!(body, &out);
                }
                (Row::Delete(note), Change::Delete { note: read }) => prop_assert_eq!(*note, read),
                (written, read) => {
                    return Err(TestCaseError::fail(format!("{written:?} became {read:?}")));
                }
            }
        }
        prop_assert_eq!(reader.next().expect("ends"), None);
        let text = describe(writer.record());
        prop_assert!(text.starts_with("table "), "{}", text);
        prop_assert!(!text.contains("damaged"));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        version in LOG_VERSION_FIRST..=LOG_VERSION,
        kind in 1..=RecordKind::Logical as u8,
    ) {
        let mut record = vec![0x4C, 0x4D, version, kind];
        record.extend_from_slice(&bytes);
        for record in [&record, &bytes] {
            let sound = exhaust(record);
            let text = describe(record);
            prop_assert!(sound || text.contains("damaged") || text.contains("and more"), "{}", text);
        }
    }

    #[test]
    fn damaged_records_never_panic(
        rows in prop::collection::vec(row(), 1..10),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let writer = write(&rows);
        let mut record = writer.record().to_vec();
        exhaust(&record[..cut.index(record.len())]);
        for (at, byte) in damage {
            let at = at.index(record.len());
            record[at] = byte;
        }
        let sound = exhaust(&record);
        let text = describe(&record);
        prop_assert!(sound || text.contains("damaged") || text.contains("and more"), "{}", text);
    }
}

/// Reads to the end or to the first error, after which there must be nothing. A reader that goes
/// ahead meets the same rows, and ends, too. Tells whether the end was reached.
fn exhaust(record: &[u8]) -> bool {
    let mut failed = false;
    match Record::parse(record) {
        Ok(Record::Rows(mut reader)) => {
            let mut row_ids = reader.row_ids();
            loop {
                match reader.next() {
                    Ok(Some(row)) => assert_eq!(row_ids.next(), Some((row.table, row.row_id))),
                    Ok(None) => break,
                    Err(_) => {
                        failed = true;
                        assert_eq!(reader.next().expect("ended"), None);
                        break;
                    }
                }
            }
            // A row that cannot be made from the one before it is told by its reader alone.
            // Whatever follows, the end is the end.
            assert!(row_ids.by_ref().take(record.len() + 1).count() <= record.len());
            assert_eq!(row_ids.next(), None);
        }
        Ok(Record::Definitions(reader)) => {
            for change in reader {
                assert!(!failed, "nothing comes after an error");
                failed = change.is_err();
            }
        }
        Ok(Record::Locks(locks)) => {
            for lock in locks {
                assert!(!failed, "nothing comes after an error");
                failed = lock.is_err();
            }
        }
        Ok(Record::Keys(keys)) => {
            for key in keys {
                assert!(!failed, "nothing comes after an error");
                failed = key.is_err();
            }
        }
        Ok(Record::Logical(change)) => {
            let rows = [change.new, change.old].into_iter().flatten();
            let bytes: usize = rows.map(<[u8]>::len).sum();
            assert_eq!(LOGICAL_HEAD_BYTES + bytes, record.len());
        }
        Err(error) => {
            assert!(matches!(error, EngineError::Corrupt { .. }));
            failed = true;
        }
    }
    !failed
}

fn definition() -> IndexDefinition {
    IndexDefinition {
        relation: 0x0102_0304,
        file: FileKey::NONE,
        unique: true,
        nulls_not_distinct: false,
        columns: vec![KeyColumn {
            attnum: 1,
            kind: KeyKind::Int4,
            descending: false,
            nulls_first: false,
            nullable: true,
            collation: None,
        }],
        layout: vec![AttributeLayout {
            len: 4,
            align: 4,
            by_value: true,
        }],
        missing: Vec::new(),
        computed: None,
    }
}

fn definition_of_file() -> IndexDefinition {
    IndexDefinition {
        file: FileKey {
            tablespace: 6,
            relation: 0x0506_0708,
        },
        ..definition()
    }
}

fn definition_with_missing_value() -> IndexDefinition {
    IndexDefinition {
        computed: None,
        missing: vec![MissingValue {
            attnum: 1,
            bytes: [7, 0, 0, 0].into(),
        }],
        ..definition_of_file()
    }
}

#[test]
fn definitions_survive() {
    let mut writer = DefinitionsWriter::new();
    assert!(writer.is_empty());
    let key = RelationKey::of_earlier_build(5, u32::MAX);
    writer
        .create_table(TableId(300), key, Persistence::Logged)
        .expect("memory");
    writer
        .create_index(IndexId(u64::MAX), TableId(300), &definition())
        .expect("valid");
    let file = RelationKey::of_file(5, 6, 7);
    writer
        .create_table(TableId(301), file, Persistence::Logged)
        .expect("memory");
    writer
        .create_index(IndexId(8), TableId(301), &definition_of_file())
        .expect("valid");
    writer.drop_index(IndexId(7), TableId(8)).expect("memory");
    writer.drop_table(TableId(9)).expect("memory");
    writer.free_index(IndexId(7), TableId(300)).expect("memory");
    writer.free_table(TableId(9)).expect("memory");
    let Ok(Record::Definitions(reader)) = Record::parse(writer.record()) else {
        panic!("not a Definitions record");
    };
    let changes: Vec<_> = reader.collect::<Result<_, _>>().expect("reads");
    let created = |table, key| DefinitionChange::CreateTable {
        table: TableId(table),
        key,
        persistence: Persistence::Logged,
    };
    assert_eq!(
        changes,
        [
            created(300, key),
            DefinitionChange::CreateIndex {
                index: IndexId(u64::MAX),
                table: TableId(300),
                definition: definition()
            },
            created(301, file),
            DefinitionChange::CreateIndex {
                index: IndexId(8),
                table: TableId(301),
                definition: definition_of_file()
            },
            DefinitionChange::DropIndex {
                index: IndexId(7),
                table: TableId(8)
            },
            DefinitionChange::DropTable { table: TableId(9) },
            DefinitionChange::FreeIndex {
                index: IndexId(7),
                table: TableId(300)
            },
            DefinitionChange::FreeTable { table: TableId(9) },
        ]
    );
    let text = describe(writer.record());
    assert_eq!(
        text,
        "create table 300 for relation 4294967295 of database 5; create unique index \
         18446744073709551615 on table 300 for relation 16909060; create table 301 for file 7 of \
         tablespace 6 of database 5; create unique index 8 on table 301 for relation 16909060; \
         drop index 7 of table 8; drop table 9; free index 7 of table 300; free table 9"
    );
    for end in 0..writer.record().len() {
        exhaust(&writer.record()[..end]);
    }
}

#[test]
fn records_end_when_full() {
    let body = vec![3; 100_000];
    let mut writer = RowsWriter::new();
    let mut rows = 0;
    while writer.has_room(body.len()) {
        writer
            .update(TableId(1), RowId(rows), None, &body)
            .expect("memory");
        rows += 1;
    }
    assert_eq!(rows, 41);
    assert!(writer.record().len() <= LOG_RECORD_BYTES_MAX);
    writer.clear();
    assert!(writer.is_empty());
    // A row larger than a record gets one of its own.
    let large = vec![0; LOG_RECORD_BYTES_MAX + 1];
    assert!(writer.has_room(large.len()));
    writer.insert(TableId(1), RowId(0), &large).expect("memory");
    assert!(!writer.has_room(0));
    assert!(exhaust(writer.record()));
    writer.clear();
    assert_eq!(writer.record(), b"");
}

/// Ten order lines of one order: consecutive row ids, much in common.
#[test]
fn similar_rows_share_their_bytes() {
    let mut writer = RowsWriter::new();
    let line = |number: u8| {
        let mut body = vec![0; 70];
        body[..6].copy_from_slice(&[10, 0, 2, 9, 24, 0]);
        body[18] = number;
        body[22] = number.wrapping_mul(37);
        body[40..44].copy_from_slice(&[number, number ^ 0x55, 3, 4]);
        body
    };
    for number in 0..10 {
        writer
            .insert(TableId(1), RowId(1000 + u64::from(number)), &line(number))
            .expect("memory");
    }
    let bytes = writer.record().len();
    assert!(bytes < 70 + 10 * 20, "{bytes} bytes");
}

/// Two bytes each would tell of a million rows of a megabyte, copied one by one.
#[test]
fn rows_like_a_long_one_are_refused() {
    let mut long = write(&[(1, 0, Row::Insert(vec![7; 1 << 20]))])
        .record()
        .to_vec();
    long.extend([OPERATION_INSERT_LIKE, 0].repeat(1 << 20));
    let mut grows = write(&[(1, 0, Row::Insert(vec![7; 1000]))])
        .record()
        .to_vec();
    for _ in 0..1000 {
        // One edit: nothing kept, 100 bytes more, nothing dropped.
        grows.extend([OPERATION_INSERT_LIKE | 1 << EDITS_SHIFT, 0, 0, 201, 1, 0]);
        grows.extend([8; 100]);
    }
    for (record, rows_most) in [(long, 1), (grows, 11)] {
        let Ok(Record::Rows(mut reader)) = Record::parse(&record) else {
            panic!("rows")
        };
        let mut rows = 0;
        let error = loop {
            match reader.next() {
                Ok(Some(_)) => rows += 1,
                Ok(None) => panic!("{rows} rows"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, EngineError::Corrupt { .. }), "{error}");
        assert_eq!(rows, rows_most);
    }
}
