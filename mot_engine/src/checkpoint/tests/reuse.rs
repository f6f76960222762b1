//! What is taken over from older generations, also of the older format.

use super::super::reuse::PART_RATIO;
use super::*;
use crate::key::MissingValue;

#[test]
fn unchanged_ranges_stay_where_they_are() {
    let disk = SimulatedDisk::new(8);
    let (mut reused, mut merged, mut most_parts) = (0, false, 0);
    for version in 1..=100_u8 {
        let base = (version > 1).then_some(u64::from(version) - 1);
        let written = write_made_up(&disk, version, version.into(), 2, base).expect("writes");
        assert_eq!(written.ranges + written.ranges_reused, 5);
        reused += written.ranges_reused;
        let ranges = [(1, 0..8), (1, 8..16), (1, 16..24), (1, 24..30), (3, 0..7)];
        let is_changed = |(table, mut row_ids): (u64, Range<u64>)| {
            row_ids.any(|row_id| changed_at(version, TableId(table), row_id) == version)
        };
        let must = ranges
            .into_iter()
            .filter(|range| is_changed(range.clone()))
            .count() as u64;
        assert!(written.ranges >= must);
        merged |= written.ranges > must;
        remove_old(&disk, 1, |_| false).expect("removes");
        assert_eq!(read_all(&disk).expect("is whole"), Some(version));
        let manifest = read_manifest(&disk, version.into()).expect("is whole");
        // Nothing lies about that is not referenced, and what lies there is mostly referenced.
        let names = disk.list().expect("lists");
        assert_eq!(names.len(), manifest.files.len() + 1);
        let on_disk: u64 = manifest.files.iter().map(|file| file.bytes).sum();
        let live = written.bytes + written.bytes_reused;
        assert!(on_disk <= 3 * live, "{on_disk} bytes for {live}");
        for table in &manifest.tables {
            for parts in table.ranges.chunk_by(|one, next| one.number == next.number) {
                assert!(
                    parts.is_sorted_by(|older, newer| u64::from(older.entries)
                        > PART_RATIO * u64::from(newer.entries))
                );
                most_parts = most_parts.max(parts.len());
            }
        }
    }
    assert!(reused > 200 && merged, "{reused} reused");
    // A range has eight row ids: with 8, 4 and 1 rows it has three.
    assert!(most_parts > 2, "{most_parts}");
}

/// Of a range with few changes these alone are written, again and again, until a part has as many
/// rows as the one before.
#[test]
fn few_changes_cost_few_rows() {
    let disk = SimulatedDisk::new(8);
    write_made_up(&disk, 1, 1, 1, None).expect("writes");
    let (mut rows, mut entries) = (0, 0);
    for version in 2..=60_u8 {
        let base = Some(u64::from(version) - 1);
        write_made_up(&disk, version, version.into(), 1, base).expect("writes");
        let row_ids = ROW_IDS
            .into_iter()
            .flat_map(|(table, row_ids)| (0..row_ids).map(move |row_id| (table, row_id)));
        let changed = row_ids
            .filter(|(table, row_id)| changed_at(version, TableId(*table), *row_id) == version);
        rows += changed.count() as u64;
        let manifest = read_manifest(&disk, version.into()).expect("is whole");
        for part in manifest.tables.iter().flat_map(|table| &table.ranges) {
            let file = manifest.files.get(part.file as usize);
            if file.is_some_and(|file| file.generation == u64::from(version)) {
                entries += u64::from(part.entries);
            }
        }
    }
    // Those that are written again with later ones included.
    assert!(entries < 4 * rows, "{entries} written for {rows}");
}

