use pgrx::pg_sys;
pub fn create(_r: pg_sys::Oid) {}
pub unsafe fn build_index(_t: pg_sys::Relation, _i: pg_sys::Oid) {}
pub fn rebuild_indexes_on(_t: pg_sys::Oid, _a: i16) {}
pub fn drop_table(_t: pg_sys::Oid) {}
pub fn drop_index(_t: pg_sys::Oid) {}
pub fn drop_database(_t: pg_sys::Oid) {}
