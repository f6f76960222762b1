//! One row by its identity: `ctid = ...` and WHERE CURRENT OF.
//!
//! A row's `ctid` is its slot, which it keeps as long as it lives, so the row is reached without a scan. The condition stays in the
//! node's filter all the same: it is cheap for one row, and whoever evaluates the node's conditions again finds them whole.
//!
//! Core evaluates WHERE CURRENT OF in its own nodes only (`ExecEvalCurrentOfExpr` raises 0A000). So the condition is replaced, before
//! the relation's size is estimated, by `ctid = mot.cursor_row(cursor, table)`; the function asks core where the cursor is. It is
//! volatile, or the planner would ask it for an estimate, maybe without a cursor. A cursor over a query with FOR UPDATE takes the row
//! from its row mark, which `lock_rows` fills in.
use super::paths::{self, ENTRY_TO_ROW_COST, PathPrivate};
use super::private::{self, cells};
use crate::errors;
use crate::pg::{text, version};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{CStr, c_char};

/// `tid = tid`, fixed in pg_operator.
const TID_EQUAL: u32 = pg_sys::TIDEqualOperator;

#[pg_extern(sql = "
CREATE FUNCTION mot.cursor_row(refcursor, regclass) RETURNS tid
  VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
GRANT EXECUTE ON FUNCTION mot.cursor_row(refcursor, regclass) TO PUBLIC;
COMMENT ON FUNCTION mot.cursor_row(refcursor, regclass) IS 'the ctid of the row of a table that a cursor is on; for WHERE CURRENT OF';
")]
fn cursor_row(
    cursor: Option<&[u8]>,
    table: Option<pg_sys::Oid>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Option<pg_sys::ItemPointerData> {
    let Some(cursor) = cursor else {
        // SAFETY: the running call.
        if let Some(number) = unsafe { cursor_parameter(fcinfo) } {
            errors::no_cursor_parameter(number);
        }
        return None;
    };
    let table = table?;
    let mut tid = pg_sys::ItemPointerData::default();
    // SAFETY: a node of our own; with a name core does not look at the expression context.
    unsafe {
        if let Some(compiled) = row_of_compiled(cursor, table) {
            return Some(compiled);
        }
        let node = pg_sys::palloc0(size_of::<pg_sys::CurrentOfExpr>());
        let node = node.cast::<pg_sys::CurrentOfExpr>();
        (*node).xpr.type_ = pg_sys::NodeTag::T_CurrentOfExpr;
        (*node).cursor_name = pg_sys::pnstrdup(cursor.as_ptr().cast(), cursor.len());
        let Some(below) = BelowMaterial::of((*node).cursor_name) else {
            return pg_sys::execCurrentOf(node, std::ptr::null_mut(), table, &raw mut tid)
                .then_some(tid);
        };
        let is_found = pg_sys::execCurrentOf(node, std::ptr::null_mut(), table, &raw mut tid);
        if !below.is_there() {
            errors::unsupported(
                "WHERE CURRENT OF cursors over memory-optimized tables that have been moved backward",
                "Change the row by its key.",
            );
        }
        is_found.then_some(tid)
    }
}

/// The number of the parameter that the call has its cursor from, as `WHERE CURRENT OF` a variable has.
unsafe fn cursor_parameter(fcinfo: pg_sys::FunctionCallInfo) -> Option<i32> {
    // SAFETY: a call's own expression, if there is one; casts follow the tags.
    unsafe {
        let call = (*(*fcinfo).flinfo).fn_expr.cast::<pg_sys::FuncExpr>();
        if call.is_null() || (*call).xpr.type_ != pg_sys::NodeTag::T_FuncExpr {
            return None;
        }
        let &[cursor, ..] = cells::<pg_sys::Expr>((*call).args) else {
            return None;
        };
        let parameter = cursor.cast::<pg_sys::Param>();
        (tag(cursor) == pg_sys::NodeTag::T_Param).then(|| (*parameter).paramid)
    }
}

/// A cursor that was declared SCROLL. Its plan cannot run backward, so core put a node above it that keeps its rows, which core's search for the
/// cursor's scan does not look below: while this lives, the plan without that node stands in its place.
struct BelowMaterial {
    query: *mut pg_sys::QueryDesc,
    material: *mut pg_sys::MaterialState,
}

impl BelowMaterial {
    /// `None`: the cursor's plan has no such node, or there is no such cursor, or it is held over the end of its transaction.
    unsafe fn of(cursor: *const c_char) -> Option<BelowMaterial> {
        // SAFETY: a portal that core finds is live, and its query is, if it has one; the cast follows the tag.
        unsafe {
            let portal = pg_sys::GetPortalByName(cursor);
            if portal.is_null() || (*portal).queryDesc.is_null() {
                return None;
            }
            let query = (*portal).queryDesc;
            let top = (*query).planstate;
            if top.is_null() || (*top).type_ != pg_sys::NodeTag::T_MaterialState {
                return None;
            }
            let material = top.cast::<pg_sys::MaterialState>();
            (*query).planstate = (*top).lefttree;
            Some(BelowMaterial { query, material })
        }
    }

    /// Whether the scan is where the cursor is: the row was the last that the node got from below.
    unsafe fn is_there(&self) -> bool {
        // SAFETY: a running plan's node.
        unsafe {
            let rows = (*self.material).tuplestorestate;
            rows.is_null() || pg_sys::tuplestore_ateof(rows)
        }
    }
}

impl Drop for BelowMaterial {
    fn drop(&mut self) {
        // SAFETY: nothing ran since `of` but a look at the plan's states.
        unsafe { (*self.query).planstate = self.material.cast() };
    }
}

/// The row of a cursor whose query runs in its compiled form, which core cannot look into; raises what core would. `None`: core
/// knows about the cursor.
unsafe fn row_of_compiled(cursor: &[u8], table: pg_sys::Oid) -> Option<pg_sys::ItemPointerData> {
    // SAFETY: core copies nothing and keeps nothing of the name; a portal it finds is live.
    unsafe {
        let name = pg_sys::pnstrdup(cursor.as_ptr().cast(), cursor.len());
        let portal = pg_sys::GetPortalByName(name);
        if portal.is_null() || (*portal).queryDesc.is_null() {
            return None;
        }
        let (read, current) = crate::compiled::current_row((*portal).queryDesc)?;
        let cursor = text::decode(cursor);
        if read != table {
            let name = pg_sys::get_rel_name(table);
            // Whoever calls the function may name any table, or none.
            let table = if name.is_null() {
                table.to_u32().to_string()
            } else {
                text::from_c(name)
            };
            errors::invalid_cursor(&format!(
                "cursor \"{cursor}\" is not a simply updatable scan of table \"{table}\""
            ));
        }
        match current {
            Some(row) if !(*portal).atStart && !(*portal).atEnd => Some(row),
            _ => errors::invalid_cursor(&format!("cursor \"{cursor}\" is not positioned on a row")),
        }
    }
}

/// Replaces WHERE CURRENT OF among the relation's clauses.
pub unsafe fn replace_current_of(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    relid: pg_sys::Oid,
) {
    // SAFETY: the planner's own structures; the cells of the list are the relation's.
    unsafe {
        let clauses = (*rel).baserestrictinfo;
        for (at, rinfo) in cells::<pg_sys::RestrictInfo>(clauses).iter().enumerate() {
            let rinfo = *rinfo;
            let clause = (*rinfo).clause;
            if tag(clause) != pg_sys::NodeTag::T_CurrentOfExpr {
                continue;
            }
            let equal = ctid_is_cursor_row(clause.cast(), (*rel).relid, relid);
            let made = version::make_restriction(root, equal, (*rinfo).security_level);
            (*(*clauses).elements.add(at)).ptr_value = made.cast();
        }
    }
}

unsafe fn ctid_is_cursor_row(
    current_of: *mut pg_sys::CurrentOfExpr,
    rti: pg_sys::Index,
    relid: pg_sys::Oid,
) -> *mut pg_sys::Expr {
    // SAFETY: a live node; the made ones are the planner's.
    unsafe {
        let cursor = if (*current_of).cursor_name.is_null() {
            let param = pg_sys::palloc0(size_of::<pg_sys::Param>()).cast::<pg_sys::Param>();
            (*param).xpr.type_ = pg_sys::NodeTag::T_Param;
            (*param).paramkind = pg_sys::ParamKind::PARAM_EXTERN;
            (*param).paramid = (*current_of).cursor_param;
            (*param).paramtype = pg_sys::REFCURSOROID;
            (*param).paramtypmod = -1;
            (*param).location = -1;
            param.cast::<pg_sys::Expr>()
        } else {
            let name = pg_sys::cstring_to_text((*current_of).cursor_name);
            constant(pg_sys::REFCURSOROID, -1, pg_sys::Datum::from(name), false)
        };
        let table = constant(pg_sys::REGCLASSOID, 4, pg_sys::Datum::from(relid), true);
        let mut arguments = pg_sys::lappend(std::ptr::null_mut(), cursor.cast());
        arguments = pg_sys::lappend(arguments, table.cast());
        let call = pg_sys::makeFuncExpr(
            cursor_row_oid(false),
            pg_sys::TIDOID,
            arguments,
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
        );
        let ctid = pg_sys::makeVar(
            rti as i32,
            pg_sys::SelfItemPointerAttributeNumber as i16,
            pg_sys::TIDOID,
            -1,
            pg_sys::InvalidOid,
            0,
        );
        pg_sys::make_opclause(
            pg_sys::Oid::from(TID_EQUAL),
            pg_sys::BOOLOID,
            false,
            ctid.cast(),
            call.cast(),
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
        )
    }
}

unsafe fn constant(
    kind: pg_sys::Oid,
    length: i32,
    value: pg_sys::Datum,
    by_value: bool,
) -> *mut pg_sys::Expr {
    // SAFETY: a value of the type.
    unsafe {
        pg_sys::makeConst(kind, -1, pg_sys::InvalidOid, length, value, false, by_value).cast()
    }
}

/// The function's oid in this database.
unsafe fn cursor_row_oid(missing_ok: bool) -> pg_sys::Oid {
    const NAMES: [&CStr; 2] = [c"mot", c"cursor_row"];
    let types = [pg_sys::REFCURSOROID, pg_sys::REGCLASSOID];
    // SAFETY: core copies what it keeps of names and types.
    unsafe {
        let mut list = std::ptr::null_mut();
        for name in NAMES {
            let name = pg_sys::makeString(pg_sys::pstrdup(name.as_ptr()));
            list = pg_sys::lappend(list, name.cast());
        }
        pg_sys::LookupFuncName(list, types.len() as i32, types.as_ptr(), missing_ok)
    }
}

/// Offers the path to the one row, if a clause names it. True: there may be no other, for a cursor has to be asked, on an empty table, too (core
/// plans WHERE CURRENT OF as a TID scan always).
pub unsafe fn add_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    outer: pg_sys::Relids,
) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        let Some(identity) = find_identity(rel) else {
            return false;
        };
        let private = PathPrivate {
            plan: private::encode_identity(),
            arguments: private::list(&[identity]),
            exact: std::ptr::null_mut(),
            rechecks: std::ptr::null_mut(),
        };
        let filter = (*rel).baserestrictcost;
        let row = pg_sys::cpu_tuple_cost * ENTRY_TO_ROW_COST + filter.per_tuple;
        let total = filter.startup + row;
        let order = std::ptr::null_mut();
        paths::add(root, rel, filter.startup, total, order, outer, private);
        is_cursor_row(identity)
    }
}

