//! What queries over the catalogs call our indexes: btree.
//!
//! Programs ask `pg_am` for an index's access method, and know what to do with a btree alone.
//! Django finds no other index to drop, TypeORM makes each other one anew at every start, and
//! pgJDBC tells no order of it. Our indexes are btrees in all that such a program relies on: the
//! operator classes are btree's, and `CREATE INDEX ... USING btree` makes one.
//!
//! So a query that looks an index's access method up is planned as if the catalog said btree:
//! - `pg_am.amname` of our method is `btree`;
//! - `pg_get_indexdef` and `pg_get_constraintdef` say `USING btree`.
//!
//! A query that looks nothing up, over `pg_am` alone, is left as it is: it asks which methods there
//! are, and which of them is core's. Nothing is stored otherwise, and
//! `mot.show_indexes_as_btree = off` shows the catalog itself.
//!
//! The rewriter has expanded views when the planner gets the query, so `pg_indexes` says the same.
//!
//! All of this is plain frames with nothing to drop, for errors of core jump over them, and calls
//! core without guards (`pg::version::tree`).
use crate::pg::list::cells;
use crate::pg::version::tree::{self, change_below, look_below};
use crate::shared_memory::settings::SHOW_INDEXES_AS_BTREE;
use crate::storage;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;
use std::ffi::{CStr, c_void};

/// Columns of `pg_am`.
const METHOD_OID: pg_sys::AttrNumber = 1;
const METHOD_NAME: pg_sys::AttrNumber = 2;

/// `=` of oids, and `regexp_replace` of the first match.
const OID_EQUAL: u32 = 607;
const REPLACE_FIRST: u32 = pg_sys::F_REGEXP_REPLACE_TEXT_TEXT_TEXT;

/// What a definition begins with, up to the access method: names may be quoted.
const INDEX_PATTERN: &CStr = c"^(CREATE (?:UNIQUE )?INDEX (?:[^ \".]+|\"(?:[^\"]|\"\")*\") ON (?:ONLY )?(?:[^ \".]+|\"(?:[^\"]|\"\")*\")(?:\\.(?:[^ \".]+|\"(?:[^\"]|\"\")*\"))? USING )mot_index ";
const CONSTRAINT_PATTERN: &CStr =
    c"^((?:CONSTRAINT (?:[^ \".]+|\"(?:[^\"]|\"\")*\") )?EXCLUDE USING )mot_index ";
const REPLACEMENT: &CStr = c"\\1btree ";

/// Queries in one another that are looked at; those further in are left as they are.
const QUERIES_DEEP_MAX: usize = 64;

/// A walk over a query.
struct Walk {
    /// Our access method.
    ours: pg_sys::Oid,
    /// The queries around the present node, the outermost first.
    queries: [*mut pg_sys::Query; QUERIES_DEEP_MAX],
    depth: usize,
}

/// The query as it is to be planned: itself, or a copy in which our indexes are btrees.
///
/// # Safety
/// A query that the planner is about to plan. The caller is a plain frame.
pub unsafe fn show_as_btree(query: *mut pg_sys::Query) -> *mut pg_sys::Query {
    if !SHOW_INDEXES_AS_BTREE.get() {
        return query;
    }
    // SAFETY: the caller's query, and a context that outlives the walk.
    unsafe {
        if !asks(query.cast(), std::ptr::null_mut()) {
            return query;
        }
        let ours = tree::access_method(storage::INDEX_METHOD);
        if ours == pg_sys::InvalidOid {
            return query;
        }
        let mut walk = Walk {
            ours,
            queries: [std::ptr::null_mut(); QUERIES_DEEP_MAX],
            depth: 0,
        };
        changed(query.cast(), (&raw mut walk).cast()).cast()
    }
}

/// Whether a node asks for an access method, or for a definition that names one.
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
                    && (looks_methods_up(query) || look_below(node, asks, context))
            }
            T_FuncExpr if pattern_of(node.cast()).is_some() => true,
            _ => look_below(node, asks, context),
        }
    }
}

