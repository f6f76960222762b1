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
use crate::pg::node::{Any, Field, List, Node};
use crate::pg::{catalog, inheritance, version};
use crate::{errors, storage};
use pgrx::pg_sys::{self, ObjectType, ObjectType::*};

/// Rewrites a statement that says FOREIGN TABLE of a table of ours, or does it.
pub fn resolve<'p>(statement: &Statement<'p>) -> Next<'p> {
    let node = statement.node();
    if let Some(create_table) = node.cast() {
        return create(create_table);
    }
    if let Some(dropping) = node.cast() {
        return drop(statement, dropping);
    }
    let Some(place) = Place::of(node) else {
        return Next::PassOn;
    };
    if !storage::is_mot_table(place.relation) {
        earlier_build::refuse(place.relation);
        return Next::PassOn;
    }
    if place.kind.get() != OBJECT_FOREIGN_TABLE {
        return Next::PassOn;
    }
    let copy = node.copied();
    if let Some(place) = Place::of(copy) {
        place.kind.set(OBJECT_TABLE);
    }
    Next::PassOnAs(copy)
}

/// CREATE FOREIGN TABLE.
fn create<'p>(node: Node<'p, pg_sys::CreateForeignTableStmt>) -> Next<'p> {
    // SAFETY: a name of the statement's.
    let server = unsafe { pg_sys::GetForeignServerByName(node.servername(), true) };
    // SAFETY: core's copy of what the catalog has, or NULL.
    let oid = unsafe { server.as_ref() }.map(|server| server.serverid);
    if !oid.is_some_and(earlier_build::is_our_server) {
        return Next::PassOn;
    }
    // As core, before rights are looked up.
    refuse_read_only(c"CREATE FOREIGN TABLE");
    // SAFETY: as above.
    unsafe { version::check_server_usage(server) };
    refuse_options(node.options());
    // SAFETY: the fields of a live node.
    let table = unsafe { Node::<pg_sys::CreateStmt>::new(node.copied().base().fields()) };
    table.accessMethod().set(storage::TABLE_METHOD);
    for column in table
        .tableElts()
        .iter()
        .filter_map(Any::cast::<pg_sys::ColumnDef>)
    {
        refuse_options(column.fdwoptions());
    }
    Next::PassOnAs(table.any())
}

/// There are none, of a table or a column.
fn refuse_options(options: List<'_, pg_sys::DefElem>) {
    if let Some(option) = options.get(0) {
        errors::invalid_option(&option.name());
    }
}

/// Where a statement says TABLE or FOREIGN TABLE of one relation, and what that relation is.
struct Place<'p> {
    kind: Field<'p, ObjectType::Type>,
    relation: pg_sys::Oid,
}

impl<'p> Place<'p> {
    /// `None`: it does not.
    fn of(node: Any<'p>) -> Option<Place<'p>> {
        if let Some(node) = node.cast::<pg_sys::AlterTableStmt>() {
            Place::by_name(node.objtype(), node.relation())
        } else if let Some(node) = node.cast::<pg_sys::AlterObjectSchemaStmt>() {
            Place::by_name(node.objectType(), node.relation())
        } else if let Some(node) = node.cast::<pg_sys::RenameStmt>() {
            let kind = match node.renameType().get() {
                // Whose column, or attribute, it is.
                OBJECT_COLUMN => node.relationType(),
                _ => node.renameType(),
            };
            Place::by_name(kind, node.relation())
        } else if let Some(node) = node.cast::<pg_sys::CommentStmt>() {
            Place::by_parts(node.objtype(), node.object())
        } else if let Some(node) = node.cast::<pg_sys::SecLabelStmt>() {
            Place::by_parts(node.objtype(), node.object())
        } else if let Some(node) = node.cast::<pg_sys::AlterExtensionContentsStmt>() {
            Place::by_parts(node.objtype(), node.object())
        } else {
            None
        }
    }

    /// In a statement with a relation's name.
    fn by_name(
        kind: Field<'p, ObjectType::Type>,
        name: Option<Node<'p, pg_sys::RangeVar>>,
    ) -> Option<Place<'p>> {
        let relation = identity::lookup(name.filter(|_| is_table(kind))?);
        Some(Place { kind, relation })
    }

    /// In a statement with any object's name, which of a table is a list of parts.
    fn by_parts(kind: Field<'p, ObjectType::Type>, object: Option<Any<'p>>) -> Option<Place<'p>> {
        let relation = identity::named(object.filter(|_| is_table(kind))?.cast()?);
        Some(Place { kind, relation })
    }
}

fn is_table(kind: Field<'_, ObjectType::Type>) -> bool {
    matches!(kind.get(), OBJECT_FOREIGN_TABLE | OBJECT_TABLE)
}

/// The name of a table, as a list of its parts.
type Names<'p> = Node<'p, pg_sys::List>;

/// DROP FOREIGN TABLE. Core drops tables of one kind in a statement: a list of both kinds goes in
/// parts, those that inherit from another part's first.
fn drop<'p>(statement: &Statement<'p>, node: Node<'p, pg_sys::DropStmt>) -> Next<'p> {
    if node.removeType() != OBJECT_FOREIGN_TABLE {
        return Next::PassOn;
    }
    let is_ours = |names: &Names| storage::is_mot_table(identity::named(*names));
    let (ours, others): (Vec<_>, Vec<_>) = node.names().iter().partition(is_ours);
    if ours.is_empty() {
        return Next::PassOn;
    }
    if others.is_empty() {
        let copy = node.copied();
        copy.set_kind(OBJECT_TABLE);
        return Next::PassOnAs(copy.any());
    }
    let (below, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|names| inherits_from(identity::named(*names), &ours));
    drop_some(statement, node, OBJECT_FOREIGN_TABLE, &below);
    drop_some(statement, node, OBJECT_TABLE, &ours);
    drop_some(statement, node, OBJECT_FOREIGN_TABLE, &others);
    Next::Done
}

/// Drops some of a statement's tables, as tables of a kind.
fn drop_some<'p>(
    statement: &Statement<'p>,
    node: Node<'p, pg_sys::DropStmt>,
    kind: ObjectType::Type,
    names: &[Names<'p>],
) {
    if names.is_empty() {
        return;
    }
    let some = node.copied();
    some.set_kind(kind);
    some.set_names(List::of(names.iter().copied()));
    statement.run(some.copied().any());
    catalog::make_changes_visible();
}

/// Whether a relation inherits from one of those that are named, at any depth.
fn inherits_from(relation: pg_sys::Oid, named_ones: &[Names<'_>]) -> bool {
    named_ones.iter().any(|names| {
        let children = inheritance::find_all(identity::named(*names), pg_sys::NoLock as i32);
        children[1..].contains(&relation)
    })
}
