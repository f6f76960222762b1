//! How the keys of an index are cut, and what is made of them part by part: see `build`.

use super::collect::{Collector, ROW_IDS_PER_PIN};
use super::keys::{Keys, Sorter, Stopped};
use super::split_keys::SplitKeys;
use super::threads::BuildThreads;
use crate::clock::check_cancelled;
use crate::errors::EngineError;
use crate::ids::RowId;
use crate::index::entry::posting::Posting;
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use mot_index::{BulkError, Tree, TreePart};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Keys examined to place a cut: parts then differ in size by a fifth or so.
const SAMPLES_PER_PART: usize = 32;
/// Most parts; beyond that they grow.
const PARTS_MAX: usize = 2048;

/// How the work is cut.
pub(super) struct Sizes {
    /// What a part's keys should take of process memory: some fit a core's cache in part, and a few
    /// hundred thousand entries are worth a thread's turn.
    part_bytes: usize,
    /// Row ids walked as one unit of work.
    pub(super) unit_row_ids: u64,
    /// Keys held at a time, as a share of the arena's size: the rows themselves take several times
    /// as much.
    pub(super) arena_share: u64,
    /// But at least so many bytes.
    pub(super) turn_bytes_min: u64,
    /// Of these, so many parts of a hundred may be keys that a load has gathered; the others are
    /// for putting them together.
    pub(super) gathered_percent: u64,
}

/// Tests cut small tables into many parts and turns.
pub(super) const SIZES: Sizes = if cfg!(test) {
    Sizes {
        part_bytes: 512,
        unit_row_ids: 16,
        arena_share: u64::MAX,
        turn_bytes_min: 1200,
        gathered_percent: 2000,
    }
} else {
    Sizes {
        part_bytes: 8 << 20,
        unit_row_ids: 1 << 17,
        arena_share: 8,
        turn_bytes_min: 64 << 20,
        gathered_percent: 75,
    }
};

/// A table and its index, handed to threads.
#[derive(Copy, Clone)]
struct Target(TableRef, IndexRef);

// SAFETY: storages of atomics, which the caller keeps alive during the build.
unsafe impl Sync for Target {}

/// How the keys are cut.
pub(super) struct Plan {
    target: Target,
    row_ids_end: u64,
    pub(super) split_keys: SplitKeys,
    /// Parts collected in one turn.
    pub(super) parts_per_turn: usize,
    /// All keys, in sorted runs; `None`: they are in the rows.
    runs: Option<Vec<Keys>>,
}

/// The stretches of the tree built so far, in order. What is not joined is freed.
pub(super) struct Stretches<'a> {
    session: &'a Session,
    index: IndexRef,
    parts: Vec<TreePart>,
    postings: Vec<u64>,
    entries: i64,
    pub(super) duplicate: Option<[RowId; 2]>,
    /// Whether a state of a row had no key.
    pub(super) has_met_keyless: bool,
}

/// What a thread made of a part.
type Built = (TreePart, Vec<u64>, Option<Stopped>);

impl Plan {
    pub(super) fn make(
        session: &Session,
        table: TableRef,
        index: IndexRef,
        turn_bytes: u64,
    ) -> Result<Plan, EngineError> {
        let row_ids_end = table.row_ids_end().0;
        let mut plan = Plan {
            target: Target(table, index),
            row_ids_end,
            split_keys: SplitKeys::default(),
            parts_per_turn: 1,
            runs: None,
        };
        // Too many parts for short keys, which does no harm.
        let parts_about =
            (row_ids_end as usize).saturating_mul(Keys::entry_bytes(0)) / SIZES.part_bytes + 1;
        if parts_about == 1 {
            return Ok(plan);
        }
        let samples = SAMPLES_PER_PART * parts_about.min(PARTS_MAX);
        // These rows are not resolved: what is wrong with a key is found when all are walked.
        let mut collector = Collector::new(session, table, index, true)?;
        let (sample, bytes) = collector.sample(session, samples)?;
        let mean = bytes / sample.len().max(1);
        let total = (row_ids_end as usize).saturating_mul(Keys::entry_bytes(mean));
        plan.cut(&sample, total, turn_bytes);
        Ok(plan)
    }

