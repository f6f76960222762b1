//! Arrays, ranges and multiranges: the encodings of what they hold, between marks.
//!
//! Their values are flat, as PostgreSQL lays them out behind the varlena's header. Alignment counts
//! from that header, whichever form it has in the row.
//!
//! They are kept out of line: what keys mostly are stays short, and is no part of a recursion.
//!
//! Contract: total, as all encoders. An encoding that has become longer than any key is left
//! unfinished: it is `KeyTooLong`, or an end that is cut anyway.

use super::kinds::corrupt;
use super::strings::encode_held;
use crate::collation::Collation;
use crate::errors::EngineError;
use crate::key::buffer::KeyBuffer;
use crate::key::kind::ElementKind;

/// Bytes of a varlena's header, which the values here are without.
const VARLENA_BYTES: usize = 4;
/// PostgreSQL's MAXALIGN.
const ALIGN_MAX: usize = 8;

/// Before an element of an array, or a range of a multirange: none is left, a value, NULL.
const END: u8 = 0;
const VALUE: u8 = 1;
const NULL: u8 = 2;

/// An array: number of dimensions, where the data is, the elements' type; PostgreSQL's MAXDIM.
const ARRAY_HEADER_BYTES: usize = 12;
const DIMENSIONS_MAX: usize = 6;
/// PostgreSQL's MaxArraySize.
const ELEMENTS_MAX: usize = 0x3FFF_FFFF / 8;

/// A range begins with its type, a multirange with that and the number of ranges.
const RANGE_HEADER_BYTES: usize = 4;
const MULTIRANGE_HEADER_BYTES: usize = 8;
/// Bytes for each range of a multirange behind the first: where it is.
const ITEM_BYTES: usize = 4;

/// Flags of a range (`utils/rangetypes.h`).
const RANGE_EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;

/// Before a bound: nothing is beyond it, a value, nothing is beyond it.
const BOUND_LOWEST: u8 = 0;
const BOUND_VALUE: u8 = 1;
const BOUND_HIGHEST: u8 = 2;

/// What the held values are ordered by.
#[derive(Copy, Clone)]
pub(super) struct Element {
    pub(super) kind: ElementKind,
    /// Of texts.
    pub(super) collation: Option<Collation>,
}

impl Element {
    fn encode(self, bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
        encode_held(self.kind.kind(), self.collation, bytes, key)
    }
}

/// array_cmp: the elements, NULL behind all values, then their number, the number of dimensions,
/// their lengths and lower bounds.
#[inline(never)]
pub(super) fn encode_array(
    element: Element,
    bytes: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    let array = Array::of(bytes)?;
    let mut values = Values {
        bytes,
        offset: array.data_offset,
        element,
    };
    for at in 0..array.elements {
        if array.is_null(at) {
            key.push_array([NULL])?;
        } else {
            key.push_array([VALUE])?;
            element.encode(values.next_aligned()?, key)?;
        }
        if key.is_too_long() {
            return Ok(());
        }
    }
    key.push_array([END, array.lengths.len() as u8])?;
    for length in array.lengths {
        key.push_array(u32::from_le_bytes(*length).to_be_bytes())?;
    }
    for bound in array.lower_bounds {
        key.push_array((u32::from_le_bytes(*bound) ^ 1 << 31).to_be_bytes())?;
    }
    Ok(())
}

/// Parts of an array.
struct Array<'a> {
    lengths: &'a [[u8; 4]],
    lower_bounds: &'a [[u8; 4]],
    elements: usize,
    /// A bit for each element, 0 for NULL; empty: none is.
    present: &'a [u8],
    data_offset: usize,
}

