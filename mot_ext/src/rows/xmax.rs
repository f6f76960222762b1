//! `xmax`, `cmin` and `cmax` of a version: which transaction changed or locked it.
//!
//! A version does not say it, so the row's chain is walked when a statement asks for these columns.
//! As on heap, `cmin` and `cmax` are one field: the command of the replacer, or else of the maker.
//! Unlike on heap, a lock that has ended is not shown.
use super::tid;
use crate::pg::relation::with_entry;
use crate::storage;
use crate::transaction::clock::PgClock;
use crate::transaction::session;
use mot_engine::Upon;
use pgrx::pg_sys;

/// Which transaction changed or locked the version that a tuple was made of. Nothing, if the
/// relation is no table of the access method.
///
/// # Safety
/// The relation is locked, or gone.
pub unsafe fn of(relation: pg_sys::Oid, tid: pg_sys::ItemPointerData) -> Upon {
    let table = with_entry(relation, |opened| {
        storage::is_table(opened).then(|| storage::find(opened))
    });
    let table = table.flatten().flatten();
    let named = table.and_then(|table| Some((table, tid::name(table, tid)?)));
    named.map_or(Upon::Nothing, |(table, name)| {
        let is_named = |version| name.is(version);
        session::session().upon(&PgClock, table, name.row, is_named)
    })
}
