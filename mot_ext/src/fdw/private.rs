//! What the planner tells the executor: `fdw_private` as a list of integers, `fdw_exprs` as the expressions they speak of.
//!
//! ```text
//! fdw_private: mark, serial (two halves), index oid (0: all rows), backward, conditions, qualifications, assignments,
//!              counts rows, by identity,
//!              conditions x { key column, test, argument type },  assignments x { attribute number }
//! fdw_exprs:   arguments of the conditions that have one, qualifications, assigned expressions
//! ```
//! By identity: the one row with the `ctid` that the only argument gives.
//! Qualifications and assignments are there for a direct UPDATE or DELETE only. A change row by row has mark and serial, and whether the plan was made
//! for row triggers.
//!
//! The serial names the plan: copies of a plan share it, two plans of a process never do. Compiled statements are kept by it.
use super::conditions::Test;
use super::triggers::Planned;
pub use crate::pg::list::{cells, items, list, list_of};
use crate::pg::list::{integers, unfilled};
use pgrx::pg_sys;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// Positions of the fixed part.
#[repr(i32)]
enum Position {
    Mark = 0,
    SerialLow = 1,
    SerialHigh = 2,
    Index = 3,
    Backward = 4,
    Conditions = 5,
    Quals = 6,
    Assignments = 7,
    CountsRows = 8,
    ByIdentity = 9,
}
const FIXED: i32 = 10;
/// Numbers of a change row by row, and the place of the last.
const ROW_BY_ROW: i32 = 4;
const TRIGGERS: i32 = 3;
/// "mot plan" cut to 32 bits: tells our lists of integers from another wrapper's.
const MARK: i32 = 0x6d6f_7470;
const PER_CONDITION: i32 = 3;

/// One test of a key column, as the executor needs it.
#[derive(Clone, Copy)]
pub struct Key {
    pub column: usize,
    pub test: Test,
    pub argument_type: pg_sys::Oid,
}

/// The serial of a new plan; from 1.
pub fn next_serial() -> u64 {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    SERIAL.fetch_add(1, Ordering::Relaxed)
}

/// Builds `fdw_private` of a change row by row.
pub unsafe fn encode_row_by_row(triggers: Planned) -> *mut pg_sys::List {
    let serial = next_serial();
    let triggers = i32::from(triggers.any);
    // SAFETY: an integer list in the current memory context.
    unsafe { integers(&[MARK, serial as i32, (serial >> 32) as i32, triggers]) }
}

/// Whether a change row by row was planned for row triggers, by its `fdw_private`; not, if that is not one of ours.
pub unsafe fn planned_triggers(list: *const pg_sys::List) -> Planned {
    // SAFETY: a list; one with our mark is one that `encode_row_by_row` built.
    let any = unsafe {
        match serial(list) {
            Some(_) => (*(*list).elements.add(TRIGGERS as usize)).int_value != 0,
            None => false,
        }
    };
    Planned { any }
}

/// The serial of a plan by its `fdw_private`; `None` for another wrapper's.
pub unsafe fn serial(list: *const pg_sys::List) -> Option<u64> {
    if list.is_null() {
        return None;
    }
    // SAFETY: a list; only one of integers, long enough, is read on.
    unsafe {
        if (*list).type_ != pg_sys::NodeTag::T_IntList || (*list).length < ROW_BY_ROW {
            return None;
        }
        let number = |at: Position| (*(*list).elements.add(at as usize)).int_value;
        let halves = [number(Position::SerialLow), number(Position::SerialHigh)];
        (number(Position::Mark) == MARK)
            .then_some(u64::from(halves[0] as u32) | u64::from(halves[1] as u32) << 32)
    }
}

