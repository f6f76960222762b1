//! The comparison of an operator class, as labels need it: between values of a column, and between
//! one of these and an argument of another type.
use crate::errors::labels;
use crate::pg::node::KeyColumn;
use crate::pg::relation::Relation;
use pgrx::pg_sys;
use std::cmp::Ordering;

/// `BTORDER_PROC` of access/nbtree.h.
const COMPARISON: u16 = 1;

/// Compares values of a column with those of one type.
pub struct Order {
    function: pg_sys::FmgrInfo,
    collation: pg_sys::Oid,
}

impl Order {
    /// Of a key column of an index, from 0, with its own values. What the function keeps is in the
    /// current memory context. Raises where the class has no comparison.
    pub fn own(index: Relation<'_>, column: usize) -> Order {
        let key = index.key_column(column);
        // SAFETY: an open index, which has the column. Its own functions live as long as its entry
        // does, so only the oid is taken.
        let function = unsafe {
            let info = pg_sys::index_getprocinfo(index.as_ptr(), column as i16 + 1, COMPARISON);
            (*info).fn_oid
        };
        Order::of(function, key.collation)
    }

    /// The same with values of an operator's argument type; `None`: the family has no comparison.
    pub fn with(index: Relation<'_>, column: usize, argument: pg_sys::Oid) -> Option<Order> {
        let key = index.key_column(column);
        if argument == key.input {
            return Some(Order::own(index, column));
        }
        let kind = COMPARISON as i16;
        // SAFETY: a catalog look-up.
        let function = unsafe { pg_sys::get_opfamily_proc(key.family, key.input, argument, kind) };
        (function != pg_sys::InvalidOid).then(|| Order::of(function, key.collation))
    }

    /// The comparison of a family's function, which the catalog has.
    fn of(function: pg_sys::Oid, collation: pg_sys::Oid) -> Order {
        let mut info = pg_sys::FmgrInfo::default();
        // SAFETY: core raises for a function that is not there.
        unsafe { pg_sys::fmgr_info_cxt(function, &raw mut info, pg_sys::CurrentMemoryContext) };
        Order {
            function: info,
            collation,
        }
    }

    /// How a value of the column compares with one that it is compared with. Runs code of users.
    ///
    /// # Safety
    /// Values of the two types, neither of them NULL.
    pub unsafe fn compare(&mut self, value: pg_sys::Datum, with: pg_sys::Datum) -> Ordering {
        let function = &raw mut self.function;
        // SAFETY: the caller's values.
        let found = unsafe { pg_sys::FunctionCall2Coll(function, self.collation, value, with) };
        (found.value() as i32).cmp(&0)
    }
}

/// The operator by which core sorts values of a column upward. Raises where there is none.
pub fn less_than(index: Relation<'_>, column: usize) -> pg_sys::Oid {
    let KeyColumn { family, input, .. } = index.key_column(column);
    let less = pg_sys::BTLessStrategyNumber as i16;
    // SAFETY: a catalog look-up.
    match unsafe { pg_sys::get_opfamily_member(family, input, input, less) } {
        pg_sys::InvalidOid => labels::no_ordering_operator(input),
        found => found,
    }
}
