//! Which ranges a checkpoint writes, and which it takes over from the files of the base generation.
//!
//! Why a range that nobody changed may be taken over, and what "nobody changed" means: README.md.
//!
//! Contract: every range of every table is either in `units` or in `kept`, once.

use std::collections::HashMap;
use std::ops::Range;

use super::manifest::{FileEntry, Manifest, RangeEntry, TableEntry};
use super::write::RowSource;
use crate::errors::EngineError;
use crate::ids::{Lsn, Slot, TableId};
use crate::table::RANGE_SLOTS;

/// A file of which less than this is still referenced is written anew: so files hold at most twice what is referenced.
const LIVE_PERCENT_MIN: u64 = 50;
/// More files than this are not referenced: a start opens all of them, and a base backup should find them in one directory read, so that none
/// comes or goes between.
const FILES_MAX: usize = if cfg!(test) { 8 } else { 128 };
/// Once there would be more, the least referenced ones are written together until so many are left, so that it does not happen again at once.
const FILES_AFTER_MERGE: usize = FILES_MAX / 2;

/// A range to write.
pub(super) struct Unit {
    /// Position of its table.
    pub(super) table: usize,
    pub(super) number: u32,
    pub(super) slots: Range<Slot>,
}

/// What is to be written and what is not.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) units: Vec<Unit>,
    /// Ranges taken over, with the position of their table; their files are positions in `files`.
    pub(super) kept: Vec<(usize, RangeEntry)>,
    /// Files of older generations that stay referenced.
    pub(super) files: Vec<FileEntry>,
    pub(super) bytes_kept: u64,
}

/// Whether a checkpoint at `redo` may refer to files of `base`.
pub(super) fn is_usable(base: &Manifest, generation: u64, redo: Lsn) -> bool {
    base.generation < generation
        && base.redo <= redo
        && u64::from(base.range_slots) == RANGE_SLOTS
        && base.files.iter().all(|file| file.whole.is_none())
}

/// Looks at every range of `tables`. `base` is usable.
pub(super) fn plan<S: RowSource>(
    source: &S,
    tables: &[TableEntry],
    base: Option<&Manifest>,
) -> Result<Plan, EngineError> {
    let mut plan = Plan::default();
    let mut reusable = Vec::new();
    let base_tables = base.map_or(&[][..], |base| &base.tables[..]);
    let base_tables: HashMap<TableId, &TableEntry> =
        base_tables.iter().map(|table| (table.id, table)).collect();
    for (position, table) in tables.iter().enumerate() {
        let old = base_tables.get(&table.id);
        let old = old.map_or(&[][..], |old| &old.ranges[..]);
        let mut ranges = old.iter().peekable();
        for number in 0..range_count(table.slots_end)? {
            while ranges.next_if(|range| range.number < number).is_some() {}
            let kept = ranges.next_if(|range| range.number == number);
            let slots = slots_of(number, table.slots_end);
            match kept.filter(|range| !range.is_open) {
                Some(range) if !source.has_changed(table.id, slots.start)? => {
                    reusable.push((position, *range, slots));
                }
                _ => plan.units.push(Unit {
                    table: position,
                    number,
                    slots,
                }),
            }
        }
    }
    let files = base.map_or(&[][..], |base| &base.files[..]);
    let leaving = crowded_out(&reusable, files);
    let mut places: Vec<Option<u32>> = vec![None; files.len()];
    for (table, mut range, slots) in reusable {
        let file = range.file as usize;
        if range.blocks > 0 && leaving.get(file).is_none_or(|leaving| *leaving) {
            let number = range.number;
            plan.units.push(Unit {
                table,
                number,
                slots,
            });
            continue;
        }
        range.file = 0;
        if range.blocks > 0 {
            range.file = *places[file].get_or_insert_with(|| {
                plan.files.push(files[file]);
                plan.files.len() as u32 - 1
            });
        }
        plan.bytes_kept += range.bytes;
        plan.kept.push((table, range));
    }
    Ok(plan)
}

fn range_count(slots_end: Slot) -> Result<u32, EngineError> {
    u32::try_from(slots_end.0.div_ceil(RANGE_SLOTS)).map_err(|_| EngineError::Corrupt {
        what: "a table has more slots than there can be",
    })
}

fn slots_of(number: u32, slots_end: Slot) -> Range<Slot> {
    let start = u64::from(number) * RANGE_SLOTS;
    Slot(start)..slots_end.min(Slot(start + RANGE_SLOTS))
}

/// For each file whether its ranges are to be written anew: too little of it is referenced, or there are too many files.
fn crowded_out(reusable: &[(usize, RangeEntry, Range<Slot>)], files: &[FileEntry]) -> Vec<bool> {
    let mut live = vec![0u64; files.len()];
    for (_, range, _) in reusable.iter().filter(|(_, range, _)| range.blocks > 0) {
        if let Some(live) = live.get_mut(range.file as usize) {
            *live += range.bytes;
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