/// Builds `fdw_private` of a scan.
pub unsafe fn encode(
    index: pg_sys::Oid,
    backward: bool,
    keys: impl Iterator<Item = Key> + Clone,
) -> *mut pg_sys::List {
    let serial = next_serial();
    let count = keys.clone().count();
    let fixed: [i32; FIXED as usize] = [
        MARK,
        serial as i32,
        (serial >> 32) as i32,
        index.to_u32() as i32,
        i32::from(backward),
        count as i32,
        0,
        0,
        0,
        0,
    ];
    let of_keys = keys.flat_map(|key| {
        [
            key.column as i32,
            key.test as i32,
            key.argument_type.to_u32() as i32,
        ]
    });
    let length = fixed.len() + count * PER_CONDITION as usize;
    // SAFETY: a list with a cell for each number.
    unsafe {
        let list = unfilled(pg_sys::NodeTag::T_IntList, length);
        for (at, number) in fixed.into_iter().chain(of_keys).enumerate() {
            (*(*list).elements.add(at)).int_value = number;
        }
        list
    }
}

/// Builds `fdw_private` of a look-up of one row.
pub unsafe fn encode_identity() -> *mut pg_sys::List {
    // SAFETY: the list has the form above.
    unsafe {
        let list = encode(pg_sys::InvalidOid, false, std::iter::empty());
        (*(*list).elements.add(Position::ByIdentity as usize)).int_value = 1;
        list
    }
}

/// Adds a direct modification's part to a scan's `fdw_private`.
pub unsafe fn add_modification(
    list: *mut pg_sys::List,
    quals: usize,
    counts_rows: bool,
    attributes: &[i16],
) {
    // SAFETY: `list` was made by `encode`; appending to a non-empty list changes it in place.
    unsafe {
        (*(*list).elements.add(Position::Quals as usize)).int_value = quals as c_int;
        (*(*list).elements.add(Position::Assignments as usize)).int_value =
            attributes.len() as c_int;
        (*(*list).elements.add(Position::CountsRows as usize)).int_value = c_int::from(counts_rows);
        for attribute in attributes {
            pg_sys::lappend_int(list, i32::from(*attribute));
        }
    }
}

/// Reads `fdw_private`.
pub struct Private {
    list: *mut pg_sys::List,
}

impl Private {
    /// `list` must come from `encode`.
    pub unsafe fn new(list: *mut pg_sys::List) -> Private {
        Private { list }
    }

    fn number(&self, position: i32) -> i32 {
        // SAFETY: the list has the form above (constructor's contract).
        unsafe { (*(*self.list).elements.add(position as usize)).int_value }
    }

    /// The index to scan; invalid for all rows.
    pub fn index(&self) -> pg_sys::Oid {
        pg_sys::Oid::from(self.number(Position::Index as i32) as u32)
    }

    /// From the last key to the first.
    pub fn is_backward(&self) -> bool {
        self.number(Position::Backward as i32) != 0
    }

    /// One row, by its identity.
    pub fn is_by_identity(&self) -> bool {
        self.number(Position::ByIdentity as i32) != 0
    }

    /// The conditions on the key, by column.
    pub fn keys(&self) -> Vec<Key> {
        let key = |number: i32| {
            let at = FIXED + number * PER_CONDITION;
            Key {
                column: self.number(at) as usize,
                test: Test::from_number(self.number(at + 1)),
                argument_type: pg_sys::Oid::from(self.number(at + 2) as u32),
            }
        };
        (0..self.number(Position::Conditions as i32))
            .map(key)
            .collect()
    }

    /// Qualifications in `fdw_exprs`.
    pub fn qual_count(&self) -> usize {
        self.number(Position::Quals as i32) as usize
    }

    /// Whether changed rows count for the command's tag.
    pub fn counts_rows(&self) -> bool {
        self.number(Position::CountsRows as i32) != 0
    }

    /// Attributes that a direct UPDATE assigns.
    pub fn assigned(&self) -> Vec<i16> {
        let first = FIXED + self.number(Position::Conditions as i32) * PER_CONDITION;
        let count = self.number(Position::Assignments as i32);
        (first..first + count)
            .map(|at| self.number(at) as i16)
            .collect()
    }
}
