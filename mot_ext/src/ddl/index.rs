//! CREATE INDEX, and the index behind a constraint.
//!
//! This is core's `DefineIndex` for a foreign table, which core refuses: it names and checks the index as core does, lets
//! `index_create` make real catalog rows without a build, and has the engine build the entries from the table's rows. Locks
//! are core's: ShareLock for CREATE INDEX, AccessExclusiveLock for a constraint, held to the end of the transaction.
use super::constraints::Request;
use super::index_columns::{choose_name, column_names, resolve};
use super::refuse::{raise, unsupported};
use super::utility::{Statement, refuse_read_only};
use super::{alter, event_triggers, identity, nodes, storage};
use crate::pg::{report, version};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;
use pgrx::prelude::*;
use std::ffi::{CStr, c_char};

/// CREATE INDEX on a memory-optimized table.
pub unsafe fn create(statement: &Statement, node: *mut pg_sys::IndexStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        if !identity::is_mot_table(identity::lookup((*node).relation)) {
            return of_copied_table(statement, node);
        }
        refuse_read_only(c"CREATE INDEX");
        let node = nodes::copy(node);
        let command = event_triggers::Command::begin(statement, node);
        if (*node).concurrent {
            // Writers are few and short here; what remains of CONCURRENTLY is its promise not to run in a transaction.
            pg_sys::PreventInTransactionBlock(
                statement.is_top_level(),
                c"CREATE INDEX CONCURRENTLY".as_ptr(),
            );
        }
        let relid = pg_sys::RangeVarGetRelidExtended(
            (*node).relation,
            pg_sys::ShareLock as i32,
            0,
            Some(identity::check_ownership),
            std::ptr::null_mut(),
        );
        identity::recheck(relid);
        command.has_made(define(relid, node, false));
        command.end();
        true
    }
}

/// An index of a heap table made like a memory-optimized one (LIKE ... INCLUDING INDEXES), which core copies with its access method.
unsafe fn of_copied_table(statement: &Statement, node: *mut pg_sys::IndexStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        let names_ours = CStr::from_ptr((*node).accessMethod) == identity::INDEX_METHOD;
        if !statement.is_part() || !names_ours {
            return false;
        }
        let node = nodes::copy(node);
        (*node).accessMethod = nodes::pstrdup("btree");
        statement.run(node);
        true
    }
}

/// Raises 42P16 for a table that has a primary key. Core asks, too, but after the columns of the new one were made NOT NULL.
unsafe fn refuse_second_primary_key(table: pg_sys::Relation) {
    // SAFETY: an open relation; reading its indexes notes which is the primary key's.
    unsafe {
        pg_sys::list_free(pg_sys::RelationGetIndexList(table));
        if (*table).rd_pkindex != pg_sys::InvalidOid {
            let name = nodes::name(&(*(*table).rd_rel).relname);
            raise(
                PgSqlErrorCode::ERRCODE_INVALID_TABLE_DEFINITION,
                format!("multiple primary keys for table \"{name}\" are not allowed"),
                None,
                None,
            );
        }
    }
}

/// Makes an index, or the index and the constraint it serves; `InvalidOid` if IF NOT EXISTS found one of that name.
///
/// The caller holds the lock and has checked that the table is its own.
pub unsafe fn define(
    relid: pg_sys::Oid,
    stmt: *mut pg_sys::IndexStmt,
    is_alter_table: bool,
) -> pg_sys::Oid {
    // SAFETY: the caller's promises are the same.
    unsafe { make(relid, stmt, is_alter_table, true) }
}

/// Makes an index again that an ALTER TABLE has dropped for a while: no right is asked, as core asks none.
pub unsafe fn define_again(relid: pg_sys::Oid, stmt: *mut pg_sys::IndexStmt) -> pg_sys::Oid {
    // SAFETY: the caller's promises are those of `define`.
    unsafe { make(relid, stmt, true, false) }
}

