//! Which expressions a compiled statement may hold.
//!
//! A compiled expression outlives the statement, and errors in it. So it may only call what
//! PostgreSQL itself keeps that long (an index's support functions live as long as the relation
//! cache): functions written in C inside the server. No sets, whole rows, domains (their checks
//! change), or functions whose EXECUTE right is restricted (core asks at each start);
//! subplans, aggregates and executor parameters only in a tree of core's nodes.
//!
//! - A polymorphic function keeps what it found out about its arguments' types as long as its
//!   expression lives (`jsonb_populate_record` the row type), and may call their casts (`to_json`
//!   one to json, in any language). ALTER TYPE makes no new plan, so calls take and give the
//!   server's own types, and enums where the function is one of enums.
//! - `query_to_xml` and the like run any SQL, also SQL that changes the table under the statement.
//!   All of them are restricted to the leader of a parallel query; of what is, only sequences and
//!   `random` are let through. No other is known that does; a statement that calls functions holds
//!   its table open all the same ([`calls_functions`]), so that DDL from within finds it in use.
use crate::pg::depth::{Depth, is_found_below};
use crate::pg::list::items;
use crate::pg::version::is_of_the_row;
use pgrx::pg_guard;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;
use std::ffi::c_void;

/// Not an ordered-set aggregate (`catalog/pg_aggregate.h`).
const AGGKIND_NORMAL: u8 = b'n';

/// Where an expression is used.
#[derive(Clone, Copy)]
pub enum Scope {
    /// Over the rows of the table at this place of the range table.
    Table(u32),
    /// Over the row of the table at this place that is in the way of an inserted one, and that one:
    /// SET and WHERE of ON CONFLICT.
    Conflict(u32),
    /// In a tree of core's nodes: also over what the nodes below give, with aggregates and
    /// subplans.
    Tree,
}

/// Objects below are the server's own (`access/transam.h`).
const FIRST_NORMAL_OID: u32 = 16384;
/// The language of functions in the server itself (`catalog/pg_language.dat`).
const INTERNAL_LANGUAGE: u32 = 12;

/// Whether every expression of the list is plain.
pub unsafe fn are_plain(list: *mut pg_sys::List, scope: Scope) -> bool {
    // SAFETY: a list of expressions.
    unsafe {
        items::<pg_sys::Node>(list)
            .into_iter()
            .all(|node| is_plain(node, scope))
    }
}

/// A walk over an expression with its place.
struct Walk {
    scope: Scope,
    depth: Depth,
}

/// Whether the expression is plain, and not too deep to be examined. NULL is.
pub unsafe fn is_plain(node: *mut pg_sys::Node, scope: Scope) -> bool {
    let mut walk = Walk {
        scope,
        depth: Depth::default(),
    };
    // SAFETY: an expression of a finished plan.
    unsafe { !is_unplain(node, (&raw mut walk).cast()) }
}

