//! Rows of an index that orders texts, or an enum's values, only roughly: in their order.
//!
//! Keys whose texts a first look calls equal lie side by side, by the texts' bytes
//! (`key::KeyColumn::orders_roughly`): they are a *group*. A scan reads a group, puts it in order,
//! and hands it out. A group of texts is a row or two, as a rule; of an enum's values it is all
//! rows with the same columns before. One that is larger is not held: it is parted into its *runs*,
//! the ranges of one text or value each, which are put in order and scanned one by one.
//!
//! Contract:
//! - Rows come as the collation has the texts, then by the columns behind. Backward is exactly the
//!   other way round.
//! - A group's rows are held only for a registered snapshot that may resolve early: what that sees
//!   stays as it is. For another one a group is parted at once, by its entries, whether or not it
//!   sees their rows. Each run's rows are resolved when they are asked for, as in any scan.
//! - A row is of a group by its entry's key: no text is examined again for it.
//! - A part whose rough columns are all fixed is handed out as it is read.

mod group;

use super::index_scan::{IndexScan, read_one};
use super::pending::{Pending, PendingRow};
use super::range::KeyRange;
use super::reserve;
use crate::clock::Snapshot;
use crate::errors::EngineError;
use crate::ids::RowId;
use crate::index::append_row_id;
use crate::key::{
    INDEX_COLUMNS_MAX, IndexDefinition, KeyBuffer, KeyColumn, KeyKind, encode_columns,
    encode_first_columns, none_if_too_long,
};
use crate::row::VersionRef;
use crate::session::Session;
use crate::table::{EntryForm, IndexRef, TableRef};
use group::{Group, no_key};
use mot_index::{Batch, Bound, Direction};
use std::cmp::Ordering;

/// Rows of a group that are held at a time.
const GROUP_ROWS_MAX: usize = 256;
/// The same where an enum's values are the group: all rows of what is fixed before them, of which
/// the caller may want a few.
const ENUM_ROWS_MAX: usize = 16;
/// Parts that are begun, or looked for, between two checks whether to continue.
const PARTS_PER_LOOK: usize = 256;
/// Parts whose memory is kept for the next scan.
const PARTS_KEPT: usize = 64;
/// Comparisons between two such looks.
const COMPARED_PER_LOOK: u32 = 4096;

/// A scan through an index that orders texts only roughly. Reusable: `start` begins anew.
#[derive(Default)]
pub struct GroupedScan {
    scan: IndexScan,
    place: Option<Place>,
    /// What is being read.
    part: Part,
    /// What is read after it, the next one last.
    parts: Vec<Part>,
    /// By which column the part is grouped; `None`: its rows are in order.
    column: Option<usize>,
    /// The group, in the order of the collation.
    group: Group,
    /// Of the group, how many were handed out.
    given: usize,
    /// The first row of the next group, if it was read, and its entry's key.
    next: Option<(RowId, VersionRef)>,
    next_key: Vec<u8>,
    /// Where in the part's keys the grouped column begins, if that is known of all of them.
    start: Option<usize>,
    /// All rows of the part were read.
    is_over: bool,
    /// Parts begun since the last check whether to continue.
    begun: usize,
    key: KeyBuffer,
}

/// What is scanned, and in which direction.
#[derive(Copy, Clone)]
struct Place {
    table: TableRef,
    index: IndexRef,
    direction: Direction,
}

/// A range of keys, and how many leading columns are the same in all of them.
#[derive(Default)]
struct Part {
    range: KeyRange,
    fixed: usize,
}

/// Where the columns of a key end.
type Ends = [u32; INDEX_COLUMNS_MAX];

impl GroupedScan {
    /// Begins a scan of a range, in which so many leading columns are fixed.
    pub fn start(
        &mut self,
        session: &Session,
        (table, index): (TableRef, IndexRef),
        (range, fixed): (&KeyRange, usize),
        direction: Direction,
    ) -> Result<(), EngineError> {
        self.place = Some(Place {
            table,
            index,
            direction,
        });
        self.parts.clear();
        self.group.clear();
        self.given = 0;
        self.next = None;
        let range = range.clone();
        self.begin_part(session, Part { range, fixed })
    }

    /// Ends the scan, whose memory may be long in being needed again: that of a large group is
    /// given back.
    pub fn end(&mut self) {
        self.place = None;
        self.scan.end();
        self.next = None;
        self.given = 0;
        self.group.trim();
        self.parts.clear();
        self.parts.shrink_to(PARTS_KEPT);
    }

