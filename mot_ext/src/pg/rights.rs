//! Rights on functions that core's executor does not ask for.
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
