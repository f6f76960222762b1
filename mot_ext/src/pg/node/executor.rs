//! Fields of the executor's structures: queries, states, contexts, slots and receivers.
use super::{Node, views};
use crate::pg::list;
use crate::pg::snapshot::Snapshot;
use pgrx::pg_sys::{self, CommandDest, Oid};
use std::ptr::null_mut;

views! {
    QueryDesc {
        value operation: pg_sys::CmdType::Type,
        node plannedstmt: pg_sys::PlannedStmt,
        has crosscheck_snapshot,
        node dest: pg_sys::DestReceiver,
        value params: pg_sys::ParamListInfo,
        value instrument_options: i32,
        value tupDesc: pg_sys::TupleDesc,
        node estate: pg_sys::EState,
        node planstate: pg_sys::PlanState,
        set already_executed / set_executed: bool,
        has totaltime,
    }
    DestReceiver {
        value mydest: CommandDest::Type,
    }
    EState = T_EState {
        cell es_processed / set_processed: u64,
        cell es_output_cid / set_command: pg_sys::CommandId,
        set es_direction / set_direction: pg_sys::ScanDirection::Type,
        value es_snapshot: pg_sys::Snapshot,
        value es_query_cxt: pg_sys::MemoryContext,
        list es_range_table: pg_sys::RangeTblEntry,
        list es_tupleTable: pg_sys::TupleTableSlot,
        list es_subplanstates: pg_sys::PlanState,
        list es_opened_result_relations: pg_sys::ResultRelInfo,
        has es_trig_target_relations,
        node es_per_tuple_exprcontext: pg_sys::ExprContext,
    }
    ExprContext = T_ExprContext {
        value ecxt_per_tuple_memory: pg_sys::MemoryContext,
    }
    TupleTableSlot {
        set tts_tableOid / set_table: Oid,
        value tts_tid: pg_sys::ItemPointerData,
        node tts_tupleDescriptor: pg_sys::TupleDescData,
    }
}

impl<'p> Node<'p, pg_sys::QueryDesc> {
    /// Its plan.
    #[inline]
    pub fn plan(self) -> Node<'p, pg_sys::PlannedStmt> {
        self.plannedstmt().expect("a query has its plan")
    }

    /// The snapshot, which stays registered as long as it runs.
    #[inline]
    pub fn snapshot(self) -> Snapshot<'p> {
        // SAFETY: a query that begins or runs has its snapshot.
        let snapshot = unsafe { Snapshot::enter_if_any((*self.as_ptr()).snapshot) };
        snapshot.expect("a query that begins has its snapshot")
    }

    /// What its rows go to.
    #[inline]
    pub fn receiver(self) -> Node<'p, pg_sys::DestReceiver> {
        self.dest().expect("a query has a receiver")
    }

    /// Gives it the executor state of an execution, its plan state, and the type of its rows.
    ///
    /// # Safety
    /// All live until [`Node::take_back`], or until the query is gone. The plan state may be NULL.
    #[inline]
    pub unsafe fn give(
        self,
        estate: Node<'_, pg_sys::EState>,
        root: *mut pg_sys::PlanState,
        rows: Node<'_, pg_sys::TupleDescData>,
    ) {
        // SAFETY: a live query.
        unsafe {
            (*self.as_ptr()).tupDesc = rows.as_ptr();
            (*self.as_ptr()).estate = estate.as_ptr();
            (*self.as_ptr()).planstate = root;
        }
    }

    /// Takes them back.
    #[inline]
    pub fn take_back(self) {
        // SAFETY: a live query.
        unsafe {
            (*self.as_ptr()).tupDesc = null_mut();
            (*self.as_ptr()).estate = null_mut();
            (*self.as_ptr()).planstate = null_mut();
        }
    }

    /// A run begins, which is timed if its caller wants that.
    #[inline]
    pub fn start_timing(self) {
        // SAFETY: a live query has there NULL, or what times it.
        unsafe {
            let timing = (*self.as_ptr()).totaltime;
            if !timing.is_null() {
                pg_sys::InstrStartNode(timing);
            }
        }
    }

    /// The run ends, after so many rows.
    #[inline]
    pub fn stop_timing(self, rows: u64) {
        // SAFETY: as in `start_timing`.
        unsafe {
            let timing = (*self.as_ptr()).totaltime;
            if !timing.is_null() {
                pg_sys::InstrStopNode(timing, rows as f64);
            }
        }
    }

    /// Lets no code find what times it.
    pub fn forget_timing(self) {
        // SAFETY: a live query.
        unsafe { (*self.as_ptr()).totaltime = null_mut() };
    }

    /// Frees what times it.
    pub fn free_timing(self) {
        // SAFETY: a live query has there NULL, or memory that it alone refers to.
        unsafe {
            let timing = (*self.as_ptr()).totaltime;
            self.forget_timing();
            if !timing.is_null() {
                pg_sys::pfree(timing.cast());
            }
        }
    }
}

