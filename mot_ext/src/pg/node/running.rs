//! Fields of nodes that core's executor runs, and what they are asked and told.
//!
//! A view of a state is one that is initialized, and is not ended while the view is used.
use super::{Any, List, Node, views};
use crate::pg::relation::Relation;
use pgrx::pg_sys;
use std::ptr::null_mut;

views! {
    EState {
        value es_direction: pg_sys::ScanDirection::Type,
        has es_epq_active,
        list es_auxmodifytables: pg_sys::ModifyTableState,
    }
    PlanState {
        node lefttree: pg_sys::PlanState,
        node qual: pg_sys::ExprState,
        has chgParam,
        node ps_ProjInfo: pg_sys::ProjectionInfo,
    }
    ScanState {
        base ps: pg_sys::PlanState,
    }
    BitmapHeapScanState = T_BitmapHeapScanState {
        base ss: pg_sys::ScanState,
    }
    ModifyTableState = T_ModifyTableState {
        base ps: pg_sys::PlanState,
        node resultRelInfo: pg_sys::ResultRelInfo,
    }
    ResultRelInfo {
        has ri_IndexRelationDescs,
    }
}

impl<'p> Node<'p, pg_sys::QueryDesc> {
    /// The nodes of a started query that change tables.
    pub fn changes(self) -> Vec<Node<'p, pg_sys::ModifyTableState>> {
        let top = self.planstate().and_then(Node::cast);
        let parts = self.estate().map(Node::es_auxmodifytables);
        parts.into_iter().flatten().chain(top).collect()
    }
}

impl<'p> Node<'p, pg_sys::ExprContext> {
    /// Empties the memory for one row.
    ///
    /// # Safety
    /// Nobody uses what is in it.
    #[inline]
    pub unsafe fn empty(self) {
        // SAFETY: a live context's own memory.
        unsafe { pg_sys::MemoryContextReset(self.ecxt_per_tuple_memory()) };
    }
}

impl Node<'_, pg_sys::TupleTableSlot> {
    /// Whether it shows no row.
    #[inline]
    pub fn is_empty(self) -> bool {
        // SAFETY: a live slot.
        unsafe { (*self.as_ptr()).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 }
    }

    /// Whether it is a virtual one that owns no memory.
    #[inline]
    pub fn is_virtual_of_nothing(self) -> bool {
        // SAFETY: a live slot.
        let slot = unsafe { &*self.as_ptr() };
        std::ptr::eq(slot.tts_ops, &raw const pg_sys::TTSOpsVirtual)
            && slot.tts_flags & pg_sys::TTS_FLAG_SHOULDFREE as u16 == 0
    }

    /// Empties it by hand, as its kind does it that is virtual and owns no memory.
    #[inline]
    pub fn empty(self) {
        debug_assert!(self.is_virtual_of_nothing());
        // SAFETY: a live slot, to which nobody holds a reference.
        let slot = unsafe { &mut *self.as_ptr() };
        slot.tts_nvalid = 0;
        slot.tts_flags |= pg_sys::TTS_FLAG_EMPTY as u16;
        slot.tts_tid.ip_posid = 0;
    }

    /// Gives an empty virtual slot a row.
    ///
    /// # Safety
    /// There is a value for each column, of its type; `None`: NULL.
    pub unsafe fn give_row(self, values: impl Iterator<Item = Option<pg_sys::Datum>>) {
        // SAFETY: a live slot has a place for each column (caller).
        unsafe {
            let slot = self.as_ptr();
            for (at, value) in values.enumerate() {
                *(*slot).tts_values.add(at) = value.unwrap_or(pg_sys::Datum::from(0));
                *(*slot).tts_isnull.add(at) = value.is_none();
            }
            pg_sys::ExecStoreVirtualTuple(slot);
        }
    }

    /// The value of a column, from 1, of the row that it shows; `None`: NULL.
    ///
    /// # Safety
    /// It shows a row whose type has the column.
    #[inline]
    pub unsafe fn column(self, number: i32) -> Option<pg_sys::Datum> {
        // SAFETY: a slot with a row (caller), which is taken apart as far as it is read.
        unsafe {
            let slot = self.as_ptr();
            if i32::from((*slot).tts_nvalid) < number {
                pg_sys::slot_getsomeattrs_int(slot, number);
            }
            let at = number as usize - 1;
            (!*(*slot).tts_isnull.add(at)).then(|| *(*slot).tts_values.add(at))
        }
    }
}

