//! COPY of memory-optimized tables.
//!
//! | statement | here |
//! |---|---|
//! | COPY table FROM | core's, through the wrapper. FREEZE is ignored, with a NOTICE: rows need no freezing, and are seen when the transaction commits |
//! | COPY table TO | core refuses foreign tables, so it gets COPY (SELECT ... FROM ONLY table) TO |
use super::refuse::raise;
use super::utility::Statement;
use super::{identity, nodes};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;
use pgrx::prelude::*;

/// COPY table TO, and COPY ... FROM with FREEZE.
pub unsafe fn statement(statement: &Statement, node: *mut pg_sys::CopyStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        if (*node).relation.is_null() {
            return false;
        }
        if !(*node).is_from {
            return copy_to(statement, node);
        }
        let options = nodes::items::<pg_sys::DefElem>((*node).options);
        let (freeze, _): (Vec<_>, Vec<_>) = options
            .into_iter()
            .partition(|option| nodes::text((**option).defname) == "freeze");
        if freeze.is_empty() || !identity::is_mot_table(identity::lookup((*node).relation)) {
            return false;
        }
        for option in &freeze {
            if pg_sys::defGetBoolean(*option) {
                notice!("FREEZE has no effect: rows of a memory-optimized table need no freezing");
            }
        }
        let node = nodes::copy(node);
        let kept: Vec<_> = nodes::items::<pg_sys::DefElem>((*node).options)
            .into_iter()
            .filter(|option| nodes::text((**option).defname) != "freeze")
            .collect();
        (*node).options = nodes::list(&kept);
        statement.run(node);
        true
    }
}

/// COPY table TO: of a query that gives what core gives of a heap table. Its children's rows are not in it, nor are generated columns.
unsafe fn copy_to(statement: &Statement, node: *mut pg_sys::CopyStmt) -> bool {
    // SAFETY: a live node of this type; new nodes are ours.
    unsafe {
        let relid = identity::lookup((*node).relation);
        if !identity::is_mot_table(relid) {
            return false;
        }
        let node = nodes::copy(node);
        let from = (*node).relation;
        (*from).inh = false;
        let select = nodes::make::<pg_sys::SelectStmt>(T_SelectStmt);
        (*select).targetList = nodes::list(&copied_columns(relid, (*node).attlist));
        (*select).fromClause = nodes::list(&[from]);
        (*node).relation = std::ptr::null_mut();
        (*node).attlist = std::ptr::null_mut();
        (*node).query = select.cast();
        statement.run(node);
        true
    }
}

/// What COPY of these columns gives; of none: of all but generated ones.
unsafe fn copied_columns(
    relid: pg_sys::Oid,
    named: *mut pg_sys::List,
) -> Vec<*mut pg_sys::ResTarget> {
    // SAFETY: a list of String nodes. The table is closed before anything is run.
    unsafe {
        let table = pg_sys::table_open(relid, pg_sys::AccessShareLock as i32);
        let table_name = nodes::name(&(*(*table).rd_rel).relname);
        let columns: Vec<(String, bool)> = nodes::attributes(table)
            .iter()
            .filter(|column| !column.attisdropped)
            .map(|column| (nodes::name(&column.attname), column.attgenerated != 0))
            .collect();
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        let wanted: Vec<String> = if named.is_null() {
            let is_copied = |column: (String, bool)| (!column.1).then_some(column.0);
            columns.into_iter().filter_map(is_copied).collect()
        } else {
            let wanted: Vec<String> = nodes::items::<pg_sys::Node>(named)
                .into_iter()
                .map(|name| nodes::text(nodes::string(name)))
                .collect();
            for (position, name) in wanted.iter().enumerate() {
                let column = columns.iter().find(|(column, _)| column == name);
                let is_repeated = wanted[..position].contains(name);
                refuse_column(&table_name, name, column, is_repeated);
            }
            wanted
        };
        wanted.iter().map(|name| result_column(name)).collect()
    }
}

/// Raises what core raises of a column that COPY names; with each that the table has, whether it is generated.
fn refuse_column(table: &str, name: &str, column: Option<&(String, bool)>, is_repeated: bool) {
    let (code, message, detail) = match column {
        None => (
            PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
            format!("column \"{name}\" of relation \"{table}\" does not exist"),
            None,
        ),
        Some((_, true)) => (
            PgSqlErrorCode::ERRCODE_INVALID_COLUMN_REFERENCE,
            format!("column \"{name}\" is a generated column"),
            Some("Generated columns cannot be used in COPY.".into()),
        ),
        Some(_) if is_repeated => (
            PgSqlErrorCode::ERRCODE_DUPLICATE_COLUMN,
            format!("column \"{name}\" specified more than once"),
            None,
        ),
        Some(_) => return,
    };
    raise(code, message, detail, None)
}

/// A column of the one table in FROM, as a SELECT's target.
unsafe fn result_column(name: &str) -> *mut pg_sys::ResTarget {
    // SAFETY: fresh nodes.
    unsafe {
        let reference = nodes::make::<pg_sys::ColumnRef>(T_ColumnRef);
        (*reference).fields = nodes::list(&[pg_sys::makeString(nodes::pstrdup(name))]);
        (*reference).location = -1;
        let target = nodes::make::<pg_sys::ResTarget>(T_ResTarget);
        (*target).val = reference.cast();
        (*target).location = -1;
        target
    }
}
