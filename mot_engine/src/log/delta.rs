//! The difference of two row bodies as a few edits.
//!
//! ```text
//! delta = edits, then the rest of the base
//! edit  = { keep varint, size varint, [drop varint], bytes }
//!         keep  bytes copied from the base
//!         size  2 * number of new bytes + 1 when `drop` follows, else drop = number of new bytes
//!         drop  bytes of the base skipped
//! ```
//! The number of edits is in the row's operation byte.
//!
//! Contract: `apply(base, encode(base, new)) == new`. `apply` is total: a delta that does not fit
//! its base is an error. `encode` gives up (None) when the delta would not be shorter than the
//! body. `encode_update` keeps the same contract and looks harder (`moved.rs`).

use super::edits::Encoder;
use super::moved;
use super::runs::high_bits;
use super::varint::Cursor;
use crate::errors::EngineError;

/// Most edits of one delta: what fits beside the kind in the operation byte.
pub const EDITS_MAX: usize = 31;

/// Equal bytes between two differences that are not worth an edit of their own (an edit costs two
/// bytes).
pub(super) const GAP_BYTES: usize = 3;

/// Differences of unequal length up to this many bytes are replaced whole, without looking for
/// equal bytes inside.
const SPLICE_BYTES_MAX: usize = 16;

/// A delta longer than this is worth a second look: some columns' new values, where nothing has
/// moved, take less.
const COSTLY_BYTES: usize = 20;

/// Appends the delta and answers its number of edits, or leaves `out` alone when the full body is
/// as short. `out` grows unless the caller has reserved room for what an unfinished delta can take
/// (`RowsWriter::reserve`).
pub fn encode(base: &[u8], new: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let start = out.len();
    let mut encoder = Encoder::new(new, out);
    if base.len() == new.len() {
        encoder.replace_differences(base, 0, 0, new.len(), EDITS_MAX);
        return finish(encoder.edits(), start, new, out);
    }
    let prefix = common_prefix(base, new);
    let suffix = common_suffix(&base[prefix..], &new[prefix..]);
    let old_middle = base.len() - prefix - suffix;
    let new_middle = new.len() - prefix - suffix;
    if new_middle <= SPLICE_BYTES_MAX || old_middle == 0 {
        encoder.edit(prefix, old_middle, prefix..prefix + new_middle);
    } else {
        // One change of length somewhere inside: before it bytes compare at equal offsets, after it
        // at equal distance from the end. The place with the fewest differences is taken.
        let shared = old_middle.min(new_middle);
        let cut = best_cut(
            &base[prefix..prefix + old_middle],
            &new[prefix..prefix + new_middle],
            shared,
        );
        encoder.replace_differences(base, prefix, prefix, cut, EDITS_MAX - 2);
        let (old_tail, new_tail) = (prefix + old_middle, prefix + new_middle);
        let after = shared - cut;
        encoder.edit(
            prefix + cut,
            old_middle - shared,
            prefix + cut..new_tail - after,
        );
        encoder.replace_differences(base, old_tail - after, new_tail - after, after, EDITS_MAX);
    }
    finish(encoder.edits(), start, new, out)
}

/// The number of edits, if they are worth while; else what was appended goes.
#[inline]
fn finish(edits: usize, start: usize, new: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    if edits == 0 {
        return Some(0);
    }
    if edits > EDITS_MAX || out.len() - start >= new.len() {
        out.truncate(start);
        return None;
    }
    Some(edits)
}

/// As `encode`, for a row's new state: what is costly at equal offsets may be cheap where equal
/// parts moved.
pub fn encode_update(base: &[u8], new: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let start = out.len();
    let edits = encode(base, new, out);
    let middle = out.len();
    let bytes = edits.map_or(new.len(), |_| middle - start);
    if bytes <= COSTLY_BYTES {
        return edits;
    }
    let fewer = moved::encode(base, new, bytes, out);
    if fewer.is_some() {
        out.drain(start..middle);
    }
    fewer.or(edits)
}

/// How many of the `shared` bytes are compared at equal offsets from the start; the others at equal
/// offsets from the end.
fn best_cut(old: &[u8], new: &[u8], shared: usize) -> usize {
    let old_tail = &old[old.len() - shared..];
    let new_tail = &new[new.len() - shared..];
    // Differences beyond those of a cut at the start.
    let mut cost = 0;
    let (mut best, mut best_cost) = (0, cost);
    let mut index = 0;
    while index < shared {
        let differing = differing_bytes(old, new, index);
        if differing.is_some() && differing == differing_bytes(old_tail, new_tail, index) {
            // Wherever one comparison differs the other one does: no place in here is better than
            // the one before.
            index += size_of::<u64>();
            continue;
        }
        let end = (index + size_of::<u64>()).min(shared);
        for at in index..end {
            cost += isize::from(old[at] != new[at]);
            cost -= isize::from(old_tail[at] != new_tail[at]);
            if cost < best_cost {
                (best, best_cost) = (at + 1, cost);
            }
        }
        index = end;
    }
    best
}

