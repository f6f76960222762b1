//! Dropping: DROP TABLE for memory-optimized tables, and the object access hook that takes the engine's part of whatever is
//! dropped, by whichever statement.
//!
//! The hook fires inside the deletion, before the catalog rows go: for DROP of the table or index itself, for anything that
//! cascades to it (schema, server, extension, owner, column, constraint), and for DROP DATABASE. The engine undoes it with
//! the transaction and frees memory at commit only.
use super::refuse::unsupported;
use super::utility::Statement;
use super::{database, identity, inheritance, made, nodes, storage, tables};
use pgrx::pg_sys::{self, ObjectType::*};
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::{c_int, c_void};

struct Previous(Cell<pg_sys::object_access_hook_type>);
// SAFETY: written once in the postmaster while it loads libraries; each process runs PostgreSQL's code on one thread.
unsafe impl Sync for Previous {}
static PREVIOUS: Previous = Previous(Cell::new(None));

/// Installs the hook; called once, while the server loads its libraries.
pub fn init() {
    // SAFETY: single-threaded at load time.
    unsafe {
        PREVIOUS.0.set(pg_sys::object_access_hook);
        pg_sys::object_access_hook = Some(object_access);
    }
}

/// Called for every function execution too when another module asks for it: a plain frame that looks at one integer first.
#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" fn object_access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    sub_object: c_int,
    argument: *mut c_void,
) {
    // SAFETY: the arguments are PostgreSQL's own; nothing to drop is in this frame.
    unsafe {
        if let Some(previous) = PREVIOUS.0.get() {
            previous(access, class, object, sub_object, argument);
        }
        if access == pg_sys::ObjectAccessType::OAT_DROP && sub_object == 0 {
            let flags = match argument.cast::<pg_sys::ObjectAccessDrop>() {
                argument if argument.is_null() => 0,
                argument => (*argument).dropflags,
            };
            dropped(class, object, flags);
        } else if access == pg_sys::ObjectAccessType::OAT_POST_CREATE && sub_object == 0 {
            if class == pg_sys::RelationRelationId {
                made::note(object);
                relation_created(object);
            } else if class == pg_sys::DatabaseRelationId {
                database_created();
            }
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_created(relation: pg_sys::Oid) {
    // SAFETY: core has just made it.
    unsafe { tables::created(relation) };
}

#[pg_guard]
unsafe extern "C-unwind" fn database_created() {
    database::created();
}

#[pg_guard]
unsafe extern "C-unwind" fn dropped(class: pg_sys::Oid, object: pg_sys::Oid, flags: c_int) {
    if class == pg_sys::DatabaseRelationId {
        database::dropped(object);
    } else if class == pg_sys::RelationRelationId {
        // SAFETY: a catalog look-up.
        match unsafe { pg_sys::get_rel_relkind(object) } as u8 {
            pg_sys::RELKIND_FOREIGN_TABLE if identity::is_mot_table(object) => {
                crate::fdw::check_readers_of_all(object);
                storage::drop_table(object);
            }
            pg_sys::RELKIND_INDEX if identity::is_mot_index(object) => {
                storage::drop_index(object);
            }
            _ => tables::dropped(object, flags),
        }
    }
}

/// DROP TABLE with memory-optimized tables in its list, and DROP INDEX CONCURRENTLY of our indexes.
pub unsafe fn statement(statement: &Statement, node: *mut pg_sys::DropStmt) -> bool {
    // SAFETY: a live node of this type; its objects are lists of names for these object types.
    unsafe {
        match (*node).removeType {
            OBJECT_TABLE => {
                let is_ours = |names: &*mut pg_sys::List| identity::is_mot_table(named(*names));
                let names = nodes::items::<pg_sys::List>((*node).objects);
                let (ours, others): (Vec<_>, Vec<_>) = names.into_iter().partition(is_ours);
                if ours.is_empty() {
                    return false;
                }
                // Memory-optimized tables first: as partitions they would go with their parent. But for those that inherit from them.
                let (below, others): (Vec<_>, Vec<_>) = others
                    .into_iter()
                    .partition(|names| inherits_from(named(*names), &ours));
                drop_some(statement, node, OBJECT_TABLE, &below);
                drop_some(statement, node, OBJECT_FOREIGN_TABLE, &ours);
                drop_some(statement, node, OBJECT_TABLE, &others);
                true
            }
            OBJECT_INDEX if (*node).concurrent => {
                for names in nodes::items::<pg_sys::List>((*node).objects) {
                    if identity::is_mot_index(named(names)) {
                        unsupported(
                            "DROP INDEX CONCURRENTLY is not supported on memory-optimized tables",
                            "Use DROP INDEX: it only waits for running statements and takes no time itself.",
                        );
                    }
                }
                false
            }
            _ => false,
        }
    }
}

/// Drops some of a statement's tables, as tables of a kind.
unsafe fn drop_some(
    statement: &Statement,
    node: *mut pg_sys::DropStmt,
    kind: pg_sys::ObjectType::Type,
    objects: &[*mut pg_sys::List],
) {
    if objects.is_empty() {
        return;
    }
    // SAFETY: a live node of this type; the statement gets a copy of its own.
    unsafe {
        let some = nodes::copy(node);
        (*some).removeType = kind;
        (*some).objects = nodes::list(objects);
        statement.run(nodes::copy(some));
        pg_sys::CommandCounterIncrement();
    }
}

/// Whether a relation inherits from one of those that are named, at any depth.
unsafe fn inherits_from(relation: pg_sys::Oid, named_ones: &[*mut pg_sys::List]) -> bool {
    // SAFETY: live lists of String nodes.
    unsafe {
        named_ones.iter().any(|names| {
            let children = inheritance::find_all(named(*names), pg_sys::NoLock as i32);
            children[1..].contains(&relation)
        })
    }
}

/// The relation that a list of name parts means.
pub unsafe fn named(names: *mut pg_sys::List) -> pg_sys::Oid {
    // SAFETY: a live list of String nodes.
    unsafe { identity::lookup(pg_sys::makeRangeVarFromNameList(names)) }
}
