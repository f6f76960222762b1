//! From a chosen path to a plan node.
//!
//! The target of an UPDATE or DELETE with BEFORE row triggers is scanned with locks: a trigger must see the row's newest state as OLD,
//! which core takes from what the scan returned. Such a scan promises no order: a row that somebody has moved meanwhile comes out at its old
//! place with its new key. Other statements find out at the change itself, and lock only what they change; their
//! AFTER row triggers are fired by us where that was not what the scan saw (`modify.rs`).
use super::aggregate;
use super::paths::PathPrivate;
use super::private::{self, cells, list};
use super::triggers;
use mot_engine::LockStrength;
use pgrx::pg_sys;

pub unsafe fn get_foreign_plan(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    _relid: pg_sys::Oid,
    path: *mut pg_sys::ForeignPath,
    targets: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    outer_plan: *mut pg_sys::Plan,
) -> *mut pg_sys::ForeignScan {
    // SAFETY: the planner's own structures; the path is one of ours.
    unsafe {
        if aggregate::is_path(rel) {
            return aggregate::plan(path, targets, outer_plan);
        }
        let private_lists = PathPrivate::from_list((*path).fdw_private);
        if let Some(strength) = lock_for_triggers(root, rel) {
            private::add_row_lock(private_lists.plan, strength);
        }
        let exact = cells::<pg_sys::RestrictInfo>(private_lists.exact);
        let mut filters = Vec::new();
        for clause in cells::<pg_sys::RestrictInfo>(clauses) {
            if !(**clause).pseudoconstant && !is_answered(*clause, exact) {
                filters.push((**clause).clause);
            }
        }
        pg_sys::make_foreignscan(
            targets,
            list(&filters),
            (*rel).relid,
            private_lists.arguments,
            private_lists.plan,
            std::ptr::null_mut(),
            private_lists.rechecks,
            outer_plan,
        )
    }
}

/// Whether the index answers the clause, or another clause of the same equivalence.
unsafe fn is_answered(
    clause: *mut pg_sys::RestrictInfo,
    exact: &[*mut pg_sys::RestrictInfo],
) -> bool {
    // SAFETY: the planner's own structures.
    exact.iter().any(|other| unsafe {
        *other == clause
            || (!(*clause).parent_ec.is_null() && (*clause).parent_ec == (**other).parent_ec)
    })
}

/// The lock for rows that BEFORE row triggers will see.
pub unsafe fn lock_for_triggers(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
) -> Option<LockStrength> {
    // SAFETY: the planner's own structures.
    unsafe {
        let command = (*(*root).parse).commandType;
        let strength = match command {
            pg_sys::CmdType::CMD_UPDATE => LockStrength::NoKeyUpdate,
            pg_sys::CmdType::CMD_DELETE => LockStrength::Update,
            _ => return None,
        };
        let is_target = pg_sys::bms_is_member((*rel).relid as i32, (*root).all_result_relids);
        if !is_target {
            return None;
        }
        let entry = *(*root).simple_rte_array.add((*rel).relid as usize);
        // The planner has locked it.
        let relation = pg_sys::table_open((*entry).relid, pg_sys::NoLock as i32);
        let locks = triggers::run_before((*relation).trigdesc, command);
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        locks.then_some(strength)
    }
}
