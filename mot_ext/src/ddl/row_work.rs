//! Statements of ours over a table's rows, for DDL: what core does in its own rewrites and scans of a table.
//!
//! - They see what is committed now (`latest` says why) and what the transaction itself has done.
//! - No privilege is asked, as core asks none: who may alter a table may not be allowed to read it, or to look into its schema. Functions in conditions and defaults run as
//!   the user, who must be allowed to call them, in core's scans, too.
//! - Their text means the server's own operators (`search_path`); planned and run they are under the session's path, as functions that users wrote expect.
//! - An UPDATE fires no trigger and is judged by no CHECK condition.
use super::alter::violated;
use super::search_path::within_catalog;
use super::{identity, nodes};
use crate::pg::{text, version};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{CString, c_void};

/// A planned statement.
struct RowWork {
    text: CString,
    plan: *mut pg_sys::PlannedStmt,
}

impl RowWork {
    /// Plans one statement over a table, whose text is made of the table's name; `amend` may change what it says. The latest snapshot becomes the active one until the
    /// work is run.
    unsafe fn plan(
        table: pg_sys::Oid,
        statement: impl FnOnce(&str) -> String,
        amend: impl FnOnce(*mut pg_sys::Query),
    ) -> RowWork {
        // SAFETY: the caller has locked the table; what another session has committed, such as another name of the schema, is learnt of.
        let text = unsafe {
            pg_sys::AcceptInvalidationMessages();
            text::to_c(&statement(&name_of(table)))
        };
        // SAFETY: a statement of our own making over tables that have no rules; an error leaves the snapshot to the transaction's abort.
        unsafe {
            pg_sys::PushCopiedSnapshot(pg_sys::GetLatestSnapshot());
            pg_sys::UpdateActiveSnapshotCommandId();
            let parsed = nodes::items::<pg_sys::RawStmt>(pg_sys::pg_parse_query(text.as_ptr()));
            let [parsed] = parsed[..] else {
                unreachable!("the text is one statement");
            };
            let rewritten = within_catalog(|| {
                as_superuser(|| {
                    nodes::items::<pg_sys::Query>(pg_sys::pg_analyze_and_rewrite_fixedparams(
                        parsed,
                        text.as_ptr(),
                        std::ptr::null(),
                        0,
                        std::ptr::null_mut(),
                    ))
                })
            });
            let [query] = rewritten[..] else {
                unreachable!("a foreign table has no rules");
            };
            // A schema is renamed without any lock: the name may mean another table by now.
            if read_by(query) != table {
                identity::refuse_replaced();
            }
            amend(query);
            let plan = pg_sys::pg_plan_query(query, text.as_ptr(), 0, std::ptr::null_mut());
            version::ask_none_of_plan(plan);
            RowWork { text, plan }
        }
    }

    /// Runs it up to so many rows (0: all) once `prepare` has seen the started statement; answers how many there were.
    unsafe fn run(
        self,
        rows: u64,
        instruments: u32,
        prepare: impl FnOnce(*mut pg_sys::QueryDesc),
    ) -> u64 {
        // SAFETY: a plan of ours under the snapshot that `plan` pushed; what is started is ended, or left to the abort of an error.
        unsafe {
            let run = pg_sys::CreateQueryDesc(
                self.plan,
                self.text.as_ptr(),
                pg_sys::GetActiveSnapshot(),
                std::ptr::null_mut(),
                pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestNone),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                instruments as i32,
            );
            // Triggers are not skipped by flag: core wants to be told of a query before it finds that there is none to fire.
            pg_sys::ExecutorStart(run, 0);
            prepare(run);
            version::run_up_to(run, rows);
            let found = (*(*run).estate).es_processed;
            pg_sys::ExecutorFinish(run);
            pg_sys::ExecutorEnd(run);
            pg_sys::FreeQueryDesc(run);
            pg_sys::PopActiveSnapshot();
            found
        }
    }
}

/// Does something as the superuser in which nothing of users' runs: a name is looked up whose schema the user may be without USAGE of, which core does not ask for where it goes by a
/// table's oid. An error in it leaves the user to the abort of the transaction or savepoint.
unsafe fn as_superuser<T>(work: impl FnOnce() -> T) -> T {
    let (mut user, mut context) = (pg_sys::InvalidOid, 0);
    // SAFETY: the state that was read is put back.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context);
        let local = context | pg_sys::SECURITY_LOCAL_USERID_CHANGE as i32;
        pg_sys::SetUserIdAndSecContext(pg_sys::Oid::from(pg_sys::BOOTSTRAP_SUPERUSERID), local);
        let result = work();
        pg_sys::SetUserIdAndSecContext(user, context);
        result
    }
}

