//! The moments in which core must see a btree where the engine's index is.
//!
//! The catalog names our access method for each index. Core asks for btree by name or oid in some
//! places that no operator class reaches. All of them are here. Where core reads an index's
//! cache entry, it is shown as a btree in this process's memory (`flips`). Where core makes a text
//! of it, the catalog shows it so, too.
//!
//! - **ALTER COLUMN TYPE, SET EXPRESSION, ALTER ATTRIBUTE ... CASCADE** (all versions). Core
//!   writes the column's indexes out by `pg_get_indexdef`, drops them, and reads the text again
//!   without a hook (tablecmds.c, RememberIndexForRebuilding). Shown in memory and catalog; the
//!   indexes are dropped, the new ones become ours when they are made.
//! - **ADD CONSTRAINT ... USING INDEX** (all versions). Core raises `index "x" is not a btree`
//!   (parse_utilcmd.c, transformIndexConstraint). Shown in memory; and so is the index of that name
//!   which ALTER COLUMN TYPE makes earlier in the statement.
//! - **ADD PRIMARY KEY, UNIQUE, EXCLUDE, and CREATE INDEX on a partitioned table** (all versions).
//!   Core compares access methods when it looks for indexes of the partitions to attach (index.c,
//!   CompareIndexInfo); without a match makes a second one. Shown in memory.
//! - **ATTACH PARTITION, of a table and of an index** (all versions). Core does the same. Shown
//!   in memory.
//! - **SET ACCESS METHOD** (all versions). Core builds the indexes anew on the new storage,
//!   each by its own access method. Changed in the catalog, for good.
//! - **INSERT ... ON CONFLICT** (15 to 17). Core raises `unexpected non-btree speculative
//!   unique index` (index.c, BuildSpeculativeIndexInfo). Shown in memory (`on_conflict`).
//! - **REFRESH MATERIALIZED VIEW CONCURRENTLY** (15 to 17). Core looks for a unique btree
//!   (matview.c, is_usable_unique_index). Shown in memory (`concurrently`).
//!
//! What is changed in the catalog is part of the transaction: an error or a rollback takes it back.
//! A statement takes the locks here that it takes in core, in core's order, before it changes
//! anything.
use super::{After, defaults, row_types, whose_index};
use crate::ddl::{identity, inheritance};
use crate::errors::refuse::unsupported;
use crate::index_am::access_method::{self, Method, indexes_of};
use crate::index_am::flips::{self, Flips};
use crate::pg::inheritance::find_all;
use crate::pg::node::{Any, Node};
use crate::pg::relation::{self, Relation};
use crate::pg::{catalog, version};
use crate::storage;
use crate::table_am::BecomesHeap;
use pgrx::pg_sys::AlterTableType::*;
use pgrx::pg_sys::ConstrType::*;
use pgrx::pg_sys::ObjectType::*;
use pgrx::pg_sys::{self, LOCKMODE, Oid};

/// A subcommand of ALTER TABLE.
type Command<'p> = Node<'p, pg_sys::AlterTableCmd>;

/// The lock that keeps an index from being dropped.
const SHARED: LOCKMODE = pg_sys::AccessShareLock as LOCKMODE;
const EXCLUSIVE: LOCKMODE = pg_sys::AccessExclusiveLock as LOCKMODE;

/// CREATE INDEX on a partitioned table, named as it was locked. `None`: it is of another table.
pub fn create_index<'p>(node: Node<'p, pg_sys::IndexStmt>, after: &mut After) -> Option<Any<'p>> {
    let name = node.relation()?;
    if !name.inh() || node.concurrent() {
        return None;
    }
    if !catalog::is_partitioned(identity::lookup(name)) {
        return None;
    }
    // Core takes the same locks, after the same question for rights.
    let lock = pg_sys::ShareLock as LOCKMODE;
    // SAFETY: a callback that takes no argument.
    let parent = unsafe { identity::locked(name, lock, Some(identity::check_ownership)) };
    after.flips.extend(show_unattached(parent, lock));
    let named = node.copied();
    identity::name_schema(named.table(), parent);
    Some(named.any())
}

