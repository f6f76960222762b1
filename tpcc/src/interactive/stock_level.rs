//! Stock-level (clause 2.8): counts the recently sold items that run low.

use crate::failure::{Failure, Result};
use crate::session::Param;
use crate::statements::{Desk, Interactive};
use crate::terminal::{Outcome, Place};

pub(super) fn execute(
    desk: &mut Desk,
    statements: &Interactive,
    place: &Place<'_>,
    threshold: i32,
) -> Result<Outcome> {
    let (w, d) = (Param::Int(place.w), Param::Int(place.d));
    let mut low = None;
    desk.begin()?;
    desk.session
        .queue(&statements.sl_count_low, &[w, Param::Int(threshold), w, d])?;
    desk.session.sync(|_, mut row| {
        low = Some(row.int()?);
        Ok(())
    })?;
    if low.is_none() {
        return Err(Failure::unexpected("a count without a row"));
    }
    desk.commit()?;
    Ok(Outcome::Committed)
}
