//! What a checkpoint writes of each range, and what it takes over from the files of the base
//! generation.
//!
//! Why an unchanged range may be taken over, and why of a changed one only the rows with
//! later LSNs are written: docs/decisions/001-incremental-checkpoints.md.
//!
//! Contract: of every range of every table either all its parts in the base are in `kept`, or some
//! of the oldest are and what they lack is in `units`, once.

use std::collections::HashMap;
use std::ops::Range;

use super::manifest::{FileEntry, Manifest, RangeEntry, TableEntry};
use super::pace::Pace;
use super::write::RowSource;
use crate::errors::EngineError;
use crate::ids::{Lsn, RowId, TableId};
use crate::table::RANGE_ROW_IDS;

/// A file of which less than this is still referenced is written anew: so files hold at most twice
/// what is referenced.
const LIVE_PERCENT_MIN: u64 = 50;
/// More files than this are not referenced: a start opens all of them, and a base backup should
/// find them in one directory read, so that none comes or goes between.
const FILES_MAX: usize = if cfg!(test) { 8 } else { 128 };
/// Once there would be more, the least referenced ones are written together until so many are left,
/// so that it does not happen again at once.
const FILES_AFTER_MERGE: usize = FILES_MAX / 2;
/// A part that has at most so many times the rows of the one that follows is written together with
/// it. So of a range's parts each has more than so many times the rows of the next: they are few,
/// and together less than twice the range. Tests have few rows and want many parts.
pub(super) const PART_RATIO: u64 = if cfg!(test) { 1 } else { 2 };

/// Rows to write: of a range.
pub(super) struct Unit {
    /// Position of its table.
    pub(super) table: usize,
    pub(super) number: u32,
    pub(super) row_ids: Range<RowId>,
    /// Only rows with a later LSN; NONE: all.
    pub(super) since: Lsn,
    /// Rows with a later LSN, and live rows of the range, both about; 0 if all are written.
    pub(super) rows: Counts,
}

/// Rows of a range, as their anchors say.
#[derive(Clone, Default)]
pub struct Counts {
    /// Rows with an LSN above each of those asked for.
    pub above: Vec<u64>,
    /// Rows that there are, deleted ones among them until they are swept.
    pub live: u64,
}

impl Unit {
    /// About how many rows will be written.
    pub(super) fn rows_to_write(&self) -> u64 {
        let most = self.row_ids.end.0 - self.row_ids.start.0;
        self.rows.above.last().copied().unwrap_or(most)
    }
}

/// What is to be written and what is not.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) units: Vec<Unit>,
    /// Parts of ranges taken over, with the position of their table; their files are positions in
    /// `files`.
    pub(super) kept: Vec<(usize, RangeEntry)>,
    /// Files of older generations that stay referenced.
    pub(super) files: Vec<FileEntry>,
    pub(super) bytes_kept: u64,
    /// Ranges of which nothing is written.
    pub(super) ranges_kept: u64,
}

/// Whether a checkpoint at `redo` may refer to files of `base`.
pub(super) fn is_usable(base: &Manifest, generation: u64, redo: Lsn) -> bool {
    base.generation < generation
        && base.redo <= redo
        && u64::from(base.range_row_ids) == RANGE_ROW_IDS
        && base.files.iter().all(|file| file.whole.is_none())
}

/// A range, and how many of its parts in the base are kept.
struct Place<'a> {
    table: usize,
    number: u32,
    row_ids: Range<RowId>,
    parts: &'a [RangeEntry],
    kept: usize,
    /// What is written of it.
    rest: Option<(Lsn, Counts)>,
}

/// Reads every range of `tables`, as long as `pace` says that it is wanted. `base` is usable.
pub(super) fn plan<S: RowSource>(
    source: &S,
    tables: &[TableEntry],
    base: Option<&Manifest>,
    pace: &Pace<'_>,
) -> Result<Plan, EngineError> {
    let base_tables = base.map_or(&[][..], |base| &base.tables[..]);
    let base_tables: HashMap<TableId, &TableEntry> =
        base_tables.iter().map(|table| (table.id, table)).collect();
    // Rows that have no later LSN are in the base as they are. Between its flushed and its redo
    // position is no record of ours, but if a crash lost what is there, records of ours may have
    // taken its place since.
    let base_lsn = base.map_or(Lsn::NONE, |base| base.redo.min(base.flushed));
    let mut places = Vec::new();
    for (position, table) in tables.iter().enumerate() {
        let old = base_tables.get(&table.id);
        // Changes of rows that are not logged are noted nowhere: none of their ranges is taken
        // over.
        // Nor where rows were changed without another LSN.
        let may_be_kept = table.persistence.logs_rows() && !source.was_reformed(table.id)?;
        let old = old.filter(|_| may_be_kept);
        let mut old = old.map_or(&[][..], |old| &old.ranges[..]);
        for number in 0..range_count(table.row_ids_end)? {
            pace.is_wanted()?;
            old = &old[old.partition_point(|part| part.number < number)..];
            let (parts, later) = old.split_at(old.partition_point(|part| part.number == number));
            old = later;
            let mut place = Place {
                table: position,
                number,
                row_ids: row_ids_of(number, table.row_ids_end),
                parts,
                kept: parts.len(),
                rest: None,
            };
            let open_from = parts.last().and_then(|newest| newest.open_from);
            if parts.is_empty()
                || open_from.is_some()
                || source.has_changed(table.id, place.row_ids.start)?
            {
                // What is open must be written again, too.
                let before = open_from.map_or(base_lsn, |lsn| Lsn(lsn.0.saturating_sub(1)));
                place.write_after(source, table.id, parts.len(), base_lsn.min(before))?;
            }
            places.push(place);
        }
    }
    let files = base.map_or(&[][..], |base| &base.files[..]);
    let leaving = crowded_out(places.iter().flat_map(Place::kept_parts), files);
    for place in &mut places {
        pace.is_wanted()?;
        let leaves = |part: &RangeEntry| {
            part.blocks > 0
                && leaving
                    .get(part.file as usize)
                    .is_none_or(|leaving| *leaving)
        };
        if let Some(first) = place.kept_parts().position(leaves) {
            let since = place.rest.as_ref().map_or(base_lsn, |(since, _)| *since);
            place.write_after(source, tables[place.table].id, first, since)?;
        }
    }
    Ok(Plan::of(places, files))
}