/// Whether a query looks methods up: it joins `pg_am` with something, or asks it for a column of
/// the query around it.
unsafe fn looks_methods_up(query: *mut pg_sys::Query) -> bool {
    // SAFETY: a query's range table and its FROM have entries of these types.
    unsafe {
        let tables = cells::<pg_sys::RangeTblEntry>((*query).rtable);
        if (*query).commandType != pg_sys::CmdType::CMD_SELECT
            || !tables.iter().any(|table| is_methods(*table))
        {
            return false;
        }
        // The range table of a view has entries that are not read.
        let from = match (*query).jointree.is_null() {
            true => &[],
            false => cells::<pg_sys::Node>((*(*query).jointree).fromlist),
        };
        let is_join = |node: &*mut pg_sys::Node| (**node).type_ == T_JoinExpr;
        from.len() > 1 || from.iter().any(is_join) || tree::refers_outward(query)
    }
}

/// Whether a table of a query is `pg_am`.
fn is_methods(table: *mut pg_sys::RangeTblEntry) -> bool {
    // SAFETY: an entry of a range table.
    unsafe {
        (*table).rtekind == pg_sys::RTEKind::RTE_RELATION
            && (*table).relid == pg_sys::AccessMethodRelationId
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
            T_Var if is_name_of_method(walk, node.cast()) => named(walk.ours, node.cast()),
            T_FuncExpr => {
                let pattern = pattern_of(node.cast());
                let call = change_below(node, changed, context);
                match pattern {
                    Some(pattern) => replaced(call.cast(), pattern),
                    None => call,
                }
            }
            _ => change_below(node, changed, context),
        }
    }
}

/// Whether a column is the name of an access method that is looked up.
unsafe fn is_name_of_method(walk: &Walk, column: *const pg_sys::Var) -> bool {
    // SAFETY: a column of one of the queries around it, which has such a table.
    unsafe {
        let levels_up = (*column).varlevelsup as usize;
        let Some(level) = walk.depth.checked_sub(levels_up + 1) else {
            return false;
        };
        let query = walk.queries[level];
        (*column).varattno == METHOD_NAME
            && looks_methods_up(query)
            && cells::<pg_sys::RangeTblEntry>((*query).rtable)
                .get((*column).varno as usize - 1)
                .is_some_and(|table| is_methods(*table))
    }
}

/// `CASE WHEN oid = ours THEN 'btree' ELSE name END`.
unsafe fn named(ours: pg_sys::Oid, name: *mut pg_sys::Var) -> *mut pg_sys::Node {
    const NAME_BYTES: usize = size_of::<pg_sys::NameData>();
    // SAFETY: nodes as the parser makes them, in the planner's memory; a plain frame.
    unsafe {
        let method = tree::copied(name);
        (*method).varattno = METHOD_OID;
        (*method).varattnosyn = METHOD_OID;
        (*method).vartype = pg_sys::OIDOID;
        (*method).varcollid = pg_sys::InvalidOid;
        let oid = (pg_sys::OIDOID, 4, pg_sys::InvalidOid);
        let is_ours = tree::new_node::<pg_sys::OpExpr>(T_OpExpr);
        (*is_ours).opno = pg_sys::Oid::from(OID_EQUAL);
        (*is_ours).opfuncid = pg_sys::Oid::from(pg_sys::F_OIDEQ);
        (*is_ours).opresulttype = pg_sys::BOOLOID;
        let ours = tree::constant(oid, pg_sys::Datum::from(ours), true);
        (*is_ours).args = tree::list_of_nodes([method.cast(), ours]);
        let btree = tree::new_bytes::<NAME_BYTES>(c"btree");
        let name_type = (pg_sys::NAMEOID, NAME_BYTES as i32, pg_sys::C_COLLATION_OID);
        let when = tree::new_node::<pg_sys::CaseWhen>(T_CaseWhen);
        (*when).expr = is_ours.cast();
        (*when).result = tree::constant(name_type, btree, false).cast();
        let case = tree::new_node::<pg_sys::CaseExpr>(T_CaseExpr);
        (*case).casetype = pg_sys::NAMEOID;
        (*case).casecollid = pg_sys::C_COLLATION_OID;
        (*case).args = tree::list_of_nodes([when.cast()]);
        (*case).defresult = name.cast();
        case.cast()
    }
}

/// `regexp_replace(call, pattern, replacement)`.
unsafe fn replaced(call: *mut pg_sys::Node, pattern: &CStr) -> *mut pg_sys::Node {
    // SAFETY: as for `named`.
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
