//! Comparisons of rows, `(a, b) > (1, 2)`: as many of their leading columns as the index has one behind the other, in one direction.
//!
//! What passes is in the range from the values that are compared with, or up to them, in the order of the index: a row that is beyond them in its first column
//! passes whatever follows, one that is equal there by what follows, NULL never. So the range is one of keys, and the comparison stays a filter
//! for what has NULL behind equal values, and for columns that the index does not have. Leading columns that the prefix fixes to the very values
//! that they are compared with here decide nothing: the comparison is that of the columns behind them.
use super::{Condition, Test, is_index_column, is_near, is_outside, strategy};
use crate::fdw::private::{items, list};
use crate::pg::version;
use pgrx::pg_sys;

/// A column that a comparison of rows goes on with.
#[derive(Clone, Copy)]
pub struct Further {
    pub column: usize,
    pub argument: *mut pg_sys::Expr,
    pub argument_type: pg_sys::Oid,
}

/// A pair of columns that an index column answers.
struct Pair {
    operand: *mut pg_sys::Expr,
    argument: *mut pg_sys::Expr,
    argument_type: pg_sys::Oid,
    operator: pg_sys::Oid,
    collation: pg_sys::Oid,
    family: pg_sys::Oid,
    test: Test,
}

/// A comparison of rows, beside an index that may answer it from a key column on. It is read as it stands, or turned, with the index's columns on the
/// right; leading columns may be decided by the prefix, those behind them are counted from the key column on.
struct Comparison {
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
    column: usize,
    row: *mut pg_sys::RowCompareExpr,
    left: Vec<*mut pg_sys::Expr>,
    right: Vec<*mut pg_sys::Expr>,
}

impl Comparison {
    /// What may be a column of the index, and what it is compared with.
    fn sides(&self, at: usize, is_turned: bool) -> (*mut pg_sys::Expr, *mut pg_sys::Expr) {
        match is_turned {
            true => (self.right[at], self.left[at]),
            false => (self.left[at], self.right[at]),
        }
    }

    /// How many leading columns the prefix fixes to the very values that they are compared with here.
    unsafe fn count_decided(&self, fixed: &[Condition], is_turned: bool) -> usize {
        // SAFETY: the planner's own structures.
        unsafe {
            let is_decided = |at: usize| {
                let (operand, argument) = self.sides(at, is_turned);
                fixed.iter().any(|condition| {
                    condition.test == Test::Equal
                        && is_index_column(self.index, condition.column, operand)
                        && pg_sys::equal(condition.argument.cast(), argument.cast())
                })
            };
            (0..self.left.len())
                .take_while(|at| is_decided(*at))
                .count()
        }
    }

    /// The pair that the key column `at` behind the first answers, if it does.
    unsafe fn pair(&self, decided: usize, at: usize, is_turned: bool) -> Option<Pair> {
        let column = self.column + at;
        let at = decided + at;
        if at >= self.left.len() {
            return None;
        }
        let (operand, argument) = self.sides(at, is_turned);
        // SAFETY: the planner's own structures; the clause has as many of each list as columns.
        unsafe {
            let oid = |list: *mut pg_sys::List| (*(*list).elements.add(at)).oid_value;
            let operator = match is_turned {
                true => pg_sys::get_commutator(oid((*self.row).opnos)),
                false => oid((*self.row).opnos),
            };
            if !is_index_column(self.index, column, operand)
                || !is_outside(self.root, self.rel, argument)
            {
                return None;
            }
            let collation = oid((*self.row).inputcollids);
            let (test, argument_type) = strategy(self.index, column, operator, collation)?;
            if is_near(self.index, column, argument_type) {
                return None;
            }
            Some(Pair {
                operand,
                argument,
                argument_type,
                operator,
                collation,
                family: *(*self.index).opfamily.add(column),
                test,
            })
        }
    }

    /// The first pair, and those that the index has behind it, in its direction.
    unsafe fn pairs_from(&self, first: Pair, decided: usize, is_turned: bool) -> Vec<Pair> {
        // SAFETY: an ordered index has a direction for each key column.
        unsafe {
            let is_reverse = |at: usize| {
                let reverse = (*self.index).reverse_sort;
                (!reverse.is_null()).then(|| *reverse.add(self.column + at))
            };
            let columns =
                ((*self.index).nkeycolumns as usize - self.column).min(self.left.len() - decided);
            let test = first.test;
            let mut pairs = vec![first];
            for at in 1..columns {
                let Some(next) = self.pair(decided, at, is_turned) else {
                    break;
                };
                let goes_on = is_reverse(at).is_some() && is_reverse(at) == is_reverse(0);
                if !goes_on || next.test != test {
                    break;
                }
                pairs.push(next);
            }
            pairs
        }
    }
}

