//! The comparison of an operator class, as labels need it: between values of a column, and between
//! one of these and an argument of another type.
use crate::errors::labels;
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
    /// Of a key column of an open index, from 0, with its own values. What the function keeps is
    /// in the current memory context. Raises where the class has no comparison.
    ///
    /// # Safety
    /// The index is open, and has the column.
    pub unsafe fn own(index: pg_sys::Relation, column: usize) -> Order {
        // SAFETY: the caller's index; its own functions live as long as its entry does, so only
        // the oid is taken.
        unsafe {
            let info = pg_sys::index_getprocinfo(index, column as i16 + 1, COMPARISON);
            Order::of((*info).fn_oid, index, column)
        }
    }

    /// The same with values of an operator's argument type; `None`: the family has no comparison.
    ///
    /// # Safety
    /// As for [`Order::own`].
    pub unsafe fn with(
        index: pg_sys::Relation,
        column: usize,
        argument: pg_sys::Oid,
    ) -> Option<Order> {
        // SAFETY: the caller's index, which has a family and a type for each key column.
        unsafe {
            let family = *(*index).rd_opfamily.add(column);
            let input = *(*index).rd_opcintype.add(column);
            if argument == input {
                return Some(Order::own(index, column));
            }
            let function = pg_sys::get_opfamily_proc(family, input, argument, COMPARISON as i16);
            (function != pg_sys::InvalidOid).then(|| Order::of(function, index, column))
        }
    }

    unsafe fn of(function: pg_sys::Oid, index: pg_sys::Relation, column: usize) -> Order {
        let mut info = pg_sys::FmgrInfo::default();
        // SAFETY: a function of the catalog, and the caller's index.
        unsafe {
            pg_sys::fmgr_info_cxt(function, &raw mut info, pg_sys::CurrentMemoryContext);
            Order {
                function: info,
                collation: *(*index).rd_indcollation.add(column),
            }
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
///
/// # Safety
/// As for [`Order::own`].
pub unsafe fn less_than(index: pg_sys::Relation, column: usize) -> pg_sys::Oid {
    // SAFETY: the caller's index, which has a family and a type for each key column.
    unsafe {
        let family = *(*index).rd_opfamily.add(column);
        let input = *(*index).rd_opcintype.add(column);
        let less = pg_sys::BTLessStrategyNumber as i16;
        match pg_sys::get_opfamily_member(family, input, input, less) {
            pg_sys::InvalidOid => labels::no_ordering_operator(input),
            found => found,
        }
    }
}
