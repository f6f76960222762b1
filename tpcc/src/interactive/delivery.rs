//! Delivery (clause 2.7): the oldest undelivered order of each district of a warehouse.

use crate::effect::{Delivered, EffectNote};
use crate::failure::{Failure, Result};
use crate::scale::DISTRICTS;
use crate::session::Param;
use crate::statements::{Desk, Interactive};
use crate::terminal::Outcome;
use crate::timestamp::now_micros;

pub(super) fn execute(
    desk: &mut Desk,
    statements: &Interactive,
    warehouse: i32,
    carrier: i32,
    note: &mut EffectNote,
) -> Result<Outcome> {
    let delivered = note.delivery(warehouse, carrier);
    let delivered_at = now_micros();
    let w = Param::Int(warehouse);
    desk.begin()?;
    for d in 1..=DISTRICTS {
        let Some(o) = take_oldest(desk, statements, warehouse, d)? else {
            continue;
        };
        let order = [w, Param::Int(d), Param::Int(o)];
        let update = [Param::Int(carrier), order[0], order[1], order[2]];
        desk.session.run(&statements.dl_update_order, &update)?;
        let mut customer = None;
        desk.session.queue(&statements.dl_select_order, &order)?;
        desk.session.sync(|_, mut row| {
            customer = Some(row.id()?);
            Ok(())
        })?;
        let update = [Param::Micros(delivered_at), order[0], order[1], order[2]];
        desk.session
            .run(&statements.dl_update_order_lines, &update)?;
        let mut amount_cents = None;
        desk.session.queue(&statements.dl_select_amount, &order)?;
        desk.session.sync(|_, mut row| {
            amount_cents = Some(row.cents()?);
            Ok(())
        })?;
        let (Some(customer), Some(amount_cents)) = (customer, amount_cents) else {
            return Err(Failure::unexpected(format!(
                "new order {warehouse}/{d}/{o} has no order"
            )));
        };
        let update = [
            Param::Cents(amount_cents),
            w,
            Param::Int(d),
            Param::Int(customer),
        ];
        desk.session.run(&statements.dl_update_customer, &update)?;
        delivered.push(Delivered { d, o, amount_cents });
    }
    desk.commit()?;
    Ok(Outcome::Committed)
}

/// Removes the oldest row of `bmsql_new_order` and returns its order number. The query does not
/// lock, so a delivery at the same time may be faster: then the next row is the oldest.
fn take_oldest(desk: &mut Desk, statements: &Interactive, w: i32, d: i32) -> Result<Option<i32>> {
    loop {
        let mut oldest = None;
        desk.session.queue(
            &statements.dl_select_new_order,
            &[Param::Int(w), Param::Int(d)],
        )?;
        desk.session.sync(|_, mut row| {
            if oldest.is_none() {
                oldest = Some(row.id()?);
            }
            Ok(())
        })?;
        let Some(o) = oldest else { return Ok(None) };
        let key = [Param::Int(w), Param::Int(d), Param::Int(o)];
        if desk
            .session
            .run(&statements.dl_delete_new_order, &key)?
            .rows
            == 1
        {
            return Ok(Some(o));
        }
    }
}
