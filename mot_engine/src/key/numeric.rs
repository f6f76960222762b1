//! Order-preserving encoding of PostgreSQL's numeric.
//!
//! A numeric datum is a header and base-10000 digits: value = sign * sum(digit[i] *
//! 10000^(weight - i)). The short header (one u16) packs sign, display scale and a 7-bit weight;
//! the long one is two u16. Zeros at both ends are cut here, so equal values of any display scale
//! give the same bytes.
//!
//! ```text
//! lead byte   01 -Infinity | 2F..70 negative | 80 zero | 8F..D0 positive | FE +Infinity | FF NaN
//! positive:   90 + (weight + 16) for weights -16..=47; else 8F (smaller) or D0 (larger) and the
//!             weight as a big-endian u16 biased by 0x8000
//! each digit: big-endian u16, digit * 2 + (1 if another follows)
//! negative:   the complement of the positive number's bytes
//! ```
//! A longer number with the same leading digits is larger (its further digits are not all zero),
//! which is what the low bit says; so no terminator is needed.

use super::buffer::KeyBuffer;
use crate::errors::EngineError;

const SIGN_MASK: u16 = 0xC000;
const SHORT: u16 = 0x8000;
const SPECIAL: u16 = 0xC000;
const NAN: u16 = 0xC000;
const POSITIVE_INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;
const NEGATIVE: u16 = 0x4000;
const SHORT_SIGN: u16 = 0x2000;
const SHORT_WEIGHT_SIGN: u16 = 0x0040;
const SHORT_WEIGHT_MASK: u16 = 0x003F;

const LEAD_NEGATIVE_INFINITY: u8 = 0x01;
const LEAD_ZERO: u8 = 0x80;
const LEAD_SMALL: u8 = 0x8F;
const LEAD_WEIGHT: u8 = 0x90;
const LEAD_LARGE: u8 = 0xD0;
const LEAD_POSITIVE_INFINITY: u8 = 0xFE;
const LEAD_NAN: u8 = 0xFF;
/// Weights that fit into the lead byte: from this one, 64 of them.
const WEIGHT_FIRST: i32 = -16;
const WEIGHT_LAST: i32 = 47;

const DIGIT_BASE: u16 = 10_000;

/// Appends the place of the first digit, which is not 0.
#[inline]
fn push_weight(weight: i32, key: &mut KeyBuffer) -> Result<(), EngineError> {
    if (WEIGHT_FIRST..=WEIGHT_LAST).contains(&weight) {
        return key.push_array([LEAD_WEIGHT + (weight - WEIGHT_FIRST) as u8]);
    }
    // Cut leading zeros can take a malformed weight below i16's range; PostgreSQL never stores
    // those.
    let weight = i16::try_from(weight).map_err(|_| corrupt())?;
    let [high, low] = ((weight as u16) ^ 0x8000).to_be_bytes();
    key.push_array([if weight < 0 { LEAD_SMALL } else { LEAD_LARGE }, high, low])
}

/// Appends the encoding of a numeric's payload (the varlena without its header).
pub(super) fn encode(payload: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let Some((header, rest)) = payload.split_first_chunk::<2>() else {
        return Err(corrupt());
    };
    let header = u16::from_le_bytes(*header);
    let (negative, weight, digits) = match header & SIGN_MASK {
        SPECIAL => {
            let lead = match header {
                NAN => LEAD_NAN,
                POSITIVE_INFINITY => LEAD_POSITIVE_INFINITY,
                NEGATIVE_INFINITY => LEAD_NEGATIVE_INFINITY,
                _ => return Err(corrupt()),
            };
            return key.push_array([lead]);
        }
        SHORT => {
            let magnitude = i32::from(header & SHORT_WEIGHT_MASK);
            let weight = if header & SHORT_WEIGHT_SIGN != 0 {
                magnitude - i32::from(SHORT_WEIGHT_MASK) - 1
            } else {
                magnitude
            };
            (header & SHORT_SIGN != 0, weight, rest)
        }
        sign => {
            let Some((weight, digits)) = rest.split_first_chunk::<2>() else {
                return Err(corrupt());
            };
            (
                sign == NEGATIVE,
                i32::from(i16::from_le_bytes(*weight)),
                digits,
            )
        }
    };
    let (mut digits, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(corrupt());
    }
    let mut weight = weight;
    while let [[0, 0], rest @ ..] = digits {
        digits = rest;
        weight -= 1;
    }
    while let [rest @ .., [0, 0]] = digits {
        digits = rest;
    }
    if digits.is_empty() {
        return key.push_array([LEAD_ZERO]);
    }
    let start = key.len();
    push_weight(weight, key)?;
    let last = digits.len() - 1;
    for (index, digit) in digits.iter().enumerate() {
        let digit = u16::from_le_bytes(*digit);
        if digit >= DIGIT_BASE {
            return Err(corrupt());
        }
        key.push_array((digit << 1 | u16::from(index < last)).to_be_bytes())?;
    }
    if negative {
        key.complement_from(start);
    }
    Ok(())
}

#[cold]
fn corrupt() -> EngineError {
    EngineError::Corrupt {
        what: "numeric is malformed",
    }
}