/// What is taken over may be ahead of what was written now: a standby that has not replayed as far
/// yet.
#[test]
fn the_end_of_what_is_taken_over_counts() {
    let disk = SimulatedDisk::new(8);
    write_made_up(&disk, 1, 1, 1, None).expect("writes");
    let base = read_manifest(&disk, 1).expect("is whole");
    let mut source = MadeUp::new(1);
    source.base = 1;
    let progress = CheckpointProgress::default();
    let mut context = context(&progress, 1, 2);
    let mut flush = |_| Ok(Lsn(1005));
    context.flush = &mut flush;
    assert!(base.flushed > Lsn(1005));
    write_from(&source, &disk, &mut context, Some(&base)).expect("writes");
    let manifest = read_manifest(&disk, 2).expect("is whole");
    assert_eq!(manifest.flushed, base.flushed);
    // A redo position before the base's: rows without versions that it left out may be needed
    // again.
    let base = Manifest {
        redo: Lsn(base.redo.0 + 1),
        ..base
    };
    let mut flush = |lsn: Lsn| Ok(lsn);
    let mut context = CheckpointContext {
        flush: &mut flush,
        ..self::context(&progress, 1, 3)
    };
    let written = write_from(&source, &disk, &mut context, Some(&base)).expect("writes");
    assert_eq!(written.ranges_reused, 0);
}

/// What a crash lost between the base's flushed and its redo position may be ours now: it counts as
/// after the base.
#[test]
fn records_in_the_place_of_lost_ones_count_as_changes() {
    let disk = SimulatedDisk::new(8);
    write_made_up(&disk, 1, 1, 1, None).expect("writes");
    let mut base = read_manifest(&disk, 1).expect("is whole");
    // At the end of a recovery the server has inserted records of its own, which a crash takes
    // back. Changes of version 2 are there now.
    base.redo = Lsn(2999);
    assert_eq!(base.flushed, redo_of(1));
    assert_eq!(changed_at(2, TableId(1), 16), 2);
    let mut source = MadeUp::new(2);
    source.base = 1;
    let progress = CheckpointProgress::default();
    let mut context = context(&progress, 2, 2);
    write_from(&source, &disk, &mut context, Some(&base)).expect("writes");
    assert_eq!(read_all(&disk).expect("is whole"), Some(2));
}

#[test]
fn many_small_files_are_merged() {
    let disk = SimulatedDisk::new(8);
    let files_max = 8;
    for generation in 1..=40_u64 {
        // One table more each time, and nothing else changed.
        let mut source = MadeUp::new(1);
        source.base = 1;
        source.tables.truncate(1);
        source.tables[0].row_ids_end = RowId(generation * RANGE_ROW_IDS);
        let base = (generation > 1).then(|| read_manifest(&disk, generation - 1).expect("reads"));
        let progress = CheckpointProgress::default();
        let mut context = context(&progress, 1, generation);
        let written = write_from(&source, &disk, &mut context, base.as_ref()).expect("writes");
        assert_eq!(written.ranges + written.ranges_reused, generation);
        assert_eq!(written.rows, generation * RANGE_ROW_IDS);
        let manifest = read_manifest(&disk, generation).expect("is whole");
        assert!(
            manifest.files.len() <= files_max,
            "{}",
            manifest.files.len()
        );
        blocks_of(&disk, &manifest).expect("are whole");
    }
}

