//! ALTER COLUMN TYPE.
//!
//! A stored row is a PostgreSQL tuple and is never rewritten, so only a change that leaves every value's bytes alone is let
//! through: a longer or no limit of a varchar, varchar to text, a wider numeric precision, a domain without constraints.
//! Core then changes the catalog; it would also try to make the column's indexes anew, which it refuses to do on a foreign
//! table, so they are dropped before and made again after, in the same transaction.
use super::refuse::unsupported;
use super::{latest, nodes, rows};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

/// Commands that make dropped indexes again.
pub struct SetAside(Vec<String>);

/// Refuses type changes that need a rewrite, and drops the indexes over the columns of those that do not.
pub unsafe fn set_indexes_aside(
    relid: pg_sys::Oid,
    commands: &[*mut pg_sys::AlterTableCmd],
) -> SetAside {
    let mut again = Vec::new();
    // SAFETY: live ALTER COLUMN TYPE commands; the caller has locked the table exclusively.
    unsafe {
        let mut columns: Vec<i16> = Vec::new();
        for command in commands {
            let attnum = pg_sys::get_attnum(relid, (**command).name);
            if attnum <= 0 {
                continue;
            }
            if needs_rewrite(relid, attnum, (**command).def.cast()) {
                unsupported(
                    format!(
                        "changing the type of column \"{}\" needs a rewrite, which memory-optimized tables do not support",
                        nodes::text((**command).name)
                    ),
                    "Add a column of the new type, fill it with UPDATE, drop the old one and rename it.",
                );
            }
            columns.push(attnum);
        }
        for column in columns {
            for (drop, create) in indexes_over(relid, column) {
                if !again.contains(&create) {
                    rows::run_command(&drop);
                    again.push(create);
                }
            }
        }
        if !again.is_empty() {
            pg_sys::CommandCounterIncrement();
        }
    }
    SetAside(again)
}

/// Makes again what `set_indexes_aside` dropped.
pub unsafe fn make_indexes_again(set_aside: &SetAside) {
    for command in &set_aside.0 {
        // SAFETY: the text comes from PostgreSQL's own deparser.
        unsafe { rows::run_command(command) };
    }
}

/// For each index over a column: the command that drops it and the one that makes it, for the session's path.
unsafe fn indexes_over(relid: pg_sys::Oid, column: i16) -> Vec<(String, String)> {
    let query = "
        SELECT CASE WHEN c.oid IS NULL
                    THEN pg_catalog.format('DROP INDEX %s', i.indexrelid::pg_catalog.regclass)
                    ELSE pg_catalog.format('ALTER TABLE ONLY %s DROP CONSTRAINT %I', i.indrelid::pg_catalog.regclass, c.conname)
               END,
               CASE WHEN c.oid IS NOT NULL
                    THEN pg_catalog.format('ALTER TABLE ONLY %s ADD CONSTRAINT %I %s', i.indrelid::pg_catalog.regclass,
                                           c.conname, pg_catalog.pg_get_constraintdef(c.oid))
               END,
               i.indexrelid
        FROM pg_catalog.pg_index i
        LEFT JOIN pg_catalog.pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u')
        WHERE i.indrelid = $1 AND $2 = ANY (i.indkey::int2[])
        ORDER BY i.indexrelid";
    let found = latest::select(query, &[relid.into(), column.into()], |row| {
        (
            row.get::<String>(1),
            row.get::<String>(2),
            row.get::<pg_sys::Oid>(3),
        )
    });
    found
        .into_iter()
        .filter_map(|(drop, constraint, index)| {
            let create = match (constraint, index) {
                (Some(create), _) => Some(create),
                // Collations and operator classes are named as the session's path needs it, so not by the query above.
                // SAFETY: an index of a locked table; the result is palloc'd.
                (None, Some(index)) => unsafe {
                    Some(nodes::text(pg_sys::pg_get_indexdef_string(index)))
                },
                (None, None) => None,
            };
            drop.zip(create)
        })
        .collect()
}

