//! What btree's families say of operators, kept by the process: planning asks it of the same few operators for every clause, column and index.
//!
//! Only what initdb made is kept, operators and families both. Such rows of the catalog are pinned: nobody drops or changes them, so what is kept needs no
//! invalidation. That an operator is *not* of a family is not kept, for it can become so.
use pgrx::pg_sys;
use std::cell::Cell;

/// An operator's place in a family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Membership {
    /// btree's number for what it tests.
    pub strategy: i32,
    pub left: pg_sys::Oid,
    pub right: pg_sys::Oid,
}

/// Answers kept; a power of two. Applications compare by `=` and the four others on some ten types.
const KEPT: usize = 64;

#[derive(Clone, Copy)]
struct Answer {
    operator: u32,
    family: u32,
    membership: Membership,
}

struct Answers([Cell<Option<Answer>>; KEPT]);
// SAFETY: PostgreSQL's processes run this code on one thread.
unsafe impl Sync for Answers {}
static ANSWERS: Answers = Answers([const { Cell::new(None) }; KEPT]);

/// Whether an object is one that initdb made for ever.
fn is_pinned(object: pg_sys::Oid) -> bool {
    object.to_u32() < pg_sys::FirstUnpinnedObjectId
}

/// The operator's place in a family; `None`: it has none. May raise.
pub fn membership(operator: pg_sys::Oid, family: pg_sys::Oid) -> Option<Membership> {
    if operator == pg_sys::InvalidOid || family == pg_sys::InvalidOid {
        return None;
    }
    if !is_pinned(operator) || !is_pinned(family) {
        return look_up(operator, family);
    }
    let (asked, of) = (operator.to_u32(), family.to_u32());
    // Operators of one type have numbers one behind the other.
    let place = &ANSWERS.0[(asked ^ of.rotate_left(3)) as usize % KEPT];
    if let Some(answer) = place.get()
        && answer.operator == asked
        && answer.family == of
    {
        return Some(answer.membership);
    }
    let membership = look_up(operator, family)?;
    place.set(Some(Answer {
        operator: asked,
        family: of,
        membership,
    }));
    Some(membership)
}

fn look_up(operator: pg_sys::Oid, family: pg_sys::Oid) -> Option<Membership> {
    let (mut strategy, mut left, mut right) = (0, pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: catalog look-ups; the second one is of a row that the first has found.
    unsafe {
        if !pg_sys::op_in_opfamily(operator, family) {
            return None;
        }
        pg_sys::get_op_opfamily_properties(
            operator,
            family,
            false,
            &raw mut strategy,
            &raw mut left,
            &raw mut right,
        );
    }
    Some(Membership {
        strategy,
        left,
        right,
    })
}
