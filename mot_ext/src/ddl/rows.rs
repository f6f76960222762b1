//! Making a table's rows agree with its altered definition.
//!
//! All work is SQL inside the statement's transaction, under the latest snapshot (as core's own table rewrites and scans are,
//! also in REPEATABLE READ): the caller's lock keeps other writers out.
use super::alter::violated;
use super::{latest, nodes, retype, storage};
use crate::pg::{version, violation};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CString;

/// What the catalog promised about the rows before the statement.
pub struct Picture {
    relation: pg_sys::Oid,
    columns: Vec<Column>,
    /// Names of the validated CHECK constraints.
    checks: Vec<String>,
}

#[derive(Clone)]
struct Column {
    name: String,
    not_null: bool,
    dropped: bool,
    /// New rows of the column may start with something else than NULL, or must be judged by a domain.
    filled: bool,
    /// Computed from the row and stored with it.
    generated: bool,
}

impl Picture {
    /// The table as it is; the caller has locked it.
    pub unsafe fn take(relation: pg_sys::Oid) -> Picture {
        // SAFETY: the caller holds a lock, so the relation opens without one.
        unsafe {
            let table = pg_sys::table_open(relation, pg_sys::NoLock as i32);
            let columns = nodes::attributes(table)
                .iter()
                .enumerate()
                .map(|(position, attribute)| Column {
                    name: nodes::name(&attribute.attname),
                    not_null: version::promises_no_null((*table).rd_att, position),
                    dropped: attribute.attisdropped,
                    filled: !attribute.attisdropped
                        && !version::is_virtual(attribute)
                        && (attribute.atthasdef
                            || attribute.attidentity != 0
                            || has_constrained_or_default_domain(attribute.atttypid)),
                    generated: !attribute.attisdropped
                        && attribute.attgenerated as u8 == pg_sys::ATTRIBUTE_GENERATED_STORED,
                })
                .collect();
            let mut checks = Vec::new();
            if let Some(constraints) = (*(*table).rd_att).constr.as_ref() {
                for position in 0..constraints.num_check as usize {
                    let check = &*constraints.check.add(position);
                    if check.ccvalid {
                        checks.push(nodes::text(check.ccname));
                    }
                }
            }
            pg_sys::table_close(table, pg_sys::NoLock as i32);
            Picture {
                relation,
                columns,
                checks,
            }
        }
    }
}

unsafe fn has_constrained_or_default_domain(type_oid: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups.
    unsafe {
        pg_sys::get_typtype(type_oid) as u8 == pg_sys::TYPTYPE_DOMAIN
            && (pg_sys::DomainHasConstraints(type_oid)
                || !pg_sys::get_typdefault(type_oid).is_null())
    }
}

/// Fills new columns, verifies new NOT NULL and CHECK constraints, and rebuilds indexes whose columns may be NULL from now on.
pub unsafe fn make_true(before: &Picture) {
    // SAFETY: the caller has locked the table since the picture was taken.
    unsafe {
        let after = Picture::take(before.relation);
        let table = pg_sys::table_open(before.relation, pg_sys::NoLock as i32);
        let name = nodes::qualified_name(table);
        let short_name = nodes::name(&(*(*table).rd_rel).relname);
        pg_sys::table_close(table, pg_sys::NoLock as i32);

        let added = &after.columns[before.columns.len().min(after.columns.len())..];
        let fill: Vec<String> = added
            .iter()
            .filter(|column| column.filled)
            .map(|column| format!("{} = DEFAULT", nodes::quoted(&column.name)))
            .collect();
        if !fill.is_empty() {
            refuse_if_stored_elsewhere(before.relation);
            let generated: Vec<i16> = (before.columns.len()..after.columns.len())
                .filter(|position| after.columns[*position].generated)
                .map(|position| position as i16 + 1)
                .collect();
            let command = format!("UPDATE ONLY {name} SET {}", fill.join(", "));
            update_all(&command, before.relation, &generated);
        }
        for (position, column) in after.columns.iter().enumerate() {
            let was_not_null = before.columns.get(position).is_some_and(|old| old.not_null);
            if column.dropped || !column.not_null || was_not_null {
                continue;
            }
            let quoted = nodes::quoted(&column.name);
            // Not IS NULL: the planner believes the constraint, which is in the catalog already, and answers without looking.
            if latest::any_row(&format!(
                "SELECT 1 FROM ONLY {name} WHERE pg_catalog.num_nulls({quoted}) > 0 LIMIT 1"
            )) {
                let table = pg_sys::table_open(before.relation, pg_sys::NoLock as i32);
                violation::raise_for_column(
                    PgSqlErrorCode::ERRCODE_NOT_NULL_VIOLATION,
                    table,
                    position as i16 + 1,
                    &format!(
                        "column \"{}\" of relation \"{short_name}\" contains null values",
                        column.name
                    ),
                );
            }
        }
        for check in after
            .checks
            .iter()
            .filter(|check| !before.checks.contains(check))
        {
            let condition = check_expression(before.relation, check);
            if breaks(&name, &condition) {
                let table = pg_sys::table_open(before.relation, pg_sys::NoLock as i32);
                violation::raise(
                    PgSqlErrorCode::ERRCODE_CHECK_VIOLATION,
                    table,
                    &CString::new(check.as_str()).unwrap_or_default(),
                    &format!(
                        "check constraint \"{check}\" of relation \"{short_name}\" is violated by some row"
                    ),
                    None,
                );
            }
        }
        for (position, old) in before.columns.iter().enumerate() {
            let now = &after.columns[position];
            if old.not_null && !now.not_null && !now.dropped {
                storage::rebuild_indexes_on(before.relation, position as i16 + 1);
            }
        }
    }
}

