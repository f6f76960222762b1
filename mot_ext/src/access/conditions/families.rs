//! What btree's families say of operators, kept by the process: planning asks it of the same few
//! operators for every clause, column and index.
//!
//! Only what initdb made is kept, operators and families both: such a number never becomes another
//! object's. That one is a member of the other is a row that a superuser may add, drop and write to
//! all the same; a message of that catalog's cache, which an abort sends to its own process, too,
//! empties what is kept. That an operator is *not* of a family is not kept: it is seldom asked
//! twice.
use crate::pg::local::ProcessLocal;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::c_int;

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

struct Answers {
    kept: [Cell<Option<Answer>>; KEPT],
    /// Incremented by each message.
    generation: Cell<u64>,
    is_listening: Cell<bool>,
}
static ANSWERS: ProcessLocal<Answers> = ProcessLocal(Answers {
    kept: [const { Cell::new(None) }; KEPT],
    generation: Cell::new(0),
    is_listening: Cell::new(false),
});

/// Begins to listen; once in a process. Where core's list is full the session ends (FATAL).
fn listen() {
    if !ANSWERS.is_listening.get() {
        let members = pg_sys::SysCacheIdentifier::AMOPOPID as c_int;
        // SAFETY: registered once per process; the callback lives as long as the library.
        unsafe {
            pg_sys::CacheRegisterSyscacheCallback(members, Some(on_change), pg_sys::Datum::from(0));
        }
        ANSWERS.is_listening.set(true);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_change(_arg: pg_sys::Datum, _cache: c_int, _hash: u32) {
    ANSWERS.generation.set(ANSWERS.generation.get() + 1);
    ANSWERS.kept.iter().for_each(|place| place.set(None));
}

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
    let place = &ANSWERS.kept[(asked ^ of.rotate_left(3)) as usize % KEPT];
    if let Some(answer) = place.get()
        && answer.operator == asked
        && answer.family == of
    {
        return Some(answer.membership);
    }
    listen();
    let generation = ANSWERS.generation.get();
    let membership = look_up(operator, family)?;
    // A message that came while it was looked up may be about it.
    if generation == ANSWERS.generation.get() {
        place.set(Some(Answer {
            operator: asked,
            family: of,
            membership,
        }));
    }
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
