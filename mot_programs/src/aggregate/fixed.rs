//! Numerics as numbers of a fixed point, where they fit: what most columns hold is added up without
//! a call. The others are PostgreSQL's.
//!
//! A numeric is a sign, digits of base 10000, the place of the first, and how many decimal digits
//! are shown. (`utils/adt/numeric.c`: the form is what is on disk, and fixed.) No digit beyond
//! those that are shown is other than 0.
use crate::filter::ROWS;

/// Digits of base 10000 behind the point.
const FRACTION: i32 = 4;
/// The same in decimal digits.
const FRACTION_DIGITS: usize = 16;
/// The place of the highest digit that fits: below 10^20, so that some hundred such numbers do not
/// overflow.
const WEIGHT_MAX: i32 = 4;
/// Powers of the base.
const POWERS: [i128; (FRACTION + WEIGHT_MAX + 1) as usize] = {
    let mut powers = [1; (FRACTION + WEIGHT_MAX + 1) as usize];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10_000;
        at += 1;
    }
    powers
};

/// A number in units of 10^-16, and how many decimal digits of it are shown.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Fixed {
    /// In units of 10^-16.
    pub value: i128,
    /// Decimal digits behind the point that are shown.
    pub scale: u16,
}

/// Numerics of a group's rows.
pub type Fixeds = [Fixed; ROWS];

impl Fixed {
    /// Of a numeric's bytes behind the length; `None`: it does not fit, or is no number.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Fixed> {
        const SPECIAL: u16 = 0xC000;
        const SHORT: u16 = 0x8000;
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 2)?;
            Some(u16::from_ne_bytes([bytes[0], bytes[1]]))
        };
        let header = word(0)?;
        let (is_negative, scale, weight, digits) = match header & SPECIAL {
            SPECIAL => return None,
            SHORT => {
                // Seven bits, the highest of them the sign.
                let weight = i32::from((header << 9) as i16 >> 9);
                let scale = header >> 7 & 0x3F;
                (header & 0x2000 != 0, scale, weight, &bytes[2..])
            }
            sign => {
                let weight = i32::from(word(2)? as i16);
                (sign != 0, header & 0x3FFF, weight, &bytes[4..])
            }
        };
        let digits = digits.chunks_exact(2);
        let count = digits.len() as i32;
        if count == 0 {
            return Some(Fixed { value: 0, scale });
        }
        // The power of the last digit, counted from the last one that fits.
        let power = FRACTION + weight - (count - 1);
        if weight > WEIGHT_MAX || power < 0 {
            return None;
        }
        let digit = |digit: &[u8]| u16::from_ne_bytes([digit[0], digit[1]]);
        let magnitude = if count <= 4 {
            i128::from(digits.fold(0, |sum: u64, at| sum * 10_000 + u64::from(digit(at))))
        } else {
            digits.fold(0, |sum: i128, at| sum * 10_000 + i128::from(digit(at)))
        };
        let value = magnitude * POWERS[power as usize];
        Some(Fixed {
            value: if is_negative { -value } else { value },
            scale,
        })
    }

    /// The decimal form, with as many digits as are shown.
    pub fn text(self) -> String {
        let scale = usize::from(self.scale);
        let magnitude = self.value.unsigned_abs();
        let unit = 10_u128.pow(FRACTION_DIGITS as u32);
        let mut text = String::with_capacity(64 + scale);
        if self.value < 0 {
            text.push('-');
        }
        text.push_str(&(magnitude / unit).to_string());
        if scale > 0 {
            let fraction = format!("{:016}", magnitude % unit);
            text.push('.');
            text.push_str(&fraction[..scale.min(FRACTION_DIGITS)]);
            text.extend(std::iter::repeat_n(
                '0',
                scale.saturating_sub(FRACTION_DIGITS),
            ));
        }
        text
    }
}

/// Whether a numeric has a digit at the highest place that there is (`NUMERIC_WEIGHT_MAX`): the sum
/// of two others is in range.
#[inline]
pub fn is_at_the_end(bytes: &[u8]) -> bool {
    const SHORT_OR_SPECIAL: u16 = 0x8000;
    let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
    bytes.len() >= 4 && word(0) & SHORT_OR_SPECIAL == 0 && word(2) as i16 == i16::MAX
}