/// The walker: true ends the walk.
#[pg_guard]
unsafe extern "C-unwind" fn is_unplain(node: *mut pg_sys::Node, walk: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: casts by tag; core's walker visits the parts of the nodes let through here.
    unsafe {
        let table = match (*walk.cast::<Walk>()).scope {
            Scope::Table(position) | Scope::Conflict(position) => Some(position),
            Scope::Tree => None,
        };
        let is_plain_here = match (*node).type_ {
            T_Var => {
                let var = &*node.cast::<pg_sys::Var>();
                let is_inserted = matches!((*walk.cast::<Walk>()).scope, Scope::Conflict(_))
                    && var.varno == pg_sys::INNER_VAR
                    && var.varattno > 0;
                (is_inserted || table.is_none_or(|position| var.varno as u32 == position))
                    && var.varlevelsup == 0
                    && var.varattno != 0
                    && is_of_the_row(var)
            }
            T_Param => match (*node.cast::<pg_sys::Param>()).paramkind {
                pg_sys::ParamKind::PARAM_EXTERN => true,
                pg_sys::ParamKind::PARAM_EXEC => table.is_none(),
                _ => false,
            },
            T_Aggref => table.is_none() && is_plain_aggregate(&*node.cast::<pg_sys::Aggref>()),
            T_SubPlan => table.is_none() && is_plain_subplan(&*node.cast::<pg_sys::SubPlan>()),
            T_SortGroupClause => table.is_none(),
            T_FuncExpr => {
                let call = &*node.cast::<pg_sys::FuncExpr>();
                !call.funcretset
                    && is_own_function(call.funcid)
                    && has_lasting_types(call.funcid, call.args, call.funcresulttype)
            }
            T_OpExpr | T_DistinctExpr | T_NullIfExpr => {
                let call = &*node.cast::<pg_sys::OpExpr>();
                !call.opretset
                    && is_own_function(call.opfuncid)
                    && has_lasting_types(call.opfuncid, call.args, call.opresulttype)
            }
            T_ScalarArrayOpExpr => {
                let call = &*node.cast::<pg_sys::ScalarArrayOpExpr>();
                let helpers = [call.hashfuncid, call.negfuncid];
                is_own_function(call.opfuncid)
                    && (helpers.into_iter())
                        .all(|helper| helper == pg_sys::InvalidOid || is_own_function(helper))
                    && has_lasting_elements(call)
            }
            T_NullTest => !(*node.cast::<pg_sys::NullTest>()).argisrow,
            T_CoerceViaIO => {
                let cast = &*node.cast::<pg_sys::CoerceViaIO>();
                is_own_type(cast.resulttype) && is_own_type(pg_sys::exprType(cast.arg.cast()))
            }
            T_SubscriptingRef => {
                let part = &*node.cast::<pg_sys::SubscriptingRef>();
                is_own_type(part.refcontainertype) && part.refassgnexpr.is_null()
            }
            T_MinMaxExpr => is_own_type((*node.cast::<pg_sys::MinMaxExpr>()).minmaxtype),
            T_Const | T_RelabelType | T_BoolExpr | T_BooleanTest | T_CaseExpr | T_CaseWhen
            | T_CaseTestExpr | T_CoalesceExpr | T_SQLValueFunction | T_ArrayExpr
            | T_NextValueExpr | T_List | T_TargetEntry => true,
            _ => false,
        };
        let depth = &raw mut (*walk.cast::<Walk>()).depth;
        !is_plain_here || is_found_below(depth, node, is_unplain, walk)
    }
}

fn is_own_type(oid: pg_sys::Oid) -> bool {
    oid.to_u32() < FIRST_NORMAL_OID
}

/// Whether no ALTER TYPE changes what a function may remember of a value of the type.
pub fn is_lasting_type(oid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up.
    (is_own_type(oid) && oid != pg_sys::RECORDOID)
        || unsafe { pg_sys::get_typtype(oid) } as u8 == pg_sys::TYPTYPE_ENUM
}

/// Whether no ALTER TYPE changes what a function may remember of its arguments and result, and no
/// cast of theirs is the users'.
unsafe fn has_lasting_types(
    function: pg_sys::Oid,
    arguments: *mut pg_sys::List,
    result: pg_sys::Oid,
) -> bool {
    is_lasting_type(result)
        // SAFETY: a call's arguments.
        && unsafe { items::<pg_sys::Node>(arguments) }
            .into_iter()
            .enumerate()
            .all(|(position, argument)| {
                // SAFETY: an expression.
                let kind = unsafe { pg_sys::exprType(argument) };
                takes(function, position, kind)
            })
}

/// Whether a function that is given the elements of an array one by one takes and gives lasting
/// types. Core puts them into a hash table that it keeps with the expression.
unsafe fn has_lasting_elements(call: &pg_sys::ScalarArrayOpExpr) -> bool {
    // SAFETY: its two arguments, expressions; a catalog look-up.
    unsafe {
        let arguments = items::<pg_sys::Node>(call.args);
        let [one, array] = arguments[..] else {
            return false;
        };
        let element = pg_sys::get_element_type(pg_sys::exprType(array));
        element != pg_sys::InvalidOid
            && takes(call.opfuncid, 0, pg_sys::exprType(one))
            && takes(call.opfuncid, 1, element)
    }
}

