//! Building an index from the rows that are there.
//!
//! Used by CREATE INDEX on a filled table and by recovery. Every data version of every chain that
//! is not aborted gets its entry, so that older snapshots find their rows through the new index,
//! too. The caller makes sure that no session changes the table meanwhile.
//!
//! A sample of the keys is cut into parts of some MiB. Then, in turns of as many parts as process
//! memory is allowed for:
//! 1. Ranges of row ids are walked; the keys of the turn's parts are collected, by range and part.
//! 2. Each part is put together, in row id order (it often is sorted then), and sorted.
//! 3. Each part's stretch of the tree is built, knowing its neighbours' keys. The last part of a
//!    turn waits for the next turn's first key.
//!
//! A load has collected sorted runs of keys before (`gather`): then 1. and 2. are one step, which
//! copies each part out of the runs.
//!
//! At last the stretches are joined. Within a step, a [`BuildThreads`] shares ranges or parts among
//! threads; small units keep it balanced, whether there is one large table or many small ones.

use super::gather::{Allowance, Harvest};
use super::plan::{Plan, SIZES, Stretches};
use super::threads::{Alone, BuildThreads, HintsOnly, Threads};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::RowId;
use crate::session::Session;
use crate::table::{IndexRef, TableRef};

/// What became of a build.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Build {
    /// The index is filled.
    Done(IndexRef),
    /// It is, but for states of rows that have no key: a column was NULL in them that is NOT NULL
    /// now, or they have a key that is too long, and were replaced (or the log is replayed). A
    /// snapshot older than that may see rows it would not find through this index.
    DoneBesideOlder(IndexRef),
    /// Two live rows have the same key of a unique index; nothing was built.
    Duplicate {
        /// The rows, in row id order.
        row_ids: [RowId; 2],
    },
}

/// Fills an empty index from the table's rows. The caller keeps the sweeper out until the index is
/// published.
pub(crate) fn build(
    session: &Session,
    clock: &impl Clock,
    table: TableRef,
    index: IndexRef,
) -> Result<Build, EngineError> {
    let bytes = turn_bytes(session);
    build_by(
        &Alone::<_, true> { session, clock },
        session,
        table,
        index,
        bytes,
    )
}

/// Fills an empty index while tables are being loaded: from rows of different moments, among which
/// two may have the same key until the log is replayed. So nothing is resolved and nothing counts
/// as a duplicate: it answers `Done` or `DoneBesideOlder`. As for `build`, the caller keeps the
/// sweeper out.
pub(crate) fn build_by_hints(
    session: &Session,
    table: TableRef,
    index: IndexRef,
    threads: usize,
) -> Result<Build, EngineError> {
    let engine = session.engine();
    let bytes = turn_bytes(session);
    if is_small(table) {
        let build_threads = Alone::<_, false> {
            session,
            clock: &HintsOnly(engine),
        };
        build_by(&build_threads, session, table, index, bytes)
    } else {
        build_by(&Threads { engine, threads }, session, table, index, bytes)
    }
}

/// As `build_by_hints`, from the keys that were gathered while the rows were loaded. No session has
/// a snapshot from before: a session that can read has one that is not older than the newest of
/// what is loaded.
pub(crate) fn build_gathered(
    session: &Session,
    table: TableRef,
    index: IndexRef,
    harvest: Harvest,
    threads: usize,
) -> Result<(), EngineError> {
    let Some(runs) = harvest.reap() else {
        return build_by_hints(session, table, index, threads).map(drop);
    };
    let engine = session.engine();
    let bytes = turn_bytes(session) * (100 - SIZES.gathered_percent.min(90)) / 100;
    let plan = Plan::of_runs(table, index, runs, bytes)?;
    let built = if is_small(table) {
        let build_threads = Alone::<_, false> {
            session,
            clock: &HintsOnly(engine),
        };
        build_as_planned(plan, &build_threads, session, index)
    } else {
        build_as_planned(plan, &Threads { engine, threads }, session, index)
    };
    built.map(drop)
}

/// What gathered keys may take of process memory.
pub(crate) fn gathering_allowance(session: &Session) -> Allowance {
    Allowance::of(turn_bytes(session) / 100 * SIZES.gathered_percent)
}

/// Whether an index of the table is too small to be shared among threads: whole indexes are, then.
pub(crate) fn is_small(table: TableRef) -> bool {
    table.row_ids_end().0 <= SIZES.unit_row_ids
}

/// Process memory that keys may take at a time.
pub(super) fn turn_bytes(session: &Session) -> u64 {
    let limit = session.memory().memory().arena_bytes_limit();
    (limit / SIZES.arena_share).max(SIZES.turn_bytes_min)
}

fn build_by<C: BuildThreads>(
    build_threads: &C,
    session: &Session,
    table: TableRef,
    index: IndexRef,
    turn_bytes: u64,
) -> Result<Build, EngineError> {
    let plan = Plan::make(session, table, index, turn_bytes)?;
    build_as_planned(plan, build_threads, session, index)
}

fn build_as_planned<C: BuildThreads>(
    plan: Plan,
    build_threads: &C,
    session: &Session,
    index: IndexRef,
) -> Result<Build, EngineError> {
    let mut stretches = Stretches::new(session, index);
    plan.run(build_threads, &mut stretches)?;
    if let Some(row_ids) = stretches.duplicate {
        return Ok(Build::Duplicate { row_ids });
    }
    stretches.join()?;
    Ok(if stretches.has_met_keyless {
        Build::DoneBesideOlder(index)
    } else {
        Build::Done(index)
    })
}
