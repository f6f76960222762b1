//! Comparisons of rows, `(a, b) > (1, 2)`. Since 18 core also asks indexes of other access methods
//! than btree.
//!
//! The scan key is a header with one subkey for each member. The members that are consecutive
//! columns of the index, in one direction, give one end of a range. A NULL is decided by the
//! members before it, so core evaluates the comparison over each row of the range.
use super::keys::{Condition, comparison, has, is_of};
use crate::access::conditions::Test;
use mot_engine::key::IndexDefinition;
use pgrx::pg_sys;

/// Adds the conditions of a comparison of rows to those of its first column; none if the index
/// cannot bound it.
///
/// # Safety
/// An open index and a header of one of its columns, with subkeys.
pub unsafe fn add(
    conditions: &mut Vec<Condition>,
    index: pg_sys::Relation,
    definition: &IndexDefinition,
    header: &pg_sys::ScanKeyData,
) {
    let first_at = conditions.len();
    let first_column = usize::from(header.sk_attno as u16) - 1;
    let mut member = header.sk_argument.cast_mut_ptr::<pg_sys::ScanKeyData>();
    let mut is_whole = false;
    for column in first_column..definition.columns.len() {
        // SAFETY: a header's argument is an array of subkeys, of which the last says so.
        let (key, found) = unsafe { (&*member, comparison(index, definition, column, &*member)) };
        let goes_on = is_of(key, column)
            && definition.columns[column].descending == definition.columns[first_column].descending;
        // Texts that lie beside the one that is compared with are on either side of it: a part of a
        // row that follows says nothing then.
        let is_rough = definition.columns[column].orders_roughly();
        let Some(mut condition) = found.filter(|found| goes_on && (!found.is_inexact || is_rough))
        else {
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
        if has(key, pg_sys::SK_ROW_END) {
            is_whole = true;
            break;
        }
        // SAFETY: another subkey follows.
        member = unsafe { member.add(1) };
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
