//! The five transactions, each as one call of a function of `procedures.sql`.

use crate::effect::{Delivered, Effect, EffectNote, MAX_TAG_BYTES};
use crate::failure::{Failure, Result, SqlState};
use crate::inputs::{CustomerInput, Inputs, Kind, MAX_LINES, NewOrderInput, Who};
use crate::row::{Row, parse_numeric};
use crate::session::Param;
use crate::statements::{Desk, Procedures};
use crate::terminal::{Outcome, Place};
use crate::timestamp::now_micros;
use std::io::Write as _;

/// The functions' definitions.
pub const DEFINITIONS: &str = include_str!("procedures.sql");

/// Runs the transaction of type `kind` whose input is in `inputs`.
pub fn execute(
    desk: &mut Desk,
    calls: &Procedures,
    place: &Place<'_>,
    kind: Kind,
    inputs: &Inputs,
    note: &mut EffectNote,
) -> Result<Outcome> {
    desk.begin()?;
    match kind {
        Kind::NewOrder => match new_order(desk, calls, &inputs.new_order, note) {
            Err(Failure::Server {
                state: SqlState::RAISE_EXCEPTION,
                ..
            }) if inputs.new_order.rolls_back => {
                desk.rollback()?;
                return Ok(Outcome::RolledBack);
            }
            other => other?,
        },
        Kind::Payment => payment(desk, calls, place, &inputs.customer, note)?,
        Kind::OrderStatus => order_status(desk, calls, &inputs.customer)?,
        Kind::Delivery => delivery(desk, calls, place.w, inputs.carrier, note)?,
        Kind::StockLevel => stock_level(desk, calls, place, inputs.threshold)?,
    }
    desk.commit()?;
    Ok(Outcome::Committed)
}

fn new_order(
    desk: &mut Desk,
    calls: &Procedures,
    input: &NewOrderInput,
    note: &mut EffectNote,
) -> Result<()> {
    let lines = input.lines();
    let mut columns = [[0i32; MAX_LINES]; 4];
    for (place, line) in lines.iter().enumerate() {
        let values = [line.number, line.supply_w, line.item, line.quantity];
        for (column, value) in columns.iter_mut().zip(values) {
            column[place] = value;
        }
    }
    let [numbers, supplies, items, quantities] = &columns;
    let params = [
        Param::Int(input.w),
        Param::Int(input.d),
        Param::Int(input.c),
        Param::Ints(&numbers[..lines.len()]),
        Param::Ints(&supplies[..lines.len()]),
        Param::Ints(&items[..lines.len()]),
        Param::Ints(&quantities[..lines.len()]),
    ];
    desk.session.queue(&calls.call_new_order, &params)?;
    desk.session.sync(|_, mut row| {
        note.effect = Effect::NewOrder {
            w: input.w,
            d: input.d,
            o: row.id()?,
            lines: lines.len() as i32,
            total_cents: row.cents()?,
        };
        Ok(())
    })?;
    Ok(())
}

/// The customer as parameters: number and last name, one of them null.
fn customer(input: &CustomerInput) -> [Param<'_>; 2] {
    match input.who {
        Who::Id(id) => [Param::Int(id), Param::Null],
        Who::LastName => [Param::Null, Param::Text(input.last_name())],
    }
}

fn payment(
    desk: &mut Desk,
    calls: &Procedures,
    place: &Place<'_>,
    input: &CustomerInput,
    note: &mut EffectNote,
) -> Result<()> {
    let mut tag = [0u8; MAX_TAG_BYTES];
    let mut rest = &mut tag[..];
    write!(rest, "{}", place.tag())
        .map_err(|_| Failure::unexpected("a payment's tag is too long"))?;
    let unused = rest.len();
    let tag = std::str::from_utf8(&tag[..MAX_TAG_BYTES - unused]).unwrap_or_default();
    let [id, last_name] = customer(input);
    let params = [
        Param::Int(input.w),
        Param::Int(input.d),
        Param::Int(input.c_w),
        Param::Int(input.c_d),
        id,
        last_name,
        Param::Cents(input.amount_cents),
        Param::Text(tag),
    ];
    desk.session.queue(&calls.call_payment, &params)?;
    desk.session.sync(|_, mut row| {
        note.effect = Effect::Payment {
            w: input.w,
            d: input.d,
            c_w: input.c_w,
            c_d: input.c_d,
            c: row.id()?,
            amount_cents: input.amount_cents,
        };
        Ok(())
    })?;
    Ok(())
}