/// A table's name with that of its schema, quoted where it must be.
unsafe fn name_of(table: pg_sys::Oid) -> String {
    // SAFETY: the caller has locked the table.
    unsafe {
        let opened = pg_sys::table_open(table, pg_sys::NoLock as i32);
        let name = nodes::qualified_name(opened);
        pg_sys::table_close(opened, pg_sys::NoLock as i32);
        name
    }
}

/// The table that a statement of ours reads, itself or in its subquery.
unsafe fn read_by(query: *mut pg_sys::Query) -> pg_sys::Oid {
    // SAFETY: an analysed query over one table or one subquery.
    unsafe {
        let entries = nodes::items::<pg_sys::RangeTblEntry>((*query).rtable);
        match (*entries[0]).rtekind {
            pg_sys::RTEKind::RTE_SUBQUERY => read_by((*entries[0]).subquery),
            _ => (*entries[0]).relid,
        }
    }
}

/// Whether a row of a table has NULL in a column, whose name is quoted where it must be.
pub fn any_null(table: pg_sys::Oid, column: &str) -> bool {
    // Not IS NULL: the planner believes the constraint, which is in the catalog already, and answers without looking.
    let query = |table: &str| {
        format!("SELECT 1 FROM ONLY {table} WHERE pg_catalog.num_nulls({column}) > 0 LIMIT 1")
    };
    // SAFETY: the caller has locked the table.
    unsafe { RowWork::plan(table, query, |_| {}).run(1, 0, |_| {}) > 0 }
}

/// Whether a row of a table does not pass a condition of the catalog's, read by `stringToNode`, whose columns are those of the first table in a query.
///
/// A text of it could mean something else when it is read again: `IS DISTINCT FROM`, CASE and NULLIF are written without their operator. The planner may believe the
/// catalog that all rows pass (`constraint_exclusion`) and answer without looking; it does not see through a subquery with OFFSET.
pub unsafe fn any_breaks(table: pg_sys::Oid, condition: *mut pg_sys::Node) -> bool {
    let query = |table: &str| {
        format!(
            "SELECT 1 FROM (SELECT true AS passes FROM ONLY {table} OFFSET 0) AS judged WHERE NOT passes LIMIT 1"
        )
    };
    // SAFETY: the caller has locked the table; the subquery's only table is the first in it.
    unsafe {
        let work = RowWork::plan(table, query, |query| {
            let (_, entry) = inner(query);
            (*entry).expr = condition.cast();
        });
        work.run(1, 0, |_| {}) > 0
    }
}

/// Whether a value in a table's column does not pass a condition of a domain's, in which it is a `CoerceToDomainValue`.
pub unsafe fn any_value_breaks(
    table: pg_sys::Oid,
    column: &str,
    condition: *mut pg_sys::Node,
) -> bool {
    let query = |table: &str| {
        format!(
            "SELECT 1 FROM (SELECT {column} AS value FROM ONLY {table} OFFSET 0) AS judged WHERE true LIMIT 1"
        )
    };
    // SAFETY: as in `any_breaks`; the value is given the type under which the condition asks for it, which has the same bytes.
    unsafe {
        let work = RowWork::plan(table, query, |query| {
            let (outer, entry) = inner(query);
            let mut value: *mut pg_sys::Var = std::ptr::null_mut();
            let condition = value_as_column(condition, (&raw mut value).cast());
            if let Some(value) = value.as_ref() {
                let relabelled = pg_sys::makeRelabelType(
                    (*entry).expr,
                    value.vartype,
                    value.vartypmod,
                    value.varcollid,
                    pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
                );
                (*entry).expr = relabelled.cast();
            }
            let fails = pg_sys::makeBoolExpr(
                pg_sys::BoolExprType::NOT_EXPR,
                nodes::list(&[condition]),
                -1,
            );
            (*(*outer).jointree).quals = fails.cast();
        });
        work.run(1, 0, |_| {}) > 0
    }
}

/// A query of one subquery: itself, and the subquery's first target.
unsafe fn inner(query: *mut pg_sys::Query) -> (*mut pg_sys::Query, *mut pg_sys::TargetEntry) {
    // SAFETY: a query of that form (caller).
    unsafe {
        let entries = nodes::items::<pg_sys::RangeTblEntry>((*query).rtable);
        let subquery = (*entries[0]).subquery;
        let targets = nodes::items::<pg_sys::TargetEntry>((*subquery).targetList);
        (query, targets[0])
    }
}

