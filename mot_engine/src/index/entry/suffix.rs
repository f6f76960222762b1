//! The row id that ends the key of an entry, where several entries may have one key.

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
mod tests {
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