/// A manifest as version 1 wrote it: no ranges, all files of its own generation.
fn to_bytes_v1(manifest: &Manifest, whole: &[(u32, u32, u64, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    let words = |out: &mut Vec<u8>, values: &[u64]| {
        values
            .iter()
            .for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
    };
    let halves = |out: &mut Vec<u8>, values: &[u32]| {
        values
            .iter()
            .for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
    };
    out.extend_from_slice(b"MOTM");
    halves(&mut out, &[1]);
    let m = manifest;
    let (redo, flushed) = (m.redo.0, m.flushed.0);
    words(
        &mut out,
        &[
            0,
            m.system_id,
            redo,
            flushed,
            m.generation,
            m.finished_below.0,
        ],
    );
    words(&mut out, &[m.next_table.0, m.next_index.0]);
    halves(
        &mut out,
        &[m.timeline, 0, m.tables.len() as u32, whole.len() as u32],
    );
    for t in &m.tables {
        words(&mut out, &[t.id.0]);
        halves(&mut out, &[t.key.database, t.key.relation]);
        words(
            &mut out,
            &[t.creator.0, t.dropper.0, t.row_ids_end.0, t.rows],
        );
        halves(&mut out, &[t.indexes.len() as u32]);
        for index in &t.indexes {
            words(&mut out, &[index.id.0, index.creator.0, index.dropper.0]);
            halves(&mut out, &[index.definition.bytes_len() as u32]);
            index.definition.write_bytes(&mut out).expect("memory");
        }
    }
    for (number, blocks, bytes, digest) in whole {
        halves(&mut out, &[*number, *blocks]);
        words(&mut out, &[*bytes]);
        halves(&mut out, &[*digest]);
    }
    let length = out.len() as u64 + 4;
    out[8..16].copy_from_slice(&length.to_le_bytes());
    let crc = crc32c::crc32c(&out);
    halves(&mut out, &[crc]);
    out
}

/// Where a manifest has the LSN of its definitions.
const DEFINED: std::ops::Range<usize> = 72..80;

/// Puts length and checksum right.
fn seal_bytes(bytes: &mut [u8]) {
    let length = bytes.len() as u64;
    bytes[8..16].copy_from_slice(&length.to_le_bytes());
    let content = bytes.len() - 4;
    let crc = crc32c::crc32c(&bytes[..content]);
    bytes[content..].copy_from_slice(&crc.to_le_bytes());
}

/// Bytes of a part of a range since version 3.
const PART_BYTES: usize = 72;

/// Bytes of a table's indexes and ranges.
fn bytes_within(table: &TableEntry) -> usize {
    let indexes = table.indexes.iter();
    let indexes = indexes.map(|it| 28 + it.definition.bytes_len());
    indexes.sum::<usize>() + table.ranges.len() * PART_BYTES
}

/// A manifest as version 6 wrote it: every table is logged.
fn to_bytes_v6(manifest: &Manifest) -> Vec<u8> {
    let new = manifest.to_bytes().expect("memory");
    let mut out = new[..104].to_vec();
    let mut at = 104;
    for table in &manifest.tables {
        out.extend_from_slice(&new[at..at + 60]);
        assert_eq!(new[at + 60..at + 64], [0; 4]);
        let end = at + 64 + bytes_within(table);
        out.extend_from_slice(&new[at + 64..end]);
        at = end;
    }
    // Without the number of row locks.
    out.extend_from_slice(&new[at..new.len() - 4]);
    out[4] = 6;
    seal_bytes(&mut out);
    out
}

#[test]
fn version_6_is_read() {
    let disk = SimulatedDisk::new(12);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    let written = read_manifest(&disk, 1).expect("is whole");
    let old = to_bytes_v6(&written);
    assert_eq!(Manifest::from_bytes(&old), Ok(written));
    disk.overwrite(&manifest_name(1), old);
    assert_eq!(read_all(&disk).expect("is whole"), Some(5));
}

/// A table whose rows are not logged is told as such; a temporary one cannot stand in a manifest.
#[test]
fn a_manifest_tells_which_tables_are_not_logged() {
    let disk = SimulatedDisk::new(12);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    let mut manifest = read_manifest(&disk, 1).expect("is whole");
    manifest.tables[1].persistence = Persistence::Unlogged;
    let bytes = manifest.to_bytes().expect("memory");
    assert_eq!(Manifest::from_bytes(&bytes), Ok(manifest.clone()));
    manifest.tables[1].persistence = Persistence::Temporary;
    let bytes = manifest.to_bytes().expect("memory");
    assert!(Manifest::from_bytes(&bytes).is_err());
}

/// A manifest as version 4 wrote it: every table is a foreign one.
fn to_bytes_v4(manifest: &Manifest) -> Vec<u8> {
    let new = to_bytes_v6(manifest);
    let mut out = new[..104].to_vec();
    let mut at = 104;
    for table in &manifest.tables {
        let rest = 44 + bytes_within(table);
        out.extend_from_slice(&new[at..at + 12]);
        assert_eq!(new[at + 12..at + 16], RelationKey::WRAPPER.to_le_bytes());
        out.extend_from_slice(&new[at + 16..at + 16 + rest]);
        at += 16 + rest;
    }
    out.extend_from_slice(&new[at..]);
    out[4] = 4;
    seal_bytes(&mut out);
    out
}

#[test]
fn version_4_is_read() {
    let disk = SimulatedDisk::new(12);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    let written = read_manifest(&disk, 1).expect("is whole");
    let old = to_bytes_v4(&written);
    assert_eq!(Manifest::from_bytes(&old), Ok(written));
    disk.overwrite(&manifest_name(1), old);
    assert_eq!(read_all(&disk).expect("is whole"), Some(5));
}

/// Row locks lie at the end, since version 7.
#[test]
fn version_6_has_no_row_locks() {
    let disk = SimulatedDisk::new(12);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    let with_locks = Manifest {
        locks: vec![LocksOf {
            xid: Xid(9),
            lsn: Lsn(10),
            record: vec![1, 2, 3],
        }],
        ..read_manifest(&disk, 1).expect("is whole")
    };
    let new = with_locks.to_bytes().expect("memory");
    assert_eq!(Manifest::from_bytes(&new), Ok(with_locks));
    let end = [
        &[1, 0, 0, 0][..],
        &[9, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0],
        &[3, 0, 0, 0, 1, 2, 3],
    ]
    .concat();
    assert_eq!(new[new.len() - 4 - end.len()..new.len() - 4], end);
    let mut cut = new;
    cut[4] = 6;
    seal_bytes(&mut cut);
    assert!(Manifest::from_bytes(&cut).is_err());
}

/// Version 5 is as version 6, and holds no missing values.
#[test]
fn version_5_is_read() {
    let disk = SimulatedDisk::new(12);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    let mut written = read_manifest(&disk, 1).expect("is whole");
    let as_version_5 = |manifest: &Manifest| {
        let mut bytes = to_bytes_v6(manifest);
        bytes[4] = 5;
        seal_bytes(&mut bytes);
        bytes
    };
    let old = as_version_5(&written);
    assert_eq!(Manifest::from_bytes(&old), Ok(written.clone()));
    let indexes = written.tables.iter_mut().flat_map(|it| &mut it.indexes);
    for index in indexes {
        index.definition.missing = vec![MissingValue {
            attnum: 1,
            bytes: [7, 0, 0, 0].into(),
        }];
    }
    let new = written.to_bytes().expect("memory");
    assert_eq!(Manifest::from_bytes(&new), Ok(written.clone()));
    assert!(Manifest::from_bytes(&as_version_5(&written)).is_err());
}

#[test]
fn version_3_is_read() {
    let disk = SimulatedDisk::new(12);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    let written = Manifest {
        defined: Lsn(7),
        ..read_manifest(&disk, 1).expect("is whole")
    };
    let mut old = to_bytes_v4(&written);
    assert_eq!(old[DEFINED], 7_u64.to_le_bytes());
    old.drain(DEFINED);
    old[4] = 3;
    seal_bytes(&mut old);
    let read = Manifest {
        defined: Lsn::NONE,
        ..written
    };
    assert_eq!(Manifest::from_bytes(&old), Ok(read));
}

#[test]
fn version_1_is_read_and_sealed_but_not_built_upon() {
    let disk = SimulatedDisk::new(12);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    let new = read_manifest(&disk, 1).expect("is whole");
    let (_, blocks) = blocks_of(&disk, &new).expect("are whole");
    let digest = blocks.iter().fold(0, |digest, place| {
        crc32c::crc32c_append(digest, &place.header.to_bytes())
    });
    let old = to_bytes_v1(
        &new,
        &[(0, blocks.len() as u32, new.files[0].bytes, digest)],
    );
    for at in 0..old.len() {
        let mut bytes = old.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(Manifest::from_bytes(&bytes).is_err());
    }
    disk.overwrite(&manifest_name(1), old);
    assert_eq!(read_all(&disk).expect("is whole"), Some(5));
    let manifest = read_manifest(&disk, 1).expect("is whole");
    seal(&disk, &manifest).expect("seals");
    assert_eq!(read_manifest(&disk, 1).expect("is whole"), manifest);
    assert_eq!(read_all(&disk).expect("is whole"), Some(5));
    let whole = disk.contents(&rows_name(1, 0)).expect("exists");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        disk.overwrite(&rows_name(1, 0), bytes);
        assert!(matches!(read_all(&disk), Err(EngineError::Damaged { .. })));
    }
    disk.overwrite(&rows_name(1, 0), whole);
    let written = write_made_up(&disk, 6, 2, 1, Some(1)).expect("writes");
    assert_eq!((written.ranges, written.ranges_reused), (5, 0));
    remove_old(&disk, 1, |_| false).expect("removes");
    assert_eq!(read_all(&disk).expect("is whole"), Some(6));
}

/// A manifest as version 2 wrote it: of each range one part, which may be open.
fn to_bytes_v2(manifest: &Manifest, open: &dyn Fn(u32) -> bool) -> Vec<u8> {
    let new = to_bytes_v4(manifest);
    let part_bytes = PART_BYTES;
    let mut out = Vec::new();
    let mut at = 104;
    out.extend_from_slice(&new[..DEFINED.start]);
    out.extend_from_slice(&new[DEFINED.end..at]);
    out[4] = 2;
    for table in &manifest.tables {
        let parts_bytes = table.ranges.len() * part_bytes;
        let indexes = table.indexes.iter();
        let head = 56
            + indexes
                .map(|it| 28 + it.definition.bytes_len())
                .sum::<usize>();
        out.extend_from_slice(&new[at..at + head]);
        for (range, part) in table.ranges.iter().zip(new[at + head..].chunks(part_bytes)) {
            out.extend_from_slice(&part[..40]);
            out.extend_from_slice(&range.digest.to_le_bytes());
            out.extend_from_slice(&u32::from(open(range.number)).to_le_bytes());
        }
        at += head + parts_bytes;
    }
    out.extend_from_slice(&new[at..new.len() - 4]);
    let length = out.len() as u64 + 4;
    out[8..16].copy_from_slice(&length.to_le_bytes());
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

#[test]
fn version_2_is_read_and_built_upon() {
    let disk = SimulatedDisk::new(13);
    write_made_up(&disk, 1, 1, 1, None).expect("writes");
    let new = read_manifest(&disk, 1).expect("is whole");
    disk.overwrite(&manifest_name(1), to_bytes_v2(&new, &|_| false));
    let old = read_manifest(&disk, 1).expect("is whole");
    assert_eq!(old, new);
    assert_eq!(read_all(&disk).expect("is whole"), Some(1));
    // The row that is open is not known: all of the range is written.
    disk.overwrite(&manifest_name(1), to_bytes_v2(&new, &|number| number == 1));
    let written = write_made_up(&disk, 1, 2, 1, Some(1)).expect("writes");
    assert_eq!((written.ranges, written.ranges_reused), (1, 4));
    let manifest = read_manifest(&disk, 2).expect("is whole");
    assert_eq!(manifest.tables[0].ranges[1].entries, 8);
    assert_eq!(manifest.tables[0].ranges.len(), 4);
    assert_eq!(read_all(&disk).expect("is whole"), Some(1));
}
