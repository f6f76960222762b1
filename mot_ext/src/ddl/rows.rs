//! Making a table's rows agree with its altered definition.
//!
//! All work is SQL inside the statement's transaction, under the latest snapshot (as core's own table rewrites and scans are,
//! also in REPEATABLE READ): the caller's lock keeps other writers out.
use super::{latest, nodes, retype, row_work, storage};
use crate::pg::{partition, text, version, violation};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// What the catalog promised about the rows before the statement.
pub struct Picture {
    relation: pg_sys::Oid,
    columns: Vec<Column>,
    /// The validated CHECK constraints.
    checks: Vec<Check>,
}

/// A CHECK constraint, told from others by its oid: a statement may drop one and add another of its name, and core makes one anew whose columns
/// change their types.
struct Check {
    constraint: pg_sys::Oid,
    name: String,
    /// As the catalog has it.
    condition: String,
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
    /// The table.
    pub fn relation(&self) -> pg_sys::Oid {
        self.relation
    }

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
                            || has_content(attribute.atttypid)),
                    generated: !attribute.attisdropped
                        && attribute.attgenerated as u8 == pg_sys::ATTRIBUTE_GENERATED_STORED,
                })
                .collect();
            let constraints = (*(*table).rd_att).constr.as_ref();
            let has_checks = constraints.is_some_and(|constraints| constraints.num_check > 0);
            pg_sys::table_close(table, pg_sys::NoLock as i32);
            Picture {
                relation,
                columns,
                checks: if has_checks {
                    Check::valid_ones(relation)
                } else {
                    Vec::new()
                },
            }
        }
    }
}

impl Check {
    fn valid_ones(relation: pg_sys::Oid) -> Vec<Check> {
        let found = latest::select(
            "SELECT oid, conname::pg_catalog.text, conbin::pg_catalog.text FROM pg_catalog.pg_constraint
             WHERE conrelid = $1 AND contype = 'c' AND convalidated ORDER BY conname",
            &[relation.into()],
            |row| {
                Some(Check {
                    constraint: row.get(1)?,
                    name: row.get(2)?,
                    condition: row.get(3)?,
                })
            },
        );
        found.into_iter().flatten().collect()
    }
}

/// Whether a new column starts with something else than NULL because of its type, which may have a default even if it is no domain, or must be judged by it.
unsafe fn has_content(type_oid: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups; the default is read by its type's input function.
    unsafe {
        let is_domain = pg_sys::get_typtype(type_oid) as u8 == pg_sys::TYPTYPE_DOMAIN;
        (is_domain && pg_sys::DomainHasConstraints(type_oid))
            || !pg_sys::get_typdefault(type_oid).is_null()
    }
}

/// Fills new columns, verifies new NOT NULL and CHECK constraints, and rebuilds indexes whose columns may be NULL from now on.
pub unsafe fn make_true(before: &Picture) {
    // SAFETY: the caller has locked the table since the picture was taken.
    unsafe {
        let after = Picture::take(before.relation);
        let table = pg_sys::table_open(before.relation, pg_sys::NoLock as i32);
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
            row_work::update_all(before.relation, &fill.join(", "), &generated);
        }
        for (position, column) in after.columns.iter().enumerate() {
            let was_not_null = before.columns.get(position).is_some_and(|old| old.not_null);
            if column.dropped || !column.not_null || was_not_null {
                continue;
            }
            let quoted = nodes::quoted(&column.name);
            if row_work::any_null(before.relation, &quoted) {
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
        for check in &after.checks {
            let is_known = |old: &Check| old.constraint == check.constraint;
            if !before.checks.iter().any(is_known)
                && row_work::any_breaks(before.relation, nodes::read(&check.condition))
            {
                let table = pg_sys::table_open(before.relation, pg_sys::NoLock as i32);
                violation::raise(
                    PgSqlErrorCode::ERRCODE_CHECK_VIOLATION,
                    table,
                    &text::to_c(&check.name),
                    &format!(
                        "check constraint \"{}\" of relation \"{short_name}\" is violated by some row",
                        check.name
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

/// Whether rows of a table that core keeps start with something else than NULL in a new column, or must be judged by its type: core's question before it
/// refuses such a column in a table whose row type is stored elsewhere. For types that are no types (serial) and for unknown ones, too: core knows better.
/// Of a composite type the same is asked for the tables that have their columns from it.
pub unsafe fn adds_content(relation: pg_sys::Oid, column: *mut pg_sys::ColumnDef) -> bool {
    // SAFETY: a live ColumnDef as parsed; catalog look-ups.
    unsafe {
        let kind = pg_sys::get_rel_relkind(relation) as u8;
        if !matches!(
            kind,
            pg_sys::RELKIND_RELATION
                | pg_sys::RELKIND_PARTITIONED_TABLE
                | pg_sys::RELKIND_COMPOSITE_TYPE
        ) {
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
        type_oid == pg_sys::InvalidOid || has_content(type_oid)
    }
}

/// Judges the rows of a partition, or of one below the default partition, by its bounds.
pub unsafe fn verify_partition(relation: pg_sys::Oid, is_default: bool) {
    // SAFETY: the caller has locked the table.
    unsafe {
        // As the tree it is, its parents' bounds included: its text would be read by the session's settings (DateStyle, extra_float_digits).
        let bounds = partition::bounds(relation);
        if bounds.is_null() {
            return;
        }
        let table = pg_sys::table_open(relation, pg_sys::NoLock as i32);
        let short_name = nodes::name(&(*(*table).rd_rel).relname);
        pg_sys::table_close(table, pg_sys::NoLock as i32);
        if row_work::any_breaks(relation, bounds) {
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
