//! Files: crashes at every operation, every byte flipped, blocks and manifests damaged at will.

use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::disk::Disk;
use crate::disk::simulated::SimulatedDisk;
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, RelationKey, Slot, TableId, Xid};
use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};
use crate::table::RANGE_SLOTS;

const SYSTEM: u64 = 7;

/// Rows made up from their slot and the version at which their range was last changed.
struct MadeUp {
    version: u8,
    /// What the base generation holds.
    base: u8,
    tables: Vec<TableEntry>,
}

/// The newest version up to `version` at which the range was changed: at the first all are, later a third of them.
fn changed_at(version: u8, table: TableId, slot: u64) -> u8 {
    let range = slot / RANGE_SLOTS;
    let is_changed = |version: &u8| {
        let mixed = u64::from(*version) * 31 + table.0 * 7 + range * 13;
        *version == 1 || (mixed ^ (mixed >> 3)).is_multiple_of(3)
    };
    (1..=version).rev().find(is_changed).unwrap_or(0)
}

fn definition() -> IndexDefinition {
    IndexDefinition {
        relation: 1234,
        unique: true,
        nulls_not_distinct: false,
        columns: vec![KeyColumn {
            attnum: 1,
            kind: KeyKind::Int4,
            descending: false,
            nulls_first: false,
            nullable: false,
        }],
        layout: vec![AttributeLayout {
            len: 4,
            align: 4,
            by_value: true,
        }],
    }
}

impl MadeUp {
    fn new(version: u8) -> MadeUp {
        let table = |id: u64, slots: u64| TableEntry {
            id: TableId(id),
            key: RelationKey {
                database: 1,
                relation: id as u32,
            },
            creator: Xid(0),
            dropper: Xid(if id == 2 { 99 } else { 0 }),
            slots_end: Slot(slots),
            rows: 0,
            indexes: vec![IndexEntry {
                id: IndexId(id),
                creator: Xid(3),
                dropper: Xid(0),
                definition: definition(),
            }],
            ranges: Vec::new(),
        };
        MadeUp {
            version,
            base: 0,
            tables: vec![table(1, 30), table(2, 0), table(3, 7)],
        }
    }

    fn body(&self, table: TableId, slot: u64) -> Vec<u8> {
        let version = changed_at(self.version, table, slot);
        vec![version ^ table.0 as u8; slot as usize * 20]
    }

    fn lsn(&self, table: TableId, slot: u64) -> Lsn {
        Lsn(slot * 1000 + u64::from(changed_at(self.version, table, slot)))
    }
}

impl RowSource for MadeUp {
    type Walker<'a> = ();

    fn tables(&self) -> Result<(Vec<TableEntry>, TableId, IndexId), EngineError> {
        Ok((self.tables.clone(), TableId(4), IndexId(4)))
    }

    fn has_changed(&self, table: TableId, first: Slot) -> Result<bool, EngineError> {
        Ok(changed_at(self.version, table, first.0) > self.base)
    }

    fn walker(&self) -> Result<(), EngineError> {
        Ok(())
    }

    fn walk(
        &self,
        _walker: &mut (),
        table: TableId,
        slots: Range<Slot>,
        block: &mut BlockBuilder,
    ) -> Result<(Slot, u64), EngineError> {
        // A few rows a block, so that files have several.
        let end = slots.end.0.min(slots.start.0 + 3);
        for slot in slots.start.0..end {
            let body = self.body(table, slot);
            let version = VersionEntry {
                xid: Xid(1000 - slot),
                committed: true,
                tombstone: false,
                rolled_back: false,
                body: &body,
            };
            block.row(Slot(slot), self.lsn(table, slot), &[version])?;
        }
        Ok((Slot(end), end - slots.start.0))
    }
}

