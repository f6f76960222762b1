//! Files: what is written is read; blocks damaged at will. What the tests of faults, of manifests
//! and of reuse share.

mod copies;
mod faults;
mod manifests;
mod reuse;
mod upgraded;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::disk::Disk;
use crate::disk::simulated::SimulatedDisk;
use crate::errors::EngineError;
use crate::ids::{FileKey, IndexId, Lsn, RelationKey, RowId, TableId, Xid};
use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};
use crate::table::{Persistence, RANGE_ROW_IDS};
use crate::transaction::LocksOf;

const SYSTEM: u64 = 7;

/// Rows made up from their row id and the version at which they were last changed.
struct MadeUp {
    version: u8,
    /// What the base generation holds.
    base: u8,
    tables: Vec<TableEntry>,
}

/// Row ids of the tables.
const ROW_IDS: [(u64, u64); 3] = [(1, 30), (2, 0), (3, 7)];

/// Whether the range counts as changed at this version: at the first all do, later a third of them.
fn is_range_changed(version: u8, table: TableId, row_id: u64) -> bool {
    let mixed = u64::from(version) * 31 + table.0 * 7 + (row_id / RANGE_ROW_IDS) * 13;
    version == 1 || (mixed ^ (mixed >> 3)).is_multiple_of(3)
}

/// The newest version up to `version` at which the row was changed: in a changed range all are, one
/// of two, one of eight, or none.
fn changed_at(version: u8, table: TableId, row_id: u64) -> u8 {
    let is_changed = |version: &u8| {
        let of = u64::from(*version);
        let is_among = match (of + row_id / RANGE_ROW_IDS) % 4 {
            0 => true,
            1 => (row_id + of).is_multiple_of(2),
            2 => (row_id + of).is_multiple_of(8),
            _ => false,
        };
        *version == 1 || (is_among && is_range_changed(*version, table, row_id))
    };
    (1..=version).rev().find(is_changed).unwrap_or(0)
}

/// The redo position at which a version is complete; before it lie the LSNs of its changes.
fn redo_of(version: u8) -> Lsn {
    Lsn(u64::from(version) * 1000 + 999)
}

fn version_at(redo: Lsn) -> u8 {
    (redo.0 / 1000) as u8
}