#[allow(ffi_unwind_calls)]
impl Node<'_, pg_sys::DestReceiver> {
    /// Begins, with rows of a type. May raise.
    ///
    /// # Safety
    /// A receiver of a running query, which was not begun.
    pub unsafe fn start_up(self, operation: pg_sys::CmdType::Type, rows: pg_sys::TupleDesc) {
        let receiver = self.as_ptr();
        // SAFETY: one guarded call of the receiver's own function.
        unsafe {
            let start = (*receiver).rStartup.expect("a receiver's function");
            pg_sys::ffi::pg_guard_ffi_boundary(|| start(receiver, operation as i32, rows));
        }
    }

    /// Hands a row over; false: no more is wanted. May raise.
    ///
    /// # Safety
    /// Between startup and shutdown; a filled slot of its row type.
    #[inline]
    pub unsafe fn receive(self, row: Node<'_, pg_sys::TupleTableSlot>) -> bool {
        let (receiver, row) = (self.as_ptr(), row.as_ptr());
        // SAFETY: one guarded call of the receiver's own function.
        unsafe {
            let receive = (*receiver).receiveSlot.expect("a receiver's function");
            pg_sys::ffi::pg_guard_ffi_boundary(|| receive(row, receiver))
        }
    }

    /// Ends. May raise.
    ///
    /// # Safety
    /// It was begun.
    pub unsafe fn shut_down(self) {
        let receiver = self.as_ptr();
        // SAFETY: one guarded call of the receiver's own function.
        unsafe {
            let shut = (*receiver).rShutdown.expect("a receiver's function");
            pg_sys::ffi::pg_guard_ffi_boundary(|| shut(receiver));
        }
    }
}

impl<'p> Node<'p, pg_sys::EState> {
    /// An entry of the plan's range table, from 1.
    pub fn entry(self, position: pg_sys::Index) -> Node<'p, pg_sys::RangeTblEntry> {
        let place = (position as usize).checked_sub(1);
        let entry = place.and_then(|place| self.es_range_table().get(place));
        entry.expect("a plan's relation has an entry")
    }
}

