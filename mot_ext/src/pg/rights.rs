//! Rights that core's executor does not ask for, and work with those of a table's owner.
use super::search_path::within_catalog;
use super::version;
use pgrx::pg_sys;

/// Raises 42501 unless the user may execute the function, which an error calls a `kind`.
///
/// # Safety
/// In a transaction.
pub unsafe fn require_execute(
    function: pg_sys::Oid,
    user: pg_sys::Oid,
    kind: pg_sys::ObjectType::Type,
) {
    // SAFETY: catalog look-ups, which may raise; the hook is another library's, which raises where
    // it forbids.
    unsafe {
        let answer = version::may_execute(function, user);
        if answer != pg_sys::AclResult::ACLCHECK_OK {
            pg_sys::aclcheck_error(answer, kind, pg_sys::get_func_name(function));
        }
        let hook = &raw const pg_sys::object_access_hook;
        if (*hook).is_some() {
            pg_sys::RunFunctionExecuteHook(function);
        }
    }
}

/// Does something as the owner of a relation, with nothing of the caller's but the transaction: the
/// operation is a restricted one, under `pg_catalog` alone. An error in it leaves user and setting
/// to the abort of the transaction or savepoint.
pub fn as_owner<T>(owner: pg_sys::Oid, work: impl FnOnce() -> T) -> T {
    let mut user = pg_sys::InvalidOid;
    let mut context = 0;
    // SAFETY: variables of this process, which are put back here or at the abort.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context);
        let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
        pg_sys::SetUserIdAndSecContext(owner, restricted);
    }
    let result = within_catalog(work);
    // SAFETY: as above.
    unsafe { pg_sys::SetUserIdAndSecContext(user, context) };
    result
}

/// Whether the current user may not see all rows and columns of a table.
pub fn are_rows_hidden(table: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups, which may raise.
    unsafe {
        let mode = pg_sys::ACL_SELECT as pg_sys::AclMode;
        pg_sys::pg_class_aclcheck(table, super::user(), mode) != pg_sys::AclResult::ACLCHECK_OK
            || pg_sys::check_enable_rls(table, pg_sys::InvalidOid, true)
                == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
    }
}
