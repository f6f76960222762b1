//! System columns that tell who deleted or locked a row and which commands did: `xmax`, `cmin`, `cmax`.
//!
//! A row in the arena has the engine's word where a heap tuple has them (mot_engine/src/row/version.rs). Whoever lets an expression see a row in place
//! makes sure that it reads none of them; a plan in which one does is shown copies ([`super::tuple::copy`]).
use super::private::items;
use pgrx::pg_sys;

const MARKS: [i32; 3] = [
    pg_sys::MinCommandIdAttributeNumber,
    pg_sys::MaxTransactionIdAttributeNumber,
    pg_sys::MaxCommandIdAttributeNumber,
];

/// Whether a column is one of them.
pub fn is_mark(column: i16) -> bool {
    MARKS.contains(&i32::from(column))
}

/// Whether an expression, or a list of some, reads one of them of the table with this number in the range table.
pub unsafe fn reads(expression: *mut pg_sys::Node, table: pg_sys::Index) -> bool {
    // SAFETY: an expression of the planner's or of a plan; the set is in the current memory context.
    unsafe {
        let mut columns = std::ptr::null_mut();
        pg_sys::pull_varattnos(expression, table, &raw mut columns);
        MARKS.into_iter().any(|mark| {
            pg_sys::bms_is_member(mark - pg_sys::FirstLowInvalidHeapAttributeNumber, columns)
        })
    }
}

/// Whether one of these conditions on a table does.
pub unsafe fn are_read_by(clauses: *mut pg_sys::List, table: pg_sys::Index) -> bool {
    // SAFETY: a relation's list of conditions.
    unsafe {
        items::<pg_sys::RestrictInfo>(clauses)
            .into_iter()
            .any(|clause| reads((*clause).clause.cast(), table))
    }
}

/// Whether a scan of a table has to show copies. Core notes in the plan whether it reads any system column.
pub unsafe fn of_scan(plan: *mut pg_sys::ForeignScan) -> bool {
    // SAFETY: a scan of a finished plan.
    unsafe {
        let (scan, table) = (&(*plan).scan, (*plan).scan.scanrelid);
        (*plan).fsSystemCol
            && [
                scan.plan.targetlist,
                scan.plan.qual,
                (*plan).fdw_recheck_quals,
            ]
            .into_iter()
            .any(|list| reads(list.cast(), table))
    }
}
