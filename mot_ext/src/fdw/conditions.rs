//! Which clauses an index can answer: planning time.
//!
//! An index answers tests of its leading columns by one value each (`=`, `= ANY`, `IS NULL`), then tests of the next column by a
//! range (`<` to `>`, `IS NOT NULL`, a string prefix). Tests of later columns stay filters.
//!
//! - Only operators of the index's family are taken, so the key's byte order is the operator's order. It is btree's (`relation_info`), which compares
//!   values of several types; of those it takes what the executor converts exactly (`keys::converts`),
//!   or has a range for (`keys::lies_near`): then the comparison stays a filter, too.
//! - A comparison of rows, `(a, b) > (1, 2)`, bounds its columns together, and stays a filter ([`rows`]).
//! - A text comparison other than `=` is taken only under a collation that orders by bytes. `=` is the same in every
//!   deterministic collation. `LIKE 'abc%'` is a byte prefix under each of them; it stays a filter as well.
mod families;
mod operands;
pub mod rows;

use super::private::cells;
use crate::keys;
use families::Membership;
pub use families::membership;
use mot_engine::key::KeyKind;
pub use operands::is_member_for;
use operands::{is_index_column, is_outside, is_promotable};
use pgrx::pg_sys;
use rows::Further;

/// A test of one key column. The first five are the strategies of the index's operator classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Test {
    Less = 1,
    LessEqual = 2,
    Equal = 3,
    GreaterEqual = 4,
    Greater = 5,
    AnyOf = 6,
    IsNull = 7,
    IsNotNull = 8,
    Prefix = 9,
    /// The column before is compared as a part of a row, and this one is the next part.
    RowGoesOn = 10,
}

impl Test {
    /// The test with this number; the planner wrote it.
    pub fn from_number(number: i32) -> Test {
        match number {
            1 => Test::Less,
            2 => Test::LessEqual,
            3 => Test::Equal,
            4 => Test::GreaterEqual,
            5 => Test::Greater,
            6 => Test::AnyOf,
            7 => Test::IsNull,
            8 => Test::IsNotNull,
            9 => Test::Prefix,
            10 => Test::RowGoesOn,
            other => unreachable!("fdw_private holds the unknown test {other}"),
        }
    }

    /// Whether it compares with an argument.
    pub fn has_argument(self) -> bool {
        !matches!(self, Test::IsNull | Test::IsNotNull)
    }
}

/// A clause as a test of a key column.
#[derive(Clone)]
pub struct Condition {
    pub column: usize,
    pub test: Test,
    pub argument: *mut pg_sys::Expr,
    pub argument_type: pg_sys::Oid,
    /// In a comparison of rows: the columns that it goes on with.
    pub further: Vec<Further>,
    pub clause: *mut pg_sys::RestrictInfo,
    /// The clause with the column on the left, or what is answered of it, for EXPLAIN and re-checks.
    pub expression: *mut pg_sys::Expr,
    /// The index answers the clause wholly, so that it need not be a filter.
    pub is_exact: bool,
}

/// The conditions an index answers, by column.
pub struct Match {
    pub conditions: Vec<Condition>,
    /// Every column of a unique index is tested for equality with one value.
    pub is_one_row: bool,
}

/// `LIKE` and `^@` on text.
const TEXT_LIKE: u32 = 1209;
const TEXT_STARTS_WITH: u32 = 3877;
/// A LIKE pattern's wildcards and escape.
const ANY_STRING: u8 = b'%';
const ANY_CHARACTER: u8 = b'_';
const ESCAPE: u8 = b'\\';

unsafe fn tag(node: *const pg_sys::Expr) -> pg_sys::NodeTag {
    // SAFETY: a node of an expression tree.
    unsafe { (*node.cast::<pg_sys::Node>()).type_ }
}

/// Matches clauses to the columns of an index.
pub unsafe fn match_index(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
    clauses: &[*mut pg_sys::RestrictInfo],
) -> Match {
    let mut chosen: Vec<Condition> = Vec::new();
    // SAFETY: the planner's own structures.
    unsafe {
        let columns = (*index).nkeycolumns as usize;
        let mut equal = 0;
        for column in 0..columns {
            let before = chosen.len();
            for clause in clauses {
                let matched = match_clause(root, rel, index, column, *clause, &chosen[..before]);
                chosen.extend(matched);
            }
            let fixing = |test: Test| {
                let found = &chosen[before..];
                found.iter().position(|condition| condition.test == test)
            };
            let best = fixing(Test::Equal)
                .or_else(|| fixing(Test::IsNull))
                .or_else(|| fixing(Test::AnyOf));
            let Some(best) = best else {
                break;
            };
            chosen.swap(before, before + best);
            chosen.truncate(before + 1);
            equal += usize::from(chosen[before].test == Test::Equal);
        }
        let is_one_row = (*index).unique && (*index).indpred.is_null() && equal == columns;
        Match {
            conditions: chosen,
            is_one_row,
        }
    }
}

