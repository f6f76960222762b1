//! Clause 2.5.2.2, case 2: the customer in the middle of those with a last name.

use crate::failure::{Failure, Result};
use crate::inputs::{CustomerInput, Who};
use crate::session::Param;
use crate::statements::{Desk, Interactive};

/// The customer number `input` means. What is queued already goes along with the query, or stays
/// queued for the next statement when the number is known.
pub(super) fn customer(
    desk: &mut Desk,
    statements: &Interactive,
    found: &mut Vec<i32>,
    input: &CustomerInput,
) -> Result<i32> {
    let id = match input.who {
        Who::Id(id) => return Ok(id),
        Who::LastName => {
            let name = input.last_name();
            let params = [
                Param::Int(input.c_w),
                Param::Int(input.c_d),
                Param::Text(name),
            ];
            found.clear();
            desk.session
                .queue(&statements.select_customers_by_name, &params)?;
            desk.session.sync(|_, mut row| {
                found.push(row.id()?);
                Ok(())
            })?;
            found.get(found.len().div_ceil(2).wrapping_sub(1)).copied()
        }
    };
    id.ok_or_else(|| {
        let (w, d) = (input.c_w, input.c_d);
        Failure::unexpected(format!(
            "no customer {} in district {w}/{d}",
            input.last_name()
        ))
    })
}
