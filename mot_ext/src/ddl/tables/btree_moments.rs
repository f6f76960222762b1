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
use super::{After, Published, defaults, row_types, whose_index};
use crate::ddl::{identity, inheritance};
use crate::errors::refuse::unsupported;
use crate::index_am::access_method::{self, Method, indexes_of};
use crate::index_am::flips::{self, Flips};
use crate::pg::{nodes, version};
use crate::storage;
use crate::table_am::BecomesHeap;
use pgrx::pg_sys::AlterTableType::*;
use pgrx::pg_sys::ConstrType::*;
use pgrx::pg_sys::NodeTag::T_Constraint;
use pgrx::pg_sys::ObjectType::*;
use pgrx::pg_sys::{self, AlterTableCmd};
use std::ffi::CStr;

/// The lock that keeps an index from being dropped.
const SHARED: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// CREATE INDEX on a partitioned table, named as it was locked. `None`: it is of another table.
///
/// # Safety
/// A live node.
pub unsafe fn create_index(
    node: *mut pg_sys::IndexStmt,
    after: &mut After,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller's node; core takes the same locks, after the same question for rights.
    unsafe {
        let name = (*node).relation;
        if name.is_null() || !(*name).inh || (*node).concurrent {
            return None;
        }
        if !is_partitioned(identity::lookup(name)) {
            return None;
        }
        let lock = pg_sys::ShareLock as pg_sys::LOCKMODE;
        let callback = Some(identity::check_ownership as unsafe extern "C-unwind" fn(_, _, _, _));
        let none = std::ptr::null_mut();
        let parent = pg_sys::RangeVarGetRelidExtended(name, lock, 0, callback, none);
        after.flips.extend(show_unattached(parent, lock));
        let named = nodes::copy(node);
        identity::name_schema((*named).relation, parent);
        Some(named.cast())
    }
}

/// Whether a subcommand of ALTER TABLE may be one of the moments, or concern an access method.
///
/// # Safety
/// A live node.
pub unsafe fn concerns(command: *mut AlterTableCmd) -> bool {
    // SAFETY: the caller's node.
    unsafe {
        let subtype = (*command).subtype;
        matches!(
            subtype,
            AT_AlterColumnType | AT_AttachPartition | AT_SetAccessMethod | AT_SetRelOptions
        ) || version::changes_generated_column(subtype)
            || key_of(command).is_some()
    }
}

/// ALTER TABLE of a relation that is locked as core will lock it.
///
/// # Safety
/// A live node of the caller's own.
pub unsafe fn alter_table(
    node: *mut pg_sys::AlterTableStmt,
    relid: pg_sys::Oid,
    after: &mut After,
) {
    // SAFETY: live commands, each cast by its kind; the relation is locked (caller).
    unsafe {
        let commands = nodes::items::<AlterTableCmd>((*node).cmds);
        let is_ours = storage::is_mot_table(relid);
        for command in commands.iter().copied() {
            match (*command).subtype {
                AT_SetRelOptions
                    if is_ours && defaults::sets_catalog_table((*command).def.cast()) =>
                {
                    defaults::refuse_catalog_table()
                }
                AT_SetAccessMethod => set_access_method(command, &commands, relid, after),
                AT_AttachPartition => {
                    let partition = (*(*command).def.cast::<pg_sys::PartitionCmd>()).name;
                    let flips = if (*node).objtype == OBJECT_INDEX {
                        attach_index(partition, relid)
                    } else {
                        attach_table(partition)
                    };
                    after.flips.extend(flips);
                    after.published = Some(Published::Altered(relid));
                }
                subtype
                    if subtype == AT_AlterColumnType
                        || version::changes_generated_column(subtype) =>
                {
                    let reaches = (*(*node).relation).inh || (*node).objtype == OBJECT_TYPE;
                    after
                        .flips
                        .push(write_out_as_btrees(command, relid, reaches));
                    after.settings.get_or_insert_with(defaults::no_workers);
                }
                _ => {
                    if let Some(key) = key_of(command) {
                        if is_ours && !(*key).indexname.is_null() && (*key).deferrable {
                            after.deferred = Some(relid);
                        }
                        let reaches = (*(*node).relation).inh;
                        after.flips.extend(add_key(key, relid, reaches));
                    }
                }
            }
        }
    }
}