    pub(super) fn of_runs(
        table: TableRef,
        index: IndexRef,
        runs: Vec<Keys>,
        turn_bytes: u64,
    ) -> Result<Plan, EngineError> {
        let total: u64 = runs.iter().map(Keys::bytes_held).sum();
        let total = usize::try_from(total).map_err(|_| EngineError::OutOfProcessMemory)?;
        let entries: usize = runs.iter().map(Keys::len).sum();
        let mut plan = Plan {
            target: Target(table, index),
            row_ids_end: table.row_ids_end().0,
            split_keys: SplitKeys::default(),
            parts_per_turn: 1,
            runs: None,
        };
        let samples = SAMPLES_PER_PART * (total / SIZES.part_bytes + 1).min(PARTS_MAX);
        let step = (entries / samples).max(1);
        let mut sample = Keys::default();
        // Where in the run the next key of the sample is.
        let mut at = 0;
        for run in &runs {
            while at < run.len() {
                sample.append_some(run, at..at + 1)?;
                at += step;
            }
            at -= run.len();
        }
        sample.sort(&mut Sorter::default());
        plan.cut(&sample, total, turn_bytes);
        plan.runs = Some(runs);
        Ok(plan)
    }

    /// Cuts keys of so many bytes, of which there is a sorted sample.
    fn cut(&mut self, sample: &Keys, total: usize, turn_bytes: u64) {
        let parts = (total / SIZES.part_bytes + 1).min(PARTS_MAX);
        self.split_keys = SplitKeys::choose(sample, parts);
        let turns = (total as u64).div_ceil(turn_bytes).max(1) as usize;
        self.parts_per_turn = self.split_keys.parts().div_ceil(turns);
    }

    pub(super) fn run<C: BuildThreads>(
        &self,
        build_threads: &C,
        stretches: &mut Stretches<'_>,
    ) -> Result<(), EngineError> {
        let parts = self.split_keys.parts();
        // The last part of the turn before, and the last key of what is built.
        let mut waiting: Option<Keys> = None;
        let mut before: Option<Vec<u8>> = None;
        let mut from = 0;
        while from < parts {
            let to = parts.min(from + self.parts_per_turn);
            let sorted = match &self.runs {
                Some(runs) => self.take(build_threads, runs, from..to)?,
                None => {
                    let collected = self.collect(build_threads, from..to, stretches)?;
                    sort(build_threads, collected, to - from)?
                }
            };
            let mut ready: Vec<Keys> = waiting.take().into_iter().collect();
            ready.extend(sorted.into_iter().filter(|keys| !keys.is_empty()));
            if to < parts {
                waiting = ready.pop();
            }
            let after = waiting.as_ref().and_then(Keys::first);
            let after = after.as_ref().map(AsRef::as_ref);
            self.build_stretches(build_threads, &ready, before.as_deref(), after, stretches)?;
            if stretches.duplicate.is_some() {
                return Ok(());
            }
            if let Some(last) = ready.last().and_then(Keys::last) {
                before = Some(last.as_ref().to_vec());
            }
            from = to;
        }
        debug_assert!(waiting.is_none(), "the last turn leaves nothing");
        Ok(())
    }

