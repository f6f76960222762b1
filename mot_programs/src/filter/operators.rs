//! Operators of programs.

/// A comparison of two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl Comparison {
    /// Whether it holds between two values that are not NULL.
    #[inline]
    pub fn holds<T: Ord + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterEqual => left >= right,
        }
    }
}

/// An operation of two integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl Arithmetic {
    /// `None`: PostgreSQL raises an error, or has a rule of its own.
    #[inline]
    pub fn of(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Arithmetic::Add => left.checked_add(right),
            Arithmetic::Subtract => left.checked_sub(right),
            Arithmetic::Multiply => left.checked_mul(right),
            // Dividing 32 bits takes a fraction of the time, and most values have no more.
            Arithmetic::Divide => match (u32::try_from(left), u32::try_from(right)) {
                (Ok(left), Ok(right)) => left.checked_div(right).map(i64::from),
                _ => left.checked_div(right),
            },
            Arithmetic::Remainder => match (u32::try_from(left), u32::try_from(right)) {
                (Ok(left), Ok(right)) => left.checked_rem(right).map(i64::from),
                _ => left.checked_rem(right),
            },
        }
    }
}