/// ALTER COLUMN TYPE and SET EXPRESSION: indexes on the column that serve no key, and those of
/// other tables that have it in an expression by its row type, say btree in the catalog until core
/// drops them. They are shown as btrees in memory, too, for as long: event
/// triggers of `ddl_command_start` can use them. Parallel workers could not, so there are none.
unsafe fn write_out_as_btrees(
    command: *mut AlterTableCmd,
    relid: pg_sys::Oid,
    reaches: bool,
) -> Flips {
    // SAFETY: a live command with a column's name (caller). Its lock is AccessExclusiveLock;
    // descendants get it as core will lock them.
    unsafe {
        let lock = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        let mut indexes = Vec::new();
        let mut tables = altered_tables(relid, reaches, lock);
        if !tables.contains(&relid) {
            tables.push(relid);
        }
        for table in tables {
            let column = pg_sys::get_attnum(table, (*command).name);
            if column <= 0 {
                continue;
            }
            let ours = Method::Mot.oid();
            let mut add = |index: pg_sys::Oid| {
                if access_method::of(index) == ours && !indexes.contains(&index) {
                    indexes.push(index);
                }
            };
            if storage::is_mot_table(table) {
                let all = indexes_of(table).into_iter();
                all.filter(|index| is_written_out(*index, column))
                    .for_each(&mut add);
            }
            for index in row_types::indexes_with(table, column) {
                let other = pg_sys::IndexGetRelation(index, false);
                if other != table {
                    pg_sys::LockRelationOid(other, lock);
                    add(index);
                }
            }
        }
        let flips = flips::show(&indexes, lock);
        for index in indexes {
            access_method::write(index, Method::Btree);
        }
        flips
    }
}

/// A table, or those with the columns of a composite type, and what inherits from them, locked.
unsafe fn altered_tables(
    relid: pg_sys::Oid,
    reaches: bool,
    lock: pg_sys::LOCKMODE,
) -> Vec<pg_sys::Oid> {
    // SAFETY: the relation is locked (caller).
    unsafe {
        if !reaches {
            return vec![relid];
        }
        let mut tables = Vec::new();
        for table in inheritance::tables_of(relid) {
            if table != relid {
                pg_sys::LockRelationOid(table, lock);
            }
            tables.extend(crate::pg::inheritance::find_all(table, lock));
        }
        tables
    }
}

/// Whether core writes an index on a column, also by an expression or its predicate, out with its
/// access method: not where it writes it out as a key.
unsafe fn is_written_out(index: pg_sys::Oid, column: i16) -> bool {
    // SAFETY: the index's table is locked exclusively (caller).
    unsafe {
        let opened = pg_sys::index_open(index, SHARED);
        let form = &*(*opened).rd_index;
        let columns = form.indkey.values.as_slice(form.indnatts as usize);
        let is_on = columns.contains(&column) || computes_with(opened, column);
        let is_exclusion = form.indisexclusion;
        pg_sys::index_close(opened, pg_sys::NoLock as pg_sys::LOCKMODE);
        let is_key = !is_exclusion && pg_sys::get_index_constraint(index) != pg_sys::InvalidOid;
        is_on && !is_key
    }
}

