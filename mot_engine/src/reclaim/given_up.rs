//! Definitions of transactions that their sessions gave up.
//!
//! As a rule the session resolves what its transaction created and dropped, when that ends. No
//! session does where the session gave the transaction up (PREPARE), or is gone: a restart finds
//! transactions that may be prepared. COMMIT PREPARED and ROLLBACK PREPARED call no code of ours.
//! Meanwhile the ids are resolved by the clock at each look (`table/makers.rs`), so every session
//! sees at once what exists.
//!
//! The process that sweeps resolves them in each of its rounds, as long as some are open:
//!
//! - what a committed transaction created, or another one did not drop after all, gets a 0;
//! - what is gone is unlinked, as by a session's commit or rollback.
//!
//! No session uses it meanwhile. A user of a table holds a lock on it, and the prepared transaction
//! had the strongest one until its outcome was in the commit log. Before the server releases that
//! lock it sends invalidations, which empty other sessions' caches. What was created and rolled
//! back exists for no session. Readers are pinned, or walk the table, and both are waited for.
//!
//! - **A word that a session resolves is left alone** (`given_up`). The session may be about to
//!   unlink the definition, whose memory must be there.
//! - **Before a bound is given below which outcomes may be forgotten** (`unresolved.rs`), what has
//!   ended is resolved. A transaction below the bound had ended when the round began, and its bits
//!   were set before its session took its mark off. The replayer resolves what replay's truncation
//!   of the commit log would cut off.
//! - **A crash at any place** loses nothing. A checkpoint has the ids, or has the definition
//!   resolved or left out. In the latter cases the outcome was durable in the log when the round
//!   asked for it.

use crate::clock::Clock;
use crate::session::Session;
use crate::table::DefinitionStatus;
use std::sync::atomic::Ordering;

impl Session {
    /// Resolves what was given up by transactions that have ended since. Of the sweeping process
    /// alone, on a server that is ready. The clock may unwind. Returns how many tables and indexes
    /// were unlinked.
    pub fn resolve_given_up(&self, clock: &impl Clock) -> u64 {
        let open = &self.engine().root().definitions_given_up;
        if open.load(Ordering::Acquire) == 0 {
            return 0;
        }
        // A session that gives something up behind this says so again.
        open.swap(0, Ordering::SeqCst);
        let again = Again(self);
        let mut is_open = false;
        let mut unlinked = 0;
        let catalog = self.catalog();
        for walk in self.tables() {
            let _pin = self.local.pin();
            let table = walk.table();
            match table.makers().resolve_given_up(clock) {
                DefinitionStatus::Gone => {
                    catalog.defer_free(table);
                    unlinked += 1;
                    continue;
                }
                DefinitionStatus::Open => is_open = true,
                DefinitionStatus::Resolved => {}
            }
            for index in table.all_indexes() {
                match index.makers().resolve_given_up(clock) {
                    DefinitionStatus::Gone => {
                        catalog.defer_free_of_index(index);
                        unlinked += 1;
                    }
                    DefinitionStatus::Open => is_open = true,
                    DefinitionStatus::Resolved => {}
                }
            }
        }
        if !is_open {
            std::mem::forget(again);
        }
        unlinked
    }

    /// Some definitions are left to the sweeping process: their bits are set.
    pub(crate) fn leave_definitions_open(&self) {
        let open = &self.engine().root().definitions_given_up;
        open.store(1, Ordering::SeqCst);
    }

    /// Gives up what no transaction has resolved. At the end of recovery, before any session works.
    pub(crate) fn give_up_open_definitions(&self) {
        let mut is_open = false;
        for walk in self.tables() {
            let _pin = self.local.pin();
            let indexes = walk.table().all_indexes().map(|index| index.makers());
            for makers in indexes.chain([walk.table().makers()]) {
                if makers.has_open() {
                    makers.give_up_creation();
                    makers.give_up_drop();
                    is_open = true;
                }
            }
        }
        if is_open {
            self.leave_definitions_open();
        }
    }
}

/// Something is open still, also when a clock unwinds.
struct Again<'a>(&'a Session);

impl Drop for Again<'_> {
    fn drop(&mut self) {
        self.0.leave_definitions_open();
    }
}
