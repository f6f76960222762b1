//! Where a column ends in a key, for kinds from whose bytes it follows: those whose values have as
//! many bytes in a key as in a row, labels, and texts in the order of their bytes or in a rough one
//! (`rough.rs`).
//!
//! Contract: of a key that [`super::encode_value`] has begun with a value of the column,
//! [`KeyColumn::encoded_length`] gives the value's length. Total: of other bytes it gives some
//! length within them, or nothing.

use super::definition::KeyColumn;
use super::encode::TAG_VALUE;
use super::kind::{InKey, KeyKind};

impl KeyColumn {
    /// Whether the length of its values follows from a key, whatever the collation.
    pub fn has_plain_length(&self) -> bool {
        self.fixed_length().is_some() || self.is_plain_text()
    }

    /// How many bytes at the beginning of a key are this column's.
    pub fn encoded_length(&self, key: &[u8]) -> Option<usize> {
        let mark = usize::from(self.nullable);
        if self.nullable && *key.first()? != TAG_VALUE {
            return Some(mark);
        }
        let text_end = |from: usize| {
            let end = self.text_end();
            let length = key.get(from..)?.iter().position(|byte| *byte == end)?;
            Some(from + length + 1)
        };
        let end = match self.fixed_length() {
            Some(length) => mark + length,
            None if self.is_plain_text() => text_end(mark)?,
            None if self.orders_roughly() => text_end(text_end(mark)?)?,
            None => return None,
        };
        (key.len() >= end).then_some(end)
    }

    fn is_plain_text(&self) -> bool {
        (self.kind.is_text() || self.kind == KeyKind::Label) && self.collation.is_none()
    }

    /// Of kinds whose values have as many bytes in a key as in a row.
    fn fixed_length(&self) -> Option<usize> {
        match self.kind.in_key() {
            InKey::Signed | InKey::Unsigned | InKey::SameLength => {
                usize::try_from(self.kind.width()).ok()
            }
            InKey::Other => None,
        }
    }
}
