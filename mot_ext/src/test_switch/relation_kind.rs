//! Range table entries of memory-optimized tables that say `r`, as of heap tables. An extension
//! that exchanges tables in a rewritten query (Citus) may leave them so (`fdw/relation_info.rs`).
//!
//! The hook is a plain frame with nothing to drop: an error of the planner jumps over it.
use super::{Step, skips};
use crate::ddl::is_mot_table;
use crate::pg::planning::Next;
use crate::pg::query;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{c_char, c_int};

static NEXT: Next = Next::new();

/// Installs the hook.
pub fn init() {
    NEXT.install(Some(plan));
}

unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    parameters: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: as core calls it.
    unsafe {
        if skips(Step::RelationKind) {
            mistake(query);
        }
        NEXT.plan(query, text, options, parameters)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn mistake(query: *mut pg_sys::Query) {
    // SAFETY: a query that is about to be planned, which the planner may change.
    unsafe {
        for entry in query::relations(query) {
            let is_foreign = (*entry).relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE;
            if is_foreign && is_mot_table((*entry).relid) {
                (*entry).relkind = pg_sys::RELKIND_RELATION as _;
            }
        }
    }
}