/// Writes generation `generation` of `version` anew, or upon the base generation, whose version is its number.
fn write_made_up(
    disk: &SimulatedDisk,
    version: u8,
    generation: u64,
    threads: usize,
    base: Option<u64>,
) -> Result<Written, EngineError> {
    let base = base.map(|base| read_manifest(disk, base)).transpose()?;
    let mut source = MadeUp::new(version);
    source.base = base.as_ref().map_or(0, |base| base.redo.0 as u8);
    let progress = CheckpointProgress::default();
    let mut context = context(&progress, version, generation);
    context.threads = threads;
    let written = write_from(&source, disk, &mut context, base.as_ref())?;
    assert_eq!(progress.phase(), Phase::WritingManifest);
    let figure = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    assert_eq!(figure(&progress.ranges_done), written.ranges);
    assert_eq!(figure(&progress.ranges_total), written.ranges);
    assert_eq!(figure(&progress.tables_done), 3);
    assert_eq!(figure(&progress.bytes_written), written.bytes);
    Ok(written)
}

fn context<'a>(
    progress: &'a CheckpointProgress,
    version: u8,
    generation: u64,
) -> CheckpointContext<'a> {
    CheckpointContext {
        system_id: SYSTEM,
        timeline: 1,
        redo: Lsn(u64::from(version)),
        generation,
        // Not the same for two generations.
        settled: Xid(60 + generation),
        is_final: false,
        threads: 1,
        pace: Pace::unlimited(),
        progress,
        flush: Box::leak(Box::new(|lsn: Lsn| Ok(Lsn(lsn.0 + 1)))),
    }
}

/// Everything the newest checkpoint says, read as loading does. None if there is none.
fn read_all(disk: &SimulatedDisk) -> Result<Option<u8>, EngineError> {
    let Some(manifest) = newest(disk, SYSTEM, |_, _| true)? else {
        return Ok(None);
    };
    let (files, blocks) = blocks_of(disk, &manifest)?;
    let version = manifest.redo.0 as u8;
    let made_up = MadeUp::new(version);
    let mut rows = Vec::new();
    for place in &blocks {
        let mut body = Vec::new();
        read_block(&files, place, &mut body)?;
        let damaged = |damage: Damage| EngineError::Damaged {
            file: files[place.file].0.clone(),
            what: damage.0.to_owned(),
        };
        let mut reader = BlockReader::new(place, &body).map_err(damaged)?;
        let mut versions = Vec::new();
        while let Some((slot, lsn)) = reader.next(&mut versions).map_err(damaged)? {
            assert_eq!(lsn, made_up.lsn(place.header.table, slot.0));
            let expected = made_up.body(place.header.table, slot.0);
            assert_eq!(versions.len(), 1);
            assert_eq!(versions[0].body, expected);
            assert_eq!(versions[0].xid, Xid(1000 - slot.0));
            rows.push((place.header.table.0, slot.0));
        }
    }
    rows.sort_unstable();
    let all: Vec<_> = (0..30)
        .map(|slot| (1, slot))
        .chain((0..7).map(|slot| (3, slot)))
        .collect();
    assert_eq!(rows, all);
    assert_eq!(
        manifest
            .tables
            .iter()
            .map(|table| table.rows)
            .collect::<Vec<_>>(),
        [30, 0, 7]
    );
    Ok(Some(version))
}

#[test]
fn what_is_written_is_read() {
    for threads in [1, 3] {
        let disk = SimulatedDisk::new(1);
        assert!(read_all(&disk).expect("is empty").is_none());
        let generation = next_generation(&disk).expect("lists");
        let written = write_made_up(&disk, 5, generation, threads, None).expect("writes");
        assert_eq!(written.rows, 37);
        assert!(written.flushed > Lsn(29_000));
        assert_eq!(read_all(&disk).expect("is whole"), Some(5));
        assert!(
            newest(&disk, SYSTEM, |_, redo| redo > Lsn(5))
                .expect("is whole")
                .is_none(),
            "not in the history"
        );
        assert!(
            newest(&disk, SYSTEM + 1, |_, _| true).is_err(),
            "another cluster"
        );
    }
}

/// Walkers that wait for each other at their first range: two threads or the test hangs.
struct Together {
    rows: MadeUp,
    both: Barrier,
}

