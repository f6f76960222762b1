//! Computed keys: those of indexes on expressions, of partial indexes, and of values that have
//! labels (`label.rs`).
//!
//! The engine cannot compute them: that takes the catalog and functions of users. So the code that
//! forms a row computes them, and puts them behind it as its *tail*. The tail is a part of the
//! body: it is logged, checkpointed, replayed and copied with the row. No column reader reaches it.
//!
//! ```text
//! body byte 1 (t_infomask2, high)  0x10: the body has a tail
//! tail                             notes, then u32 bytes of all notes
//! note                             u32 index's number, u16 columns c, c x u16 where a column ends
//!                                  in the key, the key
//! ```
//! A note without columns says that the row is not in the index: its predicate does not hold. A
//! row without a note was formed before the index was: its key is not known
//! ([`EngineError::KeyNotComputed`]).
//!
//! A text's key is there without what a collation adds, which follows from the text: libraries
//! differ from machine to machine, and tails are logged.
//!
//! Contract: total, as `body.rs`. What [`Tail`] writes is what is read, and a key in a tail is what
//! `encode_value` makes of the columns' values without their collations, one behind the other, each
//! with a mark for NULL.

use super::KEY_BYTES_MAX;
use super::buffer::KeyBuffer;
use super::definition::{INDEX_COLUMNS_MAX, IndexDefinition, KeyColumn, corrupt};
use super::encode::{HasNull, KeyValue, STRING_END, TAG_VALUE, encode_value};
use super::kind::KeyKind;
use super::label;
use crate::errors::EngineError;

/// Where in a body the mark is, and the mark. PostgreSQL leaves the bit alone.
const MARK_BYTE: usize = 1;
const MARK: u8 = (TAIL_MARK >> u8::BITS) as u8;
/// The mark in t_infomask2.
pub const TAIL_MARK: u16 = 0x1000;
/// Bytes of the tail's own length.
const LENGTH_BYTES: usize = size_of::<u32>();
/// Bytes in front of a note's ends of columns.
const HEADER_BYTES: usize = size_of::<u32>() + size_of::<u16>();
const END_BYTES: usize = size_of::<u16>();

const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);

/// The notes of a body's tail; empty if it has none.
fn notes(body: &[u8]) -> Result<&[u8], EngineError> {
    if body.get(MARK_BYTE).is_none_or(|byte| byte & MARK == 0) {
        return Ok(&[]);
    }
    let cut = || corrupt("a row's tail is cut");
    let (rest, length) = body.split_last_chunk::<LENGTH_BYTES>().ok_or_else(cut)?;
    let length = u32::from_le_bytes(*length) as usize;
    let start = rest.len().checked_sub(length).ok_or_else(cut)?;
    Ok(&rest[start..])
}

/// Bytes of a body's tail; 0 if it has none, or a malformed one.
#[inline]
pub fn tail_bytes(body: &[u8]) -> usize {
    match notes(body) {
        Ok([]) | Err(_) => 0,
        Ok(notes) => notes.len() + LENGTH_BYTES,
    }
}

/// What a tail says of one index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Note<'a> {
    /// Where each column ends in the key.
    ends: &'a [u8],
    key: &'a [u8],
}

impl<'a> Note<'a> {
    /// Parts a note from those behind it, and says of which index it is.
    fn split(bytes: &'a [u8]) -> Result<(u32, Note<'a>, &'a [u8]), EngineError> {
        let cut = || corrupt("an entry of a row's tail is cut");
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(cut)?;
        let [a, b, c, d, low, high] = *header;
        let columns = usize::from(u16::from_le_bytes([low, high]));
        if columns > INDEX_COLUMNS_MAX {
            return Err(corrupt("an entry of a row's tail has too many columns"));
        }
        let (ends, rest) = rest.split_at_checked(columns * END_BYTES).ok_or_else(cut)?;
        let note = Note { ends, key: &[] };
        let length = note.columns().last().unwrap_or(0);
        let (key, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        if key.len() > KEY_BYTES_MAX {
            return Err(corrupt("a key of a row's tail is too long"));
        }
        Ok((u32::from_le_bytes([a, b, c, d]), Note { ends, key }, rest))
    }

    /// Where each column ends.
    fn columns(self) -> impl Iterator<Item = usize> + Clone + use<'a> {
        let ends = self.ends.chunks_exact(END_BYTES);
        ends.map(|end| usize::from(u16::from_le_bytes([end[0], end[1]])))
    }

    /// Whether the row is not in the index.
    pub(super) fn is_none(self) -> bool {
        self.ends.is_empty()
    }

    /// The key's columns, as they are encoded; there are as many as the index has.
    pub(super) fn values(
        self,
        definition: &IndexDefinition,
    ) -> Result<impl Iterator<Item = &'a [u8]> + use<'a>, EngineError> {
        if self.ends.len() != definition.columns.len() * END_BYTES {
            return Err(corrupt("a key of a row's tail has other columns"));
        }
        let starts = std::iter::once(0).chain(self.columns());
        if !starts.clone().is_sorted_by(|start, end| start < end) {
            return Err(corrupt("a column of a row's tail is empty"));
        }
        let key = self.key;
        Ok(starts
            .zip(self.columns())
            .map(move |(start, end)| &key[start..end]))
    }
}

