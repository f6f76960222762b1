//! Programs against an interpreter that knows nothing of bytes, and groups against single rows.
mod common;

use common::{Type, Value, number, row, tuple};
use mot_programs::filter::{
    Arithmetic, Comparison, Condition, Group, Groups, Kind, Known, Layout, Number, ParameterValues,
    Pattern, Place, ROWS, Row, Sure, Text, Unsure, members,
};
use proptest::prelude::*;

/// The table's columns: fixed places first, then places that depend on the row.
const TYPES: [Type; 9] = [
    Type::Number(Kind::Int2),
    Type::Number(Kind::Int4),
    Type::Number(Kind::Bool),
    Type::Text,
    Type::Number(Kind::Int8),
    Type::Number(Kind::Char),
    Type::Text,
    Type::Number(Kind::Oid),
    Type::Number(Kind::Int4),
];

/// What columns are in rows that end before them.
fn missing(column: usize) -> Value {
    match column {
        4 => Value::Number(-7),
        6 => Value::Text(b"ab ".to_vec(), false),
        _ => Value::Null,
    }
}

/// An expression, as the tests have it.
#[derive(Clone, Debug)]
enum Expression {
    Column(usize),
    Constant(Option<i64>),
    Parameter(usize),
    Compute(Arithmetic, Kind, Box<(Expression, Expression)>),
    Negate(Kind, Box<Expression>),
}

#[derive(Clone, Debug)]
enum Words {
    Column(usize),
    Constant(Option<String>),
    Parameter(usize),
}