impl<'a> Array<'a> {
    fn of(bytes: &'a [u8]) -> Result<Array<'a>, EngineError> {
        let malformed = || corrupt("array is malformed");
        let (header, rest) = bytes
            .split_first_chunk::<ARRAY_HEADER_BYTES>()
            .ok_or_else(malformed)?;
        let [a, b, c, d, e, f, g, h, ..] = *header;
        let dimensions = u32::from_le_bytes([a, b, c, d]) as usize;
        let data = u32::from_le_bytes([e, f, g, h]) as usize;
        if dimensions > DIMENSIONS_MAX {
            return Err(malformed());
        }
        let sizes = rest.get(..8 * dimensions).ok_or_else(malformed)?;
        let (lengths, lower_bounds) = sizes.as_chunks::<4>().0.split_at(dimensions);
        let mut elements = usize::from(dimensions > 0);
        for length in lengths {
            elements = elements
                .checked_mul(u32::from_le_bytes(*length) as usize)
                .filter(|elements| *elements <= ELEMENTS_MAX)
                .ok_or_else(malformed)?;
        }
        let sizes_end = ARRAY_HEADER_BYTES + sizes.len();
        let (present, data_offset) = match data {
            0 => (&[][..], aligned(sizes_end, ALIGN_MAX)),
            _ => {
                let present = bytes.get(sizes_end..sizes_end + elements.div_ceil(8));
                let data_offset = data.checked_sub(VARLENA_BYTES);
                present.zip(data_offset).ok_or_else(malformed)?
            }
        };
        Ok(Array {
            lengths,
            lower_bounds,
            elements,
            present,
            data_offset,
        })
    }

    fn is_null(&self, element: usize) -> bool {
        let byte = self.present.get(element / 8);
        byte.is_some_and(|byte| byte & 1 << (element % 8) == 0)
    }
}

/// range_cmp: an empty range before all others, then the lower bound, then the upper one.
#[inline(never)]
pub(super) fn encode_range(
    element: Element,
    bytes: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    let (flags, bytes) = match bytes.split_last() {
        Some((flags, bytes)) if bytes.len() >= RANGE_HEADER_BYTES => (*flags, bytes),
        _ => return Err(corrupt("range is malformed")),
    };
    if flags & RANGE_EMPTY != 0 {
        return key.push_array([END]);
    }
    key.push_array([VALUE])?;
    let mut values = Values {
        bytes,
        offset: RANGE_HEADER_BYTES,
        element,
    };
    encode_bounds(flags, &mut values, key)
}

/// multirange_cmp: one range after the other, then their number.
#[inline(never)]
pub(super) fn encode_multirange(
    element: Element,
    bytes: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    let malformed = || corrupt("multirange is malformed");
    let header = bytes
        .first_chunk::<MULTIRANGE_HEADER_BYTES>()
        .ok_or_else(malformed)?;
    let [.., a, b, c, d] = *header;
    let count = u32::from_le_bytes([a, b, c, d]) as usize;
    let flags_offset = MULTIRANGE_HEADER_BYTES + count.saturating_sub(1) * ITEM_BYTES;
    let flags = bytes
        .get(flags_offset..flags_offset + count)
        .ok_or_else(malformed)?;
    let mut values = Values {
        bytes,
        offset: flags_offset + count,
        element,
    };
    for flags in flags {
        values.align();
        key.push_array([VALUE])?;
        encode_bounds(*flags, &mut values, key)?;
        if key.is_too_long() {
            return Ok(());
        }
    }
    key.push_array([END])
}

/// range_cmp_bounds: an infinite bound is beyond all values. Of two equal values the bound that
/// lets more values in is the lower one below, and the higher one above.
fn encode_bounds(
    flags: u8,
    values: &mut Values<'_>,
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    let element = values.element;
    if flags & LOWER_INFINITE != 0 {
        key.push_array([BOUND_LOWEST])?;
    } else {
        key.push_array([BOUND_VALUE])?;
        element.encode(values.next_packed()?, key)?;
        if key.is_too_long() {
            return Ok(());
        }
        key.push_array([u8::from(flags & LOWER_INCLUSIVE == 0)])?;
    }
    if flags & UPPER_INFINITE != 0 {
        return key.push_array([BOUND_HIGHEST]);
    }
    key.push_array([BOUND_VALUE])?;
    element.encode(values.next_packed()?, key)?;
    if key.is_too_long() {
        return Ok(());
    }
    key.push_array([u8::from(flags & UPPER_INCLUSIVE != 0)])
}

/// Values that lie one behind the other.
struct Values<'a> {
    /// All that is behind the varlena's header.
    bytes: &'a [u8],
    /// Where in it the next value, or the padding before it, begins.
    offset: usize,
    element: Element,
}

impl<'a> Values<'a> {
    fn align(&mut self) {
        self.offset = aligned(self.offset, usize::from(self.element.kind.align()));
    }

    /// The next one, which is aligned whatever its header.
    fn next_aligned(&mut self) -> Result<&'a [u8], EngineError> {
        self.align();
        self.take()
    }

    /// The next one. Before a varlena with a short header there is no padding, and a zero byte is
    /// nothing else.
    fn next_packed(&mut self) -> Result<&'a [u8], EngineError> {
        let is_varlena = self.element.kind.kind().width() < 0;
        if !is_varlena || self.bytes.get(self.offset) == Some(&0) {
            self.align();
        }
        self.take()
    }

    fn take(&mut self) -> Result<&'a [u8], EngineError> {
        let rest = self.bytes.get(self.offset..).ok_or_else(cut)?;
        let (header, length) = match usize::try_from(self.element.kind.kind().width()) {
            Ok(width) => (0, width),
            Err(_) => varlena(rest)?,
        };
        let value = rest.get(header..length).ok_or_else(cut)?;
        self.offset += length;
        Ok(value)
    }
}

/// Bytes of a varlena's header, and of all of it.
pub(super) fn varlena(bytes: &[u8]) -> Result<(usize, usize), EngineError> {
    let malformed = || corrupt("a value inside another one is malformed");
    let first = *bytes.first().ok_or_else(cut)?;
    if first & 1 == 1 {
        // A length of zero is that of an external datum.
        return match first >> 1 {
            0 => Err(malformed()),
            length => Ok((1, usize::from(length))),
        };
    }
    let header = u32::from_le_bytes(*bytes.first_chunk().ok_or_else(cut)?);
    let length = (header >> 2) as usize;
    // The other bit is that of a compressed datum.
    if header & 3 != 0 || length < VARLENA_BYTES {
        return Err(malformed());
    }
    Ok((VARLENA_BYTES, length))
}

/// The next place from `offset` on that is aligned, counted from the varlena's header.
fn aligned(offset: usize, align: usize) -> usize {
    (offset + VARLENA_BYTES).next_multiple_of(align) - VARLENA_BYTES
}

#[cold]
fn cut() -> EngineError {
    corrupt("a value ends inside another one")
}
