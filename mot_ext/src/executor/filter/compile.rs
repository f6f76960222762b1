//! From the planner's conditions to a filter's.
use super::operators::{Function, function};
use super::parameters::{Form, Parameters, Source, short_payload};
use crate::keys;
use crate::pg::node::{Any, List, Node};
use crate::pg::version;
use mot_programs::filter::{Comparison, Condition, Number, Pattern, Text, WordKind};
use pgrx::pg_sys;

/// So many levels deep an expression may be. Compiling, evaluating and dropping one take up to 1.2
/// kB of stack for each, which no check measures, and what core evaluates, step by step, takes
/// none: it has 512 kB behind `max_stack_depth` for all code that does not ask.
const LEVELS_MAX: usize = 100;

/// What the compiled conditions need.
pub struct Compiler<'p> {
    /// The table's place in the range table.
    table: u32,
    row_type: Node<'p, pg_sys::TupleDescData>,
    pub parameters: Parameters,
    /// Columns up to the last one that is read.
    pub columns: usize,
    /// How many levels deep the expression is that is being compiled.
    levels: usize,
}

impl<'p> Compiler<'p> {
    pub fn new(table: u32, row_type: Node<'p, pg_sys::TupleDescData>) -> Compiler<'p> {
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

    /// A condition, an expression of type boolean. `None`: it takes core to evaluate it.
    pub fn condition(&mut self, node: Any<'_>) -> Option<Condition> {
        self.deeper(|deeper| deeper.condition_here(node))
    }

    fn condition_here(&mut self, node: Any<'_>) -> Option<Condition> {
        if let Some(call) = node.cast::<pg_sys::OpExpr>() {
            return self.call(call.opfuncid(), call.inputcollid(), call.args());
        }
        if let Some(call) = node.cast::<pg_sys::FuncExpr>() {
            return self.call(call.funcid(), call.inputcollid(), call.args());
        }
        if let Some(call) = node.cast::<pg_sys::BoolExpr>() {
            return self.connected(call);
        }
        if let Some(test) = node.cast::<pg_sys::NullTest>() {
            let column = test.argument().cast::<pg_sys::Var>()?;
            if test.argisrow() {
                return None;
            }
            return Some(Condition::IsNull {
                column: self.column(column)?.0,
                is_negated: test.nulltesttype() == pg_sys::NullTestType::IS_NOT_NULL,
            });
        }
        if let Some(test) = node.cast::<pg_sys::BooleanTest>() {
            let tested = self.condition(test.argument())?;
            return Some(Condition::Test(answers(test), Box::new(tested)));
        }
        self.number(node, WordKind::Bool).map(Condition::Is)
    }

    /// AND, OR and NOT.
    fn connected(&mut self, call: Node<'_, pg_sys::BoolExpr>) -> Option<Condition> {
        let members = call.args().iter().map(|member| self.condition(member));
        let mut members = members.collect::<Option<Vec<_>>>()?;
        Some(match call.boolop() {
            pg_sys::BoolExprType::AND_EXPR => Condition::All(members),
            pg_sys::BoolExprType::OR_EXPR => Condition::Any(members),
            _ => Condition::Not(Box::new(members.pop()?)),
        })
    }

    fn call(
        &mut self,
        oid: pg_sys::Oid,
        collation: pg_sys::Oid,
        arguments: List<'_, pg_sys::Node>,
    ) -> Option<Condition> {
        let (left, right) = two(arguments)?;
        match function(oid)? {
            Function::Compare(comparison, left_kind, right_kind) => Some(Condition::Compare(
                comparison,
                self.number(left, left_kind)?,
                self.number(right, right_kind)?,
            )),
            Function::CompareTexts(comparison, is_padded) => {
                let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
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

    /// An expression whose value is of the kind.
    pub fn number(&mut self, node: Any<'_>, kind: WordKind) -> Option<Number> {
        self.deeper(|deeper| deeper.number_here(node, kind))
    }

    fn number_here(&mut self, node: Any<'_>, kind: WordKind) -> Option<Number> {
        if let Some(column) = node.cast::<pg_sys::Var>() {
            let (column, length) = self.column(column)?;
            return (length == (kind.bytes(), true)).then_some(Number::Column(column, kind));
        }
        if let Some(constant) = node.cast::<pg_sys::Const>() {
            let is_of_kind =
                constant.constbyval() && constant.constlen() == i32::from(kind.bytes());
            let value = (!constant.constisnull())
                .then(|| kind.of_word(constant.constvalue().value() as u64));
            return is_of_kind.then_some(Number::Constant(value));
        }
        if let Some(parameter) = node.cast::<pg_sys::Param>() {
            let source = source(parameter, kind.bytes(), true)?;
            let number = self.parameters.add(source, Form::Number(kind));
            return Some(Number::Parameter(number));
        }
        if let Some(labelled) = node.cast::<pg_sys::RelabelType>() {
            return self.number(labelled.argument(), kind);
        }
        if let Some(call) = node.cast::<pg_sys::OpExpr>() {
            return self.computed(call.opfuncid(), call.args(), kind);
        }
        let call = node.cast::<pg_sys::FuncExpr>()?;
        self.computed(call.funcid(), call.args(), kind)
    }

    fn computed(
        &mut self,
        oid: pg_sys::Oid,
        arguments: List<'_, pg_sys::Node>,
        kind: WordKind,
    ) -> Option<Number> {
        match function(oid)? {
            Function::Compute(operation, left_kind, right_kind, result) if result == kind => {
                let (left, right) = two(arguments)?;
                let left = self.number(left, left_kind)?;
                let right = self.number(right, right_kind)?;
                Some(Number::Compute(operation, result, Box::new((left, right))))
            }
            Function::Negate(result) if result == kind => {
                let argument = self.number(one(arguments)?, result)?;
                Some(Number::Negate(result, Box::new(argument)))
            }
            Function::Widen(from, to) if to == kind => self.number(one(arguments)?, from),
            _ => None,
        }
    }

    /// An expression whose value the function that it is given to takes as a text.
    fn text(&mut self, node: Any<'_>) -> Option<Text> {
        let node = node.unlabelled();
        if let Some(column) = node.cast::<pg_sys::Var>() {
            let (column, length) = self.column(column)?;
            return (length == (-1, false)).then_some(Text::Column(column));
        }
        if let Some(constant) = node.cast::<pg_sys::Const>() {
            if constant.constlen() != -1 {
                return None;
            }
            if constant.constisnull() {
                return Some(Text::Constant(None));
            }
            // SAFETY: a value of variable length.
            let bytes = unsafe { short_payload(constant.constvalue().cast_mut_ptr()) }?;
            return Some(Text::Constant(Some(bytes.into())));
        }
        let source = source(node.cast::<pg_sys::Param>()?, -1, false)?;
        Some(Text::Parameter(self.parameters.add(source, Form::Text)))
    }

    /// A column of the table: its place, and how its type is stored (bytes, by value).
    pub fn column(&mut self, column: Node<'_, pg_sys::Var>) -> Option<(usize, (i16, bool))> {
        let is_of_table = column.varno() as u32 == self.table
            && column.varlevelsup() == 0
            && version::is_of_the_row(&column.fields());
        let position = usize::try_from(column.varattno()).ok()?.checked_sub(1)?;
        let attribute = self.row_type.columns().get(position)?;
        if !is_of_table || attribute.attisdropped || attribute.atttypid != column.vartype() {
            return None;
        }
        self.columns = self.columns.max(position + 1);
        Some((position, (attribute.attlen, attribute.attbyval)))
    }
}

/// The only argument of a call.
fn one(arguments: List<'_, pg_sys::Node>) -> Option<Any<'_>> {
    arguments.get(0).filter(|_| arguments.len() == 1)
}

/// The two arguments of a call.
fn two(arguments: List<'_, pg_sys::Node>) -> Option<(Any<'_>, Any<'_>)> {
    let both = arguments.get(0).zip(arguments.get(1));
    both.filter(|_| arguments.len() == 2)
}

/// What `IS TRUE` and its kin say of true, false and NULL.
fn answers(test: Node<'_, pg_sys::BooleanTest>) -> [bool; 3] {
    match test.booltesttype() {
        pg_sys::BoolTestType::IS_TRUE => [true, false, false],
        pg_sys::BoolTestType::IS_NOT_TRUE => [false, true, true],
        pg_sys::BoolTestType::IS_FALSE => [false, true, false],
        pg_sys::BoolTestType::IS_NOT_FALSE => [true, false, true],
        pg_sys::BoolTestType::IS_UNKNOWN => [false, false, true],
        _ => [true, true, false],
    }
}

/// Where a parameter's value is, if its type is stored so.
fn source(parameter: Node<'_, pg_sys::Param>, bytes: i16, by_value: bool) -> Option<Source> {
    let (mut length, mut is_by_value) = (0, false);
    // SAFETY: a catalog look-up.
    unsafe {
        pg_sys::get_typlenbyval(parameter.paramtype(), &raw mut length, &raw mut is_by_value);
    }
    if (length, is_by_value) != (bytes, by_value) {
        return None;
    }
    match parameter.paramkind() {
        pg_sys::ParamKind::PARAM_EXTERN => {
            Some(Source::Extern(parameter.paramid(), parameter.paramtype()))
        }
        pg_sys::ParamKind::PARAM_EXEC => Some(Source::Exec(parameter.paramid())),
        _ => None,
    }
}

/// Whether texts are equal under the collation exactly if their bytes are.
fn is_deterministic(collation: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up. The database's own collation always is.
    let is_known = |collation| unsafe { pg_sys::get_collation_isdeterministic(collation) };
    collation == pg_sys::DEFAULT_COLLATION_OID
        || (collation != pg_sys::InvalidOid && is_known(collation))
}

/// Whether bytes that are found in a text are characters of it: in UTF-8, and where each byte is a
/// character.
fn finds_by_bytes() -> bool {
    // SAFETY: plain look-ups of the database's encoding.
    unsafe {
        pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as i32
            || pg_sys::pg_database_encoding_max_length() == 1
    }
}
