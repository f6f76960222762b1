//! Index entries: sets of (key, row id) above the tree, uniqueness, index builds.
//!
//! | file | what |
//! |---|---|
//! | `together`, `enter` | the entries of a row in all indexes; one entry, and uniqueness |
//! | `candidate` | whether another row has the key |
//! | `remove`, `remaining` | entries that no version needs any more; keys left in a long chain |
//! | `posting` | the row ids of one unique key |
//! | `ranges`, `size` | where a row's entries lie, for SSI; memory of an index |
//! | `build`, `plan`, `build_threads` | index builds from rows: steps, parts, threads |
//! | `collect`, `gather` | keys from rows that are there; keys while rows are loaded |
//! | `keys`, `order`, `split_keys`, `prefault` | keys in process memory: sorted, split |
//! | `beside` | an index filled beside writers |
//!
//! May be called by `transaction`, `reclaim`, `recovery`, `scan` and `check`. Calls `session`,
//! `table`, `row`, `key`, `memory` and `mot_index`.
//!
//! Three rules, on which all of it rests:
//!
//! 1. A writer publishes its version first, then makes the entry. So an entry leads to a row that
//!    has, had or is about to have the key.
//! 2. An entry is removed only under the latch of its leaf, after the row's whole chain (unfinished
//!    versions included) was walked there and no version has the key. With rule 1 no live version
//!    can lose its entry.
//! 3. Uniqueness is decided under the same latch. What needs the `Clock` is resolved before. Under
//!    the latch only the addresses in the heads are compared with those of the resolved versions.
//!    The caller stays pinned from the one to the other, so an address cannot be another version's
//!    by then.

mod beside;
mod build;
mod build_threads;
mod candidate;
mod collect;
mod enter;
mod gather;
mod keys;
mod order;
mod plan;
mod posting;
mod prefault;
mod ranges;
mod remaining;
mod remove;
mod size;
mod split_keys;
#[cfg(test)]
mod tests;
mod together;

pub use build::Build;
pub(crate) use build::{build, build_by_hints, build_gathered, gathering_allowance, is_small};
#[cfg(test)]
pub(crate) use enter::enter_key;
pub(crate) use enter::{EntryOutcome, NOT_TESTED, Uniqueness, probe_key, resolve_row};
pub(crate) use gather::{Allowance, Gatherer, Harvest};
pub(crate) use keys::Sorter;
pub(crate) use posting::{only_slot, slots_of};
pub use ranges::EntryRange;
pub(crate) use remaining::RemainingKeys;
pub(crate) use remove::{clear_some, remove_key};
pub(crate) use together::{Obstacle, enter_row, enter_row_in};

use crate::errors::EngineError;
use crate::ids::Slot;
use crate::key::KeyBuffer;
use crate::limits::{KEY_BYTES_MAX, SLOTS_MAX};

/// Bytes of the slot appended to the key of a suffixed entry, at most.
const SUFFIX_BYTES_MAX: usize = 7;
/// Slots below take three bytes, of which the first is below 0x80. Tests have few rows and want all
/// forms.
const SHORT_SLOTS: u64 = if cfg!(test) { 8 } else { 1 << 23 };
/// So many slots from there on take four, of which the first is below 0xff.
const MIDDLE_SLOTS: u64 = if cfg!(test) { 64 } else { 0x7f << 24 };

const _: () = assert!(KEY_BYTES_MAX + SUFFIX_BYTES_MAX <= mot_index::MAX_KEY_BYTES);
const _: () = assert!(SLOTS_MAX <= 1 << (8 * (SUFFIX_BYTES_MAX - 1)));

/// Makes a suffixed entry's key. Entries of one key lie in the order of their slots.
///
/// A tree takes eight bytes of a key at a time, and what is more costs a block of its own beside
/// the leaf, or a layer. So the slot is short. The key of a four-byte column, with it, is one slice
/// in tables of up to two billion rows, NULLs or not in those of up to eight million.
pub(crate) fn append_slot(key: &mut KeyBuffer, slot: Slot) -> Result<(), EngineError> {
    let number = slot.0;
    if number < SHORT_SLOTS {
        let [_, bytes @ ..] = (number as u32).to_be_bytes();
        return key.push(&bytes);
    }
    if number - SHORT_SLOTS < MIDDLE_SLOTS {
        return key.push(&((number - SHORT_SLOTS) as u32 | 1 << 31).to_be_bytes());
    }
    debug_assert!(number < SLOTS_MAX);
    let [_, mut bytes @ ..] = number.to_be_bytes();
    bytes[0] = 0xff;
    key.push(&bytes)
}

#[cfg(test)]
mod suffix_tests {
    use super::*;

    fn suffix(number: u64) -> Vec<u8> {
        let mut key = KeyBuffer::new();
        append_slot(&mut key, Slot(number)).unwrap();
        key.as_slice().to_vec()
    }

    #[test]
    fn slots_have_their_order_and_none_begins_another() {
        let middle_end = SHORT_SLOTS + MIDDLE_SLOTS;
        let mut numbers: Vec<u64> = [
            0,
            1,
            255,
            256,
            SHORT_SLOTS,
            middle_end,
            1 << 32,
            1 << 40,
            SLOTS_MAX,
        ]
        .into_iter()
        .flat_map(|around: u64| around.saturating_sub(3)..around + 3)
        .filter(|number| *number < SLOTS_MAX)
        .collect();
        numbers.sort_unstable();
        numbers.dedup();
        for pair in numbers.windows(2) {
            let [before, after] = [suffix(pair[0]), suffix(pair[1])];
            assert!(before < after, "{pair:?}: {before:?}, {after:?}");
            assert!(!after.starts_with(&before), "{pair:?}");
        }
        let lengths = [
            SHORT_SLOTS - 1,
            SHORT_SLOTS,
            middle_end - 1,
            middle_end,
            SLOTS_MAX - 1,
        ]
        .map(|number| suffix(number).len());
        assert_eq!(lengths, [3, 4, 4, SUFFIX_BYTES_MAX, SUFFIX_BYTES_MAX]);
    }
}
