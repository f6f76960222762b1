//! The engine's rows, for a checkpoint.
//!
//! A row is walked pinned but unlatched, while transactions change it. What makes that right:
//! - Every record that ends at or before the redo position is marked on its row. The caller fixed
//!   the position first, and then all sessions that were logging finished.
//! - LSN and chain are read together (`Anchor::read_with_lsn`): the newest LOGGED version seen is
//!   the one the LSN speaks of, or that one was rolled back; then the file says so, for the next
//!   change must be logged whole after a restart, too: a standby may have the one that was rolled
//!   back on top.
//! - A row with an LSN at or before the base's is in the base's files as it is, so it need not be
//!   read. If it is marked a moment later, that is by a record after the redo position.
//! - Definitions are those of the moment at which they are copied. So replay must not make again
//!   what was made and gone in between. The position up to which everything logged was marked by
//!   then goes along (`Manifest::defined`).
//! - Replay skips what the LSN says the row has. So a row without versions is written too if its
//!   LSN is after the redo position. Its deletion, and perhaps its row id's next use, is yet to be
//!   replayed.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::block::{BlockBuilder, VersionEntry};
use super::files::read_manifest;
use super::manifest::{IndexEntry, Manifest, TableEntry};
use super::reuse::Counts;
use super::write::{CheckpointContext, Definitions, RowSource, Written, write_from};
use crate::disk::Disk;
use crate::engine::Engine;
use crate::errors::EngineError;
use crate::ids::{IndexId, Lsn, RowId, TableId, Xid};
use crate::row::{Anchor, TombstoneNote, VersionRef, flags, prefetch_version};
use crate::session::Session;
use crate::table::{IndexRef, TableRef, Walk};
use crate::transaction::LocksOf;

/// Row ids walked under one pin: retired memory waits no longer than that.
const ROW_IDS_PER_PIN: u64 = 1024;

/// Row ids between the one whose row is read and the one whose version is asked for: rows of a
/// table that changes lie scattered.
const ROW_IDS_AHEAD: u64 = 8;

/// Pause between checks of a session that is logging.
const LOGGING_POLL: Duration = Duration::from_micros(100);

/// Writes a checkpoint of the engine. `context.redo` is fixed already; see `CheckpointContext`.
///
/// Of each row: the newest logged version and older ones down to the first that is known to be
/// committed by a finished transaction; a row whose such first version is a tombstone on top is
/// absent.
pub fn write(
    session: &Session,
    disk: &dyn Disk,
    context: &mut CheckpointContext<'_>,
) -> Result<Written, EngineError> {
    context.progress.begin(context.generation, context.redo.0);
    // Before the wait for sessions that are logging: behind it all of these records are marked.
    let defined = session.engine().last_lsn();
    let round = begin_round(session.engine())?;
    let (base, base_lost) = read_base(session.engine(), disk);
    let mut source = EngineSource::collect(session, context.redo, defined, context.finished_below)?;
    if !context.is_final {
        source.leave_unlogged_rows();
    }
    let mut written = write_from(&source, disk, context, base.as_ref())?;
    written.base_lost = base_lost;
    session.engine().set_base(context.generation, round);
    Ok(written)
}

/// From here on changes count for the next checkpoint; those of before are all marked on their rows
/// and ranges.
pub(crate) fn begin_round(engine: Engine) -> Result<u64, EngineError> {
    let round = engine.begin_round();
    engine.wait_for_logging_sessions(|| crate::sync::sleep(LOGGING_POLL))?;
    Ok(round)
}

/// The manifest of the generation whose ranges may be taken over, or why there is none although
/// there should be.
pub(crate) fn read_base(engine: Engine, disk: &dyn Disk) -> (Option<Manifest>, Option<String>) {
    match engine.base().map(|(base, _)| read_manifest(disk, base)) {
        None => (None, None),
        Some(Ok(manifest)) => (Some(manifest), None),
        // What cannot be read must not be referred to; writing everything is always right.
        Some(Err(error)) => (None, Some(error.to_string())),
    }
}