fn order_status(desk: &mut Desk, calls: &Procedures, input: &CustomerInput) -> Result<()> {
    let [id, last_name] = customer(input);
    let params = [Param::Int(input.w), Param::Int(input.d), id, last_name];
    let mut order = None;
    desk.session.queue(&calls.call_order_status, &params)?;
    desk.session.sync(|_, mut row| {
        row.skip(3)?;
        order = row.int_or_null()?;
        Ok(())
    })?;
    match order {
        Some(_) => Ok(()),
        None => Err(Failure::unexpected("a customer without an order")),
    }
}

fn delivery(
    desk: &mut Desk,
    calls: &Procedures,
    w: i32,
    carrier: i32,
    note: &mut EffectNote,
) -> Result<()> {
    let delivered = note.delivery(w, carrier);
    let params = [
        Param::Int(w),
        Param::Int(carrier),
        Param::Micros(now_micros()),
    ];
    desk.session.queue(&calls.call_delivery, &params)?;
    desk.session.sync(|_, row| read_delivered(row, delivered))?;
    Ok(())
}

/// Reads the two arrays of `tpcc_delivery`, element per district, in PostgreSQL's text form.
fn read_delivered(mut row: Row<'_>, delivered: &mut Vec<Delivered>) -> Result<()> {
    let (orders, amounts) = (row.text()?, row.text()?);
    let pairs = elements(orders).zip(elements(amounts));
    for (d, (order, amount)) in (1..).zip(pairs) {
        if order == "NULL" {
            continue;
        }
        let odd = || Failure::unexpected(format!("order {order}, amount {amount} in a delivery"));
        let o = order.parse().map_err(|_| odd())?;
        let amount_cents = parse_numeric(amount, 2).ok_or_else(odd)?;
        delivered.push(Delivered { d, o, amount_cents });
    }
    Ok(())
}

fn elements(array: &str) -> impl Iterator<Item = &str> {
    array
        .trim_start_matches('{')
        .trim_end_matches('}')
        .split(',')
}

fn stock_level(
    desk: &mut Desk,
    calls: &Procedures,
    place: &Place<'_>,
    threshold: i32,
) -> Result<()> {
    let params = [
        Param::Int(place.w),
        Param::Int(place.d),
        Param::Int(threshold),
    ];
    let mut low = None;
    desk.session.queue(&calls.call_stock_level, &params)?;
    desk.session.sync(|_, mut row| {
        low = row.int_or_null()?;
        Ok(())
    })?;
    low.map(|_| ())
        .ok_or_else(|| Failure::unexpected("a count without a row"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_read_from_their_arrays() {
        let (orders, amounts) = ("{3001,NULL,12}", "{17.05,NULL,0.00}");
        let mut body = vec![0, 2];
        for text in [orders, amounts] {
            body.extend((text.len() as i32).to_be_bytes());
            body.extend(text.as_bytes());
        }
        let mut delivered = Vec::new();
        read_delivered(Row::new(&body).unwrap(), &mut delivered).unwrap();
        let expected = [
            Delivered {
                d: 1,
                o: 3001,
                amount_cents: 1705,
            },
            Delivered {
                d: 3,
                o: 12,
                amount_cents: 0,
            },
        ];
        assert_eq!(delivered, expected);
    }
}
