//! From core's scan keys to key ranges.
//!
//! Conditions that fix values of each leading column (`=`, `= ANY`, IS NULL, all ranges of an enum)
//! become prefixes of keys, and those on the next column a range. Ranges beside `= ANY` leave out
//! values of its list. Core evaluates the rest over the
//! row, and each condition that the range does not answer exactly (`xs_recheck`). If no condition
//! is on the first column, that column may be skipped (`skip`).
use super::labels::ArgumentLabels;
use super::rows;
use super::skip::Skip;
use crate::access::bounds::Bounds;
use crate::access::conditions::{Test, best_fixing, exclude_each_other};
use crate::access::search::Key;
use crate::executor::expressions::Value;
use crate::keys::{self, Answer};
use crate::pg::index_scan::{ScanKey, ScanKeys};
use crate::pg::relation::Relation;
use mot_engine::key::{IndexDefinition, KeyKind};
use pgrx::pg_sys;

/// A scan key but for its argument.
type Form = (i32, pg_sys::AttrNumber, pg_sys::StrategyNumber, pg_sys::Oid);

fn form(key: ScanKey<'_>) -> Form {
    let (flags, strategy) = (key.flags(), key.strategy());
    (flags, key.number(), strategy, key.argument_type())
}

/// What an index scan looks for.
pub struct Sought {
    /// The scan keys that it was made of.
    forms: Vec<Form>,
    /// The scan keys whose arguments the bounds have, in order; `None`: it is made of other things.
    sources: Option<Vec<usize>>,
    pub bounds: Bounds,
    /// The bounds are of columns behind the first, whose values are passed over.
    pub skip: Option<Box<Skip>>,
    /// Core is to evaluate the conditions over each row.
    pub is_inexact: bool,
    /// A comparison with NULL: no row passes.
    pub is_empty: bool,
}

impl Sought {
    /// Takes the arguments of other scan keys; false: these are other conditions.
    pub fn take_arguments(&mut self, scan_keys: ScanKeys<'_>) -> bool {
        let Some(sources) = &self.sources else {
            return false;
        };
        let is_same = scan_keys.len() == self.forms.len()
            && (scan_keys.iter().zip(&self.forms)).all(|(key, known)| form(key) == *known);
        if is_same {
            let arguments = sources.iter().map(|at| argument(scan_keys.get(*at)));
            self.bounds.set_arguments(arguments);
        }
        is_same
    }
}

fn argument(key: ScanKey<'_>) -> Value {
    let (value, is_null) = key.argument();
    Value::Constant(value, is_null)
}

/// The conditions on one column of an index, each with the place of its key.
fn of_column(
    index: Relation<'_>,
    definition: &'static IndexDefinition,
    column: usize,
    scan_keys: ScanKeys<'_>,
) -> Vec<(usize, Condition)> {
    let mut conditions: Vec<(usize, Condition)> = Vec::new();
    let keys = scan_keys.iter().enumerate();
    for (at, key) in keys.filter(|(_, key)| key.is_of(column)) {
        match key.has(pg_sys::SK_ROW_HEADER) {
            true => {
                let mut of_row = Vec::new();
                rows::add(&mut of_row, index, definition, key);
                conditions.extend(of_row.into_iter().map(|condition| (at, condition)));
            }
            false => match condition(index, definition, column, key) {
                Some(condition) => conditions.push((at, condition)),
                None => {
                    let near = near(index, definition, column, key);
                    conditions.extend(near.into_iter().map(|condition| (at, condition)));
                }
            },
        }
    }
    conditions
}

/// The conditions of a scan of an index, whose table has so many rows. Those on values with labels
/// are left to core without `labels`.
pub fn sought(
    index: Relation<'_>,
    definition: &'static IndexDefinition,
    scan_keys: ScanKeys<'_>,
    rows: u64,
    mut labels: Option<ArgumentLabels<'_>>,
) -> Sought {
    let skip = match scan_keys.iter().any(|key| key.is_of(0)) {
        true => None,
        false => Skip::of(index, definition, scan_keys.len(), rows as f64),
    };
    let mut chosen = Chosen::default();
    let mut is_empty = scan_keys.iter().any(compares_with_null);
    let has_rows = scan_keys.iter().any(|key| key.has(pg_sys::SK_ROW_HEADER));
    let columns = definition.columns.iter().enumerate();
    for (column, known) in columns.skip(usize::from(skip.is_some())) {
        if known.collation.is_some() {
            keys::use_locale(index.key_column(column).collation);
        }
        let mut of_column = of_column(index, definition, column, scan_keys);
        if known.kind == KeyKind::Label
            && let Some(labels) = labels.as_mut().filter(|_| skip.is_none())
        {
            let before = chosen.bounds(definition);
            match labels.conditions(index, (before, column), scan_keys) {
                Some(found) => of_column.extend(found),
                None => is_empty = true,
            }
        }
        let tests: Vec<Test> = of_column.iter().map(|(_, found)| found.key.test).collect();
        if let Some(fixing) = best_fixing(&tests) {
            is_empty |= exclude_each_other(&tests);
            chosen.add(of_column[fixing]);
            let narrows = tests[fixing] == Test::AnyOf && known.can_narrow_lists() && !has_rows;
            for (found, test) in of_column.into_iter().zip(tests) {
                match test {
                    Test::IsNotNull => chosen.answered.push(found.0),
                    test if narrows && test.is_range() => chosen.add(found),
                    _ => {}
                }
            }
            continue;
        }
        let is_of_enums = |(_, found): &(usize, Condition)| found.key.test.is_of_enums();
        if of_column.iter().any(is_of_enums) {
            let ranges = of_column.into_iter().filter(is_of_enums);
            ranges.for_each(|found| chosen.add(found));
            continue;
        }
        of_column.into_iter().for_each(|found| chosen.add(found));
        break;
    }
    let is_answered = |at: usize| chosen.answered.contains(&at);
    let is_inexact = chosen.is_inexact || !(0..scan_keys.len()).all(is_answered);
    let can_take_arguments = !has_rows && !definition.has_labels();
    Sought {
        forms: scan_keys.iter().map(form).collect(),
        bounds: chosen.bounds(definition),
        sources: can_take_arguments.then_some(chosen.sources),
        skip,
        is_inexact,
        is_empty,
    }
}

