//! SQL functions that ask catalogs for access methods, definitions or sizes: core does not inline
//! them.
//!
//! Core inlines an SQL function while it plans the calling query, after our walk over that query
//! (`shown_method`). As a call the function plans its own query, which we walk. Core leaves
//! functions alone that a library wants to see the begin of (`needs_fmgr_hook`). Each call of such
//! a function then goes through core's wrapper for that, and another library's `fmgr_hook` sees it.
//!
//! What a function asks for is known by the names in its text, or by the oids in its parse tree.
//! One that asks by a view of a user's own is inlined, and finds what the catalog has.
//!
//! All of this is plain frames with nothing to drop, for errors of core jump over them.
#![allow(ffi_unwind_calls)]
use crate::pg::hook::Previous;
use crate::pg::version::tree;
use pgrx::pg_sys;
use std::ffi::CStr;

/// What the text or the parse tree of a function that asks has in it: parts of names, and in a tree
/// the oids of `pg_class` and of the functions.
const PARTS: [&CStr; 17] = [
    c"pg_class",
    c"pg_indexes",
    c"pg_get_indexdef",
    c"pg_get_constraintdef",
    c"relation_size",
    c"indexes_size",
    c"table_size",
    c":relid 1259 ",
    c":funcid 1643 ",
    c":funcid 2507 ",
    c":funcid 1387 ",
    c":funcid 2508 ",
    c":funcid 2325 ",
    c":funcid 2332 ",
    c":funcid 2286 ",
    c":funcid 2997 ",
    c":funcid 2998 ",
];

static PREVIOUS: Previous<pg_sys::needs_fmgr_hook_type> = Previous::new(None);

/// Installs the hook; called once, while the server loads its libraries.
pub fn init() {
    // SAFETY: libraries are being loaded; the hook's variable.
    unsafe { PREVIOUS.install(&raw mut pg_sys::needs_fmgr_hook, Some(needs_hook)) };
}

/// Called whenever a function is looked up, or might be inlined.
unsafe extern "C-unwind" fn needs_hook(function: pg_sys::Oid) -> bool {
    let is_core = function.to_u32() < pg_sys::FirstNormalObjectId;
    // SAFETY: as core calls it, inside a transaction, from plain frames.
    unsafe {
        !is_core && asks(function) || PREVIOUS.get().is_some_and(|previous| previous(function))
    }
}

/// Whether a function is an SQL function whose text names what is shown otherwise than it is.
unsafe fn asks(function: pg_sys::Oid) -> bool {
    // SAFETY: the caller's.
    unsafe { tree::sql_function_has(function, &PARTS) }
}
