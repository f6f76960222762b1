//! Types whose values a word holds, as programs know them: by their width and sign. A key kind
//! (`mot_engine`) says how values are ordered.

/// A value that a word holds itself, taken as a number of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WordKind {
    /// smallint.
    Int2,
    /// Also dates.
    Int4,
    /// Also times and timestamps.
    Int8,
    /// boolean.
    Bool,
    /// `"char"`, compared without sign.
    Char,
    /// Unsigned.
    Oid,
}

impl WordKind {
    /// Bytes of such a value.
    pub fn bytes(self) -> i16 {
        match self {
            WordKind::Bool | WordKind::Char => 1,
            WordKind::Int2 => 2,
            WordKind::Int4 | WordKind::Oid => 4,
            WordKind::Int8 => 8,
        }
    }

    /// The number that a word (a datum of PostgreSQL's) holds in its lower bytes.
    #[inline]
    pub fn of_word(self, word: u64) -> i64 {
        match self {
            WordKind::Int2 => i64::from(word as i16),
            WordKind::Int4 => i64::from(word as i32),
            WordKind::Int8 => word as i64,
            WordKind::Bool => i64::from(word as u8 != 0),
            WordKind::Char => i64::from(word as u8),
            WordKind::Oid => i64::from(word as u32),
        }
    }

    /// The word of a number, extended as PostgreSQL's macros extend it.
    #[inline]
    pub fn to_word(self, number: i64) -> u64 {
        match self {
            WordKind::Int2 => number as i16 as u64,
            WordKind::Int4 => number as i32 as u64,
            WordKind::Int8 => number as u64,
            WordKind::Bool => u64::from(number != 0),
            WordKind::Char => number as i8 as u64,
            WordKind::Oid => u64::from(number as u32),
        }
    }

    /// The number that is stored at `place`.
    ///
    /// # Safety
    /// A value of the kind is there.
    #[inline]
    pub unsafe fn read(self, place: *const u8) -> i64 {
        // SAFETY: a value of the kind is there (caller).
        unsafe {
            match self {
                WordKind::Int2 => i64::from(place.cast::<i16>().read_unaligned()),
                WordKind::Int4 => i64::from(place.cast::<i32>().read_unaligned()),
                WordKind::Int8 => place.cast::<i64>().read_unaligned(),
                WordKind::Bool => i64::from(*place != 0),
                WordKind::Char => i64::from(*place),
                WordKind::Oid => i64::from(place.cast::<u32>().read_unaligned()),
            }
        }
    }

    /// Whether a result of arithmetic is one of the kind's.
    #[inline]
    pub fn holds(self, number: i64) -> bool {
        match self {
            WordKind::Int2 => i16::try_from(number).is_ok(),
            WordKind::Int4 => i32::try_from(number).is_ok(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_the_numbers_at_the_ends_of_each_kind() {
        for (kind, least, most) in [
            (WordKind::Int2, i16::MIN.into(), i16::MAX.into()),
            (WordKind::Int4, i32::MIN.into(), i32::MAX.into()),
            (WordKind::Int8, i64::MIN, i64::MAX),
            (WordKind::Bool, 0, 1),
            (WordKind::Char, 0, u8::MAX.into()),
            (WordKind::Oid, 0, u32::MAX.into()),
        ] {
            for number in [least, 0, 1, most] {
                let word = kind.to_word(number);
                assert_eq!(kind.of_word(word), number, "{kind:?}");
                // SAFETY: eight bytes, of which the kind takes the first.
                let stored = unsafe { kind.read(word.to_le_bytes().as_ptr()) };
                assert_eq!(stored, number, "{kind:?}");
            }
        }
        // PostgreSQL compares whole words here and there: what it makes is extended with the sign.
        assert_eq!(WordKind::Int4.to_word(-1), u64::MAX);
        assert_eq!(WordKind::Char.to_word(0xFF), u64::MAX);
        assert_eq!(WordKind::Oid.to_word(u32::MAX.into()), u32::MAX.into());
    }
}