impl Node<'_, pg_sys::EState> {
    /// Has it read what the execution of a query reads.
    ///
    /// # Safety
    /// The query lives as long as the execution. No code reads these fields after that.
    #[inline]
    pub unsafe fn begin(self, query: Node<'_, pg_sys::QueryDesc>) {
        // SAFETY: a live state and query.
        unsafe {
            let (state, query) = (&mut *self.as_ptr(), &*query.as_ptr());
            state.es_sourceText = query.sourceText;
            state.es_queryEnv = query.queryEnv;
            // The query has it registered.
            state.es_snapshot = query.snapshot;
            state.es_param_list_info = query.params;
        }
    }

    /// The same of a query without plan states, whose plan core's functions look into.
    ///
    /// # Safety
    /// As for [`Node::begin`].
    #[inline]
    pub unsafe fn begin_alone(self, query: Node<'_, pg_sys::QueryDesc>) {
        let (plan, entries) = (query.plan(), query.plan().rtable());
        // SAFETY: a live state, query and plan.
        unsafe {
            self.begin(query);
            let state = &mut *self.as_ptr();
            state.es_plannedstmt = plan.as_ptr();
            state.es_range_table = entries.as_ptr();
            state.es_range_table_size = entries.len() as u32;
        }
    }

    /// Forgets the contexts of expressions that core's functions made in an execution's memory.
    #[inline]
    pub fn forget_contexts(self) {
        // SAFETY: a live state.
        unsafe {
            (*self.as_ptr()).es_per_tuple_exprcontext = null_mut();
            (*self.as_ptr()).es_exprcontexts = null_mut();
        }
    }

    /// Gives all contexts of its expressions the parameters of the execution.
    pub fn share_parameters(self) {
        // SAFETY: a live state, whose list has contexts.
        unsafe {
            let parameters = (*self.as_ptr()).es_param_list_info;
            let contexts = list::cells::<pg_sys::ExprContext>((*self.as_ptr()).es_exprcontexts);
            for context in contexts {
                (**context).ecxt_param_list_info = parameters;
            }
        }
    }

    /// The execution has not come to its end.
    pub fn reopen(self) {
        // SAFETY: a live state.
        unsafe { (*self.as_ptr()).es_finished = false };
    }

    /// Has it hold an open relation, at a place of the range table, from 1.
    ///
    /// # Safety
    /// The range table has the place. The relation is open until the state closes it.
    pub unsafe fn hold(self, position: pg_sys::Index, opened: pg_sys::Relation) {
        // SAFETY: the array has a place for each relation.
        unsafe { *(*self.as_ptr()).es_relations.add(position as usize - 1) = opened };
    }

    /// Closes the relations that it holds, and forgets its snapshot.
    ///
    /// # Safety
    /// No node below it uses one any more.
    pub unsafe fn close_relations(self) {
        // SAFETY: relations that were opened for this execution; an array with its length.
        unsafe {
            pg_sys::ExecCloseRangeTableRelations(self.as_ptr());
            let state = &mut *self.as_ptr();
            state
                .es_relations
                .write_bytes(0, state.es_range_table_size as usize);
            state.es_snapshot = null_mut();
        }
    }

    /// Adds a table to those that are written to, in the current memory context.
    ///
    /// # Safety
    /// What core's functions ask about the table, and that context, live until
    /// [`Node::forget_trigger_targets`].
    pub unsafe fn add_target(self, info: *mut pg_sys::ResultRelInfo) {
        // SAFETY: a live state (and the caller's structure).
        unsafe {
            let opened = (*self.as_ptr()).es_opened_result_relations;
            (*self.as_ptr()).es_opened_result_relations = pg_sys::lappend(opened, info.cast());
        }
    }

    /// Gives back what core's functions on triggers have opened for an execution.
    ///
    /// # Safety
    /// No code uses it any more.
    pub unsafe fn close_trigger_targets(self) {
        let has_opened =
            !self.es_opened_result_relations().is_empty() || self.es_trig_target_relations();
        // SAFETY: a live state, and slots of its own.
        unsafe {
            if has_opened {
                pg_sys::ExecCloseResultRelations(self.as_ptr());
            }
            if !self.es_tupleTable().is_empty() {
                pg_sys::ExecResetTupleTable((*self.as_ptr()).es_tupleTable, false);
            }
        }
    }

    /// Forgets them, where they are closed.
    #[inline]
    pub fn forget_trigger_targets(self) {
        // SAFETY: a live state.
        unsafe {
            (*self.as_ptr()).es_opened_result_relations = null_mut();
            (*self.as_ptr()).es_trig_target_relations = null_mut();
            (*self.as_ptr()).es_tupleTable = null_mut();
        }
    }
}

