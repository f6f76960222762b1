//! Numerics of any size, which the embedder computes.

/// Numerics of any size: what no [`Fixed`](super::Fixed) holds. The embedder keeps them, and
/// computes them by PostgreSQL's functions.
///
/// A handle, which each accumulator has a copy of. Where PostgreSQL raises an error the function
/// unwinds; the accumulator then still has what it had.
pub trait Wide: Copy {
    /// A numeric for a moment: it lives until the rows of a group are added, or a result is given.
    type Numeric: Copy;
    /// A numeric that is kept as long as an accumulator needs it.
    type Kept;

    /// The numeric of a number of a fixed point.
    fn of_fixed(self, number: super::Fixed) -> Self::Numeric;
    /// The numeric of an integer.
    fn of_integer(self, number: i128) -> Self::Numeric;
    /// A sum. Both numbers are in range; unwinds where the sum is not.
    fn add(self, left: Self::Numeric, right: Self::Numeric) -> Self::Numeric;
    /// A difference, as [`Wide::add`].
    fn subtract(self, left: Self::Numeric, right: Self::Numeric) -> Self::Numeric;
    /// The smaller of two.
    fn smaller(self, left: Self::Numeric, right: Self::Numeric) -> Self::Numeric;
    /// The larger of two.
    fn larger(self, left: Self::Numeric, right: Self::Numeric) -> Self::Numeric;
    /// Whether the one is at most the other.
    fn is_at_most(self, left: Self::Numeric, right: Self::Numeric) -> bool;
    /// Whether two numbers like this one may have a sum out of range. Asked of each; cheap.
    fn is_at_the_end(self, number: Self::Numeric) -> bool;
    /// Half of the end of the range: twice as much is just beyond it.
    fn half_of_range(self) -> Self::Numeric;

    /// Keeps a copy.
    fn keep(self, number: Self::Numeric) -> Self::Kept;
    /// What is kept, as long as it is.
    fn kept(self, kept: &Self::Kept) -> Self::Numeric;
    /// A copy of a number, which outlives what is kept.
    fn copied(self, number: Self::Numeric) -> Self::Numeric;
    /// Gives a copy's memory back.
    fn release(self, kept: Self::Kept);
    /// Bytes that all copies take.
    fn bytes(self) -> usize;
}
