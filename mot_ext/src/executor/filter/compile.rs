//! From the planner's conditions to a filter's.
use super::operators::{Function, function};
use super::parameters::{Form, Parameters, Source, short_payload};
use crate::keys;
use crate::pg::list::items;
use crate::pg::version;
use mot_programs::filter::{Comparison, Condition, Number, Pattern, Text, WordKind};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

/// So many levels deep an expression may be. Compiling, evaluating and dropping one take up to 1.2
/// kB of stack for each, which no check measures, and what core evaluates, step by step, takes
/// none: it has 512 kB behind `max_stack_depth` for all code that does not ask.
const LEVELS_MAX: usize = 100;

/// What the compiled conditions need.
pub struct Compiler {
    /// The table's place in the range table.
    table: u32,
    row_type: pg_sys::TupleDesc,
    pub parameters: Parameters,
    /// Columns up to the last one that is read.
    pub columns: usize,
    /// How many levels deep the expression is that is being compiled.
    levels: usize,
}

impl Compiler {
    pub fn new(table: u32, row_type: pg_sys::TupleDesc) -> Compiler {
        Compiler {
            table,
            row_type,
            parameters: Parameters::default(),
            columns: 0,
            levels: 0,
        }
    }

    /// Compiles what is a level deeper; `None` if that is one too many.
    fn deeper<T>(&mut self, compile: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.levels == LEVELS_MAX {
            return None;
        }
        self.levels += 1;
        let compiled = compile(self);
        self.levels -= 1;
        compiled
    }

    /// `None`: it takes core to evaluate it.
    pub unsafe fn condition(&mut self, node: *mut pg_sys::Node) -> Option<Condition> {
        // SAFETY: the caller's promise.
        self.deeper(|deeper| unsafe { deeper.condition_here(node) })
    }

    unsafe fn condition_here(&mut self, node: *mut pg_sys::Node) -> Option<Condition> {
        // SAFETY: an expression of type boolean of a finished plan; casts by tag.
        unsafe {
            match (*node).type_ {
                T_OpExpr => {
                    let call = &*node.cast::<pg_sys::OpExpr>();
                    self.call(call.opfuncid, call.inputcollid, call.args)
                }
                T_FuncExpr => {
                    let call = &*node.cast::<pg_sys::FuncExpr>();
                    self.call(call.funcid, call.inputcollid, call.args)
                }
                T_BoolExpr => {
                    let call = &*node.cast::<pg_sys::BoolExpr>();
                    let mut members = items::<pg_sys::Node>(call.args)
                        .into_iter()
                        .map(|member| self.condition(member))
                        .collect::<Option<Vec<_>>>()?;
                    Some(match call.boolop {
                        pg_sys::BoolExprType::AND_EXPR => Condition::All(members),
                        pg_sys::BoolExprType::OR_EXPR => Condition::Any(members),
                        _ => Condition::Not(Box::new(members.pop()?)),
                    })
                }
                T_NullTest => {
                    let test = &*node.cast::<pg_sys::NullTest>();
                    let column = test.arg.cast::<pg_sys::Node>();
                    if test.argisrow || (*column).type_ != T_Var {
                        return None;
                    }
                    Some(Condition::IsNull {
                        column: self.column(&*column.cast())?.0,
                        is_negated: test.nulltesttype == pg_sys::NullTestType::IS_NOT_NULL,
                    })
                }
                T_BooleanTest => {
                    let test = &*node.cast::<pg_sys::BooleanTest>();
                    let answers = match test.booltesttype {
                        pg_sys::BoolTestType::IS_TRUE => [true, false, false],
                        pg_sys::BoolTestType::IS_NOT_TRUE => [false, true, true],
                        pg_sys::BoolTestType::IS_FALSE => [false, true, false],
                        pg_sys::BoolTestType::IS_NOT_FALSE => [true, false, true],
                        pg_sys::BoolTestType::IS_UNKNOWN => [false, false, true],
                        _ => [true, true, false],
                    };
                    let tested = self.condition(test.arg.cast())?;
                    Some(Condition::Test(answers, Box::new(tested)))
                }
                _ => self.number(node, WordKind::Bool).map(Condition::Is),
            }
        }
    }