/// Raises 0A000 when the table's row type is stored in a table: nobody fills the new columns there. Core asks that of tables that it rewrites, since 16
/// without a look at foreign ones.
unsafe fn refuse_if_stored_elsewhere(relation: pg_sys::Oid) {
    // SAFETY: catalog look-ups.
    unsafe { retype::refuse_if_embedded(relation) };
    // SAFETY: the caller has locked the table; its name is in the message because there is no name of a type.
    unsafe {
        let table = pg_sys::table_open(relation, pg_sys::NoLock as i32);
        let row_type = (*(*table).rd_rel).reltype;
        pg_sys::find_composite_type_dependencies(row_type, table, std::ptr::null());
        pg_sys::table_close(table, pg_sys::NoLock as i32);
    }
}

/// Whether rows of a table that core keeps start with something else than NULL in a new column, or must be judged by its domain: core's question before it
/// refuses such a column in a table whose row type is stored elsewhere. For types that are no types (serial) and for unknown ones, too: core knows better.
pub unsafe fn adds_content(relation: pg_sys::Oid, column: *mut pg_sys::ColumnDef) -> bool {
    // SAFETY: a live ColumnDef as parsed; catalog look-ups.
    unsafe {
        let kind = pg_sys::get_rel_relkind(relation) as u8;
        if kind != pg_sys::RELKIND_RELATION && kind != pg_sys::RELKIND_PARTITIONED_TABLE {
            return false;
        }
        let has_source = nodes::items::<pg_sys::Constraint>((*column).constraints)
            .into_iter()
            .any(|constraint| {
                matches!(
                    (*constraint).contype,
                    pg_sys::ConstrType::CONSTR_DEFAULT
                        | pg_sys::ConstrType::CONSTR_IDENTITY
                        | pg_sys::ConstrType::CONSTR_GENERATED
                )
            });
        if has_source || !(*column).raw_default.is_null() {
            return true;
        }
        let type_oid = pg_sys::LookupTypeNameOid(std::ptr::null_mut(), (*column).typeName, true);
        type_oid == pg_sys::InvalidOid
            || pg_sys::get_typtype(type_oid) as u8 == pg_sys::TYPTYPE_DOMAIN
    }
}

/// Whether a row of the table does not pass a condition that the catalog says all pass. The planner may believe the catalog
/// (`constraint_exclusion`) and answer without looking; it does not see through a subquery with OFFSET.
fn breaks(table: &str, condition: &str) -> bool {
    latest::any_row(&format!(
        "SELECT 1 FROM (SELECT ({condition}) AS passes FROM ONLY {table} OFFSET 0) AS judged WHERE NOT passes LIMIT 1"
    ))
}