    /// Walks the table. The keys of the parts, by range of row ids.
    fn collect<C: BuildThreads>(
        &self,
        build_threads: &C,
        parts: std::ops::Range<usize>,
        stretches: &mut Stretches<'_>,
    ) -> Result<Vec<Mutex<Vec<Keys>>>, EngineError> {
        let has_met_keyless = AtomicBool::new(false);
        let units = self.row_ids_end.div_ceil(SIZES.unit_row_ids) as usize;
        let collected: Vec<Mutex<Vec<Keys>>> = (0..units).map(|_| Mutex::new(Vec::new())).collect();
        let target = &self.target;
        build_threads.run(units, |session, clock, unit| {
            let is_recovery = !C::REPORTS_DUPLICATES;
            let mut collector = Collector::new(session, target.0, target.1, is_recovery)?;
            let mut keys: Vec<Keys> = parts.clone().map(|_| Keys::default()).collect();
            let first = unit as u64 * SIZES.unit_row_ids;
            let end = self.row_ids_end.min(first + SIZES.unit_row_ids);
            for from in (first..end).step_by(ROW_IDS_PER_PIN as usize) {
                check_cancelled(clock)?;
                let row_ids = from..end.min(from + ROW_IDS_PER_PIN);
                collector.walk(session, clock, row_ids, |key, mut origin| {
                    let part = self.split_keys.part_of(key);
                    if parts.contains(&part) {
                        origin.live &= C::REPORTS_DUPLICATES;
                        keys[part - parts.start].push(key, origin)?;
                    }
                    Ok(())
                })?;
            }
            *lock(&collected[unit]) = keys;
            has_met_keyless.fetch_or(collector.has_met_keyless, Ordering::Relaxed);
            Ok(())
        })?;
        stretches.has_met_keyless |= has_met_keyless.into_inner();
        Ok(collected)
    }

    /// Puts parts together from the runs.
    fn take<C: BuildThreads>(
        &self,
        build_threads: &C,
        runs: &[Keys],
        parts: std::ops::Range<usize>,
    ) -> Result<Vec<Keys>, EngineError> {
        let taken: Vec<Mutex<Keys>> = parts.clone().map(|_| Mutex::default()).collect();
        let sorters = Sorters::default();
        build_threads.run(parts.len(), |_, clock, unit| {
            let part = parts.start + unit;
            let ranges: Vec<_> = runs
                .iter()
                .map(|run| self.split_keys.part_in(part, run))
                .collect();
            check_cancelled(clock)?;
            let mut keys = Keys::default();
            keys.reserve(ranges.iter().map(ExactSizeIterator::len).sum())?;
            for (run, range) in runs.iter().zip(ranges) {
                keys.append_some(run, range)?;
            }
            sorters.sort(&mut keys);
            *lock(&taken[unit]) = keys;
            Ok(())
        })?;
        let taken = taken.into_iter();
        Ok(taken
            .map(|keys| keys.into_inner().unwrap_or_else(|lock| lock.into_inner()))
            .collect())
    }

    /// Builds the stretches of sorted parts that follow one another.
    fn build_stretches<C: BuildThreads>(
        &self,
        build_threads: &C,
        parts: &[Keys],
        before: Option<&[u8]>,
        after: Option<&[u8]>,
        stretches: &mut Stretches<'_>,
    ) -> Result<(), EngineError> {
        let built: Vec<Mutex<Option<Built>>> = parts.iter().map(|_| Mutex::new(None)).collect();
        let target = &self.target;
        let work = |session: &Session, clock: &C::Clock, unit: usize| {
            let previous = unit.checked_sub(1).and_then(|unit| parts[unit].last());
            let next = parts.get(unit + 1).and_then(Keys::first);
            let previous = previous.as_ref().map(AsRef::as_ref).or(before);
            let next = next.as_ref().map(AsRef::as_ref).or(after);
            let memory = session.new_tree_memory();
            // SAFETY: nothing else uses the tree (caller).
            let tree = unsafe { Tree::new(&target.1.storage().root, &memory) };
            let go_on = || check_cancelled(clock);
            let mut groups = parts[unit].groups(session, &go_on);
            let part = tree
                .build_part(previous, groups.by_ref(), next)
                .map_err(|error| failed(session, error));
            let (part, failure) = match part {
                Ok(part) => (part, None),
                Err(error) => (TreePart::default(), Some(Stopped::Failed(error))),
            };
            let stopped = groups.stopped.take().or(failure);
            let postings = std::mem::take(&mut groups.postings);
            *lock(&built[unit]) = Some((part, postings, stopped));
            if !C::REPORTS_DUPLICATES {
                let progress = session.engine().progress();
                progress
                    .index_entries_built
                    .fetch_add(parts[unit].len() as u64, Ordering::Relaxed);
            }
            Ok(())
        };
        // The clock may unwind; the stretches know then, too, what was built.
        let outcome = catch_unwind(AssertUnwindSafe(|| build_threads.run(parts.len(), work)));
        let mut failure = None;
        for (keys, built) in parts.iter().zip(built) {
            let Some((part, postings, stopped)) =
                built.into_inner().unwrap_or_else(|lock| lock.into_inner())
            else {
                continue;
            };
            stretches.parts.push(part);
            stretches.postings.extend(postings);
            stretches.entries += keys.len() as i64;
            match stopped {
                Some(Stopped::Failed(error)) => failure = failure.or(Some(error)),
                Some(Stopped::Duplicate(row_ids)) => {
                    stretches.duplicate.get_or_insert(row_ids);
                }
                None => {}
            }
        }
        match outcome {
            Ok(outcome) => outcome.and(failure.map_or(Ok(()), Err)),
            Err(unwinding) => resume_unwind(unwinding),
        }
    }
}