fn definition() -> IndexDefinition {
    IndexDefinition {
        relation: 1234,
        file: FileKey::NONE,
        unique: true,
        nulls_not_distinct: false,
        columns: vec![KeyColumn {
            attnum: 1,
            kind: KeyKind::Int4,
            descending: false,
            nulls_first: false,
            nullable: false,
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

impl MadeUp {
    fn new(version: u8) -> MadeUp {
        let table = |id: u64, row_ids: u64| TableEntry {
            id: TableId(id),
            key: RelationKey::of_earlier_build(1, id as u32),
            persistence: Persistence::Logged,
            creator: Xid(0),
            dropper: Xid(if id == 2 { 99 } else { 0 }),
            row_ids_end: RowId(row_ids),
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
            tables: ROW_IDS.map(|(id, row_ids)| table(id, row_ids)).into(),
        }
    }

    fn body(&self, table: TableId, row_id: u64) -> Vec<u8> {
        let version = changed_at(self.version, table, row_id);
        vec![version ^ table.0 as u8; row_id as usize * 20]
    }

    fn lsn(&self, table: TableId, row_id: u64) -> Lsn {
        Lsn(u64::from(changed_at(self.version, table, row_id)) * 1000 + row_id)
    }
}

impl RowSource for MadeUp {
    type Walker<'a> = ();

    fn definitions(&self) -> Result<Definitions, EngineError> {
        Ok(Definitions {
            tables: self.tables.clone(),
            next_table: TableId(4),
            next_index: IndexId(4),
            defined: Lsn::NONE,
            locks: Vec::new(),
        })
    }

    fn has_changed(&self, table: TableId, first: RowId) -> Result<bool, EngineError> {
        let mut since = self.base + 1..=self.version;
        Ok(since.any(|version| is_range_changed(version, table, first.0)))
    }

    fn was_reformed(&self, _table: TableId) -> Result<bool, EngineError> {
        Ok(false)
    }

    fn count(
        &self,
        table: TableId,
        row_ids: Range<RowId>,
        above: &[Lsn],
    ) -> Result<Counts, EngineError> {
        assert!(above.is_sorted(), "{above:?}");
        let count = |above: &Lsn| {
            let row_ids = row_ids.start.0..row_ids.end.0;
            row_ids
                .filter(|row_id| self.lsn(table, *row_id) > *above)
                .count() as u64
        };
        Ok(Counts {
            above: above.iter().map(count).collect(),
            live: row_ids.end.0 - row_ids.start.0,
        })
    }

    fn walker(&self) -> Result<(), EngineError> {
        Ok(())
    }

    fn walk(
        &self,
        _walker: &mut (),
        table: TableId,
        row_ids: Range<RowId>,
        since: Lsn,
        block: &mut BlockBuilder,
    ) -> Result<(RowId, u64), EngineError> {
        // A few rows a block, so that files have several.
        let end = row_ids.end.0.min(row_ids.start.0 + 3);
        let mut rows = 0;
        for row_id in row_ids.start.0..end {
            if since != Lsn::NONE && self.lsn(table, row_id) <= since {
                continue;
            }
            rows += 1;
            let body = self.body(table, row_id);
            let version = VersionEntry {
                xid: Xid(1000 - row_id),
                committed: true,
                tombstone: false,
                rolled_back: false,
                body: &body,
            };
            block.row(RowId(row_id), self.lsn(table, row_id), &[version])?;
        }
        Ok((RowId(end), rows))
    }
}

/// Writes generation `generation` of `version` anew, or upon the base generation, whose version is
/// its number.
fn write_made_up(
    disk: &SimulatedDisk,
    version: u8,
    generation: u64,
    threads: usize,
    base: Option<u64>,
) -> Result<Written, EngineError> {
    let base = base.map(|base| read_manifest(disk, base)).transpose()?;
    let mut source = MadeUp::new(version);
    source.base = base.as_ref().map_or(0, |base| version_at(base.redo));
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
        redo: redo_of(version),
        generation,
        // Not the same for two generations.
        finished_below: Xid(60 + generation),
        is_final: false,
        threads: 1,
        pace: Pace::unlimited(),
        progress,
        outcomes: Box::leak(Box::new(|_: &[Xid]| Ok(Vec::new()))),
        flush: Box::leak(Box::new(move |lsn: Lsn| Ok(lsn.max(redo_of(version))))),
    }
}

/// Everything the newest checkpoint says, read as loading does. None if there is none.
fn read_all(disk: &SimulatedDisk) -> Result<Option<u8>, EngineError> {
    let Some(manifest) = newest(disk, SYSTEM, |_, _| true)? else {
        return Ok(None);
    };
    let (files, blocks) = blocks_of(disk, &manifest)?;
    let version = version_at(manifest.redo);
    let made_up = MadeUp::new(version);
    let mut rows = HashSet::new();
    let mut read = 0;
    for place in units_of(&blocks).concat() {
        let place = &place;
        let mut body = Vec::new();
        read_block(&files, place, &mut body)?;
        let damaged = |damage: Damage| EngineError::Damaged {
            file: files[place.file].0.clone(),
            what: damage.0.to_owned(),
        };
        let mut reader = BlockReader::new(place, &body).map_err(damaged)?;
        let mut versions = Vec::new();
        while let Some((row_id, lsn)) = reader.next(&mut versions).map_err(damaged)? {
            read += 1;
            if !rows.insert((place.header.table.0, row_id.0)) {
                assert!(place.is_older && place.continues, "a row occurs twice");
                continue;
            }
            assert_eq!(lsn, made_up.lsn(place.header.table, row_id.0));
            let expected = made_up.body(place.header.table, row_id.0);
            assert_eq!(versions.len(), 1);
            assert_eq!(versions[0].body, expected);
            assert_eq!(versions[0].xid, Xid(1000 - row_id.0));
        }
    }
    let all = ROW_IDS
        .into_iter()
        .flat_map(|(table, row_ids)| (0..row_ids).map(move |row_id| (table, row_id)));
    assert_eq!(rows, all.collect());
    assert_eq!(read, manifest.rows_in_files());
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
        assert!(written.flushed > Lsn(5_000));
        assert_eq!(read_all(&disk).expect("is whole"), Some(5));
        assert!(
            newest(&disk, SYSTEM, |_, redo| redo > redo_of(5))
                .expect("is whole")
                .is_none(),
            "not in the history"
        );
        assert!(matches!(
            newest(&disk, SYSTEM + 1, |_, _| true),
            Err(EngineError::OtherCluster { written_by: SYSTEM, own, .. }) if own == SYSTEM + 1
        ));
    }
}

/// Walkers that wait for each other at their first range: two threads or the test hangs.
struct Together {
    rows: MadeUp,
    both: Barrier,
}

impl RowSource for Together {
    type Walker<'a> = bool;

    fn definitions(&self) -> Result<Definitions, EngineError> {
        let mut definitions = self.rows.definitions()?;
        definitions.tables.truncate(1);
        Ok(definitions)
    }

    fn has_changed(&self, _table: TableId, _first: RowId) -> Result<bool, EngineError> {
        Ok(true)
    }

    fn was_reformed(&self, _table: TableId) -> Result<bool, EngineError> {
        Ok(false)
    }

    fn count(
        &self,
        table: TableId,
        row_ids: Range<RowId>,
        above: &[Lsn],
    ) -> Result<Counts, EngineError> {
        self.rows.count(table, row_ids, above)
    }

    fn walker(&self) -> Result<bool, EngineError> {
        Ok(false)
    }

    fn walk(
        &self,
        has_met: &mut bool,
        table: TableId,
        row_ids: Range<RowId>,
        since: Lsn,
        block: &mut BlockBuilder,
    ) -> Result<(RowId, u64), EngineError> {
        if !std::mem::replace(has_met, true) {
            self.both.wait();
        }
        self.rows.walk(&mut (), table, row_ids, since, block)
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
        finished_below in any::<u64>(),
        damage in (any::<prop::sample::Index>(), 1..=255_u8),
    ) {
        let mut block = BlockBuilder::new(Xid(finished_below));
        block.begin(TableId(9));
        let mut row_id = 0;
        for (step, lsn, versions) in &rows {
            row_id += step;
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
            block.row(RowId(row_id), Lsn(*lsn), &entries).expect("memory");
        }
        let (header, body) = block.finish(1, 2, 3);
        prop_assert_eq!(BlockHeader::from_bytes(&header.to_bytes()), Ok(header));
        let mut reader = BlockReader::of(&header, body, Xid(finished_below)).expect("is whole");
        let mut read = Vec::new();
        let mut row_id = 0;
        for (step, lsn, versions) in &rows {
            row_id += step;
            prop_assert_eq!(reader.next(&mut read), Ok(Some((RowId(row_id), Lsn(*lsn)))));
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
        prop_assert!(BlockReader::of(&header, &bytes, Xid(finished_below)).is_err());
        let header = BlockHeader { body_crc: crc32c::crc32c(&bytes), ..header };
        let mut reader = BlockReader::of(&header, &bytes, Xid(finished_below)).expect("fits its checksum");
        let mut count = 0;
        while let Ok(Some(_)) = reader.next(&mut read) {
            count += 1;
            prop_assert!(count <= header.rows);
        }
    }
}
