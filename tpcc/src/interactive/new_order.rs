//! New-order (clause 2.4): 45 % of the mix, and what `tpmC` counts.

use crate::effect::{Effect, EffectNote};
use crate::failure::{Failure, Result};
use crate::inputs::{Line, MAX_LINES, NewOrderInput};
use crate::random::ORIGINAL;
use crate::session::Param;
use crate::statements::{Desk, Interactive};
use crate::terminal::Outcome;
use crate::timestamp::now_micros;

/// Characters of `s_dist_NN`.
const DIST_INFO_BYTES: usize = 24;

/// What the terminal shows of one line.
#[derive(Clone, Copy, Default)]
struct ShownLine {
    amount_cents: i64,
    stock_quantity: i32,
    /// Both the item and the stock row are originals.
    brand: bool,
    dist_info: [u8; DIST_INFO_BYTES],
}

/// What the terminal shows of the order; the name fields are copied as an application would.
#[derive(Default)]
pub(super) struct Screen {
    lines: [ShownLine; MAX_LINES],
    customer_last: String,
    customer_credit: String,
    /// Unit: 1/100 of a cent of a cent, as taxes and discounts have four digits each.
    price_total: i128,
}

pub(super) fn execute(
    desk: &mut Desk,
    statements: &Interactive,
    screen: &mut Screen,
    input: &NewOrderInput,
    note: &mut EffectNote,
) -> Result<Outcome> {
    let (w, d) = (Param::Int(input.w), Param::Int(input.d));
    let (mut district_tax, mut order) = (0, 0);
    desk.begin()?;
    desk.session
        .queue(&statements.no_select_district, &[w, d])?;
    desk.session.sync(|_, mut row| {
        (district_tax, order) = (row.numeric(4)?, row.id()?);
        Ok(())
    })?;
    if order == 0 {
        return Err(Failure::unexpected(format!(
            "no district {}/{}",
            input.w, input.d
        )));
    }

    let (mut discount, mut warehouse_tax) = (0, 0);
    desk.session
        .queue(&statements.no_select_customer, &[w, d, Param::Int(input.c)])?;
    desk.session.sync(|_, mut row| {
        discount = row.numeric(4)?;
        screen.customer_last.clear();
        screen.customer_last.push_str(row.text()?);
        screen.customer_credit.clear();
        screen.customer_credit.push_str(row.text()?);
        warehouse_tax = row.numeric(4)?;
        Ok(())
    })?;

    desk.session.run(&statements.no_update_district, &[w, d])?;
    let o = Param::Int(order);
    let line_count = input.lines().len() as i32;
    let entry = [
        o,
        d,
        w,
        Param::Int(input.c),
        Param::Micros(now_micros()),
        Param::Int(line_count),
        Param::Int(i32::from(input.all_local())),
    ];
    desk.session.run(&statements.no_insert_order, &entry)?;
    desk.session
        .run(&statements.no_insert_new_order, &[o, d, w])?;

    let mut total_cents = 0;
    for (place, line) in input.lines().iter().enumerate() {
        if !look_up(desk, statements, &mut screen.lines[place], input, line)? {
            // Clause 2.4.2.3: everything up to the missing item is executed before the rollback.
            write_lines(desk, statements, screen, input, o, place)?;
            desk.rollback()?;
            return Ok(Outcome::RolledBack);
        }
        total_cents += screen.lines[place].amount_cents;
    }
    write_lines(desk, statements, screen, input, o, input.lines().len())?;
    screen.price_total = i128::from(total_cents)
        * i128::from(10_000 - discount)
        * i128::from(10_000 + warehouse_tax + district_tax);

    note.effect = Effect::NewOrder {
        w: input.w,
        d: input.d,
        o: order,
        lines: line_count,
        total_cents,
    };
    desk.commit()?;
    Ok(Outcome::Committed)
}

/// Reads the item and locks its stock row; false if there is no such item.
fn look_up(
    desk: &mut Desk,
    statements: &Interactive,
    shown: &mut ShownLine,
    input: &NewOrderInput,
    line: &Line,
) -> Result<bool> {
    let (mut found, mut item_is_original) = (false, false);
    desk.session
        .queue(&statements.no_select_item, &[Param::Int(line.item)])?;
    desk.session.sync(|_, mut row| {
        found = true;
        shown.amount_cents = row.cents()? * i64::from(line.quantity);
        row.skip(1)?;
        item_is_original = row.text()?.contains(ORIGINAL);
        Ok(())
    })?;
    if !found {
        return if input.rolls_back && line.item > 1_000_000 {
            Ok(false)
        } else {
            Err(Failure::unexpected(format!("no item {}", line.item)))
        };
    }

    let mut locked = false;
    let key = [Param::Int(line.supply_w), Param::Int(line.item)];
    desk.session.queue(&statements.no_select_stock, &key)?;
    desk.session.sync(|_, mut row| {
        locked = true;
        shown.stock_quantity = row.id()?;
        shown.brand = item_is_original && row.text()?.contains(ORIGINAL);
        if !item_is_original {
            row.skip(1)?;
        }
        row.skip(input.d as usize - 1)?;
        let info = row.text()?.as_bytes();
        shown.dist_info = info
            .try_into()
            .map_err(|_| Failure::unexpected("s_dist_NN does not have 24 characters"))?;
        Ok(())
    })?;
    if !locked {
        let (w, i) = (line.supply_w, line.item);
        return Err(Failure::unexpected(format!(
            "no stock of item {i} in warehouse {w}"
        )));
    }
    Ok(true)
}

/// The two batches at the end: stock updates, then order lines, for the first `count` lines.
fn write_lines(
    desk: &mut Desk,
    statements: &Interactive,
    screen: &Screen,
    input: &NewOrderInput,
    order: Param<'_>,
    count: usize,
) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let lines = || input.lines()[..count].iter().zip(&screen.lines);
    for (line, shown) in lines() {
        let left = if shown.stock_quantity >= line.quantity + 10 {
            shown.stock_quantity - line.quantity
        } else {
            shown.stock_quantity + 91
        };
        let params = [
            Param::Int(left),
            Param::Int(line.quantity),
            Param::Int(i32::from(line.supply_w != input.w)),
            Param::Int(line.supply_w),
            Param::Int(line.item),
        ];
        desk.session.queue(&statements.no_update_stock, &params)?;
    }
    desk.session.sync(|_, _| Ok(()))?;
    for (line, shown) in lines() {
        let dist_info = std::str::from_utf8(&shown.dist_info).unwrap_or_default();
        let params = [
            order,
            Param::Int(input.d),
            Param::Int(input.w),
            Param::Int(line.number),
            Param::Int(line.item),
            Param::Int(line.supply_w),
            Param::Int(line.quantity),
            Param::Cents(shown.amount_cents),
            Param::Text(dist_info),
        ];
        desk.session
            .queue(&statements.no_insert_order_line, &params)?;
    }
    desk.session.sync(|_, _| Ok(()))?;
    Ok(())
}
