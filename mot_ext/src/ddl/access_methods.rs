//! CREATE ACCESS METHOD with a handler of ours: refused.
//!
//! What is a table or an index of ours is asked by the access method's oid everywhere. Under
//! another one a table would have storage that no DROP or TRUNCATE reaches.
use crate::errors::refuse::unsupported;
use crate::pg::catalog;
use crate::pg::node::Node;
use crate::storage;
use pgrx::pg_sys;

/// CREATE ACCESS METHOD is about to run. The extension's own script has no method yet.
pub fn create(node: Node<'_, pg_sys::CreateAmStmt>) {
    // SAFETY: a look at the user's role.
    if !unsafe { pg_sys::superuser() } {
        // Core refuses it.
        return;
    }
    let (name, argument) = (node.handler_name().as_ptr(), pg_sys::INTERNALOID);
    // SAFETY: the statement's list of names, and as many types as are said.
    let handler = unsafe { pg_sys::LookupFuncName(name, 1, &raw const argument, true) };
    let ours = [storage::table_method(), storage::index_method()];
    let mut handlers = ours.into_iter().filter_map(catalog::handler_of);
    if handlers.any(|of_ours| of_ours == handler) {
        unsupported(
            "handlers of memory-optimized tables serve no other access method",
            "Use the access method mot.",
        );
    }
}
