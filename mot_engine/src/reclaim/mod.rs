//! Removing what no snapshot can see any more: versions, index entries, row ids. See README.md.
//!
//! What may touch what when:
//! - A version leaves its chain only under the anchor's latch, and is retired by the process that
//!   unlinked it ([`clean_row`]).
//! - Index entries are removed after the versions that had their keys left the chain, with the
//!   anchor's CLEANING bit set and the caller pinned. While it is set no other process unlinks such
//!   versions, and none frees the row id.
//! - A row id is freed only after its last entry is gone, by the process that emptied its chain.
//! - Nothing here asks a `Clock` under a latch; what is dead is known by hint flags.
//! - One process at a time sweeps and frees dropped storages (the reclaimer); writers clean the
//!   rows they touch, and their commits what earlier ones left behind
//!   (`session/pending_prunes.rs`).

mod clean;
mod clear_keys_moved;
#[cfg(all(test, debug_assertions))]
mod clear_keys_moved_tests;
mod given_up;
mod own_versions;
mod prefetch;
mod sweep;
mod tail;
mod unresolved;

pub(crate) use clean::{clean_row, leave, prune_row, tidy_row, without_stale_lock_flag};
pub(crate) use own_versions::{Part, take_states_out};
pub use sweep::Sweep;

use crate::table::{TableRef, TableStorage};
use std::sync::atomic::Ordering;

/// Keeps the sweeper out of a table: for index builds and checks, whose caller holds off writers by
/// a relation lock, and the end of recovery.
pub(crate) struct Quiet<'a>(&'a TableStorage);

impl Quiet<'_> {
    /// Waits for the sweeper to finish its group of rows.
    pub(crate) fn begin(table: TableRef) -> Self {
        let storage = table.storage();
        storage.quiet.fetch_add(1, Ordering::SeqCst);
        let quiet = Quiet(storage);
        while storage.sweepers.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        quiet
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        self.0.quiet.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The sweeper's side of [`Quiet`]; held for one group of rows.
struct Sweeping<'a>(&'a TableStorage);

impl Sweeping<'_> {
    fn begin(table: TableRef) -> Option<Self> {
        let storage = table.storage();
        storage.sweepers.fetch_add(1, Ordering::SeqCst);
        let sweeping = Sweeping(storage);
        (storage.quiet.load(Ordering::SeqCst) == 0).then_some(sweeping)
    }
}

impl Drop for Sweeping<'_> {
    fn drop(&mut self) {
        self.0.sweepers.fetch_sub(1, Ordering::SeqCst);
    }
}
