//! The planner's hook: what one of ours passes a query on to.
//!
//! A hook of ours is a plain frame with nothing to drop, and so is this: an error of the planner
//! jumps over both.
#![allow(ffi_unwind_calls)]
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::{c_char, c_int};

unsafe extern "C-unwind" {
    // PostgreSQL's own function without pgrx's guard: see the module header.
    #[link_name = "standard_planner"]
    fn standard_plan(
        query: *mut pg_sys::Query,
        text: *const c_char,
        options: c_int,
        parameters: pg_sys::ParamListInfo,
    ) -> *mut pg_sys::PlannedStmt;
}

/// The planner that ran before a hook of ours came.
pub struct Next(Cell<pg_sys::planner_hook_type>);
// SAFETY: written while libraries are loaded; each process runs PostgreSQL's code on one thread.
unsafe impl Sync for Next {}

impl Next {
    /// Core alone.
    pub const fn new() -> Next {
        Next(Cell::new(None))
    }

    /// Puts a hook in front.
    pub fn install(&self, hook: pg_sys::planner_hook_type) {
        // SAFETY: single-threaded at load time.
        unsafe {
            self.0.set(pg_sys::planner_hook);
            pg_sys::planner_hook = hook;
        }
    }

    /// Plans a query.
    ///
    /// # Safety
    /// As core calls the hook.
    pub unsafe fn plan(
        &self,
        query: *mut pg_sys::Query,
        text: *const c_char,
        options: c_int,
        parameters: pg_sys::ParamListInfo,
    ) -> *mut pg_sys::PlannedStmt {
        // SAFETY: the caller's.
        unsafe {
            match self.0.get() {
                Some(next) => next(query, text, options, parameters),
                None => standard_plan(query, text, options, parameters),
            }
        }
    }
}
