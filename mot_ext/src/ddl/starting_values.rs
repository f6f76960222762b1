//! Commands of an ALTER TABLE that say what a new column starts with in rows to come, and not in those that are there.
//!
//! Core computes what rows get in a new column when it adds that (AT_PASS_ADD_COL); SET DEFAULT and ADD GENERATED ... AS IDENTITY of the column come later
//! (AT_PASS_ADD_OTHERCONSTR), so `ADD COLUMN status text DEFAULT 'old', ALTER status SET DEFAULT 'current'` says two things. `rows::make_true` reads
//! the default from the catalog. So such commands are kept from core until the rows are true.
use super::nodes;
use super::utility::Statement;
use pgrx::pg_sys;
use pgrx::pg_sys::AlterTableType::*;

/// Takes these commands out of a statement's. What is taken is `alter`ed when the rows are true.
pub unsafe fn take(
    commands: &mut Vec<*mut pg_sys::AlterTableCmd>,
) -> Vec<*mut pg_sys::AlterTableCmd> {
    // SAFETY: live commands; the definition of one that adds a column is a column's.
    unsafe {
        let added: Vec<String> = commands
            .iter()
            .filter(|command| (***command).subtype == AT_AddColumn)
            .map(|command| nodes::text((*(**command).def.cast::<pg_sys::ColumnDef>()).colname))
            .collect();
        let identity_added: Vec<String> = commands
            .iter()
            .filter(|command| (***command).subtype == AT_AddIdentity)
            .map(|command| nodes::text((**command).name))
            .collect();
        let is_of_new_column = |command: &pg_sys::AlterTableCmd| {
            let sets = match command.subtype {
                // DROP DEFAULT comes before columns are added.
                AT_ColumnDefault => !command.def.is_null(),
                AT_AddIdentity => true,
                // Of an identity that the column is added with, rows that are there get values by it.
                AT_SetIdentity => identity_added.contains(&nodes::text(command.name)),
                _ => false,
            };
            sets && added.contains(&nodes::text(command.name))
        };
        if !commands.iter().any(|command| is_of_new_column(&**command)) {
            return Vec::new();
        }
        // Who gives the table away may not be able to alter it afterwards.
        let (taken, kept) = commands.drain(..).partition(|command| {
            is_of_new_column(&**command) || (**command).subtype == AT_ChangeOwner
        });
        *commands = kept;
        taken
    }
}

/// Has core run what was taken, as a part of the statement, whose other commands it has run.
pub unsafe fn alter(
    statement: &Statement,
    node: *mut pg_sys::AlterTableStmt,
    taken: &[*mut pg_sys::AlterTableCmd],
    relid: pg_sys::Oid,
    lock: pg_sys::LOCKMODE,
) {
    if taken.is_empty() {
        return;
    }
    // SAFETY: a live node of the caller's own, and commands of it; the table is locked.
    unsafe {
        (*node).cmds = nodes::list(taken);
        statement.alter_further(node, relid, lock);
        pg_sys::CommandCounterIncrement();
    }
}
