//! The engine's shared root, and the handle on it.
//!
//! The root is the first thing in the arena: the catalog, the state of loading, the horizon, one
//! line per session. Everything in it is atomics or latched; all-zero is its first state.

mod kept_locks;
mod replay_progress;

pub(crate) use kept_locks::{KeptLocks, KeptRecord, kept_block_bytes};
pub(crate) use replay_progress::Positions;
pub use replay_progress::{REPLAY_WORKERS_MAX, Reached};

use crate::errors::EngineError;
use crate::ids::{Lsn, Xid};
use crate::limits::SESSIONS_MAX;
use crate::memory::{Memory, Purpose, Urgency};
use crate::sync;
use crate::table::Catalog;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Which of the arena's fixed words holds the root's address.
const ROOT_WORD: usize = 0;

/// How long a checkpoint waits for a replay that waits for memory before it gives up; it is tried
/// again.
const STALL_PATIENCE: Duration = Duration::from_secs(5);

/// Memory is short with less than this part of the arena free.
const SHORT_OF_MEMORY: u64 = 32;

/// Where the tables are on their way into memory.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
#[repr(u32)]
pub enum State {
    /// Nothing loaded yet.
    Empty = 0,
    /// A checkpoint is being loaded.
    Loading = 1,
    /// The log is being replayed.
    Replaying = 2,
    /// Statements may run.
    Ready = 3,
    /// Loading failed; statements must not run and no checkpoint may be written.
    Failed = 4,
}

/// Progress of loading and replay, for views and the log.
#[repr(C)]
#[derive(Default)]
pub struct Progress {
    /// Rows the checkpoint holds, and rows loaded so far.
    pub rows_total: AtomicU64,
    pub rows_loaded: AtomicU64,
    /// Bytes of the checkpoint's files, and bytes read so far.
    pub bytes_total: AtomicU64,
    pub bytes_loaded: AtomicU64,
    /// Indexes to build, and built so far.
    pub indexes_total: AtomicU64,
    pub indexes_built: AtomicU64,
    /// Entries that the indexes to build should get, and those built so far.
    pub index_entries_total: AtomicU64,
    pub index_entries_built: AtomicU64,
    /// Not 0: the process that waits for the load has no use for it any more. It ends with
    /// `Cancelled` at its next unit of work.
    pub load_is_unwanted: AtomicU32,
    /// Row changes replayed, and the LSN replayed up to, or handed over to the workers.
    pub changes_replayed: AtomicU64,
    pub replayed_lsn: AtomicU64,
}

/// Transactions counted, summed over sessions.
#[repr(C)]
#[derive(Default)]
pub struct TransactionCounters {
    pub commits: AtomicU64,
    pub aborts: AtomicU64,
    pub log_records: AtomicU64,
    pub log_bytes: AtomicU64,
    pub conflicts: ConflictCounters,
}

/// How often transactions met each other. Counted by those that wait, at the moment they have to:
/// on a cache line of their own, so that waiters do not slow down those that commit.
#[repr(C, align(64))]
#[derive(Default)]
pub struct ConflictCounters {
    /// Waits for another transaction at a row.
    pub row_waits: AtomicU64,
    /// Waits for another transaction at a unique key.
    pub key_waits: AtomicU64,
    /// Rows that were changed or deleted since the snapshot of the statement that wanted to change
    /// or lock them.
    pub rows_changed_meanwhile: AtomicU64,
    /// Unique keys met twice, where that is an error.
    pub unique_violations: AtomicU64,
}

impl Progress {
    /// Says that all there is has been taken over at once.
    pub(crate) fn restart(&self, rows: u64, indexes: u64) {
        let pairs = [
            (&self.rows_total, rows),
            (&self.rows_loaded, rows),
            (&self.bytes_total, 0),
            (&self.bytes_loaded, 0),
            (&self.indexes_total, indexes),
            (&self.indexes_built, indexes),
            (&self.index_entries_total, 0),
            (&self.index_entries_built, 0),
            (&self.changes_replayed, 0),
            (&self.replayed_lsn, 0),
        ];
        for (word, value) in pairs {
            word.store(value, Ordering::Relaxed);
        }
        self.load_is_unwanted.store(0, Ordering::Relaxed);
    }
}

