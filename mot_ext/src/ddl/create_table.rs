//! CREATE FOREIGN TABLE ... SERVER mot, and CREATE TABLE under `mot.create_tables`.
//!
//! Core makes the table; its PRIMARY KEY and UNIQUE constraints are taken out first and made as indexes afterwards, its
//! storage in the engine in between, all in the statement's transaction.
use super::made::Watch;
use super::utility::{Statement, refuse_read_only};
use super::{
    attached, constraints, create_table_as, identity, index, latest, nodes, partition, references,
    refuse, storage,
};
use crate::pg::report;
use crate::settings;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;
use pgrx::prelude::*;
use refuse::{raise, unsupported};
use std::ffi::CStr;

/// CREATE FOREIGN TABLE.
pub unsafe fn foreign(statement: &Statement, node: *mut pg_sys::CreateForeignTableStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        let server = pg_sys::GetForeignServerByName((*node).servername, true);
        if server.is_null() || !identity::is_mot_server((*server).serverid) {
            return as_partition(statement, &raw mut (*node).base);
        }
        create(statement, nodes::copy(node));
        true
    }
}

/// Whether a plain CREATE TABLE makes a memory-optimized table: `mot.create_tables` says so, and the session has not said by `default_table_access_method` what it makes. Dumps say that
/// (`SET default_table_access_method = heap`) ahead of their tables, which are to be restored as they were.
fn makes_tables() -> bool {
    const CHOSEN: &str = "
        SELECT s.source = 'session' FROM pg_catalog.pg_settings s WHERE s.name = 'default_table_access_method'";
    settings::CREATE_TABLES.get()
        && latest::select(CHOSEN, &[], |row| row.get::<bool>(1)) != [Some(true)]
}

/// CREATE TABLE: a memory-optimized one if the setting says so and the table can be one.
pub unsafe fn plain(statement: &Statement, node: *mut pg_sys::CreateStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        // As core, before a name is looked up.
        refuse_read_only(c"CREATE TABLE");
        if !can_be_mot(node) || !makes_tables() {
            references::refuse_references_to_mot((*node).tableElts);
            return as_partition(statement, node);
        }
        as_mot(statement, nodes::copy(node));
        true
    }
}

/// A table of another kind; false if it is no partition, so nothing to us.
unsafe fn as_partition(statement: &Statement, node: *mut pg_sys::CreateStmt) -> bool {
    // SAFETY: a live CREATE [FOREIGN] TABLE statement.
    unsafe {
        if (*node).partbound.is_null() {
            return false;
        }
        partition::create(statement, nodes::copy(node));
        true
    }
}

/// Makes a memory-optimized table from a CREATE TABLE statement that the caller owns; None if IF NOT EXISTS found one.
pub unsafe fn as_mot(statement: &Statement, copy: *mut pg_sys::CreateStmt) -> Option<pg_sys::Oid> {
    // SAFETY: a live node; the foreign statement begins with a CreateStmt.
    unsafe {
        ignore_storage_parameters((*copy).options);
        (*copy).options = std::ptr::null_mut();
        ignore_tablespace((*copy).tablespacename);
        (*copy).tablespacename = std::ptr::null_mut();

        let foreign = nodes::make::<pg_sys::CreateForeignTableStmt>(T_CreateForeignTableStmt);
        (*foreign).base = *copy;
        (*foreign).base.type_ = T_CreateForeignTableStmt;
        (*foreign).servername = nodes::pstrdup(identity::NAME);
        if pg_sys::GetForeignServerByName((*foreign).servername, true).is_null() {
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
                "mot.create_tables is on, but this database does not have the extension mot",
                None,
                Some("Run CREATE EXTENSION mot, or SET mot.create_tables = off.".into()),
            );
        }
        create(statement, foreign)
    }
}

/// The namespaces of a heap table's storage parameters, ended by NULL.
static HEAP_NAMESPACES: HeapNamespaces = HeapNamespaces([c"toast".as_ptr(), std::ptr::null()]);
#[repr(transparent)]
struct HeapNamespaces([*const std::ffi::c_char; 2]);
// SAFETY: pointers to constants.
unsafe impl Sync for HeapNamespaces {}

/// CREATE TABLE AS and SELECT INTO.
pub unsafe fn from_query(statement: &Statement, node: *mut pg_sys::CreateTableAsStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        if settings::CREATE_TABLES.get() {
            // As core, before a name is looked up.
            refuse_read_only(tag_name(node));
        }
        let makes_mot = is_to_be_mot(node);
        if makes_mot {
            create_table_as::run(statement, node);
        }
        makes_mot
    }
}

