//! Taking over an engine whose server has ended, and whether that may be done.
//!
//! Contract: an engine is quiescent when every session has left properly and its tables were ready
//! for statements. Then the arena holds exactly what a server holds between two statements, and
//! what it says of transactions is only what is true for ever (hint flags); all else is asked of
//! the clock of the next server. Horizon, ids and LSNs continue to rise.
//!
//! - `reason` only reads. It follows pointers into the arena, each checked to lie in it, and ends
//!   after a bounded number.
//! - `take_over` leaves the state `Empty`: nothing is done with the tables until the extension has
//!   looked at the checkpoint files.
//! - Figures that speak of "since the start of the server" begin anew; those that describe the
//!   contents stay.

use crate::engine::{Engine, State};
use crate::errors::EngineError;
use crate::key::IndexDefinition;
use crate::memory::{ArenaNotQuiescent, ArenaOptions, Memory, Region};
use crate::session::temporary::discharge;
use crate::table::{IndexRef, TableRef};
use std::sync::atomic::Ordering;

/// More tables than this are a cycle of damaged links.
const TABLES_MAX: usize = 1 << 24;

/// What was taken over.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct TakenOver {
    /// Live rows.
    pub rows: u64,
    /// Bytes of the arena in use.
    pub bytes: u64,
    /// Tables.
    pub tables: u64,
    /// Their indexes.
    pub indexes: u64,
}

/// What is not as it is when no process is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotQuiescent {
    #[error(transparent)]
    Arena(ArenaNotQuiescent),
    #[error("a process that is gone holds a latch of it")]
    Latched,
    #[error("{0} sessions did not leave it")]
    Sessions(usize),
    #[error("a session was in the middle of logging")]
    Logging,
    #[error("a table is still being walked")]
    Walked,
    #[error("a collation orders texts otherwise than before")]
    Collation,
    #[error("its tables are not loaded ({0:?})")]
    State(State),
    #[error("its list of tables is damaged")]
    Damaged,
}

/// Why an engine is not taken over. The region is to be reset.
#[derive(Debug, thiserror::Error)]
pub enum NotTakenOver {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the memory holds no tables")]
    NoEngine,
    #[error("the memory was not left in order: {0}")]
    NotQuiescent(NotQuiescent),
}

/// Whether an index has keys in an order of texts that this process does not have, or a definition
/// that it cannot read.
fn has_other_order(index: IndexRef) -> bool {
    let definition = IndexDefinition::from_bytes(index.definition_bytes());
    definition.is_err() || definition.is_ok_and(|read| index.check_collations(&read).is_err())
}

impl Engine {
    /// What keeps the engine from being taken over later; nothing if it is quiescent. No other
    /// process uses it.
    pub fn not_quiescent_because(self) -> Option<NotQuiescent> {
        if self.state() != State::Ready {
            return Some(NotQuiescent::State(self.state()));
        }
        if let Some(reason) = self.memory().not_quiescent_because() {
            return Some(NotQuiescent::Arena(reason));
        }
        let root = self.root();
        let mut taken = 0;
        for line in &root.sessions {
            if line.logging.load(Ordering::Acquire) % 2 == 1 {
                return Some(NotQuiescent::Logging);
            }
            taken += usize::from(line.taken.load(Ordering::Acquire) != 0);
        }
        if taken > 0 {
            return Some(NotQuiescent::Sessions(taken));
        }
        if !root.catalog.is_quiescent() || !root.kept_locks.is_quiescent() {
            return Some(NotQuiescent::Latched);
        }
        let mut reason = None;
        let whole = self.each_table(|table| {
            let storage = table.storage();
            if !storage.free_latch.is_free() {
                reason = Some(NotQuiescent::Latched);
            } else if [&storage.walkers, &storage.quiet, &storage.sweepers]
                .iter()
                .any(|count| count.load(Ordering::Acquire) != 0)
            {
                reason = Some(NotQuiescent::Walked);
            }
            if table.all_indexes().any(has_other_order) {
                reason = Some(NotQuiescent::Collation);
            }
        });
        if whole {
            reason
        } else {
            Some(NotQuiescent::Damaged)
        }
    }

    /// The engine that a server before this one left in the region.
    ///
    /// # Safety
    /// As for [`Memory::format`]; and the contents are what that server, of the same build, left.
    pub unsafe fn take_over(
        region: &Region,
        options: &ArenaOptions,
    ) -> Result<(Engine, TakenOver), NotTakenOver> {
        // SAFETY: the caller's.
        let memory = unsafe { Memory::take_over(region, options) }.map_err(EngineError::from)?;
        let engine = Engine::attach(memory).ok_or(NotTakenOver::NoEngine)?;
        if !engine.root_is_inside() {
            return Err(NotTakenOver::NotQuiescent(NotQuiescent::Damaged));
        }
        if let Some(reason) = engine.not_quiescent_because() {
            return Err(NotTakenOver::NotQuiescent(reason));
        }
        Ok((engine, engine.begin_anew()))
    }

    /// Counts what is there and sets back what counts since the start of the server.
    fn begin_anew(self) -> TakenOver {
        self.set_state(State::Empty);
        self.unlink_temporary();
        let mut taken = TakenOver {
            bytes: self.memory().arena_bytes_used(),
            ..TakenOver::default()
        };
        self.each_table(|table| {
            taken.tables += 1;
            taken.rows += table.row_count_estimate();
            table.counters().restart();
            for index in table.all_indexes() {
                taken.indexes += 1;
                index.storage().counters.scans.store(0, Ordering::Relaxed);
            }
        });
        self.transactions().restart();
        self.progress().restart(taken.rows, taken.indexes);
        taken
    }

    /// Temporary tables that a session could not drop at its end have no owner.
    fn unlink_temporary(self) {
        let mut left = Vec::new();
        self.each_table(|table| {
            if table.key().is_temporary() {
                left.push(table);
            }
        });
        for table in left {
            discharge(table);
            self.root().catalog.defer_free(table);
        }
    }

    /// Calls `look` for every linked table; false if a link leads out of the arena or in circles.
    fn each_table(self, mut look: impl FnMut(TableRef)) -> bool {
        let mut left = TABLES_MAX;
        self.root().catalog.walk_links(|table| {
            let inside = self.memory().contains(table.0.cast()) && table.0.is_aligned();
            left = left.saturating_sub(1);
            let good = inside && left > 0;
            if good {
                look(table);
            }
            good
        })
    }
}
