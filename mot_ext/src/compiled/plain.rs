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
use crate::pg::catalog;
use crate::pg::depth::{Depth, is_found_below};
use crate::pg::node::{Any, List, Node};
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
pub fn are_plain(list: List<'_, pg_sys::Node>, scope: Scope) -> bool {
    list.iter().all(|node| is_plain(node, scope))
}

/// A walk over an expression with its place.
struct Walk {
    scope: Scope,
    depth: Depth,
}

/// Whether the expression is plain, and not too deep to be examined.
pub fn is_plain(node: Any<'_>, scope: Scope) -> bool {
    let mut walk = Walk {
        scope,
        depth: Depth::default(),
    };
    // SAFETY: a live expression, and the walk that the walker takes.
    unsafe { !is_unplain(node.as_ptr(), (&raw mut walk).cast()) }
}

/// The walker: true ends the walk.
#[pg_guard]
unsafe extern "C-unwind" fn is_unplain(node: *mut pg_sys::Node, walk: *mut c_void) -> bool {
    // SAFETY: a part of the expression that is walked, or NULL.
    let Some(part) = (unsafe { Node::enter_if_any(node) }) else {
        return false;
    };
    let walked = walk.cast::<Walk>();
    // SAFETY: the walk of `is_plain`, which waits for its end.
    let (scope, depth) = unsafe { ((*walked).scope, &raw mut (*walked).depth) };
    // SAFETY: core's walker visits the parts of the nodes that are let through.
    !is_plain_here(part, scope) || unsafe { is_found_below(depth, node, is_unplain, walk) }
}

/// Whether a node of an expression is plain, whatever its parts are.
fn is_plain_here(node: Any<'_>, scope: Scope) -> bool {
    let is_in_tree = matches!(scope, Scope::Tree);
    match node.tag() {
        T_Var => node.cast().is_some_and(|var| is_plain_column(var, scope)),
        T_Param => {
            node.cast::<pg_sys::Param>()
                .is_some_and(|parameter| match parameter.paramkind() {
                    pg_sys::ParamKind::PARAM_EXTERN => true,
                    pg_sys::ParamKind::PARAM_EXEC => is_in_tree,
                    _ => false,
                })
        }
        T_Aggref => is_in_tree && node.cast().is_some_and(is_plain_aggregate),
        T_SubPlan => is_in_tree && node.cast().is_some_and(is_plain_subplan),
        T_SortGroupClause => is_in_tree,
        T_FuncExpr => node.cast::<pg_sys::FuncExpr>().is_some_and(|call| {
            !call.funcretset()
                && is_own_function(call.funcid())
                && has_lasting_types(call.funcid(), call.args(), call.funcresulttype())
        }),
        T_OpExpr | T_DistinctExpr | T_NullIfExpr => node.operator_call().is_some_and(|call| {
            !call.opretset()
                && is_own_function(call.opfuncid())
                && has_lasting_types(call.opfuncid(), call.args(), call.opresulttype())
        }),
        T_ScalarArrayOpExpr => node.cast().is_some_and(is_plain_array_call),
        T_NullTest => (node.cast::<pg_sys::NullTest>()).is_some_and(|test| !test.argisrow()),
        T_CoerceViaIO => node.cast::<pg_sys::CoerceViaIO>().is_some_and(|cast| {
            let argument = cast.arg();
            is_own_type(cast.resulttype())
                && argument.is_some_and(|argument| is_own_type(argument.value_type()))
        }),
        T_SubscriptingRef => (node.cast::<pg_sys::SubscriptingRef>())
            .is_some_and(|part| is_own_type(part.refcontainertype()) && !part.refassgnexpr()),
        T_MinMaxExpr => {
            (node.cast::<pg_sys::MinMaxExpr>()).is_some_and(|call| is_own_type(call.minmaxtype()))
        }
        T_Const | T_RelabelType | T_BoolExpr | T_BooleanTest | T_CaseExpr | T_CaseWhen
        | T_CaseTestExpr | T_CoalesceExpr | T_SQLValueFunction | T_ArrayExpr | T_NextValueExpr
        | T_List | T_TargetEntry => true,
        _ => false,
    }
}

/// Whether a column is one of the rows that an expression is over.
fn is_plain_column(column: Node<'_, pg_sys::Var>, scope: Scope) -> bool {
    let number = column.varattno();
    let is_known = match scope {
        Scope::Tree => true,
        Scope::Conflict(_) if column.varno() == pg_sys::INNER_VAR && number > 0 => true,
        Scope::Table(position) | Scope::Conflict(position) => column.varno() as u32 == position,
    };
    is_known && column.varlevelsup() == 0 && number != 0 && is_of_the_row(&column.fields())
}

