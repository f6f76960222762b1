//! An aggregate of a query, as it is evaluated here.
use super::functions::function;
use crate::executor::filter::{self, Compiler};
use crate::pg::list::items;
use mot_programs::aggregate::{Argument, Call, Function, Input, Key};
use mot_programs::filter::{Comparison, Number, WordKind};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

/// Neither an ordered-set nor a hypothetical-set aggregate (`catalog/pg_aggregate.h`).
const AGGKIND_NORMAL: u8 = b'n';

/// An aggregate of a query; `None`: it takes core.
pub unsafe fn call(compiler: &mut Compiler, call: &pg_sys::Aggref) -> Option<Call> {
    // SAFETY: an aggregate of the planner's or of a finished plan; casts by tag.
    unsafe {
        let is_plain = call.aggkind as u8 == AGGKIND_NORMAL
            && call.agglevelsup == 0
            && call.aggdirectargs.is_null()
            && call.aggorder.is_null()
            && call.aggdistinct.is_null()
            && !call.aggvariadic;
        if !is_plain {
            return None;
        }
        let (function, input) = function(call.aggfnoid)?;
        let is_computed = match call.aggsplit {
            pg_sys::AggSplit::AGGSPLIT_SIMPLE => true,
            pg_sys::AggSplit::AGGSPLIT_INITIAL_SERIAL => function.is_its_own_part(input),
            _ => false,
        };
        if !is_computed {
            return None;
        }
        let arguments = items::<pg_sys::TargetEntry>(call.args);
        let argument = match (function, &arguments[..]) {
            (Function::CountRows, []) => Argument::Nothing,
            (Function::CountRows, _) => return None,
            (_, [only]) => argument(compiler, (**only).expr.cast(), input)?,
            _ => return None,
        };
        let filter = match call.aggfilter.is_null() {
            true => None,
            false => Some(compiler.condition(call.aggfilter.cast())?),
        };
        // Their values belong to the scan's node, not to this one.
        compiler.parameters.is_empty().then_some(Call {
            function,
            input,
            argument,
            filter,
        })
    }
}

unsafe fn argument(
    compiler: &mut Compiler,
    node: *mut pg_sys::Node,
    input: Input,
) -> Option<Argument> {
    let mut node = node;
    // SAFETY: an expression of the aggregate's argument type; casts by tag.
    unsafe {
        while (*node).type_ == T_RelabelType {
            node = (*node.cast::<pg_sys::RelabelType>()).arg.cast();
        }
        match input {
            Input::Number(kind) => compiler.number(node, kind).map(Argument::Number),
            Input::Numeric if (*node).type_ == T_Var => {
                let (column, stored) = compiler.column(&*node.cast())?;
                (stored == (-1, false)).then_some(Argument::Numeric(column))
            }
            Input::Numeric => None,
            Input::Anything => match (*node).type_ {
                T_Var => {
                    let (column, _) = compiler.column(&*node.cast())?;
                    Some(Argument::Presence(column))
                }
                T_Const => match (*node.cast::<pg_sys::Const>()).constisnull {
                    true => Some(Argument::Number(Number::Constant(None))),
                    false => Some(Argument::Nothing),
                },
                _ => {
                    let kind = match pg_sys::exprType(node) {
                        pg_sys::INT2OID => WordKind::Int2,
                        pg_sys::INT4OID => WordKind::Int4,
                        pg_sys::INT8OID => WordKind::Int8,
                        _ => return None,
                    };
                    compiler.number(node, kind).map(Argument::Number)
                }
            },
        }
    }
}

/// A column of GROUP BY that is compared by the operator; `None`: it takes core.
pub unsafe fn key(
    compiler: &mut Compiler,
    node: *mut pg_sys::Node,
    equality: pg_sys::Oid,
) -> Option<Key> {
    // SAFETY: an expression of the planner's; a catalog look-up.
    unsafe {
        let key = key_of(compiler, node)?;
        let compares = filter::function(pg_sys::get_opcode(equality))?;
        let is_equality = matches!(
            compares,
            filter::Function::Compare(Comparison::Equal, left, right) if left == key.kind && right == key.kind
        );
        is_equality.then_some(key)
    }
}

/// The same, of an expression of a plan that was made so.
pub unsafe fn key_of(compiler: &mut Compiler, node: *mut pg_sys::Node) -> Option<Key> {
    // SAFETY: an expression.
    unsafe {
        let kind = match pg_sys::exprType(node) {
            pg_sys::BOOLOID => WordKind::Bool,
            pg_sys::INT2OID => WordKind::Int2,
            pg_sys::INT4OID | pg_sys::DATEOID => WordKind::Int4,
            pg_sys::INT8OID | pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => WordKind::Int8,
            _ => return None,
        };
        let number = compiler.number(node, kind)?;
        compiler
            .parameters
            .is_empty()
            .then_some(Key { number, kind })
    }
}

/// The expression of the only argument; NULL if there is none.
pub unsafe fn argument_of(call: &pg_sys::Aggref) -> *mut pg_sys::Expr {
    // SAFETY: an aggregate of a finished plan.
    unsafe {
        items::<pg_sys::TargetEntry>(call.args)
            .first()
            .map_or(std::ptr::null_mut(), |argument| (**argument).expr)
    }
}