    /// The next row that the snapshot sees; as [`IndexScan::next`].
    pub fn next<S: Snapshot>(
        &mut self,
        session: &Session,
        snapshot: &S,
    ) -> Result<Option<(RowId, VersionRef)>, EngineError> {
        loop {
            if let Some(row) = self.group.rows.get(self.given) {
                self.given += 1;
                return Ok(Some((row.row_id, row.version)));
            }
            let goes_on = match self.column {
                None => {
                    let row = self.scan.next(session, snapshot)?;
                    if row.is_some() {
                        return Ok(row);
                    }
                    false
                }
                Some(column) => self.gather(session, snapshot, column)?,
            };
            if goes_on {
                continue;
            }
            let Some(part) = self.parts.pop() else {
                return Ok(None);
            };
            self.begun += 1;
            if self.begun.is_multiple_of(PARTS_PER_LOOK) {
                snapshot.between_groups();
            }
            self.begin_part(session, part)?;
        }
    }

    fn begin_part(&mut self, session: &Session, part: Part) -> Result<(), EngineError> {
        let Some(place) = self.place else {
            return Ok(());
        };
        let Place { table, index, .. } = place;
        self.column = session.definition(index)?.rough_column(part.fixed);
        self.start = None;
        self.scan.start(table, index, &part.range, place.direction);
        self.part = part;
        self.is_over = false;
        Ok(())
    }

    /// Reads the next group and puts it in order, or parts it. False: the part has no more rows.
    fn gather<S: Snapshot>(
        &mut self,
        session: &Session,
        snapshot: &S,
        column: usize,
    ) -> Result<bool, EngineError> {
        let Some(place) = self.place else {
            return Ok(false);
        };
        let definition = session.definition(place.index)?;
        let rows_max = match definition.columns[column].kind {
            KeyKind::Enum => ENUM_ROWS_MAX,
            _ => GROUP_ROWS_MAX,
        };
        self.group.clear();
        self.given = 0;
        if !snapshot.may_resolve_early() {
            let is_found = match self.next.take() {
                Some((_, version)) => {
                    let start = self.start_of(definition, column, version)?;
                    let (group, key) = (&mut self.group, &self.next_key);
                    group.begin(&definition.columns[column], key, start);
                    true
                }
                None => !self.is_over && self.find_group(session, snapshot, column)?,
            };
            if is_found {
                self.split(session, snapshot, column)?;
            }
            return Ok(is_found);
        }
        if let Some(row) = self.next.take() {
            let start = self.start_of(definition, column, row.1)?;
            let (group, key) = (&mut self.group, &self.next_key);
            group.begin(&definition.columns[column], key, start);
            group.take(row, key)?;
        }
        loop {
            let Some(row) = self.scan.next(session, snapshot)? else {
                self.is_over = true;
                break;
            };
            if self.group.rows.is_empty() {
                let start = self.start_of(definition, column, row.1)?;
                let (group, key) = (&mut self.group, self.scan.entry_key());
                group.begin(&definition.columns[column], key, start);
            }
            let (group, key) = (&mut self.group, self.scan.entry_key());
            let is_of_group = key.starts_with(&group.prefix);
            if is_of_group && group.rows.len() < rows_max {
                group.take(row, key)?;
                continue;
            }
            if is_of_group {
                return self.split(session, snapshot, column).map(|()| true);
            }
            self.next = Some(row);
            self.next_key.clear();
            reserve(&mut self.next_key, key.len())?;
            self.next_key.extend_from_slice(key);
            break;
        }
        self.group
            .sort(definition, column, place.direction, &mut self.key)?;
        Ok(!self.group.rows.is_empty())
    }

    /// Where in the key of a row's entry a column begins.
    fn start_of(
        &mut self,
        definition: &IndexDefinition,
        column: usize,
        version: VersionRef,
    ) -> Result<usize, EngineError> {
        if column == 0 {
            return Ok(0);
        }
        if let Some(start) = self.start {
            return Ok(start);
        }
        let start = encode_first_columns(definition, column, version.body(), &mut self.key)?;
        let start = start.ok_or_else(no_key)?;
        // What is fixed is the same in all keys of the part.
        if column == self.part.fixed {
            self.start = Some(start);
        }
        Ok(start)
    }

    /// Looks for the first group of the part by its entries, and notes what its keys begin with.
    /// False: there is none.
    fn find_group<S: Snapshot>(
        &mut self,
        session: &Session,
        snapshot: &S,
        column: usize,
    ) -> Result<bool, EngineError> {
        let Some(place) = self.place else {
            return Ok(false);
        };
        let Place {
            index, direction, ..
        } = place;
        let definition = session.definition(index)?;
        loop {
            let pin = session.local.pin();
            let Some((key, value)) = first_entry(session, index, &self.part.range, direction)
            else {
                return Ok(false);
            };
            let mut rows = Pending::default();
            rows.push(place.table, value, 0)?;
            while let Some(row) = rows.pop() {
                let Some(ends) = columns_of(session, index, (&row, &key), &mut self.key)? else {
                    continue;
                };
                let start = column.checked_sub(1).map_or(0, |last| ends[last] as usize);
                self.group.begin(&definition.columns[column], &key, start);
                return Ok(true);
            }
            drop(pin);
            // Whatever row had this key, it has it no longer.
            self.begun += 1;
            if self.begun.is_multiple_of(PARTS_PER_LOOK) {
                snapshot.between_groups();
            }
            self.part.range = self.part.range.beyond(&key, direction)?;
            if self.part.range.is_nothing() {
                return Ok(false);
            }
        }
    }

