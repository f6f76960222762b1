//! How a compiled statement finds its rows: by a scan node of core's.
//!
//! It becomes conditions on an index's leading columns that the scan answers, and the
//! rest, which is asked of each row. Of core's index conditions those on further columns, and those
//! that a range holds only nearly, are among the rest, as `index_am` has core recheck them.
use super::plain::{Scope, calls_functions, is_plain};
use crate::access::conditions::{Test, best_fixing, exclude_each_other, membership};
use crate::access::search::{Key, Search};
use crate::keys::{self, Answer};
use crate::pg::catalog;
use crate::pg::node::{Any, Node};
use crate::pg::relation::Relation as OpenRelation;
use crate::storage;
use crate::transaction::relation::LockedRelation;
use mot_engine::key::IndexDefinition;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

/// How rows are found. The expressions are the plan's.
pub struct Access<'p> {
    /// Index, direction and conditions.
    pub search: Search,
    /// Arguments of the conditions that have one.
    pub arguments: Vec<Any<'p>>,
    /// Computed arguments of index conditions, where the scan does without one of them. Core
    /// evaluates all before it looks for a row.
    pub computed: Vec<Any<'p>>,
    /// What the scan does not answer.
    pub conditions: Vec<Any<'p>>,
    /// What it does answer, for a state of a row that it did not find.
    pub rechecks: Vec<Any<'p>>,
    /// The index, which core opens and locks.
    pub index: pg_sys::Oid,
}

impl<'p> Access<'p> {
    /// Of a scan of all rows by core.
    pub fn of_all(scan: Node<'p, pg_sys::Scan>) -> Access<'p> {
        Access {
            search: Search::ALL,
            arguments: Vec::new(),
            computed: Vec::new(),
            conditions: scan.plan().qual().iter().collect(),
            rechecks: Vec::new(),
            index: pg_sys::InvalidOid,
        }
    }

    /// Of an index scan by core, whose table is locked; `None` if one of its conditions is of no
    /// form known here.
    pub fn of_index(node: Node<'p, pg_sys::IndexScan>) -> Option<Access<'p>> {
        let index = node.indexid();
        let originals: Vec<_> = node.indexqualorig().iter().collect();
        if node.indexorderby() || node.indexqual().len() != originals.len() {
            return None;
        }
        // Core locks the index when it opens it. What others have done to it is known after that.
        catalog::lock(index, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let (found, definition) = conditions(index, node)?;
        let chosen = choose(&found, definition)?;
        // Core's node has the index pass over values of its first column.
        if chosen.is_empty() && !found.is_empty() {
            return None;
        }
        // Ahead of the others, as core's recheck is: a policy's condition may be among them,
        // and another one may show a row in its error.
        let rest = (0..found.len()).filter(|at| !chosen.contains(at) || found[*at].is_inexact);
        let mut conditions: Vec<_> = rest.map(|at| originals[at]).collect();
        conditions.extend(node.scan().plan().qual());
        Some(Access {
            search: Search {
                index,
                is_backward: node.indexorderdir() == pg_sys::ScanDirection::BackwardScanDirection,
                keys: chosen.iter().map(|at| found[*at].key).collect(),
            },
            arguments: chosen.iter().filter_map(|at| found[*at].argument).collect(),
            computed: computed(&found, &chosen),
            conditions,
            rechecks: originals,
            index,
        })
    }

    /// Whether all its expressions may be compiled.
    pub fn is_plain(&self, relation: u32) -> bool {
        let scope = Scope::Table(relation);
        self.expressions().all(|part| is_plain(part, scope))
    }

    /// Whether an expression calls functions.
    pub fn calls_functions(&self) -> bool {
        self.expressions().any(calls_functions)
    }

    fn expressions(&self) -> impl Iterator<Item = Any<'p>> {
        [
            &self.arguments,
            &self.computed,
            &self.conditions,
            &self.rechecks,
        ]
        .into_iter()
        .flatten()
        .copied()
    }
}

/// The index conditions of a scan as tests of a locked index, and its definition; `None`: one is of
/// no form known here.
fn conditions<'p>(
    index: pg_sys::Oid,
    node: Node<'p, pg_sys::IndexScan>,
) -> Option<(Vec<Condition<'p>>, &'static IndexDefinition)> {
    LockedRelation::closed(index).with(|index| {
        let index = Index {
            relation: index,
            definition: storage::definition_of(index)?,
        };
        let tests = node.indexqual().iter();
        let found: Option<_> = tests.map(|test| condition(&index, test)).collect();
        Some((found?, index.definition))
    })
}

/// The conditions that bound the scan: those that fix leading columns, then those on the next one.
/// Ranges of a column with a list leave out values of that. `None`: no row passes, as the scan of
/// core's node finds at once.
fn choose(found: &[Condition<'_>], definition: &IndexDefinition) -> Option<Vec<usize>> {
    let mut chosen = Vec::new();
    for (column, known) in definition.columns.iter().enumerate() {
        let of_column = (0..found.len()).filter(|at| found[*at].key.column == column);
        let of_column: Vec<usize> = of_column.collect();
        let tests: Vec<Test> = of_column.iter().map(|at| found[*at].key.test).collect();
        let Some(fixing) = best_fixing(&tests) else {
            chosen.extend(of_column);
            break;
        };
        if exclude_each_other(&tests) {
            return None;
        }
        chosen.push(of_column[fixing]);
        if tests[fixing] == Test::AnyOf && known.can_narrow_lists() {
            let is_range = |at: &usize| found[*at].key.test.is_range();
            chosen.extend(of_column.into_iter().filter(is_range));
        }
    }
    Some(chosen)
}

/// The computed arguments, unless all are those of chosen conditions, which the scan evaluates.
fn computed<'p>(found: &[Condition<'p>], chosen: &[usize]) -> Vec<Any<'p>> {
    let is_computed = |argument: &Any<'p>| match argument.cast::<pg_sys::Param>() {
        Some(parameter) => parameter.paramkind() != pg_sys::ParamKind::PARAM_EXTERN,
        None => argument.tag() != T_Const,
    };
    let of = |at: usize| found[at].argument.filter(is_computed);
    match (0..found.len()).any(|at| !chosen.contains(&at) && of(at).is_some()) {
        true => (0..found.len()).filter_map(of).collect(),
        false => Vec::new(),
    }
}