impl TransactionCounters {
    /// Sets all back.
    pub(crate) fn restart(&self) {
        let all = [
            &self.commits,
            &self.aborts,
            &self.log_records,
            &self.log_bytes,
            &self.conflicts.row_waits,
            &self.conflicts.key_waits,
            &self.conflicts.rows_changed_meanwhile,
            &self.conflicts.unique_violations,
        ];
        for counter in all {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// A session's line in the root.
#[repr(C, align(64))]
pub(crate) struct SessionLine {
    /// 0 free, 1 taken.
    pub(crate) taken: sync::AtomicU32,
    /// Odd while the session is between appending a log record and marking its rows. Rises by one
    /// at each change.
    pub(crate) logging: sync::AtomicU64,
    /// The session's transaction, from its first write until the session has set the hints of all
    /// its rows; 0 if there is none (`reclaim/unresolved.rs`).
    pub(crate) unresolved: sync::AtomicU64,
    /// What temporary tables of the session take (`session/temporary.rs`).
    pub(crate) temporary_bytes: AtomicI64,
}

/// Which checkpoint this memory continues, for the next one: see checkpoint/README.md, "Incremental
/// checkpoints". Committers read the round, so no word that is written often may share its line.
#[repr(C, align(64))]
struct Rounds {
    /// Raised at the start of each attempt to write a checkpoint.
    round: sync::AtomicU64,
    /// The generation whose content the memory continues, 0 if none, and the round at which it was
    /// begun or loaded.
    base_generation: sync::AtomicU64,
    base_round: sync::AtomicU64,
}

/// The first round; a range that was never changed says 0.
const FIRST_ROUND: u64 = 1;

#[repr(C)]
pub(crate) struct Root {
    state: AtomicU32,
    pub(crate) horizon: sync::AtomicU64,
    /// Highest LSN any row or definition was logged at.
    pub(crate) last_lsn: AtomicU64,
    /// The loaded checkpoint's `Manifest::defined`.
    defined: AtomicU64,
    /// The next block of aliases, or a number below the clock's.
    alias_block: AtomicU64,
    /// Not 0: transactions that were given up have left definitions (`reclaim/given_up.rs`).
    pub(crate) definitions_given_up: AtomicU64,
    pub(crate) kept_locks: KeptLocks,
    pub(crate) progress: Progress,
    pub(crate) transactions: TransactionCounters,
    rounds: Rounds,
    pub(crate) replay: Positions,
    pub(crate) catalog: Catalog,
    pub(crate) sessions: [SessionLine; SESSIONS_MAX],
}

/// Handle on the shared root. Valid in every process that has the arena.
#[derive(Copy, Clone)]
pub struct Engine {
    memory: Memory,
    root: NonNull<Root>,
}

// SAFETY: the root is atomics and latched words.
unsafe impl Send for Engine {}
// SAFETY: as above.
unsafe impl Sync for Engine {}

impl Engine {
    /// Lays an empty engine out in a fresh arena.
    pub fn format(memory: Memory) -> Result<Engine, EngineError> {
        let local = memory.join()?;
        let block = local.allocate(size_of::<Root>(), Purpose::Catalog, Urgency::Ordinary)?;
        // SAFETY: the block is ours and that large; all-zero is the root's first state.
        unsafe { block.write_bytes(0, size_of::<Root>()) };
        let root = block.cast::<Root>();
        // SAFETY: just laid out.
        let Root {
            catalog, rounds, ..
        } = unsafe { root.as_ref() };
        rounds.round.store(FIRST_ROUND, Ordering::Relaxed);
        catalog.next_table_id.store(1, Ordering::Relaxed);
        catalog.next_index_id.store(1, Ordering::Relaxed);
        memory
            .root(ROOT_WORD)
            .store(block.as_ptr() as u64, Ordering::Release);
        Ok(Engine { memory, root })
    }

    /// The engine that was formatted in this arena; `None` if none was.
    pub fn attach(memory: Memory) -> Option<Engine> {
        let root = NonNull::new(memory.root(ROOT_WORD).load(Ordering::Acquire) as *mut Root)?;
        Some(Engine { memory, root })
    }

    /// Whether the root can be one at all.
    pub(crate) fn root_is_inside(self) -> bool {
        self.root.is_aligned()
            && self.memory.contains(self.root.cast())
            // SAFETY: one past the root's bytes, compared and never read.
            && self.memory.contains(unsafe { self.root.add(1) }.cast())
    }

    pub(crate) fn root<'a>(self) -> &'a Root {
        // SAFETY: the root lives as long as the arena, which outlives every handle
        // (Memory::format's contract).
        unsafe { &*self.root.as_ptr() }
    }

    /// The arena.
    pub fn memory(self) -> Memory {
        self.memory
    }

    /// Where loading is.
    pub fn state(self) -> State {
        match self.root().state.load(Ordering::Acquire) {
            0 => State::Empty,
            1 => State::Loading,
            2 => State::Replaying,
            3 => State::Ready,
            _ => State::Failed,
        }
    }

    /// Moves to another state.
    pub fn set_state(self, state: State) {
        self.root().state.store(state as u32, Ordering::Release);
    }

    /// Progress of loading.
    pub fn progress<'a>(self) -> &'a Progress {
        &self.root().progress
    }

    /// Transactions counted.
    pub fn transactions<'a>(self) -> &'a TransactionCounters {
        &self.root().transactions
    }

    /// Versions superseded by a committed transaction below this are dead to every snapshot.
    pub fn horizon(self) -> Xid {
        Xid(self.root().horizon.load(Ordering::Acquire))
    }

    /// Raises the horizon. It never falls.
    pub fn raise_horizon(self, horizon: Xid) {
        self.root().horizon.fetch_max(horizon.0, Ordering::AcqRel);
    }

    /// A block of aliases that no other session gets (`transaction/own_rows.rs`). Blocks are
    /// counted on from the milliseconds of the clock, so an engine that starts anew has others.
    pub(crate) fn next_alias_block(self) -> u64 {
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let clock = time.map_or(0, |time| time.as_millis() as u64);
        let next = &self.root().alias_block;
        next.fetch_max(clock, Ordering::Relaxed);
        next.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether little of the arena is left.
    pub fn is_short_of_memory(self) -> bool {
        let memory = self.memory();
        memory.arena_bytes_free() < memory.arena_bytes_limit() / SHORT_OF_MEMORY
    }

    /// Whether dropped tables' memory cannot be freed yet because a process walks them: a
    /// checkpoint that is to write them, or a sweep.
    pub fn dropped_tables_are_held(self) -> bool {
        self.root().catalog.holds_pending_free()
    }

    /// The definitions that were loaded are those of a moment behind this position
    /// (`Manifest::defined`).
    pub(crate) fn defined(self) -> Lsn {
        Lsn(self.root().defined.load(Ordering::Acquire))
    }

    /// By the one process that loads.
    pub(crate) fn set_defined(self, defined: Lsn) {
        self.root().defined.store(defined.0, Ordering::Release);
    }

    /// Highest LSN any row or definition was logged at.
    pub fn last_lsn(self) -> Lsn {
        Lsn(self.root().last_lsn.load(Ordering::Acquire))
    }

    /// The round that changes made now belong to. Asked by a session that is logging: sequentially
    /// consistent with its mark.
    pub(crate) fn round(self) -> u64 {
        self.root().rounds.round.load(Ordering::SeqCst)
    }

    /// Begins a checkpoint's round. Before the wait for those that are logging.
    pub(crate) fn begin_round(self) -> u64 {
        self.root().rounds.round.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The generation whose content the memory continues and the round since which changes count;
    /// None before there is one.
    pub(crate) fn base(self) -> Option<(u64, u64)> {
        let rounds = &self.root().rounds;
        let generation = rounds.base_generation.load(Ordering::Acquire);
        let round = rounds.base_round.load(Ordering::Acquire);
        (generation != 0).then_some((generation, round))
    }

    /// The memory continues this generation, with what was changed since this round began. By the
    /// one process that loads or writes.
    pub(crate) fn set_base(self, generation: u64, round: u64) {
        let rounds = &self.root().rounds;
        rounds.base_round.store(round, Ordering::Release);
        rounds.base_generation.store(generation, Ordering::Release);
    }

    /// Waits until every session that was between appending a log record and marking its rows has
    /// marked them, and until every record that replay has handed over is applied. After it, every
    /// row whose record is before a log position read earlier says so. `pause` is called between
    /// looks. Fails if replay was given up (then it will never be), or waits for memory for long:
    /// a process that waits for this one, too, must not hang with it.
    pub fn wait_for_logging_sessions(self, mut pause: impl FnMut()) -> Result<(), EngineError> {
        let handed = self.replay_handed();
        let mut stalled_since: Option<Instant> = None;
        loop {
            match self.replay_reached(handed) {
                Reached::Yes => break,
                Reached::GivenUp => return Err(EngineError::Cancelled),
                Reached::NotYet => stalled_since = None,
                Reached::NoMemory => {
                    let since = *stalled_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > STALL_PATIENCE {
                        return Err(EngineError::ReplayWaitsForMemory);
                    }
                }
            }
            pause();
        }
        for line in &self.root().sessions {
            let seen = line.logging.load(Ordering::SeqCst);
            if sync::is_broken("log: waiting for who is logging") {
                continue;
            }
            while seen % 2 == 1 && line.logging.load(Ordering::SeqCst) == seen {
                pause();
            }
        }
        Ok(())
    }
}
