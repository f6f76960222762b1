//! What queries over the catalogs call our indexes: btree.
//!
//! Programs ask `pg_class` and `pg_am` for an index's access method, and know what to do with a
//! btree alone. Django finds no other index to drop, TypeORM makes each other one anew at every
//! start, and pgJDBC reports no order of it. Our indexes are btrees in all that such a program
//! relies on: the operator classes are btree's, and `CREATE INDEX ... USING btree` makes one.
//!
//! So a query over the catalogs is planned as if they said btree:
//! - `pg_class.relam` of our indexes is btree's oid, also in a whole row, however a query continues
//!   from there: to the method's name, to its operator classes, or to a comparison with what it has
//!   read before;
//! - `pg_get_indexdef` and `pg_get_constraintdef` say `USING btree`.
//!
//! `pg_am` lists our method as the others. Nothing is stored otherwise, and
//! `mot.show_indexes_as_btree = off` shows the catalog itself.
//!
//! The rewriter has expanded views when the planner gets the query, so `pg_indexes` says the same.
//!
//! All of this is plain frames with nothing to drop, for errors of core jump over them, and calls
//! core without guards (`pg::version::tree`).
use crate::pg::list::cells;
use crate::pg::version::tree::{self, change_below, look_below};
use crate::planner::shown_sizes::{counterpart, returns_size};
use crate::shared_memory::settings::SHOW_INDEXES_AS_BTREE;
use crate::storage;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;
use std::ffi::{CStr, c_void};

/// The column of `pg_class` with the access method.
const METHOD: pg_sys::AttrNumber = pg_sys::Anum_pg_class_relam as pg_sys::AttrNumber;

/// That with the oid, and how many there are.
const OWN_OID: pg_sys::AttrNumber = pg_sys::Anum_pg_class_oid as pg_sys::AttrNumber;
const COLUMNS: pg_sys::AttrNumber = pg_sys::Natts_pg_class as pg_sys::AttrNumber;

/// `=` of oids, and `regexp_replace` of the first match.
const OID_EQUAL: u32 = 607;
const REPLACE_FIRST: u32 = pg_sys::F_REGEXP_REPLACE_TEXT_TEXT_TEXT;

/// What a definition begins with, up to the access method: names may be quoted.
const INDEX_PATTERN: &CStr =
    c"^(CREATE (?:UNIQUE )?INDEX (?:[^ \".]+|\"(?:[^\"]|\"\")*\") ON (?:ONLY )?\
      (?:[^ \".]+|\"(?:[^\"]|\"\")*\")(?:\\.(?:[^ \".]+|\"(?:[^\"]|\"\")*\"))? USING )mot_index ";
const CONSTRAINT_PATTERN: &CStr =
    c"^((?:CONSTRAINT (?:[^ \".]+|\"(?:[^\"]|\"\")*\") )?EXCLUDE USING )mot_index ";
const REPLACEMENT: &CStr = c"\\1btree ";

/// Queries in one another that are examined; those further in are left as they are.
const QUERIES_DEEP_MAX: usize = 64;

/// A walk over a query.
struct Walk {
    /// Our access method; invalid if it is not shown as btree.
    ours: pg_sys::Oid,
    /// The queries around the present node, the outermost first.
    queries: [*mut pg_sys::Query; QUERIES_DEEP_MAX],
    depth: usize,
}

/// The query as it is to be planned: itself, or a copy in which our indexes are btrees, and sizes
/// are those in memory.
///
/// # Safety
/// A query that the planner is about to plan. The caller is a plain frame.
pub unsafe fn shown(query: *mut pg_sys::Query) -> *mut pg_sys::Query {
    // SAFETY: the caller's query, and a context that outlives the walk.
    unsafe {
        if !asks(query.cast(), std::ptr::null_mut()) {
            return query;
        }
        let ours = match SHOW_INDEXES_AS_BTREE.get() {
            true => tree::access_method(storage::INDEX_METHOD),
            false => pg_sys::InvalidOid,
        };
        let mut walk = Walk {
            ours,
            queries: [std::ptr::null_mut(); QUERIES_DEEP_MAX],
            depth: 0,
        };
        changed(query.cast(), (&raw mut walk).cast()).cast()
    }
}

