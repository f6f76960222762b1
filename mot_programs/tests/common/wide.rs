//! Numerics of any size without PostgreSQL, in a range that is made small.
use mot_programs::aggregate::{Fixed, Wide};
use std::cell::Cell;

/// Bits of the lower part.
const LOW_BITS: u32 = 100;
/// The upper part of the range's end.
#[allow(dead_code, reason = "one test looks at the range")]
pub const END: i128 = 1 << 120;
/// In the units of `Fixed`.
const UNITS: i128 = 10_i128.pow(16);

/// A number in units of 10^-16: an upper part, and a lower one of so many bits that is not
/// negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Big {
    pub high: i128,
    pub low: i128,
}

impl Big {
    pub const fn of(units: i128) -> Big {
        Big {
            high: units >> LOW_BITS,
            low: units & ((1 << LOW_BITS) - 1),
        }
    }

    /// The sum, in range or not.
    pub fn plus(self, other: Big) -> Big {
        let low = Big::of(self.low + other.low);
        Big {
            high: self.high + other.high + low.high,
            low: low.low,
        }
    }

    pub fn negated(self) -> Big {
        let low = Big::of(-self.low);
        Big {
            high: low.high - self.high,
            low: low.low,
        }
    }

    pub fn is_in_range(self) -> bool {
        let end = Big { high: END, low: 0 };
        self < end && self > end.negated()
    }

    /// What PostgreSQL's functions do with a result.
    fn checked(self) -> Big {
        assert!(self.is_in_range(), "22003: value overflows numeric format");
        self
    }
}

/// What is kept by all accumulators.
#[derive(Default)]
pub struct Ledger {
    pub copies: Cell<usize>,
}

#[derive(Clone, Copy)]
pub struct Model<'a>(pub &'a Ledger);

/// A copy.
pub struct Copied(Big);

impl Wide for Model<'_> {
    type Numeric = Big;
    type Kept = Copied;

    fn of_fixed(self, number: Fixed) -> Big {
        Big::of(number.value)
    }

    fn of_integer(self, number: i128) -> Big {
        Big::of(number.checked_mul(UNITS).expect("a sum of few bigints"))
    }

    fn add(self, left: Big, right: Big) -> Big {
        left.plus(right).checked()
    }

    fn subtract(self, left: Big, right: Big) -> Big {
        left.plus(right.negated()).checked()
    }

    fn smaller(self, left: Big, right: Big) -> Big {
        left.min(right)
    }

    fn larger(self, left: Big, right: Big) -> Big {
        left.max(right)
    }

    fn is_at_most(self, left: Big, right: Big) -> bool {
        left <= right
    }

    fn is_at_the_end(self, number: Big) -> bool {
        number.high >= END / 4 || number.high < -(END / 4)
    }

    fn half_of_range(self) -> Big {
        Big {
            high: END / 2,
            low: 0,
        }
    }

    fn keep(self, number: Big) -> Copied {
        self.0.copies.set(self.0.copies.get() + 1);
        Copied(number)
    }

    fn kept(self, kept: &Copied) -> Big {
        kept.0
    }

    fn copied(self, number: Big) -> Big {
        number
    }

    fn release(self, _kept: Copied) {
        let left = self.0.copies.get().checked_sub(1);
        self.0.copies.set(left.expect("what was kept"));
    }

    fn bytes(self) -> usize {
        self.0.copies.get() * size_of::<Big>()
    }
}
