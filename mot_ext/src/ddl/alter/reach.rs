//! Which tables' rows a subcommand speaks of.
use super::super::{latest, nodes};
use crate::pg::version;
use pgrx::pg_sys::AlterTableType::*;
use pgrx::pg_sys::{self, ConstrType::*};
use std::ffi::{CStr, c_char};

/// Whether ADD COLUMN IF NOT EXISTS will find the column. Core drops columns of the statement first.
pub(super) unsafe fn finds_column(
    relid: pg_sys::Oid,
    command: &pg_sys::AlterTableCmd,
    all: &[*mut pg_sys::AlterTableCmd],
) -> bool {
    // SAFETY: live commands; the definition of this one is a column's.
    unsafe {
        let name = (*command.def.cast::<pg_sys::ColumnDef>()).colname;
        let is_dropped = |other: &*mut pg_sys::AlterTableCmd| {
            (**other).subtype == AT_DropColumn
                && CStr::from_ptr((**other).name) == CStr::from_ptr(name)
        };
        command.missing_ok
            && pg_sys::get_attnum(relid, name) != pg_sys::InvalidAttrNumber as i16
            && !all.iter().any(is_dropped)
    }
}

/// Whether what a command says of a table it says of the rows of those that inherit, too. Core then locks them all, as we do; it
/// locks none of them for other commands.
pub(super) unsafe fn reaches_children(
    relid: pg_sys::Oid,
    command: &pg_sys::AlterTableCmd,
    all: &[*mut pg_sys::AlterTableCmd],
) -> bool {
    // SAFETY: definition and name of a live command are what its kind says.
    unsafe {
        match command.subtype {
            AT_AddConstraint => {
                let constraint = &*command.def.cast::<pg_sys::Constraint>();
                matches!(
                    constraint.contype,
                    CONSTR_CHECK | CONSTR_NOTNULL | CONSTR_PRIMARY
                ) && !constraint.is_no_inherit
            }
            AT_AddColumn => !finds_column(relid, command, all),
            AT_AlterColumnType | AT_SetNotNull | AT_DropNotNull => true,
            AT_ValidateConstraint => may_inherit(relid, command.name, "cn", false),
            // NOT NULL has constraints of its own since 18.
            AT_DropConstraint => may_inherit(relid, command.name, "n", false),
            AT_AlterConstraint => {
                // It may be made by the same statement.
                may_inherit(relid, version::altered_constraint(command), "n", true)
            }
            subtype => version::changes_generated_column(subtype),
        }
    }
}

/// Whether a table's constraint of that name is of one of these kinds (`pg_constraint.contype`), so that it may be one of its children, too, or be made to; `otherwise`
/// if there is none.
unsafe fn may_inherit(
    relid: pg_sys::Oid,
    name: *const c_char,
    kinds: &str,
    otherwise: bool,
) -> bool {
    if name.is_null() {
        return false;
    }
    // SAFETY: a NUL-terminated name of the statement.
    let wanted = unsafe { nodes::text(name) };
    let all = latest::select(
        "SELECT conname::pg_catalog.text, contype::pg_catalog.text FROM pg_catalog.pg_constraint WHERE conrelid = $1",
        &[relid.into()],
        |row| row.get::<String>(1).zip(row.get::<String>(2)),
    );
    let mut named = all
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name == wanted);
    match named.next() {
        Some((_, kind)) => kinds.contains(&kind),
        None => otherwise,
    }
}
