//! Bytes of records as they are for ever, and older versions of them.
use super::*;

/// The form of rows that is written: version 3. A failure means that a new version is due.
#[test]
fn golden_bytes_of_rows() {
    let base = b"abcdefghijklmnop";
    let new = b"abcdXfghijklmnop";
    let mut writer = RowsWriter::new();
    writer.insert(TableId(5), RowId(9), base).expect("memory");
    writer.insert(TableId(5), RowId(10), new).expect("memory");
    writer
        .update(
            TableId(5),
            RowId(3),
            Some(Base {
                lsn: Lsn(0x1_2345_6789),
                body: base,
            }),
            new,
        )
        .expect("memory");
    writer
        .update(TableId(300), RowId(0), None, b"xy")
        .expect("memory");
    let note = TombstoneNote::NONE;
    writer.delete(TableId(300), RowId(0), note).expect("memory");
    assert_eq!(
        writer.record(),
        [
            &[0x4C, 0x4D, 3, 1][..],
            &[0, 5],
            &[1, 18, 16],
            &base[..],
            &[5 | 1 << 3, 0, 4, 2, b'X'],
            &[4 | 1 << 3, 15, 0x89, 0x67, 0x45, 0x23, 4, 2, b'X'],
            &[0, 0xAC, 2],
            &[3, 0, 2, b'x', b'y'],
            &[2, 1],
        ]
        .concat()
    );
    assert_eq!(
        describe(writer.record()),
        "table 5: insert 2 update 1; table 300: update 1 delete 1"
    );
    assert_eq!(identify(writer.record()), Some("ROWS"));
}

/// The form of definitions that is written: version 4. A failure means that a new version is due.
#[test]
fn golden_bytes_of_definitions() {
    let mut writer = DefinitionsWriter::new();
    writer
        .create_table(
            TableId(1),
            RelationKey::of_earlier_build(2, 3),
            Persistence::Logged,
        )
        .expect("memory");
    writer
        .create_index(IndexId(4), TableId(1), &definition())
        .expect("valid");
    writer.drop_index(IndexId(4), TableId(1)).expect("memory");
    writer.drop_table(TableId(1)).expect("memory");
    writer.free_index(IndexId(4), TableId(1)).expect("memory");
    writer.free_table(TableId(300)).expect("memory");
    assert_eq!(
        writer.record(),
        [
            &[0x4C, 0x4D, 4, 2][..],
            &[1, 1, 2, 0, 0, 0, 3, 0, 0, 0],
            &[
                3, 4, 1, 18, 1, 1, 4, 3, 2, 1, 1, 0, 1, 0, 1, 0, 3, 4, 4, 0, 4, 1
            ],
            &[4, 4, 1],
            &[2, 1],
            &[6, 4, 1],
            &[5, 0xAC, 2],
        ]
        .concat()
    );
    assert_eq!(identify(writer.record()), Some("DEFINITIONS"));
}

/// What version 1 wrote is what later ones write of foreign tables, but for the version.
#[test]
fn versions_1_to_3_are_read() {
    let rows = |version: u8| {
        [
            &[0x4C, 0x4D, version, 1][..],
            &[0, 5],
            &[1, 18, 3, 7, 8, 9],
            &[5 | 1 << 3, 0, 1, 2, b'X'],
            &[4 | 1 << 3, 15, 0x89, 0x67, 0x45, 0x23, 1, 2, b'X'],
            &[0, 0xAC, 2],
            &[3, 0, 2, b'x', b'y'],
            &[2, 1],
        ]
        .concat()
    };
    let definitions = |version: u8| {
        [
            &[0x4C, 0x4D, version, 2][..],
            &[1, 1, 2, 0, 0, 0, 3, 0, 0, 0],
            &[
                3, 4, 1, 18, 1, 1, 4, 3, 2, 1, 1, 0, 1, 0, 1, 0, 3, 4, 4, 0, 4, 1,
            ],
            &[4, 4, 1],
            &[2, 1],
            &[6, 4, 1],
            &[5, 0xAC, 2],
        ]
        .concat()
    };
    for version in [2, 3, 4] {
        for (one, other) in [
            (rows(1), rows(version)),
            (definitions(1), definitions(version)),
        ] {
            assert!(exhaust(&one) && exhaust(&other));
            assert_eq!(describe(&one), describe(&other));
        }
    }
    assert_eq!(
        describe(&definitions(1)),
        "create table 1 for relation 3 of database 2; create unique index 4 on table 1 for \
         relation 16909060; drop index 4 of table 1; drop table 1; free index 4 of table 1; free \
         table 300"
    );
    for version in [0, LOG_VERSION + 1] {
        assert!(!exhaust(&rows(version)) && !exhaust(&definitions(version)));
    }
}

