//! ALTER COLUMN TYPE.
//!
//! A stored row is a PostgreSQL tuple and is never rewritten, so only a change that leaves every value's bytes alone is let
//! through: a longer or no limit of a varchar, varchar to text, a wider numeric precision, a domain without constraints.
//! Core then changes the catalog, of tables that inherit, too; it would also try to make the column's indexes anew, which it refuses to do on
//! a foreign table, so they are dropped before and made again after, in the same transaction (`set_aside`).
use super::refuse::{raise, unsupported};
use super::{latest, nodes};
use pgrx::pg_sys;
use pgrx::pg_sys::AlterTableType::AT_AlterColumnType;
use pgrx::pg_sys::NodeTag::*;
use pgrx::prelude::*;

/// What can be done instead.
const ANOTHER_COLUMN: &str =
    "Add a column of the new type, fill it with UPDATE, drop the old one and rename it.";

/// Refuses type changes that need a rewrite. What the others' types are is said in them once and for all: core reads their names again.
pub unsafe fn refuse_rewrites(relid: pg_sys::Oid, commands: &[*mut pg_sys::AlterTableCmd]) {
    // SAFETY: live commands of the caller's own; the definition of one that changes a type is a column's.
    unsafe {
        for command in commands {
            if (**command).subtype != AT_AlterColumnType {
                continue;
            }
            let attnum = pg_sys::get_attnum(relid, (**command).name);
            if attnum > 0 && needs_rewrite(relid, attnum, (**command).def.cast()) {
                unsupported(
                    format!(
                        "changing the type of column \"{}\" needs a rewrite, which memory-optimized tables do not support",
                        nodes::text((**command).name)
                    ),
                    ANOTHER_COLUMN,
                );
            }
        }
    }
}

/// Core's error.
unsafe fn refuse_without_cast(relid: pg_sys::Oid, attnum: i16, new_type: pg_sys::Oid) -> ! {
    // SAFETY: catalog look-ups that give palloc'd strings.
    let (column, new_type) = unsafe {
        (
            nodes::text(pg_sys::get_attname(relid, attnum, false)),
            nodes::text(pg_sys::format_type_be(new_type)),
        )
    };
    raise(
        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        format!("column \"{column}\" cannot be cast automatically to type {new_type}"),
        None,
        Some(ANOTHER_COLUMN.into()),
    )
}

/// Whether a type change alters stored values, or raises if there is no cast: core's ATColumnChangeRequiresRewrite.
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
        let type_name = &mut *(*definition).typeName;
        type_name.names = std::ptr::null_mut();
        type_name.typmods = std::ptr::null_mut();
        type_name.arrayBounds = std::ptr::null_mut();
        type_name.typeOid = new_type;
        type_name.typemod = new_typmod;
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
            // Core looks for a cast where it has to rewrite, so not for a foreign table.
            refuse_without_cast(relid, attnum, new_type);
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
