//! What programs are made of.
use super::kind::WordKind;
use super::operators::{Arithmetic, Comparison};
use super::pattern::Pattern;

/// PostgreSQL has to evaluate the program for this row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unsure;

/// What a program gives where it is sure.
pub type Sure<T> = Result<T, Unsure>;

/// An expression over values that a word holds itself.
#[derive(Debug)]
pub enum Number {
    /// A column, from 0, of the kind.
    Column(usize, WordKind),
    /// `None`: NULL.
    Constant(Option<i64>),
    /// A parameter, by its number among those of the program.
    Parameter(usize),
    /// An operation whose result is of the kind.
    Compute(Arithmetic, WordKind, Box<(Number, Number)>),
    /// The value with the other sign, of the kind.
    Negate(WordKind, Box<Number>),
}

/// A text.
#[derive(Debug)]
pub enum Text {
    /// A column, from 0.
    Column(usize),
    /// `None`: NULL.
    Constant(Option<Box<[u8]>>),
    /// A parameter, by its number among those of the program.
    Parameter(usize),
}

/// A condition on a row, in three-valued logic.
#[derive(Debug)]
pub enum Condition {
    /// A comparison of numbers.
    Compare(Comparison, Number, Number),
    /// A comparison of texts by their bytes.
    CompareTexts {
        /// Which.
        comparison: Comparison,
        /// Blanks at the ends do not count.
        is_padded: bool,
        /// The one.
        left: Text,
        /// The other.
        right: Text,
    },
    /// LIKE.
    Like {
        /// What is compared.
        text: Text,
        /// With what.
        pattern: Pattern,
        /// NOT LIKE.
        is_negated: bool,
    },
    /// A value of type boolean.
    Is(Number),
    /// IS TRUE and the like: the answers for true, false and NULL.
    Test([bool; 3], Box<Condition>),
    /// IS NULL.
    IsNull {
        /// From 0.
        column: usize,
        /// IS NOT NULL.
        is_negated: bool,
    },
    /// NOT.
    Not(Box<Condition>),
    /// AND.
    All(Vec<Condition>),
    /// OR.
    Any(Vec<Condition>),
}

/// A parameter's value.
#[derive(Debug)]
pub enum Known {
    /// NULL.
    Null,
    /// Of a parameter that is taken as a number.
    Number(i64),
    /// Of a parameter that is taken as a text.
    Text(Box<[u8]>),
}

/// Where the values of a program's parameters come from.
pub trait ParameterValues {
    /// The value of the parameter with this number. Unsure where PostgreSQL would raise an error,
    /// or compute it first.
    fn value(&self, number: usize) -> Sure<&Known>;
}

/// Of programs that have no parameters.
pub struct NoParameters;

impl ParameterValues for NoParameters {
    #[inline]
    fn value(&self, _number: usize) -> Sure<&Known> {
        Err(Unsure)
    }
}