/// What a body's tail says of the index with this number; `None`: nothing.
pub(super) fn note_of(body: &[u8], number: u32) -> Result<Option<Note<'_>>, EngineError> {
    Ok(entry_of(body, number)?.map(|(note, _)| note))
}

/// The same, with its bytes, which begin with the number.
fn entry_of(body: &[u8], number: u32) -> Result<Option<(Note<'_>, &[u8])>, EngineError> {
    let mut rest = notes(body)?;
    while !rest.is_empty() {
        let (of, note, behind) = Note::split(rest)?;
        if of == number {
            return Ok(Some((note, &rest[..rest.len() - behind.len()])));
        }
        rest = behind;
    }
    Ok(None)
}

/// Replaces `key` by the key in a body's tail, as [`super::encode::encode_columns`] does by the
/// row's own.
pub(super) fn take(
    (definition, number): (&IndexDefinition, u32),
    body: &[u8],
    key: &mut KeyBuffer,
    mut ended: impl FnMut(usize),
) -> Result<HasNull, EngineError> {
    key.clear();
    let note = note_of(body, number)?.ok_or(EngineError::KeyNotComputed)?;
    let mut has_null = false;
    if !note.is_none() {
        for (column, value) in definition.columns.iter().zip(note.values(definition)?) {
            let is_null = value[0] != TAG_VALUE;
            has_null |= is_null;
            push_column(column, value, key)?;
            ended(key.len());
        }
    }
    Ok(HasNull(has_null))
}

/// The labels that a body's tail has of an index, by column: `None` for NULL, and for a column
/// without labels. `None`: there is no key.
pub fn labels_in_tail(
    definition: &IndexDefinition,
    body: &[u8],
) -> Result<Option<Vec<Option<Vec<u8>>>>, EngineError> {
    let Some(number) = definition.computed else {
        return Ok(None);
    };
    let Some(note) = note_of(body, number)?.filter(|note| !note.is_none()) else {
        return Ok(None);
    };
    let columns = definition.columns.iter().zip(note.values(definition)?);
    let labels = columns.map(|(column, value)| match column.kind {
        KeyKind::Label => label::of_key(column, value),
        _ => None,
    });
    Ok(Some(labels.collect()))
}

/// Appends a column of a key, of which a tail has this.
pub(super) fn push_column(
    column: &KeyColumn,
    value: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    match column.collation {
        Some(_) if value[0] == TAG_VALUE => collate(column, value, key),
        _ => key.push(value),
    }
}

/// Appends the encoding of a text of which a tail has the one without a collation.
fn collate(column: &KeyColumn, value: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let mut text = KeyBuffer::new();
    text.push(&value[1..])?;
    if column.descending {
        text.complement_from(0);
    }
    let string = text.as_slice().strip_suffix(&[STRING_END]);
    let string = string.ok_or_else(|| corrupt("a text of a row's tail has no end"))?;
    encode_value(column, KeyValue::Bytes(string), key)
}

/// Whether a body's tail says that the row is not in the index.
pub(crate) fn is_outside(definition: &IndexDefinition, body: &[u8]) -> bool {
    let note = definition.computed.map(|number| note_of(body, number));
    matches!(note, Some(Ok(Some(note))) if note.is_none())
}

/// A tail that is being made.
#[derive(Default)]
pub struct Tail {
    notes: Vec<u8>,
    key: KeyBuffer,
}

impl Tail {
    /// Begins anew, without notes.
    pub fn clear(&mut self) {
        self.notes.clear();
    }

    /// Where it ends now, for [`Tail::go_back`].
    pub fn end(&self) -> usize {
        self.notes.len()
    }

    /// Takes back what was added since [`Tail::end`] gave this end, also half a note.
    pub fn go_back(&mut self, end: usize) {
        self.notes.truncate(end);
    }

    /// Begins anew with the notes that a body has, but for that of one index.
    pub fn take_others(&mut self, body: &[u8], number: u32) -> Result<(), EngineError> {
        self.take_if(body, |of| of != number)
    }

    /// Begins anew with the notes that a body has of some indexes.
    pub fn take_some(&mut self, body: &[u8], numbers: &[u32]) -> Result<(), EngineError> {
        self.take_if(body, |of| numbers.contains(&of))
    }

    fn take_if(&mut self, body: &[u8], is_meant: impl Fn(u32) -> bool) -> Result<(), EngineError> {
        self.clear();
        let mut rest = notes(body)?;
        while !rest.is_empty() {
            let (of, _, behind) = Note::split(rest)?;
            if is_meant(of) {
                self.push(&rest[..rest.len() - behind.len()])?;
            }
            rest = behind;
        }
        Ok(())
    }

