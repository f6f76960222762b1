//! Foreign keys that reference memory-optimized tables: refused, wherever a statement may make one.
use super::refuse::unsupported;
use super::{identity, nodes};
use pgrx::pg_sys::AlterTableType::*;
use pgrx::pg_sys::NodeTag::*;
use pgrx::pg_sys::{self, ConstrType::*};

/// Raises 0A000 when a table definition's FOREIGN KEY points to a memory-optimized table.
pub unsafe fn refuse_references_to_mot(elements: *mut pg_sys::List) {
    // SAFETY: the elements of a live CREATE TABLE statement, cast by tag.
    unsafe {
        for element in nodes::items::<pg_sys::Node>(elements) {
            match nodes::tag(element) {
                T_Constraint => refuse_reference(element.cast()),
                T_ColumnDef => refuse_references_of_column(element.cast()),
                _ => {}
            }
        }
    }
}

unsafe fn refuse_references_of_column(column: *mut pg_sys::ColumnDef) {
    // SAFETY: a live ColumnDef.
    unsafe {
        for constraint in nodes::items::<pg_sys::Constraint>((*column).constraints) {
            refuse_reference(constraint);
        }
    }
}

pub(super) unsafe fn refuse_reference_in_command(command: *mut pg_sys::AlterTableCmd) {
    // SAFETY: a live command; its definition is what the subtype says.
    unsafe {
        match (*command).subtype {
            AT_AddConstraint => refuse_reference((*command).def.cast()),
            AT_AddColumn => refuse_references_of_column((*command).def.cast()),
            _ => {}
        }
    }
}

unsafe fn refuse_reference(constraint: *mut pg_sys::Constraint) {
    // SAFETY: a live Constraint node.
    unsafe {
        if (*constraint).contype == CONSTR_FOREIGN
            && !(*constraint).pktable.is_null()
            && identity::is_mot_table(identity::lookup((*constraint).pktable))
        {
            unsupported(
                "foreign key constraints that reference memory-optimized tables are not supported",
                "Leave the FOREIGN KEY or REFERENCES clause out.",
            );
        }
    }
}
