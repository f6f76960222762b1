//! Payment (clause 2.5): 43 % of the mix.

use super::{Scratch, by_name};
use crate::effect::{Effect, EffectNote, MAX_TAG_BYTES};
use crate::failure::{Failure, Result};
use crate::inputs::CustomerInput;
use crate::session::Param;
use crate::statements::{Desk, Interactive};
use crate::terminal::{Outcome, Place};
use crate::timestamp::now_micros;
use std::fmt::Write as _;

/// Characters `c_data` can hold.
const CUSTOMER_DATA_CHARS: usize = 500;

pub(super) fn execute(
    desk: &mut Desk,
    statements: &Interactive,
    scratch: &mut Scratch,
    place: &Place<'_>,
    input: &CustomerInput,
    note: &mut EffectNote,
) -> Result<Outcome> {
    let paid_at = now_micros();
    let (w, d) = (Param::Int(input.w), Param::Int(input.d));
    let amount = Param::Cents(input.amount_cents);

    desk.begin()?;
    desk.session
        .run(&statements.pay_update_district, &[amount, w, d])?;
    let mut district_name = [0u8; MAX_TAG_BYTES];
    let district_name = read_name(
        desk,
        |desk| desk.session.queue(&statements.pay_select_district, &[w, d]),
        &mut district_name,
    )?;
    desk.session
        .run(&statements.pay_update_warehouse, &[amount, w])?;
    let mut warehouse_name = [0u8; MAX_TAG_BYTES];
    let warehouse_name = read_name(
        desk,
        |desk| desk.session.queue(&statements.pay_select_warehouse, &[w]),
        &mut warehouse_name,
    )?;

    let c = by_name::customer(desk, statements, &mut scratch.customers, input)?;
    let key = [Param::Int(input.c_w), Param::Int(input.c_d), Param::Int(c)];
    let (mut found, mut has_good_credit) = (false, false);
    desk.session.queue(&statements.pay_select_customer, &key)?;
    desk.session.sync(|_, mut row| {
        found = true;
        row.skip(10)?;
        has_good_credit = row.text()? == "GC";
        Ok(())
    })?;
    if !found {
        return Err(Failure::unexpected(format!(
            "no customer {c} in {}/{}",
            input.c_w, input.c_d
        )));
    }

    if has_good_credit {
        let params = [amount, amount, key[0], key[1], key[2]];
        desk.session.run(&statements.pay_update_customer, &params)?;
    } else {
        note_in_data(desk, statements, &mut scratch.text, input, c, key)?;
    }

    let history_data = &mut scratch.text;
    history_data.clear();
    let _ = write!(
        history_data,
        "{} {warehouse_name}    {district_name}",
        place.tag()
    );
    history_data.truncate(MAX_TAG_BYTES);
    let params = [
        key[2],
        key[1],
        key[0],
        d,
        w,
        Param::Micros(paid_at),
        amount,
        Param::Text(history_data),
    ];
    desk.session.run(&statements.pay_insert_history, &params)?;

    note.effect = Effect::Payment {
        w: input.w,
        d: input.d,
        c_w: input.c_w,
        c_d: input.c_d,
        c,
        amount_cents: input.amount_cents,
    };
    desk.commit()?;
    Ok(Outcome::Committed)
}

/// Of a customer with bad credit: puts what is paid in front of `c_data`.
fn note_in_data(
    desk: &mut Desk,
    statements: &Interactive,
    text: &mut String,
    input: &CustomerInput,
    c: i32,
    key: [Param<'_>; 3],
) -> Result<()> {
    text.clear();
    let cents = input.amount_cents;
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "C_ID={c} C_D_ID={} C_W_ID={} D_ID={} W_ID={} H_AMOUNT={}.{:02}   ",
        input.c_d,
        input.c_w,
        input.d,
        input.w,
        cents / 100,
        cents % 100
    );
    desk.session
        .queue(&statements.pay_select_customer_data, &key)?;
    desk.session.sync(|_, mut row| {
        text.push_str(row.text()?);
        Ok(())
    })?;
    // All of it is ASCII, so that bytes are characters.
    text.truncate(CUSTOMER_DATA_CHARS);
    let amount = Param::Cents(cents);
    let params = [amount, amount, Param::Text(text), key[0], key[1], key[2]];
    desk.session
        .run(&statements.pay_update_customer_data, &params)?;
    Ok(())
}

/// Runs the query that `queue` queues and copies the first column of its row into `buffer`.
fn read_name<'b>(
    desk: &mut Desk,
    queue: impl FnOnce(&mut Desk) -> Result<()>,
    buffer: &'b mut [u8; MAX_TAG_BYTES],
) -> Result<&'b str> {
    let mut length = None;
    queue(desk)?;
    desk.session.sync(|_, mut row| {
        let name = row.text()?.as_bytes();
        let kept = name.len().min(buffer.len());
        buffer[..kept].copy_from_slice(&name[..kept]);
        length = Some(kept);
        Ok(())
    })?;
    let length = length.ok_or_else(|| Failure::unexpected("no such warehouse or district"))?;
    std::str::from_utf8(&buffer[..length]).map_err(|error| Failure::unexpected(error.to_string()))
}
