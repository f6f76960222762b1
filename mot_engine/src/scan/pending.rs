//! Rows whose entries were read and that are not looked up yet.
//!
//! Their anchors are kept with them: those live as long as the table, and are prefetched, looked
//! at for the version, and read, each some rows later.

use crate::errors::EngineError;
use crate::ids::RowId;
use crate::index::{only_row_id, row_ids_of};
use crate::row::{self, Anchor};
use crate::table::TableRef;

/// How many rows ahead an anchor is prefetched: about what one memory access costs in rows.
const AHEAD_ANCHOR: usize = 16;
/// How many rows ahead a version is prefetched, its anchor having arrived.
pub(super) const AHEAD_VERSION: usize = 8;

/// A row behind an entry.
#[derive(Copy, Clone)]
pub(super) struct PendingRow {
    /// The number of the entry's key.
    pub(super) key: u32,
    pub(super) row_id: RowId,
    pub(super) anchor: &'static Anchor,
}

/// Rows to be looked up.
#[derive(Default)]
pub(super) struct Pending {
    /// The next one last.
    rows: Vec<PendingRow>,
}

impl Pending {
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Takes all rows, in their order.
    pub(super) fn take_row_ids(&mut self, row_ids: &mut Vec<RowId>) -> Result<(), EngineError> {
        row_ids
            .try_reserve(self.rows.len())
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        row_ids.extend(self.rows.drain(..).rev().map(|pending| pending.row_id));
        Ok(())
    }

    /// Takes an entry's row ids out of its value, while its posting block is protected. They come
    /// before all that are there.
    #[inline]
    pub(super) fn push(
        &mut self,
        table: TableRef,
        value: u64,
        key: u32,
    ) -> Result<(), EngineError> {
        match only_row_id(value) {
            Some(row_id) => self.push_row(table, row_id, key),
            None => self.push_all(table, value, key),
        }
    }

    #[inline(always)]
    fn push_row(&mut self, table: TableRef, row_id: RowId, key: u32) -> Result<(), EngineError> {
        // Without an anchor there is no row.
        if let Some(anchor) = table.anchor(row_id) {
            self.rows
                .try_reserve(1)
                .map_err(|_| EngineError::OutOfProcessMemory)?;
            self.rows.push(PendingRow {
                key,
                row_id,
                anchor,
            });
        }
        Ok(())
    }

    #[cold]
    fn push_all(&mut self, table: TableRef, value: u64, key: u32) -> Result<(), EngineError> {
        let first = self.rows.len();
        let mut pushed = Ok(());
        row_ids_of(value, |row_id| {
            if pushed.is_ok() {
                pushed = self.push_row(table, row_id, key);
            }
        });
        // In the order of the block, as in the rest.
        self.rows[first..].reverse();
        pushed
    }

    /// The next row.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<PendingRow> {
        self.rows.pop()
    }

    /// Puts back what was just taken.
    pub(super) fn push_back(&mut self, pending: PendingRow) {
        self.rows.push(pending);
    }

    /// Prefetches the next row's anchor.
    #[inline]
    pub(super) fn prefetch_next(&self) {
        if let Some(pending) = self.rows.last() {
            row::prefetch_anchor(pending.anchor);
        }
    }

    /// Prefetches the anchor of a later row, and the version of a nearer one.
    #[inline]
    pub(super) fn prefetch_window(&self) {
        let ahead = |by: usize| self.rows.get(self.rows.len().wrapping_sub(by));
        if let Some(pending) = ahead(AHEAD_ANCHOR) {
            row::prefetch_anchor(pending.anchor);
        }
        if let Some(pending) = ahead(AHEAD_VERSION) {
            row::prefetch_version(pending.anchor);
        }
    }

    /// Prefetches the first rows, if there are several.
    pub(super) fn prefetch_first(&self) {
        if self.rows.len() < 2 {
            return;
        }
        for pending in self.rows.iter().rev().take(AHEAD_ANCHOR) {
            row::prefetch_anchor(pending.anchor);
        }
        for pending in self.rows.iter().rev().take(AHEAD_VERSION) {
            row::prefetch_version(pending.anchor);
        }
    }
}