/// A tombstone's note came with version 2.
#[test]
fn golden_bytes_of_a_noted_delete() {
    let mut writer = RowsWriter::new();
    for (row_id, number) in [(0, 0x1234), (1, 0)] {
        let note = TombstoneNote::from_number(number).expect("is one");
        writer
            .delete(TableId(5), RowId(row_id), note)
            .expect("memory");
    }
    let mut record = [
        &[0x4C, 0x4D, 3, 1][..],
        &[0, 5],
        &[6, 0, 0xB4, 0x24],
        &[2, 0],
    ]
    .concat();
    assert_eq!(writer.record(), record);
    assert_eq!(describe(&record), "table 5: delete 2");
    let Ok(Record::Rows(reader)) = Record::parse(&record) else {
        panic!("rows")
    };
    assert_eq!(reader.row_ids().count(), 2);
    record[2] = 2;
    assert!(exhaust(&record));
    record[2] = 1;
    assert!(!exhaust(&record));
    // No note is told by no note, and there are no more than these.
    for wrong in [&[6, 0, 0][..], &[6, 0, 0x80, 0x80, 1]] {
        assert!(!exhaust(&[&[0x4C, 0x4D, 4, 1, 0, 5][..], wrong].concat()));
    }
}

/// A table named by its file came with version 2.
#[test]
fn golden_bytes_of_a_file() {
    let mut writer = DefinitionsWriter::new();
    let key = RelationKey::of_file(2, 9, 3);
    writer
        .create_table(TableId(1), key, Persistence::Logged)
        .expect("memory");
    writer
        .create_index(IndexId(4), TableId(1), &definition_of_file())
        .expect("valid");
    let mut record = [
        &[0x4C, 0x4D, 4, 2][..],
        &[7, 1, 2, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0],
        &[3, 4, 1, 26, 2, 1, 4, 3, 2, 1, 1, 0, 1, 0],
        &[6, 0, 0, 0, 8, 7, 6, 5],
        &[1, 0, 3, 4, 4, 0, 4, 1],
    ]
    .concat();
    assert_eq!(writer.record(), record);
    record[2] = 2;
    assert!(exhaust(&record));
    record[2] = 1;
    assert!(!exhaust(&record));
}

/// So did tables of copies.
#[test]
fn golden_bytes_of_copies() {
    let mut writer = DefinitionsWriter::new();
    writer.holds_copies(TableId(300)).expect("memory");
    let mut record = vec![0x4C, 0x4D, 4, 2, 8, 0xAC, 2];
    assert_eq!(writer.record(), record);
    assert_eq!(describe(&record), "copies in table 300");
    assert!(exhaust(&record));
    for version in [1, 2] {
        record[2] = version;
        assert!(!exhaust(&record));
    }
}

/// A value that older rows lack came with version 3.
#[test]
fn golden_bytes_of_a_missing_value() {
    let mut writer = DefinitionsWriter::new();
    writer
        .create_index(IndexId(4), TableId(1), &definition_with_missing_value())
        .expect("valid");
    let mut record = [
        &[0x4C, 0x4D, 4, 2][..],
        &[3, 4, 1, 36, 4, 1, 4, 3, 2, 1, 1, 0, 1, 0],
        &[6, 0, 0, 0, 8, 7, 6, 5],
        &[1, 0, 3, 4, 4, 0, 4, 1],
        &[1, 0, 1, 0, 4, 0, 7, 0, 0, 0],
    ]
    .concat();
    assert_eq!(writer.record(), record);
    let Ok(Record::Definitions(mut reader)) = Record::parse(&record) else {
        panic!("definitions")
    };
    let Some(Ok(DefinitionChange::CreateIndex { definition, .. })) = reader.next() else {
        panic!("a definition")
    };
    assert_eq!(definition, definition_with_missing_value());
    for version in [1, 2] {
        record[2] = version;
        assert!(!exhaust(&record));
    }
}

/// The form of changes for logical decoding: version 6. A failure means that a new version is due.
#[test]
fn golden_bytes_of_logical_changes() {
    let change = |kind, new, old| LogicalChange {
        kind,
        table: FileLocator {
            database: 5,
            tablespace: 1663,
            file: 0x0102_0304,
        },
        new,
        old,
    };
    let whole = |change: &LogicalChange<'_>| {
        let rows = [change.new, change.old];
        let rows = rows.map(Option::unwrap_or_default).concat();
        [&change.head()[..], &rows].concat()
    };
    let update = change(
        LogicalKind::Update,
        Some(&b"new row"[..]),
        Some(&b"old"[..]),
    );
    let record = whole(&update);
    assert_eq!(
        record,
        [
            &[0x4C, 0x4D, 6, 5][..],
            &[2, 5, 0, 0, 0, 0x7F, 6, 0, 0, 4, 3, 2, 1, 7, 0, 0, 0],
            b"new rowold",
        ]
        .concat()
    );
    let insert = change(LogicalKind::Insert, Some(&b"new row"[..]), None);
    let key = change(LogicalKind::Delete, None, Some(&b"old"[..]));
    let nothing = change(LogicalKind::Delete, None, None);
    for change in [update, insert, key, nothing] {
        let mut record = whole(&change);
        assert!(is_logical(&record));
        let Ok(Record::Logical(read)) = Record::parse(&record) else {
            panic!("a change for decoding")
        };
        assert_eq!(read, change);
        record[2] = LOG_VERSION_LOGICAL - 1;
        assert!(!exhaust(&record));
    }
    assert_eq!(
        describe(&record),
        "update for decoding in file 16909060 of tablespace 1663 of database 5"
    );
    assert_eq!(identify(&record), Some("LOGICAL"));
    // A row where there is none, none where there is one, and less than is announced.
    for (at, byte) in [(4, 3), (17, 0), (17, 11), (4, 0)] {
        let mut damaged = record.clone();
        damaged[at] = byte;
        assert!(!exhaust(&damaged));
    }
}
