//! An aggregate of a query, as it is evaluated here.
use super::functions::function;
use crate::executor::filter::{self, Compiler};
use crate::pg::node::{Any, Node};
use mot_programs::aggregate::{Argument, Call, Function, Input, Key};
use mot_programs::filter::{Comparison, Number, WordKind};
use pgrx::pg_sys;

/// Neither an ordered-set nor a hypothetical-set aggregate (`catalog/pg_aggregate.h`).
const AGGKIND_NORMAL: u8 = b'n';

/// An aggregate of a query; `None`: it takes core.
pub fn call(compiler: &mut Compiler<'_>, call: Node<'_, pg_sys::Aggref>) -> Option<Call> {
    let is_plain = call.aggkind() as u8 == AGGKIND_NORMAL
        && call.agglevelsup() == 0
        && !call.aggdirectargs()
        && !call.aggorder()
        && !call.aggdistinct()
        && !call.aggvariadic();
    if !is_plain {
        return None;
    }
    let (function, input) = function(call.aggfnoid())?;
    let is_computed = match call.aggsplit() {
        pg_sys::AggSplit::AGGSPLIT_SIMPLE => true,
        pg_sys::AggSplit::AGGSPLIT_INITIAL_SERIAL => function.is_its_own_part(input),
        _ => false,
    };
    if !is_computed {
        return None;
    }
    let argument = match (function, call.args().len()) {
        (Function::CountRows, 0) => Argument::Nothing,
        (Function::CountRows, _) => return None,
        (_, 1) => argument(compiler, argument_of(call)?, input)?,
        _ => return None,
    };
    let filter = match call.aggfilter() {
        None => None,
        Some(condition) => Some(compiler.condition(condition)?),
    };
    // Their values belong to the scan's node, not to this one.
    compiler.parameters.is_empty().then_some(Call {
        function,
        input,
        argument,
        filter,
    })
}

/// An argument of an aggregate that takes such input.
fn argument(compiler: &mut Compiler<'_>, node: Any<'_>, input: Input) -> Option<Argument> {
    let node = node.unlabelled();
    let column = node.cast::<pg_sys::Var>();
    match input {
        Input::Number(kind) => compiler.number(node, kind).map(Argument::Number),
        Input::Numeric => {
            let (column, stored) = compiler.column(column?)?;
            (stored == (-1, false)).then_some(Argument::Numeric(column))
        }
        Input::Anything => {
            if let Some(column) = column {
                return Some(Argument::Presence(compiler.column(column)?.0));
            }
            if let Some(constant) = node.cast::<pg_sys::Const>() {
                return Some(match constant.constisnull() {
                    true => Argument::Number(Number::Constant(None)),
                    false => Argument::Nothing,
                });
            }
            let kind = match node.value_type() {
                pg_sys::INT2OID => WordKind::Int2,
                pg_sys::INT4OID => WordKind::Int4,
                pg_sys::INT8OID => WordKind::Int8,
                _ => return None,
            };
            compiler.number(node, kind).map(Argument::Number)
        }
    }
}

/// A column of GROUP BY that is compared by the operator; `None`: it takes core.
pub fn key(compiler: &mut Compiler<'_>, node: Any<'_>, equality: pg_sys::Oid) -> Option<Key> {
    let key = key_of(compiler, node)?;
    // SAFETY: a catalog look-up.
    let compares = filter::function(unsafe { pg_sys::get_opcode(equality) })?;
    let is_equality = matches!(
        compares,
        filter::Function::Compare(Comparison::Equal, left, right) if left == key.kind && right == key.kind
    );
    is_equality.then_some(key)
}

/// The same, of an expression of a plan that was made so.
pub fn key_of(compiler: &mut Compiler<'_>, node: Any<'_>) -> Option<Key> {
    let kind = match node.value_type() {
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

/// The expression of the first argument; `None`: there is no argument.
pub fn argument_of(call: Node<'_, pg_sys::Aggref>) -> Option<Any<'_>> {
    call.args().get(0).map(|argument| argument.expression())
}
