//! `CREATE FOREIGN TABLE ... SERVER mot`, openGauss MOT's spelling, makes the very same table as
//! `CREATE TABLE ... USING mot`.
//!
//! A server of our wrapper has no foreign tables. A statement that names one has its parse tree
//! rewritten before anything else reads it, and core executes what it would have got with the
//! word TABLE. So event triggers see a table, the client reads the tag of what it wrote.
//!
//! README.md lists the statements and what becomes of them.
//! Whatever else knows no such word needs nothing: a table of ours is a table.
use super::utility::{Next, Statement, refuse_read_only};
use super::{earlier_build, identity};
use crate::pg::{inheritance, nodes, version};
use crate::{errors, storage};
use pgrx::pg_sys::NodeTag::*;
use pgrx::pg_sys::{self, Node, ObjectType::*};

/// Rewrites a statement that says FOREIGN TABLE of a table of ours, or does it.
///
/// # Safety
/// A statement that is being executed.
pub unsafe fn resolve(statement: &Statement) -> Next {
    // SAFETY: the statement's node; each cast follows its tag. A copy is of the same type.
    unsafe {
        let node = statement.node();
        let copy = match nodes::tag(node) {
            T_CreateForeignTableStmt => return create(node.cast()),
            T_DropStmt => return drop(statement, node.cast()),
            _ => match place(node) {
                Some((kind, table)) if storage::is_mot_table(table) => match *kind {
                    OBJECT_FOREIGN_TABLE => nodes::copy(node),
                    _ => return Next::PassOn,
                },
                Some((_, table)) => {
                    earlier_build::refuse(table);
                    return Next::PassOn;
                }
                None => return Next::PassOn,
            },
        };
        if let Some((kind, _)) = place(copy) {
            *kind = OBJECT_TABLE;
        }
        Next::PassOnAs(copy)
    }
}

/// CREATE FOREIGN TABLE.
unsafe fn create(node: *mut pg_sys::CreateForeignTableStmt) -> Next {
    // SAFETY: a live node of this type (caller), which begins with a CreateStmt; the copy is ours.
    unsafe {
        let server = pg_sys::GetForeignServerByName((*node).servername, true);
        if server.is_null() || !earlier_build::is_our_server((*server).serverid) {
            return Next::PassOn;
        }
        // As core, before rights are looked up.
        refuse_read_only(c"CREATE FOREIGN TABLE");
        version::check_server_usage(server);
        refuse_options((*node).options);
        let copy = nodes::copy(node);
        let table = nodes::make::<pg_sys::CreateStmt>(T_CreateStmt);
        *table = (*copy).base;
        (*table).type_ = T_CreateStmt;
        (*table).accessMethod = pg_sys::pstrdup(storage::TABLE_METHOD.as_ptr());
        for element in nodes::items::<Node>((*table).tableElts) {
            if nodes::tag(element) == T_ColumnDef {
                refuse_options((*element.cast::<pg_sys::ColumnDef>()).fdwoptions);
            }
        }
        Next::PassOnAs(table.cast())
    }
}

/// There are none, of a table or a column.
unsafe fn refuse_options(options: *mut pg_sys::List) {
    // SAFETY: a live list of DefElem nodes (caller).
    unsafe {
        if let Some(option) = nodes::items::<pg_sys::DefElem>(options).first() {
            errors::invalid_option(&nodes::text((**option).defname));
        }
    }
}

/// Where a statement says TABLE or FOREIGN TABLE of one relation, and what that relation is;
/// `None`: it does not.
unsafe fn place(node: *mut Node) -> Option<(*mut pg_sys::ObjectType::Type, pg_sys::Oid)> {
    // SAFETY: a live node (caller), cast by its tag; the object of a comment, a label or an
    // extension is a list of names where its kind is a table.
    unsafe {
        let named = |object: *mut Node| identity::named(object.cast());
        let (kind, relation, object) = match nodes::tag(node) {
            T_AlterTableStmt => {
                let node = node.cast::<pg_sys::AlterTableStmt>();
                (
                    &raw mut (*node).objtype,
                    (*node).relation,
                    std::ptr::null_mut(),
                )
            }
            T_AlterObjectSchemaStmt => {
                let node = node.cast::<pg_sys::AlterObjectSchemaStmt>();
                (
                    &raw mut (*node).objectType,
                    (*node).relation,
                    std::ptr::null_mut(),
                )
            }
            T_RenameStmt => {
                let node = node.cast::<pg_sys::RenameStmt>();
                let kind = match (*node).renameType {
                    // Whose column, or attribute, it is.
                    OBJECT_COLUMN => &raw mut (*node).relationType,
                    _ => &raw mut (*node).renameType,
                };
                (kind, (*node).relation, std::ptr::null_mut())
            }
            T_CommentStmt => {
                let node = node.cast::<pg_sys::CommentStmt>();
                (
                    &raw mut (*node).objtype,
                    std::ptr::null_mut(),
                    (*node).object,
                )
            }
            T_SecLabelStmt => {
                let node = node.cast::<pg_sys::SecLabelStmt>();
                (
                    &raw mut (*node).objtype,
                    std::ptr::null_mut(),
                    (*node).object,
                )
            }
            T_AlterExtensionContentsStmt => {
                let node = node.cast::<pg_sys::AlterExtensionContentsStmt>();
                (
                    &raw mut (*node).objtype,
                    std::ptr::null_mut(),
                    (*node).object,
                )
            }
            _ => return None,
        };
        if !matches!(*kind, OBJECT_FOREIGN_TABLE | OBJECT_TABLE) {
            return None;
        }
        let relation = if relation.is_null() {
            named(object)
        } else {
            identity::lookup(relation)
        };
        Some((kind, relation))
    }
}

/// DROP FOREIGN TABLE. Core drops tables of one kind in a statement: a list of both kinds goes in
/// parts, those that inherit from another part's first.
unsafe fn drop(statement: &Statement, node: *mut pg_sys::DropStmt) -> Next {
    // SAFETY: a live node of this type (caller); its objects are lists of names for this object
    // type.
    unsafe {
        if (*node).removeType != OBJECT_FOREIGN_TABLE {
            return Next::PassOn;
        }
        let is_ours = |names: &*mut pg_sys::List| storage::is_mot_table(identity::named(*names));
        let names = nodes::items::<pg_sys::List>((*node).objects);
        let (ours, others): (Vec<_>, Vec<_>) = names.into_iter().partition(is_ours);
        if ours.is_empty() {
            return Next::PassOn;
        }
        if others.is_empty() {
            let copy = nodes::copy(node);
            (*copy).removeType = OBJECT_TABLE;
            return Next::PassOnAs(copy.cast());
        }
        let (below, others): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|names| inherits_from(identity::named(*names), &ours));
        drop_some(statement, node, OBJECT_FOREIGN_TABLE, &below);
        drop_some(statement, node, OBJECT_TABLE, &ours);
        drop_some(statement, node, OBJECT_FOREIGN_TABLE, &others);
        Next::Done
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
            let children = inheritance::find_all(identity::named(*names), pg_sys::NoLock as i32);
            children[1..].contains(&relation)
        })
    }
}