/// The value that a clause of the relation says its rows' `ctid` has, if it can be computed before the scan.
unsafe fn find_identity(rel: *mut pg_sys::RelOptInfo) -> Option<*mut pg_sys::Expr> {
    // SAFETY: the planner's own structures; casts follow the tags.
    unsafe {
        for rinfo in cells::<pg_sys::RestrictInfo>((*rel).baserestrictinfo) {
            let clause = (**rinfo).clause;
            if tag(clause) != pg_sys::NodeTag::T_OpExpr {
                continue;
            }
            let operator = clause.cast::<pg_sys::OpExpr>();
            if (*operator).opno.to_u32() != TID_EQUAL {
                continue;
            }
            let &[left, right] = cells::<pg_sys::Expr>((*operator).args) else {
                continue;
            };
            for (identity, value) in [(left, right), (right, left)] {
                if is_ctid(identity, (*rel).relid)
                    && !pg_sys::contain_var_clause(value.cast())
                    && (!pg_sys::contain_volatile_functions(value.cast()) || is_cursor_row(value))
                {
                    return Some(value);
                }
            }
        }
        None
    }
}

unsafe fn is_ctid(expression: *mut pg_sys::Expr, rti: pg_sys::Index) -> bool {
    // SAFETY: an expression; the cast follows the tag.
    unsafe {
        let var = expression.cast::<pg_sys::Var>();
        tag(expression) == pg_sys::NodeTag::T_Var
            && (*var).varno == rti as i32
            && i32::from((*var).varattno) == pg_sys::SelfItemPointerAttributeNumber
            && (*var).varlevelsup == 0
    }
}

unsafe fn is_cursor_row(expression: *mut pg_sys::Expr) -> bool {
    // SAFETY: an expression; the cast follows the tag.
    unsafe {
        tag(expression) == pg_sys::NodeTag::T_FuncExpr
            && (*expression.cast::<pg_sys::FuncExpr>()).funcid == cursor_row_oid(true)
    }
}

unsafe fn tag(node: *const pg_sys::Expr) -> pg_sys::NodeTag {
    // SAFETY: a node of an expression tree.
    unsafe { (*node.cast::<pg_sys::Node>()).type_ }
}
