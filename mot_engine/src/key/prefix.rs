//! Ranges of keys as numbers: what stands for "all keys whose first columns are these" where a range must be named in 32 bits.
//!
//! Equal prefixes of equally many columns give equal numbers, in every process and after every restart; different ones hardly ever do.

use super::body::BodyReader;
use super::buffer::KeyBuffer;
use super::computed;
use super::definition::IndexDefinition;
use super::encode::{KeyValue, encode_row_if_any, encode_value};
use super::missing::value_of;
use crate::errors::EngineError;

/// The number of a prefix: its columns' encodings, one after the other.
pub fn prefix_number(columns: usize, prefix: &[u8]) -> u32 {
    let seed = crc32c::crc32c(&(columns as u64).to_le_bytes());
    crc32c::crc32c_append(seed, prefix)
}

/// Calls `each` with the numbers of all prefixes of the key of the row with this `body`, from one column to all. `key` is free for use, and holds
/// the whole key after. None for a row without a key ([`encode_row_if_any`]).
pub fn prefix_numbers(
    definition: &IndexDefinition,
    body: &[u8],
    key: &mut KeyBuffer,
    mut each: impl FnMut(u32) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    encode_row_if_any(definition, body, key)?;
    if key.is_empty() {
        return Ok(());
    }
    if let Some(number) = definition.computed {
        key.clear();
        let entry = computed::entry_of(body, number)?.ok_or(EngineError::KeyNotComputed)?;
        let columns = definition.columns.iter().zip(entry.values(definition)?);
        for (position, (column, value)) in columns.enumerate() {
            computed::push_column(column, value, key)?;
            each(prefix_number(position + 1, key.as_slice()))?;
        }
        return Ok(());
    }
    key.clear();
    let mut reader = BodyReader::new(&definition.layout, body)?;
    for (position, column) in definition.columns.iter().enumerate() {
        let value = value_of(definition, column, &mut reader)?;
        let value = value.map_or(KeyValue::Null, KeyValue::Bytes);
        encode_value(column, value, key)?;
        each(prefix_number(position + 1, key.as_slice()))?;
    }
    Ok(())
}