impl RowSource for Together {
    type Walker<'a> = bool;

    fn tables(&self) -> Result<(Vec<TableEntry>, TableId, IndexId), EngineError> {
        let (mut tables, next_table, next_index) = self.rows.tables()?;
        tables.truncate(1);
        Ok((tables, next_table, next_index))
    }

    fn has_changed(&self, _table: TableId, _first: Slot) -> Result<bool, EngineError> {
        Ok(true)
    }

    fn walker(&self) -> Result<bool, EngineError> {
        Ok(false)
    }

    fn walk(
        &self,
        has_met: &mut bool,
        table: TableId,
        slots: Range<Slot>,
        block: &mut BlockBuilder,
    ) -> Result<(Slot, u64), EngineError> {
        if !std::mem::replace(has_met, true) {
            self.both.wait();
        }
        self.rows.walk(&mut (), table, slots, block)
    }
}

#[test]
fn threads_share_one_table() {
    let disk = SimulatedDisk::new(2);
    let source = Together {
        rows: MadeUp::new(3),
        both: Barrier::new(2),
    };
    let progress = CheckpointProgress::default();
    let mut context = context(&progress, 3, 1);
    context.threads = 2;
    let written = write_from(&source, &disk, &mut context, None).expect("writes");
    assert_eq!((written.files, written.rows), (2, 30));
    let manifest = read_manifest(&disk, 1).expect("is whole");
    let of_file = |file| manifest.tables[0].ranges.iter().any(|r| r.file == file);
    assert!(of_file(0) && of_file(1));
    blocks_of(&disk, &manifest).expect("are whole");
}

/// Versions of the chain that crash and fault tests write: enough to merge files.
const CHAIN: u8 = 14;

/// Writes the versions from `first` on, each upon the one before, and removes what is old.
fn write_chain(disk: &SimulatedDisk, first: u8) -> Result<(), EngineError> {
    for version in first..=CHAIN {
        let base = (version > 1).then_some(u64::from(version) - 1);
        write_made_up(disk, version, version.into(), 1, base)?;
        remove_old(disk, 1, |_| false)?;
    }
    Ok(())
}

#[test]
fn unchanged_ranges_stay_where_they_are() {
    let disk = SimulatedDisk::new(8);
    let (mut reused, mut merged) = (0, false);
    for version in 1..=100_u8 {
        let base = (version > 1).then_some(u64::from(version) - 1);
        let written = write_made_up(&disk, version, version.into(), 2, base).expect("writes");
        assert_eq!(written.ranges + written.ranges_reused, 5);
        reused += written.ranges_reused;
        let changed = |table: u64, slot| changed_at(version, TableId(table), slot) == version;
        let slots = [(1, 0), (1, 8), (1, 16), (1, 24), (3, 0)];
        let must = slots.iter().filter(|(t, slot)| changed(*t, *slot)).count() as u64;
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
        assert!(on_disk <= 2 * live, "{on_disk} bytes for {live}");
    }
    assert!(reused > 200 && merged, "{reused} reused");
}

