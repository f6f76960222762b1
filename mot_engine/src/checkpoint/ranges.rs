//! Writes ranges of rows: what each thread of a checkpoint does.
//!
//! A range is one thread's, and goes to its file, which the caller makes durable.

use std::sync::atomic::{AtomicU64, Ordering};

use super::block::BlockBuilder;
use super::manifest::{RangeEntry, TableEntry};
use super::pace::Pace;
use super::progress::CheckpointProgress;
use super::reuse::Unit;
use super::rows_file::RowsFile;
use super::write::RowSource;
use crate::disk::Disk;
use crate::errors::EngineError;
use crate::ids::{Lsn, Xid};
use crate::threads::NextUnit;

/// What the threads of a checkpoint share.
pub(super) struct Job<'a, 'b, 'd, S> {
    pub(super) source: &'a S,
    pub(super) disk: &'d dyn Disk,
    pub(super) generation: u64,
    pub(super) finished_below: Xid,
    pub(super) pace: &'a Pace<'b>,
    pub(super) progress: &'a CheckpointProgress,
    pub(super) tables: &'a [TableEntry],
    pub(super) units: &'a [Unit],
    pub(super) left: &'a Left,
}

/// What a thread has written.
pub(super) struct ThreadResult<'a> {
    /// Yet to be made durable.
    pub(super) file: RowsFile<'a>,
    pub(super) lsn_max: Lsn,
    /// Makers of versions not known to be committed.
    pub(super) open: Vec<Xid>,
    /// Ranges with the position of their table; their file is `file`.
    pub(super) ranges: Vec<(usize, RangeEntry)>,
}

impl<'d, S: RowSource> Job<'_, '_, 'd, S> {
    /// Writes a range to a file, block by block.
    fn write_range(
        &self,
        unit: &Unit,
        walker: &mut S::Walker<'_>,
        (block, file): (&mut BlockBuilder, &mut RowsFile<'d>),
        next: &NextUnit,
    ) -> Result<RangeEntry, EngineError> {
        let table = self.tables[unit.table].id;
        let mut range = RangeEntry {
            number: unit.number,
            file: 0,
            first_block: file.blocks,
            blocks: 0,
            offset: file.entry.bytes,
            bytes: 0,
            rows: 0,
            range_rows: 0,
            since: unit.since,
            open_from: None,
            entries: 0,
            digest: 0,
        };
        let mut start = unit.row_ids.start;
        while start < unit.row_ids.end && !next.is_stopped() {
            block.begin(table);
            let rest = start..unit.row_ids.end;
            let walked = self.source.walk(walker, table, rest, unit.since, block)?;
            let (reached, met) = walked;
            start = reached;
            range.rows += met;
            if block.is_empty() {
                continue;
            }
            range.entries += block.rows();
            range.open_from = match (range.open_from, block.open_from()) {
                (Some(before), Some(now)) => Some(before.min(now)),
                (before, now) => before.or(now),
            };
            let before = file.entry.bytes;
            range.digest = file.append(block, range.digest)?;
            let bytes = file.entry.bytes - before;
            self.progress
                .bytes_written
                .fetch_add(bytes, Ordering::Relaxed);
            self.pace.wrote(bytes, next)?;
        }
        range.blocks = file.blocks - range.first_block;
        range.bytes = file.entry.bytes - range.offset;
        range.range_rows = match unit.since {
            Lsn::NONE => range.rows,
            _ => unit.rows.live,
        };
        Ok(range)
    }

    /// Writes ranges to a file until there are no more.
    pub(super) fn work(
        &self,
        number: u32,
        next: &NextUnit,
    ) -> Result<ThreadResult<'d>, EngineError> {
        let mut file = RowsFile::new(self.disk, self.generation, number, self.finished_below);
        let mut walker = self.source.walker()?;
        let mut block = BlockBuilder::new(self.finished_below);
        let mut ranges = Vec::new();
        while let Some(position) = next.take() {
            let (before, all) = (position as u64, self.units.len() as u64);
            self.pace.before_unit(before, all, next)?;
            let unit = &self.units[position];
            let table = self.tables[unit.table].id;
            let range = self.write_range(unit, &mut walker, (&mut block, &mut file), next)?;
            ranges.push((unit.table, range));
            self.progress.ranges_done.fetch_add(1, Ordering::Relaxed);
            if self.left.is_last(unit.table) {
                self.progress.tables_done.fetch_add(1, Ordering::Relaxed);
                self.source.release(table);
            }
        }
        Ok(ThreadResult {
            file,
            lsn_max: block.lsn_max(),
            open: block.take_open(),
            ranges,
        })
    }
}

/// How many ranges of each table are still to be written.
pub(super) struct Left(Vec<AtomicU64>);

impl Left {
    /// Tables without any are done.
    pub(super) fn new<S: RowSource>(
        source: &S,
        tables: &[TableEntry],
        units: &[Unit],
        progress: &CheckpointProgress,
    ) -> Self {
        let mut left = vec![0u64; tables.len()];
        for unit in units {
            left[unit.table] += 1;
        }
        let mut done = 0;
        for (table, left) in tables.iter().zip(&left) {
            if *left == 0 {
                done += 1;
                source.release(table.id);
            }
        }
        let (tables, ranges) = (tables.len() as u64, units.len() as u64);
        progress.tables_total.store(tables, Ordering::Relaxed);
        progress.tables_done.store(done, Ordering::Relaxed);
        progress.ranges_total.store(ranges, Ordering::Relaxed);
        Left(left.into_iter().map(AtomicU64::new).collect())
    }

    /// A range of the table is done; whether it was the last one. All that was read of the others
    /// was read before that.
    fn is_last(&self, table: usize) -> bool {
        self.0[table].fetch_sub(1, Ordering::AcqRel) == 1
    }
}
