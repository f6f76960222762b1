//! Finds attributes in a row's body: a PostgreSQL heap tuple as 15 to 18 lay it out on a
//! little-endian machine, behind the 18 bytes that are the engine's stamp.
//!
//! ```text
//!  0 t_infomask2: bits 0..11 = number of attributes   2 t_infomask: bit 0 = has NULLs
//!    (bits of transaction information in both are another's: `row/ordinal.rs`)
//!  4 t_hoff: where the data starts, from 18 bytes before the body
//!  5.. null bitmap, 1 = present     t_hoff - 18.. data, each value aligned from there
//! ```
//!
//! Contract: total. Offsets are checked against the body's length before every read; malformed
//! bytes give `Corrupt`. Nothing is copied. Values are flat: an external or compressed datum is
//! malformed here (the glue flattens before it stores).

use super::definition::AttributeLayout;
use crate::errors::EngineError;

/// Where in a tuple its body starts: what precedes is the engine's stamp, never logged or
/// checkpointed.
pub const BODY_OFFSET_BYTES: usize = 18;

/// Length of the body's fixed part, before the null bitmap.
pub const BODY_HEADER_BYTES: usize = 23 - BODY_OFFSET_BYTES;

const INFOMASK2_OFFSET: usize = 18 - BODY_OFFSET_BYTES;
const INFOMASK_OFFSET: usize = 20 - BODY_OFFSET_BYTES;
const HOFF_OFFSET: usize = 22 - BODY_OFFSET_BYTES;
const NATTS_MASK: u16 = 0x07FF;
const HAS_NULL: u16 = 0x0001;

/// A value found in a row.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Attribute<'a> {
    /// NULL.
    Null,
    /// Beyond the attributes the tuple has: a row from before the column.
    Beyond,
    /// The fixed-width bytes, the varlena's payload without header, or the C string without its
    /// zero byte.
    Bytes(&'a [u8]),
}

/// Walks a body's attributes forward; going back restarts at the first.
pub struct BodyReader<'a> {
    layout: &'a [AttributeLayout],
    /// From t_hoff on.
    data: &'a [u8],
    /// Empty when there are no NULLs.
    nulls: &'a [u8],
    attributes: usize,
    /// Attribute index (from 0) that `offset` precedes.
    position: usize,
    /// Offset in `data` after attribute `position - 1`, not yet aligned.
    offset: usize,
}

impl<'a> BodyReader<'a> {
    /// Reads the header of `body`.
    #[inline]
    pub fn new(layout: &'a [AttributeLayout], body: &'a [u8]) -> Result<Self, EngineError> {
        let header: &[u8; BODY_HEADER_BYTES] = body
            .first_chunk()
            .ok_or_else(|| corrupt("tuple is shorter than its header"))?;
        let infomask2 =
            u16::from_le_bytes([header[INFOMASK2_OFFSET], header[INFOMASK2_OFFSET + 1]]);
        let infomask = u16::from_le_bytes([header[INFOMASK_OFFSET], header[INFOMASK_OFFSET + 1]]);
        let data_offset = usize::from(header[HOFF_OFFSET]).saturating_sub(BODY_OFFSET_BYTES);
        let attributes = usize::from(infomask2 & NATTS_MASK);
        let nulls_bytes = if infomask & HAS_NULL != 0 {
            attributes.div_ceil(8)
        } else {
            0
        };
        if data_offset < BODY_HEADER_BYTES + nulls_bytes || data_offset > body.len() {
            return Err(corrupt("tuple's data offset is out of range"));
        }
        Ok(Self {
            layout,
            data: &body[data_offset..],
            nulls: &body[BODY_HEADER_BYTES..BODY_HEADER_BYTES + nulls_bytes],
            attributes,
            position: 0,
            offset: 0,
        })
    }

