//! jsonb: the tree of values, read as PostgreSQL lays it out behind the varlena's header.
//!
//! ```text
//! array     04, u32 elements, 00 a lone scalar or 01, the elements
//! object    05, u32 pairs, then per pair: the key's encoding as a text, the value
//! null      00
//! string    01 and its encoding as a text
//! numeric   02 and its encoding
//! boolean   03, 00 false or 01
//! ```
//! compareJsonbContainers compares types, then numbers of elements, then the elements in turn. A
//! lone scalar is an array of one element, and less than a true one of that length.
//!
//! A container begins at a multiple of four bytes, and so do numbers in it. Positions count from
//! the container, whichever header the value has in the row.
//!
//! Contract: total. An encoding that has become longer than any key is left unfinished, as those of
//! arrays are. So the depth of a tree that is walked is bounded by the longest key. It takes no
//! stack.

use super::containers::varlena;
use super::kinds::corrupt;
use super::strings::encode_held;
use crate::collation::Collation;
use crate::errors::EngineError;
use crate::key::buffer::KeyBuffer;
use crate::key::kind::KeyKind;

/// Types in their order (`jbvType` of `utils/jsonb.h`).
const NULL: u8 = 0;
const STRING: u8 = 1;
const NUMERIC: u8 = 2;
const BOOL: u8 = 3;
const ARRAY: u8 = 4;
const OBJECT: u8 = 5;

/// A container's header: a number, and flags.
const COUNT_MASK: u32 = 0x0FFF_FFFF;
const FLAG_SCALAR: u32 = 0x1000_0000;
const FLAG_OBJECT: u32 = 0x2000_0000;
const FLAG_ARRAY: u32 = 0x4000_0000;

/// An entry for each child: its length, or where it ends, and its type.
const ENTRY_LENGTH_MASK: u32 = 0x0FFF_FFFF;
const ENTRY_TYPE_MASK: u32 = 0x7000_0000;
const ENTRY_HAS_END: u32 = 0x8000_0000;
const ENTRY_STRING: u32 = 0;
const ENTRY_NUMERIC: u32 = 0x1000_0000;
const ENTRY_FALSE: u32 = 0x2000_0000;
const ENTRY_TRUE: u32 = 0x3000_0000;
const ENTRY_NULL: u32 = 0x4000_0000;
const ENTRY_CONTAINER: u32 = 0x5000_0000;

const WORD_BYTES: usize = 4;

/// A container that is being walked.
struct Open<'a> {
    /// Keys of the pairs that are left; `None`: it is an array.
    names: Option<Children<'a>>,
    values: Children<'a>,
    left: usize,
}

