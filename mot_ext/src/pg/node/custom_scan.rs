//! Custom scans: their plans, and the nodes that run.
//!
//! A node that runs is core's part, and behind it a pointer to a state of its provider's.
use super::{Node, views};
use pgrx::{PgMemoryContexts, pg_sys};
use std::ffi::c_int;

views! {
    CustomScan = T_CustomScan {
        list custom_scan_tlist: pg_sys::TargetEntry,
    }
    CustomScanState = T_CustomScanState {
        base ss: pg_sys::ScanState,
    }
}

/// A node as core holds it: core's part first. There is no state before the node begins, nor in one
/// that is initialized for EXPLAIN alone.
#[repr(C)]
struct WithState<S> {
    core: pg_sys::CustomScanState,
    state: *mut S,
}

/// A node that runs by these methods, and that may keep a state of this type, in the current memory
/// context.
///
/// # Safety
/// The context lives for `'p`. The methods take nodes of this type of state.
pub unsafe fn make_custom_scan<'p, S>(
    methods: *const pg_sys::CustomExecMethods,
) -> Node<'p, pg_sys::CustomScanState> {
    // SAFETY: zeroed memory of the node's size; what is not set may be zero or NULL.
    unsafe {
        let node = pg_sys::palloc0(size_of::<WithState<S>>()).cast::<WithState<S>>();
        (*node).core.ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*node).core.methods = methods;
        Node::enter(node.cast())
    }
}

impl<'p> Node<'p, pg_sys::CustomScan> {
    /// The oids that its provider keeps with it.
    pub fn private_oids(self) -> Vec<pg_sys::Oid> {
        // SAFETY: a live node has there NULL, or a list, which its tag says to be of oids.
        unsafe {
            let list = (*self.as_ptr()).custom_private;
            assert!(list.is_null() || (*list).type_ == pg_sys::NodeTag::T_OidList);
            pgrx::PgList::<pg_sys::Oid>::from_pg(list)
                .iter_oid()
                .collect()
        }
    }
}

impl<'p> Node<'p, pg_sys::ScanState> {
    /// The state of a custom scan that runs.
    ///
    /// # Safety
    /// It was made by [`make_custom_scan`] with a state of this type, has begun, and not for
    /// EXPLAIN alone. Nobody else uses the state in `'p`.
    #[inline]
    pub unsafe fn custom_state<S>(self) -> &'p mut S {
        // SAFETY: a node of ours (caller), whose state lives as long as the query's memory.
        unsafe { &mut *(*self.as_ptr().cast::<WithState<S>>()).state }
    }
}

impl<'p> Node<'p, pg_sys::CustomScanState> {
    /// Its plan.
    pub fn custom_plan(self) -> Node<'p, pg_sys::CustomScan> {
        // SAFETY: a live node's plan is of this type.
        unsafe { Node::enter((*self.as_ptr()).ss.ps.plan.cast()) }
    }

    /// Its state; `None`: it has none.
    ///
    /// # Safety
    /// It was made with a state of this type, which nobody else uses in `'p`.
    #[inline]
    pub unsafe fn state<S>(self) -> Option<&'p mut S> {
        // SAFETY: a node of ours (caller), whose state lives as long as the query's memory.
        unsafe { (*self.as_ptr().cast::<WithState<S>>()).state.as_mut() }
    }

    /// Gives it its state, which is dropped with the query's memory.
    ///
    /// # Safety
    /// It was made with a state of this type.
    pub unsafe fn keep<S>(self, state: S) {
        let mut memory = PgMemoryContexts::For(self.ss().ps().estate().es_query_cxt());
        let state = memory.leak_and_drop_on_delete(state);
        // SAFETY: a node of ours (caller).
        unsafe { (*self.as_ptr().cast::<WithState<S>>()).state = state };
    }

    /// Initializes the node below it, which its plan has.
    pub fn begin_below(
        self,
        estate: Node<'p, pg_sys::EState>,
        flags: c_int,
    ) -> Node<'p, pg_sys::PlanState> {
        let below = self.ss().ps().plan().lefttree();
        let below = below.expect("the plan has a node below");
        // SAFETY: a live node that is being initialized, and its plan's own node below.
        unsafe {
            let state = pg_sys::ExecInitNode(below.as_ptr(), estate.as_ptr(), flags);
            (*self.as_ptr()).ss.ps.lefttree = state;
            Node::enter(state)
        }
    }

    /// The node below it.
    #[inline]
    pub fn below(self) -> Node<'p, pg_sys::PlanState> {
        // SAFETY: a live node over another one, which it has initialized.
        unsafe { Node::enter((*self.as_ptr()).ss.ps.lefttree) }
    }

    /// Has the node below give its rows anew, unless it does so by itself because a parameter of
    /// its has changed.
    pub fn begin_below_anew(self) {
        if !self.below().chgParam() {
            self.below().begin_anew();
        }
    }

    /// Ends the node below it.
    ///
    /// # Safety
    /// Nobody uses that any more.
    pub unsafe fn end_below(self) {
        // SAFETY: the node's own, or NULL.
        unsafe { pg_sys::ExecEndNode((*self.as_ptr()).ss.ps.lefttree) };
    }

    /// Says of the node what holds of the one below: its rows are that one's.
    pub fn give_rows_of(self, below: Node<'p, pg_sys::PlanState>) {
        let mut is_fixed = false;
        // SAFETY: two live nodes that are initialized.
        unsafe {
            let kind = pg_sys::ExecGetResultSlotOps(below.as_ptr(), &raw mut is_fixed);
            let scan = &mut (*self.as_ptr()).ss;
            if scan.ps.ps_ProjInfo.is_null() {
                scan.ps.resultops = kind;
                scan.ps.resultopsfixed = is_fixed;
                scan.ps.resultopsset = true;
            } else {
                // Core has made it for rows in a slot of this node's.
                scan.ps.scanops = kind;
                scan.ps.scanopsfixed = is_fixed;
                scan.ps.scanopsset = true;
                pg_sys::ExecAssignScanProjectionInfoWithVarno(scan, pg_sys::INDEX_VAR as c_int);
            }
        }
    }

    /// Says of the node that it scans what a scan does: WHERE CURRENT OF asks it for its row.
    pub fn stand_for(self, scan: Node<'p, pg_sys::ScanState>) {
        // SAFETY: two live nodes.
        unsafe {
            let node = &mut (*self.as_ptr()).ss;
            node.ss_currentRelation = (*scan.as_ptr()).ss_currentRelation;
            node.ss_ScanTupleSlot = (*scan.as_ptr()).ss_ScanTupleSlot;
        }
    }
}