/// Whether the relation's own clauses fix every column of a unique index.
pub unsafe fn finds_one_row(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: the planner's own structures.
    unsafe {
        let clauses = cells::<pg_sys::RestrictInfo>((*rel).baserestrictinfo);
        cells::<pg_sys::IndexOptInfo>((*rel).indexlist)
            .iter()
            .any(|index| {
                let may_be = (**index).unique && clauses.len() >= (**index).nkeycolumns as usize;
                may_be && match_index(root, rel, *index, clauses).is_one_row
            })
    }
}

unsafe fn match_clause(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    index: *mut pg_sys::IndexOptInfo,
    column: usize,
    rinfo: *mut pg_sys::RestrictInfo,
    fixed: &[Condition],
) -> Option<Condition> {
    // SAFETY: the planner's own structures; each cast follows the node's tag.
    unsafe {
        if (*rinfo).pseudoconstant || !is_promotable(rinfo, rel) {
            return None;
        }
        let clause = (*rinfo).clause;
        let condition = |test: Test, argument, argument_type| Condition {
            column,
            test,
            argument,
            argument_type,
            further: Vec::new(),
            clause: rinfo,
            expression: clause,
            is_exact: test != Test::Prefix,
        };
        let is_column = |node: *mut pg_sys::Expr| is_index_column(index, column, node);
        let usable = |argument: *mut pg_sys::Expr| is_outside(root, rel, argument);
        match tag(clause) {
            pg_sys::NodeTag::T_OpExpr => {
                let op = clause.cast::<pg_sys::OpExpr>();
                let &[left, right] = cells::<pg_sys::Expr>((*op).args) else {
                    return None;
                };
                let (argument, operator) = if is_column(left) && usable(right) {
                    (right, (*op).opno)
                } else if is_column(right) && usable(left) {
                    (left, pg_sys::get_commutator((*op).opno))
                } else {
                    return None;
                };
                if argument == right && is_prefix_operator(operator) {
                    if !compares_bytes(index, column, (*op).inputcollid) {
                        return None;
                    }
                    let pattern = prefix_of_pattern(operator, argument)?;
                    return Some(condition(Test::Prefix, pattern, pg_sys::TEXTOID));
                }
                let (test, argument_type) = strategy(index, column, operator, (*op).inputcollid)?;
                let mut found = condition(test, argument, argument_type);
                found.is_exact &= !is_near(index, column, argument_type);
                if argument != right {
                    let turned = pg_sys::copyObjectImpl(clause.cast()).cast::<pg_sys::OpExpr>();
                    pg_sys::CommuteOpExpr(turned);
                    found.expression = turned.cast();
                }
                Some(found)
            }
            pg_sys::NodeTag::T_ScalarArrayOpExpr => {
                let op = clause.cast::<pg_sys::ScalarArrayOpExpr>();
                let &[left, right] = cells::<pg_sys::Expr>((*op).args) else {
                    return None;
                };
                if !(*op).useOr || !is_column(left) || !is_outside(root, rel, right) {
                    return None;
                }
                let (test, argument_type) = strategy(index, column, (*op).opno, (*op).inputcollid)?;
                (test == Test::Equal).then(|| condition(Test::AnyOf, right, argument_type))
            }
            pg_sys::NodeTag::T_RowCompareExpr => {
                rows::match_row(root, rel, index, column, rinfo, fixed)
            }
            pg_sys::NodeTag::T_NullTest => {
                let test = clause.cast::<pg_sys::NullTest>();
                if (*test).argisrow || !is_column((*test).arg) {
                    return None;
                }
                let kind = if (*test).nulltesttype == pg_sys::NullTestType::IS_NULL {
                    Test::IsNull
                } else {
                    Test::IsNotNull
                };
                Some(condition(kind, std::ptr::null_mut(), pg_sys::InvalidOid))
            }
            pg_sys::NodeTag::T_Var | pg_sys::NodeTag::T_BoolExpr => {
                let (operand, value) = boolean_test(clause)?;
                if *(*index).opcintype.add(column) != pg_sys::BOOLOID || !is_column(operand) {
                    return None;
                }
                let argument = pg_sys::makeBoolConst(value, false).cast();
                Some(condition(Test::Equal, argument, pg_sys::BOOLOID))
            }
            _ => None,
        }
    }
}

