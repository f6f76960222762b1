//! Values that PostgreSQL keeps compressed inside others: its own method (`pglz`) and LZ4.
//!
//! ```text
//! u32 length << 2 | 2 (little-endian: the header of a compressed varlena)
//! u32 length of the value, 30 bits, and the method, 2 bits
//! the compressed bytes
//! ```
//! Contract: total. No more memory is taken than what the bytes give.

use super::kinds::corrupt;
use crate::errors::EngineError;

const HEADER_BYTES: usize = 8;
const LENGTH_MASK: u32 = 0x3FFF_FFFF;
const METHOD_SHIFT: u32 = 30;
const METHOD_PGLZ: u32 = 0;
const METHOD_LZ4: u32 = 1;

/// The payload of a varlena that is compressed, and the bytes of that varlena; `None`: it is not.
/// One that is not wanted is left as it is.
pub(super) fn decompressed(
    bytes: &[u8],
    is_wanted: bool,
) -> Result<Option<(Vec<u8>, usize)>, EngineError> {
    let Some([first, ..]) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    if first & 3 != 2 {
        return Ok(None);
    }
    let header = bytes.first_chunk::<HEADER_BYTES>().ok_or_else(malformed)?;
    let [a, b, c, d, e, f, g, h] = *header;
    let length = (u32::from_le_bytes([a, b, c, d]) >> 2) as usize;
    let information = u32::from_le_bytes([e, f, g, h]);
    let packed = bytes.get(HEADER_BYTES..length).ok_or_else(malformed)?;
    let mut out = Out {
        bytes: Vec::new(),
        length: (information & LENGTH_MASK) as usize,
    };
    if is_wanted {
        match information >> METHOD_SHIFT {
            METHOD_PGLZ => pglz(packed, &mut out)?,
            METHOD_LZ4 => lz4(packed, &mut out)?,
            _ => return Err(malformed()),
        }
        if out.bytes.len() != out.length {
            return Err(malformed());
        }
    }
    Ok(Some((out.bytes, length)))
}

/// What comes of the bytes, up to a length.
struct Out {
    bytes: Vec<u8>,
    length: usize,
}

impl Out {
    fn is_full(&self) -> bool {
        self.bytes.len() >= self.length
    }

    fn reserve(&mut self, count: usize) -> Result<(), EngineError> {
        self.bytes
            .try_reserve(count)
            .map_err(|_| EngineError::OutOfProcessMemory)
    }

    fn push(&mut self, literals: &[u8]) -> Result<(), EngineError> {
        if literals.len() > self.length - self.bytes.len() {
            return Err(malformed());
        }
        self.reserve(literals.len())?;
        self.bytes.extend_from_slice(literals);
        Ok(())
    }

    /// Repeats bytes from so far back, which may reach into what it appends itself.
    fn repeat(&mut self, back: usize, count: usize) -> Result<(), EngineError> {
        let start = self.bytes.len().checked_sub(back);
        let start = start.filter(|_| back > 0).ok_or_else(malformed)?;
        self.reserve(count)?;
        for at in start..start + count {
            self.bytes.push(self.bytes[at]);
        }
        Ok(())
    }
}

/// PostgreSQL's own: a byte with a bit for each of eight items, which are a literal byte, or a
/// length (4 bits, 3 less than it is), how far back it is (12 bits), and at 15 more length.
fn pglz(mut packed: &[u8], out: &mut Out) -> Result<(), EngineError> {
    while let Some((control, rest)) = packed.split_first() {
        packed = rest;
        for bit in 0..8 {
            if packed.is_empty() || out.is_full() {
                break;
            }
            if control & 1 << bit == 0 {
                out.push(&packed[..1])?;
                packed = &packed[1..];
                continue;
            }
            let ([first, second], rest) = packed.split_first_chunk().ok_or_else(malformed)?;
            packed = rest;
            let back = usize::from(first & 0xF0) << 4 | usize::from(*second);
            let mut count = usize::from(first & 0x0F) + 3;
            if first & 0x0F == 0x0F {
                let (more, rest) = packed.split_first().ok_or_else(malformed)?;
                packed = rest;
                count += usize::from(*more);
            }
            // The last item may say more than there is.
            out.repeat(back, count.min(out.length - out.bytes.len()))?;
        }
        if out.is_full() {
            break;
        }
    }
    match packed {
        [] => Ok(()),
        _ => Err(malformed()),
    }
}

/// A block of LZ4: numbers of literals and of repeated bytes (4 bits each, and more bytes at 15),
/// the literals, how far back the repeated ones lie (2 bytes). The last item has literals alone.
fn lz4(mut packed: &[u8], out: &mut Out) -> Result<(), EngineError> {
    while let Some((token, rest)) = packed.split_first() {
        packed = rest;
        let count = lz4_count(token >> 4, &mut packed)?;
        let (literals, rest) = packed.split_at_checked(count).ok_or_else(malformed)?;
        out.push(literals)?;
        packed = rest;
        if packed.is_empty() {
            break;
        }
        let (back, rest) = packed.split_first_chunk().ok_or_else(malformed)?;
        packed = rest;
        let count = lz4_count(token & 0x0F, &mut packed)? + 4;
        if count > out.length - out.bytes.len() {
            return Err(malformed());
        }
        out.repeat(usize::from(u16::from_le_bytes(*back)), count)?;
    }
    Ok(())
}

fn lz4_count(short: u8, packed: &mut &[u8]) -> Result<usize, EngineError> {
    let mut count = usize::from(short);
    let mut last = if short == 15 { u8::MAX } else { 0 };
    while last == u8::MAX {
        let (byte, rest) = packed.split_first().ok_or_else(malformed)?;
        *packed = rest;
        last = *byte;
        count += usize::from(last);
    }
    Ok(count)
}

#[cold]
fn malformed() -> EngineError {
    corrupt("a compressed value is malformed")
}
