//! Indexes follow their table's owner.
//!
//! Core gives the indexes of a heap table to its new owner, those of a foreign table not. An index is not in pg_shdepend, so
//! nothing but this keeps the column right.
use super::latest;
use pgrx::pg_sys;

/// Gives a table's indexes to the table's owner.
pub unsafe fn follow(relid: pg_sys::Oid) {
    // SAFETY: as `follow_where`.
    unsafe { follow_where("AND t.oid = $1", &[relid.into()]) }
}

/// Gives every index of a memory-optimized table to its table's owner.
pub unsafe fn follow_all() {
    // SAFETY: as `follow_where`.
    unsafe { follow_where("", &[]) }
}

unsafe fn follow_where(condition: &str, arguments: &[latest::Argument]) {
    let query = format!(
        "SELECT x.oid, t.relowner FROM pg_catalog.pg_index i
         JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
         JOIN pg_catalog.pg_am m ON m.oid = x.relam
         JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
         WHERE t.relkind = 'f' AND m.amname = 'mot_foreign_index' AND x.relowner <> t.relowner {condition}"
    );
    let astray = latest::select(&query, arguments, |row| {
        row.get::<pg_sys::Oid>(1).zip(row.get::<pg_sys::Oid>(2))
    });
    for (index, owner) in astray.into_iter().flatten() {
        // SAFETY: core's own step for the indexes of a heap table.
        unsafe {
            pg_sys::ATExecChangeOwner(index, owner, true, pg_sys::AccessExclusiveLock as i32);
        }
    }
}