/// See the module.
pub(crate) struct EngineSource<'a> {
    engine: Engine,
    redo: Lsn,
    defined: Lsn,
    finished_below: Xid,
    /// Changes count since this round.
    base_round: u64,
    entries: Vec<TableEntry>,
    next_table: TableId,
    next_index: IndexId,
    locks: Vec<LocksOf>,
    /// Keeps the storages alive, dropped or not, until everything of theirs is written. Then the
    /// reclaimer may free what was dropped, however long the others take. In the order of
    /// `entries`.
    walks: Vec<Mutex<Option<Walk<'a>>>>,
}

// SAFETY: threads get at storages through `walks`, which are atomics, and let go of them there: a
// count in shared memory that any thread may lower. A storage stays alive until its walk is taken
// out, after the last use (`release`).
unsafe impl Sync for EngineSource<'_> {}

/// The xid in a definition's word, if a checkpoint may name it: 0 for none, None if not logged.
fn logged(xid: u64, lsn: u64) -> Option<Xid> {
    (xid == 0 || lsn != 0).then_some(Xid(xid))
}

fn index_entry(index: IndexRef) -> Result<Option<IndexEntry>, EngineError> {
    let storage = index.storage();
    let creator = storage.created.load(Ordering::Acquire);
    let Some(creator) = logged(creator, storage.created_lsn.load(Ordering::Acquire)) else {
        return Ok(None);
    };
    let dropper = storage.dropped.load(Ordering::Acquire);
    Ok(Some(IndexEntry {
        id: index.id(),
        creator,
        dropper: logged(dropper, storage.dropped_lsn.load(Ordering::Acquire)).unwrap_or(Xid(0)),
        definition: crate::key::IndexDefinition::from_bytes(index.definition_bytes())?,
    }))
}

fn table_entry(table: TableRef) -> Result<Option<TableEntry>, EngineError> {
    if !table.persistence().logs_definitions() {
        return Ok(None);
    }
    let storage = table.storage();
    let creator = storage.created.load(Ordering::Acquire);
    let Some(creator) = logged(creator, storage.created_lsn.load(Ordering::Acquire)) else {
        return Ok(None);
    };
    let dropper = storage.dropped.load(Ordering::Acquire);
    let mut indexes = Vec::new();
    for index in table.all_indexes() {
        indexes.extend(index_entry(index)?);
    }
    Ok(Some(TableEntry {
        id: table.id(),
        key: table.key(),
        persistence: table.persistence(),
        creator,
        dropper: logged(dropper, storage.dropped_lsn.load(Ordering::Acquire)).unwrap_or(Xid(0)),
        row_ids_end: table.row_ids_end(),
        rows: 0,
        indexes,
        ranges: Vec::new(),
    }))
}

impl<'a> EngineSource<'a> {
    /// Keeps all storages alive and copies their definitions. Every record up to `defined` is
    /// marked.
    pub(crate) fn collect(
        session: &'a Session,
        redo: Lsn,
        defined: Lsn,
        finished_below: Xid,
    ) -> Result<Self, EngineError> {
        let catalog = session.catalog();
        let collected = RefCell::new((Vec::new(), None));
        // The closure runs under the catalog's latch, so no index is freed while it is read.
        let walks = catalog.hold_where(|table| {
            let mut collected = collected.borrow_mut();
            match table_entry(table) {
                Ok(Some(entry)) => {
                    collected.0.push(entry);
                    true
                }
                Ok(None) => false,
                Err(error) => {
                    collected.1 = Some(error);
                    false
                }
            }
        });
        let (mut entries, failure) = collected.into_inner();
        if let Some(error) = failure {
            return Err(error);
        }
        entries.sort_by_key(|entry| entry.id);
        // After the tables: an id below these that is not among them was dropped, or its creation
        // is yet to be replayed.
        let next_table = TableId(catalog.next_table_id.load(Ordering::Acquire));
        let next_index = IndexId(catalog.next_index_id.load(Ordering::Acquire));
        Ok(Self {
            engine: session.engine(),
            redo,
            defined,
            finished_below,
            base_round: session.engine().base().map_or(0, |(_, round)| round),
            entries,
            next_table,
            next_index,
            locks: session.copy_kept_locks()?,
            walks: walks
                .into_iter()
                .map(|walk| Mutex::new(Some(walk)))
                .collect(),
        })
    }

