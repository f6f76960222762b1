//! Rows that another cluster's checkpoint has, as `pg_upgrade` brings them.
use super::*;

/// The old cluster's last checkpoint, and the new one's: the same tables with other ids, and
/// nothing in them.
fn clusters(disk: &SimulatedDisk) -> (Manifest, Manifest) {
    write_made_up(disk, 5, 1, 1, None).expect("writes");
    let old = Manifest {
        is_final: true,
        committed: vec![Xid(3)],
        ..read_manifest(disk, 1).expect("is whole")
    };
    let mut new = Manifest {
        system_id: SYSTEM + 1,
        redo: redo_of(9),
        flushed: redo_of(9),
        generation: 7,
        next_table: TableId(2),
        committed: vec![Xid(2), Xid(3)],
        files: Vec::new(),
        ..old.clone()
    };
    for (table, id) in new.tables.iter_mut().zip(50..) {
        table.forget_rows();
        table.id = TableId(id);
    }
    (old, new)
}

#[test]
fn tables_get_the_rows_of_the_old_cluster() {
    let disk = SimulatedDisk::new(1);
    let (old, new) = clusters(&disk);
    let merged = with_rows_of(&new, &old, 8).expect("fit");
    assert_eq!(merged.left_out, []);
    let merged = merged.manifest;
    let expected = Manifest {
        generation: 8,
        tables: old.tables.clone(),
        files: old.files.clone(),
        next_table: old.next_table,
        ..new.clone()
    };
    assert_eq!(merged, expected);
    seal(&disk, &merged).expect("writes");
    let found = newest(&disk, SYSTEM + 1, |_, _| true).expect("is whole");
    assert_eq!(found.as_ref(), Some(&merged));
    // Blocks name their table, their file and its generation.
    let (files, blocks) = blocks_of(&disk, &merged).expect("are whole");
    let rows = blocks.iter().map(|place| place.header.rows);
    assert_eq!((files.len(), rows.sum::<u32>()), (1, 37));
    // After a crash behind that it is done once more.
    let again = with_rows_of(&merged, &old, 9).expect("fit");
    assert_eq!(again.manifest.tables, merged.tables);
}

#[test]
fn what_is_gone_needs_no_counterpart() {
    let disk = SimulatedDisk::new(1);
    let (mut old, mut new) = clusters(&disk);
    let gone = |table: &mut TableEntry| table.dropper = Xid(3);
    gone(&mut old.tables[0]);
    // One whose maker has not committed.
    old.tables[1].creator = Xid(77);
    new.tables.drain(..2);
    let merged = with_rows_of(&new, &old, 8).expect("fit");
    assert_eq!(merged.manifest.tables, old.tables[2..]);
    assert_eq!(merged.left_out, []);
    // Its relation is gone, and its storage is not.
    let key = new.tables.remove(0).key;
    let merged = with_rows_of(&new, &old, 8).expect("fit");
    assert_eq!(merged.left_out, [key]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let disk = SimulatedDisk::new(1);
    let (old, new) = clusters(&disk);
    let key = old.tables[0].key;
    let refused = |change: &dyn Fn(&mut Manifest, &mut Manifest)| {
        let (mut old, mut new) = (old.clone(), new.clone());
        change(&mut old, &mut new);
        with_rows_of(&new, &old, 8).expect_err("does not fit")
    };
    for (cluster, change) in [
        (
            "old",
            (|old, _| old.is_final = false) as fn(&mut Manifest, &mut Manifest),
        ),
        ("new", |_, new| new.is_final = false),
    ] {
        assert_eq!(refused(&change), Mismatch::NotFinal { cluster });
    }
    assert_eq!(
        refused(&|old, _| old.range_row_ids = 9),
        Mismatch::Ranges { of: 9 }
    );
    let other = FileEntry {
        generation: 99,
        ..old.files[0]
    };
    assert_eq!(refused(&|_, new| new.files = vec![other]), Mismatch::Rows);
    let refused = refused(&|old, _| drop(old.tables.remove(0)));
    assert_eq!(refused, Mismatch::Table { key });
}

#[test]
fn computed_keys_stay_what_they_are() {
    let disk = SimulatedDisk::new(1);
    let (mut old, mut new) = clusters(&disk);
    let file = FileKey {
        tablespace: 0,
        relation: 900,
    };
    let computed = |number: u32| IndexDefinition {
        file,
        computed: Some(number),
        ..definition()
    };
    let index = |manifest: &mut Manifest, definition| {
        manifest.tables[0].indexes[0].definition = definition;
    };
    index(&mut old, computed(41));
    index(&mut new, computed(42));
    let merged = with_rows_of(&new, &old, 8).expect("fit");
    assert_eq!(
        merged.manifest.tables[0].indexes[0].definition,
        computed(41)
    );
    // Without keys there are none to enter.
    index(&mut old, definition());
    let (index, database) = (definition().relation, old.tables[0].key.database);
    let error = with_rows_of(&new, &old, 8).expect_err("does not fit");
    assert_eq!(error, Mismatch::Keys { index, database });
    old.tables[0].ranges.clear();
    with_rows_of(&new, &old, 8).expect("fit");
}