/// EXPLAIN ANALYZE of these makes and fills the table in core, which would be a heap table. One that is there already core passes by.
pub unsafe fn explained(statement: &Statement, node: *mut pg_sys::ExplainStmt) -> bool {
    // SAFETY: a live node of this type, whose query parse analysis made; each cast follows a node's tag.
    unsafe {
        if !settings::CREATE_TABLES.get() {
            return false;
        }
        let query = (*node).query.cast::<pg_sys::Query>();
        let made = (*query).utilityStmt;
        let runs = nodes::items::<pg_sys::DefElem>((*node).options)
            .into_iter()
            .rfind(|option| nodes::text((**option).defname) == "analyze")
            .is_some_and(|option| pg_sys::defGetBoolean(option));
        if made.is_null() || nodes::tag(made) != T_CreateTableAsStmt || !runs {
            return false;
        }
        let made = made.cast::<pg_sys::CreateTableAsStmt>();
        let persistence = (*(*(*made).into).rel).relpersistence as u8;
        if (*made).objtype == pg_sys::ObjectType::OBJECT_TABLE
            && persistence != pg_sys::RELPERSISTENCE_TEMP
        {
            // Before a name is looked up; core asks nobody.
            refuse_read_only(tag_name(made));
        }
        if !is_to_be_mot(made) {
            return false;
        }
        if !passes_by(made) {
            unsupported(
                "EXPLAIN ANALYZE cannot create a memory-optimized table",
                "Use EXPLAIN ANALYZE with the query itself, or set mot.create_tables = off for a heap table.",
            );
        }
        let watch = Watch::begin();
        statement.run(nodes::copy(node));
        if !watch.is_nothing_made() {
            raise(
                PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                "the table was dropped by a concurrent statement",
                None,
                Some("Try again.".into()),
            );
        }
        true
    }
}

/// CREATE TABLE AS, or SELECT INTO.
unsafe fn tag_name(node: *mut pg_sys::CreateTableAsStmt) -> &'static CStr {
    // SAFETY: a live node of this type; core's names are constants.
    unsafe {
        let tag = pg_sys::CreateCommandTag(node.cast());
        CStr::from_ptr(pg_sys::GetCommandTagName(tag))
    }
}

/// Whether CREATE TABLE AS finds a relation of its name, and is content.
unsafe fn passes_by(node: *mut pg_sys::CreateTableAsStmt) -> bool {
    // SAFETY: a live node of this type; the name is looked up on a copy, as in `is_persistent`.
    unsafe {
        let relation = (*(*node).into).rel;
        (*node).if_not_exists && {
            let namespace = pg_sys::RangeVarGetCreationNamespace(nodes::copy(relation));
            pg_sys::get_relname_relid((*relation).relname, namespace) != pg_sys::InvalidOid
        }
    }
}

/// Whether CREATE TABLE AS makes a memory-optimized table.
unsafe fn is_to_be_mot(node: *mut pg_sys::CreateTableAsStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        let into = (*node).into;
        (*node).objtype == pg_sys::ObjectType::OBJECT_TABLE
            && (*into).accessMethod.is_null()
            && (*into).onCommit == pg_sys::OnCommitAction::ONCOMMIT_NOOP
            && is_persistent((*into).rel)
            && makes_tables()
    }
}

/// Whether CREATE TABLE describes a table that can be memory-optimized; what cannot stays a heap table: temporary, unlogged,
/// partitioned, inheriting and typed tables, those with an access method of their own, and an extension's tables.
unsafe fn can_be_mot(node: *mut pg_sys::CreateStmt) -> bool {
    // SAFETY: a live node of this type; the name is looked up on a copy, since the look-up notes temporary schemas in it.
    unsafe {
        let stmt = &*node;
        if !stmt.inhRelations.is_null()
            || !stmt.partbound.is_null()
            || !stmt.partspec.is_null()
            || !stmt.ofTypename.is_null()
            || !stmt.accessMethod.is_null()
            || stmt.oncommit != pg_sys::OnCommitAction::ONCOMMIT_NOOP
        {
            return false;
        }
        is_persistent(stmt.relation)
    }
}

/// Whether a new relation of this name would be a permanent one of the user's own.
unsafe fn is_persistent(relation: *mut pg_sys::RangeVar) -> bool {
    // SAFETY: a live name, looked up on a copy, since the look-up may note a temporary schema in it.
    unsafe {
        if (*relation).relpersistence as u8 != pg_sys::RELPERSISTENCE_PERMANENT
            || pg_sys::creating_extension
        {
            return false;
        }
        let namespace = pg_sys::RangeVarGetCreationNamespace(nodes::copy(relation));
        !pg_sys::isTempNamespace(namespace)
    }
}