/// Whether a function may be given a type: its own ones, and enums where it asks for one by name.
/// Others could look for a cast of the enum's.
fn takes(function: pg_sys::Oid, position: usize, kind: pg_sys::Oid) -> bool {
    if is_own_type(kind) {
        return kind != pg_sys::RECORDOID;
    }
    let mut declared = std::ptr::null_mut();
    let mut count = 0;
    // SAFETY: a catalog look-up that gives as many types as it says.
    unsafe {
        pg_sys::get_func_signature(function, &raw mut declared, &raw mut count);
        is_lasting_type(kind)
            && position < count as usize
            && *declared.add(position) == pg_sys::ANYENUMOID
    }
}

/// An aggregate of the server's own over lasting types; its arguments are walked by the caller.
unsafe fn is_plain_aggregate(call: &pg_sys::Aggref) -> bool {
    // SAFETY: an aggregate of a finished plan.
    unsafe {
        call.aggkind as u8 == AGGKIND_NORMAL
            && call.aggdirectargs.is_null()
            && call.aggsplit == pg_sys::AggSplit::AGGSPLIT_SIMPLE
            && is_own_function(call.aggfnoid)
            && is_lasting_type(call.aggtype)
            && items::<pg_sys::TargetEntry>(call.args)
                .into_iter()
                .enumerate()
                .all(|(position, argument)| {
                    let kind = pg_sys::exprType((*argument).expr.cast());
                    takes(call.aggfnoid, position, kind)
                })
    }
}

/// Whether an expression, or a list of them, calls functions by name. (What operators and casts
/// call are comparisons and computations of the server's own types.)
pub unsafe fn calls_functions(node: *mut pg_sys::Node) -> bool {
    let mut depth = Depth::default();
    // SAFETY: an expression of a finished plan, or a list.
    unsafe { is_call(node, (&raw mut depth).cast()) }
}

/// The walker: true ends the walk.
#[pg_guard]
unsafe extern "C-unwind" fn is_call(node: *mut pg_sys::Node, depth: *mut c_void) -> bool {
    // SAFETY: as `is_unplain`.
    !node.is_null()
        && unsafe {
            (*node).type_ == T_FuncExpr || is_found_below(depth.cast(), node, is_call, depth)
        }
}

/// A subquery that gives a value or a boolean; its plan is examined with the others of the
/// statement.
fn is_plain_subplan(call: &pg_sys::SubPlan) -> bool {
    matches!(
        call.subLinkType,
        pg_sys::SubLinkType::EXISTS_SUBLINK
            | pg_sys::SubLinkType::ANY_SUBLINK
            | pg_sys::SubLinkType::EXPR_SUBLINK
            | pg_sys::SubLinkType::ARRAY_SUBLINK
    )
}

/// Whether the function behind an operator is one that may be kept.
pub unsafe fn is_own_operator(oid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up.
    unsafe { is_own_function(pg_sys::get_opcode(oid)) }
}

/// `nextval`, `currval`, `setval`, `lastval`, `random` (`catalog/pg_proc.dat`).
const HARMLESS: [u32; 6] = [1574, 1575, 1576, 1765, 2559, 1598];

/// A function in C inside the server that every user may call, and that runs no SQL.
unsafe fn is_own_function(oid: pg_sys::Oid) -> bool {
    if oid.to_u32() >= FIRST_NORMAL_OID {
        return false;
    }
    // SAFETY: the catalog entry is released before the return.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
        let entry = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(oid));
        if entry.is_null() {
            return false;
        }
        let form = &*pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_proc>(entry);
        let is_internal = form.prolang == pg_sys::Oid::from(INTERNAL_LANGUAGE) && !form.proretset;
        let runs_no_sql =
            form.proparallel as u8 == pg_sys::PROPARALLEL_SAFE || HARMLESS.contains(&oid.to_u32());
        let mut is_unrestricted = false;
        pg_sys::SysCacheGetAttr(
            cache,
            entry,
            pg_sys::Anum_pg_proc_proacl as i16,
            &mut is_unrestricted,
        );
        pg_sys::ReleaseSysCache(entry);
        is_internal && runs_no_sql && is_unrestricted
    }
}
