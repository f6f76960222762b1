//! Core's scan nodes over a table of the access method, in states that are kept.
//!
//! The node's slot has the row type of the open relation, which ends with the execution: it gets a
//! copy. The table, the index and the scan below the node belong to an execution: Start opens the
//! first two, core begins the scan when the node is first asked for a row, and End gives all back.
use crate::rows::tuple;
use crate::transaction::relation::Relation;
use crate::{storage, table_am};
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

/// A sequential scan or an index scan.
pub struct TableScan {
    node: *mut pg_sys::ScanState,
    /// Place in the range table.
    position: u32,
    relation: pg_sys::Oid,
    /// The row type the node was made for.
    row_type: pg_sys::TupleDesc,
}

impl TableScan {
    /// Of a node just made, whose relation is open. The current context lives as long as the node.
    pub unsafe fn new(node: *mut pg_sys::ScanState) -> TableScan {
        // SAFETY: an initialized scan node (caller). Nothing but the slot refers to the row type
        // once the node's expressions are compiled.
        unsafe {
            let slot = (*node).ss_ScanTupleSlot;
            let pinned = (*slot).tts_tupleDescriptor;
            let row_type = pg_sys::CreateTupleDescCopyConstr(pinned);
            (*slot).tts_tupleDescriptor = row_type;
            (*node).ps.scandesc = row_type;
            if (*pinned).tdrefcount >= 0 {
                pg_sys::DecrTupleDescRefCount(pinned);
            }
            TableScan {
                node,
                position: (*(*node).ps.plan.cast::<pg_sys::Scan>()).scanrelid,
                relation: (*(*node).ss_currentRelation).rd_id,
                row_type,
            }
        }
    }

    /// The node, if it scans an index.
    unsafe fn of_index(&self) -> Option<*mut pg_sys::IndexScanState> {
        // SAFETY: a scan node, cast by tag.
        unsafe { ((*self.node).ps.type_ == T_IndexScanState).then(|| self.node.cast()) }
    }

    /// Whether the relation, which is locked, is still what the node was made for.
    pub unsafe fn fits(&self) -> bool {
        // SAFETY: the caller's lock.
        unsafe {
            Relation::closed(self.relation).with(|opened| {
                storage::is_table(opened)
                    && pg_sys::equalTupleDescs((*opened).rd_att, self.row_type)
            })
        }
    }

    /// Opens the locked table for an execution, and the index as core does.
    pub unsafe fn open(&self, estate: *mut pg_sys::EState) {
        // SAFETY: the tree's executor state, whose array has a place for each relation.
        unsafe {
            let opened = pg_sys::table_open(self.relation, pg_sys::NoLock as pg_sys::LOCKMODE);
            *(*estate).es_relations.add(self.position as usize - 1) = opened;
            (*self.node).ss_currentRelation = opened;
            if let Some(node) = self.of_index() {
                let index = (*(*node).ss.ps.plan.cast::<pg_sys::IndexScan>()).indexid;
                let entry = pg_sys::rt_fetch(self.position, (*estate).es_range_table);
                (*node).iss_RelationDesc = pg_sys::index_open(index, (*entry).rellockmode);
            }
        }
    }

    /// Ends the scan, and closes the index. The table is closed with the others.
    pub unsafe fn end(&self) {
        // SAFETY: what `open` and core opened for this execution.
        unsafe {
            tuple::clear((*self.node).ss_ScanTupleSlot);
            let scan =
                std::mem::replace(&mut (*self.node).ss_currentScanDesc, std::ptr::null_mut());
            if !scan.is_null() {
                table_am::end_scan(scan);
            }
            if let Some(node) = self.of_index() {
                let scan = std::mem::replace(&mut (*node).iss_ScanDesc, std::ptr::null_mut());
                if !scan.is_null() {
                    pg_sys::index_endscan(scan);
                }
                let index = std::mem::replace(&mut (*node).iss_RelationDesc, std::ptr::null_mut());
                pg_sys::index_close(index, pg_sys::NoLock as pg_sys::LOCKMODE);
            }
            (*self.node).ss_currentRelation = std::ptr::null_mut();
        }
    }
}