/// An index condition as a test of a key column.
struct Condition<'p> {
    key: Key,
    argument: Option<Any<'p>>,
    is_inexact: bool,
}

/// An open index.
struct Index<'p> {
    relation: OpenRelation<'p>,
    definition: &'static IndexDefinition,
}

/// The test that an index condition is, whose left side is a column of the index; `None`: none
/// known here.
fn condition<'p>(index: &Index<'_>, clause: Any<'p>) -> Option<Condition<'p>> {
    match clause.tag() {
        T_OpExpr => {
            let clause = clause.cast::<pg_sys::OpExpr>()?;
            let sides: Vec<_> = clause.args().iter().collect();
            compare(index, clause.opno(), &sides, |strategy| {
                Some(Test::from_number(strategy))
            })
        }
        T_ScalarArrayOpExpr => {
            let clause = clause.cast::<pg_sys::ScalarArrayOpExpr>()?;
            let sides: Vec<_> = clause.args().iter().collect();
            compare(index, clause.opno(), &sides, |strategy| {
                (clause.useOr() && strategy == Test::Equal as i32).then_some(Test::AnyOf)
            })
        }
        T_NullTest => {
            let clause = clause.cast::<pg_sys::NullTest>()?;
            let test = match clause.nulltesttype() {
                pg_sys::NullTestType::IS_NULL => Test::IsNull,
                _ => Test::IsNotNull,
            };
            Some(Condition {
                key: Key {
                    column: column_of(clause.arg()?)?,
                    test,
                    argument_type: pg_sys::InvalidOid,
                },
                argument: None,
                is_inexact: false,
            })
        }
        _ => None,
    }
}

/// A comparison of a column with a value, or with a list of values.
fn compare<'p>(
    index: &Index<'_>,
    operator: pg_sys::Oid,
    sides: &[Any<'p>],
    test: impl Fn(i32) -> Option<Test>,
) -> Option<Condition<'p>> {
    let &[left, argument] = sides else {
        return None;
    };
    let column = column_of(left)?;
    let own = keys::IndexColumn::of(index.relation, column);
    let member = membership(operator, own.family)?;
    let test = test(member.strategy)?;
    let definition = &index.definition.columns[column];
    let answer = match test {
        Test::Equal | Test::AnyOf => own.answer_to_equality(definition, member.right)?,
        _ => own.answer_to_range(definition, member.right)?,
    };
    Some(Condition {
        key: Key {
            column,
            test,
            argument_type: own.converted_from(member.right),
        },
        argument: Some(argument),
        is_inexact: answer == Answer::Roughly,
    })
}

/// The index column, from 0, that the left side of an index condition is.
fn column_of(left: Any<'_>) -> Option<usize> {
    let node = match left.cast::<pg_sys::RelabelType>() {
        Some(relabelled) => relabelled.arg()?,
        None => left,
    };
    let column = node.cast::<pg_sys::Var>()?.varattno();
    (column > 0).then_some(column as usize - 1)
}