/// Whether a node may ask for an access method, or for a definition that names one.
unsafe extern "C-unwind" fn asks(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: core's walker calls this with nodes of the query.
    unsafe {
        match (*node).type_ {
            T_Query => {
                let query = node.cast::<pg_sys::Query>();
                (*query).commandType != pg_sys::CmdType::CMD_UTILITY
                    && look_below(node, asks, context)
            }
            T_Var => is_like_method(node.cast()) || is_like_row(node.cast()),
            T_FuncExpr if pattern_of(node.cast()).is_some() => true,
            T_FuncExpr if returns_size((*node.cast::<pg_sys::FuncExpr>()).funcid) => true,
            _ => look_below(node, asks, context),
        }
    }
}

/// Whether a column has the number and type of the one with the access method.
unsafe fn is_like_method(column: *const pg_sys::Var) -> bool {
    // SAFETY: a column.
    unsafe { (*column).varattno == METHOD && (*column).vartype == pg_sys::OIDOID }
}

/// Whether a column is a whole row of `pg_class`'s type.
unsafe fn is_like_row(column: *const pg_sys::Var) -> bool {
    // SAFETY: a column.
    unsafe {
        (*column).varattno == pg_sys::InvalidAttrNumber as pg_sys::AttrNumber
            && (*column).vartype.to_u32() == pg_sys::RelationRelation_Rowtype_Id
    }
}

/// Whether a column is of a query's table, and that is `pg_class`, which is read.
unsafe fn is_of_relations(query: *mut pg_sys::Query, column: *const pg_sys::Var) -> bool {
    // SAFETY: a column of the query, whose range table has entries of this type.
    unsafe {
        (*column).varno != (*query).resultRelation
            && cells::<pg_sys::RangeTblEntry>((*query).rtable)
                .get((*column).varno as usize - 1)
                .is_some_and(|table| {
                    (**table).rtekind == pg_sys::RTEKind::RTE_RELATION
                        && (**table).relid == pg_sys::RelationRelationId
                })
    }
}

/// The pattern for the result of a function that gives a definition.
unsafe fn pattern_of(call: *const pg_sys::FuncExpr) -> Option<&'static CStr> {
    // SAFETY: a function call.
    match unsafe { (*call).funcid.to_u32() } {
        1643 | pg_sys::F_PG_GET_INDEXDEF_OID_INT4_BOOL => Some(INDEX_PATTERN),
        1387 | pg_sys::F_PG_GET_CONSTRAINTDEF_OID_BOOL => Some(CONSTRAINT_PATTERN),
        _ => None,
    }
}

/// What is to be planned instead of a node.
unsafe extern "C-unwind" fn changed(
    node: *mut pg_sys::Node,
    context: *mut c_void,
) -> *mut pg_sys::Node {
    if node.is_null() {
        return node;
    }
    // SAFETY: core's mutator calls this with nodes of the query and our context.
    unsafe {
        let walk = &mut *context.cast::<Walk>();
        match (*node).type_ {
            T_Query => {
                if walk.depth == QUERIES_DEEP_MAX {
                    return node;
                }
                walk.queries[walk.depth] = node.cast();
                walk.depth += 1;
                let query = change_below(node, changed, context);
                walk.depth -= 1;
                query
            }
            T_Var if is_like_method(node.cast()) && is_shown(walk, node.cast()) => {
                as_btree(walk.ours, node.cast())
            }
            T_Var if is_like_row(node.cast()) && is_shown(walk, node.cast()) => {
                with_btree(walk.ours, node.cast())
            }
            T_FuncExpr => {
                let call = change_below(node, changed, context).cast::<pg_sys::FuncExpr>();
                match pattern_of(call).filter(|_| walk.ours != pg_sys::InvalidOid) {
                    Some(pattern) => replaced(call.cast(), pattern),
                    None => {
                        (*call).funcid = counterpart((*call).funcid);
                        call.cast()
                    }
                }
            }
            _ => change_below(node, changed, context),
        }
    }
}

/// Whether a column, or a whole row, is of `pg_class`, and is shown otherwise than it is.
unsafe fn is_shown(walk: &Walk, column: *const pg_sys::Var) -> bool {
    // SAFETY: a column of one of the queries around it, which has such a table.
    unsafe {
        let levels_up = (*column).varlevelsup as usize;
        walk.ours != pg_sys::InvalidOid
            && walk
                .depth
                .checked_sub(levels_up + 1)
                .is_some_and(|level| is_of_relations(walk.queries[level], column))
    }
}