/// Judges the rows of a partition, or of one below the default partition, by its bounds.
pub unsafe fn verify_partition(relation: pg_sys::Oid, is_default: bool) {
    // SAFETY: the caller has locked the table.
    unsafe {
        let Some(condition) = partition_bounds(relation) else {
            return;
        };
        let table = pg_sys::table_open(relation, pg_sys::NoLock as i32);
        let name = nodes::qualified_name(table);
        let short_name = nodes::name(&(*(*table).rd_rel).relname);
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        if breaks(&name, &condition) {
            let message = if is_default {
                format!(
                    "updated partition constraint for default partition \"{short_name}\" would be violated by some row"
                )
            } else {
                format!("partition constraint of relation \"{short_name}\" is violated by some row")
            };
            let table = pg_sys::table_open(relation, pg_sys::NoLock as i32);
            violation::raise_for_table(PgSqlErrorCode::ERRCODE_CHECK_VIOLATION, table, &message);
        }
    }
}

/// The text of what a partition's rows must pass, its parents' bounds included; `None`: anything.
fn partition_bounds(relation: pg_sys::Oid) -> Option<String> {
    let found = latest::select(
        "SELECT pg_catalog.pg_get_partition_constraintdef($1)",
        &[relation.into()],
        |row| row.get::<String>(1),
    );
    found.into_iter().flatten().next()
}

/// The text of a CHECK constraint's condition.
fn check_expression(relation: pg_sys::Oid, check: &str) -> String {
    let all = latest::select(
        "SELECT conname::pg_catalog.text, pg_catalog.pg_get_expr(conbin, conrelid) FROM pg_catalog.pg_constraint
         WHERE conrelid = $1 AND contype = 'c'",
        &[relation.into()],
        |row| row.get::<String>(1).zip(row.get::<String>(2)),
    );
    let named = all.into_iter().flatten().find(|(name, _)| name == check);
    let Some((_, text)) = named else {
        violated(
            PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
            format!("constraint \"{check}\" does not exist"),
        )
    };
    text
}

/// Runs an UPDATE of a whole table of which no trigger fires, whatever its ENABLE says, as a rewrite by core fires none. A foreign table
/// has no rules.
///
/// Triggers are taken away from the started statement, not from the session: `session_replication_role` spares those that are enabled
/// ALWAYS or for REPLICA, and one of those could keep a row from being filled. CHECK conditions are, too: old rows may break one that is NOT
/// VALID, and new ones are judged afterwards (`make_true`).
///
/// Generated columns are given their expressions: core computes those only that depend on a column that the text assigns to.
unsafe fn update_all(command: &str, relation: pg_sys::Oid, generated: &[i16]) {
    let text = CString::new(command).expect("identifiers hold no zero byte");
    // SAFETY: the caller has locked the table; what is started is ended, or left to the abort of an error.
    unsafe {
        pg_sys::PushCopiedSnapshot(pg_sys::GetLatestSnapshot());
        pg_sys::UpdateActiveSnapshotCommandId();
        let parsed = nodes::items::<pg_sys::RawStmt>(pg_sys::pg_parse_query(text.as_ptr()));
        let [parsed] = parsed[..] else {
            unreachable!("the text is one statement");
        };
        let rewritten = nodes::items::<pg_sys::Query>(pg_sys::pg_analyze_and_rewrite_fixedparams(
            parsed,
            text.as_ptr(),
            std::ptr::null(),
            0,
            std::ptr::null_mut(),
        ));
        let [query] = rewritten[..] else {
            unreachable!("a foreign table has no rules");
        };
        assign_expressions(query, relation, generated);
        let plan = pg_sys::pg_plan_query(query, text.as_ptr(), 0, std::ptr::null_mut());
        let checks = number_of_checks(relation);
        // A compiled form has its conditions in it; what is instrumented does not run compiled.
        let instruments = if checks > 0 {
            pg_sys::InstrumentOption::INSTRUMENT_ROWS
        } else {
            0
        };
        let run = pg_sys::CreateQueryDesc(
            plan,
            text.as_ptr(),
            pg_sys::GetActiveSnapshot(),
            std::ptr::null_mut(),
            pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestNone),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            instruments as i32,
        );
        // Triggers are not skipped by flag: core wants to be told of a query before it finds that there is none to fire.
        pg_sys::ExecutorStart(run, 0);
        take_rules_away(run, checks);
        version::run_to_end(run);
        pg_sys::ExecutorFinish(run);
        pg_sys::ExecutorEnd(run);
        pg_sys::FreeQueryDesc(run);
        pg_sys::PopActiveSnapshot();
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

/// Runs one command as if the user had given it, through all hooks.
pub unsafe fn run_command(command: &str) {
    if let Err(error) = Spi::run(command) {
        violated(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("could not run {command:?}: {error}"),
        );
    }
}
