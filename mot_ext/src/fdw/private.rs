//! How a compiled statement finds its rows, as a list of integers, which a plan can hold.
//!
//! ```text
//! index oid (0: all rows), backward, conditions, by identity,
//! conditions x { key column, test, argument type }
//! ```
//! By identity: the one row with the `ctid` that the only argument gives.
use super::conditions::Test;
use crate::pg::list::unfilled;
pub use crate::pg::list::{items, list};
use pgrx::pg_sys;

/// Positions of the fixed part.
#[repr(i32)]
enum Position {
    Index = 0,
    Backward = 1,
    Conditions = 2,
    ByIdentity = 3,
}
const FIXED: i32 = 4;
const PER_CONDITION: i32 = 3;

/// One test of a key column, as the executor needs it.
#[derive(Clone, Copy)]
pub struct Key {
    pub column: usize,
    pub test: Test,
    pub argument_type: pg_sys::Oid,
}

/// Builds the list.
pub unsafe fn encode(
    index: pg_sys::Oid,
    backward: bool,
    keys: impl Iterator<Item = Key> + Clone,
) -> *mut pg_sys::List {
    let count = keys.clone().count();
    let fixed: [i32; FIXED as usize] =
        [index.to_u32() as i32, i32::from(backward), count as i32, 0];
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

/// Reads the list.
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
}
