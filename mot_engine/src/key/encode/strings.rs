//! Strings: texts, bytes and bits. A text may be folded, and have a collation's bytes ahead of it.

use super::kinds::{corrupt, encode_bytes};
use crate::collation::Collation;
use crate::errors::EngineError;
use crate::key::KEY_BYTES_MAX;
use crate::key::buffer::KeyBuffer;
use crate::key::kind::KeyKind;

/// Ends a string that cannot contain a zero byte.
pub(crate) const STRING_END: u8 = 0;
/// A zero byte inside a bytea, and the bytea's end: the end is smaller than any continuation.
const BYTES_ZERO: [u8; 2] = [0x00, 0xFF];
pub(super) const BYTES_END: [u8; 2] = [0x00, 0x01];

/// How many bytes one byte of a text may become in lower case.
const FOLDED_GROWTH_MAX: usize = 12;

/// A text that needs no folding, and its end.
#[inline(always)]
pub(super) fn push_text(
    collation: Option<Collation>,
    string: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    if collation.is_some_and(|collation| !collation.equates()) {
        // Before the library reads what can only be refused.
        refuse_overlong(string.len(), key)?;
    }
    push_collation(collation, string, key)?;
    if collation.is_some_and(Collation::equates) {
        return Ok(());
    }
    push_string(string, key)?;
    key.push_array([STRING_END])
}

/// What of a text is ordered, in a place for it.
#[inline(never)]
pub(super) fn folded<'a>(
    collation: Collation,
    string: &[u8],
    place: &'a mut KeyBuffer,
) -> Result<&'a [u8], EngineError> {
    collation.fold(string, |piece| place.push(piece))?;
    Ok(place.as_slice())
}

/// As [`encode_bytes`], of a value that another one holds. Of a string longer than any key it is
/// the beginning, which makes the key too long.
#[inline(never)]
pub(super) fn encode_held(
    kind: KeyKind,
    collation: Option<Collation>,
    bytes: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    if may_be_overlong(kind, collation, bytes) {
        push_overlong(kind, collation, bytes, key)
    } else {
        encode_bytes(kind, collation, bytes, key)
    }
}

/// Whether it is a string longer than any key, or may become one by folding.
pub(super) fn may_be_overlong(kind: KeyKind, collation: Option<Collation>, bytes: &[u8]) -> bool {
    let longest = match collation.and_then(Collation::folding) {
        Some(_) => KEY_BYTES_MAX / FOLDED_GROWTH_MAX,
        None => KEY_BYTES_MAX,
    };
    bytes.len() > longest && string_of(kind, bytes).is_ok_and(|string| string.len() > longest)
}

/// As [`encode_bytes`], of a string that may be longer than any key: of one that is it has the
/// beginning, which makes the key too long.
#[cold]
pub(super) fn push_overlong(
    kind: KeyKind,
    collation: Option<Collation>,
    bytes: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    let mut place = KeyBuffer::new();
    let string = match collation {
        Some(collation) => folded(collation, string_of(kind, bytes)?, &mut place)?,
        None => string_of(kind, bytes)?,
    };
    if collation.is_some() && string.len() <= KEY_BYTES_MAX {
        return push_text(collation, string, key);
    }
    push_collation(collation, string, key)?;
    if collation.is_some_and(Collation::equates) {
        return Ok(());
    }
    push_string_start(kind, &string[..KEY_BYTES_MAX.min(string.len())], key)
}

/// The string that a value is, as far as it counts.
#[inline(always)]
pub(super) fn string_of(kind: KeyKind, bytes: &[u8]) -> Result<&[u8], EngineError> {
    match kind {
        KeyKind::Text | KeyKind::Bytea | KeyKind::Label => Ok(bytes),
        KeyKind::Bpchar => Ok(without_blanks(bytes)),
        KeyKind::Name => {
            let bytes = exactly_64(bytes)?;
            let length = bytes.iter().position(|byte| *byte == 0);
            Ok(&bytes[..length.unwrap_or(bytes.len())])
        }
        // Behind the number of bits.
        KeyKind::VarBit => bytes
            .get(4..)
            .ok_or_else(|| corrupt("bit string is malformed")),
        _ => Err(no_string()),
    }
}

fn exactly_64(bytes: &[u8]) -> Result<&[u8; 64], EngineError> {
    bytes
        .try_into()
        .map_err(|_| corrupt("key value has a wrong width"))
}

/// What a collation puts ahead of a string: bytes in its order, and their end.
#[inline(always)]
pub(super) fn push_collation(
    collation: Option<Collation>,
    string: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    match collation {
        Some(collation) if collation.provider().is_some() => push_collated(collation, string, key),
        _ => Ok(()),
    }
}

#[inline(never)]
fn push_collated(
    collation: Collation,
    string: &[u8],
    key: &mut KeyBuffer,
) -> Result<(), EngineError> {
    if string.contains(&0) {
        return Err(corrupt("string holds a zero byte"));
    }
    collation.sort_key(string, |bytes| {
        debug_assert!(!bytes.contains(&STRING_END), "the end is behind the bytes");
        key.push(bytes)
    })?;
    key.push(&[STRING_END])
}

/// How the encoding of every string that begins with these bytes begins.
fn push_string_start(kind: KeyKind, bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    match kind {
        KeyKind::Text | KeyKind::Bpchar | KeyKind::Name | KeyKind::Label => push_string(bytes, key),
        KeyKind::Bytea | KeyKind::VarBit => push_escaped(bytes, key),
        _ => Err(no_string()),
    }
}

/// bit_cmp: the bytes, then the number of bits.
pub(super) fn encode_varbit(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    let malformed = || corrupt("bit string is malformed");
    let (length, bits) = bytes.split_first_chunk::<4>().ok_or_else(malformed)?;
    let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| malformed())?;
    if bits.len() != length.div_ceil(8) {
        return Err(malformed());
    }
    push_escaped(bits, key)?;
    key.push_array(BYTES_END)?;
    // Only bit strings of the same number of bytes get here equal.
    key.push_array([(length % 8) as u8 + if length % 8 == 0 { 8 } else { 0 }])
}

/// What counts of a char(n).
fn without_blanks(bytes: &[u8]) -> &[u8] {
    let length = bytes
        .iter()
        .rposition(|byte| *byte != b' ')
        .map_or(0, |last| last + 1);
    &bytes[..length]
}

/// A string without zero bytes, without its end.
#[inline]
pub(super) fn push_string(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    refuse_overlong(bytes.len(), key)?;
    if bytes.contains(&0) {
        return Err(corrupt("string holds a zero byte"));
    }
    key.push(bytes)
}

/// A byte string with its zero bytes escaped, without its end.
pub(super) fn push_escaped(bytes: &[u8], key: &mut KeyBuffer) -> Result<(), EngineError> {
    refuse_overlong(bytes.len(), key)?;
    let mut pieces = bytes.split(|byte| *byte == 0);
    if let Some(first) = pieces.next() {
        key.push(first)?;
    }
    for piece in pieces {
        key.push_array(BYTES_ZERO)?;
        key.push(piece)?;
    }
    Ok(())
}

/// Before copying what can only be refused.
#[inline(always)]
fn refuse_overlong(bytes: usize, key: &KeyBuffer) -> Result<(), EngineError> {
    if bytes > KEY_BYTES_MAX {
        return Err(EngineError::KeyTooLong {
            bytes: key.len() + bytes,
            max: KEY_BYTES_MAX,
        });
    }
    Ok(())
}

#[cold]
fn no_string() -> EngineError {
    corrupt("the kind is not a string's")
}