impl<'a> Open<'a> {
    /// Reads a container's header, and appends what is ahead of its values.
    fn of(bytes: &'a [u8], key: &mut KeyBuffer) -> Result<Open<'a>, EngineError> {
        let (header, rest) = bytes.split_first_chunk().ok_or_else(malformed)?;
        let header = u32::from_le_bytes(*header);
        let count = (header & COUNT_MASK) as usize;
        let is_object = header & FLAG_OBJECT != 0;
        if is_object == (header & FLAG_ARRAY != 0) {
            return Err(malformed());
        }
        let entries = if is_object { 2 * count } else { count };
        let (entries, data) = rest
            .split_at_checked(entries * WORD_BYTES)
            .ok_or_else(malformed)?;
        let entries = entries.as_chunks::<WORD_BYTES>().0;
        key.push_array([if is_object { OBJECT } else { ARRAY }])?;
        key.push_array((count as u32).to_be_bytes())?;
        if !is_object {
            key.push_array([u8::from(header & FLAG_SCALAR == 0)])?;
            return Ok(Open {
                names: None,
                values: Children::new(entries, 0, data),
                left: count,
            });
        }
        let (names, values) = entries.split_at(count);
        let names = Children::new(names, 0, data);
        Ok(Open {
            values: Children::new(values, names.end(), data),
            names: Some(names),
            left: count,
        })
    }
}

/// Appends the encoding of a value's container; its texts lie in the order of the collation.
#[inline(never)]
pub(super) fn encode_jsonb(
    bytes: &[u8],
    collation: Option<Collation>,
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    let mut outer = Vec::new();
    let mut open = Open::of(bytes, key)?;
    while !key.is_too_long() {
        if open.left == 0 {
            match outer.pop() {
                Some(container) => open = container,
                None => break,
            }
            continue;
        }
        open.left -= 1;
        if let Some(names) = &mut open.names {
            let name = names.next()?;
            if name.kind != ENTRY_STRING {
                return Err(malformed());
            }
            encode_held(KeyKind::Text, collation, name.bytes, key)?;
            if key.is_too_long() {
                break;
            }
        }
        let child = open.values.next()?;
        if child.kind != ENTRY_CONTAINER {
            encode_scalar(child, collation, key)?;
            continue;
        }
        let inner = Open::of(child.aligned()?, key)?;
        outer
            .try_reserve(1)
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        outer.push(std::mem::replace(&mut open, inner));
    }
    Ok(())
}

fn encode_scalar(
    child: Child<'_>,
    collation: Option<Collation>,
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    match child.kind {
        ENTRY_NULL => key.push_array([NULL]),
        ENTRY_FALSE => key.push_array([BOOL, 0]),
        ENTRY_TRUE => key.push_array([BOOL, 1]),
        ENTRY_STRING => {
            key.push_array([STRING])?;
            encode_held(KeyKind::Text, collation, child.bytes, key)
        }
        ENTRY_NUMERIC => {
            key.push_array([NUMERIC])?;
            let number = child.aligned()?;
            let (header, length) = varlena(number)?;
            let number = number.get(header..length).ok_or_else(malformed)?;
            encode_held(KeyKind::Numeric, None, number, key)
        }
        _ => Err(malformed()),
    }
}

/// One value of a container.
struct Child<'a> {
    kind: u32,
    /// From where it, or the padding before it, begins.
    bytes: &'a [u8],
    /// Bytes of that padding, where its kind has any.
    padding: usize,
}

impl<'a> Child<'a> {
    fn aligned(&self) -> Result<&'a [u8], EngineError> {
        self.bytes.get(self.padding..).ok_or_else(malformed)
    }
}

/// Values that lie one behind the other.
struct Children<'a> {
    entries: &'a [[u8; WORD_BYTES]],
    /// Where in the data the next one begins.
    offset: usize,
    data: &'a [u8],
}

impl<'a> Children<'a> {
    fn new(entries: &'a [[u8; WORD_BYTES]], offset: usize, data: &'a [u8]) -> Children<'a> {
        Children {
            entries,
            offset,
            data,
        }
    }

    /// Where the last one ends.
    fn end(&self) -> usize {
        let entries = self.entries.iter();
        entries.fold(self.offset, |offset, entry| entry_end(offset, *entry).0)
    }

    fn next(&mut self) -> Result<Child<'a>, EngineError> {
        let (entry, rest) = self.entries.split_first().ok_or_else(malformed)?;
        let start = self.offset;
        let (end, kind) = entry_end(start, *entry);
        self.entries = rest;
        self.offset = end;
        Ok(Child {
            kind,
            bytes: self.data.get(start..end).ok_or_else(malformed)?,
            padding: start.next_multiple_of(WORD_BYTES) - start,
        })
    }
}

/// Where a child ends that begins at `start`, and its type.
fn entry_end(start: usize, entry: [u8; WORD_BYTES]) -> (usize, u32) {
    let entry = u32::from_le_bytes(entry);
    let length = (entry & ENTRY_LENGTH_MASK) as usize;
    let end = match entry & ENTRY_HAS_END {
        0 => start + length,
        _ => length,
    };
    (end, entry & ENTRY_TYPE_MASK)
}

#[cold]
fn malformed() -> EngineError {
    corrupt("jsonb is malformed")
}
