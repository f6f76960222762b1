//! What is made beside a table and goes with its statements: policies, triggers, rules, publications.
//!
//! Core lets foreign tables have some triggers, and refuses the rest in the words for objects of a wrong kind (42809, 22023).
use super::refuse::unsupported;
use super::{identity, inheritance, nodes};
use pgrx::pg_sys;

/// CREATE POLICY on a memory-optimized table.
pub unsafe fn create_policy(node: *mut pg_sys::CreatePolicyStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        if identity::is_mot_table(identity::lookup((*node).table)) {
            unsupported(
                "row-level security is not supported on memory-optimized tables",
                "Use a view with security_barrier over the table.",
            );
        }
    }
    false
}

/// CREATE RULE on a memory-optimized table.
pub unsafe fn create_rule(node: *mut pg_sys::RuleStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        if identity::is_mot_table(identity::lookup((*node).relation)) {
            unsupported(
                "rules are not supported on memory-optimized tables",
                "Use a trigger, or a view over the table that has the rule.",
            );
        }
    }
    false
}

/// CREATE TRIGGER on a memory-optimized table, or on a partitioned one that hands its row triggers down to such partitions.
pub unsafe fn create_trigger(node: *mut pg_sys::CreateTrigStmt) -> bool {
    // SAFETY: a live node of this type.
    unsafe {
        let relid = identity::lookup((*node).relation);
        if (*node).isconstraint && reaches_mot_table(relid) {
            unsupported(
                "constraint triggers are not supported on memory-optimized tables",
                "Use an AFTER trigger, which cannot be deferred.",
            );
        }
        if !identity::is_mot_table(relid) {
            return false;
        }
        if !(*node).transitionRels.is_null() {
            unsupported(
                "transition tables are not supported for triggers on memory-optimized tables",
                "Use a trigger FOR EACH ROW, or RETURNING in a WITH clause of the statement.",
            );
        }
        // Later versions fire them.
        #[cfg(feature = "pg15")]
        if (*node).events as u32 & pg_sys::TRIGGER_TYPE_TRUNCATE != 0 {
            unsupported(
                "TRUNCATE triggers are not supported on memory-optimized tables",
                "Use DELETE, whose triggers are fired, in place of TRUNCATE.",
            );
        }
    }
    false
}

/// CREATE and ALTER PUBLICATION that name a memory-optimized table. (One of all tables, or of a schema's, leaves them out, as it does all foreign tables.)
pub unsafe fn publish(objects: *mut pg_sys::List) -> bool {
    // SAFETY: the objects of a live statement.
    unsafe {
        for object in nodes::items::<pg_sys::PublicationObjSpec>(objects) {
            let table = (*object).pubtable;
            if !table.is_null() && identity::is_mot_table(identity::lookup((*table).relation)) {
                unsupported(
                    "publications of memory-optimized tables are not supported",
                    "Physical replication carries memory-optimized tables; logical decoding does not.",
                );
            }
        }
    }
    false
}

unsafe fn reaches_mot_table(relid: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups; the list is of oids.
    unsafe {
        if relid == pg_sys::InvalidOid {
            return false;
        }
        if pg_sys::get_rel_relkind(relid) as u8 != pg_sys::RELKIND_PARTITIONED_TABLE {
            return identity::is_mot_table(relid);
        }
        inheritance::find_all(relid, pg_sys::NoLock as i32)
            .into_iter()
            .any(identity::is_mot_table)
    }
}
