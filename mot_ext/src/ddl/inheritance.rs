//! The tables whose columns a statement changes.
use super::catalog_query;
use crate::pg::catalog;
use pgrx::pg_sys;

/// A table; of a composite type, the tables that have their columns from it.
pub fn tables_of(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    if catalog::kind(relid) != pg_sys::RELKIND_COMPOSITE_TYPE {
        return vec![relid];
    }
    let row_type = catalog::row_type(relid);
    let typed = catalog_query::select(
        "SELECT oid FROM pg_catalog.pg_class WHERE reloftype = $1 ORDER BY oid",
        &[row_type.into()],
        |row| row.get::<pg_sys::Oid>(1),
    );
    typed.into_iter().flatten().collect()
}