    /// Parts a group that is not read whole: its runs are scanned in their order, then the rest.
    fn split<S: Snapshot>(
        &mut self,
        session: &Session,
        snapshot: &S,
        column: usize,
    ) -> Result<(), EngineError> {
        let Some(Place {
            index, direction, ..
        }) = self.place
        else {
            return Ok(());
        };
        let definition = session.definition(index)?;
        let prefix = std::mem::take(&mut self.group.prefix);
        let start = self.group.start;
        self.group.clear();
        let whole = std::mem::take(&mut self.part);
        let rest = whole.range.beyond(&prefix, direction)?;
        let range = whole.range.within(&prefix)?;
        let mut runs: Vec<Vec<u8>> = Vec::new();
        let mut low = KeyRange::new();
        low.set_low(range.low().unwrap_or_default(), true)?;
        while let Some((key, _)) = first_entry(session, index, &low, Direction::Forward)
            && range.contains(&key)
        {
            reserve(&mut runs, 1)?;
            let length = definition.columns[column].encoded_length(&key[start..]);
            let length = start + length.ok_or_else(no_key)?;
            runs.push(key[..length].to_vec());
            low.set_low(&key[..length], false)?;
            if low.is_nothing() {
                break;
            }
            if runs.len().is_multiple_of(PARTS_PER_LOOK) {
                snapshot.between_groups();
            }
        }
        sort_runs((&definition.columns[column], start), &mut runs, snapshot)?;
        reserve(&mut self.parts, runs.len() + 1)?;
        self.parts.push(Part {
            range: rest,
            fixed: whole.fixed,
        });
        // The next one last.
        if direction == Direction::Forward {
            runs.reverse();
        }
        for run in runs {
            self.parts.push(Part {
                range: whole.range.within(&run)?,
                fixed: column + 1,
            });
        }
        let part = self.parts.pop().unwrap_or_default();
        self.begin_part(session, part)
    }
}

/// Puts the runs of one group in the order of an index forward. Each is what its keys begin with; a
/// value of the column begins at `start`.
fn sort_runs<S: Snapshot>(
    (column, start): (&KeyColumn, usize),
    runs: &mut [Vec<u8>],
    snapshot: &S,
) -> Result<(), EngineError> {
    let (mut compared, mut failure) = (0_u32, None);
    runs.sort_by(|left, right| {
        compared = compared.wrapping_add(1);
        if compared.is_multiple_of(COMPARED_PER_LOOK) {
            snapshot.between_groups();
        }
        let order = column.compare_encoded(&left[start..], &right[start..]);
        order.unwrap_or_else(|error| {
            failure = Some(error);
            Ordering::Equal
        })
    });
    failure.map_or(Ok(()), Err)
}

/// The first entry of a range in a direction: its key and value.
fn first_entry(
    session: &Session,
    index: IndexRef,
    range: &KeyRange,
    direction: Direction,
) -> Option<(Vec<u8>, u64)> {
    let from = match direction {
        Direction::Forward => range.low().map_or(Bound::Start, Bound::Included),
        Direction::Backward => range.high().map_or(Bound::End, Bound::Excluded),
    };
    let mut batch = Batch::with_capacity(1);
    let (key, value) = read_one((session, index), from, direction, &mut batch)?;
    range.contains(key).then(|| (key.to_vec(), value))
}

/// Where the columns of an entry's key end, as in a state of its row that has the key. `None`: no
/// state has it. Pinned.
fn columns_of(
    session: &Session,
    index: IndexRef,
    (row, entry): (&PendingRow, &[u8]),
    key: &mut KeyBuffer,
) -> Result<Option<Ends>, EngineError> {
    let definition = session.definition(index)?;
    let mut at = row.anchor.head().version();
    while let Some(version) = at {
        at = version.next();
        if version.is_lock() || version.is_tombstone() {
            continue;
        }
        let mut ends: Ends = [0; INDEX_COLUMNS_MAX];
        let mut count = 0;
        let encoded = encode_columns(definition, version.body(), key, |end| {
            ends[count] = end as u32;
            count += 1;
        });
        let has_null = none_if_too_long(encoded, key)?.0;
        if index.form(has_null) == EntryForm::Suffixed {
            append_row_id(key, row.row_id)?;
        }
        if count == definition.columns.len() && key.as_slice() == entry {
            return Ok(Some(ends));
        }
    }
    Ok(None)
}