/// What is taken over may be ahead of what was written now: a standby that has not replayed as far yet.
#[test]
fn the_end_of_what_is_taken_over_counts() {
    let disk = SimulatedDisk::new(8);
    write_made_up(&disk, 1, 1, 1, None).expect("writes");
    let base = read_manifest(&disk, 1).expect("is whole");
    let mut source = MadeUp::new(1);
    source.base = 1;
    let progress = CheckpointProgress::default();
    let mut context = context(&progress, 1, 2);
    let mut flush = |_| Ok(Lsn(5));
    context.flush = &mut flush;
    assert!(base.flushed > Lsn(5));
    write_from(&source, &disk, &mut context, Some(&base)).expect("writes");
    let manifest = read_manifest(&disk, 2).expect("is whole");
    assert_eq!(manifest.flushed, base.flushed);
    // A redo position before the base's: rows without versions that it left out may be needed again.
    let base = Manifest {
        redo: Lsn(2),
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

#[test]
fn many_small_files_are_merged() {
    let disk = SimulatedDisk::new(8);
    let files_max = 8;
    for generation in 1..=40_u64 {
        // One table more each time, and nothing else changed.
        let mut source = MadeUp::new(1);
        source.base = 1;
        source.tables.truncate(1);
        source.tables[0].slots_end = Slot(generation * RANGE_SLOTS);
        let base = (generation > 1).then(|| read_manifest(&disk, generation - 1).expect("reads"));
        let progress = CheckpointProgress::default();
        let mut context = context(&progress, 1, generation);
        let written = write_from(&source, &disk, &mut context, base.as_ref()).expect("writes");
        assert_eq!(written.ranges + written.ranges_reused, generation);
        assert_eq!(written.rows, generation * RANGE_SLOTS);
        let manifest = read_manifest(&disk, generation).expect("is whole");
        assert!(
            manifest.files.len() <= files_max,
            "{}",
            manifest.files.len()
        );
        blocks_of(&disk, &manifest).expect("are whole");
    }
}

/// The checkpoint before or the one after, whole, whatever the machine did when it went down.
#[test]
fn a_crash_at_any_operation_leaves_a_whole_checkpoint() {
    let start = SimulatedDisk::new(9);
    write_made_up(&start, 1, 1, 1, None).expect("writes");
    let mut found = [0; CHAIN as usize + 1];
    for at in 0.. {
        let mut reached_the_end = false;
        for seed in 0..12 {
            let disk = start.fork(seed);
            disk.fail_at(at);
            reached_the_end |= write_chain(&disk, 2).is_ok();
            let complete = generations(&disk.fork(0).restart()).expect("lists").len();
            assert!(complete > 0);
            let after = disk.restart();
            let version = match read_all(&after) {
                Ok(Some(version)) => version,
                other => panic!("operation {at} seed {seed}: {other:?}"),
            };
            found[usize::from(version)] += 1;
            // Leftovers do not disturb the next ones, and go.
            let generation = next_generation(&after).expect("lists");
            let base = Some(generations(&after).expect("lists")[0]);
            write_made_up(&after, CHAIN + 1, generation, 1, base).expect("writes");
            assert_eq!(read_all(&after).expect("is whole"), Some(CHAIN + 1));
            remove_old(&after, 1, |_| false).expect("clears");
            assert_eq!(read_all(&after).expect("is whole"), Some(CHAIN + 1));
            let manifest = read_manifest(&after, generation).expect("is whole");
            let names = after.list().expect("lists");
            assert_eq!(names.len(), manifest.files.len() + 1);
        }
        if reached_the_end {
            break;
        }
    }
    assert!(found[1..].iter().all(|count| *count > 20), "{found:?}");
}

/// An operation that fails although the machine goes on: the attempt fails or what it was for is done later, what is there stays whole,
/// and the disk does not fill with what was left.
#[test]
fn an_error_at_any_operation_is_an_error_and_no_more() {
    let start = SimulatedDisk::new(10);
    write_made_up(&start, 1, 1, 1, None).expect("writes");
    for at in 0.. {
        let disk = start.fork(at);
        disk.fault_at(at, std::io::ErrorKind::StorageFull);
        let error = match write_chain(&disk, 2) {
            Ok(()) => break,
            Err(error) => error,
        };
        let EngineError::Io { file, source, .. } = &error else {
            panic!("operation {at}: {error}");
        };
        assert!(!file.is_empty());
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
        let version = read_all(&disk).expect("is whole").expect("exists");
        let generation = next_generation(&disk).expect("lists");
        let base = Some(u64::from(version));
        write_made_up(&disk, CHAIN, generation, 1, base).expect("writes");
        remove_old(&disk, 1, |_| false).expect("clears");
        assert_eq!(read_all(&disk).expect("is whole"), Some(CHAIN));
        let manifest = read_manifest(&disk, generation).expect("is whole");
        assert_eq!(disk.list().expect("lists").len(), manifest.files.len() + 1);
    }
}

#[test]
fn a_full_disk_is_not_filled_further() {
    let disk = SimulatedDisk::new(11);
    write_made_up(&disk, 1, 1, 1, None).expect("writes");
    let before = disk.list().expect("lists");
    let used = disk.bytes_used();
    disk.set_capacity(used + 2000);
    for _ in 0..5 {
        let generation = next_generation(&disk).expect("lists");
        let error = write_made_up(&disk, 9, generation, 1, None).expect_err("is full");
        assert!(
            matches!(&error, EngineError::Io { file, .. } if file.starts_with("rows-")),
            "{error}"
        );
        assert_eq!(disk.list().expect("lists"), before);
        assert_eq!(disk.bytes_used(), used);
    }
    // What was changed is little: that still fits.
    disk.set_capacity(u64::MAX);
    write_made_up(&disk, 9, 2, 1, Some(1)).expect("writes");
    assert_eq!(read_all(&disk).expect("is whole"), Some(9));
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
        &[0, m.system_id, redo, flushed, m.generation, m.settled.0],
    );
    words(&mut out, &[m.next_table.0, m.next_index.0]);
    halves(
        &mut out,
        &[m.timeline, 0, m.tables.len() as u32, whole.len() as u32],
    );
    for t in &m.tables {
        words(&mut out, &[t.id.0]);
        halves(&mut out, &[t.key.database, t.key.relation]);
        words(&mut out, &[t.creator.0, t.dropper.0, t.slots_end.0, t.rows]);
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

/// Of every file of a checkpoint, whichever generation wrote it: each byte that is used.
#[test]
fn every_flipped_byte_is_noticed() {
    let disk = SimulatedDisk::new(3);
    for version in 1..=4 {
        let base = (version > 1).then_some(u64::from(version) - 1);
        write_made_up(&disk, version, version.into(), 1, base).expect("writes");
    }
    remove_old(&disk, 1, |_| false).expect("removes");
    let manifest = read_manifest(&disk, 4).expect("is whole");
    assert!(manifest.files.len() > 1);
    let mut names = disk.list().expect("lists");
    names.sort();
    let used = |name: &str, at: usize| {
        let is_it = |file: &FileEntry| rows_name(file.generation, file.number) == name;
        let Some(position) = manifest.files.iter().position(is_it) else {
            return name == manifest_name(4);
        };
        let mut ranges = manifest.tables.iter().flat_map(|table| &table.ranges);
        ranges.any(|range| {
            let bytes = range.offset..range.offset + range.bytes;
            range.file == position as u32 && bytes.contains(&(at as u64))
        })
    };
    let mut noticed = 0;
    for name in names {
        let whole = disk.contents(&name).expect("exists");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            disk.overwrite(&name, bytes);
            if !used(&name, at) {
                assert_eq!(read_all(&disk).expect("is whole"), Some(4));
                continue;
            }
            noticed += 1;
            let error = read_all(&disk).expect_err("damage is noticed");
            assert!(
                matches!(&error, EngineError::Damaged { file, .. } if *file == name),
                "byte {at} of {name}: {error}"
            );
        }
        for length in [0, 1, 63, whole.len() - 1] {
            disk.overwrite(&name, whole[..length].to_vec());
            let error = read_all(&disk).expect_err("a cut is noticed");
            assert!(matches!(&error, EngineError::Damaged { file, .. } if *file == name));
        }
        disk.overwrite(&name, whole);
        assert_eq!(read_all(&disk).expect("is whole"), Some(4));
    }
    assert!(noticed > 10_000, "{noticed}");
}

#[test]
fn files_of_another_generation_are_noticed() {
    let disk = SimulatedDisk::new(4);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    write_made_up(&disk, 5, 2, 1, None).expect("writes");
    let older = disk.contents(&rows_name(1, 0)).expect("exists");
    disk.overwrite(&rows_name(2, 0), older);
    assert!(matches!(read_all(&disk), Err(EngineError::Damaged { .. })));
}

#[test]
fn a_missing_file_is_named() {
    let disk = SimulatedDisk::new(5);
    write_made_up(&disk, 5, 1, 1, None).expect("writes");
    disk.remove(&rows_name(1, 0)).expect("removes");
    let error = read_all(&disk).expect_err("is missing");
    assert!(
        matches!(&error, EngineError::Damaged { file, .. } if *file == rows_name(1, 0)),
        "{error}"
    );
}

#[test]
fn no_manifest_before_the_log_is_durable() {
    let disk = SimulatedDisk::new(6);
    for flushed in [Ok(Lsn(3)), Err(EngineError::OutOfProcessMemory)] {
        let mut flushed = Some(flushed);
        let mut flush = |_| flushed.take().expect("called once");
        let progress = CheckpointProgress::default();
        let mut context = CheckpointContext {
            threads: 2,
            flush: &mut flush,
            ..context(&progress, 1, 1)
        };
        assert!(write_from(&MadeUp::new(1), &disk, &mut context, None).is_err());
        assert!(disk.list().expect("lists").is_empty(), "nothing is left");
        assert!(generations(&disk).expect("lists").is_empty());
    }
}

#[test]
fn old_checkpoints_go_and_needed_ones_stay() {
    let disk = SimulatedDisk::new(7);
    for generation in 1..=6 {
        write_made_up(&disk, generation as u8, generation, 1, None).expect("writes");
    }
    let removed = remove_old(&disk, 2, |generation| generation == 3).expect("removes");
    assert_eq!(removed, 6);
    assert_eq!(generations(&disk).expect("lists"), [6, 5, 3]);
    assert_eq!(read_all(&disk).expect("is whole"), Some(6));
    assert_eq!(remove_old(&disk, 0, |_| false).expect("removes"), 4);
    assert_eq!(
        generations(&disk).expect("lists"),
        [6],
        "the newest always stays"
    );
}

#[test]
fn nothing_is_removed_while_it_is_not_known_what_is_needed() {
    let disk = SimulatedDisk::new(7);
    write_chain(&disk, 1).expect("writes");
    let newest = u64::from(CHAIN);
    write_made_up(&disk, CHAIN, newest + 1, 1, Some(newest)).expect("writes");
    let mut bytes = disk.contents(&manifest_name(newest)).expect("exists");
    bytes[20] ^= 1;
    disk.overwrite(&manifest_name(newest), bytes);
    let before = disk.list().expect("lists");
    let error = remove_old(&disk, 2, |_| false).expect_err("is damaged");
    assert!(
        matches!(&error, EngineError::Damaged { file, .. } if *file == manifest_name(newest)),
        "{error}"
    );
    assert_eq!(disk.list().expect("lists"), before);
    assert_eq!(read_all(&disk).expect("is whole"), Some(CHAIN));
    // Who needs only the newest one can go on.
    remove_old(&disk, 1, |_| false).expect("removes");
    assert_eq!(read_all(&disk).expect("is whole"), Some(CHAIN));
}

fn versions() -> impl Strategy<Value = Vec<(u64, bool, bool, Vec<u8>)>> {
    let version = (
        any::<u64>(),
        any::<bool>(),
        any::<bool>(),
        prop::collection::vec(any::<u8>(), 0..40),
    );
    prop::collection::vec(version, 0..4)
}

proptest! {
    #[test]
    fn rows_survive_a_block(
        rows in prop::collection::vec((1..1000_u64, any::<u64>(), versions()), 1..20),
        settled in any::<u64>(),
        damage in (any::<prop::sample::Index>(), 1..=255_u8),
    ) {
        let mut block = BlockBuilder::new(Xid(settled));
        block.begin(TableId(9));
        let mut slot = 0;
        for (step, lsn, versions) in &rows {
            slot += step;
            let entries: Vec<_> = versions
                .iter()
                .map(|(xid, committed, tombstone, body)| VersionEntry {
                    xid: Xid(*xid),
                    committed: *committed,
                    tombstone: *tombstone,
                    rolled_back: *committed && *tombstone,
                    body,
                })
                .collect();
            block.row(Slot(slot), Lsn(*lsn), &entries).expect("memory");
        }
        let (header, body) = block.finish(1, 2, 3);
        prop_assert_eq!(BlockHeader::from_bytes(&header.to_bytes()), Ok(header));
        let mut reader = BlockReader::of(&header, body, Xid(settled)).expect("is whole");
        let mut read = Vec::new();
        let mut slot = 0;
        for (step, lsn, versions) in &rows {
            slot += step;
            prop_assert_eq!(reader.next(&mut read), Ok(Some((Slot(slot), Lsn(*lsn)))));
            prop_assert_eq!(read.len(), versions.len());
            for (entry, (xid, committed, tombstone, body)) in read.iter().zip(versions) {
                prop_assert_eq!(entry.xid, Xid(*xid));
                prop_assert_eq!((entry.committed, entry.tombstone), (*committed, *tombstone));
                prop_assert_eq!(entry.body, &body[..]);
            }
        }
        prop_assert_eq!(reader.next(&mut read), Ok(None));
        // Damage with a right checksum: errors, no panic.
        let mut bytes = body.to_vec();
        let at = damage.0.index(bytes.len());
        bytes[at] ^= damage.1;
        prop_assert!(BlockReader::of(&header, &bytes, Xid(settled)).is_err());
        let header = BlockHeader { body_crc: crc32c::crc32c(&bytes), ..header };
        let mut reader = BlockReader::of(&header, &bytes, Xid(settled)).expect("fits its checksum");
        let mut count = 0;
        while let Ok(Some(_)) = reader.next(&mut read) {
            count += 1;
            prop_assert!(count <= header.rows);
        }
    }

    #[test]
    fn manifests_survive_and_damage_is_an_error(
        numbers in any::<[u64; 8]>(),
        tables in 0..4_usize,
        cut in any::<prop::sample::Index>(),
        patch in (any::<prop::sample::Index>(), any::<u8>()),
    ) {
        let mut made_up = MadeUp::new(1).tables;
        made_up.truncate(tables);
        for table in &mut made_up {
            table.ranges = vec![RangeEntry {
                number: numbers[0] as u32,
                file: numbers[1] as u32,
                first_block: numbers[2] as u32,
                blocks: numbers[3] as u32,
                offset: numbers[4],
                bytes: numbers[5],
                rows: numbers[6],
                digest: numbers[7] as u32,
                is_open: numbers[0] >> 63 == 1,
            }];
        }
        let manifest = Manifest {
            system_id: numbers[0],
            timeline: numbers[1] as u32,
            is_final: numbers[1] >> 63 == 1,
            redo: Lsn(numbers[2]),
            flushed: Lsn(numbers[3]),
            generation: numbers[4],
            settled: Xid(numbers[5]),
            next_table: TableId(numbers[6]),
            next_index: IndexId(numbers[7]),
            range_slots: numbers[2] as u32,
            tables: made_up,
            files: vec![
                FileEntry {
                    generation: numbers[0],
                    number: 1,
                    bytes: numbers[1],
                    settled: Xid(numbers[2]),
                    whole: None,
                },
                FileEntry {
                    generation: numbers[3],
                    number: 2,
                    bytes: numbers[4],
                    settled: Xid(numbers[5]),
                    whole: Some(WholeFile { blocks: 2, digest: 3 }),
                },
            ],
        };
        let bytes = manifest.to_bytes().expect("memory");
        prop_assert_eq!(Manifest::from_bytes(&bytes), Ok(manifest));
        prop_assert!(Manifest::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        // Damage with a right checksum must not panic.
        let mut patched = bytes;
        let content = patched.len() - 4;
        let at = patch.0.index(content);
        patched[at] = patch.1;
        let crc = crc32c::crc32c(&patched[..content]);
        patched[content..].copy_from_slice(&crc.to_le_bytes());
        if let Ok(read) = Manifest::from_bytes(&patched)
            && patched[4] == 2
        {
            prop_assert_eq!(read.to_bytes().expect("memory"), patched);
        }
    }
}
