//! Aggregates, and what they are of.
use crate::filter::WordKind;

/// What an aggregate does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// `count(*)`: has no argument.
    CountRows,
    /// Of values that are not NULL.
    Count,
    /// Of integers up to 32 bits: a bigint, as PostgreSQL's does not look for overflow (it takes
    /// 2^32 rows).
    Sum,
    /// Of bigints: numeric.
    SumExact,
    /// `avg`.
    Average,
    /// `min`.
    Smallest,
    /// `max`.
    Largest,
    /// `bool_and`.
    All,
    /// `bool_or`.
    Any,
}

impl Function {
    /// Whether what a parallel worker hands on, PostgreSQL's transition value, is what the
    /// aggregate gives. The others' are internal to PostgreSQL's functions.
    pub fn is_its_own_part(self, input: Input) -> bool {
        match self {
            Function::CountRows
            | Function::Count
            | Function::Sum
            | Function::All
            | Function::Any => true,
            Function::Smallest | Function::Largest => input != Input::Numeric,
            Function::SumExact | Function::Average => false,
        }
    }
}

/// What an aggregate's argument is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// There is none, or its value does not matter.
    Anything,
    /// A value that a word holds.
    Number(WordKind),
    /// A numeric.
    Numeric,
}