/// Whether a type change alters stored values: core's ATColumnChangeRequiresRewrite.
unsafe fn needs_rewrite(
    relid: pg_sys::Oid,
    attnum: i16,
    definition: *mut pg_sys::ColumnDef,
) -> bool {
    // SAFETY: a live ColumnDef; the expression tree is core's own, cast by tag.
    unsafe {
        if !(*definition).raw_default.is_null() {
            return true;
        }
        let mut old_type = pg_sys::InvalidOid;
        let mut old_typmod = -1;
        let mut old_collation = pg_sys::InvalidOid;
        pg_sys::get_atttypetypmodcoll(
            relid,
            attnum,
            &raw mut old_type,
            &raw mut old_typmod,
            &raw mut old_collation,
        );
        let mut new_type = pg_sys::InvalidOid;
        let mut new_typmod = -1;
        pg_sys::typenameTypeIdAndMod(
            std::ptr::null_mut(),
            (*definition).typeName,
            &raw mut new_type,
            &raw mut new_typmod,
        );
        let column = pg_sys::makeVar(1, attnum, old_type, old_typmod, old_collation, 0);
        let coerced = pg_sys::coerce_to_target_type(
            std::ptr::null_mut(),
            column.cast(),
            old_type,
            new_type,
            new_typmod,
            pg_sys::CoercionContext::COERCION_ASSIGNMENT,
            pg_sys::CoercionForm::COERCE_IMPLICIT_CAST,
            -1,
        );
        if coerced.is_null() {
            // No such cast: core says it best.
            return false;
        }
        let mut expression: *mut pg_sys::Node = pg_sys::expression_planner(coerced.cast()).cast();
        loop {
            match nodes::tag(expression) {
                T_Var => return false,
                T_RelabelType => {
                    expression = (*expression.cast::<pg_sys::RelabelType>()).arg.cast();
                }
                T_CoerceToDomain => {
                    let domain = expression.cast::<pg_sys::CoerceToDomain>();
                    if pg_sys::DomainHasConstraints((*domain).resulttype) {
                        return true;
                    }
                    expression = (*domain).arg.cast();
                }
                _ => return true,
            }
        }
    }
}

/// The type `$1` and all that are made from it: a domain over it, an array, range or composite type of it, the row type of a table that inherits or has
/// its columns from it, at any depth.
const MADE_FROM: &str = "
        WITH RECURSIVE made_from(typ) AS (
            SELECT $1
            UNION
            SELECT next.typ FROM made_from m, LATERAL (
                SELECT t.oid FROM pg_catalog.pg_type t
                 WHERE t.typbasetype = m.typ OR (t.typelem = m.typ AND t.typlen = -1)
                UNION ALL
                SELECT r.rngtypid FROM pg_catalog.pg_range r WHERE r.rngsubtype = m.typ
                UNION ALL
                SELECT r.rngmultitypid FROM pg_catalog.pg_range r WHERE r.rngtypid = m.typ
                UNION ALL
                SELECT c.reltype FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
                 WHERE a.atttypid = m.typ AND a.attnum > 0 AND NOT a.attisdropped AND c.reltype <> 0::pg_catalog.oid
                UNION ALL
                SELECT c.reltype FROM pg_catalog.pg_class p JOIN pg_catalog.pg_inherits i ON i.inhparent = p.oid
                  JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
                 WHERE p.reltype = m.typ AND c.reltype <> 0::pg_catalog.oid
                UNION ALL
                SELECT c.reltype FROM pg_catalog.pg_class c WHERE c.reloftype = m.typ AND c.reltype <> 0::pg_catalog.oid
            ) AS next(typ)
        )";

/// The memory-optimized tables with a column of a type, or of a type made from it.
pub fn tables_with_type(type_oid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let query = format!(
        "{MADE_FROM}
        SELECT DISTINCT a.attrelid
        FROM made_from m
        JOIN pg_catalog.pg_attribute a ON a.atttypid = m.typ AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_catalog.pg_foreign_table f ON f.ftrelid = a.attrelid
        JOIN pg_catalog.pg_foreign_server s ON s.oid = f.ftserver
        JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw
        WHERE w.fdwhandler IN ({})",
        super::identity::handlers()
    );
    let found = latest::select(&query, &[type_oid.into()], |row| row.get::<pg_sys::Oid>(1));
    found.into_iter().flatten().collect()
}

/// Whether a type is another one, or made from it.
pub fn is_made_from(type_oid: pg_sys::Oid, from: pg_sys::Oid) -> bool {
    let query = format!("{MADE_FROM} SELECT $2 IN (SELECT typ FROM made_from)");
    let arguments = [from.into(), type_oid.into()];
    latest::select(&query, &arguments, |row| row.get::<bool>(1) == Some(true)) == [true]
}

/// Raises 0A000 when a relation's row type is stored in a memory-optimized table: core (since 16) does not look there before it changes
/// an attribute's type, and stored values would be misread; nor before it adds a column with content, which stored values would not have.
pub unsafe fn refuse_if_embedded(relid: pg_sys::Oid) {
    // SAFETY: a catalog look-up.
    let row_type = unsafe { pg_sys::get_rel_type_id(relid) };
    if row_type == pg_sys::InvalidOid {
        return;
    }
    if let Some(table) = tables_with_type(row_type).first() {
        // SAFETY: catalog look-ups that return palloc'd strings or NULL.
        let (altered, user) = unsafe {
            (
                nodes::text(pg_sys::get_rel_name(relid)),
                nodes::text(pg_sys::get_rel_name(*table)),
            )
        };
        unsupported(
            format!(
                "cannot alter type \"{altered}\" because memory-optimized table \"{user}\" stores values of it"
            ),
            "Drop the column that stores them first.",
        );
    }
}