/// `CASE WHEN method = ours THEN btree ELSE method END`.
unsafe fn as_btree(ours: pg_sys::Oid, method: *mut pg_sys::Var) -> *mut pg_sys::Node {
    // SAFETY: nodes as the parser makes them, in the planner's memory; a plain frame.
    unsafe {
        let oid = (pg_sys::OIDOID, 4, pg_sys::InvalidOid);
        let ours = tree::constant(oid, pg_sys::Datum::from(ours), true);
        let is_ours = tree::new_node::<pg_sys::OpExpr>(T_OpExpr);
        (*is_ours).opno = pg_sys::Oid::from(OID_EQUAL);
        (*is_ours).opfuncid = pg_sys::Oid::from(pg_sys::F_OIDEQ);
        (*is_ours).opresulttype = pg_sys::BOOLOID;
        (*is_ours).args = tree::list_of_nodes([tree::copied(method).cast(), ours]);
        let when = tree::new_node::<pg_sys::CaseWhen>(T_CaseWhen);
        (*when).expr = is_ours.cast();
        (*when).result =
            tree::constant(oid, pg_sys::Datum::from(pg_sys::BTREE_AM_OID), true).cast();
        let case = tree::new_node::<pg_sys::CaseExpr>(T_CaseExpr);
        (*case).casetype = pg_sys::OIDOID;
        (*case).args = tree::list_of_nodes([when.cast()]);
        (*case).defresult = tree::copied(method).cast();
        case.cast()
    }
}

/// `CASE WHEN oid IS NOT NULL THEN ROW(oid, ..., relam as btree, ...) ELSE NULL END`: an outer join
/// may have no row.
unsafe fn with_btree(ours: pg_sys::Oid, row: *mut pg_sys::Var) -> *mut pg_sys::Node {
    // SAFETY: as for `as_btree`; `pg_class` has so many columns, none of them dropped.
    unsafe {
        let relations = pg_sys::RelationRelationId;
        let column = |number| {
            let column = tree::column_of_row(row, relations, number);
            match number == METHOD {
                true => as_btree(ours, column),
                false => column.cast(),
            }
        };
        let columns = tree::new_node::<pg_sys::RowExpr>(T_RowExpr);
        (*columns).args = tree::list_of_nodes((1..=COLUMNS).map(column));
        (*columns).row_typeid = (*row).vartype;
        (*columns).row_format = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
        (*columns).location = -1;
        let is_there = tree::new_node::<pg_sys::NullTest>(T_NullTest);
        (*is_there).arg = tree::column_of_row(row, relations, OWN_OID).cast();
        (*is_there).nulltesttype = pg_sys::NullTestType::IS_NOT_NULL;
        (*is_there).location = -1;
        let when = tree::new_node::<pg_sys::CaseWhen>(T_CaseWhen);
        (*when).expr = is_there.cast();
        (*when).result = columns.cast();
        let case = tree::new_node::<pg_sys::CaseExpr>(T_CaseExpr);
        (*case).casetype = (*row).vartype;
        (*case).args = tree::list_of_nodes([when.cast()]);
        (*case).defresult = tree::null((*row).vartype).cast();
        case.cast()
    }
}

/// `regexp_replace(call, pattern, replacement)`.
unsafe fn replaced(call: *mut pg_sys::Node, pattern: &CStr) -> *mut pg_sys::Node {
    // SAFETY: as for `as_btree`.
    unsafe {
        let text = (pg_sys::TEXTOID, -1, pg_sys::C_COLLATION_OID);
        let pattern = tree::constant(text, tree::text(pattern), false);
        let replacement = tree::constant(text, tree::text(REPLACEMENT), false);
        let function = tree::new_node::<pg_sys::FuncExpr>(T_FuncExpr);
        (*function).funcid = pg_sys::Oid::from(REPLACE_FIRST);
        (*function).funcresulttype = pg_sys::TEXTOID;
        (*function).funccollid = pg_sys::DEFAULT_COLLATION_OID;
        (*function).inputcollid = pg_sys::C_COLLATION_OID;
        (*function).args = tree::list_of_nodes([call, pattern, replacement]);
        function.cast()
    }
}
