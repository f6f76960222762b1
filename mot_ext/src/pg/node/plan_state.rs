//! Fields of the states of a plan's nodes.
use super::{Node, NodeType, views};
use crate::pg::relation::NO_LOCK;
use pgrx::pg_sys::{self, Oid};
use std::ptr::null_mut;

// SAFETY: each plan state begins with it, and it with the tag.
unsafe impl NodeType for pg_sys::PlanState {}
// SAFETY: each state of a scan begins with it, and it with the tag.
unsafe impl NodeType for pg_sys::ScanState {}

views! {
    PlanState {
        list subPlan: pg_sys::SubPlanState,
    }
    SeqScanState = T_SeqScanState {
        base ss: pg_sys::ScanState,
    }
    IndexScanState = T_IndexScanState {
        base ss: pg_sys::ScanState,
    }
    SortState = T_SortState {}
    AggState = T_AggState {
        value aggstrategy: pg_sys::AggStrategy::Type,
        value hash_ever_spilled: bool,
    }
    MemoizeState = T_MemoizeState {}
    SubPlanState = T_SubPlanState {
        node subplan: pg_sys::SubPlan,
        node planstate: pg_sys::PlanState,
    }
}

impl<'p> Node<'p, pg_sys::PlanState> {
    /// The same as the state of a scan of core's over a table; `None`: it is none.
    pub fn scan(self) -> Option<Node<'p, pg_sys::ScanState>> {
        match self.cast::<pg_sys::SeqScanState>() {
            Some(scan) => Some(scan.ss()),
            None => self.cast::<pg_sys::IndexScanState>().map(|scan| scan.ss()),
        }
    }

    /// Declares a parameter of the executor changed: the node begins anew when it is asked for a
    /// row.
    ///
    /// # Safety
    /// The current memory context lives as long as the execution.
    pub unsafe fn change_parameter(self, parameter: i32) {
        // SAFETY: a live state; the set is memory of the current context.
        unsafe {
            let state = &mut *self.as_ptr();
            state.chgParam = pg_sys::bms_add_member(state.chgParam, parameter);
        }
    }

    /// Ends it and those below it: they close their files.
    ///
    /// # Safety
    /// No code uses them any more.
    pub unsafe fn end(self) {
        // SAFETY: a live state that was begun.
        unsafe { pg_sys::ExecEndNode(self.as_ptr()) };
    }
}

impl Node<'_, pg_sys::SortState> {
    /// Gives its sort back, if it has one: it sorts anew when it is asked for a row.
    pub fn end_sort(self) {
        // SAFETY: a live state, which alone refers to its sort.
        unsafe {
            let sort = &mut *self.as_ptr();
            if !sort.tuplesortstate.is_null() {
                pg_sys::tuplesort_end(sort.tuplesortstate.cast());
                sort.tuplesortstate = null_mut();
                sort.sort_Done = false;
            }
        }
    }
}

impl<'p> Node<'p, pg_sys::ScanState> {
    /// Gives a node that was just made a copy of its row type, in the current memory context, and
    /// lets go of that of the open relation. The copy.
    ///
    /// # Safety
    /// Its expressions are compiled: nothing but its slot refers to the row type. The current
    /// memory context lives as long as the node.
    pub unsafe fn keep_row_type(self) -> *mut pg_sys::TupleDescData {
        // SAFETY: a live node with its slot.
        unsafe {
            let node = &mut *self.as_ptr();
            let slot = &mut *node.ss_ScanTupleSlot;
            let pinned = slot.tts_tupleDescriptor;
            let row_type = pg_sys::CreateTupleDescCopyConstr(pinned);
            slot.tts_tupleDescriptor = row_type;
            node.ps.scandesc = row_type;
            if (*pinned).tdrefcount >= 0 {
                pg_sys::DecrTupleDescRefCount(pinned);
            }
            row_type
        }
    }

    /// The place of the table in the range table.
    pub fn position(self) -> pg_sys::Index {
        // SAFETY: a live node's plan, which is one of a scan.
        unsafe { (*(*self.as_ptr()).ps.plan.cast::<pg_sys::Scan>()).scanrelid }
    }

    /// Its slot of the table's rows.
    pub fn slot(self) -> Node<'p, pg_sys::TupleTableSlot> {
        // SAFETY: a live node has one.
        unsafe { Node::enter((*self.as_ptr()).ss_ScanTupleSlot) }
    }

    /// The oid of its table; `None`: that is not open.
    pub fn table(self) -> Option<Oid> {
        // SAFETY: a live node has there NULL, or an open relation.
        let table = unsafe { (*self.as_ptr()).ss_currentRelation.as_ref() };
        table.map(|table| table.rd_id)
    }

    /// Has it scan a table.
    ///
    /// # Safety
    /// The table is open until [`Node::take_scan`].
    pub unsafe fn set_table(self, opened: pg_sys::Relation) {
        // SAFETY: a live node.
        unsafe { (*self.as_ptr()).ss_currentRelation = opened };
    }

    /// Takes its table and its scan away; the scan, or NULL.
    pub fn take_scan(self) -> pg_sys::TableScanDesc {
        // SAFETY: a live node.
        unsafe {
            let node = &mut *self.as_ptr();
            node.ss_currentRelation = null_mut();
            std::mem::replace(&mut node.ss_currentScanDesc, null_mut())
        }
    }
}

impl Node<'_, pg_sys::IndexScanState> {
    /// The index.
    pub fn index(self) -> Oid {
        // SAFETY: a live node's plan, which is one of a scan by an index.
        unsafe { (*(*self.as_ptr()).ss.ps.plan.cast::<pg_sys::IndexScan>()).indexid }
    }

    /// Opens the index for an execution.
    pub fn open_index(self, lock: pg_sys::LOCKMODE) {
        // SAFETY: a live node; core raises for what is no index.
        unsafe { (*self.as_ptr()).iss_RelationDesc = pg_sys::index_open(self.index(), lock) };
    }

    /// Ends the scan of the index, and closes it.
    ///
    /// # Safety
    /// The index was opened for this execution.
    pub unsafe fn close_index(self) {
        // SAFETY: a live node with an open index (caller), and a scan of it or NULL.
        unsafe {
            let node = &mut *self.as_ptr();
            let scan = std::mem::replace(&mut node.iss_ScanDesc, null_mut());
            if !scan.is_null() {
                pg_sys::index_endscan(scan);
            }
            let index = std::mem::replace(&mut node.iss_RelationDesc, null_mut());
            pg_sys::index_close(index, NO_LOCK);
        }
    }
}
