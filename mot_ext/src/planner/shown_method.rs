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
use crate::pg::node::{Any, Node};
use crate::pg::version::tree::{PlainFrame, change_below, look_below};
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
struct Walk<'p> {
    frame: PlainFrame<'p>,
    /// Our access method; invalid if it is not shown as btree.
    ours: pg_sys::Oid,
    /// The queries around the present node, the outermost first.
    queries: [Option<Node<'p, pg_sys::Query>>; QUERIES_DEEP_MAX],
    depth: usize,
}

/// The query as it is to be planned: itself, or a copy in which our indexes are btrees, and sizes
/// are those in memory.
///
/// # Safety
/// A query that the planner is about to plan. The caller is a plain frame.
pub unsafe fn shown(query: *mut pg_sys::Query) -> *mut pg_sys::Query {
    // SAFETY: the caller's query; the walk looks at nothing else.
    if !unsafe { asks(query.cast(), std::ptr::null_mut()) } {
        return query;
    }
    // SAFETY: the caller's promise, and the walk's callbacks are plain, too.
    let frame = unsafe { PlainFrame::enter() };
    let mut walk = Walk {
        frame,
        ours: match SHOW_INDEXES_AS_BTREE.get() {
            true => frame.access_method(storage::INDEX_METHOD),
            false => pg_sys::InvalidOid,
        },
        queries: [None; QUERIES_DEEP_MAX],
        depth: 0,
    };
    // SAFETY: the caller's query, and the context of the walk, which outlives it.
    unsafe { changed(query.cast(), (&raw mut walk).cast()).cast() }
}

/// Whether a node may ask for an access method, or for a definition that names one.
unsafe extern "C-unwind" fn asks(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: core's walker calls this with nodes of the query, or NULL.
    let Some(found) = (unsafe { Node::enter_if_any(node) }) else {
        return false;
    };
    let is_asking = match found.tag() {
        T_Query => {
            let query = found.cast::<pg_sys::Query>();
            if query.is_some_and(|query| query.commandType() == pg_sys::CmdType::CMD_UTILITY) {
                return false;
            }
            None
        }
        T_Var => Some(
            found
                .cast()
                .is_some_and(|column| is_like_method(column) || is_like_row(column)),
        ),
        _ => found
            .cast::<pg_sys::FuncExpr>()
            .map(|call| call.funcid())
            .filter(|function| pattern_of(*function).is_some() || returns_size(*function))
            .map(|_| true),
    };
    // SAFETY: the node that the walk is at; a plain frame.
    is_asking.unwrap_or_else(|| unsafe { look_below(node, asks, context) })
}

/// Whether a column has the number and type of the one with the access method.
fn is_like_method(column: Node<'_, pg_sys::Var>) -> bool {
    column.varattno() == METHOD && column.vartype() == pg_sys::OIDOID
}

/// Whether a column is a whole row of `pg_class`'s type.
fn is_like_row(column: Node<'_, pg_sys::Var>) -> bool {
    column.varattno() == pg_sys::InvalidAttrNumber as pg_sys::AttrNumber
        && column.vartype().to_u32() == pg_sys::RelationRelation_Rowtype_Id
}

/// Whether a column is of a query's table, and that is `pg_class`, which is read.
fn is_of_relations(query: Node<'_, pg_sys::Query>, column: Node<'_, pg_sys::Var>) -> bool {
    let is_relations = |table: Node<'_, pg_sys::RangeTblEntry>| {
        table.rtekind() == pg_sys::RTEKind::RTE_RELATION
            && table.relid() == pg_sys::RelationRelationId
    };
    column.varno() != query.resultRelation()
        && query
            .rtable()
            .get((column.varno() as usize).wrapping_sub(1))
            .is_some_and(is_relations)
}

/// The pattern for the result of a function that gives a definition.
fn pattern_of(function: pg_sys::Oid) -> Option<&'static CStr> {
    match function.to_u32() {
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
    // SAFETY: core's mutator calls this with nodes of the query, or NULL, and with our context. No
    // other reference to that is used until this frame ends or walks on.
    let (found, walk) = unsafe {
        let Some(found) = Node::enter_if_any(node) else {
            return node;
        };
        (found, &mut *context.cast::<Walk>())
    };
    // SAFETY: the node that the walk is at; a plain frame.
    let below = || unsafe { change_below(node, changed, context) };
    if let Some(query) = found.cast() {
        if walk.depth == QUERIES_DEEP_MAX {
            return node;
        }
        walk.queries[walk.depth] = Some(query);
        walk.depth += 1;
        let copy = below();
        // SAFETY: as above: the walk below has ended.
        unsafe { (*context.cast::<Walk>()).depth -= 1 };
        return copy;
    }
    let column = found.cast().filter(|column| is_shown(walk, *column));
    if let Some(column) = column.filter(|column| is_like_method(*column)) {
        return as_btree(walk, column).as_ptr();
    }
    if let Some(row) = column.filter(|column| is_like_row(*column)) {
        return with_btree(walk, row).as_ptr();
    }
    if found.tag() != T_FuncExpr {
        return below();
    }
    let (frame, ours) = (walk.frame, walk.ours);
    // SAFETY: the mutator's copy of a call is a call.
    let call = unsafe { Node::<pg_sys::FuncExpr>::enter(below().cast()) };
    match pattern_of(call.funcid()).filter(|_| ours != pg_sys::InvalidOid) {
        Some(pattern) => replaced(frame, call.any(), pattern).as_ptr(),
        None => {
            call.set_funcid(counterpart(frame, call.funcid()));
            call.any().as_ptr()
        }
    }
}

