//! The two ends of a range of one key column, which all prefixes before it share. Conditions come
//! in any order; each leaves the tighter end.
//!
//! An end is the beginning of keys, not a key: it includes, or excludes, every key that begins with
//! it. That is what "tighter" is decided by where one end begins with the other.
use mot_engine::key::{KeyBuffer, KeyColumn, KeyValue, encode_end, encode_value};
use mot_engine::{EngineError, KeyRange};
use std::cmp::Ordering;

/// One end of the range of the column behind the prefix.
pub struct End {
    /// What keys at the end begin with.
    pub key: Vec<u8>,
    /// Whether those are in the range.
    pub is_inclusive: bool,
}

/// How a column is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>=`
    GreaterEqual,
    /// `>`
    Greater,
}

impl Limit {
    /// Whether it limits the largest values.
    #[inline]
    pub fn is_upper(self) -> bool {
        matches!(self, Limit::Less | Limit::LessEqual)
    }

    /// Whether the value that is compared with passes.
    #[inline]
    pub fn is_inclusive(self) -> bool {
        matches!(self, Limit::LessEqual | Limit::GreaterEqual)
    }
}

/// What an argument says about a column.
pub enum Argument<'a> {
    /// It is this value of the column's type.
    Value(KeyValue<'a>),
    /// No value of the column is equal to it; this one is the first that is more.
    JustBelow(KeyValue<'a>),
    /// It is below all values of the column.
    Below,
    /// It is above all values of the column.
    Above,
    /// NULL: no row passes.
    Null,
}

/// The ends, where there are any.
#[derive(Default)]
pub struct Ends {
    low: Option<End>,
    high: Option<End>,
}

impl Ends {
    /// Takes both ends away.
    pub fn clear(&mut self) {
        self.low = None;
        self.high = None;
    }

    /// Takes in that the column is compared with an argument; false: no row passes. What is in
    /// `scratch` is lost.
    pub fn add(
        &mut self,
        column: &KeyColumn,
        limit: Limit,
        argument: Argument<'_>,
        scratch: &mut KeyBuffer,
    ) -> Result<bool, EngineError> {
        self.exclude_null(column, scratch)?;
        let is_upper = limit.is_upper();
        let mut is_inclusive = limit.is_inclusive();
        let value = match argument {
            Argument::Value(value) => value,
            Argument::JustBelow(value) => {
                is_inclusive = !is_upper;
                value
            }
            Argument::Below => return Ok(!is_upper),
            Argument::Above => return Ok(is_upper),
            Argument::Null => return Ok(false),
        };
        scratch.clear();
        // Of a value longer than any key it does not matter whether the end is included. Where
        // texts are ordered only roughly those that lie beside it may be on either side.
        encode_end(column, value, scratch)?;
        is_inclusive |= column.orders_roughly();
        let end = End {
            key: scratch.as_slice().to_vec(),
            is_inclusive,
        };
        self.add_end(column, limit, end);
        Ok(true)
    }

    /// Takes in an end that is encoded already.
    pub fn add_end(&mut self, column: &KeyColumn, limit: Limit, end: End) {
        if limit.is_upper() != column.descending {
            self.lower_high(end);
        } else {
            self.raise_low(end);
        }
    }

    /// Leaves NULLs out: they are at one end of the column's keys. What is in `scratch` is lost.
    pub fn exclude_null(
        &mut self,
        column: &KeyColumn,
        scratch: &mut KeyBuffer,
    ) -> Result<(), EngineError> {
        if !column.nullable {
            return Ok(());
        }
        scratch.clear();
        encode_value(column, KeyValue::Null, scratch)?;
        let end = End {
            key: scratch.as_slice().to_vec(),
            is_inclusive: false,
        };
        if column.nulls_first {
            self.raise_low(end);
        } else {
            self.lower_high(end);
        }
        Ok(())
    }

    fn raise_low(&mut self, end: End) {
        let tighter = self
            .low
            .as_ref()
            .is_none_or(|old| match end.key.cmp(&old.key) {
                // A key that begins with the other: an exclusive shorter one is beyond all that
                // begin with it.
                Ordering::Greater => old.is_inclusive || !end.key.starts_with(&old.key),
                Ordering::Equal => !end.is_inclusive,
                Ordering::Less => !end.is_inclusive && old.key.starts_with(&end.key),
            });
        if tighter {
            self.low = Some(end);
        }
    }

    fn lower_high(&mut self, end: End) {
        let tighter = self
            .high
            .as_ref()
            .is_none_or(|old| match end.key.cmp(&old.key) {
                Ordering::Less => !(old.key.starts_with(&end.key) && end.is_inclusive),
                Ordering::Equal => !end.is_inclusive,
                Ordering::Greater => end.key.starts_with(&old.key) && old.is_inclusive,
            });
        if tighter {
            self.high = Some(end);
        }
    }

    /// Makes the range that of keys that begin with the prefix and whose next column is between the
    /// ends. The prefix is as before, and may have more room.
    pub fn set_range(&self, prefix: &mut Vec<u8>, range: &mut KeyRange) -> Result<(), EngineError> {
        range.clear();
        if !prefix.is_empty() {
            range.set_prefix(prefix)?;
        }
        let length = prefix.len();
        if let Some(end) = &self.low {
            prefix.extend_from_slice(&end.key);
            range.set_low(prefix, end.is_inclusive)?;
            prefix.truncate(length);
        }
        if let Some(end) = &self.high {
            prefix.extend_from_slice(&end.key);
            range.set_high(prefix, end.is_inclusive)?;
            prefix.truncate(length);
        }
        Ok(())
    }
}