/// The `N` bytes from `at` on, if there are so many.
#[inline]
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// A bit for each of the eight bytes from `at` on that differ, if there are so many.
#[inline]
fn differing_bytes(a: &[u8], b: &[u8], at: usize) -> Option<u64> {
    let differing = u64::from_le_bytes(chunk(a, at)?) ^ u64::from_le_bytes(chunk(b, at)?);
    Some(high_bits(differing))
}

/// Bytes compared at once as long as they are equal.
const BLOCK_BYTES: usize = 32;

/// Number of equal bytes at the start, by blocks, then by words.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    let (blocks_a, _) = a.as_chunks::<BLOCK_BYTES>();
    let (blocks_b, _) = b.as_chunks::<BLOCK_BYTES>();
    let equal = blocks_a.iter().zip(blocks_b).take_while(|(x, y)| x == y);
    let equal = equal.count() * BLOCK_BYTES;
    equal + common_prefix_by_words(&a[equal..], &b[equal..])
}

/// The same of equally long bytes.
#[inline]
fn common_prefix_by_words(a: &[u8], b: &[u8]) -> usize {
    let (words_a, _) = a.as_chunks::<8>();
    let (words_b, _) = b.as_chunks::<8>();
    for (index, (x, y)) in words_a.iter().zip(words_b).enumerate() {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if difference != 0 {
            return index * 8 + difference.trailing_zeros() as usize / 8;
        }
    }
    let start = words_a.len() * 8;
    start
        + a[start..]
            .iter()
            .zip(&b[start..])
            .take_while(|(x, y)| x == y)
            .count()
}

/// Number of equal bytes at the end, by blocks, then by words.
pub(super) fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let length = a.len().min(b.len());
    let (a, b) = (&a[a.len() - length..], &b[b.len() - length..]);
    let (_, blocks_a) = a.as_rchunks::<BLOCK_BYTES>();
    let (_, blocks_b) = b.as_rchunks::<BLOCK_BYTES>();
    let equal = blocks_a.iter().rev().zip(blocks_b.iter().rev());
    let equal = equal.take_while(|(x, y)| x == y).count() * BLOCK_BYTES;
    let rest = length - equal;
    equal + common_suffix_by_words(&a[..rest], &b[..rest])
}

/// The same of equally long bytes.
#[inline]
fn common_suffix_by_words(a: &[u8], b: &[u8]) -> usize {
    let length = a.len();
    let (_, words_a) = a.as_rchunks::<8>();
    let (_, words_b) = b.as_rchunks::<8>();
    for (index, (x, y)) in words_a.iter().rev().zip(words_b.iter().rev()).enumerate() {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if difference != 0 {
            return index * 8 + difference.leading_zeros() as usize / 8;
        }
    }
    let end = length - words_a.len() * 8;
    words_a.len() * 8
        + a[..end]
            .iter()
            .rev()
            .zip(b[..end].iter().rev())
            .take_while(|(x, y)| x == y)
            .count()
}

/// Skips a delta of `edits` edits and gives its bytes.
pub fn skip<'a>(cursor: &mut Cursor<'a>, edits: usize) -> Result<&'a [u8], EngineError> {
    let all = cursor.rest();
    for _ in 0..edits {
        cursor.varint()?;
        let size = cursor.varint()?;
        if size & 1 == 1 {
            cursor.varint()?;
        }
        let add = usize::try_from(size >> 1).map_err(|_| misfit())?;
        cursor.take(add)?;
    }
    Ok(&all[..all.len() - cursor.rest().len()])
}

/// Appends to `out` what `delta` makes of `base`.
pub fn apply(
    base: &[u8],
    delta: &[u8],
    edits: usize,
    out: &mut Vec<u8>,
) -> Result<(), EngineError> {
    out.try_reserve(base.len() + delta.len())
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    let mut cursor = Cursor::new(delta);
    let mut rest = base;
    for _ in 0..edits {
        let keep = cursor.varint()?;
        let size = cursor.varint()?;
        let drop = if size & 1 == 1 {
            cursor.varint()?
        } else {
            size >> 1
        };
        let add = usize::try_from(size >> 1).map_err(|_| misfit())?;
        let bytes = cursor.take(add)?;
        let keep = usize::try_from(keep).map_err(|_| misfit())?;
        let drop = usize::try_from(drop).map_err(|_| misfit())?;
        let (kept, after) = rest.split_at_checked(keep).ok_or_else(misfit)?;
        out.extend_from_slice(kept);
        out.extend_from_slice(bytes);
        rest = after.get(drop..).ok_or_else(misfit)?;
    }
    if !cursor.is_empty() {
        return Err(misfit());
    }
    out.extend_from_slice(rest);
    Ok(())
}

#[cold]
fn misfit() -> EngineError {
    EngineError::Corrupt {
        what: "row difference does not fit its base",
    }
}

#[cfg(test)]
#[path = "delta_tests.rs"]
mod tests;
