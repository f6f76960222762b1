//! The serial of a plan: copies of a plan share it, two plans of a process never do.
//!
//! Core's nodes have no room for it, and a plan's address names another plan soon. So the planner's
//! result gets one more entry in its list of what the plan depends on. Copies of the plan have it,
//! too; the plan cache compares entries with the catalog cache that changed, and there is none of
//! that number.
//!
//! The hook is a plain frame with nothing to drop: an error of the planner jumps over it.
use super::{nodes, shape};
use crate::pg::guard;
use crate::pg::node::Node;
use crate::pg::planning::Next;
use crate::planner;
use crate::storage;
use crate::transaction::relation;
use pgrx::pg_sys;
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers of caches that do not exist: minus this, and minus the upper part of a serial.
const MARK: i32 = 0x6d6f_7400;
/// A process that has marked so many plans (2^40) marks no more.
const SERIALS: u64 = 1 << 40;

static NEXT: Next = Next::new();

/// Installs the hook.
pub fn init() {
    NEXT.install(Some(plan));
}

unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    parameters: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: as core calls it.
    let plan = unsafe { NEXT.plan(planner::shown(query), text, options, parameters) };
    // SAFETY: a plan just made, whose tables are locked.
    let made = unsafe { Node::enter(plan) };
    if shape::only_table(made).is_some() || nodes::may_have_core_scans(made) {
        // SAFETY: this frame, and those between it and core, have nothing to drop.
        unsafe { guard::run(|| mark(made)) };
    }
    plan
}

/// Gives a plan its serial, if core's nodes in it read or write tables of the access method alone.
/// The tables are locked.
fn mark(plan: Node<'_, pg_sys::PlannedStmt>) {
    let mut positions = match shape::only_table(plan) {
        Some(position) => vec![position],
        None => nodes::core_scans(plan),
    };
    positions.dedup();
    let is_ours = |position: &u32| {
        let entry = plan.entry(*position);
        let is_relation = entry.rtekind() == pg_sys::RTEKind::RTE_RELATION
            && entry.relkind() as u8 == pg_sys::RELKIND_RELATION;
        is_relation && relation::LockedRelation::closed(entry.relid()).with(storage::is_table)
    };
    if positions.is_empty() || !positions.iter().all(is_ours) {
        return;
    }
    let serial = next_serial();
    if serial < SERIALS {
        plan.add_dependence(-(MARK + (serial >> 32) as i32), serial as u32);
    }
}

/// The serial of a marked plan.
#[inline]
pub fn serial(plan: Node<'_, pg_sys::PlannedStmt>) -> Option<u64> {
    let entries = plan.invalItems();
    let last = entries.get(entries.len().checked_sub(1)?)?;
    let upper = (-last.cacheId()).checked_sub(MARK)?;
    (0..(SERIALS >> 32) as i32)
        .contains(&upper)
        .then_some(u64::from(upper as u32) << 32 | u64::from(last.hashValue()))
}

/// The serial of a new plan; from 1.
fn next_serial() -> u64 {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    SERIAL.fetch_add(1, Ordering::Relaxed)
}