unsafe fn make(
    relid: pg_sys::Oid,
    stmt: *mut pg_sys::IndexStmt,
    is_alter_table: bool,
    asks_rights: bool,
) -> pg_sys::Oid {
    // SAFETY: a live statement that the caller owns; the table is open and locked for the whole function.
    unsafe {
        let mut table = pg_sys::table_open(relid, pg_sys::NoLock as i32);
        let table_name = nodes::name(&(*(*table).rd_rel).relname);
        let namespace = (*(*table).rd_rel).relnamespace;
        let what = if is_alter_table {
            c"ALTER TABLE"
        } else {
            c"CREATE INDEX"
        };
        pg_sys::CheckTableNotInUse(table, what.as_ptr());
        check_supported(stmt);
        if asks_rights {
            check_namespace(namespace);
        }

        if (*stmt).primary {
            refuse_second_primary_key(table);
            table = alter::ensure_not_null(table, stmt);
        }
        let elements = nodes::items::<pg_sys::IndexElem>((*stmt).indexParams);
        let key_count = elements.len();
        if key_count > pg_sys::INDEX_MAX_KEYS as usize {
            raise(
                PgSqlErrorCode::ERRCODE_TOO_MANY_COLUMNS,
                format!(
                    "cannot use more than {} columns in an index",
                    pg_sys::INDEX_MAX_KEYS
                ),
                None,
                None,
            );
        }
        let names = column_names(&elements);
        let index_name = if (*stmt).idxname.is_null() {
            choose_name(&table_name, namespace, &names, stmt)
        } else {
            (*stmt).idxname
        };

        let am = identity::access_method();
        let info =
            version::make_index_info(key_count, am, (*stmt).unique, (*stmt).nulls_not_distinct);
        let mut collations = Vec::with_capacity(key_count);
        let mut classes = Vec::with_capacity(key_count);
        let mut options = Vec::with_capacity(key_count);
        for (position, element) in elements.iter().enumerate() {
            let column = resolve(table, *element, am, (*stmt).isconstraint);
            (*info).ii_IndexAttrNumbers[position] = column.attnum;
            collations.push(column.collation);
            classes.push(column.class);
            options.push(column.option);
        }
        if (*stmt).primary {
            pg_sys::index_check_primary_key(table, info, is_alter_table, stmt);
        }

        let mut flags = pg_sys::INDEX_CREATE_SKIP_BUILD;
        if (*stmt).isconstraint {
            flags |= pg_sys::INDEX_CREATE_ADD_CONSTRAINT;
        }
        if (*stmt).primary {
            flags |= pg_sys::INDEX_CREATE_IS_PRIMARY;
        }
        if (*stmt).if_not_exists {
            flags |= pg_sys::INDEX_CREATE_IF_NOT_EXISTS;
        }
        let index = version::create_index(version::NewIndex {
            table,
            name: index_name,
            info,
            columns: nodes::list(&names),
            am,
            collations: &mut collations,
            classes: &mut classes,
            options: &mut options,
            flags,
        });
        if index != pg_sys::InvalidOid {
            storage::build_index(table, index);
        }
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        index
    }
}

/// ALTER TABLE ... ADD CONSTRAINT ... USING INDEX: core's checks, for an index of ours.
pub unsafe fn constraint_using_index(relid: pg_sys::Oid, request: &Request) {
    // SAFETY: the statement's own nodes; the caller holds AccessExclusiveLock on the table.
    unsafe {
        let stmt = request.statement;
        let mut table = pg_sys::table_open(relid, pg_sys::NoLock as i32);
        let wanted = nodes::text(request.existing);
        let oid = pg_sys::get_relname_relid(request.existing, (*(*table).rd_rel).relnamespace);
        if oid == pg_sys::InvalidOid {
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
                format!("index \"{wanted}\" does not exist"),
                None,
                None,
            );
        }
        let index = pg_sys::index_open(oid, pg_sys::AccessShareLock as i32);
        refuse_unfit(table, index, &wanted);
        let info = pg_sys::BuildIndexInfo(index);
        (*stmt).indexParams = nodes::list(&elements_of(table, index, info, &wanted));
        let mut name = request.existing;
        if !(*stmt).idxname.is_null() && nodes::text((*stmt).idxname) != wanted {
            report::notice(&format!(
                "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{wanted}\" to \"{}\"",
                nodes::text((*stmt).idxname)
            ));
            pg_sys::RenameRelationInternal(oid, (*stmt).idxname, false, true);
            name = (*stmt).idxname;
        }
        if (*stmt).primary {
            refuse_second_primary_key(table);
            table = alter::ensure_not_null(table, stmt);
            pg_sys::index_check_primary_key(table, info, true, stmt);
        }
        // CONSTRAINT_PRIMARY and CONSTRAINT_UNIQUE of catalog/pg_constraint.h.
        let (kind, mark) = if (*stmt).primary {
            (b'p', pg_sys::INDEX_CONSTR_CREATE_MARK_AS_PRIMARY)
        } else {
            (b'u', 0)
        };
        let flags = pg_sys::INDEX_CONSTR_CREATE_UPDATE_INDEX
            | pg_sys::INDEX_CONSTR_CREATE_REMOVE_OLD_DEPS
            | mark;
        pg_sys::index_constraint_create(
            table,
            oid,
            pg_sys::InvalidOid,
            info,
            name,
            kind as c_char,
            flags as pg_sys::bits16,
            false,
            false,
        );
        pg_sys::index_close(index, pg_sys::NoLock as i32);
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        pg_sys::CommandCounterIncrement();
    }
}