    /// Tables whose rows are not logged are reported as empty ones.
    pub(crate) fn leave_unlogged_rows(&mut self) {
        let is_unlogged = |entry: &&mut TableEntry| !entry.persistence.logs_rows();
        for entry in self.entries.iter_mut().filter(is_unlogged) {
            entry.forget_rows();
        }
    }

    fn walk_of(&self, id: TableId) -> Option<MutexGuard<'_, Option<Walk<'a>>>> {
        let position = self.entries.binary_search_by_key(&id, |entry| entry.id);
        let walk = self.walks.get(position.ok()?)?;
        Some(walk.lock().unwrap_or_else(|lock| lock.into_inner()))
    }

    fn table(&self, id: TableId) -> Result<TableRef, EngineError> {
        let walk = self.walk_of(id);
        let table = walk.and_then(|walk| walk.as_ref().map(Walk::table));
        table.ok_or(EngineError::Corrupt {
            what: "a checkpoint lost one of its tables",
        })
    }
}

impl RowSource for EngineSource<'_> {
    type Walker<'b>
        = Session
    where
        Self: 'b;

    fn definitions(&self) -> Result<Definitions, EngineError> {
        Ok(Definitions {
            tables: self.entries.clone(),
            next_table: self.next_table,
            next_index: self.next_index,
            defined: self.defined,
            locks: self.locks.clone(),
        })
    }

    fn has_changed(&self, table: TableId, first: RowId) -> Result<bool, EngineError> {
        Ok(self.table(table)?.has_changed(first, self.base_round))
    }

    fn was_reformed(&self, table: TableId) -> Result<bool, EngineError> {
        Ok(self.table(table)?.was_reformed(self.base_round))
    }

    fn count(
        &self,
        table: TableId,
        row_ids: Range<RowId>,
        above: &[Lsn],
    ) -> Result<Counts, EngineError> {
        let table = self.table(table)?;
        let mut counts = Counts {
            above: vec![0; above.len()],
            live: 0,
        };
        for row_id in row_ids.start.0..row_ids.end.0 {
            let Some(anchor) = table.anchor(RowId(row_id)) else {
                continue;
            };
            counts.live += u64::from(anchor.head().has_chain());
            let lsn = anchor.lsn();
            let is_above = above.iter().take_while(|above| lsn > **above);
            let reached = is_above.count();
            for count in &mut counts.above[..reached] {
                *count += 1;
            }
        }
        Ok(counts)
    }

    fn walker(&self) -> Result<Session, EngineError> {
        self.engine.join()
    }

    fn walk(
        &self,
        session: &mut Session,
        table: TableId,
        row_ids: Range<RowId>,
        since: Lsn,
        block: &mut BlockBuilder,
    ) -> Result<(RowId, u64), EngineError> {
        let table = self.table(table)?;
        // A table whose rows are not logged is walked when none of them changes: all of it counts.
        let wanted = if table.is_logged() { flags::LOGGED } else { 0 };
        let mut from = row_ids.start.0;
        let mut rows = 0;
        let mut versions: Vec<VersionRef> = Vec::new();
        while from < row_ids.end.0 {
            let _pin = session.memory().pin();
            let to = row_ids.end.0.min(from + ROW_IDS_PER_PIN);
            while from < to {
                let row_id = RowId(from);
                from += 1;
                let is_all = since == Lsn::NONE;
                let is_wanted = |anchor: &&Anchor| is_all || anchor.lsn() > since;
                if let Some(ahead) = table
                    .anchor(RowId(row_id.0 + ROW_IDS_AHEAD))
                    .filter(is_wanted)
                {
                    prefetch_version(ahead);
                }
                let Some(anchor) = table.anchor(row_id).filter(is_wanted) else {
                    continue;
                };
                let (lsn, rolled_back) = self.read_row(anchor, wanted, &mut versions);
                let live = match versions.first() {
                    // Among what was changed it says that older parts are wrong about the row.
                    None if is_all && lsn <= self.redo => continue,
                    None => false,
                    Some(newest) => !newest.is_tombstone(),
                };
                rows += u64::from(live);
                match &versions[..] {
                    [one] => block.row(row_id, lsn, &[entry(one, rolled_back)])?,
                    many => {
                        let mut entries: Vec<_> =
                            many.iter().map(|version| entry(version, false)).collect();
                        if let Some(newest) = entries.first_mut() {
                            newest.rolled_back = rolled_back;
                        }
                        block.row(row_id, lsn, &entries)?;
                    }
                }
                if block.is_full() {
                    return Ok((RowId(from), rows));
                }
            }
        }
        Ok((row_ids.end, rows))
    }

    fn release(&self, table: TableId) {
        let walk = self.walk_of(table).and_then(|mut walk| walk.take());
        drop(walk);
    }
}

