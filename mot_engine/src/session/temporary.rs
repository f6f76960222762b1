//! What the temporary tables of a session take, and their limit.
//!
//! - A temporary table knows what it takes, and the line of the session that made it, which has
//!   the sum. Both change where memory of the table is taken or given back ([`Session::charge`]):
//!   in its session, and in the sweeper's, which only gives back.
//! - A table that is pending free counts no more, whenever it is freed ([`discharge`]). So a
//!   reclaimer that lags behind takes nothing from a session.
//! - A sweeper may give something back behind that. Both figures are then less than nothing by as
//!   much, until the table is freed and they are made even.
//! - A line that had another session before may still have a sum, of tables that this one has left
//!   behind. The new one's counts from there.

use super::Session;
use crate::errors::EngineError;
use crate::memory::{ArenaFull, Outer, UNLIMITED};
use crate::table::TableRef;
use std::sync::atomic::{AtomicI64, Ordering};

/// Counts what a temporary table takes, until it is dropped.
#[must_use]
pub(crate) struct Charge<'a> {
    session: &'a Session,
    table: TableRef,
    /// Taken when it is dropped.
    outer: Option<Outer>,
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        let outer = self.outer.take().expect("until now");
        add(self.table, self.session.local.end_charge(outer));
    }
}

impl Session {
    /// From now on temporary tables of this session take no more than this says together. It is
    /// asked again and again, and raises nothing.
    pub fn limit_temporary_by(&self, bytes: fn() -> u64) {
        self.temporary_limit.set(Some(bytes));
    }

    fn temporary_limit(&self) -> i64 {
        self.temporary_limit.get().map_or(UNLIMITED, |bytes| {
            i64::try_from(bytes()).unwrap_or(UNLIMITED)
        })
    }

    /// Bytes that they take.
    pub fn temporary_bytes(&self) -> u64 {
        self.temporary_taken().max(0) as u64
    }

    fn temporary_taken(&self) -> i64 {
        self.line.temporary_bytes.load(Ordering::Relaxed) - self.temporary_before
    }

    /// From now on, until the guard is dropped, what is taken and given back is the table's: if it
    /// is a temporary one. What is done here is done to this table alone, or to others under guards
    /// of their own.
    #[inline]
    pub(crate) fn charge(&self, table: TableRef) -> Option<Charge<'_>> {
        if table.key().is_temporary() {
            return Some(self.charge_temporary(table));
        }
        None
    }

    #[cold]
    fn charge_temporary(&self, table: TableRef) -> Charge<'_> {
        let is_own = std::ptr::eq(owner(table), &self.line.temporary_bytes);
        let (used, limit) = match is_own {
            true => (self.temporary_taken(), self.temporary_limit()),
            // The sweeper's limit is no matter: it takes nothing.
            false => (0, UNLIMITED),
        };
        Charge {
            session: self,
            table,
            outer: Some(self.local.begin_charge(used, limit)),
        }
    }

    /// The error for a tree that found no room.
    pub(crate) fn index_full(&self) -> EngineError {
        let full = self.local.take_refusal().unwrap_or_else(|| ArenaFull {
            requested: mot_index::NODE_BYTES as u64,
            ..self.engine.memory().full(0)
        });
        EngineError::ArenaFull(full)
    }
}

/// A table counts no more: it is pending free, or freed.
pub(crate) fn discharge(table: TableRef) {
    if table.key().is_temporary() {
        let bytes = table.storage().charged.swap(0, Ordering::Relaxed);
        owner(table).fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes more are, or with less than 0 fewer, of a temporary table.
pub(crate) fn add(table: TableRef, bytes: i64) {
    if bytes != 0 {
        table.storage().charged.fetch_add(bytes, Ordering::Relaxed);
        owner(table).fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The sum of the session that made a temporary table.
fn owner(table: TableRef) -> &'static AtomicI64 {
    let owner = table.storage().owner as *const AtomicI64;
    // SAFETY: a temporary table's storage has, from before it is linked, the address of a word of a
    // session's line, which lives as long as the engine.
    unsafe { &*owner }
}