/// `flag` or `NOT flag`.
unsafe fn boolean_test(clause: *mut pg_sys::Expr) -> Option<(*mut pg_sys::Expr, bool)> {
    // SAFETY: cast by tag.
    unsafe {
        if tag(clause) == pg_sys::NodeTag::T_Var {
            return Some((clause, true));
        }
        let expression = clause.cast::<pg_sys::BoolExpr>();
        if (*expression).boolop != pg_sys::BoolExprType::NOT_EXPR {
            return None;
        }
        cells::<pg_sys::Expr>((*expression).args)
            .first()
            .map(|operand| (*operand, false))
    }
}

/// What an operator tests an index column for, and its argument's type.
unsafe fn strategy(
    index: *mut pg_sys::IndexOptInfo,
    column: usize,
    operator: pg_sys::Oid,
    collation: pg_sys::Oid,
) -> Option<(Test, pg_sys::Oid)> {
    // SAFETY: the index has a family and an input type for each key column.
    unsafe {
        let Membership {
            strategy,
            left,
            right,
        } = membership(operator, *(*index).opfamily.add(column))?;
        if left != *(*index).opcintype.add(column) {
            return None;
        }
        keys::kind(right)?;
        let test = Test::from_number(strategy);
        let has_range = test != Test::Equal && keys::lies_near(left, right);
        if right != left && !keys::converts(left, right) && !has_range {
            return None;
        }
        let fits = if test == Test::Equal {
            compares_bytes(index, column, collation)
        } else {
            keys::is_key_order_collation(collation) && is_decided(index, column, collation)
        };
        fits.then_some((test, right))
    }
}

/// Whether a range that is too large answers a comparison with this type.
unsafe fn is_near(
    index: *const pg_sys::IndexOptInfo,
    column: usize,
    argument_type: pg_sys::Oid,
) -> bool {
    // SAFETY: the index has an input type for each key column.
    keys::lies_near(unsafe { *(*index).opcintype.add(column) }, argument_type)
}

/// Whether values are equal under the collation, or none, exactly if their bytes are.
unsafe fn compares_bytes(
    index: *const pg_sys::IndexOptInfo,
    column: usize,
    collation: pg_sys::Oid,
) -> bool {
    // SAFETY: a catalog look-up.
    unsafe {
        is_decided(index, column, collation)
            && (collation == pg_sys::InvalidOid || pg_sys::get_collation_isdeterministic(collation))
    }
}

/// Not whether texts of two collations are compared and nobody says by which: the operator raises 42P22.
unsafe fn is_decided(
    index: *const pg_sys::IndexOptInfo,
    column: usize,
    collation: pg_sys::Oid,
) -> bool {
    // SAFETY: the index has a collation, or none, for each key column.
    collation != pg_sys::InvalidOid
        || unsafe { *(*index).indexcollations.add(column) } == pg_sys::InvalidOid
}

fn is_prefix_operator(operator: pg_sys::Oid) -> bool {
    matches!(operator.to_u32(), TEXT_LIKE | TEXT_STARTS_WITH)
}

/// The constant string that everything a constant pattern matches begins with.
unsafe fn prefix_of_pattern(
    operator: pg_sys::Oid,
    pattern: *mut pg_sys::Expr,
) -> Option<*mut pg_sys::Expr> {
    // SAFETY: cast by tag; a text constant that is not NULL is a varlena.
    unsafe {
        if tag(pattern) != pg_sys::NodeTag::T_Const {
            return None;
        }
        let constant = pattern.cast::<pg_sys::Const>();
        if (*constant).constisnull {
            return None;
        }
        if operator.to_u32() == TEXT_STARTS_WITH {
            return Some(pattern);
        }
        let text = keys::value(KeyKind::Text, (*constant).constvalue, false);
        let mot_engine::key::KeyValue::Bytes(bytes) = text else {
            return None;
        };
        let mut prefix = Vec::new();
        let mut rest = bytes.iter();
        while let Some(byte) = rest.next() {
            match *byte {
                ANY_STRING | ANY_CHARACTER => break,
                ESCAPE => prefix.push(*rest.next()?),
                other => prefix.push(other),
            }
        }
        if prefix.is_empty() {
            return None;
        }
        let value = pg_sys::cstring_to_text_with_len(prefix.as_ptr().cast(), prefix.len() as i32);
        let made = pg_sys::makeConst(
            pg_sys::TEXTOID,
            -1,
            (*constant).constcollid,
            -1,
            pg_sys::Datum::from(value),
            false,
            false,
        );
        Some(made.cast())
    }
}
