//! Prunes what this session's earlier commits have left: rows with a state below that a snapshot
//! may still see.
//!
//! The sweeper reaches them late, in a process of its own, when they are in no cache. What it
//! frees goes through shared lists. But a session that wrote to a table will soon do so again, as a
//! rule. So its commits prune what the earlier ones left, as soon as the horizon has passed those.
//! Then chain and blocks are still in its cache, and it reuses the blocks itself.
//!
//! - Only a commit that left something in the same table does this, before any table is dropped for
//!   good. Until then its lock keeps the table, and keeps away index builds and checks, which need
//!   entries to stay (`reclaim/README.md`, `Quiet`).
//! - Nothing depends on it. The row's dirty bit is set as well, so the sweeper finds what is
//!   forgotten here: rows of too many tables, too many rows, rows of a process that ends. A row
//!   that was pruned here has QUIESCENT, and the sweeper skips it.
//! - A row id may be another row's by now. So only what hints and horizon allow is removed, as in
//!   every pruning.
//! - It prunes few rows at a time, because it delays a commit's end.

use crate::ids::{RowId, TableId, Xid};
use crate::table::TableRef;
use std::collections::VecDeque;

/// Tables with pending prunes that are known.
const TABLES_MAX: usize = 8;
/// Rows known of each.
const ROWS_MAX: usize = 512;
/// Rows looked after in one commit: a few more than most transactions change.
const ROWS_AT_ONCE: usize = 32;

/// Rows that later commits of a session prune.
#[derive(Default)]
pub(crate) struct PendingPrunes {
    tables: [OfTable; TABLES_MAX],
    /// Whose place the next unknown table takes.
    victim: usize,
    /// Rows noted since the session began.
    noted: u64,
}

#[derive(Default)]
struct OfTable {
    id: Option<TableId>,
    /// The table, if the transaction that commits left something there.
    written: Option<TableRef>,
    /// Oldest first: the row, and the transaction that left something behind in it.
    rows: VecDeque<(RowId, Xid)>,
}

impl OfTable {
    /// The oldest row, if what is in it was left by a transaction below the horizon.
    fn pop_below(&mut self, horizon: Xid) -> Option<RowId> {
        let (row_id, xid) = *self.rows.front()?;
        if xid >= horizon {
            return None;
        }
        self.rows.pop_front();
        Some(row_id)
    }
}

impl PendingPrunes {
    /// A commit begins. One before may have ended in the middle, and what it wrote to may be gone.
    pub(crate) fn begin(&mut self) {
        self.tables.iter_mut().for_each(|of| of.written = None);
    }

    /// Notes that a transaction that commits now left something behind in a row.
    pub(crate) fn add(&mut self, table: TableRef, row_id: RowId, xid: Xid) {
        self.noted += 1;
        let id = Some(table.id());
        let known = self.tables.iter().position(|of| of.id == id);
        let of = match known {
            Some(at) => &mut self.tables[at],
            None => {
                self.victim = (self.victim + 1) % TABLES_MAX;
                let of = &mut self.tables[self.victim];
                of.rows.clear();
                of.id = id;
                of
            }
        };
        of.written = Some(table);
        if of.rows.len() == ROWS_MAX {
            of.rows.pop_front();
        }
        // Without process memory the sweeper has to do it.
        if of.rows.try_reserve(1).is_ok() {
            of.rows.push_back((row_id, xid));
        }
    }

    /// Rows noted since the session began, whatever became of them.
    pub(crate) fn noted(&self) -> u64 {
        self.noted
    }

    /// Calls `tidy` for rows of the tables that the transaction wrote to, as far as the horizon
    /// allows. It answers whether the row had something to take out. The caller is pinned and
    /// commits.
    pub(crate) fn take_out(&mut self, horizon: Xid, tidy: impl Fn(TableRef, RowId) -> bool) {
        let mut left = ROWS_AT_ONCE;
        for of in &mut self.tables {
            let Some(table) = of.written.take() else {
                continue;
            };
            let mut is_first = true;
            while left > 0
                && let Some(row_id) = of.pop_below(horizon)
            {
                left -= 1;
                if !tidy(table, row_id) && is_first {
                    // The sweeper was faster, and it goes through whole tables.
                    while of.pop_below(horizon).is_some() {}
                }
                is_first = false;
            }
        }
    }
}
