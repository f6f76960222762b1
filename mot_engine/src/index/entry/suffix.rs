//! The row id that ends the key of an entry, where several entries may have one key.

use crate::errors::EngineError;
use crate::ids::RowId;
use crate::key::KeyBuffer;
use crate::limits::{KEY_BYTES_MAX, ROW_IDS_MAX};

/// Bytes of the row id appended to the key of a suffixed entry, at most.
const SUFFIX_BYTES_MAX: usize = 7;
/// Row ids below take three bytes, of which the first is below 0x80. Tests have few rows and want
/// all forms.
const SHORT_ROW_IDS: u64 = if cfg!(test) { 8 } else { 1 << 23 };
/// So many row ids from there on take four, of which the first is below 0xff.
const MIDDLE_ROW_IDS: u64 = if cfg!(test) { 64 } else { 0x7f << 24 };

const _: () = assert!(KEY_BYTES_MAX + SUFFIX_BYTES_MAX <= mot_index::MAX_KEY_BYTES);
const _: () = assert!(ROW_IDS_MAX <= 1 << (8 * (SUFFIX_BYTES_MAX - 1)));

/// Makes a suffixed entry's key. Entries of one key lie in the order of their row ids.
///
/// A tree takes eight bytes of a key at a time, and what is more costs a block of its own beside
/// the leaf, or a layer. So the row id is short. The key of a four-byte column, with it, is one
/// slice in tables of up to two billion rows, NULLs or not in those of up to eight million.
pub(crate) fn append_row_id(key: &mut KeyBuffer, row_id: RowId) -> Result<(), EngineError> {
    let number = row_id.0;
    if number < SHORT_ROW_IDS {
        let [_, bytes @ ..] = (number as u32).to_be_bytes();
        return key.push(&bytes);
    }
    if number - SHORT_ROW_IDS < MIDDLE_ROW_IDS {
        return key.push(&((number - SHORT_ROW_IDS) as u32 | 1 << 31).to_be_bytes());
    }
    debug_assert!(number < ROW_IDS_MAX);
    let [_, mut bytes @ ..] = number.to_be_bytes();
    bytes[0] = 0xff;
    key.push(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suffix(number: u64) -> Vec<u8> {
        let mut key = KeyBuffer::new();
        append_row_id(&mut key, RowId(number)).unwrap();
        key.as_slice().to_vec()
    }

    #[test]
    fn row_ids_have_their_order_and_none_begins_another() {
        let middle_end = SHORT_ROW_IDS + MIDDLE_ROW_IDS;
        let mut numbers: Vec<u64> = [
            0,
            1,
            255,
            256,
            SHORT_ROW_IDS,
            middle_end,
            1 << 32,
            1 << 40,
            ROW_IDS_MAX,
        ]
        .into_iter()
        .flat_map(|around: u64| around.saturating_sub(3)..around + 3)
        .filter(|number| *number < ROW_IDS_MAX)
        .collect();
        numbers.sort_unstable();
        numbers.dedup();
        for pair in numbers.windows(2) {
            let [before, after] = [suffix(pair[0]), suffix(pair[1])];
            assert!(before < after, "{pair:?}: {before:?}, {after:?}");
            assert!(!after.starts_with(&before), "{pair:?}");
        }
        let lengths = [
            SHORT_ROW_IDS - 1,
            SHORT_ROW_IDS,
            middle_end - 1,
            middle_end,
            ROW_IDS_MAX - 1,
        ]
        .map(|number| suffix(number).len());
        assert_eq!(lengths, [3, 4, 4, SUFFIX_BYTES_MAX, SUFFIX_BYTES_MAX]);
    }
}
