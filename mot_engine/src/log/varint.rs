//! Unsigned LEB128 numbers: 7 bits per byte, low bits first, the high bit says "more".
//!
//! Contract: `Cursor` never reads beyond its bytes; a number longer than 10 bytes or above 64 bits
//! is an error. Writers write the shortest form; readers accept any.

use crate::errors::EngineError;

/// Longest encoded number in bytes.
pub const VARINT_BYTES_MAX: usize = 10;

/// Appends a number.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Maps small magnitudes of either sign to small numbers.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of `zigzag`.
#[inline]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Reads through borrowed bytes.
#[derive(Copy, Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Starts at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, EngineError> {
        let (first, rest) = self.bytes.split_first().ok_or_else(cut)?;
        self.bytes = rest;
        Ok(*first)
    }

    /// The next `length` bytes.
    #[inline]
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], EngineError> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(cut)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], EngineError> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or_else(cut)?;
        self.bytes = rest;
        Ok(*taken)
    }

    /// A 32-bit little-endian number.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, EngineError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A 64-bit little-endian number.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, EngineError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A variable-length number.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, EngineError> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7F);
        for shift in (7..).step_by(7).take(VARINT_BYTES_MAX - 1) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(EngineError::Corrupt {
            what: "number in a log record is too long",
        })
    }

    /// A variable-length number used as a length of what follows: never beyond the rest.
    #[inline]
    pub fn length(&mut self) -> Result<usize, EngineError> {
        let value = self.varint()?;
        match usize::try_from(value) {
            Ok(length) if length <= self.bytes.len() => Ok(length),
            _ => Err(cut()),
        }
    }
}

#[cold]
fn cut() -> EngineError {
    EngineError::Corrupt {
        what: "log record ends early",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive() {
        let mut numbers = vec![0, 1, 127, 128, 300, u64::MAX, u64::MAX - 1];
        numbers.extend((0..64).map(|shift| 1_u64 << shift));
        for number in numbers {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert!(bytes.len() <= VARINT_BYTES_MAX);
            let mut cursor = Cursor::new(&bytes);
            assert_eq!(cursor.varint().expect("reads"), number);
            assert!(cursor.is_empty());
            for end in 0..bytes.len() {
                assert!(Cursor::new(&bytes[..end]).varint().is_err());
            }
            assert_eq!(zigzag(unzigzag(number)), number);
        }
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }

    #[test]
    fn overlong_numbers_are_refused() {
        assert!(Cursor::new(&[0x80; 11]).varint().is_err());
        assert!(
            Cursor::new(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2])
                .varint()
                .is_err()
        );
    }
}
