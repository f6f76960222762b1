//! Types of extensions that come with PostgreSQL, as they lie behind the varlena's header.
//!
//! ```text
//! hstore    00 without pairs; or 01, all keys' and values' texts as one bytea, u32 pairs,
//!           then per key and value: u32 where it ends in the texts, 01 NULL or 00
//! ltree     per level its encoding as a text; 00
//! cube      u8 dimensions, the smaller ends, the larger ends, as float8
//! seg       lower end as float4, its mark's place, digits, 01 or 00 (about); upper likewise
//! ```
//! - hstore_cmp compares the texts as one, then their length, and then where they are cut.
//! - cube_cmp has no order of cubes of several dimensions: three of them may each lie below the
//!   next. Its equality is an equivalence, and among cubes of one dimension it orders. So keys
//!   serve equality. Only indexes of earlier builds have them; new ones give cubes labels.
//! - seg_cmp: `<` and `>` widen an end, `~` blurs it, `-` stands for none; fewer digits blur, too.
//!
//! A number that is not one (NaN) has no place in these orders: it equals all others.

use super::kinds::corrupt;
use super::numbers::{order_f32, order_f64};
use super::strings::encode_held;
use crate::errors::EngineError;
use crate::key::buffer::KeyBuffer;
use crate::key::kind::KeyKind;

/// An hstore begins with flags and the number of pairs.
const HSTORE_CURRENT: u32 = 0x8000_0000;
const HSTORE_COUNT_MASK: u32 = 0x0FFF_FFFF;
const HSTORE_ENTRY_NULL: u32 = 0x4000_0000;
const HSTORE_END_MASK: u32 = 0x3FFF_FFFF;

const NONE: u8 = 0;
const SOME: u8 = 1;

/// Of a cube: one corner stands for both, and the number of dimensions.
const CUBE_POINT: u32 = 0x8000_0000;
const CUBE_DIMENSIONS_MASK: u32 = 0x7FFF_FFFF;

/// An ltree's levels begin, counted behind the varlena's header, and are aligned.
const LTREE_LABELS: usize = 4;
const LTREE_ALIGN: usize = 8;

#[inline(never)]
pub(super) fn encode_hstore(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("hstore is malformed");
    let (header, rest) = bytes.split_first_chunk::<4>().ok_or_else(malformed)?;
    let header = u32::from_le_bytes(*header);
    if header & HSTORE_CURRENT == 0 {
        return Err(corrupt("hstore has the form of PostgreSQL 8.4"));
    }
    let count = header & HSTORE_COUNT_MASK;
    let (entries, texts) = rest
        .split_at_checked(count as usize * 8)
        .ok_or_else(malformed)?;
    let entries = entries.as_chunks::<4>().0;
    let Some(last) = entries.last() else {
        return key.push_array([NONE]);
    };
    let end = u32::from_le_bytes(*last) & HSTORE_END_MASK;
    let texts = texts.get(..end as usize).ok_or_else(malformed)?;
    key.push_array([SOME])?;
    encode_held(KeyKind::Bytea, None, texts, key)?;
    key.push_array(count.to_be_bytes())?;
    for entry in entries {
        if key.is_too_long() {
            break;
        }
        let entry = u32::from_le_bytes(*entry);
        key.push_array((entry & HSTORE_END_MASK).to_be_bytes())?;
        key.push_array([u8::from(entry & HSTORE_ENTRY_NULL != 0)])?;
    }
    Ok(())
}

#[inline(never)]
pub(super) fn encode_ltree(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("ltree is malformed");
    let count = bytes.first_chunk::<2>().ok_or_else(malformed)?;
    let count = u16::from_le_bytes(*count);
    let mut offset = LTREE_LABELS;
    for _ in 0..count {
        let rest = bytes.get(offset..).ok_or_else(malformed)?;
        let (length, rest) = rest.split_first_chunk::<2>().ok_or_else(malformed)?;
        let length = usize::from(u16::from_le_bytes(*length));
        let level = rest.get(..length).filter(|level| !level.is_empty());
        // No level is empty, so the end is ahead of all of them.
        encode_held(KeyKind::Text, None, level.ok_or_else(malformed)?, key)?;
        if key.is_too_long() {
            return Ok(());
        }
        offset += (2 + length).next_multiple_of(LTREE_ALIGN);
    }
    key.push_array([NONE])
}

#[inline(never)]
pub(super) fn encode_cube(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("cube is malformed");
    let (header, corners) = bytes.split_first_chunk::<4>().ok_or_else(malformed)?;
    let header = u32::from_le_bytes(*header);
    let dimensions = (header & CUBE_DIMENSIONS_MASK) as usize;
    let corners = corners.as_chunks::<8>().0;
    let first = corners.get(..dimensions).ok_or_else(malformed)?;
    let second = match header & CUBE_POINT {
        0 => corners.get(dimensions..2 * dimensions),
        _ => Some(first),
    };
    let second = second.ok_or_else(malformed)?;
    key.push_array([u8::try_from(dimensions).map_err(|_| malformed())?])?;
    let ends = || {
        let number = |bytes: &[u8; 8]| f64::from_le_bytes(*bytes);
        let pairs = first.iter().zip(second);
        pairs.map(move |(one, other)| (number(one), number(other)))
    };
    if ends().any(|(one, other)| one.is_nan() || other.is_nan()) {
        return Err(not_a_number());
    }
    let smaller = ends().map(|(one, other)| one.min(other));
    let larger = ends().map(|(one, other)| one.max(other));
    for end in smaller.chain(larger) {
        key.push_array(order_f64(end.to_bits()).to_be_bytes())?;
    }
    Ok(())
}

/// An end of a seg: its value, its significant digits, and its mark.
struct SegEnd {
    value: f32,
    digits: u8,
    mark: u8,
}

impl SegEnd {
    /// What counts between the value and the digits, and what counts last.
    fn marks(&self, order: [u8; 4]) -> Result<(u8, bool), EngineError> {
        let [none, less, plain, more] = order;
        match self.mark {
            b'-' => Ok((none, false)),
            b'<' => Ok((less, false)),
            b'>' => Ok((more, false)),
            b'~' => Ok((plain, true)),
            0 => Ok((plain, false)),
            _ => Err(corrupt("seg is malformed")),
        }
    }

    fn value(&self) -> Result<[u8; 4], EngineError> {
        match self.value.is_nan() {
            true => Err(not_a_number()),
            false => Ok(order_f32(self.value.to_bits()).to_be_bytes()),
        }
    }
}

pub(super) fn encode_seg(bytes: [u8; 12], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        lower_digits,
        upper_digits,
        lower_mark,
        upper_mark,
    ] = bytes;
    let lower = SegEnd {
        value: f32::from_le_bytes([a, b, c, d]),
        digits: lower_digits,
        mark: lower_mark,
    };
    let upper = SegEnd {
        value: f32::from_le_bytes([e, f, g, h]),
        digits: upper_digits,
        mark: upper_mark,
    };
    // C's char is signed here.
    let signed = |digits: u8| digits ^ 1 << 7;
    let (mark, is_blurred) = lower.marks([0, 1, 2, 3])?;
    key.push_array(lower.value()?)?;
    key.push_array([mark, signed(lower.digits), u8::from(!is_blurred)])?;
    let (mark, is_blurred) = upper.marks([3, 0, 1, 2])?;
    key.push_array(upper.value()?)?;
    key.push_array([mark, !signed(upper.digits), u8::from(is_blurred)])
}

#[cold]
pub(super) fn not_a_number() -> EngineError {
    EngineError::NoOrder {
        what: "it has a coordinate that is not a number",
    }
}