/// Whether functions of the server's own compare a value with the elements of an array.
fn is_plain_array_call(call: Node<'_, pg_sys::ScalarArrayOpExpr>) -> bool {
    let mut helpers = [call.hashfuncid(), call.negfuncid()].into_iter();
    is_own_function(call.opfuncid())
        && helpers.all(|helper| helper == pg_sys::InvalidOid || is_own_function(helper))
        && has_lasting_elements(call)
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
fn has_lasting_types(
    function: pg_sys::Oid,
    arguments: List<'_, pg_sys::Node>,
    result: pg_sys::Oid,
) -> bool {
    let mut types = arguments.iter().map(Any::value_type).enumerate();
    is_lasting_type(result) && types.all(|(position, kind)| takes(function, position, kind))
}

/// Whether a function that is given the elements of an array one by one takes and gives lasting
/// types. Core puts them into a hash table that it keeps with the expression.
fn has_lasting_elements(call: Node<'_, pg_sys::ScalarArrayOpExpr>) -> bool {
    let arguments: Vec<_> = call.args().iter().collect();
    let [one, array] = arguments[..] else {
        return false;
    };
    let element = catalog::element_type(array.value_type());
    element != pg_sys::InvalidOid
        && takes(call.opfuncid(), 0, one.value_type())
        && takes(call.opfuncid(), 1, element)
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
fn is_plain_aggregate(call: Node<'_, pg_sys::Aggref>) -> bool {
    let mut arguments = call.args().iter().enumerate();
    call.aggkind() as u8 == AGGKIND_NORMAL
        && !call.aggdirectargs()
        && call.aggsplit() == pg_sys::AggSplit::AGGSPLIT_SIMPLE
        && is_own_function(call.aggfnoid())
        && is_lasting_type(call.aggtype())
        && arguments.all(|(position, argument)| {
            let kind = argument.expression().value_type();
            takes(call.aggfnoid(), position, kind)
        })
}

/// Whether an expression, or a list of them, calls functions by name. (What operators and casts
/// call are comparisons and computations of the server's own types.)
pub fn calls_functions(node: Any<'_>) -> bool {
    let mut depth = Depth::default();
    // SAFETY: a live expression, or list, and the depth that the walker takes.
    unsafe { is_call(node.as_ptr(), (&raw mut depth).cast()) }
}

/// The walker: true ends the walk.
#[pg_guard]
unsafe extern "C-unwind" fn is_call(node: *mut pg_sys::Node, depth: *mut c_void) -> bool {
    // SAFETY: a part of the expression that is walked, or NULL.
    let Some(part) = (unsafe { Node::enter_if_any(node) }) else {
        return false;
    };
    // SAFETY: the depth of `calls_functions`, which waits for the walk's end.
    part.tag() == T_FuncExpr || unsafe { is_found_below(depth.cast(), node, is_call, depth) }
}

/// A subquery that gives a value or a boolean; its plan is examined with the others of the
/// statement.
fn is_plain_subplan(call: Node<'_, pg_sys::SubPlan>) -> bool {
    matches!(
        call.subLinkType(),
        pg_sys::SubLinkType::EXISTS_SUBLINK
            | pg_sys::SubLinkType::ANY_SUBLINK
            | pg_sys::SubLinkType::EXPR_SUBLINK
            | pg_sys::SubLinkType::ARRAY_SUBLINK
    )
}

/// Whether the function behind an operator is one that may be kept.
pub fn is_own_operator(oid: pg_sys::Oid) -> bool {
    is_own_function(catalog::operator_function(oid))
}

/// `nextval`, `currval`, `setval`, `lastval`, `random` (`catalog/pg_proc.dat`).
const HARMLESS: [u32; 6] = [1574, 1575, 1576, 1765, 2559, 1598];

/// `pg_input_is_valid` and `pg_input_error_info`, since 16.
const READERS_OF_TEXT: [u32; 2] = [6210, 6211];

/// Whether a function may read or write the text form of a type that an argument names.
fn reads_text_form(oid: pg_sys::Oid) -> bool {
    let mut declared = std::ptr::null_mut();
    let mut count = 0;
    // SAFETY: a catalog look-up of a function that is there, which gives as many types as it says.
    unsafe {
        let result = pg_sys::get_func_signature(oid, &raw mut declared, &raw mut count);
        let mut types = (0..count as usize).map(|position| *declared.add(position));
        READERS_OF_TEXT.contains(&oid.to_u32())
            || result == pg_sys::CSTRINGOID
            || types.any(|kind| kind == pg_sys::CSTRINGOID)
    }
}

/// A function in C inside the server that every user may call. It runs no SQL, and reads and writes
/// no text form of a type.
fn is_own_function(oid: pg_sys::Oid) -> bool {
    if oid.to_u32() >= FIRST_NORMAL_OID {
        return false;
    }
    catalog::function(oid).is_some_and(|function| {
        let runs_no_sql =
            function.parallel == pg_sys::PROPARALLEL_SAFE || HARMLESS.contains(&oid.to_u32());
        function.language == pg_sys::Oid::from(INTERNAL_LANGUAGE)
            && !function.gives_sets
            && runs_no_sql
            && function.is_unrestricted
            && !reads_text_form(oid)
    })
}
