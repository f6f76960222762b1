//! Finds the partition of a row, as core's executor does, by its functions that the bindings lack
//! (execPartition.c).
//!
//! It opens and locks each partition when the first row reaches it, and opens its indexes for
//! inserting. Its node is one without a plan, as COPY has it.
use super::nodes;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::T_ModifyTableState;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn ExecSetupPartitionTupleRouting(
        estate: *mut pg_sys::EState,
        root: pg_sys::Relation,
    ) -> *mut pg_sys::PartitionTupleRouting;

    fn ExecFindPartition(
        node: *mut pg_sys::ModifyTableState,
        root: *mut pg_sys::ResultRelInfo,
        routing: *mut pg_sys::PartitionTupleRouting,
        row: *mut pg_sys::TupleTableSlot,
        estate: *mut pg_sys::EState,
    ) -> *mut pg_sys::ResultRelInfo;

    fn ExecCleanupTupleRouting(
        node: *mut pg_sys::ModifyTableState,
        routing: *mut pg_sys::PartitionTupleRouting,
    );
}

/// A routing of its own for rows that are inserted into a partitioned table. It is memory of the
/// query's.
#[derive(Clone, Copy)]
pub struct PartitionRouting {
    node: *mut pg_sys::ModifyTableState,
    routing: *mut pg_sys::PartitionTupleRouting,
    /// For rows that bring more columns than the table has.
    row: *mut pg_sys::TupleTableSlot,
}

impl PartitionRouting {
    /// # Safety
    /// A query that runs, whose target is `root`, a partitioned table that is open.
    pub unsafe fn begin(
        estate: *mut pg_sys::EState,
        root: *mut pg_sys::ResultRelInfo,
    ) -> PartitionRouting {
        // SAFETY: the caller's query and target; all is made in the query's memory.
        unsafe {
            let previous = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
            let node = nodes::make::<pg_sys::ModifyTableState>(T_ModifyTableState);
            (*node).ps.state = estate;
            (*node).operation = pg_sys::CmdType::CMD_INSERT;
            (*node).mt_nrels = 1;
            (*node).resultRelInfo = root;
            (*node).rootResultRelInfo = root;
            let relation = (*root).ri_RelationDesc;
            let shape = (*relation).rd_att;
            let row =
                pg_sys::ExecInitExtraTupleSlot(estate, shape, &raw const pg_sys::TTSOpsVirtual);
            let routing = pg_sys::ffi::pg_guard_ffi_boundary(|| {
                #[allow(ffi_unwind_calls)]
                ExecSetupPartitionTupleRouting(estate, relation)
            });
            pg_sys::MemoryContextSwitchTo(previous);
            PartitionRouting { node, routing, row }
        }
    }

    /// The partition of a row, locked and open, its indexes too. The same one for all its rows.
    /// Raises what core raises for a row without a partition.
    ///
    /// # Safety
    /// The query runs. The row begins with the columns of the partitioned table.
    pub unsafe fn find(&self, row: *mut pg_sys::TupleTableSlot) -> *mut pg_sys::ResultRelInfo {
        // SAFETY: the caller's query and row.
        unsafe {
            let (node, routing) = (self.node, self.routing);
            let (estate, root) = ((*node).ps.state, (*node).rootResultRelInfo);
            let row = self.narrowed(row);
            // Those that this routing opens are not among the query's targets.
            let of_query = (*estate).es_tuple_routing_result_relations;
            (*estate).es_tuple_routing_result_relations = std::ptr::null_mut();
            let found = pg_sys::ffi::pg_guard_ffi_boundary(|| {
                #[allow(ffi_unwind_calls)]
                ExecFindPartition(node, root, routing, row, estate)
            });
            (*estate).es_tuple_routing_result_relations = of_query;
            found
        }
    }

    /// The row without what a plan has behind the table's columns.
    unsafe fn narrowed(&self, row: *mut pg_sys::TupleTableSlot) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: two slots whose first columns are the same (caller).
        unsafe {
            let columns = (*(*self.row).tts_tupleDescriptor).natts;
            if (*(*row).tts_tupleDescriptor).natts == columns {
                return row;
            }
            if i32::from((*row).tts_nvalid) < columns {
                pg_sys::slot_getsomeattrs_int(row, columns);
            }
            let narrow = self.row;
            pg_sys::ExecClearTuple(narrow);
            (*narrow).tts_values = (*row).tts_values;
            (*narrow).tts_isnull = (*row).tts_isnull;
            pg_sys::ExecStoreVirtualTuple(narrow)
        }
    }

    /// Closes what it has opened.
    ///
    /// # Safety
    /// The query ends, and its memory is still there.
    pub unsafe fn end(self) {
        // SAFETY: the caller's query.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                #[allow(ffi_unwind_calls)]
                ExecCleanupTupleRouting(self.node, self.routing);
            });
        }
    }
}
