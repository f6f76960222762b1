//! Questions about rows, compiled and asked of an interpreter that knows nothing of bytes.
use crate::common::{Type, Value};
use mot_programs::filter::{
    Arithmetic, Comparison, Condition, Known, Number, ParameterValues, Pattern, Sure, Text, Unsure,
    WordKind,
};

/// The table's columns: fixed places first, then places that depend on the row.
pub const TYPES: [Type; 9] = [
    Type::Number(WordKind::Int2),
    Type::Number(WordKind::Int4),
    Type::Number(WordKind::Bool),
    Type::Text,
    Type::Number(WordKind::Int8),
    Type::Number(WordKind::Char),
    Type::Text,
    Type::Number(WordKind::Oid),
    Type::Number(WordKind::Int4),
];

/// What columns are in rows that end before them.
pub fn missing(column: usize) -> Value {
    match column {
        4 => Value::Number(-7),
        6 => Value::Text(b"ab ".to_vec(), false),
        _ => Value::Null,
    }
}

/// An expression, as the tests have it.
#[derive(Clone, Debug)]
pub enum Expression {
    Column(usize),
    Constant(Option<i64>),
    Parameter(usize),
    Compute(Arithmetic, WordKind, Box<(Expression, Expression)>),
    Negate(WordKind, Box<Expression>),
}

#[derive(Clone, Debug)]
pub enum Words {
    Column(usize),
    Constant(Option<String>),
    Parameter(usize),
}

/// A condition, as the tests have it.
#[derive(Clone, Debug)]
pub enum Question {
    Compare(Comparison, Expression, Expression),
    CompareTexts(Comparison, bool, Words, Words),
    Like(Words, String, bool),
    Is(Expression),
    Test([bool; 3], Box<Question>),
    IsNull(usize, bool),
    Not(Box<Question>),
    All(Vec<Question>),
    Any(Vec<Question>),
}

/// Values of parameters; of one more it is not sure.
pub struct Given(pub Vec<Known>);

impl ParameterValues for Given {
    fn value(&self, number: usize) -> Sure<&Known> {
        self.0.get(number).ok_or(Unsure)
    }
}

pub fn given() -> Given {
    Given(vec![
        Known::Number(2),
        Known::Null,
        Known::Text(b"a".as_slice().into()),
        Known::Null,
    ])
}

pub fn compiled_number(expression: &Expression) -> Number {
    match expression {
        Expression::Column(column) => match TYPES[*column] {
            Type::Number(kind) => Number::Column(*column, kind),
            Type::Text => unreachable!("a text is no number"),
        },
        Expression::Constant(value) => Number::Constant(*value),
        Expression::Parameter(number) => Number::Parameter(*number),
        Expression::Compute(operation, kind, arguments) => {
            let (left, right) = &**arguments;
            let arguments = (compiled_number(left), compiled_number(right));
            Number::Compute(*operation, *kind, Box::new(arguments))
        }
        Expression::Negate(kind, argument) => {
            Number::Negate(*kind, Box::new(compiled_number(argument)))
        }
    }
}

pub fn compiled_text(words: &Words) -> Text {
    match words {
        Words::Column(column) => Text::Column(*column),
        Words::Constant(text) => Text::Constant(text.as_ref().map(|text| text.as_bytes().into())),
        Words::Parameter(number) => Text::Parameter(*number),
    }
}

pub fn compiled(question: &Question) -> Condition {
    let all = |members: &[Question]| members.iter().map(compiled).collect();
    match question {
        Question::Compare(comparison, left, right) => {
            Condition::Compare(*comparison, compiled_number(left), compiled_number(right))
        }
        Question::CompareTexts(comparison, is_padded, left, right) => Condition::CompareTexts {
            comparison: *comparison,
            is_padded: *is_padded,
            left: compiled_text(left),
            right: compiled_text(right),
        },
        Question::Like(text, pattern, is_negated) => Condition::Like {
            text: compiled_text(text),
            pattern: Pattern::new(pattern.as_bytes()).expect("no underscore"),
            is_negated: *is_negated,
        },
        Question::Is(value) => Condition::Is(compiled_number(value)),
        Question::Test(answers, tested) => Condition::Test(*answers, Box::new(compiled(tested))),
        Question::IsNull(column, is_negated) => Condition::IsNull {
            column: *column,
            is_negated: *is_negated,
        },
        Question::Not(question) => Condition::Not(Box::new(compiled(question))),
        Question::All(members) => Condition::All(all(members)),
        Question::Any(members) => Condition::Any(all(members)),
    }
}

