//! Rows of a scan as the evaluation of conditions takes them: many at a time where that
//! gives the same rows, else one by one.
use super::{Keeping, Position, Scan, View};
use mot_engine::{RowId, VersionRef};

impl Scan {
    /// Whether rows may be looked up many at a time. Not where they are to be copied at once, and
    /// not where note is taken of each.
    pub fn gives_groups(&self) -> bool {
        matches!(self.view, View::Mvcc(_))
            && self.keeping == Keeping::Kept
            && self.range.is_none()
            && self.unfinished.is_none()
    }

    /// Takes the rows that come next, as many as were looked up together; false: there are none.
    /// Of a scan that [gives groups](Scan::gives_groups). The position stays where it is until
    /// [`Scan::stand_at`] moves it, or the last row was taken.
    pub fn next_group(&mut self, mut take: impl FnMut(RowId, VersionRef)) -> bool {
        loop {
            if self.ahead.is_none() {
                self.ahead = self.rows_ahead();
            }
            let (Some(rows), View::Mvcc(snapshot)) = (&mut self.ahead, &self.view) else {
                self.position = Position::Behind;
                return false;
            };
            let mut count = 0;
            for (row, version) in rows.next_group(self.session, snapshot) {
                take(row, version);
                count += 1;
            }
            if count > 0 {
                return true;
            }
            if self.shared.is_none() {
                self.position = Position::Behind;
                return false;
            }
            self.ahead = None;
        }
    }

    /// Positions the scan at a row of the group that was taken last: a cursor may turn round there.
    #[inline]
    pub fn stand_at(&mut self, row: RowId) {
        self.position = Position::At(row);
    }
}
