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
use crate::pg::list::{items, list};
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
    unsafe {
        let query = planner::shown(query);
        let plan = NEXT.plan(query, text, options, parameters);
        if shape::only_table(plan).is_some() || nodes::may_have_core_scans(plan) {
            guard::run(|| mark(plan));
        }
        plan
    }
}

/// Gives a plan its serial, if core's nodes in it read or write tables of the access method alone.
unsafe fn mark(plan: *mut pg_sys::PlannedStmt) {
    // SAFETY: a plan just made, whose tables are locked.
    unsafe {
        let mut positions = match shape::only_table(plan) {
            Some(position) => vec![position],
            None => nodes::core_scans(plan),
        };
        positions.dedup();
        let is_ours = |position: &u32| {
            let entry = pg_sys::rt_fetch(*position, (*plan).rtable);
            let is_relation = (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION
                && (*entry).relkind as u8 == pg_sys::RELKIND_RELATION;
            is_relation && relation::Relation::closed((*entry).relid).with(storage::is_table)
        };
        if positions.is_empty() || !positions.iter().all(is_ours) {
            return;
        }
        let serial = next_serial();
        if serial >= SERIALS {
            return;
        }
        let size = size_of::<pg_sys::PlanInvalItem>();
        let item = pg_sys::palloc0(size).cast::<pg_sys::PlanInvalItem>();
        (*item).type_ = pg_sys::NodeTag::T_PlanInvalItem;
        (*item).cacheId = -(MARK + (serial >> 32) as i32);
        (*item).hashValue = serial as u32;
        let mut entries = items::<pg_sys::PlanInvalItem>((*plan).invalItems);
        entries.push(item);
        (*plan).invalItems = list(&entries);
    }
}

/// The serial of a marked plan.
#[inline]
pub unsafe fn serial(plan: *const pg_sys::PlannedStmt) -> Option<u64> {
    // SAFETY: a finished plan (caller), whose list has entries of this type.
    unsafe {
        let entries = (*plan).invalItems;
        if entries.is_null() {
            return None;
        }
        let last = (*(*entries).elements.add((*entries).length as usize - 1)).ptr_value;
        let item = &*last.cast::<pg_sys::PlanInvalItem>();
        let upper = (-item.cacheId).checked_sub(MARK)?;
        (0..(SERIALS >> 32) as i32)
            .contains(&upper)
            .then_some(u64::from(upper as u32) << 32 | u64::from(item.hashValue))
    }
}

/// The serial of a new plan; from 1.
fn next_serial() -> u64 {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    SERIAL.fetch_add(1, Ordering::Relaxed)
}