/// A comparison of rows as a test of a key column and those behind it. `fixed` are the conditions of the columns before.
pub unsafe fn match_row(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
    column: usize,
    rinfo: *mut pg_sys::RestrictInfo,
    fixed: &[Condition],
) -> Option<Condition> {
    // SAFETY: the planner's own structures; the clause is of this type.
    unsafe {
        let row = (*rinfo).clause.cast::<pg_sys::RowCompareExpr>();
        let comparison = Comparison {
            root,
            rel,
            index,
            column,
            row,
            left: items::<pg_sys::Expr>((*row).largs),
            right: items::<pg_sys::Expr>((*row).rargs),
        };
        let before = comparison.count_decided(fixed, false);
        let turned_before = comparison.count_decided(fixed, true);
        let (first, is_turned, before) = match comparison.pair(before, 0, false) {
            Some(first) => (first, false, before),
            None => {
                let first = comparison.pair(turned_before, 0, true)?;
                (first, true, turned_before)
            }
        };
        let test = first.test;
        let (loose, is_strict) = match test {
            Test::Less => (Test::LessEqual, true),
            Test::Greater => (Test::GreaterEqual, true),
            Test::LessEqual | Test::GreaterEqual => (test, false),
            _ => return None,
        };
        let pairs = comparison.pairs_from(first, before, is_turned);
        let is_whole = before + pairs.len() == comparison.left.len();
        let answered = if is_whole && is_strict { test } else { loose };
        let further = pairs[1..]
            .iter()
            .enumerate()
            .map(|(at, pair)| Further {
                column: column + 1 + at,
                argument: pair.argument,
                argument_type: pair.argument_type,
            })
            .collect();
        let expression = if is_whole && !is_turned && before == 0 {
            (*rinfo).clause
        } else {
            shorter(index, column, &pairs, answered)?
        };
        Some(Condition {
            column,
            test: answered,
            argument: pairs[0].argument,
            argument_type: pairs[0].argument_type,
            further,
            clause: rinfo,
            expression,
            is_exact: false,
        })
    }
}

/// The part of a comparison that is answered, the index's columns on the left.
unsafe fn shorter(
    index: *mut pg_sys::IndexOptInfo,
    column: usize,
    pairs: &[Pair],
    test: Test,
) -> Option<*mut pg_sys::Expr> {
    // SAFETY: the index has a family and an input type for each key column; the expressions are the planner's.
    unsafe {
        let mut operators = Vec::new();
        for (at, pair) in pairs.iter().enumerate() {
            let operator = if pair.test == test {
                pair.operator
            } else {
                let input = *(*index).opcintype.add(column + at);
                let number = test as i16;
                pg_sys::get_opfamily_member(pair.family, input, pair.argument_type, number)
            };
            if operator == pg_sys::InvalidOid {
                return None;
            }
            operators.push(operator);
        }
        if let [pair] = pairs {
            let made = pg_sys::make_opclause(
                operators[0],
                pg_sys::BOOLOID,
                false,
                pair.operand,
                pair.argument,
                pg_sys::InvalidOid,
                pair.collation,
            );
            pg_sys::set_opfuncid(made.cast());
            return Some(made);
        }
        let made = version::row_comparison(test as u32);
        for (pair, operator) in pairs.iter().zip(operators) {
            (*made).opnos = pg_sys::lappend_oid((*made).opnos, operator);
            (*made).opfamilies = pg_sys::lappend_oid((*made).opfamilies, pair.family);
            (*made).inputcollids = pg_sys::lappend_oid((*made).inputcollids, pair.collation);
        }
        let of =
            |side: fn(&Pair) -> *mut pg_sys::Expr| -> Vec<_> { pairs.iter().map(side).collect() };
        (*made).largs = list(&of(|pair| pair.operand));
        (*made).rargs = list(&of(|pair| pair.argument));
        Some(made.cast())
    }
}