/// The mutator: what a domain's condition is asked about becomes the first column of the first table, which is left in the context.
#[pg_guard]
unsafe extern "C-unwind" fn value_as_column(
    node: *mut pg_sys::Node,
    context: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: an expression's parts, cast by tag; the context is a pointer to a Var.
    unsafe {
        if node.is_null() {
            return node;
        }
        if nodes::tag(node) == pg_sys::NodeTag::T_CoerceToDomainValue {
            let asked = &*node.cast::<pg_sys::CoerceToDomainValue>();
            let column = pg_sys::makeVar(1, 1, asked.typeId, asked.typeMod, asked.collation, 0);
            *context.cast::<*mut pg_sys::Var>() = column;
            return column.cast();
        }
        version::mutate(node, value_as_column, context)
    }
}

/// Runs an UPDATE of a whole table, by what its SET says, of which no trigger fires, whatever its ENABLE says, as a rewrite by core fires none. A foreign table
/// has no rules.
///
/// Triggers are taken away from the started statement, not from the session: `session_replication_role` spares those that are enabled
/// ALWAYS or for REPLICA, and one of those could keep a row from being filled. CHECK conditions are, too: old rows may break one that is NOT
/// VALID, and new ones are judged afterwards (`make_true`).
///
/// Generated columns are given their expressions: core computes those only that depend on a column that the text assigns to.
pub unsafe fn update_all(relation: pg_sys::Oid, assignments: &str, generated: &[i16]) {
    let command = |table: &str| format!("UPDATE ONLY {table} SET {assignments}");
    // SAFETY: the caller has locked the table; what is started is ended, or left to the abort of an error.
    unsafe {
        let work = RowWork::plan(relation, command, |query| {
            assign_expressions(query, relation, generated)
        });
        let checks = number_of_checks(relation);
        // A compiled form has its conditions in it; what is instrumented does not run compiled.
        let instruments = if checks > 0 {
            pg_sys::InstrumentOption::INSTRUMENT_ROWS
        } else {
            0
        };
        work.run(0, instruments, |run| take_rules_away(run, checks));
        pg_sys::CommandCounterIncrement();
    }
}

/// Has an UPDATE assign to generated columns what their expressions give of the old row. Where an expression reads a column that is
/// assigned to as well, core computes it again over the new row.
unsafe fn assign_expressions(query: *mut pg_sys::Query, relation: pg_sys::Oid, generated: &[i16]) {
    if generated.is_empty() {
        return;
    }
    // SAFETY: a rewritten UPDATE of this table alone, which is the first in its range table, as it is in expressions of the catalog.
    unsafe {
        let table = pg_sys::table_open(relation, pg_sys::NoLock as i32);
        for column in generated {
            let expression = pg_sys::build_column_default(table, i32::from(*column));
            let attribute = &nodes::attributes(table)[*column as usize - 1];
            let name = pg_sys::pstrdup(attribute.attname.data.as_ptr());
            let target = pg_sys::makeTargetEntry(expression.cast(), *column, name, false);
            (*query).targetList = pg_sys::lappend((*query).targetList, target.cast());
        }
        pg_sys::table_close(table, pg_sys::NoLock as i32);
    }
}

unsafe fn number_of_checks(relation: pg_sys::Oid) -> usize {
    // SAFETY: the caller has locked the table.
    unsafe {
        let table = pg_sys::table_open(relation, pg_sys::NoLock as i32);
        let constraints = (*(*table).rd_att).constr.as_ref();
        let number = constraints.map_or(0, |constraints| usize::from(constraints.num_check));
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        number
    }
}

/// Makes a started statement forget its table's triggers, which the executor reads from its own copy, and its `checks` CHECK conditions.
unsafe fn take_rules_away(run: *mut pg_sys::QueryDesc, checks: usize) {
    // SAFETY: a started UPDATE of one table; its plan state is what its tag says.
    unsafe {
        let state = (*run).planstate;
        if state.is_null() {
            // It runs compiled: the table has neither.
            return;
        }
        if nodes::tag(state) != pg_sys::NodeTag::T_ModifyTableState {
            violated(
                PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                "the executor runs an UPDATE in an unknown way".into(),
            );
        }
        let state = state.cast::<pg_sys::ModifyTableState>();
        (*(*state).rootResultRelInfo).ri_TrigDesc = std::ptr::null_mut();
        for position in 0..(*state).mt_nrels as usize {
            let info = (*state).resultRelInfo.add(position);
            (*info).ri_TrigDesc = std::ptr::null_mut();
            if checks > 0 {
                version::pass_all_checks(info, (*(*run).estate).es_query_cxt, checks);
            }
        }
    }
}