impl<'p> Node<'p, pg_sys::ExprContext> {
    /// Shows expressions the row that they are over.
    #[inline]
    pub fn show(self, row: Node<'p, pg_sys::TupleTableSlot>) {
        // SAFETY: a live context, and a slot that lives as long.
        unsafe { (*self.as_ptr()).ecxt_scantuple = row.as_ptr() };
    }

    /// Shows expressions a row that was to be inserted.
    #[inline]
    pub fn show_inserted(self, row: Node<'p, pg_sys::TupleTableSlot>) {
        // SAFETY: as above.
        unsafe { (*self.as_ptr()).ecxt_innertuple = row.as_ptr() };
    }

    /// Gives expressions the parameters of a query.
    ///
    /// # Safety
    /// They live as long as expressions are evaluated, or are NULL.
    #[inline]
    pub unsafe fn set_parameters(self, parameters: pg_sys::ParamListInfo) {
        // SAFETY: a live context.
        unsafe { (*self.as_ptr()).ecxt_param_list_info = parameters };
    }

    /// Puts values into its parameters, one after the other; false: one is NULL.
    ///
    /// # Safety
    /// It has a list of at least so many parameters.
    #[inline]
    pub unsafe fn fill_parameters(
        self,
        mut values: impl Iterator<Item = Option<pg_sys::Datum>>,
    ) -> bool {
        // SAFETY: a live context with its list (caller).
        let first = unsafe { (*(*self.as_ptr()).ecxt_param_list_info).params.as_mut_ptr() };
        let mut at = 0;
        values.all(|value| {
            let Some(value) = value else {
                return false;
            };
            // SAFETY: the list has the parameter (caller).
            unsafe { (*first.add(at)).value = value };
            at += 1;
            true
        })
    }
}

impl<'p> Node<'p, pg_sys::TupleTableSlot> {
    /// The type of its rows.
    #[inline]
    pub fn row_type(self) -> Node<'p, pg_sys::TupleDescData> {
        // SAFETY: an initialized slot has a row type.
        unsafe { Node::enter((*self.as_ptr()).tts_tupleDescriptor) }
    }

    /// Fills a virtual slot with values, as `ExecStoreVirtualTuple` does, and gives their places.
    ///
    /// # Safety
    /// A virtual slot, which owns nothing, and values of its row type. Nobody else reads or changes
    /// them for `'a`.
    #[inline]
    pub unsafe fn fill<'a>(
        self,
        (values, nulls): (&[pg_sys::Datum], &[bool]),
    ) -> (&'a mut [pg_sys::Datum], &'a mut [bool]) {
        // SAFETY: a slot with a row type has arrays with a place for each column.
        unsafe {
            let slot = &mut *self.as_ptr();
            let count = (*slot.tts_tupleDescriptor).natts as usize;
            let own_values = std::slice::from_raw_parts_mut(slot.tts_values, count);
            let own_nulls = std::slice::from_raw_parts_mut(slot.tts_isnull, count);
            own_values.copy_from_slice(values);
            own_nulls.copy_from_slice(nulls);
            slot.tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
            slot.tts_nvalid = count as i16;
            (own_values, own_nulls)
        }
    }

    /// Its values, and which of them are NULL, one for each column.
    ///
    /// # Safety
    /// It was made with its row type, is filled, and taken apart as far as they are read. It stays
    /// so for `'a`.
    #[inline]
    pub unsafe fn columns<'a>(self) -> (&'a [pg_sys::Datum], &'a [bool]) {
        // SAFETY: a slot that is made with a row type has arrays of zeros, with a place for each
        // column (`MakeTupleTableSlot`).
        unsafe {
            let slot = &*self.as_ptr();
            let count = (*slot.tts_tupleDescriptor).natts as usize;
            (
                std::slice::from_raw_parts(slot.tts_values, count),
                std::slice::from_raw_parts(slot.tts_isnull, count),
            )
        }
    }
}
