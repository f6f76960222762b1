//! ALTER DOMAIN: what a domain says from now on, of the values that memory-optimized tables hold.
//!
//! Core looks for the domain in tables with storage only. What is new after its part is judged here as core judges it: the new condition
//! alone, over the values as the base type has them, in every column of the domain or of one over it. (Not by a cast to the domain: that
//! asks all of its conditions, and rows may break one that is NOT VALID.) Values inside of others (arrays, ranges, composites) are judged by nobody: core
//! refuses then, and so does this.
use super::refuse::unsupported;
use super::utility::Statement;
use super::{latest, nodes, retype, row_work};
use crate::pg::violation;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// What a domain says of its values.
#[derive(Default)]
struct Promises {
    /// Its valid CHECK constraints.
    checks: Vec<Check>,
    is_not_null: bool,
}

struct Check {
    constraint: pg_sys::Oid,
    /// As the catalog has it.
    condition: String,
}

/// ALTER DOMAIN.
pub unsafe fn alter(statement: &Statement, node: *mut pg_sys::AlterDomainStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        // 'C' ADD CONSTRAINT, 'V' VALIDATE CONSTRAINT, 'O' SET NOT NULL.
        let looks_at_rows = match (*node).subtype as u8 {
            b'C' => !(*(*node).def.cast::<pg_sys::Constraint>()).skip_validation,
            b'V' | b'O' => true,
            _ => false,
        };
        if !looks_at_rows {
            return false;
        }
        let type_name = pg_sys::makeTypeNameFromNameList((*node).typeName);
        let domain = pg_sys::typenameTypeId(std::ptr::null_mut(), type_name);
        let users = retype::tables_with_type(domain);
        if users.is_empty() {
            return false;
        }
        let before = Promises::of(domain);
        statement.run(nodes::copy(node));
        pg_sys::CommandCounterIncrement();
        let added = Promises::of(domain).beyond(&before);
        for table in users {
            added.verify(table, domain);
        }
        true
    }
}

impl Promises {
    fn of(domain: pg_sys::Oid) -> Promises {
        let of_domain = "SELECT t.typnotnull FROM pg_catalog.pg_type t WHERE t.oid = $1";
        let of_checks = "
            SELECT c.oid, c.conbin::pg_catalog.text
              FROM pg_catalog.pg_constraint c WHERE c.contypid = $1 AND c.contype = 'c' AND c.convalidated ORDER BY c.oid";
        let mut found = Promises::default();
        let marks = latest::select(of_domain, &[domain.into()], |row| row.get::<bool>(1));
        found.is_not_null = marks == [Some(true)];
        let checks = latest::select(of_checks, &[domain.into()], |row| {
            let constraint = row.get(1)?;
            let condition = row.get(2)?;
            Some(Check {
                constraint,
                condition,
            })
        });
        found.checks = checks.into_iter().flatten().collect();
        found
    }

    /// What was not said before.
    fn beyond(mut self, before: &Promises) -> Promises {
        let is_known = |check: &Check| {
            before
                .checks
                .iter()
                .any(|known| known.constraint == check.constraint)
        };
        self.checks.retain(|check| !is_known(check));
        self.is_not_null &= !before.is_not_null;
        self
    }

    /// Raises if a value of the domain in the table breaks it.
    unsafe fn verify(&self, relation: pg_sys::Oid, domain: pg_sys::Oid) {
        if self.checks.is_empty() && !self.is_not_null {
            return;
        }
        // SAFETY: the table is locked here to keep writers out, as core does for heap tables, and open until the end.
        unsafe {
            let table = pg_sys::table_open(relation, pg_sys::ShareLock as i32);
            let short_name = nodes::name(&(*(*table).rd_rel).relname);
            for (position, attribute) in nodes::attributes(table).iter().enumerate() {
                if attribute.attisdropped {
                    continue;
                }
                let column = nodes::name(&attribute.attname);
                if !is_over(attribute.atttypid, domain) {
                    if retype::is_made_from(attribute.atttypid, domain) {
                        refuse_inside(domain, &short_name, &column);
                    }
                    continue;
                }
                let quoted = nodes::quoted(&column);
                let break_off = |code, what: &str| -> ! {
                    let number = position as i16 + 1;
                    let message =
                        format!("column \"{column}\" of table \"{short_name}\" contains {what}");
                    violation::raise_for_column(code, table, number, &message)
                };
                if self.is_not_null && row_work::any_null(relation, &quoted) {
                    break_off(PgSqlErrorCode::ERRCODE_NOT_NULL_VIOLATION, "null values");
                }
                for check in &self.checks {
                    let condition = nodes::read(&check.condition);
                    if row_work::any_value_breaks(relation, &quoted, condition) {
                        let what = "values that violate the new constraint";
                        break_off(PgSqlErrorCode::ERRCODE_CHECK_VIOLATION, what);
                    }
                }
            }
            pg_sys::table_close(table, pg_sys::NoLock as i32);
        }
    }
}

/// As core says it of heap tables.
unsafe fn refuse_inside(domain: pg_sys::Oid, table: &str, column: &str) -> ! {
    // SAFETY: a catalog look-up that gives a palloc'd string.
    let name = unsafe { nodes::text(pg_sys::format_type_be(domain)) };
    unsupported(
        format!("cannot alter type \"{name}\" because column \"{table}.{column}\" uses it"),
        "Drop the column, or give it the base type, and alter the domain then.",
    )
}

/// Whether a type is the domain, or a domain over it at any depth.
fn is_over(type_oid: pg_sys::Oid, domain: pg_sys::Oid) -> bool {
    type_oid == domain
        || latest::select(
            "WITH RECURSIVE under(typ) AS (
                 SELECT $1
                 UNION
                 SELECT t.typbasetype FROM under u JOIN pg_catalog.pg_type t ON t.oid = u.typ WHERE t.typtype = 'd'
             )
             SELECT $2 IN (SELECT typ FROM under)",
            &[type_oid.into(), domain.into()],
            |row| row.get::<bool>(1) == Some(true),
        ) == [true]
}