/// Raises for an index that no constraint of the table can have.
unsafe fn refuse_unfit(table: pg_sys::Relation, index: pg_sys::Relation, wanted: &str) {
    // SAFETY: open relations, the second an index.
    unsafe {
        let form = &*(*index).rd_index;
        let not_ready = |message: String| -> ! {
            raise(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                message,
                None,
                None,
            )
        };
        if pg_sys::get_index_constraint(form.indexrelid) != pg_sys::InvalidOid {
            not_ready(format!(
                "index \"{wanted}\" is already associated with a constraint"
            ));
        }
        if form.indrelid != (*table).rd_id {
            not_ready(format!(
                "index \"{wanted}\" does not belong to table \"{}\"",
                nodes::name(&(*(*table).rd_rel).relname)
            ));
        }
        if !form.indisunique {
            refuse_index(format!("\"{wanted}\" is not a unique index"));
        }
    }
}

/// An index's columns as a statement's; raises for one that is not as a constraint would have made it.
unsafe fn elements_of(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
    wanted: &str,
) -> Vec<*mut pg_sys::IndexElem> {
    // SAFETY: open relations; the index has an option, a collation and a column number for each key column, and is the table's.
    unsafe {
        let mut elements = Vec::new();
        for position in 0..(*(*index).rd_index).indnkeyatts as usize {
            let attnum = (*info).ii_IndexAttrNumbers[position];
            let attribute = &nodes::attributes(table)[attnum as usize - 1];
            if *(*index).rd_indoption.add(position) != 0
                || *(*index).rd_indcollation.add(position) != attribute.attcollation
            {
                refuse_index(format!(
                    "index \"{wanted}\" column number {} does not have default sorting behavior",
                    position + 1
                ));
            }
            let element = nodes::make::<pg_sys::IndexElem>(T_IndexElem);
            (*element).name = nodes::pstrdup(&nodes::name(&attribute.attname));
            elements.push(element);
        }
        elements
    }
}

/// Raises 42809 for an index of another kind than a constraint's.
fn refuse_index(message: String) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        message,
        Some("Cannot create a primary key or unique constraint using such an index.".into()),
        None,
    )
}

/// Raises for what no index here can have, and drops what has no meaning.
unsafe fn check_supported(stmt: *mut pg_sys::IndexStmt) {
    // SAFETY: a live statement that the caller owns.
    unsafe {
        let method = CStr::from_ptr((*stmt).accessMethod);
        let is_ours = [c"btree", c"mot", identity::INDEX_METHOD].contains(&method);
        if !is_ours {
            let method = nodes::text(method.as_ptr());
            unsupported(
                format!("access method \"{method}\" is not supported on memory-optimized tables"),
                "Leave USING out: the only access method is \"mot_foreign_index\", an ordered index.",
            );
        }
        if !(*stmt).whereClause.is_null() {
            unsupported(
                "partial indexes are not supported on memory-optimized tables",
                "Create the index without WHERE.",
            );
        }
        if !(*stmt).indexIncludingParams.is_null() {
            refuse_include();
        }
        if !(*stmt).excludeOpNames.is_null() || (*stmt).deferrable || (*stmt).initdeferred {
            unsupported(
                "exclusion and deferrable constraints are not supported on memory-optimized tables",
                "Use UNIQUE without DEFERRABLE.",
            );
        }
        super::create_table::ignore_tablespace((*stmt).tableSpace);
        if !(*stmt).options.is_null() {
            super::create_table::say_parameters_have_no_effect();
        }
    }
}

/// Raises 0A000 for INCLUDE.
pub fn refuse_include() -> ! {
    unsupported(
        "included columns are not supported in indexes of memory-optimized tables",
        "Leave INCLUDE out: an index entry leads to the whole row, in memory.",
    )
}

unsafe fn check_namespace(namespace: pg_sys::Oid) {
    // SAFETY: catalog look-ups.
    unsafe {
        let acl = version::may_create_in(namespace);
        if acl != pg_sys::AclResult::ACLCHECK_OK {
            pg_sys::aclcheck_error(
                acl,
                pg_sys::ObjectType::OBJECT_SCHEMA,
                pg_sys::get_namespace_name(namespace),
            );
        }
    }
}
