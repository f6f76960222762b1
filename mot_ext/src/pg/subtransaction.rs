//! A subtransaction of our own, around code of users that may fail.
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use std::panic::AssertUnwindSafe;

/// The class of SQLSTATEs by which an operator ends a statement, as its first two characters.
const OPERATOR_CLASS: &[u8; 2] = b"57";

/// What an action gives; `None`: it has raised an error, and all that it did is undone. Errors of
/// class 57 and panics of ours are passed on when the subtransaction has ended.
pub fn attempt<T>(action: impl FnOnce() -> T) -> Option<T> {
    // SAFETY: in a transaction. Both ways end the subtransaction before this returns or raises.
    // Memory context and owner are as before then.
    let done = unsafe {
        let (memory, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(memory);
        let done = PgTryBuilder::new(AssertUnwindSafe(|| Ok(action())))
            .catch_others(|error| Err(Box::new(error)))
            .catch_rust_panic(|error| Err(Box::new(error)))
            .execute();
        match done {
            Ok(_) => pg_sys::ReleaseCurrentSubTransaction(),
            Err(_) => pg_sys::RollbackAndReleaseCurrentSubTransaction(),
        }
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::CurrentResourceOwner = owner;
        done
    };
    match done {
        Ok(done) => Some(done),
        Err(error) if is_of_users(&error) => None,
        Err(error) => error.rethrow(),
    }
}

/// Whether an error is neither an operator's nor a bug of ours.
fn is_of_users(error: &CaughtError) -> bool {
    let (CaughtError::PostgresError(report) | CaughtError::ErrorReport(report)) = error else {
        return false;
    };
    // `MAKE_SQLSTATE`: six bits a character.
    let code = report.sql_error_code() as i32;
    let character = |at: i32| ((code >> (6 * at)) & 0x3f) as u8 + b'0';
    [character(0), character(1)] != *OPERATOR_CLASS
}
