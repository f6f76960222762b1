//! Whose functions and operators a text means that runs with other rights than the caller's.
//!
//! The text of our own queries is read under `pg_catalog` alone, whatever the session's
//! `search_path`: an operator of another user that fits its arguments better than the server's
//! own would otherwise run as the user who alters a table. The same holds for code that the owner
//! of a table wrote, and that runs as the owner ([`super::rights::as_owner`]).
use pgrx::pg_sys;

/// Does something under `pg_catalog` alone. An error in it leaves the setting to the abort of the
/// transaction or savepoint.
pub fn within_catalog<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: a setting of a new nest level, which ends here or at the abort.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        pg_sys::set_config_option(
            c"search_path".as_ptr(),
            c"pg_catalog, pg_temp".as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
        let result = work();
        pg_sys::AtEOXact_GUC(false, level);
        result
    }
}
