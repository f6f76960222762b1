//! How a compiled statement finds its rows: by a scan node of core's.
//!
//! It becomes conditions on an index's leading columns that the scan answers, and the
//! rest, which is asked of each row. Of core's index conditions those on further columns, and those
//! that a range holds only nearly, are among the rest, as `index_am` has core recheck them.
use super::plain::{Scope, are_plain, calls_functions};
use crate::access::conditions::{Test, membership};
use crate::access::search::{Key, Search};
use crate::keys::{self, Answer};
use crate::pg::list::{items, list};
use crate::storage;
use crate::transaction::relation::Relation;
use mot_engine::key::IndexDefinition;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

/// How rows are found. The expressions are the plan's.
pub struct Access {
    /// Index, direction and conditions.
    pub search: Search,
    /// Arguments of the conditions that have one.
    pub arguments: Vec<*mut pg_sys::Expr>,
    /// Computed arguments of index conditions, where the scan does without one of them. Core
    /// evaluates all before it looks for a row.
    pub computed: Vec<*mut pg_sys::Expr>,
    /// What the scan does not answer.
    pub conditions: Vec<*mut pg_sys::Expr>,
    /// What it does answer, for a state of a row that it did not find.
    pub rechecks: Vec<*mut pg_sys::Expr>,
    /// The index, which core opens and locks.
    pub index: pg_sys::Oid,
}

impl Access {
    /// Of a scan of all rows by core.
    pub unsafe fn of_all(scan: *const pg_sys::SeqScan) -> Access {
        // SAFETY: a scan node of core's.
        unsafe {
            Access {
                conditions: items(scan_of(scan.cast()).plan.qual),
                ..Access::of_all_rows()
            }
        }
    }

    /// Of all rows, without conditions.
    pub fn of_all_rows() -> Access {
        Access {
            search: Search::ALL,
            arguments: Vec::new(),
            computed: Vec::new(),
            conditions: Vec::new(),
            rechecks: Vec::new(),
            index: pg_sys::InvalidOid,
        }
    }

