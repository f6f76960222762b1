//! What there is in a tree of core's plan states.
//!
//! A node may be reached on several ways: each of two nodes that refer to one subplan has a state
//! of its own for the reference, and both point at the subplan's one tree of states. Every state is
//! visited once.
use crate::pg::list::items;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;
use std::ffi::c_void;

/// The states that need something at Start or End.
#[derive(Default)]
pub struct Survey {
    seen: Vec<*mut pg_sys::PlanState>,
    /// Scans of core's nodes over tables.
    pub table_scans: Vec<*mut pg_sys::ScanState>,
    pub sorts: Vec<*mut pg_sys::SortState>,
    pub aggregates: Vec<*mut pg_sys::AggState>,
    /// Subplans whose rows are kept in a hash table.
    hashed: Vec<*mut pg_sys::PlanState>,
    /// Two keep the rows of one subplan, each in a table of its own. The first that fills its table
    /// anew takes the mark from the subplan that says that it changed, and the second one's stays
    /// as it was.
    pub shares_hashed_subplan: bool,
    /// A node took its limit of memory from the settings when it was made. (Sorts do at each
    /// execution.)
    pub remembers_memory_limit: bool,
}

impl Survey {
    pub unsafe fn of(estate: *mut pg_sys::EState, root: *mut pg_sys::PlanState) -> Survey {
        let mut survey = Survey::default();
        // SAFETY: a tree of states, whole. Core may have subplans that no expression is left to
        // refer to.
        unsafe {
            look_at(root, (&raw mut survey).cast());
            for subplan in items::<pg_sys::PlanState>((*estate).es_subplanstates) {
                if !subplan.is_null() {
                    look_at(subplan, (&raw mut survey).cast());
                }
            }
        }
        survey
    }

    unsafe fn note(&mut self, state: *mut pg_sys::PlanState) {
        // SAFETY: a state, cast by tag.
        unsafe {
            match (*state).type_ {
                T_SeqScanState | T_IndexScanState => self.table_scans.push(state.cast()),
                T_SortState => self.sorts.push(state.cast()),
                T_AggState => {
                    let aggregate = state.cast::<pg_sys::AggState>();
                    self.remembers_memory_limit |=
                        (*aggregate).aggstrategy == pg_sys::AggStrategy::AGG_HASHED;
                    self.aggregates.push(aggregate);
                }
                T_MemoizeState => self.remembers_memory_limit = true,
                _ => {}
            }
            for reference in items::<pg_sys::SubPlanState>((*state).subPlan) {
                if (*(*reference).subplan).useHashTable {
                    let subplan = (*reference).planstate;
                    self.shares_hashed_subplan |= self.hashed.contains(&subplan);
                    self.hashed.push(subplan);
                }
            }
        }
    }
}

/// The walker: notes a state that it has not seen, and continues with those below it.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn look_at(state: *mut pg_sys::PlanState, survey: *mut c_void) -> bool {
    // SAFETY: a tree of states; `survey` is the caller's, alive during the walk.
    unsafe {
        let notes = &mut *survey.cast::<Survey>();
        if notes.seen.contains(&state) {
            return false;
        }
        notes.seen.push(state);
        notes.note(state);
        pg_sys::planstate_tree_walker(state, Some(look_at), survey)
    }
}
