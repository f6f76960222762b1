//! The right to run an aggregate: what `ExecInitAgg` asks for.
use crate::pg::rights::require_execute;
use pgrx::pg_sys;

/// `aggtransfn` and `aggfinalfn` (`catalog/pg_aggregate.h`): never NULL, 0 for none.
const TRANSITION: i16 = 4;
const FINAL: i16 = 5;

/// Raises 42501 unless the current user may run the aggregate, and its owner the functions that it
/// consists of.
pub unsafe fn check(aggregate: pg_sys::Oid) {
    // SAFETY: catalog look-ups, released when they were read; may raise.
    unsafe {
        use pg_sys::ObjectType::{OBJECT_AGGREGATE, OBJECT_FUNCTION};
        require_execute(aggregate, pg_sys::GetUserId(), OBJECT_AGGREGATE);
        let argument = pg_sys::Datum::from(aggregate);
        let procedures = pg_sys::SysCacheIdentifier::PROCOID as i32;
        let row = pg_sys::SearchSysCache1(procedures, argument);
        if row.is_null() {
            return;
        }
        let owner = (*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_proc>(row)).proowner;
        pg_sys::ReleaseSysCache(row);
        let aggregates = pg_sys::SysCacheIdentifier::AGGFNOID as i32;
        let row = pg_sys::SearchSysCache1(aggregates, argument);
        if row.is_null() {
            return;
        }
        let functions = [TRANSITION, FINAL].map(|attribute| {
            let mut is_null = false;
            let value = pg_sys::SysCacheGetAttr(aggregates, row, attribute, &raw mut is_null);
            pg_sys::Oid::from(value.value() as u32)
        });
        pg_sys::ReleaseSysCache(row);
        for function in functions {
            if function != pg_sys::InvalidOid {
                require_execute(function, owner, OBJECT_FUNCTION);
            }
        }
    }
}