/// Says that storage parameters of a table have no effect; a wrong one is an error all the same.
pub unsafe fn ignore_storage_parameters(options: *mut pg_sys::List) {
    if options.is_null() {
        return;
    }
    // SAFETY: a list of DefElem nodes; the namespaces are constants.
    unsafe {
        let given = pg_sys::transformRelOptions(
            pg_sys::Datum::from(0),
            options,
            std::ptr::null(),
            (&raw const HEAP_NAMESPACES).cast_mut().cast(),
            true,
            false,
        );
        pg_sys::heap_reloptions(pg_sys::RELKIND_RELATION as _, given, true);
    }
    say_parameters_have_no_effect();
}

/// The NOTICE for storage parameters, of a table or an index.
pub fn say_parameters_have_no_effect() {
    notice!("storage parameters have no effect: the table is kept in memory");
}

/// Says that a tablespace has no effect, after checking that it exists.
pub unsafe fn ignore_tablespace(name: *const std::ffi::c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: a NUL-terminated name of the statement.
    unsafe {
        pg_sys::get_tablespace_oid(name, false);
        report::notice(&format!(
            "tablespace \"{}\" has no effect: the table is kept in memory",
            nodes::text(name)
        ));
    }
}

/// Makes the table, its storage and its indexes. The statement is the caller's own copy.
unsafe fn create(
    statement: &Statement,
    node: *mut pg_sys::CreateForeignTableStmt,
) -> Option<pg_sys::Oid> {
    // SAFETY: a live node that the caller owns.
    unsafe {
        let base = &raw mut (*node).base;
        let relation = (*base).relation;
        let (elements, taken) = constraints::take_from_elements((*base).tableElts);
        (*base).tableElts = elements;

        let mut existing = pg_sys::InvalidOid;
        let namespace = pg_sys::RangeVarGetAndCheckCreationNamespace(
            relation,
            pg_sys::NoLock as i32,
            &raw mut existing,
        );
        if pg_sys::isTempNamespace(namespace) {
            unsupported(
                "temporary memory-optimized tables are not supported",
                "Create the table in another schema, or a temporary heap table.",
            );
        }
        // Named once and for all: what the rest of the statement does must mean this table.
        (*relation).schemaname = pg_sys::get_namespace_name(namespace);
        let table = nodes::copy(relation);
        let if_not_exists = (*base).if_not_exists;
        // Wrong constraints are refused before anything is made. Of a table that is there already nothing is asked.
        let requests = (existing == pg_sys::InvalidOid || !if_not_exists)
            .then(|| constraints::index_requests(table, &taken));

        let is_partition = !(*base).partbound.is_null();
        let is_there = if_not_exists && existing != pg_sys::InvalidOid;
        // Of a table that is there already core looks at no parent.
        let partition_of = (is_partition && !is_there).then(|| {
            let parent = partition::lock_parent(base);
            (nodes::copy(partition::parent_name(base)), parent)
        });

        let watch = Watch::begin();
        statement.run(node);
        pg_sys::CommandCounterIncrement();
        let made = watch.made();
        drop(watch);
        // Not by the schema's name, for which the user may lack the right that a look-up asks for.
        let relid = pg_sys::get_relname_relid((*table).relname, namespace);
        if made.is_none() && if_not_exists && relid != pg_sys::InvalidOid {
            // Core has found a table of that name, whatever was or was not there a moment before, and said so.
            return None;
        }
        if made != Some(relid) {
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!(
                    "table \"{}\" is gone before it was complete",
                    nodes::text((*table).relname)
                ),
                Some("An event trigger has dropped or renamed it.".into()),
                Some("Have the trigger leave new memory-optimized tables their names.".into()),
            );
        }
        if is_partition && partition_of.is_none() {
            // What was there went before core looked: the new partition takes values unseen.
            identity::refuse_replaced();
        }
        if let Some((name, parent)) = partition_of {
            identity::refuse_another(name, parent);
            attached::refuse_published(relid);
            partition::verify_default(parent, &[]);
        }
        storage::create_unless_used(relid);
        for request in requests.unwrap_or_else(|| constraints::index_requests(table, &taken)) {
            if !request.existing.is_null() {
                unsupported(
                    "cannot use an existing index in CREATE TABLE",
                    "Name the key's columns.",
                );
            }
            index::define(relid, request.statement, false);
        }
        Some(relid)
    }
}
