//! The difference of two row bodies whose equal parts moved: a null column gets a value (the bitmap
//! goes, the value comes), two numbers grow, text is put before text.
//!
//! `delta.rs` compares at equal offsets and finds one change of length, which is all that most
//! updates need. This is the second opinion where that was costly: the base's stretches of
//! [`MATCH_BYTES`] are entered in a small table, and after each difference the nearest stretch of
//! the new body that is in it, and not behind what was copied already, is where copying goes on.
//! Linear in what is between the bytes with which both begin and those with which both end: a
//! long text beside some numbers costs nothing. The form is the same.

use super::delta::{EDITS_MAX, GAP_BYTES, common_prefix, common_suffix};
use super::edits::Encoder;

/// Shortest stretch looked for at another place.
const MATCH_BYTES: usize = 8;

/// Longest body examined: a longer one would not fit the table.
const BODY_BYTES_MAX: usize = 2048;

const TABLE_BITS: u32 = 10;

/// Most bytes an edit takes besides those it adds: three numbers below `BODY_BYTES_MAX`.
const EDIT_BYTES_MAX: usize = 6;

/// Where each stretch of the base begins, + 1; 0 for none. Of those that share a place the first
/// stays.
struct Stretches([u16; 1 << TABLE_BITS]);

impl Stretches {
    /// Those of `base[from..]`.
    fn of(base: &[u8], from: usize) -> Self {
        let mut places = [0; 1 << TABLE_BITS];
        for (ahead, stretch) in base[from..].windows(MATCH_BYTES).enumerate().rev() {
            places[place(stretch)] = (from + ahead) as u16 + 1;
        }
        Stretches(places)
    }

    /// Where in the base, from `from` on, the first bytes of `wanted` stand.
    fn find(&self, base: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
        let wanted = wanted.get(..MATCH_BYTES)?;
        let position = usize::from(self.0[place(wanted)]).checked_sub(1)?;
        (position >= from && &base[position..position + MATCH_BYTES] == wanted).then_some(position)
    }
}

fn place(stretch: &[u8]) -> usize {
    let mut word = [0; MATCH_BYTES];
    word.copy_from_slice(stretch);
    let mixed = u64::from_le_bytes(word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (64 - TABLE_BITS)) as usize
}

