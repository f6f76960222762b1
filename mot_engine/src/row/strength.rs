//! Strengths of row locks.

/// Strength of a row lock, with PostgreSQL's conflict table.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Debug)]
#[repr(u8)]
pub enum LockStrength {
    /// FOR KEY SHARE
    KeyShare = 0,
    /// FOR SHARE
    Share = 1,
    /// FOR NO KEY UPDATE, and an UPDATE that changes no key of a unique index
    NoKeyUpdate = 2,
    /// FOR UPDATE, DELETE, and an UPDATE of a unique key
    Update = 3,
}

impl LockStrength {
    /// PostgreSQL's table of conflicting row locks ("Row-Level Locks" in its manual).
    pub fn conflicts(self, other: LockStrength) -> bool {
        use LockStrength::*;
        match self {
            KeyShare => other == Update,
            Share => other >= NoKeyUpdate,
            NoKeyUpdate => other >= Share,
            Update => true,
        }
    }

    /// The strength with this number.
    pub(crate) fn from_number(number: u8) -> Option<LockStrength> {
        (number <= LockStrength::Update as u8).then(|| LockStrength::from_bits(number.into()))
    }

    pub(super) fn from_bits(bits: u32) -> LockStrength {
        match bits & 3 {
            0 => LockStrength::KeyShare,
            1 => LockStrength::Share,
            2 => LockStrength::NoKeyUpdate,
            _ => LockStrength::Update,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LockStrength::*;

    #[test]
    fn locks_conflict_as_the_manual_says() {
        let all = [KeyShare, Share, NoKeyUpdate, Update];
        let table = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [true, true, true, true],
        ];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a.conflicts(*b), table[i][j], "{a:?} {b:?}");
            }
        }
    }
}