    unsafe fn call(
        &mut self,
        oid: pg_sys::Oid,
        collation: pg_sys::Oid,
        arguments: *mut pg_sys::List,
    ) -> Option<Condition> {
        // SAFETY: a call's arguments.
        unsafe {
            let arguments = items::<pg_sys::Node>(arguments);
            let [left, right] = arguments[..] else {
                return None;
            };
            match function(oid)? {
                Function::Compare(comparison, left_kind, right_kind) => Some(Condition::Compare(
                    comparison,
                    self.number(left, left_kind)?,
                    self.number(right, right_kind)?,
                )),
                Function::CompareTexts(comparison, is_padded) => {
                    let is_equality =
                        matches!(comparison, Comparison::Equal | Comparison::NotEqual);
                    let compares_bytes = is_deterministic(collation)
                        && (is_equality || keys::text_order(collation) == keys::TextOrder::Bytes);
                    if !compares_bytes {
                        return None;
                    }
                    Some(Condition::CompareTexts {
                        comparison,
                        is_padded,
                        left: self.text(left)?,
                        right: self.text(right)?,
                    })
                }
                Function::Like(is_negated) => {
                    if !is_deterministic(collation) || !finds_by_bytes() {
                        return None;
                    }
                    let Text::Constant(Some(pattern)) = self.text(right)? else {
                        return None;
                    };
                    Some(Condition::Like {
                        text: self.text(left)?,
                        pattern: Pattern::new(&pattern)?,
                        is_negated,
                    })
                }
                _ => None,
            }
        }
    }

    /// An expression whose value is of the kind.
    pub unsafe fn number(&mut self, node: *mut pg_sys::Node, kind: WordKind) -> Option<Number> {
        // SAFETY: the caller's promise.
        self.deeper(|deeper| unsafe { deeper.number_here(node, kind) })
    }

    unsafe fn number_here(&mut self, node: *mut pg_sys::Node, kind: WordKind) -> Option<Number> {
        // SAFETY: an expression of a finished plan; casts by tag.
        unsafe {
            match (*node).type_ {
                T_Var => {
                    let (column, length) = self.column(&*node.cast())?;
                    (length == (kind.bytes(), true)).then_some(Number::Column(column, kind))
                }
                T_Const => {
                    let constant = &*node.cast::<pg_sys::Const>();
                    let is_of_kind =
                        constant.constbyval && constant.constlen == i32::from(kind.bytes());
                    let value = (!constant.constisnull)
                        .then(|| kind.of_word(constant.constvalue.value() as u64));
                    is_of_kind.then_some(Number::Constant(value))
                }
                T_Param => {
                    let source = self.parameter(node.cast(), kind.bytes(), true)?;
                    let number = self.parameters.add(source, Form::Number(kind));
                    Some(Number::Parameter(number))
                }
                T_RelabelType => {
                    self.number((*node.cast::<pg_sys::RelabelType>()).arg.cast(), kind)
                }
                T_OpExpr => {
                    let call = &*node.cast::<pg_sys::OpExpr>();
                    self.computed(call.opfuncid, call.args, kind)
                }
                T_FuncExpr => {
                    let call = &*node.cast::<pg_sys::FuncExpr>();
                    self.computed(call.funcid, call.args, kind)
                }
                _ => None,
            }
        }
    }

    unsafe fn computed(
        &mut self,
        oid: pg_sys::Oid,
        arguments: *mut pg_sys::List,
        kind: WordKind,
    ) -> Option<Number> {
        // SAFETY: a call's arguments.
        unsafe {
            let arguments = items::<pg_sys::Node>(arguments);
            match (function(oid)?, &arguments[..]) {
                (Function::Compute(operation, left_kind, right_kind, result), [left, right])
                    if result == kind =>
                {
                    let left = self.number(*left, left_kind)?;
                    let right = self.number(*right, right_kind)?;
                    Some(Number::Compute(operation, result, Box::new((left, right))))
                }
                (Function::Negate(result), [argument]) if result == kind => {
                    let argument = self.number(*argument, result)?;
                    Some(Number::Negate(result, Box::new(argument)))
                }
                (Function::Widen(from, to), [argument]) if to == kind => {
                    self.number(*argument, from)
                }
                _ => None,
            }
        }
    }

