//! Conditions that an index can answer: one test of each of its leading columns.
//!
//! The first columns are fixed by one value each (`=`, `= ANY`, `IS NULL`). The next one may have a
//! range (`<` to `>`, `IS NOT NULL`).
mod families;

pub use families::membership;

/// A test of one key column. The first five are the strategies of the index's operator classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Test {
    Less = 1,
    LessEqual = 2,
    Equal = 3,
    GreaterEqual = 4,
    Greater = 5,
    AnyOf,
    IsNull,
    IsNotNull,
    /// The column before is compared as a part of a row, and this one is the next part.
    RowGoesOn,
}

impl Test {
    /// The test that btree's families know by this number, the strategy.
    pub fn from_number(number: i32) -> Test {
        match number {
            1 => Test::Less,
            2 => Test::LessEqual,
            3 => Test::Equal,
            4 => Test::GreaterEqual,
            5 => Test::Greater,
            other => unreachable!("btree has no strategy {other}"),
        }
    }

    /// Whether it says what the column is: one of some values.
    pub fn fixes(self) -> bool {
        matches!(self, Test::Equal | Test::AnyOf | Test::IsNull)
    }

    /// Whether it compares with an argument.
    pub fn has_argument(self) -> bool {
        !matches!(self, Test::IsNull | Test::IsNotNull)
    }
}
