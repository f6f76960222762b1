//! Order-status (clause 2.6): reads a customer's last order.

use super::{Scratch, by_name};
use crate::failure::{Failure, Result};
use crate::inputs::CustomerInput;
use crate::session::Param;
use crate::statements::{Desk, Interactive};
use crate::terminal::Outcome;

pub(super) fn execute(
    desk: &mut Desk,
    statements: &Interactive,
    scratch: &mut Scratch,
    input: &CustomerInput,
) -> Result<Outcome> {
    desk.begin()?;
    // With the customer known by number BEGIN stays queued and travels with the next query.
    let c = by_name::customer(desk, statements, &mut scratch.customers, input)?;
    let (w, d, c) = (Param::Int(input.w), Param::Int(input.d), Param::Int(c));

    let mut found = false;
    desk.session
        .queue(&statements.os_select_customer, &[w, d, c])?;
    desk.session.sync(|_, mut row| {
        row.skip(3)?;
        row.cents()?;
        found = true;
        Ok(())
    })?;
    let mut order = None;
    desk.session
        .queue(&statements.os_select_last_order, &[w, d, c, w, d, c])?;
    desk.session.sync(|_, mut row| {
        order = Some(row.id()?);
        row.int()?;
        row.int_or_null()?;
        Ok(())
    })?;
    let Some(order) = order.filter(|_| found) else {
        return Err(Failure::unexpected(format!(
            "no customer or order for {c:?} in {w:?}/{d:?}"
        )));
    };
    let mut lines = 0;
    desk.session.queue(
        &statements.os_select_order_lines,
        &[w, d, Param::Int(order)],
    )?;
    desk.session.sync(|_, mut row| {
        row.id()?;
        row.id()?;
        row.id()?;
        row.cents()?;
        row.int_or_null()?;
        lines += 1;
        Ok(())
    })?;
    if lines == 0 {
        return Err(Failure::unexpected(format!("order {order} has no lines")));
    }
    desk.commit()?;
    Ok(Outcome::Committed)
}