/// Whether a column, or a whole row, is of `pg_class`, and is shown otherwise than it is.
fn is_shown(walk: &Walk, column: Node<'_, pg_sys::Var>) -> bool {
    let levels_up = column.varlevelsup() as usize;
    walk.ours != pg_sys::InvalidOid
        && (is_like_method(column) || is_like_row(column))
        && walk
            .depth
            .checked_sub(levels_up + 1)
            .and_then(|level| walk.queries[level])
            .is_some_and(|query| is_of_relations(query, column))
}

/// `CASE WHEN condition THEN value ELSE other END`, of a type.
fn case<'p>(
    frame: PlainFrame<'p>,
    of: pg_sys::Oid,
    (condition, value): (Any<'p>, Any<'p>),
    other: Any<'p>,
) -> Any<'p> {
    // SAFETY: nodes and lists of this frame.
    let when = unsafe {
        frame.node(pg_sys::CaseWhen {
            expr: condition.as_ptr().cast(),
            result: value.as_ptr().cast(),
            ..Default::default()
        })
    };
    // SAFETY: nodes and lists of this frame.
    let case = unsafe {
        frame.node(pg_sys::CaseExpr {
            casetype: of,
            args: frame.list([when.any()]),
            defresult: other.as_ptr().cast(),
            ..Default::default()
        })
    };
    case.any()
}

/// `CASE WHEN method = ours THEN btree ELSE method END`.
fn as_btree<'p>(walk: &Walk<'p>, method: Node<'_, pg_sys::Var>) -> Any<'p> {
    let frame = walk.frame;
    let oid = (pg_sys::OIDOID, 4, pg_sys::InvalidOid);
    let ours = frame.constant(oid, pg_sys::Datum::from(walk.ours), true);
    // SAFETY: nodes and lists of this frame.
    let is_ours = unsafe {
        frame.node(pg_sys::OpExpr {
            opno: pg_sys::Oid::from(OID_EQUAL),
            opfuncid: pg_sys::Oid::from(pg_sys::F_OIDEQ),
            opresulttype: pg_sys::BOOLOID,
            args: frame.list([frame.copied(method).any(), ours]),
            ..Default::default()
        })
    };
    let btree = frame.constant(oid, pg_sys::Datum::from(pg_sys::BTREE_AM_OID), true);
    let other = frame.copied(method).any();
    case(frame, pg_sys::OIDOID, (is_ours.any(), btree), other)
}

/// `CASE WHEN oid IS NOT NULL THEN ROW(oid, ..., relam as btree, ...) ELSE NULL END`: an outer join
/// may have no row. (`pg_class` has so many columns, none of them dropped.)
fn with_btree<'p>(walk: &Walk<'p>, row: Node<'_, pg_sys::Var>) -> Any<'p> {
    let (frame, relations) = (walk.frame, pg_sys::RelationRelationId);
    let column = |number| {
        let column = frame.column_of_row(row, relations, number);
        match number == METHOD {
            true => as_btree(walk, column),
            false => column.any(),
        }
    };
    // SAFETY: nodes and lists of this frame.
    let columns = unsafe {
        frame.node(pg_sys::RowExpr {
            args: frame.list((1..=COLUMNS).map(column)),
            row_typeid: row.vartype(),
            row_format: pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
            location: -1,
            ..Default::default()
        })
    };
    let own_oid = frame.column_of_row(row, relations, OWN_OID);
    // SAFETY: nodes and lists of this frame.
    let is_there = unsafe {
        frame.node(pg_sys::NullTest {
            arg: own_oid.any().as_ptr().cast(),
            nulltesttype: pg_sys::NullTestType::IS_NOT_NULL,
            location: -1,
            ..Default::default()
        })
    };
    let none = frame.null(row.vartype());
    case(frame, row.vartype(), (is_there.any(), columns.any()), none)
}

/// `regexp_replace(call, pattern, replacement)`.
fn replaced<'p>(frame: PlainFrame<'p>, call: Any<'p>, pattern: &CStr) -> Any<'p> {
    let text = (pg_sys::TEXTOID, -1, pg_sys::C_COLLATION_OID);
    let pattern = frame.constant(text, frame.text(pattern), false);
    let replacement = frame.constant(text, frame.text(REPLACEMENT), false);
    // SAFETY: nodes and lists of this frame.
    let function = unsafe {
        frame.node(pg_sys::FuncExpr {
            funcid: pg_sys::Oid::from(REPLACE_FIRST),
            funcresulttype: pg_sys::TEXTOID,
            funccollid: pg_sys::DEFAULT_COLLATION_OID,
            inputcollid: pg_sys::C_COLLATION_OID,
            args: frame.list([call, pattern, replacement]),
            ..Default::default()
        })
    };
    function.any()
}
