//! The server's own aggregates that are computed here, by their oids.
use mot_programs::aggregate::{Function, Input};
use mot_programs::filter::WordKind;
use pgrx::pg_sys;

/// What the aggregate with this oid does, if it is computed here.
pub fn function(oid: pg_sys::Oid) -> Option<(Function, Input)> {
    use Function::*;
    use Input::{Anything, Number, Numeric};
    use WordKind::{Bool, Int2, Int4, Int8};
    Some(match oid.to_u32() {
        pg_sys::F_COUNT_ => (CountRows, Anything),
        pg_sys::F_COUNT_ANY => (Count, Anything),
        pg_sys::F_SUM_INT2 => (Sum, Number(Int2)),
        pg_sys::F_SUM_INT4 => (Sum, Number(Int4)),
        pg_sys::F_SUM_INT8 => (SumExact, Number(Int8)),
        pg_sys::F_SUM_NUMERIC => (SumExact, Numeric),
        pg_sys::F_AVG_INT2 => (Average, Number(Int2)),
        pg_sys::F_AVG_INT4 => (Average, Number(Int4)),
        pg_sys::F_AVG_INT8 => (Average, Number(Int8)),
        pg_sys::F_AVG_NUMERIC => (Average, Numeric),
        pg_sys::F_MIN_INT2 => (Smallest, Number(Int2)),
        pg_sys::F_MIN_INT4 | pg_sys::F_MIN_DATE => (Smallest, Number(Int4)),
        pg_sys::F_MIN_INT8
        | pg_sys::F_MIN_TIME
        | pg_sys::F_MIN_TIMESTAMP
        | pg_sys::F_MIN_TIMESTAMPTZ
        | pg_sys::F_MIN_MONEY => (Smallest, Number(Int8)),
        pg_sys::F_MAX_INT2 => (Largest, Number(Int2)),
        pg_sys::F_MAX_INT4 | pg_sys::F_MAX_DATE => (Largest, Number(Int4)),
        pg_sys::F_MAX_INT8
        | pg_sys::F_MAX_TIME
        | pg_sys::F_MAX_TIMESTAMP
        | pg_sys::F_MAX_TIMESTAMPTZ
        | pg_sys::F_MAX_MONEY => (Largest, Number(Int8)),
        pg_sys::F_MIN_NUMERIC => (Smallest, Numeric),
        pg_sys::F_MAX_NUMERIC => (Largest, Numeric),
        pg_sys::F_BOOL_AND | pg_sys::F_EVERY => (All, Number(Bool)),
        pg_sys::F_BOOL_OR => (Any, Number(Bool)),
        _ => return None,
    })
}
