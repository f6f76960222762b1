//! Comparisons of rows, `(a, b) > (1, 2)`. Since 18 core also asks indexes of other access methods
//! than btree.
//!
//! The scan key is a header with one subkey for each member. The members that are consecutive
//! columns of the index, in one direction, give one end of a range. A NULL is decided by the
//! members before it, so core evaluates the comparison over each row of the range.
use super::keys::{Condition, comparison};
use crate::access::conditions::Test;
use crate::pg::index_scan::ScanKey;
use crate::pg::relation::Relation;
use mot_engine::key::IndexDefinition;
use pgrx::pg_sys;

/// Adds the conditions of a comparison of rows to those of its first column; none if the index
/// cannot bound it.
pub fn add(
    conditions: &mut Vec<Condition>,
    index: Relation<'_>,
    definition: &IndexDefinition,
    header: ScanKey<'_>,
) {
    let first_at = conditions.len();
    let first_column = usize::from(header.number() as u16) - 1;
    let mut is_whole = false;
    for (column, key) in (first_column..definition.columns.len()).zip(header.members()) {
        let found = comparison(index, definition, column, key);
        let goes_on = key.is_of(column)
            && definition.columns[column].descending == definition.columns[first_column].descending;
        // Texts that lie beside the one that is compared with are on either side of it: a part of a
        // row that follows says nothing then.
        let is_rough = definition.columns[column].orders_roughly();
        let is_end =
            |found: &Condition| !found.key.test.is_of_enums() && (!found.is_inexact || is_rough);
        let Some(mut condition) = found.filter(|found| goes_on && is_end(found)) else {
            break;
        };
        if is_rough && column > first_column {
            break;
        }
        condition.is_inexact = true;
        if column > first_column {
            condition.key.test = Test::RowGoesOn;
        }
        conditions.push(condition);
        if is_rough {
            break;
        }
        is_whole = key.has(pg_sys::SK_ROW_END);
    }
    // Rows that are equal as far as the index goes may pass by what it does not have.
    if let Some(first) = conditions.get_mut(first_at)
        && !is_whole
    {
        first.key.test = match first.key.test {
            Test::Less => Test::LessEqual,
            Test::Greater => Test::GreaterEqual,
            test => test,
        };
    }
}
