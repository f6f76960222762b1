//! What stands on either side of a clause: told from the nodes themselves where core would only look at them, too.
use super::tag;
use crate::pg::version;
use pgrx::pg_sys;

/// Whether an expression is a key column: core's `match_index_to_operand`, of indexes whose keys are all columns.
pub unsafe fn is_index_column(
    index: *mut pg_sys::IndexOptInfo,
    column: usize,
    operand: *mut pg_sys::Expr,
) -> bool {
    // SAFETY: the planner's own structures; casts follow the tags.
    unsafe {
        let mut operand = operand;
        if tag(operand) == pg_sys::NodeTag::T_RelabelType {
            operand = (*operand.cast::<pg_sys::RelabelType>()).arg;
        }
        if tag(operand) != pg_sys::NodeTag::T_Var {
            return false;
        }
        let var = &*operand.cast::<pg_sys::Var>();
        i32::from(var.varattno) == *(*index).indexkeys.add(column)
            && var.varno as pg_sys::Index == (*(*index).rel).relid
            && !version::may_be_made_null(var)
    }
}

/// As [`is_index_column`], of a member of an equivalence.
pub unsafe fn is_member_for(
    index: *mut pg_sys::IndexOptInfo,
    column: usize,
    member: *mut pg_sys::EquivalenceMember,
) -> bool {
    // SAFETY: the planner's own structures.
    unsafe { is_index_column(index, column, (*member).em_expr) }
}

/// Core's `restriction_is_securely_promotable`: whether the clause may be looked at before the relation's others.
pub unsafe fn is_promotable(
    rinfo: *const pg_sys::RestrictInfo,
    rel: *const pg_sys::RelOptInfo,
) -> bool {
    // SAFETY: the planner's own structures.
    unsafe { (*rinfo).security_level <= (*rel).baserestrict_min_security || (*rinfo).leakproof }
}

/// Whether an expression can be evaluated before the scan: nothing of the relation in it, and the same value all the time.
pub unsafe fn is_outside(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    expression: *mut pg_sys::Expr,
) -> bool {
    // SAFETY: the planner's own structures; casts follow the tags.
    unsafe {
        match tag(expression) {
            pg_sys::NodeTag::T_Const | pg_sys::NodeTag::T_Param => return true,
            pg_sys::NodeTag::T_Var => {
                let var = &*expression.cast::<pg_sys::Var>();
                return var.varlevelsup > 0 || var.varno as pg_sys::Index != (*rel).relid;
            }
            _ => {}
        }
        let relids = pg_sys::pull_varnos(root, expression.cast());
        !pg_sys::bms_is_member((*rel).relid as i32, relids)
            && !pg_sys::contain_volatile_functions(expression.cast())
    }
}
