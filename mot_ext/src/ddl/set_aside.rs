//! Indexes over a column whose type changes: dropped before core's part and made again after it.
//!
//! Core would make them anew itself, for their keys may have another order, and refuses to on a foreign table. As in core's own doing, no right is asked
//! for it, no event trigger hears of it, and comments stay. An index that the statement itself drops is left to it.
use super::{identity, index, nodes, refuse};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys;
use pgrx::pg_sys::AlterTableType::*;
use pgrx::pg_sys::NodeTag::*;
use std::ffi::c_char;

/// The catalog's own oid, from catalog/pg_constraint.h, which the bindings lack.
const PG_CONSTRAINT: pg_sys::Oid = pg_sys::Oid::from_u32(2606);

/// Indexes that wait to be made again.
pub struct SetAside(Vec<Index>);

struct Index {
    table: pg_sys::Oid,
    index: pg_sys::Oid,
    /// What it serves, or `InvalidOid`.
    constraint: pg_sys::Oid,
    /// Numbers of its columns in the table.
    columns: Vec<i16>,
    /// What makes it.
    statement: *mut pg_sys::IndexStmt,
    /// Of the index and of the constraint; NULL: none.
    comments: [*mut c_char; 2],
}

/// Drops the indexes that some tables have over columns whose types the commands change. The first of the tables is the altered one, the others inherit
/// from it; the caller has locked them all exclusively.
pub unsafe fn set_aside(
    tables: &[pg_sys::Oid],
    commands: &[*mut pg_sys::AlterTableCmd],
) -> SetAside {
    let mut found: Vec<Index> = Vec::new();
    // SAFETY: live commands; locked tables.
    unsafe {
        let names_of = |subtype| {
            let of_subtype = commands
                .iter()
                .filter(move |command| (***command).subtype == subtype);
            of_subtype.map(|command| (**command).name)
        };
        for (position, table) in tables.iter().enumerate() {
            let retyped: Vec<i16> = names_of(AT_AlterColumnType)
                .map(|name| pg_sys::get_attnum(*table, name))
                .filter(|column| *column > 0)
                .collect();
            if retyped.is_empty() {
                continue;
            }
            let is_dropped = |index: &Index| {
                position == 0
                    && index.constraint != pg_sys::InvalidOid
                    && names_of(AT_DropConstraint)
                        .any(|name| nodes::text(name) == nodes::text((*index.statement).idxname))
            };
            let of_table = Index::all_of(*table).into_iter();
            found.extend(of_table.filter(|index| {
                index.columns.iter().any(|key| retyped.contains(key)) && !is_dropped(index)
            }));
        }
        for index in &found {
            for name in names_of(AT_DropNotNull) {
                index.refuse_nullable(name);
            }
        }
        for index in &found {
            index.drop();
        }
        if !found.is_empty() {
            pg_sys::CommandCounterIncrement();
        }
    }
    SetAside(found)
}

impl SetAside {
    /// Makes them again, but for those that would have gone with a column.
    pub unsafe fn make_again(&self) {
        for index in &self.0 {
            // SAFETY: the tables are locked.
            unsafe { index.make_again() };
        }
    }
}

impl Index {
    /// Those of a table, locked as they must be to be dropped.
    unsafe fn all_of(table: pg_sys::Oid) -> Vec<Index> {
        // SAFETY: the caller has locked the table.
        unsafe {
            let relation = pg_sys::table_open(table, pg_sys::NoLock as i32);
            let list = pg_sys::RelationGetIndexList(relation);
            let found = pgrx::PgList::<pg_sys::Oid>::from_pg(list)
                .iter_oid()
                .map(|index| Index::of(relation, index))
                .collect();
            pg_sys::table_close(relation, pg_sys::NoLock as i32);
            found
        }
    }

    unsafe fn of(table: pg_sys::Relation, index: pg_sys::Oid) -> Index {
        // SAFETY: an open table and the oid of an index of it; the form is read while the index is open.
        unsafe {
            let relation = pg_sys::index_open(index, pg_sys::AccessExclusiveLock as i32);
            let form = &*(*relation).rd_index;
            let columns = form.indkey.values.as_slice(form.indnatts as usize).to_vec();
            let constraint = pg_sys::get_index_constraint(index);
            let statement = if constraint == pg_sys::InvalidOid {
                written_out(index)
            } else {
                of_constraint(table, form, &columns)
            };
            pg_sys::index_close(relation, pg_sys::NoLock as i32);
            Index {
                table: (*table).rd_id,
                index,
                constraint,
                columns,
                statement,
                comments: [
                    pg_sys::GetComment(index, pg_sys::RelationRelationId, 0),
                    pg_sys::GetComment(constraint, PG_CONSTRAINT, 0),
                ],
            }
        }
    }

