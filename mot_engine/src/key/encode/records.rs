//! Values of row types: the encodings of their columns, between marks.
//!
//! ```text
//! per column 01 and its encoding, or 02 for NULL; NULLs at the end are left out; 03
//! ```
//! record_cmp compares column by column, NULL behind all values. The end stands for NULLs without
//! number, so it is behind a NULL that a value follows. A row type that gets another column has
//! NULL there in older values: their encoding stays what it was.
//!
//! A value lies as a tuple does. Its columns may be compressed: a whole row of a heap table that
//! becomes a value keeps them so.
//!
//! Contract: total. An encoding that has become longer than any key is left unfinished, as those of
//! arrays are.

use super::compressed::decompressed;
use super::containers::varlena;
use super::kinds::corrupt;
use super::strings::encode_held;
use crate::errors::EngineError;
use crate::key::buffer::KeyBuffer;
use crate::key::record::{Field, Record};
use std::borrow::Cow;

const VALUE: u8 = 1;
const NULL: u8 = 2;
const END: u8 = 3;

/// Offsets in a value behind the varlena's header: type modifier, row type, a tuple's place, and
/// then what a tuple's header ends with.
const INFOMASK2: usize = 14;
const INFOMASK: usize = 16;
const HOFF: usize = 18;
const NULLS: usize = 19;
/// Bytes of the varlena's header, which the offset of the data counts.
const VARLENA_BYTES: usize = 4;
const ATTRIBUTES_MASK: u16 = 0x07FF;
const HAS_NULL: u16 = 0x0001;

/// Appends a value's encoding.
#[inline(never)]
pub(super) fn encode_record(
    record: Record,
    bytes: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    let mut values = Values::of(bytes)?;
    let fields = record.fields();
    let mut nulls = 0;
    for field in fields {
        let value = values.next(field)?;
        let Some(kind) = field.kind else {
            continue;
        };
        let Some(value) = value else {
            nulls += 1;
            continue;
        };
        for _ in 0..nulls {
            key.push_array([NULL])?;
        }
        nulls = 0;
        key.push_array([VALUE])?;
        encode_held(kind, field.collation, &value, key)?;
        if key.is_too_long() {
            return Ok(());
        }
    }
    if values.has_more() {
        return Err(EngineError::RowTypeChanged {
            row_type: record.row_type(),
        });
    }
    key.push_array([END])
}

/// A value's columns, one behind the other.
struct Values<'a> {
    /// From where the columns begin.
    data: &'a [u8],
    /// A bit for each column, 0 for NULL; empty: none is.
    nulls: &'a [u8],
    count: usize,
    /// How many were read.
    position: usize,
    /// Where in the data the next one, or the padding before it, begins.
    offset: usize,
}

impl<'a> Values<'a> {
    fn of(bytes: &'a [u8]) -> Result<Values<'a>, EngineError> {
        let word = |at: usize| Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        let header = (|| Some((word(INFOMASK2)?, word(INFOMASK)?, *bytes.get(HOFF)?)))();
        let (infomask2, infomask, data_offset) = header.ok_or_else(malformed)?;
        let count = usize::from(infomask2 & ATTRIBUTES_MASK);
        let nulls_bytes = match infomask & HAS_NULL {
            0 => 0,
            _ => count.div_ceil(8),
        };
        let data_offset = usize::from(data_offset).checked_sub(VARLENA_BYTES);
        let data_offset = data_offset
            .filter(|offset| *offset >= NULLS + nulls_bytes)
            .ok_or_else(malformed)?;
        Ok(Values {
            data: bytes.get(data_offset..).ok_or_else(malformed)?,
            nulls: &bytes[NULLS..NULLS + nulls_bytes],
            count,
            position: 0,
            offset: 0,
        })
    }

    fn is_null(&self, at: usize) -> bool {
        let byte = self.nulls.get(at / 8);
        byte.is_some_and(|byte| byte & 1 << (at % 8) == 0)
    }

    /// The next column; `None`: it is NULL.
    fn next(&mut self, field: &'a Field) -> Result<Option<Cow<'a, [u8]>>, EngineError> {
        let at = self.position;
        self.position += 1;
        if at >= self.count {
            return Ok(field.missing.as_deref().map(Cow::Borrowed));
        }
        if self.is_null(at) {
            return Ok(None);
        }
        let align = usize::from(field.layout.align);
        let has_padding = field.layout.len > 0 || self.data.get(self.offset) == Some(&0);
        if has_padding {
            self.offset = self.offset.next_multiple_of(align);
        }
        let rest = self.data.get(self.offset..).ok_or_else(malformed)?;
        if let Ok(width) = usize::try_from(field.layout.len) {
            self.offset += width;
            return rest
                .get(..width)
                .map(Cow::Borrowed)
                .map(Some)
                .ok_or_else(malformed);
        }
        if field.layout.len < -1 {
            let length = rest.iter().position(|byte| *byte == 0);
            let length = length.ok_or_else(malformed)?;
            self.offset += length + 1;
            return Ok(Some(Cow::Borrowed(&rest[..length])));
        }
        if let Some((value, length)) = decompressed(rest, field.kind.is_some())? {
            self.offset += length;
            return Ok(Some(Cow::Owned(value)));
        }
        let (header, length) = varlena(rest)?;
        self.offset += length;
        rest.get(header..length)
            .map(Cow::Borrowed)
            .map(Some)
            .ok_or_else(malformed)
    }

    /// Whether columns follow that are not NULL.
    fn has_more(&self) -> bool {
        (self.position..self.count).any(|at| !self.is_null(at))
    }
}

#[cold]
fn malformed() -> EngineError {
    corrupt("a value of a row type is malformed")
}