/// Whether an expression or the predicate of an open index has a column. One that has the whole row
/// depends on no column, and stays.
unsafe fn computes_with(index: pg_sys::Relation, column: i16) -> bool {
    /// The table's place in the expressions of an index.
    const TABLE: pg_sys::Index = 1;
    // SAFETY: an open index (caller); the lists are copies.
    unsafe {
        let mut columns = std::ptr::null_mut();
        let expressions = pg_sys::RelationGetIndexExpressions(index);
        let predicate = pg_sys::RelationGetIndexPredicate(index);
        for part in [expressions, predicate] {
            pg_sys::pull_varattnos(part.cast(), TABLE, &raw mut columns);
        }
        let member = i32::from(column) - pg_sys::FirstLowInvalidHeapAttributeNumber;
        pg_sys::bms_is_member(member, columns)
    }
}

/// The constraint that a subcommand adds, if it has an index.
unsafe fn key_of(command: *mut AlterTableCmd) -> Option<*mut pg_sys::Constraint> {
    // SAFETY: a live command (caller), whose definition is cast by its tag.
    unsafe {
        let definition = (*command).def;
        if (*command).subtype != AT_AddConstraint
            || definition.is_null()
            || nodes::tag(definition) != T_Constraint
        {
            return None;
        }
        let constraint = definition.cast::<pg_sys::Constraint>();
        matches!(
            (*constraint).contype,
            CONSTR_PRIMARY | CONSTR_UNIQUE | CONSTR_EXCLUSION
        )
        .then_some(constraint)
    }
}

/// ADD CONSTRAINT: USING INDEX names an index; on a partitioned table core looks for those of its
/// partitions.
unsafe fn add_key(
    key: *mut pg_sys::Constraint,
    relid: pg_sys::Oid,
    reaches: bool,
) -> Option<Flips> {
    // SAFETY: a live node; the table is locked exclusively (caller).
    unsafe {
        if !(*key).indexname.is_null() {
            let namespace = pg_sys::get_rel_namespace(relid);
            let index = pg_sys::get_relname_relid((*key).indexname, namespace);
            return storage::is_mot_index(index).then(|| {
                let flips = flips::show(&[index], SHARED);
                flips.also(relid, CStr::from_ptr((*key).indexname));
                flips
            });
        }
        if !reaches || !is_partitioned(relid) {
            return None;
        }
        // A primary key makes columns NOT NULL in all partitions.
        let lock = if (*key).contype == CONSTR_PRIMARY {
            pg_sys::AccessExclusiveLock
        } else {
            pg_sys::ShareLock
        };
        show_unattached(relid, lock as pg_sys::LOCKMODE)
    }
}

/// ATTACH PARTITION of a table: it, and what is below it, is locked exclusively, and named once and
/// for all.
unsafe fn attach_table(partition: *mut pg_sys::RangeVar) -> Option<Flips> {
    // SAFETY: a live name (caller); core takes the same lock, and asks for rights behind it.
    unsafe {
        let lock = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        let none = std::ptr::null_mut();
        let table = pg_sys::RangeVarGetRelidExtended(partition, lock, 0, None, none);
        let flips = show_unattached(table, lock);
        identity::name_schema(partition, table);
        flips
    }
}

/// ALTER INDEX ... ATTACH PARTITION: the table is locked against changes, ahead of the index, which
/// is named once and for all. Core refuses an index that is to be attached to itself.
unsafe fn attach_index(partition: *mut pg_sys::RangeVar, to: pg_sys::Oid) -> Option<Flips> {
    // SAFETY: a live name (caller); the index is examined again when its table is locked.
    unsafe {
        let index = identity::lookup(partition);
        if index == to || !storage::is_mot_index(index) {
            return None;
        }
        pg_sys::LockRelationOid(pg_sys::IndexGetRelation(index, true), SHARED);
        if !storage::is_mot_index(index) {
            return None;
        }
        let flips = flips::show(&[index], SHARED);
        identity::name_schema(partition, index);
        Some(flips)
    }
}

