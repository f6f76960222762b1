//! The five transactions, statement by statement, as an ordinary client application runs them.
//!
//! Each function begins, sends its statements in BenchmarkSQL 5's order and commits. It notes its
//! effect before it sends COMMIT. On [`crate::failure::Failure::Server`] the transaction is still
//! open: the terminal rolls it back.

mod by_name;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

use crate::effect::EffectNote;
use crate::failure::Result;
use crate::inputs::{Inputs, Kind};
use crate::statements::{Desk, Interactive};
use crate::terminal::{Outcome, Place};

/// Reused buffers of the interactive transactions.
#[derive(Default)]
pub struct Scratch {
    new_order: new_order::Screen,
    /// `c_id` of the customers with one last name.
    customers: Vec<i32>,
    /// `c_data` or `h_data` as it will be written.
    text: String,
}

/// Runs the transaction of type `kind` whose input is in `inputs`.
pub fn execute(
    desk: &mut Desk,
    statements: &Interactive,
    scratch: &mut Scratch,
    place: &Place<'_>,
    kind: Kind,
    inputs: &Inputs,
    note: &mut EffectNote,
) -> Result<Outcome> {
    match kind {
        Kind::NewOrder => new_order::execute(
            desk,
            statements,
            &mut scratch.new_order,
            &inputs.new_order,
            note,
        ),
        Kind::Payment => payment::execute(desk, statements, scratch, place, &inputs.customer, note),
        Kind::OrderStatus => order_status::execute(desk, statements, scratch, &inputs.customer),
        Kind::Delivery => delivery::execute(desk, statements, place.w, inputs.carrier, note),
        Kind::StockLevel => stock_level::execute(desk, statements, place, inputs.threshold),
    }
}
