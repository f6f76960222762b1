//! Groups of rows, and sets of a group's rows as bits.
use super::row::Row;
use mot_engine::{GROUP_ROWS_MAX, RowId, VersionRef};

/// Rows of a group at most: a bit each.
pub const ROWS: usize = GROUP_ROWS_MAX;
const _: () = assert!(ROWS == u64::BITS as usize);

/// A set of a group's rows.
pub type Rows = u64;
/// A number for each row.
pub type Numbers = [i64; ROWS];

/// Rows that are looked at together, and beside each of them where it is.
pub struct Group<P = (RowId, VersionRef)> {
    rows: [Row; ROWS],
    places: [Option<P>; ROWS],
    length: usize,
}

impl<P: Copy> Group<P> {
    /// Without rows.
    #[expect(
        clippy::new_without_default,
        reason = "kilobytes that somebody should ask for"
    )]
    pub fn new() -> Group<P> {
        Group {
            rows: [Row::none(); ROWS],
            places: [None; ROWS],
            length: 0,
        }
    }

    /// Takes all rows out.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Adds a row; there is room.
    #[inline]
    pub fn add(&mut self, row: Row, place: P) {
        self.rows[self.length] = row;
        self.places[self.length] = Some(place);
        self.length += 1;
    }

    /// Whether there is no room for a row.
    pub fn is_full(&self) -> bool {
        self.length == ROWS
    }

    /// How many rows there are.
    pub fn length(&self) -> usize {
        self.length
    }

    /// All rows.
    #[inline]
    pub fn all(&self) -> Rows {
        Rows::MAX
            .checked_shr((ROWS - self.length) as u32)
            .unwrap_or(0)
    }

    /// The rows, in the order in which they were added.
    #[inline]
    pub fn rows(&self) -> &[Row] {
        &self.rows[..self.length]
    }

    /// Where a row is.
    pub fn place(&self, at: usize) -> P {
        self.places[at].expect("a row of the group")
    }
}

impl Group {
    /// Adds the row that a version holds, which the caller's snapshot keeps; there is room.
    #[inline]
    pub fn push(&mut self, row: RowId, version: VersionRef) {
        self.add(Row::of(version), (row, version));
    }
}

/// The members of a set.
#[inline]
pub fn members(rows: Rows) -> impl Iterator<Item = usize> {
    let mut left = rows;
    std::iter::from_fn(move || {
        let next = (left != 0).then(|| left.trailing_zeros() as usize);
        left &= left.wrapping_sub(1);
        next
    })
}

/// What a condition says of rows; NULL of those that are in none of the sets.
#[derive(Clone, Copy, Default)]
pub struct Answer {
    /// Those of which it is true.
    pub yes: Rows,
    /// Those of which it is false.
    pub no: Rows,
    /// PostgreSQL has to be asked.
    pub unsure: Rows,
}

/// Of which rows an expression's value is no number.
#[derive(Clone, Copy, Default)]
pub struct Lacking {
    /// It is NULL.
    pub null: Rows,
    /// PostgreSQL has to be asked.
    pub unsure: Rows,
}
