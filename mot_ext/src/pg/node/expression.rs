//! Fields of expressions.
use super::{Any, List, Node, views};
use crate::pg::relation::column_numbers;
use pgrx::pg_sys::{self, Oid};

views! {
    TargetEntry = T_TargetEntry {
        node expr: pg_sys::Node,
        value resno: pg_sys::AttrNumber,
        value resjunk: bool,
    }
    Aggref = T_Aggref {
        value aggfnoid: Oid,
        value aggtype: Oid,
        value aggkind: std::ffi::c_char,
        value agglevelsup: pg_sys::Index,
        value aggsplit: pg_sys::AggSplit::Type,
        value aggvariadic: bool,
        has aggdirectargs,
        list args: pg_sys::TargetEntry,
        has aggorder,
        has aggdistinct,
        node aggfilter: pg_sys::Node,
    }
    Var = T_Var {
        value varno: i32,
        value varattno: pg_sys::AttrNumber,
        value vartype: Oid,
        value vartypmod: i32,
        value varlevelsup: pg_sys::Index,
    }
    Param = T_Param {
        value paramkind: pg_sys::ParamKind::Type,
        value paramid: i32,
        value paramtype: Oid,
    }
    FuncExpr = T_FuncExpr {
        cell funcid / set_funcid: Oid,
        value funcresulttype: Oid,
        value funcretset: bool,
        value inputcollid: Oid,
        list args: pg_sys::Node,
    }
    OpExpr = T_OpExpr {
        value opno: Oid,
        value opfuncid: Oid,
        value opresulttype: Oid,
        value opretset: bool,
        value inputcollid: Oid,
        list args: pg_sys::Node,
    }
    ScalarArrayOpExpr = T_ScalarArrayOpExpr {
        value opno: Oid,
        value opfuncid: Oid,
        value hashfuncid: Oid,
        value negfuncid: Oid,
        value useOr: bool,
        list args: pg_sys::Node,
    }
    SubPlan = T_SubPlan {
        value subLinkType: pg_sys::SubLinkType::Type,
        value useHashTable: bool,
    }
    SubscriptingRef = T_SubscriptingRef {
        value refcontainertype: Oid,
        has refassgnexpr,
    }
    BoolExpr = T_BoolExpr {
        value boolop: pg_sys::BoolExprType::Type,
        list args: pg_sys::Node,
    }
    BooleanTest = T_BooleanTest {
        node arg: pg_sys::Node,
        value booltesttype: pg_sys::BoolTestType::Type,
    }
    Const = T_Const {
        value constlen: i32,
        value constvalue: pg_sys::Datum,
        value constisnull: bool,
        value constbyval: bool,
    }
    CaseExpr = T_CaseExpr {}
    CaseWhen = T_CaseWhen {}
    CoerceViaIO = T_CoerceViaIO {
        node arg: pg_sys::Node,
        value resulttype: Oid,
    }
    MinMaxExpr = T_MinMaxExpr {
        value minmaxtype: Oid,
    }
    NullTest = T_NullTest {
        node arg: pg_sys::Node,
        value nulltesttype: pg_sys::NullTestType::Type,
        value argisrow: bool,
    }
    RelabelType = T_RelabelType {
        node arg: pg_sys::Node,
    }
    RowExpr = T_RowExpr {}
}

impl Any<'_> {
    /// The columns of a relation that an expression, or one of a list, names: 0 for the whole row,
    /// system columns below (`pull_varattnos`).
    pub fn columns_named(self, relation: pg_sys::Index) -> Vec<i16> {
        let mut named = std::ptr::null_mut();
        // SAFETY: a live tree; the set is new.
        unsafe {
            pg_sys::pull_varattnos(self.as_ptr(), relation, &raw mut named);
            column_numbers(named)
        }
    }

    /// Whether an expression, or one of a list, names one of these columns of a relation.
    pub fn names_any_of(self, relation: pg_sys::Index, columns: &[i32]) -> bool {
        let named = self.columns_named(relation);
        named
            .into_iter()
            .any(|column| columns.contains(&column.into()))
    }

    /// Whether an expression names a system column of a relation.
    pub fn names_system_columns(self, relation: pg_sys::Index) -> bool {
        let named = self.columns_named(relation);
        named.iter().any(|column| *column < 0)
    }

    /// The type of an expression's value.
    pub fn value_type(self) -> Oid {
        // SAFETY: a live tree; core raises for what is no expression.
        unsafe { pg_sys::exprType(self.as_ptr()) }
    }
}

impl<'p> Any<'p> {
    /// An operator's call, also as `IS DISTINCT FROM` and NULLIF, which have the same fields.
    pub fn operator_call(self) -> Option<Node<'p, pg_sys::OpExpr>> {
        use pg_sys::NodeTag::{T_DistinctExpr, T_NullIfExpr, T_OpExpr};
        [T_OpExpr, T_DistinctExpr, T_NullIfExpr]
            .contains(&self.tag())
            // SAFETY: a live node of one of the tags, whose types are one.
            .then(|| unsafe { Node::enter(self.as_ptr().cast()) })
    }
}

impl<'p> Any<'p> {
    /// The columns that an expression names, also within aggregates.
    pub fn columns(self) -> List<'p, pg_sys::Var> {
        let within = pg_sys::PVC_RECURSE_AGGREGATES | pg_sys::PVC_RECURSE_PLACEHOLDERS;
        // SAFETY: a live tree; the list is one of columns alone, in the current memory context.
        unsafe { List::enter(pg_sys::pull_var_clause(self.as_ptr(), within as i32)) }
    }

    /// The same value without changes of its type that leave its bytes.
    pub fn unlabelled(self) -> Any<'p> {
        let mut expression = self;
        while let Some(inner) = expression.cast::<pg_sys::RelabelType>() {
            expression = inner.argument();
        }
        expression
    }
}

impl<'p> List<'p, pg_sys::Node> {
    /// Its conditions, of which there is one at least, as one expression.
    pub fn conjunction(self) -> Any<'p> {
        assert!(!self.is_empty());
        // SAFETY: a live list of conditions; the expression is one of them, or a new node.
        unsafe { Node::enter(pg_sys::make_ands_explicit(self.as_ptr()).cast()) }
    }
}

/// Expressions of one argument.
macro_rules! of_argument {
    ($($of:ident),*) => {$(
        impl<'p> Node<'p, pg_sys::$of> {
            /// The argument.
            pub fn argument(self) -> Any<'p> {
                self.arg().expect("the expression has an argument")
            }
        }
    )*};
}
of_argument!(BooleanTest, NullTest, RelabelType);

impl<'p> Node<'p, pg_sys::TargetEntry> {
    /// The expression.
    pub fn expression(self) -> Any<'p> {
        self.expr().expect("a target has an expression")
    }
}
