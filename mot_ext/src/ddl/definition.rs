use pgrx::pg_sys;
pub fn kind(_i: pg_sys::Oid) -> Option<u8> { Some(1) }
