//! Prefetches the rows of a large transaction before its end reaches them.
//!
//! Rows that the transaction wrote thousands of rows ago are in no near cache any more, and its end
//! walks over all of them: to log, to mark what was logged, to set COMMITTED. Each row has three
//! cache misses, of which two depend on one another: anchor, own state, the state below. So the end
//! prefetches anchor and state of a row farther on, and the state below of a nearer one.
//!
//! Prefetches are hints: nothing is believed or kept. The address that an operation has for its
//! state is prefetched without being followed. What is followed hangs from the row's head, so the
//! caller is pinned, or owns the row's states (`Changed`).

use super::Operation;
use super::log::Changed;
use crate::row;
use crate::table::TableRef;

/// Rows between the one worked at and the one whose anchor and state are prefetched. In tests so
/// few that transactions of three rows go all ways.
const FAR: usize = if cfg!(test) { 2 } else { 16 };
/// Rows between the one worked at and the one whose state below is prefetched.
const NEAR: usize = if cfg!(test) { 1 } else { 8 };
/// The rows of shorter lists lie in caches that are as near as what is prefetched would come.
const ROWS_WORTH_PREFETCHING: usize = if cfg!(test) { 2 } else { 1024 };

/// The rows that the caller goes through, of which the next ones are prefetched.
#[derive(Copy, Clone)]
pub(super) struct PrefetchWindow<'a, T>(&'a [T]);

impl<'a, T> PrefetchWindow<'a, T> {
    pub(super) fn of(rows: &'a [T]) -> PrefetchWindow<'a, T> {
        if rows.len() < ROWS_WORTH_PREFETCHING {
            PrefetchWindow(&[])
        } else {
            PrefetchWindow(rows)
        }
    }
}

impl PrefetchWindow<'_, Operation> {
    /// Before the operation at this position is examined, of those in some tables. The caller is
    /// pinned.
    #[inline]
    pub(super) fn prefetch(self, position: usize, is_meant: impl Fn(TableRef) -> bool) {
        self.prefetch_two(position + FAR, position + NEAR, is_meant);
    }

    /// As `prefetch`, for a caller that goes through the list from its end.
    #[inline]
    pub(super) fn prefetch_backward(self, position: usize) {
        // Before the begin there is nothing, as there is behind the end.
        self.prefetch_two(
            position.wrapping_sub(FAR),
            position.wrapping_sub(NEAR),
            |_| true,
        );
    }

    #[inline]
    fn prefetch_two(self, far: usize, near: usize, is_meant: impl Fn(TableRef) -> bool) {
        if self.0.is_empty() {
            // Nearly every transaction's.
            return;
        }
        if let Some(far) = self.row(far, &is_meant) {
            row::prefetch_at(far.address());
            if let Some(anchor) = far.table.anchor(far.row_id()) {
                row::prefetch_anchor(anchor);
            }
        }
        if let Some(near) = self.row(near, &is_meant)
            && let Some(anchor) = near.table.anchor(near.row_id())
        {
            row::prefetch_below(anchor);
        }
    }

    #[inline]
    fn row(&self, position: usize, is_meant: impl Fn(TableRef) -> bool) -> Option<&Operation> {
        let operation = self.0.get(position)?;
        (operation.kind().is_data() && is_meant(operation.table)).then_some(operation)
    }
}

impl PrefetchWindow<'_, Changed> {
    /// Before a row is logged: its state and the one below, with their columns.
    #[inline]
    pub(super) fn prefetch_states(self, position: usize) {
        if let Some(far) = self.0.get(position + FAR) {
            row::prefetch_state(far.version);
        }
        if let Some(near) = self.0.get(position + NEAR)
            && let Some(below) = near.version.next()
        {
            row::prefetch_state(below);
        }
    }

    /// Before what was logged of a row is noted on it.
    #[inline]
    pub(super) fn prefetch_marks(self, position: usize) {
        if let Some(far) = self.0.get(position + FAR) {
            row::prefetch_anchor(far.anchor);
            row::prefetch_at(far.version.address());
        }
    }
}