/// Whether a subcommand of ALTER TABLE may be one of the moments, or concern an access method.
pub fn concerns(command: Command<'_>) -> bool {
    let subtype = command.subtype();
    matches!(
        subtype,
        AT_AlterColumnType | AT_AttachPartition | AT_SetAccessMethod | AT_SetRelOptions
    ) || version::changes_generated_column(subtype)
        || key_of(command).is_some()
}

/// ALTER TABLE, of a copy of the caller's own, and of a relation that is locked as core will lock
/// it.
pub fn alter_table<'p>(node: Node<'p, pg_sys::AlterTableStmt>, relid: Oid, after: &mut After) {
    let is_ours = storage::is_mot_table(relid);
    let reaches = node.table().inh();
    for command in node.cmds() {
        let subtype = command.subtype();
        if subtype == AT_SetRelOptions && is_ours && defaults::sets_catalog_table(command.options())
        {
            defaults::refuse_catalog_table();
        } else if subtype == AT_SetAccessMethod {
            set_access_method(node, command, relid, after);
        } else if subtype == AT_AttachPartition {
            let flips = match node.objtype().get() {
                OBJECT_INDEX => attach_index(command.partition(), relid),
                _ => attach_table(command.partition()),
            };
            after.flips.extend(flips);
        } else if subtype == AT_AlterColumnType || version::changes_generated_column(subtype) {
            let reaches = reaches || node.objtype().get() == OBJECT_TYPE;
            if let Some(flips) = write_out_as_btrees(command, relid, reaches) {
                after.flips.push(flips);
                after.settings.get_or_insert_with(defaults::no_workers);
            }
        } else if let Some(key) = key_of(command) {
            if is_ours && key.indexname().is_some() && key.deferrable() {
                after.deferred = Some(relid);
            }
            after.flips.extend(add_key(key, relid, reaches));
        }
    }
}

/// ALTER COLUMN TYPE and SET EXPRESSION: indexes on the column that serve no key, and those of
/// other tables that have it in an expression by its row type, say btree in the catalog until core
/// drops them. They are shown as btrees in memory, too, for as long: event
/// triggers of `ddl_command_start` can use them. Parallel workers could not, so there are none.
/// `None`: there is no such index.
///
/// The lock of the command is AccessExclusiveLock; descendants get it as core will lock them.
fn write_out_as_btrees(command: Command<'_>, relid: Oid, reaches: bool) -> Option<Flips> {
    let mut indexes = Vec::new();
    let mut tables = altered_tables(relid, reaches, EXCLUSIVE);
    if !tables.contains(&relid) {
        tables.push(relid);
    }
    for table in tables {
        if let Some(column) = command.column_of(table) {
            add_written_out(&mut indexes, table, column);
        }
    }
    if indexes.is_empty() {
        return None;
    }
    // SAFETY: the tables are locked exclusively.
    let flips = unsafe { flips::show(&indexes, EXCLUSIVE) };
    for index in indexes {
        // SAFETY: as above, so no other session changes the indexes.
        unsafe { access_method::write(index, Method::Btree) };
    }
    Some(flips)
}

/// Adds the indexes of ours that core writes out for a column of a locked table. The tables of
/// others are locked here.
fn add_written_out(indexes: &mut Vec<Oid>, table: Oid, column: i16) {
    let ours = Method::Mot.oid();
    let mut add = |index: Oid| {
        if catalog::method_of(index) == ours && !indexes.contains(&index) {
            indexes.push(index);
        }
    };
    if storage::is_mot_table(table) {
        let all = indexes_of(table).into_iter();
        all.filter(|index| is_written_out(*index, column))
            .for_each(&mut add);
    }
    for index in row_types::indexes_with(table, column) {
        let other = catalog::table_of(index);
        if other != table {
            catalog::lock(other, EXCLUSIVE);
            add(index);
        }
    }
}

/// A locked table, or those with the columns of a composite type, and what inherits from them,
/// locked.
fn altered_tables(relid: Oid, reaches: bool, lock: LOCKMODE) -> Vec<Oid> {
    if !reaches {
        return vec![relid];
    }
    let mut tables = Vec::new();
    for table in inheritance::tables_of(relid) {
        if table != relid {
            catalog::lock(table, lock);
        }
        tables.extend(find_all(table, lock));
    }
    tables
}

