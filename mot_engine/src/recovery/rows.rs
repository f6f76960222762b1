//! Puts a checkpoint's rows into their tables, and collects the keys of their indexes.

use std::sync::atomic::Ordering;

use super::load::{Known, Loading, write_version};
use crate::checkpoint::{
    BlockPlace, BlockReader, Damage, OpenRows, VersionEntry, read_block, units_of,
};
use crate::clock::Clock;
use crate::engine::{Engine, Progress};
use crate::errors::EngineError;
use crate::ids::{Lsn, RowId};
use crate::index::{Allowance, Gatherer, Sorter};
use crate::memory::Urgency;
use crate::row::{Anchor, EMPTY_BODY, Head, STAMP_BYTES, flags};
use crate::session::Session;
use crate::table::TableRef;
use crate::threads::on_threads;

/// Threads take one block after the other, or the blocks of a range's parts together. How many live
/// rows there are, and how many were read: of a row that several parts have the newest part's
/// counts.
pub(super) fn load(
    engine: Engine,
    files: &[OpenRows],
    blocks: &[BlockPlace],
    tables: &[Loading],
    known: Known<'_>,
    allowance: &Allowance,
    threads: usize,
) -> Result<(u64, u64), EngineError> {
    let progress = engine.progress();
    let together = units_of(blocks);
    let results = on_threads(threads, together.len(), |_, units| {
        let session = engine.join_for_recovery()?;
        let mut loader = Loader::new(&session, known);
        let mut gatherers: Vec<Option<Vec<Gatherer<'_>>>> = Vec::new();
        gatherers.resize_with(tables.len(), || None);
        let mut sorter = Sorter::default();
        let mut body = Vec::new();
        let mut rows = 0;
        let mut taken: &[BlockPlace] = &[];
        loop {
            if taken.is_empty() {
                match units.take() {
                    Some(unit) => taken = together[unit],
                    None => break,
                }
            }
            let Some((place, rest)) = taken.split_first() else {
                continue;
            };
            taken = rest;
            if progress.load_is_unwanted.load(Ordering::Relaxed) != 0 {
                return Err(EngineError::Cancelled);
            }
            read_block(files, place, &mut body)?;
            let damaged = |damage: Damage| EngineError::Damaged {
                file: files[place.file].0.clone(),
                what: damage.0.to_owned(),
            };
            let position = tables
                .binary_search_by_key(&place.header.table, |loading| loading.table.id())
                .map_err(|_| damaged(Damage("a block is of a table the manifest does not name")))?;
            let loading = &tables[position];
            let gatherers = match &mut gatherers[position] {
                Some(gatherers) => gatherers,
                none => none.insert(gatherers_of(&session, loading, allowance)?),
            };
            load_block(&mut loader, place, &body, &loading.table, gatherers).map_err(|error| {
                match error {
                    RowError::Engine(error) => error,
                    RowError::Damaged(damage) => damaged(damage),
                }
            })?;
            for gatherer in gatherers {
                gatherer.end(place.header.first_row_id, &mut sorter);
            }
            progress
                .bytes_loaded
                .fetch_add(place.header.body_bytes, Ordering::Relaxed);
            rows += loader.count_block(&loading.table, progress);
        }
        Ok((rows, loader.rows_read))
    })?;
    let add = |sum: (u64, u64), one: &(u64, u64)| (sum.0 + one.0, sum.1 + one.1);
    Ok(results.iter().fold((0, 0), add))
}

fn gatherers_of<'a>(
    session: &'a Session,
    loading: &'a Loading,
    allowance: &'a Allowance,
) -> Result<Vec<Gatherer<'a>>, EngineError> {
    let of = |(index, harvest)| Gatherer::new(session, loading.table, index, harvest, allowance);
    let indexes = loading.indexes.iter();
    indexes
        .map(|(index, harvest)| of((*index, harvest)))
        .collect()
}