/// The function by which core asks a node for a row.
pub type Run = unsafe extern "C-unwind" fn(*mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot;

impl<'p> Node<'p, pg_sys::PlanState> {
    /// The function by which core asks it for a row, without what EXPLAIN measures.
    pub fn function(self) -> Run {
        // SAFETY: a live state.
        let function = unsafe { (*self.as_ptr()).ExecProcNodeReal };
        function.expect("every node has a function")
    }

    /// Gives it another function.
    ///
    /// # Safety
    /// The function takes this node, and gives rows of its type.
    pub unsafe fn set_function(self, function: Run) {
        // SAFETY: a live state, and the caller's function.
        unsafe { pg_sys::ExecSetExecProcNode(self.as_ptr(), Some(function)) };
    }

    /// Its plan.
    #[inline]
    pub fn plan(self) -> Node<'p, pg_sys::Plan> {
        // SAFETY: a live state of the executor's has its plan.
        unsafe { Node::enter((*self.as_ptr()).plan) }
    }

    /// The state of its execution.
    #[inline]
    pub fn estate(self) -> Node<'p, pg_sys::EState> {
        // SAFETY: a live state has it.
        unsafe { Node::enter((*self.as_ptr()).state) }
    }

    /// The context of its expressions.
    #[inline]
    pub fn context(self) -> Node<'p, pg_sys::ExprContext> {
        // SAFETY: an initialized state that evaluates expressions has it.
        unsafe { Node::enter((*self.as_ptr()).ps_ExprContext) }
    }

    /// Takes the conditions away; from now on core evaluates none.
    pub fn take_conditions(self) -> *mut pg_sys::ExprState {
        // SAFETY: a live state, to which nobody holds a reference.
        unsafe { std::mem::replace(&mut (*self.as_ptr()).qual, null_mut()) }
    }

    /// Compiles an expression of its plan; NULL for none.
    pub fn compiled(self, expression: Option<Any<'_>>) -> *mut pg_sys::ExprState {
        let expression = expression.map_or(null_mut(), Any::as_ptr);
        // SAFETY: a live state that is being initialized, and an expression of its plan.
        unsafe { pg_sys::ExecInitExpr(expression.cast(), self.as_ptr()) }
    }

    /// Has it give its rows anew.
    pub fn begin_anew(self) {
        // SAFETY: a live state that is initialized.
        unsafe { pg_sys::ExecReScan(self.as_ptr()) };
    }

    /// Has it give its rows anew if a parameter of its has another value, as core does before it
    /// asks a node for a row.
    #[inline]
    pub fn begin_anew_if_changed(self) {
        if self.chgParam() {
            self.begin_anew();
        }
    }

    /// Counts rows that conditions have dropped, where EXPLAIN looks for them.
    #[inline]
    pub fn count_dropped(self, rows: u64) {
        // SAFETY: a live state has there NULL, or counters.
        unsafe {
            if let Some(counters) = (*self.as_ptr()).instrument.as_mut() {
                counters.nfiltered1 += rows as f64;
            }
        }
    }

    /// A run of it begins, for EXPLAIN.
    pub fn start_timing(self) {
        // SAFETY: a live state has there NULL, or what times it.
        unsafe {
            let timing = (*self.as_ptr()).instrument;
            if !timing.is_null() {
                pg_sys::InstrStartNode(timing);
            }
        }
    }

    /// The run ends, after so many rows.
    pub fn stop_timing(self, rows: u64) {
        // SAFETY: as in `start_timing`.
        unsafe {
            let timing = (*self.as_ptr()).instrument;
            if !timing.is_null() {
                pg_sys::InstrStopNode(timing, rows as f64);
            }
        }
    }
}

impl<'p> Node<'p, pg_sys::ScanState> {
    /// The plan of the scan.
    pub fn plan(self) -> Node<'p, pg_sys::Plan> {
        self.ps().plan()
    }

    /// The table, which is open.
    #[inline]
    pub fn relation(self) -> Relation<'p> {
        // SAFETY: a live node of a table's scan keeps it open.
        unsafe { Relation::enter((*self.as_ptr()).ss_currentRelation) }
    }

    /// Has core's part of the node begin anew.
    pub fn begin_anew(self) {
        // SAFETY: a live node that is initialized.
        unsafe { pg_sys::ExecScanReScan(self.as_ptr()) };
    }
}

impl<'p> Node<'p, pg_sys::ModifyTableState> {
    /// What it does about conflicts.
    pub fn on_conflict(self) -> pg_sys::OnConflictAction::Type {
        // SAFETY: a live node's plan is of this type.
        unsafe { (*(*self.as_ptr()).ps.plan.cast::<pg_sys::ModifyTable>()).onConflictAction }
    }

    /// Its first target.
    pub fn target(self) -> Node<'p, pg_sys::ResultRelInfo> {
        self.resultRelInfo().expect("it has a target")
    }
}

impl<'p> Node<'p, pg_sys::ResultRelInfo> {
    /// The table, which is open.
    pub fn relation(self) -> Relation<'p> {
        // SAFETY: a live target keeps it open.
        unsafe { Relation::enter((*self.as_ptr()).ri_RelationDesc) }
    }
}

impl<'p> List<'p, pg_sys::ModifyTableState> {
    /// Whether a node is in the list.
    pub fn has(self, node: *mut pg_sys::PlanState) -> bool {
        self.iter()
            .any(|other| std::ptr::eq(other.as_ptr().cast(), node))
    }
}