fn entry(version: &VersionRef, rolled_back: bool) -> VersionEntry<'_> {
    let tombstone = version.is_tombstone();
    let is_empty = tombstone && TombstoneNote::of(version.body()) == TombstoneNote::NONE;
    VersionEntry {
        xid: version.xid(),
        committed: version.flags() & flags::COMMITTED != 0,
        tombstone,
        rolled_back,
        body: if is_empty { &[] } else { version.body() },
    }
}

impl EngineSource<'_> {
    /// The versions of a row that a checkpoint has to hold, newest first, its LSN, and whether that
    /// is the LSN of a later change that was rolled back. Versions without the flags `wanted` are
    /// passed over. The caller is pinned.
    fn read_row(
        &self,
        anchor: &Anchor,
        wanted: u32,
        versions: &mut Vec<VersionRef>,
    ) -> (Lsn, bool) {
        let mut rolled_back = false;
        let lsn = anchor.read_with_lsn(|| {
            versions.clear();
            rolled_back = false;
            let mut at = anchor.head().version();
            while let Some(version) = at {
                at = version.next();
                let now = version.flags();
                if now & wanted != wanted || now & (flags::ABORTED | flags::LOCK_ONLY) != 0 {
                    rolled_back |= versions.is_empty() && now & flags::LOGGED != 0;
                    continue;
                }
                let newer = versions.last();
                if newer.is_some_and(|newer| version.is_former_image_of(*newer)) {
                    continue;
                }
                versions.push(version);
                if now & flags::COMMITTED != 0 && version.xid() < self.finished_below {
                    break;
                }
            }
            rolled_back |= anchor.needs_full_image();
        });
        // What only says that there is no row needs no version: no snapshot sees anything below.
        if let Some(oldest) = versions.last()
            && oldest.is_tombstone()
        {
            let now = oldest.flags();
            if now & flags::COMMITTED != 0 && oldest.xid() < self.finished_below {
                versions.pop();
            }
        }
        (lsn, rolled_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{ArenaOptions, HugePages, Memory, Region};
    use std::sync::atomic::{AtomicBool, AtomicU64};

    /// Once a round has begun no session is marking for an older one. Such a mark could come after
    /// the walk, and the next checkpoint would take the range for unchanged.
    #[test]
    fn who_marks_for_an_older_round_is_waited_for() {
        const ROUNDS: u64 = 20_000;
        let region = Region::create(64 << 20, HugePages::Off).expect("memory");
        // SAFETY: the region is fresh and outlives the engine.
        let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) };
        let engine = Engine::format(memory.expect("formats")).expect("formats");
        let marking = AtomicU64::new(0);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let session = engine.join().expect("joins");
                while !ended.load(Ordering::Relaxed) {
                    session.begin_logging();
                    marking.store(engine.round(), Ordering::Release);
                    std::hint::spin_loop();
                    marking.store(0, Ordering::Release);
                    session.end_logging();
                    std::hint::spin_loop();
                }
            });
            let mut late = None;
            for _ in 0..ROUNDS {
                let round = begin_round(engine).expect("nothing is replayed");
                let now = marking.load(Ordering::Acquire);
                if now != 0 && now < round {
                    late = Some((now, round));
                    break;
                }
            }
            ended.store(true, Ordering::Relaxed);
            assert_eq!(late, None, "a mark for an older round");
        });
    }
}