    unsafe fn text(&mut self, node: *mut pg_sys::Node) -> Option<Text> {
        let mut node = node;
        // SAFETY: an expression of a finished plan, whose value the function it is given to takes
        // as a text; casts by tag.
        unsafe {
            while (*node).type_ == T_RelabelType {
                node = (*node.cast::<pg_sys::RelabelType>()).arg.cast();
            }
            match (*node).type_ {
                T_Var => {
                    let (column, length) = self.column(&*node.cast())?;
                    (length == (-1, false)).then_some(Text::Column(column))
                }
                T_Const => {
                    let constant = &*node.cast::<pg_sys::Const>();
                    if constant.constlen != -1 {
                        return None;
                    }
                    if constant.constisnull {
                        return Some(Text::Constant(None));
                    }
                    let bytes = short_payload(constant.constvalue.cast_mut_ptr())?;
                    Some(Text::Constant(Some(bytes.into())))
                }
                T_Param => {
                    let source = self.parameter(node.cast(), -1, false)?;
                    Some(Text::Parameter(self.parameters.add(source, Form::Text)))
                }
                _ => None,
            }
        }
    }

    /// A column of the table: its place, and how its type is stored (bytes, by value).
    pub unsafe fn column(&mut self, column: &pg_sys::Var) -> Option<(usize, (i16, bool))> {
        // SAFETY: the table's row type; only a column that it has is read.
        unsafe {
            let count = (*self.row_type).natts;
            let number = i32::from(column.varattno);
            if column.varno as u32 != self.table
                || column.varlevelsup != 0
                || !(1..=count).contains(&number)
                || !version::is_of_the_row(column)
            {
                return None;
            }
            let position = number as usize - 1;
            let attribute = &*version::attributes(self.row_type).add(position);
            if attribute.attisdropped || attribute.atttypid != column.vartype {
                return None;
            }
            self.columns = self.columns.max(position + 1);
            Some((position, (attribute.attlen, attribute.attbyval)))
        }
    }

    /// Where a parameter's value is, if its type is stored so.
    unsafe fn parameter(
        &self,
        parameter: *const pg_sys::Param,
        bytes: i16,
        by_value: bool,
    ) -> Option<Source> {
        let (mut length, mut is_by_value) = (0, false);
        // SAFETY: a Param of a finished plan; a catalog look-up.
        unsafe {
            pg_sys::get_typlenbyval((*parameter).paramtype, &mut length, &mut is_by_value);
            if (length, is_by_value) != (bytes, by_value) {
                return None;
            }
            match (*parameter).paramkind {
                pg_sys::ParamKind::PARAM_EXTERN => {
                    Some(Source::Extern((*parameter).paramid, (*parameter).paramtype))
                }
                pg_sys::ParamKind::PARAM_EXEC => Some(Source::Exec((*parameter).paramid)),
                _ => None,
            }
        }
    }
}

/// Whether texts are equal under the collation exactly if their bytes are.
unsafe fn is_deterministic(collation: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up. The database's own collation always is.
    unsafe {
        collation == pg_sys::DEFAULT_COLLATION_OID
            || (collation != pg_sys::InvalidOid && pg_sys::get_collation_isdeterministic(collation))
    }
}

/// Whether bytes that are found in a text are characters of it: in UTF-8, and where each byte is a
/// character.
unsafe fn finds_by_bytes() -> bool {
    // SAFETY: plain look-ups of the database's encoding.
    unsafe {
        pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as i32
            || pg_sys::pg_database_encoding_max_length() == 1
    }
}
