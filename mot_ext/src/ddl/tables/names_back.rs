//! `USING mot_index` in a statement means what core can make an index with: btree.
//!
//! `pg_get_indexdef`, `pg_dump` and CREATE TABLE ... LIKE name an index's access method as the
//! catalog has it. Ours has no operator classes: an index gets btree's, and becomes ours when it is
//! made (`whose_index`). On a heap table the index stays a btree, so a dump restored without table
//! access methods gives heap tables.
//!
//! `CREATE INDEX ... USING mot`, by the name of the table access method, means the same. So does
//! the name that indexes of foreign tables had: dumps of earlier builds have it.
use crate::pg::node::{Any, TextField};
use crate::storage;
use pgrx::pg_sys;
use pgrx::pg_sys::AlterTableType::AT_AddConstraint;
use std::ffi::CStr;

/// The access method that indexes had in builds whose tables were foreign tables.
const INDEX_METHOD_OF_FOREIGN_TABLES: &CStr = c"mot_foreign_index";

/// A copy of a statement that names btree where it named ours; `None`: it does not name ours.
pub fn rewritten(node: Any<'_>) -> Option<Any<'_>> {
    if !places(node).into_iter().any(is_ours) {
        return None;
    }
    let copy = node.copied();
    for place in places(copy).into_iter().filter(|place| is_ours(*place)) {
        place.set(c"btree");
    }
    Some(copy)
}

/// Where an access method is named.
type Place<'p> = TextField<'p>;

/// Where a statement can name an index's access method.
fn places(node: Any<'_>) -> Vec<Place<'_>> {
    if let Some(node) = node.cast::<pg_sys::IndexStmt>() {
        vec![node.accessMethod()]
    } else if let Some(node) = node.cast::<pg_sys::CreateStmt>() {
        node.tableElts().iter().filter_map(of_constraint).collect()
    } else if let Some(node) = node.cast::<pg_sys::AlterTableStmt>() {
        node.cmds()
            .iter()
            .filter(|command| command.subtype() == AT_AddConstraint)
            .filter_map(|command| command.def().and_then(of_constraint))
            .collect()
    } else {
        Vec::new()
    }
}

/// The place in a constraint; an element of a table's definition may be something else.
fn of_constraint(element: Any<'_>) -> Option<Place<'_>> {
    let constraint = element.cast::<pg_sys::Constraint>();
    constraint.map(|constraint| constraint.access_method())
}

fn is_ours(place: Place<'_>) -> bool {
    let ours = [
        storage::INDEX_METHOD,
        storage::TABLE_METHOD,
        INDEX_METHOD_OF_FOREIGN_TABLES,
    ];
    place.get().is_some_and(|name| ours.contains(&name))
}
