//! Programs against an interpreter that knows nothing of bytes, and groups against single rows.
mod common;
#[path = "common/questions.rs"]
mod questions;

use common::{Type, Value, number, row, tuple};
use mot_programs::filter::{
    Arithmetic, Comparison, Group, Groups, Layout, Place, ROWS, Row, Unsure, WordKind, members,
};
use proptest::prelude::*;
use questions::{Expression, Question, TYPES, Words, compiled, given, missing, naive};

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
    let kind = || {
        prop_oneof![
            Just(WordKind::Int2),
            Just(WordKind::Int4),
            Just(WordKind::Int8)
        ]
    };
    let numbers: Vec<usize> = (0..TYPES.len())
        .filter(|at| TYPES[*at] != Type::Text)
        .collect();
    let leaf = prop_oneof![
        6 => proptest::sample::select(numbers).prop_map(Expression::Column),
        2 => number(WordKind::Int4).prop_map(|value| Expression::Constant(Some(value))),
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
            WordKind::Int4,
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
