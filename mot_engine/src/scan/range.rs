//! A range of keys, spoken of by key prefixes.

use crate::errors::EngineError;
use mot_index::Direction;

/// A half-open range of encoded keys. Reusable: setting bounds keeps the memory.
#[derive(Default, Clone, Debug)]
pub struct KeyRange {
    low: Vec<u8>,
    high: Vec<u8>,
    has_low: bool,
    has_high: bool,
    is_point: bool,
    /// No key can be in it, whatever bounds are set besides.
    is_empty: bool,
}

fn fill(target: &mut Vec<u8>, key: &[u8]) -> Result<(), EngineError> {
    target.clear();
    target
        .try_reserve(key.len() + 1)
        .map_err(|_| EngineError::OutOfProcessMemory)?;
    target.extend_from_slice(key);
    Ok(())
}

/// Turns a prefix into the least key above all keys that start with it; `false` if there is none.
fn to_successor(key: &mut Vec<u8>) -> bool {
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            return true;
        }
    }
    false
}

impl KeyRange {
    /// Every key.
    pub fn new() -> KeyRange {
        KeyRange::default()
    }

    /// Makes it every key.
    pub fn clear(&mut self) {
        self.has_low = false;
        self.has_high = false;
        self.is_point = false;
        self.is_empty = false;
    }

    /// Exactly the rows with this full key (all columns, no NULL) of a unique index: a plain
    /// look-up.
    pub fn set_point(&mut self, key: &[u8]) -> Result<(), EngineError> {
        self.set_prefix(key)?;
        self.is_point = true;
        Ok(())
    }

    /// Every key that starts with `prefix`.
    pub fn set_prefix(&mut self, prefix: &[u8]) -> Result<(), EngineError> {
        self.clear();
        self.set_low(prefix, true)?;
        self.set_high(prefix, true)
    }

    /// From this prefix on: including every key that starts with it, or behind all of them.
    pub fn set_low(&mut self, prefix: &[u8], inclusive: bool) -> Result<(), EngineError> {
        fill(&mut self.low, prefix)?;
        self.has_low = true;
        self.is_point = false;
        // Is there nothing above?
        self.is_empty |= !inclusive && !to_successor(&mut self.low);
        Ok(())
    }

    /// Up to this prefix: including every key that starts with it, or before all of them.
    pub fn set_high(&mut self, prefix: &[u8], inclusive: bool) -> Result<(), EngineError> {
        fill(&mut self.high, prefix)?;
        self.has_high = true;
        self.is_point = false;
        if inclusive && !to_successor(&mut self.high) {
            self.has_high = false;
        }
        Ok(())
    }

    /// Whether a key is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        !self.is_empty
            && self.low().is_none_or(|low| key >= low)
            && self.high().is_none_or(|high| key < high)
    }

    /// Whether no key is in it, whatever keys there are.
    pub(super) fn is_nothing(&self) -> bool {
        self.is_empty
    }

    /// What of it starts with `prefix`.
    pub(super) fn within(&self, prefix: &[u8]) -> Result<KeyRange, EngineError> {
        let mut part = KeyRange::new();
        part.set_prefix(prefix)?;
        if let Some(low) = self.low().filter(|low| *low > prefix) {
            fill(&mut part.low, low)?;
        }
        if let Some(high) = self.high()
            && part.high().is_none_or(|successor| high < successor)
        {
            fill(&mut part.high, high)?;
            part.has_high = true;
        }
        part.is_empty = self.is_empty;
        Ok(part)
    }

    /// What of it is beyond all keys that start with `prefix`, in a direction.
    pub(super) fn beyond(
        &self,
        prefix: &[u8],
        direction: Direction,
    ) -> Result<KeyRange, EngineError> {
        let mut part = KeyRange::new();
        match direction {
            Direction::Forward => {
                part.set_low(prefix, false)?;
                if let Some(high) = self.high() {
                    part.set_high(high, false)?;
                }
            }
            Direction::Backward => {
                part.set_high(prefix, false)?;
                if let Some(low) = self.low() {
                    part.set_low(low, true)?;
                }
            }
        }
        part.is_empty |= self.is_empty;
        Ok(part)
    }

    /// The key of a point look-up.
    pub(crate) fn point(&self) -> Option<&[u8]> {
        self.is_point.then_some(&self.low)
    }

    /// Least key of the range.
    pub(crate) fn low(&self) -> Option<&[u8]> {
        if self.is_empty {
            return Some(&[]);
        }
        self.has_low.then_some(&self.low)
    }

    /// Least key above the range.
    pub(crate) fn high(&self) -> Option<&[u8]> {
        if self.is_empty {
            return Some(&[]);
        }
        self.has_high.then_some(&self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_include_all_that_starts_with_them() {
        let mut range = KeyRange::new();
        range.set_prefix(&[1, 255]).unwrap();
        assert_eq!(
            (range.low(), range.high()),
            (Some(&[1, 255][..]), Some(&[2][..]))
        );
        range.set_prefix(&[255]).unwrap();
        assert_eq!((range.low(), range.high()), (Some(&[255][..]), None));
        range.clear();
        range.set_low(&[7], false).unwrap();
        range.set_high(&[9], false).unwrap();
        assert_eq!(
            (range.low(), range.high()),
            (Some(&[8][..]), Some(&[9][..]))
        );
        range.clear();
        range.set_low(&[255], false).unwrap();
        assert_eq!((range.low(), range.high()), (Some(&[][..]), Some(&[][..])));
        // No other bound gives it keys again.
        range.set_high(&[9], true).unwrap();
        assert_eq!((range.low(), range.high()), (Some(&[][..]), Some(&[][..])));
        range.set_prefix(&[9]).unwrap();
        assert_eq!(
            (range.low(), range.high()),
            (Some(&[9][..]), Some(&[10][..]))
        );
    }
}