impl<'a> Stretches<'a> {
    /// Of an index that nothing else uses before they are dropped.
    pub(super) fn new(session: &'a Session, index: IndexRef) -> Stretches<'a> {
        Stretches {
            session,
            index,
            parts: Vec::new(),
            postings: Vec::new(),
            entries: 0,
            duplicate: None,
            has_met_keyless: false,
        }
    }

    pub(super) fn join(&mut self) -> Result<(), EngineError> {
        let memory = self.session.new_tree_memory();
        // SAFETY: nothing else uses the tree (`new`).
        let tree = unsafe { Tree::new(&self.index.storage().root, &memory) };
        tree.join_parts(std::mem::take(&mut self.parts))
            .map_err(|error| failed(self.session, error))?;
        // The tree's now.
        self.postings.clear();
        let counters = &self.index.storage().counters;
        counters.entries.store(self.entries, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Stretches<'_> {
    fn drop(&mut self) {
        let memory = self.session.new_tree_memory();
        // SAFETY: nothing else uses the tree (`new`).
        let tree = unsafe { Tree::new(&self.index.storage().root, &memory) };
        for part in self.parts.drain(..) {
            tree.free_part(part);
        }
        for block in self.postings.drain(..).filter_map(Posting::of) {
            // SAFETY: never published.
            unsafe { block.free(&self.session.local) };
        }
    }
}

/// As many sorters as threads sort at a time.
#[derive(Default)]
struct Sorters(Mutex<Vec<Sorter>>);

impl Sorters {
    fn sort(&self, keys: &mut Keys) {
        let free = lock(&self.0).pop();
        let mut sorter = free.unwrap_or_default();
        keys.sort(&mut sorter);
        let mut free = lock(&self.0);
        if free.try_reserve(1).is_ok() {
            free.push(sorter);
        }
    }
}

/// Puts the parts together and sorts each.
fn sort<C: BuildThreads>(
    build_threads: &C,
    collected: Vec<Mutex<Vec<Keys>>>,
    parts: usize,
) -> Result<Vec<Keys>, EngineError> {
    let sorted: Vec<Mutex<Keys>> = (0..parts).map(|_| Mutex::default()).collect();
    let sorters = Sorters::default();
    build_threads.run(parts, |_, _, part| {
        let mut keys = Keys::default();
        for unit in &collected {
            let taken = lock(unit).get_mut(part).map(std::mem::take);
            keys.append(taken.unwrap_or_default())?;
        }
        sorters.sort(&mut keys);
        *lock(&sorted[part]) = keys;
        Ok(())
    })?;
    let sorted = sorted.into_iter();
    Ok(sorted
        .map(|keys| keys.into_inner().unwrap_or_else(|lock| lock.into_inner()))
        .collect())
}

/// A thread that panicked ends the build anyhow.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|lock| lock.into_inner())
}

fn failed(session: &Session, error: BulkError) -> EngineError {
    match error {
        BulkError::OutOfMemory => session.index_full(),
        _ => EngineError::Corrupt {
            what: "index keys out of order",
        },
    }
}
