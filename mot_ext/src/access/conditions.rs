//! Conditions that an index can answer: one test of each of its leading columns.
//!
//! The first columns are fixed by values (`=`, `= ANY`, `IS NULL`, ranges of an enum). The next one
//! may have a range (`<` to `>`, `IS NOT NULL`). One behind `= ANY` on the same column leaves out
//! values of the list.
mod families;

pub use families::membership;

use std::cmp::Ordering;

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
    /// One of an enum's values that compare so with one of them.
    EnumsLess,
    EnumsLessEqual,
    EnumsGreaterEqual,
    EnumsGreater,
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

    /// The same test of a column whose keys lie in another order than the enum's values.
    pub fn of_enums(self) -> Option<Test> {
        Some(match self {
            Test::Less => Test::EnumsLess,
            Test::LessEqual => Test::EnumsLessEqual,
            Test::GreaterEqual => Test::EnumsGreaterEqual,
            Test::Greater => Test::EnumsGreater,
            _ => return None,
        })
    }

    /// Of such a test, whether a value passes that compares so with the argument.
    pub fn takes_enum(self, order: Ordering) -> Option<bool> {
        Some(match self {
            Test::EnumsLess => order.is_lt(),
            Test::EnumsLessEqual => order.is_le(),
            Test::EnumsGreaterEqual => order.is_ge(),
            Test::EnumsGreater => order.is_gt(),
            _ => return None,
        })
    }

    /// Whether it says what the column is: one of some values.
    pub fn fixes(self) -> bool {
        matches!(self, Test::Equal | Test::IsNull) || self.is_list()
    }

    /// Whether it may say that of several values.
    pub fn is_list(self) -> bool {
        self == Test::AnyOf || self.is_of_enums()
    }

    /// Whether it is [`Test::of_enums`] of another one. Several such tests of a column make one
    /// list.
    pub fn is_of_enums(self) -> bool {
        self.takes_enum(Ordering::Equal).is_some()
    }

    /// Whether it is a range of the column's own order.
    pub fn is_range(self) -> bool {
        matches!(
            self,
            Test::Less | Test::LessEqual | Test::GreaterEqual | Test::Greater
        )
    }

    /// Whether it compares with an argument.
    pub fn has_argument(self) -> bool {
        !matches!(self, Test::IsNull | Test::IsNotNull)
    }
}

/// Of the tests of one column, the place of the one that fixes it best; a list comes last.
pub fn best_fixing(tests: &[Test]) -> Option<usize> {
    let place_of = |wanted: Test| tests.iter().position(|test| *test == wanted);
    [Test::Equal, Test::IsNull, Test::AnyOf]
        .into_iter()
        .find_map(place_of)
}

/// Whether nothing passes all tests of one column: a NULL passes IS NULL alone, a value all others.
pub fn exclude_each_other(tests: &[Test]) -> bool {
    let is_null = |test: &Test| *test == Test::IsNull;
    tests.iter().any(is_null) && !tests.iter().all(is_null)
}