fn load_block<'a>(
    loader: &mut Loader<'_>,
    place: &BlockPlace,
    body: &'a [u8],
    table: &TableRef,
    gatherers: &mut [Gatherer<'_>],
) -> Result<(), RowError> {
    let mut reader = BlockReader::new(place, body).map_err(RowError::Damaged)?;
    for gatherer in &mut *gatherers {
        // A row takes several bytes at least.
        gatherer.begin((place.header.rows as usize).min(body.len()));
    }
    let mut versions: Vec<VersionEntry<'a>> = Vec::new();
    while let Some((row_id, lsn)) = reader.next(&mut versions).map_err(RowError::Damaged)? {
        let Some(anchor) = loader.row(table, row_id, lsn, &versions, place.is_older)? else {
            continue;
        };
        for gatherer in &mut *gatherers {
            gatherer.row(row_id, anchor)?;
        }
    }
    Ok(())
}

enum RowError {
    Engine(EngineError),
    Damaged(Damage),
}

impl From<EngineError> for RowError {
    fn from(error: EngineError) -> Self {
        RowError::Engine(error)
    }
}

/// One thread's way of putting rows in.
struct Loader<'a> {
    session: &'a Session,
    known: Known<'a>,
    /// Live rows of all blocks, put in or not.
    rows_read: u64,
    /// Of the block.
    rows: u64,
    row_bytes: i64,
}

impl<'a> Loader<'a> {
    fn new(session: &'a Session, known: Known<'a>) -> Loader<'a> {
        Loader {
            session,
            known,
            rows: 0,
            rows_read: 0,
            row_bytes: 0,
        }
    }

    /// Counts the rows of the block that was put in; how many there were.
    fn count_block(&mut self, table: &TableRef, progress: &Progress) -> u64 {
        let rows = std::mem::take(&mut self.rows);
        let bytes = std::mem::take(&mut self.row_bytes);
        let counters = table.counters();
        counters.rows.fetch_add(rows as i64, Ordering::Relaxed);
        counters.row_bytes.fetch_add(bytes, Ordering::Relaxed);
        progress.rows_loaded.fetch_add(rows, Ordering::Relaxed);
        rows
    }

    /// Puts a row in; its anchor. None: the block is of an older part, and a newer one had the row.
    fn row<'t>(
        &mut self,
        table: &'t TableRef,
        row_id: RowId,
        lsn: Lsn,
        versions: &[VersionEntry<'_>],
        is_older: bool,
    ) -> Result<Option<&'t Anchor>, RowError> {
        if row_id >= table.row_ids_end() {
            return Err(RowError::Damaged(Damage(
                "a row lies beyond its table's end",
            )));
        }
        let anchor = match table.anchor(row_id) {
            Some(anchor) => anchor,
            None => {
                let directory = &table.storage().directory;
                directory.ensure(&self.session.local, row_id, Urgency::Ordinary)?;
                table.anchor(row_id).expect("just ensured")
            }
        };
        let newest = versions.first().filter(|newest| !newest.tombstone);
        self.rows_read += u64::from(newest.is_some());
        if is_older && anchor.lsn() != Lsn::NONE {
            return Ok(None);
        }
        let empty = anchor.head();
        if !empty.is_empty() || anchor.lsn() != Lsn::NONE {
            return Err(RowError::Damaged(Damage("a row occurs twice")));
        }
        let mut head = empty;
        for entry in versions.iter().rev() {
            let (body, kind) = match entry {
                VersionEntry {
                    tombstone: false, ..
                } => (entry.body, 0),
                VersionEntry { body: [], .. } => (&EMPTY_BODY[..], flags::TOMBSTONE),
                _ => (entry.body, flags::TOMBSTONE),
            };
            let version = write_version(
                self.session,
                entry.xid,
                body,
                kind | flags::LOGGED
                    | flags::KEYS_CHANGED
                    | if entry.committed || self.known.did_commit(entry.xid) {
                        flags::COMMITTED
                    } else {
                        0
                    },
            )?;
            version.set_next(head);
            head = head.with_address(version.address());
        }
        if versions.len() > 1 {
            head = head.with_flags(Head::KEYS_MOVED);
        }
        if versions.first().is_some_and(|newest| newest.rolled_back) {
            head = head.with_flags(Head::FULL_IMAGE_NEXT);
        }
        anchor.set_lsn(lsn);
        if !anchor.publish(empty, head) {
            return Err(RowError::Damaged(Damage("a row occurs twice")));
        }
        if let Some(newest) = newest {
            self.rows += 1;
            self.row_bytes += (newest.body.len() + STAMP_BYTES) as i64;
        }
        Ok(Some(anchor))
    }
}