/// Appends a delta of fewer than `bytes_max` bytes and answers its number of edits, or leaves `out`
/// alone.
pub(super) fn encode(
    base: &[u8],
    new: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Option<usize> {
    if base.len() > BODY_BYTES_MAX || new.len() > BODY_BYTES_MAX {
        return None;
    }
    let begin = common_prefix(base, new);
    let end = common_suffix(&base[begin..], &new[begin..]);
    // A stretch may end among the bytes with which both end.
    let end = end.saturating_sub(MATCH_BYTES - 1);
    let (base, new) = (&base[..base.len() - end], &new[..new.len() - end]);
    let start = out.len();
    let edits = append(base, new, begin, start + bytes_max, out);
    if edits.is_none() {
        out.truncate(start);
    }
    edits
}

/// `begin` bytes at the beginning are the same.
fn append(
    base: &[u8],
    new: &[u8],
    begin: usize,
    end_max: usize,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let stretches = Stretches::of(base, begin);
    let mut encoder = Encoder::new(new, out);
    let (mut old_at, mut new_at) = (begin, begin);
    loop {
        let equal = common_prefix(&base[old_at..], &new[new_at..]);
        old_at += equal;
        new_at += equal;
        if old_at == base.len() && new_at == new.len() {
            return Some(encoder.edits());
        }
        let is_last = encoder.edits() + 1 == EDITS_MAX;
        let next = if is_last {
            None
        } else {
            next_equal(&stretches, base, old_at, new, new_at)
        };
        let (old_next, new_next) = next.unwrap_or_else(|| {
            let equal = common_suffix(&base[old_at..], &new[new_at..]);
            (base.len() - equal, new.len() - equal)
        });
        if encoder.end() + EDIT_BYTES_MAX + (new_next - new_at) >= end_max {
            return None;
        }
        encoder.edit(old_at, old_next - old_at, new_at..new_next);
        (old_at, new_at) = (old_next, new_next);
    }
}

/// The next place of the new body from which bytes can be copied, and where they stand in the base.
fn next_equal(
    stretches: &Stretches,
    base: &[u8],
    old_at: usize,
    new: &[u8],
    new_at: usize,
) -> Option<(usize, usize)> {
    for ahead in 0..new.len() - new_at {
        let (old_here, new_here) = (old_at + ahead, new_at + ahead);
        // Beside each other: less is worth while, as bytes of a number that stayed between two that
        // did not.
        if let Some(rest) = base.get(old_here..)
            && common_prefix(rest, &new[new_here..]) > GAP_BYTES
        {
            return Some((old_here, new_here));
        }
        if let Some(mut old) = stretches.find(base, old_at, &new[new_here..]) {
            let mut new_next = new_here;
            while old > old_at && new_next > new_at && base[old - 1] == new[new_next - 1] {
                old -= 1;
                new_next -= 1;
            }
            return Some((old, new_next));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::delta::{apply, encode_update};

    fn bytes_of(base: &[u8], new: &[u8]) -> usize {
        let mut out = vec![0xEE];
        let edits = encode_update(base, new, &mut out).expect("is shorter than the body");
        let mut applied = Vec::new();
        apply(base, &out[1..], edits, &mut applied).expect("applies");
        assert_eq!(applied, new);
        out.len() - 1
    }

    /// A body of the shape PostgreSQL gives it: flags and the length of the header, perhaps a
    /// bitmap, data.
    fn body(bitmap: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let mut body = vec![10, 0, bitmap.len() as u8, 9, 24 + bitmap.len() as u8];
        body.extend_from_slice(bitmap);
        body.push(0);
        body.extend(parts.iter().copied().flatten());
        body
    }

    fn noise(seed: u8, length: usize) -> Vec<u8> {
        let mut state = u32::from(seed) + 1;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn a_null_that_gets_a_value_costs_the_value() {
        let (keys, rest) = (noise(1, 20), noise(2, 40));
        let null = body(&[0xDF, 3, 0, 0, 0, 0, 0, 0], &[&keys, &rest]);
        let value = body(&[], &[&keys, &noise(3, 8), &rest]);
        assert!(bytes_of(&null, &value) <= 8 + 12);
        assert!(bytes_of(&value, &null) <= 8 + 12);
    }

    /// What both begin and end with is not examined, and makes no difference.
    #[test]
    fn what_stays_beside_parts_that_moved_costs_nothing() {
        let parts: Vec<Vec<u8>> = (10..13).map(|seed| noise(seed, 20)).collect();
        let (base, new) = (
            [&parts[0][..], &parts[1]].concat(),
            [&parts[2][..], &parts[0]].concat(),
        );
        let alone = bytes_of(&base, &new);
        for (before, behind) in [(0, 1000), (30, 0), (30, 5), (30, 8), (30, 1000)] {
            let around = |middle: &[u8]| {
                let (before, behind) = (noise(20, before), noise(21, behind));
                [&before[..], middle, &behind].concat()
            };
            assert_eq!(bytes_of(&around(&base), &around(&new)), alone);
        }
    }

    #[test]
    fn numbers_that_grow_at_two_places_cost_themselves() {
        let parts: Vec<Vec<u8>> = (0..5).map(|seed| noise(seed, 60)).collect();
        let base = body(&[], &[&parts[0], &[5, 1], &parts[1], &[7, 2, 2], &parts[2]]);
        let new = body(
            &[],
            &[&parts[0], &[7, 1, 9], &parts[1], &[9, 2, 2, 3], &parts[2]],
        );
        assert!(bytes_of(&base, &new) <= 7 + 2 * 3 + 2);
    }

    #[test]
    fn text_put_before_text_costs_itself() {
        let (told, text) = (noise(7, 50), noise(8, 500));
        let base = body(&[], &[&noise(9, 100), &text]);
        let new = body(&[], &[&noise(9, 100), &told, &text[..450]]);
        assert!(bytes_of(&base, &new) <= 50 + 12);
    }

    #[test]
    fn bodies_alike_in_nothing_are_told_whole() {
        for length in [0, 7, 8, 9, 300, super::BODY_BYTES_MAX, 5000] {
            let mut out = Vec::new();
            let edits = encode_update(&noise(1, 300), &vec![1; length], &mut out);
            assert!(edits.is_none_or(|_| out.len() < length.max(1)));
            if edits.is_none() {
                assert!(out.is_empty());
            }
        }
    }
}
