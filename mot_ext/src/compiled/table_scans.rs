//! Core's scan nodes over a table of the access method, in states that are kept.
//!
//! The node's slot has the row type of the open relation, which ends with the execution: it gets a
//! copy. The table, the index and the scan below the node belong to an execution: Start opens the
//! first two, core begins the scan when the node is first asked for a row, and End gives all back.
use crate::pg::node::{Node, Owned};
use crate::pg::relation::NO_LOCK;
use crate::rows::tuple;
use crate::transaction::relation::LockedRelation;
use crate::{storage, table_am};
use pgrx::pg_sys;

/// A sequential scan or an index scan.
pub struct TableScan {
    node: Owned<pg_sys::PlanState>,
    /// Place in the range table.
    position: pg_sys::Index,
    relation: pg_sys::Oid,
    /// The row type the node was made for.
    row_type: Owned<pg_sys::TupleDescData>,
}

impl TableScan {
    /// Of a scan's node just made, whose relation is open.
    ///
    /// # Safety
    /// The node and the current memory context live as long as the value.
    pub unsafe fn new(node: Node<'_, pg_sys::PlanState>) -> TableScan {
        let scan = node.scan().expect("a scan's state");
        // SAFETY: the caller's. The node's expressions are compiled.
        let (kept, row_type) = unsafe {
            let row_type = scan.keep_row_type();
            (Owned::new(node.as_ptr()), Owned::new(row_type))
        };
        TableScan {
            node: kept,
            position: scan.position(),
            relation: scan.table().expect("its relation is open"),
            row_type,
        }
    }

    fn scan(&self) -> Node<'_, pg_sys::ScanState> {
        self.node.view().scan().expect("a scan's state")
    }

    /// The node, if it scans an index.
    fn of_index(&self) -> Option<Node<'_, pg_sys::IndexScanState>> {
        self.node.view().cast()
    }

    /// Whether the relation, which is locked, is still what the node was made for.
    pub fn fits(&self) -> bool {
        LockedRelation::closed(self.relation).with(|table| {
            storage::is_table(table) && table.description().is_alike(self.row_type.view())
        })
    }

    /// Opens the locked table for an execution, and the index as core does.
    ///
    /// # Safety
    /// The state is the node's own, and closes the table.
    pub unsafe fn open(&self, estate: Node<'_, pg_sys::EState>) {
        // SAFETY: the table is open until `end`, and the state closes it after that. It has a place
        // for the node's table.
        unsafe {
            let opened = pg_sys::table_open(self.relation, NO_LOCK);
            estate.hold(self.position, opened);
            self.scan().set_table(opened);
        }
        if let Some(node) = self.of_index() {
            node.open_index(estate.entry(self.position).rellockmode());
        }
    }

    /// Ends the scan, and closes the index. The table is closed with the others.
    ///
    /// # Safety
    /// In the execution that `open` was called in.
    pub unsafe fn end(&self) {
        // SAFETY: the node's slot, which is of the kind of the access method.
        unsafe { tuple::clear(self.scan().slot().as_ptr()) };
        let scan = self.scan().take_scan();
        if !scan.is_null() {
            // SAFETY: the scan that core began for the node.
            unsafe { table_am::end_scan(scan) };
        }
        if let Some(node) = self.of_index() {
            // SAFETY: `open` has opened it.
            unsafe { node.close_index() };
        }
    }
}
