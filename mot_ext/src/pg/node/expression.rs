//! Fields of expressions.
use super::{Any, Node, views};
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
        value aggsplit: pg_sys::AggSplit::Type,
        has aggdirectargs,
        list args: pg_sys::TargetEntry,
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
    }
    FuncExpr = T_FuncExpr {
        cell funcid / set_funcid: Oid,
        value funcresulttype: Oid,
        value funcretset: bool,
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
    Const = T_Const {
        value constvalue: pg_sys::Datum,
        value constisnull: bool,
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
    /// Whether an expression, or one of a list, names one of these columns of a relation.
    pub fn names_any_of(self, relation: pg_sys::Index, columns: &[i32]) -> bool {
        let mut named = std::ptr::null_mut();
        // SAFETY: a live tree; the set is memory of the current context.
        unsafe {
            pg_sys::pull_varattnos(self.as_ptr(), relation, &raw mut named);
            let is_named = |column: &i32| {
                let member = column - pg_sys::FirstLowInvalidHeapAttributeNumber;
                pg_sys::bms_is_member(member, named)
            };
            let names = columns.iter().any(is_named);
            pg_sys::bms_free(named);
            names
        }
    }

    /// Whether an expression names a system column of a relation.
    pub fn names_system_columns(self, relation: pg_sys::Index) -> bool {
        let mut named = std::ptr::null_mut();
        // SAFETY: a live tree; the set is memory of the current context.
        let first = unsafe {
            pg_sys::pull_varattnos(self.as_ptr(), relation, &raw mut named);
            pg_sys::bms_next_member(named, -1)
        };
        first >= 0 && first + pg_sys::FirstLowInvalidHeapAttributeNumber < 0
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

impl<'p> Node<'p, pg_sys::TargetEntry> {
    /// The expression.
    pub fn expression(self) -> Any<'p> {
        self.expr().expect("a target has an expression")
    }
}