    /// Of an index scan by core; `None` if one of its conditions is of no form known here.
    pub unsafe fn of_index(scan: *const pg_sys::IndexScan) -> Option<Access> {
        // SAFETY: a scan node of core's, whose table is locked, so the index is there.
        unsafe {
            let node = &*scan;
            if !node.indexorderby.is_null() {
                return None;
            }
            let is_backward = node.indexorderdir == pg_sys::ScanDirection::BackwardScanDirection;
            let tests = items::<pg_sys::Expr>(node.indexqual);
            let originals = items::<pg_sys::Expr>(node.indexqualorig);
            if tests.len() != originals.len() {
                return None;
            }
            // Core locks the index when it opens it. What others have done to it is known after
            // that.
            pg_sys::LockRelationOid(node.indexid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            let found = Relation::closed(node.indexid).with(|index| {
                let definition = storage::definition_of(index)?;
                let mut found = Vec::with_capacity(tests.len());
                for test in &tests {
                    found.push(condition(index, definition, *test)?);
                }
                Some((found, definition))
            });
            let (found, definition) = found?;
            let chosen = choose(&found, definition.columns.len());
            // Core's node has the index pass over values of its first column.
            if chosen.is_empty() && !found.is_empty() {
                return None;
            }
            // Ahead of the others, as core's recheck is: a policy's condition may be among them,
            // and another one may show a row in its error.
            let rest = (0..found.len()).filter(|at| !chosen.contains(at) || found[*at].is_inexact);
            let mut conditions: Vec<_> = rest.map(|at| originals[at]).collect();
            conditions.extend(items::<pg_sys::Expr>(scan_of(scan.cast()).plan.qual));
            Some(Access {
                search: Search {
                    index: node.indexid,
                    is_backward,
                    keys: chosen.iter().map(|at| found[*at].key).collect(),
                },
                arguments: chosen.iter().filter_map(|at| found[*at].argument).collect(),
                computed: computed(&found, &chosen),
                conditions,
                rechecks: originals,
                index: node.indexid,
            })
        }
    }

    /// Whether all its expressions may be compiled.
    pub unsafe fn is_plain(&self, relation: u32) -> bool {
        // SAFETY: expressions of a finished plan.
        self.expressions()
            .all(|part| unsafe { are_plain(list(part), Scope::Table(relation)) })
    }

    /// Whether an expression calls functions.
    pub unsafe fn calls_functions(&self) -> bool {
        // SAFETY: as above.
        self.expressions()
            .any(|part| unsafe { calls_functions(list(part).cast()) })
    }

    fn expressions(&self) -> impl Iterator<Item = &[*mut pg_sys::Expr]> {
        [
            &self.arguments,
            &self.computed,
            &self.conditions,
            &self.rechecks,
        ]
        .into_iter()
        .map(Vec::as_slice)
    }
}

/// The part that all scan nodes of core's have.
pub unsafe fn scan_of<'a>(node: *const pg_sys::Plan) -> &'a pg_sys::Scan {
    // SAFETY: a scan node, whose first field this is in every version.
    unsafe { &*node.cast::<pg_sys::Scan>() }
}

/// The conditions that bound the scan: those that fix leading columns, then those on the next one.
fn choose(found: &[Condition], columns: usize) -> Vec<usize> {
    let mut chosen = Vec::new();
    for column in 0..columns {
        let of_column = || (0..found.len()).filter(move |at| found[*at].key.column == column);
        let fixes = |at: &usize| {
            let test = found[*at].key.test;
            matches!(test, Test::Equal | Test::AnyOf | Test::IsNull)
        };
        match of_column().find(fixes) {
            Some(fixing) => chosen.push(fixing),
            None => {
                chosen.extend(of_column());
                break;
            }
        }
    }
    chosen
}

/// The computed arguments, unless all are those of chosen conditions, which the scan evaluates.
unsafe fn computed(found: &[Condition], chosen: &[usize]) -> Vec<*mut pg_sys::Expr> {
    // SAFETY: expressions of a finished plan; casts by tag.
    let is_computed = |argument: &*mut pg_sys::Expr| unsafe {
        match (*argument.cast::<pg_sys::Node>()).type_ {
            T_Const => false,
            T_Param => {
                let parameter = &*argument.cast::<pg_sys::Param>();
                parameter.paramkind != pg_sys::ParamKind::PARAM_EXTERN
            }
            _ => true,
        }
    };
    let of = |at: usize| found[at].argument.filter(is_computed);
    match (0..found.len()).any(|at| !chosen.contains(&at) && of(at).is_some()) {
        true => (0..found.len()).filter_map(of).collect(),
        false => Vec::new(),
    }
}

/// An index condition as a test of a key column.
struct Condition {
    key: Key,
    argument: Option<*mut pg_sys::Expr>,
    is_inexact: bool,
}

/// The test that an index condition is; `None`: none known here.
unsafe fn condition(
    index: pg_sys::Relation,
    definition: &IndexDefinition,
    clause: *mut pg_sys::Expr,
) -> Option<Condition> {
    // SAFETY: an index condition of core's, whose left side is a column of the index; casts by tag.
    unsafe {
        match (*clause.cast::<pg_sys::Node>()).type_ {
            T_OpExpr => {
                let clause = &*clause.cast::<pg_sys::OpExpr>();
                let sides = items::<pg_sys::Expr>(clause.args);
                compare((index, definition), clause.opno, &sides, |strategy| {
                    Some(Test::from_number(strategy))
                })
            }
            T_ScalarArrayOpExpr => {
                let clause = &*clause.cast::<pg_sys::ScalarArrayOpExpr>();
                let sides = items::<pg_sys::Expr>(clause.args);
                compare((index, definition), clause.opno, &sides, |strategy| {
                    (clause.useOr && strategy == Test::Equal as i32).then_some(Test::AnyOf)
                })
            }
            T_NullTest => {
                let clause = &*clause.cast::<pg_sys::NullTest>();
                let test = match clause.nulltesttype {
                    pg_sys::NullTestType::IS_NULL => Test::IsNull,
                    _ => Test::IsNotNull,
                };
                Some(Condition {
                    key: Key {
                        column: column_of(clause.arg)?,
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
}

/// A comparison of a column with a value, or with a list of values.
unsafe fn compare(
    (index, definition): (pg_sys::Relation, &IndexDefinition),
    operator: pg_sys::Oid,
    sides: &[*mut pg_sys::Expr],
    test: impl Fn(i32) -> Option<Test>,
) -> Option<Condition> {
    let &[left, argument] = sides else {
        return None;
    };
    // SAFETY: the caller's index, which has the column.
    unsafe {
        let column = column_of(left)?;
        let own = keys::IndexColumn::of(crate::pg::relation::Relation::enter(index), column);
        let member = membership(operator, own.family)?;
        let test = test(member.strategy)?;
        let answer = match test {
            Test::Equal | Test::AnyOf => {
                own.answer_to_equality(&definition.columns[column], member.right)?
            }
            _ => own.answer_to_range(&definition.columns[column], member.right)?,
        };
        Some(Condition {
            key: Key {
                column,
                test,
                argument_type: member.right,
            },
            argument: Some(argument),
            is_inexact: answer == Answer::Roughly,
        })
    }
}

/// The index column, from 0, that the left side of an index condition is.
unsafe fn column_of(left: *mut pg_sys::Expr) -> Option<usize> {
    // SAFETY: an expression; casts by tag.
    unsafe {
        let mut node = left;
        if (*node.cast::<pg_sys::Node>()).type_ == T_RelabelType {
            node = (*node.cast::<pg_sys::RelabelType>()).arg;
        }
        let is_column = (*node.cast::<pg_sys::Node>()).type_ == T_Var;
        let column = (*node.cast::<pg_sys::Var>()).varattno;
        (is_column && column > 0).then_some(column as usize - 1)
    }
}
