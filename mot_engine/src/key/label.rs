//! Labels: keys of values whose order only functions of the server know.
//!
//! The engine cannot encode such a value. So the writer of a new value finds its neighbours in the
//! index, with the server's comparison, and gives it a label between theirs. An equal value gets
//! the same label. This is list labeling with labels of any length (Dietz and Sleator, "Two
//! algorithms for maintaining order in a list", 1987). *Where we differ*: a label never changes.
//! One that finds no room between two others gets longer than they are. REINDEX makes all of them
//! short again.
//!
//! This file is the arithmetic of labels. `mot_ext/src/storage/labels.rs` finds the neighbours.
//!
//! A label is a fraction between 0 and 1, in digits of base 252, without zeros at its end. Each
//! digit is stored plus 2, so a label has no zero byte, and a zero byte ends it in a key.
//!
//! Labels are compared only where the columns before have equal values. They are computed keys: a
//! row has them in its tail, so replay and loading need no comparison.

use super::KEY_BYTES_MAX;
use super::definition::KeyColumn;
use super::encode::TAG_VALUE;

/// Values of a digit.
const BASE: u128 = 252;
/// The byte of digit 0.
const DIGIT_ZERO: u8 = 2;
/// Most bytes of a label: two others fit into its key. So one gap may be halved 30,000 times.
pub const LABEL_BYTES_MAX: usize = 5000;

const _: () = assert!(3 * LABEL_BYTES_MAX < KEY_BYTES_MAX);
/// Most units to which a gap is measured, which leaves room for a multiplication by the base.
const GAP_MAX: u128 = 1 << 100;
/// Units between two labels of values that come in order (a run): room for later ones between.
const RUN_STEP: u128 = BASE;
/// Least units of a gap in which a run continues: so 65,000 labels of it add a digit at most.
const RUN_GAP: u128 = 1 << 24;
/// Digits of a label that an index build makes.
const RANKED_DIGITS: u32 = 6;
/// Units between two of these.
const RANKED_STEP: u128 = 100 * BASE;
/// The first of these: smaller labels are left to later values.
const RANKED_START: u128 = 2 * BASE.pow(RANKED_DIGITS - 1);

const _: () = assert!(BASE as usize + DIGIT_ZERO as usize <= u8::MAX as usize);
/// Most values that an index build labels: as many rows as tuple ids can name.
pub const RANKS_MAX: u64 = 1 << 33;

const _: () = assert!(RANKED_START + RANKS_MAX as u128 * RANKED_STEP < BASE.pow(RANKED_DIGITS));

/// Where in the gap between its neighbours a label is put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    /// In its middle.
    Middle,
    /// Right behind the lower one: values come in ascending order.
    Ascending,
    /// Right before the upper one: values come in descending order.
    Descending,
}

/// A label between two others; `None` is either end of all labels.
///
/// # Panics
/// If `below` is not less than `above`.
pub fn between(below: Option<&[u8]>, above: Option<&[u8]>, put: Put) -> Vec<u8> {
    let least = match put {
        Put::Middle => 2,
        Put::Ascending | Put::Descending => RUN_GAP,
    };
    let mut gap: u128 = 0;
    let mut digits = 0;
    while gap < least {
        let rise = digit_of(above, digits, true) - digit_of(below, digits, false);
        gap = (gap * BASE).saturating_add_signed(rise).min(GAP_MAX);
        digits += 1;
        assert!(digits < 1 << 16, "a label is between two that differ");
    }
    // Beyond the largest measured gap, some place in it.
    match put {
        Put::Middle => moved(below, digits, (gap / 2) as i128),
        Put::Ascending => moved(below, digits, RUN_STEP as i128),
        Put::Descending => moved(above, digits, -(RUN_STEP as i128)),
    }
}

/// The label that an index build gives to the value of a rank, from 0 to [`RANKS_MAX`].
pub fn of_rank(rank: u64) -> Vec<u8> {
    let mut rest = RANKED_START + u128::from(rank) * RANKED_STEP;
    let mut digits = [0; RANKED_DIGITS as usize];
    for digit in digits.iter_mut().rev() {
        *digit = (rest % BASE) as u8;
        rest /= BASE;
    }
    assert_eq!(rest, 0, "a table has fewer rows");
    kept(digits.to_vec())
}

/// The label at the beginning of a key of this column; `None`: it is NULL, or malformed.
pub fn of_key(column: &KeyColumn, key: &[u8]) -> Option<Vec<u8>> {
    if column.nullable && *key.first()? != TAG_VALUE {
        return None;
    }
    let length = column.encoded_length(key)?;
    let label = key[usize::from(column.nullable)..length].split_last()?.1;
    Some(match column.descending {
        true => label.iter().map(|byte| !byte).collect(),
        false => label.to_vec(),
    })
}

/// A digit of a label. The label `None` is the number 0, or, with `is_above`, the number 1, whose
/// first digit is the base.
fn digit_of(label: Option<&[u8]>, at: usize, is_above: bool) -> i128 {
    match label {
        Some(label) => label
            .get(at)
            .map_or(0, |byte| i128::from(byte - DIGIT_ZERO)),
        None if is_above && at == 0 => BASE as i128,
        None => 0,
    }
}

/// A label cut to so many digits, moved by some units of the last digit. `None` is 0 if it moves
/// up, and 1 if it moves down.
fn moved(label: Option<&[u8]>, digits: usize, by: i128) -> Vec<u8> {
    let mut moved: Vec<u8> = (0..digits)
        .map(|at| digit_of(label, at, false) as u8)
        .collect();
    let mut carry = by;
    for digit in moved.iter_mut().rev() {
        let sum = i128::from(*digit) + carry;
        *digit = sum.rem_euclid(BASE as i128) as u8;
        carry = sum.div_euclid(BASE as i128);
    }
    // From 1 down, the one has been borrowed from.
    debug_assert!(carry == 0 || label.is_none() && carry == -1);
    kept(moved)
}

/// A label of these digits.
fn kept(mut digits: Vec<u8>) -> Vec<u8> {
    while digits.last() == Some(&0) {
        digits.pop();
    }
    digits.iter_mut().for_each(|digit| *digit += DIGIT_ZERO);
    digits
}
