//! The types of pgvector, as it lays them out behind the varlena's header.
//!
//! ```text
//! vector     each number as float4; 4 zero bytes
//! halfvec    each number, two bytes ordered as floats are; 2 zero bytes
//! sparsevec  per number that is not zero: 00 negative, u32 place, 01, the number as float4; or
//!            02 positive, u32 place, complemented, 01, the number; then 00, u32 dimensions, 00
//! ```
//! All three compare number by number, and a vector is ahead of those that it begins. No number's
//! bytes are all zero: that would be a NaN, which no vector has.
//!
//! Of a sparse vector the zeros count that are not there. Where one vector has a negative number,
//! and the other a zero or another negative one behind it, the first is smaller: so an early place
//! makes it small. A positive one makes it large. An end is less than any number at its place.

use super::extensions::not_a_number;
use super::kinds::corrupt;
use super::numbers::order_f32;
use crate::errors::EngineError;
use crate::key::buffer::KeyBuffer;

/// Ahead of numbers: dimensions, and something that is zero.
const HEADER_BYTES: usize = 4;
/// Of a sparse vector: dimensions, numbers that are not zero, and something that is zero.
const SPARSE_HEADER_BYTES: usize = 12;

const NEGATIVE: u8 = 0;
const POSITIVE: u8 = 2;
const END: u8 = 0;
const VALUE: u8 = 1;

/// So many numbers as the header says.
fn numbers<const N: usize>(bytes: &[u8]) -> Result<&[[u8; N]], EngineError> {
    let malformed = || corrupt("vector is malformed");
    let ([low, high, ..], rest) = bytes
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or_else(malformed)?;
    let dimensions = usize::from(u16::from_le_bytes([*low, *high]));
    rest.as_chunks::<N>()
        .0
        .get(..dimensions)
        .ok_or_else(malformed)
}

#[inline(never)]
pub(super) fn encode_vector(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    for number in numbers::<4>(bytes)? {
        key.push_array(ordered(*number)?)?;
        if key.is_too_long() {
            return Ok(());
        }
    }
    key.push_array([0; 4])
}

#[inline(never)]
pub(super) fn encode_halfvec(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    for number in numbers::<2>(bytes)? {
        key.push_array(order_half(u16::from_le_bytes(*number))?.to_be_bytes())?;
        if key.is_too_long() {
            return Ok(());
        }
    }
    key.push_array([0; 2])
}

#[inline(never)]
pub(super) fn encode_sparsevec(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("sparsevec is malformed");
    let (header, rest) = bytes
        .split_first_chunk::<SPARSE_HEADER_BYTES>()
        .ok_or_else(malformed)?;
    let [a, b, c, d, e, f, g, h, ..] = *header;
    let dimensions = u32::from_le_bytes([a, b, c, d]);
    let count = u32::from_le_bytes([e, f, g, h]) as usize;
    let words = rest.as_chunks::<4>().0;
    let places = words.get(..count).ok_or_else(malformed)?;
    let numbers = words[count..].get(..count).ok_or_else(malformed)?;
    for (place, number) in places.iter().zip(numbers) {
        let place = u32::from_le_bytes(*place);
        let value = f32::from_le_bytes(*number);
        if value == 0.0 || place >= dimensions {
            return Err(malformed());
        }
        let (sign, place) = match value < 0.0 {
            true => (NEGATIVE, place),
            false => (POSITIVE, !place),
        };
        key.push_array([sign])?;
        key.push_array(place.to_be_bytes())?;
        key.push_array([VALUE])?;
        key.push_array(ordered(*number)?)?;
        if key.is_too_long() {
            return Ok(());
        }
    }
    key.push_array([NEGATIVE])?;
    key.push_array(dimensions.to_be_bytes())?;
    key.push_array([END])
}

fn ordered(number: [u8; 4]) -> Result<[u8; 4], EngineError> {
    let bits = u32::from_le_bytes(number);
    match f32::from_bits(bits).is_nan() {
        true => Err(not_a_number()),
        false => Ok(order_f32(bits).to_be_bytes()),
    }
}

/// Bits of a number of half precision: sign, exponent (5), fraction (10).
const HALF_SIGN: u16 = 1 << 15;
const HALF_INFINITE: u16 = 0x1F << 10;

fn order_half(bits: u16) -> Result<u16, EngineError> {
    let magnitude = bits & !HALF_SIGN;
    if magnitude > HALF_INFINITE {
        return Err(not_a_number());
    }
    Ok(match bits & HALF_SIGN {
        _ if magnitude == 0 => HALF_SIGN,
        0 => bits | HALF_SIGN,
        _ => !bits,
    })
}
