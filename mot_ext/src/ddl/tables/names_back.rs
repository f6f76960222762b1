//! `USING mot_index` in a statement means what core can make an index with: btree.
//!
//! `pg_get_indexdef`, `pg_dump` and CREATE TABLE ... LIKE name an index's access method as the
//! catalog has it. Ours has no operator classes: an index gets btree's, and becomes ours when it is
//! made (`whose_index`). On a heap table the index stays a btree, so a dump restored without table
//! access methods gives heap tables.
//!
//! `CREATE INDEX ... USING mot`, by the name of the table access method, means the same. So does
//! the name that indexes of foreign tables had: dumps of earlier builds have it.
use crate::pg::nodes;
use crate::storage;
use pgrx::pg_sys::AlterTableType::AT_AddConstraint;
use pgrx::pg_sys::NodeTag::*;
use pgrx::pg_sys::{self, Node};
use std::ffi::{CStr, c_char};

/// The access method that indexes had in builds whose tables were foreign tables.
const INDEX_METHOD_OF_FOREIGN_TABLES: &CStr = c"mot_foreign_index";

/// A copy of a statement that names btree where it named ours; `None`: it does not name ours.
///
/// # Safety
/// A live node.
pub unsafe fn rewritten(node: *mut Node) -> Option<*mut Node> {
    // SAFETY: the caller's node; a copy has the same places.
    unsafe {
        if !places(node).into_iter().any(|place| is_ours(*place)) {
            return None;
        }
        let copy = nodes::copy(node);
        for place in places(copy) {
            if is_ours(*place) {
                *place = pg_sys::pstrdup(c"btree".as_ptr());
            }
        }
        Some(copy)
    }
}

/// Where a statement can name an index's access method.
unsafe fn places(node: *mut Node) -> Vec<*mut *mut c_char> {
    // SAFETY: a live node (caller); each cast follows a tag.
    unsafe {
        match nodes::tag(node) {
            T_IndexStmt => vec![&raw mut (*node.cast::<pg_sys::IndexStmt>()).accessMethod],
            T_CreateStmt => {
                let elements = nodes::items::<Node>((*node.cast::<pg_sys::CreateStmt>()).tableElts);
                elements
                    .into_iter()
                    .filter_map(|element| of_constraint(element))
                    .collect()
            }
            T_AlterTableStmt => {
                let commands = (*node.cast::<pg_sys::AlterTableStmt>()).cmds;
                nodes::items::<pg_sys::AlterTableCmd>(commands)
                    .into_iter()
                    .filter(|command| (**command).subtype == AT_AddConstraint)
                    .filter_map(|command| of_constraint((*command).def))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The place in a constraint; an element of a table's definition may be something else.
unsafe fn of_constraint(element: *mut Node) -> Option<*mut *mut c_char> {
    // SAFETY: a live node (caller), cast by its tag.
    unsafe {
        (nodes::tag(element) == T_Constraint)
            .then(|| &raw mut (*element.cast::<pg_sys::Constraint>()).access_method)
    }
}

unsafe fn is_ours(name: *const c_char) -> bool {
    // SAFETY: NULL or a NUL-terminated name of the statement (caller).
    unsafe {
        !name.is_null()
            && [
                storage::INDEX_METHOD,
                storage::TABLE_METHOD,
                INDEX_METHOD_OF_FOREIGN_TABLES,
            ]
            .contains(&CStr::from_ptr(name))
    }
}
