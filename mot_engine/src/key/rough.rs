//! Values that an index orders only roughly: their encodings taken apart and compared.
//!
//! ```text
//! [mark] first look, 00, text, 00
//! [mark] u32 the oid of an enum's value, big-endian
//! ```
//! The first look is what the collation makes of the text; the mark is there where NULL can be. In
//! a descending column all but the mark is complemented.

use super::definition::{KeyColumn, corrupt};
use super::encode::{STRING_END, TAG_VALUE};
use super::enums;
use super::kind::KeyKind;
use crate::errors::EngineError;
use std::borrow::Cow;
use std::cmp::Ordering;

impl KeyColumn {
    /// What ends a text, and what the collation puts ahead of it.
    pub(super) fn text_end(&self) -> u8 {
        match self.descending {
            true => !STRING_END,
            false => STRING_END,
        }
    }

    /// How far a first look at a value goes that a key has from here on.
    pub(crate) fn first_look(&self, encoded: &[u8]) -> usize {
        let mark = usize::from(self.nullable);
        let is_null = self.nullable && encoded.first() != Some(&TAG_VALUE);
        if is_null || self.kind == KeyKind::Enum {
            return encoded.len().min(mark);
        }
        let end = self.text_end();
        let ahead = encoded[mark..].iter().position(|byte| *byte == end);
        ahead.map_or(encoded.len(), |at| mark + at + 1)
    }

    /// The encoding of a value without the complement of a descending column.
    fn turned<'a>(&self, encoded: &'a [u8]) -> Cow<'a, [u8]> {
        if !self.descending {
            return Cow::Borrowed(encoded);
        }
        let mark = usize::from(self.nullable);
        let bytes = encoded.iter().enumerate();
        Cow::Owned(
            bytes
                .map(|(at, byte)| if at < mark { *byte } else { !byte })
                .collect(),
        )
    }

    /// Compares two encoded values as the index orders them, or would if it did so exactly.
    pub(crate) fn compare_encoded(
        &self,
        left: &[u8],
        right: &[u8],
    ) -> Result<Ordering, EngineError> {
        let (left, right) = (&*self.turned(left), &*self.turned(right));
        let mark = usize::from(self.nullable);
        let by_mark = left[..mark].cmp(&right[..mark]);
        let has_values = !self.nullable || left[0] == TAG_VALUE;
        if by_mark.is_ne() || !has_values || left == right {
            return Ok(by_mark);
        }
        let order = match self.collation {
            None if self.kind == KeyKind::Enum => enums::compare(
                value_of_enum(&left[mark..])?,
                value_of_enum(&right[mark..])?,
            ),
            Some(collation) if self.orders_roughly() => {
                collation.compare(text_of(&left[mark..]), text_of(&right[mark..]))?
            }
            _ => left.cmp(right),
        };
        Ok(match self.descending {
            true => order.reverse(),
            false => order,
        })
    }
}

/// The oid of an enum's value in its encoding.
fn value_of_enum(value: &[u8]) -> Result<u32, EngineError> {
    let oid = value
        .try_into()
        .map_err(|_| corrupt("a key of an enum has no oid"))?;
    Ok(u32::from_be_bytes(oid))
}

/// The text in its encoding: between what the collation has put ahead, and the end.
fn text_of(value: &[u8]) -> &[u8] {
    let mut parts = value.split(|byte| *byte == STRING_END);
    parts.next();
    parts.next().unwrap_or_default()
}