    /// The data of a body that has no NULLs and at least so many attributes; `None` for any other,
    /// and for a malformed one.
    #[inline]
    pub fn data_without_nulls(body: &[u8], attributes: usize) -> Option<&[u8]> {
        let header: &[u8; BODY_HEADER_BYTES] = body.first_chunk()?;
        let infomask2 =
            u16::from_le_bytes([header[INFOMASK2_OFFSET], header[INFOMASK2_OFFSET + 1]]);
        let infomask = u16::from_le_bytes([header[INFOMASK_OFFSET], header[INFOMASK_OFFSET + 1]]);
        let data_offset = usize::from(header[HOFF_OFFSET]).checked_sub(BODY_OFFSET_BYTES)?;
        if infomask & HAS_NULL != 0
            || usize::from(infomask2 & NATTS_MASK) < attributes
            || data_offset < BODY_HEADER_BYTES
        {
            return None;
        }
        body.get(data_offset..)
    }

    #[inline(always)]
    fn is_null(&self, index: usize) -> bool {
        !self.nulls.is_empty() && self.nulls[index >> 3] & (1 << (index & 7)) == 0
    }

    /// Attribute number `attnum` (from 1).
    #[inline]
    pub fn attribute(&mut self, attnum: u16) -> Result<Attribute<'a>, EngineError> {
        let target = usize::from(attnum)
            .checked_sub(1)
            .ok_or_else(|| corrupt("attribute numbers start at 1"))?;
        if target >= self.layout.len() {
            return Err(corrupt("attribute has no layout"));
        }
        if target >= self.attributes {
            return Ok(Attribute::Beyond);
        }
        if self.is_null(target) {
            return Ok(Attribute::Null);
        }
        if target < self.position {
            self.position = 0;
            self.offset = 0;
        }
        while self.position < target {
            if !self.is_null(self.position) {
                let (_, end) = self.value(self.position)?;
                self.offset = end;
            }
            self.position += 1;
        }
        let (bytes, end) = self.value(target)?;
        self.position = target + 1;
        self.offset = end;
        Ok(Attribute::Bytes(bytes))
    }

    /// The bytes of attribute `index`, which is not NULL and is next, and where it ends.
    #[inline(always)]
    fn value(&self, index: usize) -> Result<(&'a [u8], usize), EngineError> {
        let layout = self.layout[index];
        if layout.len > 0 {
            let start = layout.align_up(self.offset);
            let end = start + layout.len as usize;
            let bytes = self.data.get(start..end).ok_or_else(cut)?;
            return Ok((bytes, end));
        }
        if layout.len == -1 {
            self.varlena(layout)
        } else {
            self.cstring(layout)
        }
    }

    #[inline]
    fn varlena(&self, layout: AttributeLayout) -> Result<(&'a [u8], usize), EngineError> {
        // A zero byte can only be padding: no 1-byte header is zero, and a 4-byte header stands
        // aligned (its padding was written as zero bytes).
        let mut start = self.offset;
        if *self.data.get(start).ok_or_else(cut)? == 0 {
            start = layout.align_up(start);
        }
        let first = *self.data.get(start).ok_or_else(cut)?;
        if first & 1 == 1 {
            if first == 1 {
                return Err(corrupt("tuple holds an external datum"));
            }
            // The length counts the header byte.
            let end = start + usize::from(first >> 1);
            return Ok((self.data.get(start + 1..end).ok_or_else(cut)?, end));
        }
        if first & 3 == 2 {
            return Err(corrupt("tuple holds a compressed datum"));
        }
        let start = layout.align_up(start);
        let header: &[u8; 4] = self
            .data
            .get(start..)
            .and_then(|rest| rest.first_chunk())
            .ok_or_else(cut)?;
        let header = u32::from_le_bytes(*header);
        if header & 3 != 0 {
            return Err(corrupt("tuple holds a malformed datum"));
        }
        let length = (header >> 2) as usize;
        if length < 4 {
            return Err(corrupt("tuple holds a malformed datum"));
        }
        let end = start + length;
        Ok((self.data.get(start + 4..end).ok_or_else(cut)?, end))
    }

    fn cstring(&self, layout: AttributeLayout) -> Result<(&'a [u8], usize), EngineError> {
        let start = layout.align_up(self.offset);
        let rest = self.data.get(start..).ok_or_else(cut)?;
        let length = rest.iter().position(|byte| *byte == 0).ok_or_else(cut)?;
        Ok((&rest[..length], start + length + 1))
    }
}

#[cold]
fn cut() -> EngineError {
    corrupt("tuple ends inside an attribute")
}

#[cold]
fn corrupt(what: &'static str) -> EngineError {
    EngineError::Corrupt { what }
}