/// The value of an expression over a row's values.
pub fn naive_number(expression: &Expression, row: &[Value]) -> Sure<Option<i64>> {
    let held = |kind: WordKind, value: Option<i128>| {
        let (least, most) = match kind {
            WordKind::Int2 => (i16::MIN.into(), i16::MAX.into()),
            WordKind::Int4 => (i32::MIN.into(), i32::MAX.into()),
            _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
        };
        match value {
            Some(value) if (least..=most).contains(&value) => Ok(Some(value as i64)),
            _ => Err(Unsure),
        }
    };
    match expression {
        Expression::Column(column) => match &row[*column] {
            Value::Null => Ok(None),
            Value::Number(value) => Ok(Some(*value)),
            Value::Text(..) => unreachable!("a text is no number"),
        },
        Expression::Constant(value) => Ok(*value),
        Expression::Parameter(number) => match given().value(*number)? {
            Known::Number(value) => Ok(Some(*value)),
            _ => Ok(None),
        },
        Expression::Compute(operation, kind, arguments) => {
            let left = naive_number(&arguments.0, row)?;
            let right = naive_number(&arguments.1, row)?;
            let (Some(left), Some(right)) = (left.map(i128::from), right.map(i128::from)) else {
                return Ok(None);
            };
            // The remainder of the least number by -1 is PostgreSQL's, which has a rule for it.
            let is_special = (left, right) == (i64::MIN.into(), -1);
            let value = match operation {
                Arithmetic::Add => Some(left + right),
                Arithmetic::Subtract => Some(left - right),
                Arithmetic::Multiply => Some(left * right),
                Arithmetic::Divide => (right != 0).then(|| left / right),
                Arithmetic::Remainder => (right != 0 && !is_special).then(|| left % right),
            };
            held(*kind, value)
        }
        Expression::Negate(kind, argument) => match naive_number(argument, row)? {
            Some(value) => held(*kind, Some(-i128::from(value))),
            None => Ok(None),
        },
    }
}

pub fn naive_text(words: &Words, row: &[Value]) -> Sure<Option<Vec<u8>>> {
    Ok(match words {
        Words::Column(column) => match &row[*column] {
            Value::Text(text, _) => Some(text.clone()),
            _ => None,
        },
        Words::Constant(text) => text.clone().map(String::into_bytes),
        Words::Parameter(number) => match given().value(*number)? {
            Known::Text(text) => Some(text.to_vec()),
            _ => None,
        },
    })
}

pub fn like(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'%', rest @ ..] => (0..=text.len()).any(|at| like(rest, &text[at..])),
        [byte, rest @ ..] => text.first() == Some(byte) && like(rest, &text[1..]),
    }
}

pub fn holds<T: Ord>(comparison: Comparison, left: &T, right: &T) -> bool {
    let order = left.cmp(right);
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterEqual => order.is_ge(),
    }
}

/// What a question says of a row's values: three-valued logic, members in their order.
pub fn naive(question: &Question, row: &[Value]) -> Sure<Option<bool>> {
    match question {
        Question::Compare(comparison, left, right) => {
            let (left, right) = (naive_number(left, row)?, naive_number(right, row)?);
            Ok(left
                .zip(right)
                .map(|(left, right)| holds(*comparison, &left, &right)))
        }
        Question::CompareTexts(comparison, is_padded, left, right) => {
            let (left, right) = (naive_text(left, row)?, naive_text(right, row)?);
            let taken = |mut text: Vec<u8>| {
                while *is_padded && text.last() == Some(&b' ') {
                    text.pop();
                }
                text
            };
            Ok(left
                .zip(right)
                .map(|(left, right)| holds(*comparison, &taken(left), &taken(right))))
        }
        Question::Like(text, pattern, is_negated) => {
            Ok(naive_text(text, row)?.map(|text| like(pattern.as_bytes(), &text) != *is_negated))
        }
        Question::Is(value) => Ok(naive_number(value, row)?.map(|value| value != 0)),
        Question::Test(answers, tested) => {
            let [of_true, of_false, of_null] = *answers;
            Ok(Some(match naive(tested, row)? {
                Some(true) => of_true,
                Some(false) => of_false,
                None => of_null,
            }))
        }
        Question::IsNull(column, is_negated) => {
            Ok(Some((row[*column] == Value::Null) != *is_negated))
        }
        Question::Not(question) => Ok(naive(question, row)?.map(|answer| !answer)),
        Question::All(members) => {
            let mut answer = Some(true);
            for member in members {
                match naive(member, row)? {
                    Some(false) => return Ok(Some(false)),
                    None => answer = None,
                    Some(true) => {}
                }
            }
            Ok(answer)
        }
        Question::Any(members) => {
            let mut answer = Some(false);
            for member in members {
                match naive(member, row)? {
                    Some(true) => return Ok(Some(true)),
                    None => answer = None,
                    Some(false) => {}
                }
            }
            Ok(answer)
        }
    }
}
