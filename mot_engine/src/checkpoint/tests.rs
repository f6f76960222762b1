//! Files: crashes at every operation, every byte flipped, blocks and manifests damaged at will.

use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::disk::simulated::SimulatedDisk;
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, RelationKey, Slot, TableId, Xid};
use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};

const SYSTEM: u64 = 7;

/// Rows made up from their slot and a version of the whole.
struct MadeUp {
    version: u8,
    tables: Vec<TableEntry>,
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
        };
        MadeUp {
            version,
            tables: vec![table(1, 30), table(2, 0), table(3, 7)],
        }
    }

    fn body(&self, table: TableId, slot: u64) -> Vec<u8> {
        vec![self.version ^ table.0 as u8; slot as usize * 20]
    }
}

impl RowSource for MadeUp {
    type Walker<'a> = ();

    fn tables(&self) -> Result<(Vec<TableEntry>, TableId, IndexId), EngineError> {
        Ok((self.tables.clone(), TableId(4), IndexId(4)))
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
        let end = slots.end.0.min(slots.start.0 + 8);
        for slot in slots.start.0..end {
            let body = self.body(table, slot);
            let version = VersionEntry {
                xid: Xid(50 - slot),
                committed: true,
                tombstone: false,
                rolled_back: false,
                body: &body,
            };
            block.row(
                Slot(slot),
                Lsn(slot * 1000 + u64::from(self.version)),
                &[version],
            )?;
        }
        Ok((Slot(end), end - slots.start.0))
    }
}

fn write_made_up(
    disk: &SimulatedDisk,
    version: u8,
    generation: u64,
    threads: usize,
) -> Result<Written, EngineError> {
    let mut context = CheckpointContext {
        system_id: SYSTEM,
        timeline: 1,
        redo: Lsn(u64::from(version)),
        generation,
        settled: Xid(60),
        is_final: false,
        threads,
        flush: &mut |lsn| Ok(Lsn(lsn.0 + 1)),
    };
    write_from(&MadeUp::new(version), disk, &mut context)
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
        let mut reader =
            BlockReader::new(&place.header, &body, manifest.settled).map_err(damaged)?;
        let mut versions = Vec::new();
        while let Some((slot, lsn)) = reader.next(&mut versions).map_err(damaged)? {
            assert_eq!(lsn, Lsn(slot.0 * 1000 + u64::from(version)));
            let expected = made_up.body(place.header.table, slot.0);
            assert_eq!(versions.len(), 1);
            assert_eq!(versions[0].body, expected);
            assert_eq!(versions[0].xid, Xid(50 - slot.0));
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
        let written = write_made_up(&disk, 5, generation, threads).expect("writes");
        assert_eq!((written.rows, written.flushed), (37, Lsn(29_006)));
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

/// The old checkpoint or the new one, whole, whatever the machine did when it went down.
#[test]
fn a_crash_at_any_operation_leaves_a_whole_checkpoint() {
    let start = SimulatedDisk::new(9);
    write_made_up(&start, 1, 1, 1).expect("writes");
    let mut reached_the_end = false;
    let (mut old, mut new) = (0, 0);
    for at in 0.. {
        if reached_the_end {
            break;
        }
        for seed in 0..12 {
            let disk = start.fork(seed);
            disk.fail_at(at);
            let generation = next_generation(&disk);
            let written = generation
                .and_then(|generation| write_made_up(&disk, 2, generation, 1))
                .and_then(|_| remove_old(&disk, 1, |_| false));
            reached_the_end |= written.is_ok();
            let after = disk.restart();
            match read_all(&after) {
                Ok(Some(1)) => old += 1,
                Ok(Some(2)) => new += 1,
                other => panic!("operation {at} seed {seed}: {other:?}"),
            }
            // Leftovers are cleared and do not disturb the next one.
            remove_old(&after, 1, |_| false).expect("clears");
            let generation = next_generation(&after).expect("lists");
            write_made_up(&after, 3, generation, 1).expect("writes");
            assert_eq!(read_all(&after).expect("is whole"), Some(3));
        }
    }
    assert!(old > 50 && new > 20, "{old} old, {new} new");
}

#[test]
fn every_flipped_byte_is_noticed() {
    let disk = SimulatedDisk::new(3);
    write_made_up(&disk, 5, 1, 1).expect("writes");
    for name in [manifest_name(1), rows_name(1, 0)] {
        let whole = disk.contents(&name).expect("exists");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            disk.overwrite(&name, bytes);
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
        assert_eq!(read_all(&disk).expect("is whole"), Some(5));
    }
}

#[test]
fn files_of_another_generation_are_noticed() {
    let disk = SimulatedDisk::new(4);
    write_made_up(&disk, 5, 1, 1).expect("writes");
    write_made_up(&disk, 5, 2, 1).expect("writes");
    let older = disk.contents(&rows_name(1, 0)).expect("exists");
    disk.overwrite(&rows_name(2, 0), older);
    assert!(matches!(read_all(&disk), Err(EngineError::Damaged { .. })));
}

#[test]
fn a_missing_file_is_named() {
    use crate::disk::Disk;
    let disk = SimulatedDisk::new(5);
    write_made_up(&disk, 5, 1, 1).expect("writes");
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
        let mut context = CheckpointContext {
            system_id: SYSTEM,
            timeline: 1,
            redo: Lsn(1),
            generation: 1,
            settled: Xid(60),
            is_final: false,
            threads: 2,
            flush: &mut |_| flushed.take().expect("called once"),
        };
        assert!(write_from(&MadeUp::new(1), &disk, &mut context).is_err());
        assert!(generations(&disk).expect("lists").is_empty());
    }
}

#[test]
fn old_checkpoints_go_and_needed_ones_stay() {
    let disk = SimulatedDisk::new(7);
    for generation in 1..=6 {
        write_made_up(&disk, generation as u8, generation, 1).expect("writes");
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
        let mut reader = BlockReader::new(&header, body, Xid(settled)).expect("is whole");
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
        prop_assert!(BlockReader::new(&header, &bytes, Xid(settled)).is_err());
        let header = BlockHeader { body_crc: crc32c::crc32c(&bytes), ..header };
        let mut reader = BlockReader::new(&header, &bytes, Xid(settled)).expect("fits its checksum");
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
            tables: made_up,
            files: vec![FileEntry { number: 1, blocks: 2, bytes: numbers[0], digest: 3 }],
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
        if let Ok(read) = Manifest::from_bytes(&patched) {
            prop_assert_eq!(read.to_bytes().expect("memory"), patched);
        }
    }
}