/// Whether core writes an index on a column, also by an expression or its predicate, out with its
/// access method: not where it writes it out as a key. The table is locked exclusively.
fn is_written_out(index: Oid, column: i16) -> bool {
    let (is_on, is_exclusion) = relation::with_index(index, SHARED, |opened| {
        let is_on = opened.index_columns().contains(&column) || computes_with(opened, column);
        (is_on, opened.index_row().indisexclusion)
    });
    let is_key = !is_exclusion && catalog::constraint_of(index) != pg_sys::InvalidOid;
    is_on && !is_key
}

/// Whether an expression or the predicate of an open index has a column. One that has the whole row
/// depends on no column, and stays.
fn computes_with(index: Relation<'_>, column: i16) -> bool {
    /// The table's place in the expressions of an index.
    const TABLE: pg_sys::Index = 1;
    // SAFETY: an open index; copies of its lists, or NULL.
    let parts = unsafe {
        let index = index.as_ptr();
        [
            pg_sys::RelationGetIndexExpressions(index),
            pg_sys::RelationGetIndexPredicate(index),
        ]
        .map(|list| Node::enter_if_any(list.cast::<pg_sys::Node>()))
    };
    parts
        .into_iter()
        .flatten()
        .any(|part| part.names_any_of(TABLE, &[i32::from(column)]))
}

/// The constraint that a subcommand adds, if it has an index.
fn key_of<'p>(command: Command<'p>) -> Option<Node<'p, pg_sys::Constraint>> {
    if command.subtype() != AT_AddConstraint {
        return None;
    }
    let constraint = command.def()?.cast::<pg_sys::Constraint>()?;
    matches!(
        constraint.contype(),
        CONSTR_PRIMARY | CONSTR_UNIQUE | CONSTR_EXCLUSION
    )
    .then_some(constraint)
}

/// ADD CONSTRAINT: USING INDEX names an index; on a partitioned table core looks for those of its
/// partitions. The table is locked exclusively.
fn add_key(key: Node<'_, pg_sys::Constraint>, relid: Oid, reaches: bool) -> Option<Flips> {
    if let Some(name) = key.indexname() {
        let index = catalog::find(catalog::schema_of(relid), name);
        return storage::is_mot_index(index).then(|| {
            // SAFETY: its table is locked (caller).
            let flips = unsafe { show_shared(&[index]) };
            flips.also(relid, name);
            flips
        });
    }
    if !reaches || !catalog::is_partitioned(relid) {
        return None;
    }
    // A primary key makes columns NOT NULL in all partitions.
    let lock = match key.contype() {
        CONSTR_PRIMARY => EXCLUSIVE,
        _ => pg_sys::ShareLock as LOCKMODE,
    };
    show_unattached(relid, lock)
}

/// ATTACH PARTITION of a table: it, and what is below it, is locked exclusively, and named once and
/// for all. Core takes the same lock, and asks for rights behind it.
fn attach_table(partition: Node<'_, pg_sys::RangeVar>) -> Option<Flips> {
    // SAFETY: no callback.
    let table = unsafe { identity::locked(partition, EXCLUSIVE, None) };
    let flips = show_unattached(table, EXCLUSIVE);
    identity::name_schema(partition, table);
    flips
}

/// ALTER INDEX ... ATTACH PARTITION: the table is locked against changes, ahead of the index, which
/// is named once and for all. Core refuses an index that is to be attached to itself.
fn attach_index(partition: Node<'_, pg_sys::RangeVar>, to: Oid) -> Option<Flips> {
    let index = identity::lookup(partition);
    if index == to || !storage::is_mot_index(index) {
        return None;
    }
    catalog::lock(catalog::table_if_any(index), SHARED);
    // It is examined again when its table is locked.
    if !storage::is_mot_index(index) {
        return None;
    }
    // SAFETY: its table is locked above.
    let flips = unsafe { show_shared(&[index]) };
    identity::name_schema(partition, index);
    Some(flips)
}

