//! Subcommands that memory-optimized tables and their indexes do not have, each with what to do instead.
use super::super::refuse::unsupported;
use super::super::{identity, nodes};
use pgrx::pg_sys;
use pgrx::pg_sys::AlterTableType::*;

/// Subcommands that core would refuse with less of an explanation, or accept and forget.
pub(super) fn refuse_unsupported(subtype: pg_sys::AlterTableType::Type) {
    let (what, hint) = match subtype {
        AT_EnableRowSecurity
        | AT_DisableRowSecurity
        | AT_ForceRowSecurity
        | AT_NoForceRowSecurity => (
            "row-level security is",
            "Use a view with security_barrier over the table.",
        ),
        AT_EnableRule | AT_EnableAlwaysRule | AT_EnableReplicaRule | AT_DisableRule => (
            "rules are",
            "Use a trigger, or a view over the table that has the rule.",
        ),
        AT_SetCompression => (
            "SET COMPRESSION is",
            "Leave it out: nothing in a memory-optimized table is compressed.",
        ),
        AT_ReplicaIdentity => (
            "replica identities are",
            "Physical replication carries memory-optimized tables; logical decoding does not.",
        ),
        AT_ClusterOn => (
            "CLUSTER is",
            "An index already gives rows in its order, from memory.",
        ),
        AT_SetUnLogged => (
            "SET UNLOGGED is",
            "Use synchronous_commit = off where losing the last commits is acceptable.",
        ),
        AT_SetAccessMethod => (
            "a change of the access method is",
            "Create a heap table and copy the rows: INSERT INTO ... SELECT.",
        ),
        AT_AlterConstraint => (
            "ALTER CONSTRAINT is",
            "Drop the constraint and add it as it should be.",
        ),
        _ => return,
    };
    unsupported(
        format!("{what} not supported on memory-optimized tables"),
        hint,
    )
}

/// Core would compute the rows' values anew, in files.
pub(super) fn refuse_other_expression() -> ! {
    unsupported(
        "SET EXPRESSION is not supported on memory-optimized tables",
        "Drop the generated column and add it again with the new expression.",
    )
}

/// ALTER INDEX: names and owners may change, storage has no parameters.
pub(super) unsafe fn refuse_index_changes(relid: pg_sys::Oid, node: *mut pg_sys::AlterTableStmt) {
    // SAFETY: a live node of this type.
    unsafe {
        if !identity::is_mot_index(relid) {
            return;
        }
        for command in nodes::items::<pg_sys::AlterTableCmd>((*node).cmds) {
            if matches!(
                (*command).subtype,
                AT_SetTableSpace | AT_SetRelOptions | AT_ResetRelOptions | AT_SetStatistics
            ) {
                unsupported(
                    "indexes of memory-optimized tables have no storage parameters and no tablespace",
                    "Nothing needs to be set: they are kept in memory.",
                );
            }
        }
    }
}
