//! Keys of numbers that lie at the same place in every row.
//!
//! Primary keys mostly are: a few integers at the beginning of the row, before anything of variable
//! length, never NULL. Where that follows from the definition, a row's key is some loads, swaps
//! and shifts, without walking its attributes. Code that makes keys by the million (loads, index
//! builds) asks here first.
//!
//! Contract: [`FixedKey::encode`] gives the bytes `encode_row` gives, or says that it cannot. It is
//! as total as that.

use super::body::BodyReader;
use super::buffer::KeyBuffer;
use super::definition::{IndexDefinition, KeyColumn, fixed_starts};
use super::encode::TAG_VALUE;
use super::kind::InKey;

/// Keys are put together in one number.
const FIXED_BYTES_MAX: usize = size_of::<u128>();

/// How the keys of an index are made, if they lie at fixed places.
pub struct FixedKey {
    columns: Vec<FixedColumn>,
    /// Bytes of every key.
    bytes: usize,
    /// Attributes a row must have, and bytes of data they take.
    attributes: usize,
    data_bytes: usize,
}

/// A number: where it is from the row's data on.
struct FixedColumn {
    offset: usize,
    width: usize,
    is_tagged: bool,
    /// What is flipped: the sign, or all else when descending.
    flipped: u64,
}

impl FixedColumn {
    fn of(column: &KeyColumn, offset: usize) -> Option<FixedColumn> {
        let is_signed = match column.kind.in_key() {
            InKey::Signed => true,
            InKey::Unsigned => false,
            InKey::SameLength | InKey::Other => return None,
        };
        let width = usize::try_from(column.kind.width()).ok()?;
        let all = u64::MAX >> (u64::BITS as usize - 8 * width);
        let sign = if is_signed { all ^ all >> 1 } else { 0 };
        Some(FixedColumn {
            offset,
            width,
            is_tagged: column.nullable,
            flipped: if column.descending { all ^ sign } else { sign },
        })
    }

    fn bytes(&self) -> usize {
        self.width + usize::from(self.is_tagged)
    }
}

impl FixedKey {
    /// `None` if the keys do not lie at fixed places, or are too long.
    pub fn of(definition: &IndexDefinition) -> Option<FixedKey> {
        if definition.computed.is_some() {
            return None;
        }
        let offsets = fixed_starts(&definition.layout).collect::<Option<Vec<_>>>()?;
        let last = definition.layout.last()?;
        let data_bytes = offsets.last()? + usize::try_from(last.len).ok()?;
        let mut columns = Vec::new();
        for column in &definition.columns {
            let number = usize::from(column.attnum).checked_sub(1)?;
            let attribute = definition.layout.get(number)?;
            if attribute.len != column.kind.width() {
                return None;
            }
            columns.push(FixedColumn::of(column, offsets[number])?);
        }
        let bytes = columns.iter().map(FixedColumn::bytes).sum();
        (bytes <= FIXED_BYTES_MAX).then_some(FixedKey {
            columns,
            bytes,
            attributes: definition.layout.len(),
            data_bytes,
        })
    }

    /// Replaces `key` by the key of the row with this `body`. `false`: the row has NULLs or is not
    /// whole, which `encode_row` handles.
    #[inline]
    pub fn encode(&self, body: &[u8], key: &mut KeyBuffer) -> bool {
        let Some(data) = BodyReader::data_without_nulls(body, self.attributes) else {
            return false;
        };
        let Some(data) = data.get(..self.data_bytes) else {
            return false;
        };
        let mut number = 0u128;
        for column in &self.columns {
            if column.is_tagged {
                number = number << 8 | u128::from(TAG_VALUE);
            }
            let at = &data[column.offset..];
            let value = match column.width {
                2 => at
                    .first_chunk()
                    .map(|at| u64::from(u16::from_le_bytes(*at))),
                4 => at
                    .first_chunk()
                    .map(|at| u64::from(u32::from_le_bytes(*at))),
                _ => at.first_chunk().map(|at| u64::from_le_bytes(*at)),
            };
            let Some(value) = value else {
                return false;
            };
            number = number << (8 * column.width) | u128::from(value ^ column.flipped);
        }
        // Shifted in two steps: a key of no bytes would be one step too far.
        let unused = FIXED_BYTES_MAX - self.bytes;
        key.set_short(
            (number << (4 * unused) << (4 * unused)).to_be_bytes(),
            self.bytes,
        );
        true
    }
}