impl<'a> Place<'a> {
    fn kept_parts(&self) -> impl Iterator<Item = &'a RangeEntry> + use<'a> {
        self.parts[..self.kept].iter()
    }

    /// Lets only the first `kept` parts stay at most, and what they lack be written: all rows with
    /// an LSN above `since`, and those that are in the other parts. Parts that are not much larger
    /// than what is written after them are written with it.
    fn write_after<S: RowSource>(
        &mut self,
        source: &S,
        table: TableId,
        kept: usize,
        since: Lsn,
    ) -> Result<(), EngineError> {
        // Where the rows begin that have to be written if the first 1, 2, ... `kept` parts stay. It
        // rises, as the parts' own does.
        let sinces: Vec<Lsn> = (1..=kept)
            .map(|first| {
                self.parts
                    .get(first)
                    .map_or(since, |part| part.since.min(since))
            })
            .collect();
        self.kept = 0;
        self.rest = Some((Lsn::NONE, Counts::default()));
        if sinces.last().is_none_or(|since| *since == Lsn::NONE) {
            return Ok(());
        }
        let mut rows = source.count(table, self.row_ids.clone(), &sinces)?;
        let is_large = |stays: &usize| {
            u64::from(self.parts[stays - 1].entries) > PART_RATIO * rows.above[stays - 1]
        };
        // From the oldest on: rows marked while a part was written may have made it larger than the
        // count that let the one before it stay.
        let stay = (1..=kept).take_while(is_large).count();
        if stay > 0 {
            self.kept = stay;
            rows.above.truncate(stay);
            let is_idle = stay == self.parts.len() && rows.above[stay - 1] == 0;
            self.rest = (!is_idle).then_some((sinces[stay - 1], rows));
        }
        Ok(())
    }
}

impl Plan {
    fn of(places: Vec<Place<'_>>, files: &[FileEntry]) -> Plan {
        let mut plan = Plan::default();
        let mut positions: Vec<Option<u32>> = vec![None; files.len()];
        for place in places {
            for part in place.kept_parts() {
                let mut part = *part;
                let file = std::mem::take(&mut part.file) as usize;
                if part.blocks > 0 {
                    part.file = *positions[file].get_or_insert_with(|| {
                        plan.files.push(files[file]);
                        plan.files.len() as u32 - 1
                    });
                }
                plan.bytes_kept += part.bytes;
                plan.kept.push((place.table, part));
            }
            match place.rest {
                Some((since, rows)) => plan.units.push(Unit {
                    table: place.table,
                    number: place.number,
                    row_ids: place.row_ids,
                    since,
                    rows,
                }),
                None => plan.ranges_kept += 1,
            }
        }
        plan
    }
}

fn range_count(row_ids_end: RowId) -> Result<u32, EngineError> {
    u32::try_from(row_ids_end.0.div_ceil(RANGE_ROW_IDS)).map_err(|_| EngineError::Corrupt {
        what: "a table has more row ids than there can be",
    })
}

fn row_ids_of(number: u32, row_ids_end: RowId) -> Range<RowId> {
    let start = u64::from(number) * RANGE_ROW_IDS;
    RowId(start)..row_ids_end.min(RowId(start + RANGE_ROW_IDS))
}

/// For each file whether what is kept in it is to be written anew: too little of it is referenced,
/// or there are too many files.
fn crowded_out<'a>(kept: impl Iterator<Item = &'a RangeEntry>, files: &[FileEntry]) -> Vec<bool> {
    let mut live = vec![0u64; files.len()];
    for part in kept.filter(|part| part.blocks > 0) {
        if let Some(live) = live.get_mut(part.file as usize) {
            *live += part.bytes;
        }
    }
    let mut leaving: Vec<bool> = live
        .iter()
        .zip(files)
        .map(|(live, file)| {
            u128::from(*live) * 100 < u128::from(file.bytes) * u128::from(LIVE_PERCENT_MIN)
        })
        .collect();
    let mut staying: Vec<usize> = (0..files.len()).filter(|file| !leaving[*file]).collect();
    if staying.len() >= FILES_MAX {
        staying.sort_unstable_by_key(|file| live[*file]);
        for file in &staying[..staying.len() - FILES_AFTER_MERGE] {
            leaving[*file] = true;
        }
    }
    leaving
}
