//! Rows of an index whose keys lie side by side, put into the order of their collation.

use super::reserve;
use crate::errors::EngineError;
use crate::ids::RowId;
use crate::key::{IndexDefinition, KeyBuffer, KeyColumn, encode_first_columns};
use crate::row::VersionRef;
use mot_index::Direction;
use std::cmp::Ordering;

/// Bytes of keys whose memory is kept for the next scan.
const KEY_BYTES_KEPT: usize = 64 << 10;

/// Rows whose keys lie side by side.
#[derive(Default)]
pub(super) struct Group {
    /// What their keys begin with, as far as a first look at the text.
    pub(super) prefix: Vec<u8>,
    /// Where in that the text's column begins.
    pub(super) start: usize,
    pub(super) rows: Vec<Row>,
    /// The keys of the rows' entries, and where each ends.
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    /// The roughly ordered columns, from that of the group on.
    rough: Vec<usize>,
    /// Where in its key each of these begins and ends, row by row.
    texts: Vec<(u32, u32)>,
}

#[derive(Copy, Clone)]
pub(super) struct Row {
    pub(super) row_id: RowId,
    pub(super) version: VersionRef,
    /// Which row it was when the group was read.
    number: u32,
}

impl Group {
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.keys.clear();
        self.key_ends.clear();
    }

    /// Forgets all rows, and gives back the memory of many.
    pub(super) fn trim(&mut self) {
        self.clear();
        self.keys.shrink_to(KEY_BYTES_KEPT);
    }

    /// Notes what the keys of the group begin with; one of them is `key`, where the column begins
    /// at `start`.
    pub(super) fn begin(&mut self, column: &KeyColumn, key: &[u8], start: usize) {
        let length = column.first_look(&key[start..]);
        self.start = start;
        self.prefix.clear();
        self.prefix.extend_from_slice(&key[..start + length]);
    }

    /// Takes in a row of the group, and its entry's key.
    pub(super) fn take(
        &mut self,
        (row_id, version): (RowId, VersionRef),
        key: &[u8],
    ) -> Result<(), EngineError> {
        debug_assert!(key.starts_with(&self.prefix));
        reserve(&mut self.keys, key.len())?;
        reserve(&mut self.key_ends, 1)?;
        reserve(&mut self.rows, 1)?;
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len() as u32);
        self.rows.push(Row {
            row_id,
            version,
            number: self.rows.len() as u32,
        });
        Ok(())
    }

    /// Puts the rows in the order of their columns; those that are equal stay as they are.
    pub(super) fn sort(
        &mut self,
        definition: &IndexDefinition,
        column: usize,
        direction: Direction,
        key: &mut KeyBuffer,
    ) -> Result<(), EngineError> {
        if self.rows.len() < 2 {
            return Ok(());
        }
        let columns = column..definition.columns.len();
        self.rough.clear();
        self.rough
            .extend(columns.filter(|at| definition.columns[*at].orders_roughly()));
        self.find_texts(definition, key)?;
        let (keys, key_ends) = (&self.keys, &self.key_ends);
        let (rough, texts) = (&self.rough, &self.texts);
        let mut failure = None;
        self.rows.sort_by(|left, right| {
            let [left, right] = [left, right].map(|row| {
                let first = row.number as usize * rough.len();
                Key {
                    bytes: key_of(keys, key_ends, row.number),
                    texts: &texts[first..first + rough.len()],
                }
            });
            match compare(&definition.columns, rough, left, right) {
                Ok(order) if direction == Direction::Forward => order,
                Ok(order) => order.reverse(),
                Err(error) => {
                    failure = Some(error);
                    Ordering::Equal
                }
            }
        });
        failure.map_or(Ok(()), Err)
    }

    /// Finds the roughly ordered columns in the rows' keys. The first one is where it begins in all
    /// of them; what is before others is known of the row.
    fn find_texts(
        &mut self,
        definition: &IndexDefinition,
        key: &mut KeyBuffer,
    ) -> Result<(), EngineError> {
        self.texts.clear();
        reserve(&mut self.texts, self.rows.len() * self.rough.len())?;
        for row in &self.rows {
            let entry = key_of(&self.keys, &self.key_ends, row.number);
            let mut start = self.start;
            for (number, &column) in self.rough.iter().enumerate() {
                if number > 0 {
                    let before = encode_first_columns(definition, column, row.version.body(), key)?;
                    start = before.ok_or_else(no_key)?;
                }
                let rest = entry.get(start..).ok_or_else(no_key)?;
                let length = definition.columns[column].encoded_length(rest);
                let length = length.ok_or_else(no_key)?;
                self.texts.push((start as u32, (start + length) as u32));
            }
        }
        Ok(())
    }
}

/// The key of a row by its number.
fn key_of<'k>(keys: &'k [u8], ends: &[u32], number: u32) -> &'k [u8] {
    let number = number as usize;
    let start = number.checked_sub(1).map_or(0, |last| ends[last]);
    &keys[start as usize..ends[number] as usize]
}

/// A row's key, and where in it the roughly ordered columns lie.
struct Key<'a> {
    bytes: &'a [u8],
    texts: &'a [(u32, u32)],
}

/// Compares two keys: the roughly ordered columns by the collation, all else by its bytes.
fn compare(
    columns: &[KeyColumn],
    rough: &[usize],
    left: Key<'_>,
    right: Key<'_>,
) -> Result<Ordering, EngineError> {
    fn range(key: &[u8], start: u32, end: u32) -> &[u8] {
        &key[start as usize..end as usize]
    }
    let (mut left_at, mut right_at) = (0, 0);
    let texts = left.texts.iter().zip(right.texts);
    for (column, (left_text, right_text)) in rough.iter().zip(texts) {
        let before = range(left.bytes, left_at, left_text.0);
        let between = before.cmp(range(right.bytes, right_at, right_text.0));
        if between.is_ne() {
            return Ok(between);
        }
        let order = columns[*column].compare_encoded(
            range(left.bytes, left_text.0, left_text.1),
            range(right.bytes, right_text.0, right_text.1),
        )?;
        if order.is_ne() {
            return Ok(order);
        }
        (left_at, right_at) = (left_text.1, right_text.1);
    }
    Ok(left.bytes[left_at as usize..].cmp(&right.bytes[right_at as usize..]))
}

/// An index has led to a row that has no key in it.
pub(super) fn no_key() -> EngineError {
    EngineError::Corrupt {
        what: "a row that an index has led to has no key in it",
    }
}