    /// Core would ask, but the primary key is not there when it does. Making it again would take the statement's word back in silence.
    unsafe fn refuse_nullable(&self, column: *const c_char) {
        // SAFETY: a locked table; the statement is ours.
        unsafe {
            let number = pg_sys::get_attnum(self.table, column);
            if (*self.statement).primary && self.columns.contains(&number) {
                refuse::raise(
                    PgSqlErrorCode::ERRCODE_INVALID_TABLE_DEFINITION,
                    format!("column \"{}\" is in a primary key", nodes::text(column)),
                    None,
                    None,
                );
            }
        }
    }

    unsafe fn drop(&self) {
        let (class, object) = if self.constraint == pg_sys::InvalidOid {
            (pg_sys::RelationRelationId, self.index)
        } else {
            (PG_CONSTRAINT, self.constraint)
        };
        let address = pg_sys::ObjectAddress {
            classId: class,
            objectId: object,
            objectSubId: 0,
        };
        // SAFETY: core's own step, of an object that is locked.
        unsafe {
            pg_sys::performDeletion(
                &raw const address,
                pg_sys::DropBehavior::DROP_RESTRICT,
                pg_sys::PERFORM_DELETION_INTERNAL as i32,
            );
        }
    }

    unsafe fn make_again(&self) {
        // SAFETY: the caller has locked the table; the statement is ours.
        unsafe {
            let table = pg_sys::table_open(self.table, pg_sys::NoLock as i32);
            let attributes = nodes::attributes(table);
            let is_gone = |column: &i16| attributes[*column as usize - 1].attisdropped;
            let has_gone = self.columns.iter().any(is_gone);
            pg_sys::table_close(table, pg_sys::NoLock as i32);
            if has_gone {
                return;
            }
            let index = index::define_again(self.table, self.statement);
            let [of_index, of_constraint] = self.comments;
            if !of_index.is_null() {
                pg_sys::CreateComments(index, pg_sys::RelationRelationId, 0, of_index);
            }
            if !of_constraint.is_null() {
                let constraint = pg_sys::get_index_constraint(index);
                pg_sys::CreateComments(constraint, PG_CONSTRAINT, 0, of_constraint);
            }
        }
    }
}

/// The statement that makes an index, by core's deparser: collations and operator classes are named as the session's path needs it.
unsafe fn written_out(index: pg_sys::Oid) -> *mut pg_sys::IndexStmt {
    // SAFETY: an index of a locked table; the text is one CREATE INDEX.
    unsafe {
        let text = pg_sys::pg_get_indexdef_string(index);
        let parsed = nodes::items::<pg_sys::RawStmt>(pg_sys::pg_parse_query(text));
        let [parsed] = parsed[..] else {
            unreachable!("an index is made by one statement");
        };
        debug_assert!(nodes::tag((*parsed).stmt) == T_IndexStmt);
        (*parsed).stmt.cast()
    }
}

/// The statement that makes a primary key or a unique constraint. (Core's deparser looks for it under the transaction's snapshot, from which it may be
/// hidden.)
unsafe fn of_constraint(
    table: pg_sys::Relation,
    form: &pg_sys::FormData_pg_index,
    columns: &[i16],
) -> *mut pg_sys::IndexStmt {
    // SAFETY: an open table and columns of it; the nodes are ours.
    unsafe {
        let attributes = nodes::attributes(table);
        let keys: Vec<_> = columns
            .iter()
            .map(|column| {
                let key = nodes::make::<pg_sys::IndexElem>(T_IndexElem);
                (*key).name =
                    nodes::pstrdup(&nodes::name(&attributes[*column as usize - 1].attname));
                key
            })
            .collect();
        let statement = nodes::make::<pg_sys::IndexStmt>(T_IndexStmt);
        (*statement).idxname = pg_sys::get_rel_name(form.indexrelid);
        (*statement).accessMethod = pg_sys::pstrdup(identity::INDEX_METHOD.as_ptr());
        (*statement).indexParams = nodes::list(&keys);
        (*statement).unique = true;
        (*statement).primary = form.indisprimary;
        (*statement).nulls_not_distinct = form.indnullsnotdistinct;
        (*statement).isconstraint = true;
        statement
    }
}
