//! The two ends of the range that all prefixes share. Conditions come in any order; each leaves the tighter end.
//!
//! An end is the beginning of keys, not a key: it includes, or excludes, every key that begins with it. That is what "tighter" is decided by where
//! one end begins with the other.
use super::{Argument, Bounds};
use crate::access::conditions::Test;
use mot_engine::EngineError;
use mot_engine::key::{KeyColumn, KeyValue, encode_end};
use std::cmp::Ordering;

/// One end of the range of the column behind the prefix.
pub(super) struct End {
    pub(super) key: Vec<u8>,
    pub(super) is_inclusive: bool,
}

impl Bounds {
    pub(super) fn add_range(
        &mut self,
        column: &KeyColumn,
        test: Test,
        argument: Argument<'_>,
    ) -> Result<bool, EngineError> {
        self.exclude_null(column)?;
        let is_upper = matches!(test, Test::Less | Test::LessEqual);
        let mut is_inclusive = matches!(test, Test::LessEqual | Test::GreaterEqual);
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
        self.scratch.clear();
        // Of a value longer than any key it does not matter whether the end is included.
        encode_end(column, value, &mut self.scratch)?;
        let end = End {
            key: self.scratch.as_slice().to_vec(),
            is_inclusive,
        };
        self.add_end(column, test, end);
        Ok(true)
    }

    pub(super) fn add_end(&mut self, column: &KeyColumn, test: Test, end: End) {
        let is_upper = matches!(test, Test::Less | Test::LessEqual);
        if is_upper != column.descending {
            self.lower_high(end);
        } else {
            self.raise_low(end);
        }
    }

    /// Leaves NULLs out: they are at one end of the column's keys.
    pub(super) fn exclude_null(&mut self, column: &KeyColumn) -> Result<(), EngineError> {
        if !column.nullable {
            return Ok(());
        }
        self.encode(column, KeyValue::Null)?;
        let end = End {
            key: self.scratch.as_slice().to_vec(),
            is_inclusive: false,
        };
        if column.nulls_first {
            self.raise_low(end);
        } else {
            self.lower_high(end);
        }
        Ok(())
    }

    pub(super) fn raise_low(&mut self, end: End) {
        let tighter = self
            .low
            .as_ref()
            .is_none_or(|old| match end.key.cmp(&old.key) {
                // A key that begins with the other: an exclusive shorter one is beyond all that begin with it.
                Ordering::Greater => old.is_inclusive || !end.key.starts_with(&old.key),
                Ordering::Equal => !end.is_inclusive,
                Ordering::Less => !end.is_inclusive && old.key.starts_with(&end.key),
            });
        if tighter {
            self.low = Some(end);
        }
    }

    pub(super) fn lower_high(&mut self, end: End) {
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
}
