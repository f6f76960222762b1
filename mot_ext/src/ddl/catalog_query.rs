//! Queries of catalogs under the latest snapshot, and under `pg_catalog` alone (`search_path`).
//!
//! They have the rights of the catalogs' owner: core's own look-ups need none.
//!
//! A session that holds the locks of DDL must see what others committed before it got them. SPI's
//! own snapshot is the transaction's: in REPEATABLE READ one from before, under which a table that
//! was made since is not there, while its rows would be misread. Core reads catalogs, and validates
//! rows, under a new snapshot each time, as is done here. What the transaction itself has done is
//! seen, too.
use crate::errors::refuse::raise;
use crate::pg::rights::as_owner;
use crate::pg::{guard, text};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// A value in place of `$1`, `$2` and so on: its type and itself.
pub struct Argument(pg_sys::Oid, pg_sys::Datum);

impl From<pg_sys::Oid> for Argument {
    fn from(value: pg_sys::Oid) -> Argument {
        Argument(pg_sys::OIDOID, pg_sys::Datum::from(value))
    }
}

impl From<i16> for Argument {
    fn from(value: i16) -> Argument {
        Argument(pg_sys::INT2OID, pg_sys::Datum::from(value))
    }
}

/// A value that a query gives.
pub trait Value {
    /// Of a datum that is not NULL; the caller names its type as the query has it.
    unsafe fn of(datum: pg_sys::Datum) -> Self;
}

impl Value for bool {
    unsafe fn of(datum: pg_sys::Datum) -> bool {
        datum.value() as u8 != 0
    }
}

impl Value for pg_sys::Oid {
    unsafe fn of(datum: pg_sys::Datum) -> pg_sys::Oid {
        pg_sys::Oid::from(datum.value() as u32)
    }
}

/// A text, in whatever encoding: pgrx takes UTF-8 alone.
impl Value for String {
    unsafe fn of(datum: pg_sys::Datum) -> String {
        // SAFETY: a varlena (caller); what is expanded goes with SPI's memory.
        unsafe {
            let plain = pg_sys::pg_detoast_datum_packed(datum.cast_mut_ptr());
            text::decode(pgrx::varlena_to_byte_slice(plain))
        }
    }
}

/// A row of the result of a query.
pub struct QueryRow {
    row: pg_sys::HeapTuple,
    shape: pg_sys::TupleDesc,
}

impl QueryRow {
    /// A column, counted from 1, copied; `None`: it is NULL.
    pub fn get<T: Value>(&self, column: i32) -> Option<T> {
        let mut is_null = false;
        // SAFETY: made and used only while SPI holds the rows (`select`); the caller names the
        // column's type as the query has it.
        unsafe {
            let value = pg_sys::SPI_getbinval(self.row, self.shape, column, &raw mut is_null);
            (!is_null).then(|| T::of(value))
        }
    }
}

/// The rows that a query gives, each as `read` makes it; that runs with the same rights.
pub fn select<T>(query: &str, arguments: &[Argument], read: impl Fn(&QueryRow) -> T) -> Vec<T> {
    as_owner(pg_sys::BOOTSTRAP_SUPERUSERID.into(), || {
        let count = guard::without_context(|| run(query, arguments));
        // SAFETY: the result of the query, if it gave rows: so many.
        let (rows, shape) = match unsafe { pg_sys::SPI_tuptable.as_ref() } {
            Some(table) if count > 0 => {
                // SAFETY: as above.
                let rows = unsafe { std::slice::from_raw_parts(table.vals, count as usize) };
                (rows, table.tupdesc)
            }
            _ => (&[][..], std::ptr::null_mut()),
        };
        let rows = rows.iter().map(|row| QueryRow { row: *row, shape });
        let result = rows.map(|row| read(&row)).collect();
        // SAFETY: `run` has connected. No row is used any more.
        unsafe { pg_sys::SPI_finish() };
        result
    })
}

/// Connects to SPI and runs one query; answers how many rows it gave. The caller disconnects. An
/// error ends the transaction, which cleans up.
fn run(query: &str, arguments: &[Argument]) -> u64 {
    let text = text::to_c(query);
    let mut types: Vec<pg_sys::Oid> = arguments.iter().map(|argument| argument.0).collect();
    let mut values: Vec<pg_sys::Datum> = arguments.iter().map(|argument| argument.1).collect();
    let (count, types) = (arguments.len() as i32, types.as_mut_ptr());
    // SAFETY: as many types as arguments.
    let plan = unsafe {
        pg_sys::SPI_connect();
        pg_sys::SPI_prepare(text.as_ptr(), count, types)
    };
    if plan.is_null() {
        failed(format!("could not prepare {query:?}"));
    }
    let (values, no_nulls) = (values.as_mut_ptr(), std::ptr::null());
    let no_crosscheck = std::ptr::null_mut();
    // SAFETY: as many values as the plan has arguments, of their types.
    let result = unsafe {
        let latest = pg_sys::GetLatestSnapshot();
        pg_sys::SPI_execute_snapshot(
            plan,
            values,
            no_nulls,
            latest,
            no_crosscheck,
            false,
            false,
            0,
        )
    };
    if result < 0 {
        failed(format!("could not run {query:?}: SPI error {result}"));
    }
    // SAFETY: a plain variable of this process.
    unsafe { pg_sys::SPI_processed }
}

fn failed(message: String) -> ! {
    raise(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, message, None, None)
}
