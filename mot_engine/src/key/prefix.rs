//! Ranges of keys as numbers: what stands for "all keys whose first columns are these" where a
//! range must be named in 32 bits.
//!
//! Equal prefixes of equally many columns give equal numbers, in every process and after every
//! restart; different ones hardly ever do.

use super::buffer::KeyBuffer;
use super::definition::{INDEX_COLUMNS_MAX, IndexDefinition};
use super::encode::{encode_columns, none_if_too_long};
use crate::errors::EngineError;

/// The number of a prefix: its columns' encodings, one after the other.
pub fn prefix_number(columns: usize, prefix: &[u8]) -> u32 {
    let seed = crc32c::crc32c(&(columns as u64).to_le_bytes());
    crc32c::crc32c_append(seed, prefix)
}

/// Calls `each` with the numbers of all prefixes of the key of the row with this `body`, from one
/// column to all. `key` is free for use, and holds the whole key after. None for a row without a
/// key ([`super::encode_row_if_any`]).
pub fn prefix_numbers(
    definition: &IndexDefinition,
    body: &[u8],
    key: &mut KeyBuffer,
    mut each: impl FnMut(u32) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut ends = [0; INDEX_COLUMNS_MAX];
    let mut count = 0;
    let encoded = encode_columns(definition, body, key, |end| {
        ends[count] = end;
        count += 1;
    });
    none_if_too_long(encoded, key)?;
    if key.is_empty() {
        return Ok(());
    }
    for (position, end) in ends[..count].iter().enumerate() {
        each(prefix_number(position + 1, &key.as_slice()[..*end]))?;
    }
    Ok(())
}