    /// Adds the note that a body has of an index; false: it has none.
    pub fn keep(&mut self, body: &[u8], number: u32) -> Result<bool, EngineError> {
        let entry = entry_of(body, number)?;
        if let Some((_, bytes)) = entry {
            self.push(bytes)?;
        }
        Ok(entry.is_some())
    }

    /// With all notes that a body has.
    pub fn of(body: &[u8]) -> Result<Tail, EngineError> {
        let mut tail = Tail::default();
        tail.push(notes(body)?)?;
        Ok(tail)
    }

    /// Adds that the row is not in an index.
    pub fn leave_out(&mut self, number: u32) -> Result<(), EngineError> {
        self.push(&number.to_le_bytes())?;
        self.push(&0_u16.to_le_bytes())
    }

    /// Adds the row's key in an index: a value for each of its columns.
    pub fn enter<'a>(
        &mut self,
        number: u32,
        columns: &[KeyColumn],
        values: impl Iterator<Item = KeyValue<'a>>,
    ) -> Result<(), EngineError> {
        self.push(&number.to_le_bytes())?;
        self.push(&(columns.len() as u16).to_le_bytes())?;
        self.key.clear();
        let mut count = 0;
        for (column, value) in columns.iter().zip(values) {
            debug_assert!(column.nullable, "a computed column has a mark for NULL");
            let column = KeyColumn {
                collation: None,
                ..*column
            };
            encode_value(&column, value, &mut self.key)?;
            let end = self.key.len() as u16;
            self.push(&end.to_le_bytes())?;
            count += 1;
        }
        debug_assert_eq!(count, columns.len());
        append(&mut self.notes, self.key.as_slice())
    }

    /// What was added last, which is of this index: a note without the number.
    pub(crate) fn last(&self, number: u32) -> Result<&[u8], EngineError> {
        let mut rest = &self.notes[..];
        while !rest.is_empty() {
            let (of, _, behind) = Note::split(rest)?;
            if behind.is_empty() && of == number {
                return Ok(&rest[size_of::<u32>()..]);
            }
            rest = behind;
        }
        Err(corrupt("a row's tail has another index's entry last"))
    }

    /// Adds a note of an index as [`Tail::last`] gave it.
    pub(crate) fn put(&mut self, number: u32, note: &[u8]) -> Result<(), EngineError> {
        let start = self.notes.len();
        self.push(&number.to_le_bytes())?;
        self.push(note)?;
        match Note::split(&self.notes[start..])? {
            (_, _, []) => Ok(()),
            _ => Err(corrupt("an entry of a row's tail has something behind it")),
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        append(&mut self.notes, bytes)
    }

    /// Bytes that it makes a body longer.
    pub fn bytes(&self) -> usize {
        match self.notes.len() {
            0 => 0,
            notes => notes + LENGTH_BYTES,
        }
    }

    /// Writes the row with this tail: `out` is as long as both.
    pub fn write(&self, row: &[u8], out: &mut [u8]) {
        let (start, rest) = out.split_at_mut(row.len());
        start.copy_from_slice(row);
        if self.notes.is_empty() {
            start[MARK_BYTE] &= !MARK;
            return;
        }
        start[MARK_BYTE] |= MARK;
        let (notes, length) = rest.split_at_mut(self.notes.len());
        notes.copy_from_slice(&self.notes);
        length.copy_from_slice(&(self.notes.len() as u32).to_le_bytes());
        debug_assert_eq!(tail_bytes(out), self.bytes());
    }

    /// Appends the row with this tail to a body that is being made.
    pub fn append_to(&self, row: &[u8], body: &mut Vec<u8>) -> Result<(), EngineError> {
        let (start, bytes) = (body.len(), row.len() + self.bytes());
        body.try_reserve(bytes)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        body.resize(start + bytes, 0);
        self.write(row, &mut body[start..]);
        Ok(())
    }

    /// Whether a body has this note of an index already: the one that was added last.
    pub fn is_last_in(&self, body: &[u8], number: u32) -> Result<bool, EngineError> {
        let mut last = None;
        let mut rest = &self.notes[..];
        while !rest.is_empty() {
            let (of, note, behind) = Note::split(rest)?;
            last = (of == number).then_some(note);
            rest = behind;
        }
        Ok(last.is_some() && note_of(body, number)? == last)
    }
}

/// The checksum of a body's row, whatever its tail is.
pub(crate) fn row_checksum(body: &[u8]) -> u32 {
    let row = without_tail(body);
    let (start, rest) = row.split_at(row.len().min(MARK_BYTE));
    let marked = rest.first().map_or(0, |byte| byte & !MARK);
    let checksum = crc32c::crc32c_append(crc32c::crc32c(start), &[marked]);
    crc32c::crc32c_append(checksum, rest.get(1..).unwrap_or_default())
}

/// A body's row, without its tail.
pub fn without_tail(body: &[u8]) -> &[u8] {
    &body[..body.len() - tail_bytes(body)]
}

fn append(to: &mut Vec<u8>, bytes: &[u8]) -> Result<(), EngineError> {
    to.try_reserve(bytes.len())
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    to.extend_from_slice(bytes);
    Ok(())
}
