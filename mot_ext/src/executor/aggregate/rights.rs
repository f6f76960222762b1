//! The right to run an aggregate: what `ExecInitAgg` asks for.
use crate::pg::rights::require_execute;
use crate::pg::{self, catalog};
use pgrx::pg_sys;
use pgrx::pg_sys::ObjectType::{OBJECT_AGGREGATE, OBJECT_FUNCTION};

/// Raises 42501 unless the current user may run the aggregate, and its owner the functions that it
/// consists of.
pub fn check(aggregate: pg_sys::Oid) {
    // SAFETY: in a transaction.
    unsafe { require_execute(aggregate, pg::user(), OBJECT_AGGREGATE) };
    let Some(owner) = catalog::owner_of_function(aggregate) else {
        return;
    };
    for function in catalog::functions_of_aggregate(aggregate) {
        if function != pg_sys::InvalidOid {
            // SAFETY: in a transaction.
            unsafe { require_execute(function, owner, OBJECT_FUNCTION) };
        }
    }
}
