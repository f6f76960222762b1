//! INSERT ... ON CONFLICT on 15 to 17: core takes the unique indexes of the target for btrees, or
//! raises.
//!
//! It looks when it opens the indexes, at the first row. So they are opened right behind the start
//! of the statement, for each ModifyTable node, while they are shown as btrees. Core finds them
//! open.
//!
//! Rows of a partitioned table go to partitions that core opens when the first row reaches each.
//! Their unique indexes are shown as btrees from the start of the statement to its end.
use crate::index_am::access_method::indexes_of;
use crate::index_am::flips::{self, Flips};
use crate::pg::local::ProcessLocal;
use crate::pg::version::index_am::ASKS_FOR_BTREE;
use crate::pg::{inheritance, nodes};
use crate::storage;
use pgrx::pg_sys::NodeTag::T_ModifyTableState;
use pgrx::pg_sys::OnConflictAction::ONCONFLICT_NONE;
use pgrx::{is_a, pg_guard, pg_sys};
use std::cell::RefCell;
use std::ffi::c_int;

/// The indexes shown for statements that run, by their executor states. Those of statements that
/// failed stay until the next one comes, and show nothing.
static HELD: ProcessLocal<RefCell<Vec<(*mut pg_sys::EState, Flips)>>> =
    ProcessLocal(RefCell::new(Vec::new()));

/// Core's executor has started a query: a plain frame that reads the plan first.
///
/// # Safety
/// A started query.
#[inline]
pub unsafe fn started(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: the caller's query has a plan.
    unsafe {
        let plan = &*(*query).plannedstmt;
        let inserts = plan.commandType == pg_sys::CmdType::CMD_INSERT || plan.hasModifyingCTE;
        if ASKS_FOR_BTREE && inserts && flags & pg_sys::EXEC_FLAG_EXPLAIN_ONLY as c_int == 0 {
            open_indexes(query);
        }
    }
}

/// Core's executor ends a query: a plain frame.
///
/// # Safety
/// A started query.
#[inline]
pub unsafe fn ends(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the caller's query.
    unsafe {
        if ASKS_FOR_BTREE && flips::is_any_shown() {
            close_indexes((*query).estate);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn open_indexes(query: *mut pg_sys::QueryDesc) {
    // SAFETY: a started query (caller); its states are cast by their tags.
    unsafe {
        let estate = (*query).estate;
        let top = (*query).planstate;
        if estate.is_null() {
            return;
        }
        let mut all = nodes::items::<pg_sys::ModifyTableState>((*estate).es_auxmodifytables);
        if !top.is_null() && is_a(top.cast(), T_ModifyTableState) {
            all.push(top.cast());
        }
        for state in all {
            let node = (*state).ps.plan.cast::<pg_sys::ModifyTable>();
            if (*node).onConflictAction != ONCONFLICT_NONE {
                open_for(estate, (*state).resultRelInfo);
            }
        }
    }
}

/// Opens the indexes of a table of ours, or shows those of partitions of ours.
unsafe fn open_for(estate: *mut pg_sys::EState, target: *mut pg_sys::ResultRelInfo) {
    // SAFETY: a running statement's target (caller), locked for writing.
    unsafe {
        let relation = (*target).ri_RelationDesc;
        let form = &*(*relation).rd_rel;
        let lock = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
        if form.relkind as u8 == pg_sys::RELKIND_PARTITIONED_TABLE {
            let unique = unique_indexes_below((*relation).rd_id);
            if !unique.is_empty() {
                let flips = flips::show(&unique, lock);
                let mut held = HELD.0.borrow_mut();
                held.retain(|(_, flips)| flips.is_in_force());
                held.push((estate, flips));
            }
        } else if storage::is_table(relation)
            && form.relhasindex
            && (*target).ri_IndexRelationDescs.is_null()
        {
            let flips = flips::show(&indexes_of((*relation).rd_id), lock);
            let previous = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
            pg_sys::ExecOpenIndices(target, true);
            pg_sys::MemoryContextSwitchTo(previous);
            flips.end();
        }
    }
}

/// The unique indexes of partitions of ours, at any depth. The partitions are locked as for
/// reading.
unsafe fn unique_indexes_below(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: the table is locked (caller).
    unsafe {
        inheritance::find_all(table, pg_sys::AccessShareLock as pg_sys::LOCKMODE)
            .into_iter()
            .filter(|partition| storage::is_mot_table(*partition))
            .flat_map(|partition| indexes_of(partition))
            .filter(|index| storage::is_unique_to_core(*index))
            .collect()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn close_indexes(estate: *mut pg_sys::EState) {
    let (ended, others) = HELD
        .0
        .take()
        .into_iter()
        .partition::<Vec<_>, _>(|(of, _)| *of == estate);
    HELD.0.replace(others);
    for (_, flips) in ended {
        flips.end();
    }
}