/// The conditions that make a scan's ranges.
#[derive(Default)]
struct Chosen {
    keys: Vec<Key>,
    /// Of those that have one, in order.
    arguments: Vec<Value>,
    /// The places of the scan keys that these come from.
    sources: Vec<usize>,
    /// The places of those that the ranges answer, or hold only nearly.
    answered: Vec<usize>,
    is_inexact: bool,
}

impl Chosen {
    fn add(&mut self, (at, condition): (usize, Condition)) {
        self.keys.push(condition.key);
        self.answered.push(at);
        if condition.argument.is_some() {
            self.sources.push(at);
        }
        self.arguments.extend(condition.argument);
        self.is_inexact |= condition.is_inexact;
    }

    fn bounds(&self, definition: &'static IndexDefinition) -> Bounds {
        Bounds::new(definition, &self.keys, &self.arguments)
    }
}

/// A scan key as a test of its column.
#[derive(Clone, Copy)]
pub struct Condition {
    pub key: Key,
    pub argument: Option<Value>,
    pub is_inexact: bool,
}

fn compares_with_null(key: ScanKey<'_>) -> bool {
    key.has(pg_sys::SK_ISNULL) && !key.has(pg_sys::SK_SEARCHNULL | pg_sys::SK_SEARCHNOTNULL)
}

/// The test that a scan key is, if the index can answer it or bound it.
fn condition(
    index: Relation<'_>,
    definition: &IndexDefinition,
    column: usize,
    key: ScanKey<'_>,
) -> Option<Condition> {
    let test_of_null = |test| Condition {
        key: Key {
            column,
            test,
            argument_type: pg_sys::InvalidOid,
        },
        argument: None,
        is_inexact: false,
    };
    if key.has(pg_sys::SK_SEARCHNULL) {
        return Some(test_of_null(Test::IsNull));
    }
    if key.has(pg_sys::SK_SEARCHNOTNULL) {
        return Some(test_of_null(Test::IsNotNull));
    }
    if key.has(pg_sys::SK_ISNULL) {
        return None;
    }
    comparison(index, definition, column, key)
}

/// The range around a value in which equality with one of another type finds its rows; nothing, if
/// there is none.
fn near(
    index: Relation<'_>,
    definition: &IndexDefinition,
    column: usize,
    key: ScanKey<'_>,
) -> Vec<Condition> {
    let is_equality = test_of(key) == Some(Test::Equal) && !key.has(pg_sys::SK_ISNULL);
    if !is_equality || !keys::lies_near(index.key_column(column).input, key.argument_type()) {
        return Vec::new();
    }
    let end = |test| end_of(index, definition, column, key, test);
    let ends = [Test::GreaterEqual, Test::LessEqual];
    ends.into_iter().filter_map(end).collect()
}

/// The test that a comparison with a value or a list is, by its strategy.
pub fn test_of(key: ScanKey<'_>) -> Option<Test> {
    let is_list = key.has(pg_sys::SK_SEARCHARRAY);
    Some(match key.strategy() {
        1 if !is_list => Test::Less,
        2 if !is_list => Test::LessEqual,
        3 if is_list => Test::AnyOf,
        3 => Test::Equal,
        4 if !is_list => Test::GreaterEqual,
        5 if !is_list => Test::Greater,
        _ => return None,
    })
}

/// The test that a comparison with a value or a list is, if the index can answer it or bound it. A
/// value may be NULL.
pub fn comparison(
    index: Relation<'_>,
    definition: &IndexDefinition,
    column: usize,
    key: ScanKey<'_>,
) -> Option<Condition> {
    end_of(index, definition, column, key, test_of(key)?)
}

/// The same of another test with the same value.
fn end_of(
    index: Relation<'_>,
    definition: &IndexDefinition,
    column: usize,
    key: ScanKey<'_>,
    test: Test,
) -> Option<Condition> {
    let own = keys::IndexColumn::of(index, column);
    let argument_type = match key.argument_type() {
        pg_sys::InvalidOid => own.input,
        other => other,
    };
    let known = &definition.columns[column];
    let test = match test.of_enums() {
        Some(of_enums) if known.kind == KeyKind::Enum => of_enums,
        _ => test,
    };
    let answer = match test {
        _ if test.fixes() => own.answer_to_equality(known, argument_type)?,
        _ => own.answer_to_range(known, argument_type)?,
    };
    Some(Condition {
        key: Key {
            column,
            test,
            argument_type: own.converted_from(argument_type),
        },
        argument: Some(argument(key)),
        is_inexact: answer == Answer::Roughly,
    })
}
