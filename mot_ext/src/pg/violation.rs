//! An error about a constraint, with the table's and the constraint's names in their own fields, which pgrx's report lacks.
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_char, c_int};

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn errcode(code: c_int) -> c_int;
    fn errdetail_internal(format: *const c_char, ...) -> c_int;
    fn errfinish(file: *const c_char, line: c_int, function: *const c_char);
}

/// Raises an ERROR about `table`.
pub unsafe fn raise_for_table(code: PgSqlErrorCode, table: pg_sys::Relation, message: &str) -> ! {
    // SAFETY: as `report` asks.
    unsafe { report(code, table, About::Table, message, None) }
}

/// Raises an ERROR about a column of `table`.
pub unsafe fn raise_for_column(
    code: PgSqlErrorCode,
    table: pg_sys::Relation,
    column: i16,
    message: &str,
) -> ! {
    // SAFETY: as `report` asks.
    unsafe { report(code, table, About::Column(column), message, None) }
}

/// Raises an ERROR about `constraint` of `table`.
pub unsafe fn raise(
    code: PgSqlErrorCode,
    table: pg_sys::Relation,
    constraint: &CStr,
    message: &str,
    detail: Option<&str>,
) -> ! {
    // SAFETY: as `report` asks.
    unsafe { report(code, table, About::Constraint(constraint), message, detail) }
}

#[derive(Clone, Copy)]
enum About<'a> {
    Constraint(&'a CStr),
    Column(i16),
    Table,
}

/// The table is open.
unsafe fn report(
    code: PgSqlErrorCode,
    table: pg_sys::Relation,
    about: About<'_>,
    message: &str,
    detail: Option<&str>,
) -> ! {
    // Copied into PostgreSQL's memory: nothing here is left to drop when the error jumps.
    let palloc = |text: &str| {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        // SAFETY: a NUL-terminated string.
        unsafe { pg_sys::pstrdup(text.as_ptr()) }
    };
    let message = palloc(message);
    let detail = detail.map(palloc);
    // SAFETY: an error record is begun, filled and finished as ereport() does; each format takes exactly one string; the
    // closure holds no value with a destructor.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            if pg_sys::errstart_cold(PgLogLevel::ERROR as c_int, std::ptr::null()) {
                errcode(code as c_int);
                pg_sys::errmsg_internal(c"%s".as_ptr(), message);
                if let Some(detail) = detail {
                    errdetail_internal(c"%s".as_ptr(), detail);
                }
                match about {
                    About::Constraint(name) => {
                        pg_sys::errtableconstraint(table, name.as_ptr());
                    }
                    About::Column(number) => {
                        pg_sys::errtablecol(table, c_int::from(number));
                    }
                    About::Table => {
                        pg_sys::errtable(table);
                    }
                }
                errfinish(
                    c"violation.rs".as_ptr(),
                    line!() as c_int,
                    c"raise".as_ptr(),
                );
            }
        });
    }
    unreachable!("the error above jumps")
}