/// Shows the indexes of our tables among a locked table and all below it that no index of a parent
/// has; `None`: there are none. What is below is locked here.
fn show_unattached(table: Oid, lock: LOCKMODE) -> Option<Flips> {
    let mut indexes = Vec::new();
    for member in find_all(table, lock) {
        if storage::is_mot_table(member) {
            let all = indexes_of(member).into_iter();
            indexes.extend(all.filter(|index| !catalog::is_partition(*index)));
        }
    }
    // SAFETY: their tables are locked above.
    (!indexes.is_empty()).then(|| unsafe { show_shared(&indexes) })
}

/// Shows indexes.
///
/// # Safety
/// Their tables are locked, so that no session drops them.
unsafe fn show_shared(indexes: &[Oid]) -> Flips {
    // SAFETY: the caller's.
    unsafe { flips::show(indexes, SHARED) }
}

/// SET ACCESS METHOD: core writes the rows anew, and then builds each index by the access method
/// that it has. The table is locked exclusively, and so are its indexes.
fn set_access_method<'p>(
    statement: Node<'p, pg_sys::AlterTableStmt>,
    command: Command<'p>,
    relid: Oid,
    after: &mut After,
) {
    if !is_rewritten(relid) {
        return;
    }
    let was_ours = storage::is_mot_table(relid);
    let is_ours = method_named(command) == storage::table_method();
    if was_ours == is_ours {
        return;
    }
    let is_it = |command: &Command| command.subtype() == AT_SetAccessMethod;
    if statement.cmds().iter().filter(is_it).nth(1).is_some() {
        // Core refuses it to be said twice.
        return;
    }
    if statement.cmds().len() > 1 {
        unsupported(
            "SET ACCESS METHOD to or from memory-optimized tables cannot be combined with other subcommands",
            "Use an ALTER TABLE statement of its own.",
        );
    }
    if is_ours {
        defaults::refuse_change_to_ours(relid);
    } else {
        after.becomes_heap = Some(BecomesHeap::begin(relid));
    }
    let becomes = if is_ours { Method::Mot } else { Method::Btree };
    let indexes = indexes_of(relid);
    refuse_in_use(relid, &indexes);
    for index in indexes {
        // SAFETY: the table is locked exclusively (caller).
        unsafe { change_for_good(index, becomes) };
    }
}

/// Whether core writes the rows of a relation anew for another access method: it has rows, and is
/// no system catalog.
fn is_rewritten(relid: Oid) -> bool {
    let kind = catalog::kind(relid);
    let has_rows = kind == pg_sys::RELKIND_RELATION || kind == pg_sys::RELKIND_MATVIEW;
    // SAFETY: a look at the oid.
    has_rows && !unsafe { pg_sys::IsCatalogRelationOid(relid) }
}

/// The access method of SET ACCESS METHOD. Without a name, from 17 on: the default.
fn method_named(command: Command<'_>) -> Oid {
    // SAFETY: a name of the statement's, or a setting; core raises if there is none of this name.
    unsafe {
        let default = pg_sys::default_table_access_method.cast_const();
        let name = command.name().map_or(default, |name| name.as_ptr());
        pg_sys::get_table_am_oid(name, false)
    }
}

/// Raises 55006, as core will, if a query of this session still uses a table or one of its indexes:
/// before anything is changed that such a query would see. All are locked exclusively.
fn refuse_in_use(table: Oid, indexes: &[Oid]) {
    for relation in std::iter::once(&table).chain(indexes) {
        let check = |opened: Relation<'_>| opened.check_not_in_use(c"ALTER TABLE");
        let checked = relation::with_entry(*relation, check);
        checked.expect("a locked relation has an entry");
    }
}

/// Gives an index another access method; its entries are made by the build that follows.
///
/// # Safety
/// The table is locked exclusively.
unsafe fn change_for_good(index: Oid, becomes: Method) {
    relation::with_index(index, EXCLUSIVE, |opened| {
        if becomes == Method::Mot {
            whose_index::refuse_other_methods(opened);
        }
        // SAFETY: the table is locked exclusively (caller); an open index.
        unsafe {
            access_method::write(index, becomes);
            access_method::replace_routine(opened);
        }
    });
}