/// Shows the indexes of our tables among a table and all below it that no index of a parent has;
/// `None`: there are none.
unsafe fn show_unattached(table: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Option<Flips> {
    // SAFETY: the table is locked (caller), what is below it is locked here.
    unsafe {
        let mut indexes = Vec::new();
        for member in crate::pg::inheritance::find_all(table, lock) {
            if storage::is_mot_table(member) {
                let unattached = |index: &pg_sys::Oid| !pg_sys::get_rel_relispartition(*index);
                indexes.extend(indexes_of(member).into_iter().filter(unattached));
            }
        }
        (!indexes.is_empty()).then(|| flips::show(&indexes, SHARED))
    }
}

fn is_partitioned(relation: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up.
    let kind = unsafe { pg_sys::get_rel_relkind(relation) };
    kind as u8 == pg_sys::RELKIND_PARTITIONED_TABLE
}

/// SET ACCESS METHOD: core writes the rows anew, and then builds each index by the access method
/// that it has.
unsafe fn set_access_method(
    command: *mut AlterTableCmd,
    commands: &[*mut AlterTableCmd],
    relid: pg_sys::Oid,
    after: &mut After,
) {
    // SAFETY: a live command; the table is locked exclusively (caller), and so are its indexes.
    unsafe {
        let kind = pg_sys::get_rel_relkind(relid) as u8;
        let has_rows = kind == pg_sys::RELKIND_RELATION || kind == pg_sys::RELKIND_MATVIEW;
        // Core refuses to rewrite a system catalog.
        if !has_rows || pg_sys::IsCatalogRelationOid(relid) {
            return;
        }
        // Without a name, from 17 on: the default.
        let name = if (*command).name.is_null() {
            pg_sys::default_table_access_method.cast_const()
        } else {
            (*command).name.cast_const()
        };
        let method = pg_sys::get_table_am_oid(name, false);
        let (was_ours, is_ours) = (
            storage::is_mot_table(relid),
            method == storage::table_method(),
        );
        if was_ours == is_ours {
            return;
        }
        let is_said_twice = commands
            .iter()
            .filter(|command| (***command).subtype == AT_SetAccessMethod)
            .nth(1)
            .is_some();
        if is_said_twice {
            // Core refuses it.
            return;
        }
        if commands.len() > 1 {
            unsupported(
                "SET ACCESS METHOD to or from memory-optimized tables cannot be combined with other subcommands",
                "Use an ALTER TABLE statement of its own.",
            );
        }
        if is_ours {
            defaults::refuse_change_to_ours(relid);
            after.published = Some(Published::Altered(relid));
        } else {
            after.becomes_heap = Some(BecomesHeap::begin(relid));
        }
        let becomes = if is_ours { Method::Mot } else { Method::Btree };
        let indexes = indexes_of(relid);
        refuse_in_use(relid, &indexes);
        for index in indexes {
            change_for_good(index, becomes);
        }
    }
}

/// Raises 55006, as core will, if a query of this session still uses a table or one of its indexes:
/// before anything is changed that such a query would see.
unsafe fn refuse_in_use(table: pg_sys::Oid, indexes: &[pg_sys::Oid]) {
    // SAFETY: the table is locked exclusively (caller), and so are its indexes; what is opened here
    // is closed.
    unsafe {
        for relation in std::iter::once(&table).chain(indexes) {
            let opened = pg_sys::RelationIdGetRelation(*relation);
            pg_sys::CheckTableNotInUse(opened, c"ALTER TABLE".as_ptr());
            pg_sys::RelationClose(opened);
        }
    }
}

/// Gives an index another access method; its entries are made by the build that follows.
unsafe fn change_for_good(index: pg_sys::Oid, becomes: Method) {
    // SAFETY: the table is there and locked exclusively (caller); what is opened here is closed.
    unsafe {
        let none = pg_sys::NoLock as pg_sys::LOCKMODE;
        let opened = pg_sys::index_open(index, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE);
        if becomes == Method::Mot {
            whose_index::refuse_other_methods(opened);
        }
        access_method::write(index, becomes);
        access_method::replace_routine(opened);
        pg_sys::index_close(opened, none);
    }
}