/// A condition, as the tests have it.
#[derive(Clone, Debug)]
enum Question {
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
struct Given(Vec<Known>);

impl ParameterValues for Given {
    fn value(&self, number: usize) -> Sure<&Known> {
        self.0.get(number).ok_or(Unsure)
    }
}

fn given() -> Given {
    Given(vec![
        Known::Number(2),
        Known::Null,
        Known::Text(b"a".as_slice().into()),
        Known::Null,
    ])
}

fn compiled_number(expression: &Expression) -> Number {
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

fn compiled_text(words: &Words) -> Text {
    match words {
        Words::Column(column) => Text::Column(*column),
        Words::Constant(text) => Text::Constant(text.as_ref().map(|text| text.as_bytes().into())),
        Words::Parameter(number) => Text::Parameter(*number),
    }
}

fn compiled(question: &Question) -> Condition {
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
fn naive_number(expression: &Expression, row: &[Value]) -> Sure<Option<i64>> {
    let held = |kind: Kind, value: Option<i128>| {
        let (least, most) = match kind {
            Kind::Int2 => (i16::MIN.into(), i16::MAX.into()),
            Kind::Int4 => (i32::MIN.into(), i32::MAX.into()),
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

fn naive_text(words: &Words, row: &[Value]) -> Sure<Option<Vec<u8>>> {
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

fn like(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'%', rest @ ..] => (0..=text.len()).any(|at| like(rest, &text[at..])),
        [byte, rest @ ..] => text.first() == Some(byte) && like(rest, &text[1..]),
    }
}

fn holds<T: Ord>(comparison: Comparison, left: &T, right: &T) -> bool {
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
fn naive(question: &Question, row: &[Value]) -> Sure<Option<bool>> {
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

fn comparison() -> impl Strategy<Value = Comparison> + Clone {
    prop_oneof![
        Just(Comparison::Equal),
        Just(Comparison::NotEqual),
        Just(Comparison::Less),
        Just(Comparison::LessEqual),
        Just(Comparison::Greater),
        Just(Comparison::GreaterEqual),
    ]
}

fn operation() -> impl Strategy<Value = Arithmetic> {
    prop_oneof![
        Just(Arithmetic::Add),
        Just(Arithmetic::Subtract),
        Just(Arithmetic::Multiply),
        Just(Arithmetic::Divide),
        Just(Arithmetic::Remainder),
    ]
}

fn expression() -> impl Strategy<Value = Expression> + Clone {
    let kind = || prop_oneof![Just(Kind::Int2), Just(Kind::Int4), Just(Kind::Int8)];
    let numbers: Vec<usize> = (0..TYPES.len())
        .filter(|at| TYPES[*at] != Type::Text)
        .collect();
    let leaf = prop_oneof![
        6 => proptest::sample::select(numbers).prop_map(Expression::Column),
        2 => number(Kind::Int4).prop_map(|value| Expression::Constant(Some(value))),
        1 => Just(Expression::Constant(None)),
        1 => prop_oneof![Just(0_usize), Just(1), Just(9)].prop_map(Expression::Parameter),
    ];
    leaf.prop_recursive(2, 8, 2, move |inner| {
        prop_oneof![
            4 => (operation(), kind(), inner.clone(), inner.clone())
                .prop_map(|(operation, kind, left, right)| {
                    Expression::Compute(operation, kind, Box::new((left, right)))
                }),
            1 => (kind(), inner)
                .prop_map(|(kind, argument)| Expression::Negate(kind, Box::new(argument))),
        ]
    })
}

fn words() -> impl Strategy<Value = Words> + Clone {
    prop_oneof![
        4 => prop_oneof![Just(3_usize), Just(6)].prop_map(Words::Column),
        2 => "[ab ]{0,3}".prop_map(|text| Words::Constant(Some(text))),
        1 => Just(Words::Constant(None)),
        1 => prop_oneof![Just(2_usize), Just(3), Just(9)].prop_map(Words::Parameter),
    ]
}

fn question() -> impl Strategy<Value = Question> {
    let leaf = prop_oneof![
        4 => (comparison(), expression(), expression())
            .prop_map(|(comparison, left, right)| Question::Compare(comparison, left, right)),
        2 => (comparison(), any::<bool>(), words(), words()).prop_map(
            |(comparison, is_padded, left, right)| {
                Question::CompareTexts(comparison, is_padded, left, right)
            }
        ),
        2 => (words(), "[ab%]{0,4}", any::<bool>())
            .prop_map(|(text, pattern, is_negated)| Question::Like(text, pattern, is_negated)),
        1 => expression().prop_map(Question::Is),
        1 => (0..TYPES.len(), any::<bool>())
            .prop_map(|(column, is_negated)| Question::IsNull(column, is_negated)),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            1 => (any::<[bool; 3]>(), inner.clone())
                .prop_map(|(answers, tested)| Question::Test(answers, Box::new(tested))),
            1 => inner.clone().prop_map(|question| Question::Not(Box::new(question))),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Question::All),
            2 => prop::collection::vec(inner, 1..4).prop_map(Question::Any),
        ]
    })
}

/// Rows, some of them from before the last columns.
fn rows() -> impl Strategy<Value = Vec<Vec<Value>>> {
    let one = (row(&TYPES, 2), 0..=TYPES.len(), 0..4).prop_map(|(mut row, length, is_older)| {
        if is_older == 0 {
            row.truncate(length);
        }
        row
    });
    let without_null = row(&TYPES, 0);
    prop::collection::vec(prop_oneof![one, without_null], 1..=ROWS)
}

/// A table's rows as bytes, and as values.
struct Table {
    layout: Layout,
    tuples: Vec<Vec<u8>>,
    values: Vec<Vec<Value>>,
}

impl Table {
    fn new(rows: Vec<Vec<Value>>) -> Table {
        let layouts = TYPES.map(Type::layout);
        let layout = Layout::new(&layouts, |column| match missing(column) {
            Value::Null => None,
            Value::Number(number) => Some(Box::new([number as u64])),
            // A short header and up to seven bytes.
            Value::Text(text, _) => {
                let mut bytes = [0; 8];
                bytes[0] = (text.len() as u8 + 1) << 1 | 1;
                bytes[1..=text.len()].copy_from_slice(&text);
                Some(Box::new([u64::from_le_bytes(bytes)]))
            }
        });
        Table {
            layout,
            tuples: rows.iter().map(|row| tuple(&TYPES, row)).collect(),
            values: rows
                .into_iter()
                .map(|mut row| {
                    row.extend((row.len()..TYPES.len()).map(missing));
                    row
                })
                .collect(),
        }
    }

    fn group(&self) -> Group<usize> {
        let mut group = Group::new();
        for (at, tuple) in self.tuples.iter().enumerate() {
            // SAFETY: a whole tuple, which the table keeps.
            group.add(unsafe { Row::of_tuple(tuple.as_ptr()) }, at);
        }
        group
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_row_has_the_interpreters_answer(rows in rows(), question in question()) {
        let table = Table::new(rows);
        let (condition, parameters) = (compiled(&question), given());
        for (tuple, values) in table.tuples.iter().zip(&table.values) {
            let place = Place {
                // SAFETY: a whole tuple, which the table keeps.
                row: unsafe { Row::of_tuple(tuple.as_ptr()) },
                layout: &table.layout,
                parameters: &parameters,
            };
            // SAFETY: a row of the layout's table.
            let answer = unsafe { place.condition(&condition) };
            prop_assert_eq!(answer, naive(&question, values), "{:?}", values);
        }
    }

    #[test]
    fn a_group_has_the_answers_of_its_rows(
        rows in rows(),
        question in question(),
        asked in any::<u64>(),
    ) {
        let table = Table::new(rows);
        let (condition, parameters, group) = (compiled(&question), given(), table.group());
        let groups = Groups {
            rows: group.rows(),
            layout: &table.layout,
            parameters: &parameters,
        };
        let asked = asked & group.all();
        // SAFETY: rows of the layout's table. So below.
        let answer = unsafe { groups.condition(&condition, asked) };
        for at in members(asked) {
            let found = match [answer.yes, answer.no, answer.unsure].map(|set| set >> at & 1) {
                [1, 0, 0] => Ok(Some(true)),
                [0, 1, 0] => Ok(Some(false)),
                [0, 0, 0] => Ok(None),
                [0, 0, 1] => Err(Unsure),
                other => panic!("row {at} is in {other:?}"),
            };
            // SAFETY: as above.
            prop_assert_eq!(found, unsafe { groups.place(at).condition(&condition) }, "row {}", at);
        }
        prop_assert_eq!((answer.yes | answer.no | answer.unsure) & !asked, 0);
    }

    #[test]
    fn rows_pass_a_run_of_conditions_together_as_alone(
        rows in rows(),
        questions in prop::collection::vec(question(), 1..4),
    ) {
        let table = Table::new(rows);
        let conditions: Vec<_> = questions.iter().map(compiled).collect();
        let (parameters, group) = (given(), table.group());
        let groups = Groups {
            rows: group.rows(),
            layout: &table.layout,
            parameters: &parameters,
        };
        // SAFETY: rows of the layout's table. So below.
        let (passing, unsure) = unsafe { groups.passing(&conditions, group.all()) };
        for at in 0..group.length() {
            let found = match (passing >> at & 1, unsure >> at & 1) {
                (1, 0) => Ok(true),
                (0, 0) => Ok(false),
                (0, 1) => Err(Unsure),
                other => panic!("row {at} is {other:?}"),
            };
            // SAFETY: as above.
            prop_assert_eq!(found, unsafe { groups.place(at).passes(&conditions) }, "row {}", at);
        }
    }
}

#[test]
fn what_comes_behind_the_deciding_member_is_not_asked() {
    let table = Table::new(vec![vec![Value::Number(0), Value::Number(1)]]);
    let column = |at| Expression::Column(at);
    let fails = Question::Compare(
        Comparison::Equal,
        Expression::Compute(
            Arithmetic::Divide,
            Kind::Int4,
            Box::new((column(1), column(0))),
        ),
        column(1),
    );
    let is_zero = Question::Is(column(0));
    let (group, parameters) = (table.group(), given());
    let groups = Groups {
        rows: group.rows(),
        layout: &table.layout,
        parameters: &parameters,
    };
    for (members, unsure) in [
        (vec![is_zero.clone(), fails.clone()], 0),
        (vec![fails, is_zero], 1),
    ] {
        // SAFETY: a row of the layout's table.
        let answer = unsafe { groups.condition(&compiled(&Question::All(members)), group.all()) };
        assert_eq!((answer.no, answer.unsure), (1 - unsure, unsure));
    }
}
