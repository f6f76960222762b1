//! Building an index from the rows that are there.
//!
//! Used by CREATE INDEX on a filled table and by recovery. Every data version of every chain that is not aborted gets its entry, so that
//! older snapshots find their rows through the new index, too. The caller makes sure that nobody changes the table meanwhile.
//!
//! A sample of the keys is cut into parts of some MiB. Then, in turns of as many parts as process memory is allowed for:
//! 1. Ranges of slots are walked; the keys of the turn's parts are collected, by range and part.
//! 2. Each part is put together, in slot order (it often is sorted then), and sorted.
//! 3. Each part's stretch of the tree is built, knowing its neighbours' keys. The last part of a turn waits for the next turn's first key.
//!
//! At last the stretches are joined. Within a step, a [`Crew`] shares ranges or parts among threads; small units keep it balanced,
//! whether there is one large table or many small ones.

use super::collect::{Collector, SLOTS_PER_PIN};
use super::keys::{Keys, Splitters, Stopped};
use super::posting::Posting;
use crate::checkpoint::on_threads;
use crate::clock::{Clock, check_cancelled};
use crate::engine::Engine;
use crate::errors::EngineError;
use crate::ids::{Slot, Xid};
use crate::memory::Urgency;
use crate::session::Session;
use crate::table::{IndexRef, TableRef};
use mot_index::{BulkError, Tree, TreePart};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

/// Keys looked at to place a cut: parts then differ in size by a fifth or so.
const SAMPLES_PER_PART: usize = 32;
/// Most parts; beyond that they grow.
const PARTS_MAX: usize = 2048;

/// How the work is cut.
struct Sizes {
    /// What a part's keys should take of process memory: some fit a core's cache in part, and a few hundred thousand entries are worth a
    /// thread's turn.
    part_bytes: usize,
    /// Slots walked as one unit of work.
    unit_slots: u64,
    /// Keys held at a time, as a share of the arena's size: the rows themselves take several times as much.
    arena_share: u64,
    /// But at least so many bytes.
    turn_bytes_min: u64,
}

/// Tests cut small tables into many parts and turns.
const SIZES: Sizes = if cfg!(test) {
    Sizes {
        part_bytes: 512,
        unit_slots: 16,
        arena_share: u64::MAX,
        turn_bytes_min: 1200,
    }
} else {
    Sizes {
        part_bytes: 8 << 20,
        unit_slots: 1 << 17,
        arena_share: 8,
        turn_bytes_min: 64 << 20,
    }
};

/// What became of a build.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Build {
    /// The index is filled.
    Done(IndexRef),
    /// Two live rows have the same key of a unique index; nothing was built.
    Duplicate {
        /// The rows, in slot order.
        slots: [Slot; 2],
    },
}

/// Who does the work.
pub(super) trait Crew {
    type Clock: Clock;

    /// Whether live rows that share a key of a unique index are reported.
    const REPORTS_DUPLICATES: bool;

    /// Calls `work` once for each unit below `units`, with a session of the calling thread.
    fn run(
        &self,
        units: usize,
        work: impl Fn(&Session, &Self::Clock, usize) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError>;
}

/// The calling thread alone, which may be cancelled between units.
struct Alone<'a, C, const REPORTS_DUPLICATES: bool> {
    session: &'a Session,
    clock: &'a C,
}

impl<C: Clock, const REPORTS_DUPLICATES: bool> Crew for Alone<'_, C, REPORTS_DUPLICATES> {
    type Clock = C;
    const REPORTS_DUPLICATES: bool = REPORTS_DUPLICATES;

    fn run(
        &self,
        units: usize,
        work: impl Fn(&Session, &C, usize) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError> {
        for unit in 0..units {
            check_cancelled(self.clock)?;
            work(self.session, self.clock, unit)?;
        }
        Ok(())
    }
}

/// Threads of recovery.
struct Threads {
    engine: Engine,
    threads: usize,
}

impl Crew for Threads {
    type Clock = Unjudged;
    const REPORTS_DUPLICATES: bool = false;

    fn run(
        &self,
        units: usize,
        work: impl Fn(&Session, &Unjudged, usize) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError> {
        on_threads(self.threads, units, |_, next| {
            let session = self.engine.join_for_recovery()?;
            let clock = Unjudged(self.engine);
            while let Some(unit) = next.take() {
                check_cancelled(&clock)?;
                work(&session, &clock, unit)?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// Leaves open what has no hint.
#[derive(Copy, Clone)]
struct Unjudged(Engine);

impl Clock for Unjudged {
    fn is_current(&self, _xid: Xid) -> bool {
        false
    }

    fn is_in_progress(&self, _xid: Xid) -> bool {
        true
    }

    fn did_commit(&self, _xid: Xid) -> bool {
        false
    }

    fn is_cancelled(&self) -> bool {
        self.0.progress().load_is_unwanted.load(Ordering::Relaxed) != 0
    }
}

/// Fills an empty index from the table's rows. The caller keeps the sweeper out until the index is published.
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

/// Fills an empty index while tables are being loaded: from rows of different moments, among which two may have the same key until the
/// log is replayed. So nothing is judged and nothing counts as a duplicate. As for `build`, the caller keeps the sweeper out.
pub(crate) fn build_unjudged(
    session: &Session,
    table: TableRef,
    index: IndexRef,
    threads: usize,
) -> Result<(), EngineError> {
    let engine = session.engine();
    let bytes = turn_bytes(session);
    let built = if is_small(table) {
        let crew = Alone::<_, false> {
            session,
            clock: &Unjudged(engine),
        };
        build_by(&crew, session, table, index, bytes)
    } else {
        build_by(&Threads { engine, threads }, session, table, index, bytes)
    };
    match built? {
        Build::Done(_) => Ok(()),
        Build::Duplicate { .. } => unreachable!("none is reported"),
    }
}

/// Whether an index of the table is too small to be shared among threads: whole indexes are, then.
pub(crate) fn is_small(table: TableRef) -> bool {
    table.slots_end().0 <= SIZES.unit_slots
}

/// Process memory that keys may take at a time.
fn turn_bytes(session: &Session) -> u64 {
    let limit = session.memory().memory().arena_bytes_limit();
    (limit / SIZES.arena_share).max(SIZES.turn_bytes_min)
}

fn build_by<C: Crew>(
    crew: &C,
    session: &Session,
    table: TableRef,
    index: IndexRef,
    turn_bytes: u64,
) -> Result<Build, EngineError> {
    let plan = Plan::make(session, table, index, turn_bytes)?;
    let mut stretches = Stretches::default();
    let outcome = plan
        .run(crew, &mut stretches)
        .and_then(|()| match stretches.duplicate.take() {
            Some(slots) => Ok(Build::Duplicate { slots }),
            None => stretches.join(session, index).map(|()| Build::Done(index)),
        });
    if !matches!(outcome, Ok(Build::Done(_))) {
        stretches.free(session, index);
    }
    outcome
}

/// A table and its index, handed to threads.
#[derive(Copy, Clone)]
struct Target(TableRef, IndexRef);

// SAFETY: storages of atomics, which the caller keeps alive during the build.
unsafe impl Sync for Target {}

/// How the keys are cut.
struct Plan {
    target: Target,
    slots_end: u64,
    splitters: Splitters,
    /// Parts collected in one turn.
    parts_per_turn: usize,
}

/// The stretches of the tree built so far, in order.
#[derive(Default)]
struct Stretches {
    parts: Vec<TreePart>,
    postings: Vec<u64>,
    entries: i64,
    duplicate: Option<[Slot; 2]>,
}

/// What a thread made of a part.
type Built = (TreePart, Vec<u64>, Option<Stopped>);

impl Plan {
    fn make(
        session: &Session,
        table: TableRef,
        index: IndexRef,
        turn_bytes: u64,
    ) -> Result<Plan, EngineError> {
        let slots_end = table.slots_end().0;
        let mut plan = Plan {
            target: Target(table, index),
            slots_end,
            splitters: Splitters::default(),
            parts_per_turn: 1,
        };
        // Too many parts for short keys, which does no harm.
        let parts_about =
            (slots_end as usize).saturating_mul(Keys::entry_bytes(0)) / SIZES.part_bytes + 1;
        if parts_about == 1 {
            return Ok(plan);
        }
        let samples = SAMPLES_PER_PART * parts_about.min(PARTS_MAX);
        let (sample, bytes) = Collector::new(session, table, index)?.sample(session, samples)?;
        let mean = bytes / sample.len().max(1);
        let total = (slots_end as usize).saturating_mul(Keys::entry_bytes(mean));
        let parts = (total / SIZES.part_bytes + 1).min(PARTS_MAX);
        plan.splitters = Splitters::choose(&sample, parts);
        let turns = (total as u64).div_ceil(turn_bytes).max(1) as usize;
        plan.parts_per_turn = plan.splitters.parts().div_ceil(turns);
        Ok(plan)
    }

    fn run<C: Crew>(&self, crew: &C, stretches: &mut Stretches) -> Result<(), EngineError> {
        let parts = self.splitters.parts();
        // The last part of the turn before, and the last key of what is built.
        let mut waiting: Option<Keys> = None;
        let mut before: Option<Vec<u8>> = None;
        let mut from = 0;
        while from < parts {
            let to = parts.min(from + self.parts_per_turn);
            let collected = self.collect(crew, from..to)?;
            let sorted = sort(crew, collected, to - from)?;
            let mut ready: Vec<Keys> = waiting.take().into_iter().collect();
            ready.extend(sorted.into_iter().filter(|keys| !keys.is_empty()));
            if to < parts {
                waiting = ready.pop();
            }
            let after = waiting.as_ref().and_then(Keys::first);
            let after = after.as_ref().map(AsRef::as_ref);
            self.build_stretches(crew, &ready, before.as_deref(), after, stretches)?;
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

    /// Walks the table. The keys of the parts, by range of slots.
    fn collect<C: Crew>(
        &self,
        crew: &C,
        parts: std::ops::Range<usize>,
    ) -> Result<Vec<Mutex<Vec<Keys>>>, EngineError> {
        let units = self.slots_end.div_ceil(SIZES.unit_slots) as usize;
        let collected: Vec<Mutex<Vec<Keys>>> = (0..units).map(|_| Mutex::new(Vec::new())).collect();
        let target = &self.target;
        crew.run(units, |session, clock, unit| {
            let mut collector = Collector::new(session, target.0, target.1)?;
            let mut keys: Vec<Keys> = parts.clone().map(|_| Keys::default()).collect();
            let first = unit as u64 * SIZES.unit_slots;
            let end = self.slots_end.min(first + SIZES.unit_slots);
            for from in (first..end).step_by(SLOTS_PER_PIN as usize) {
                check_cancelled(clock)?;
                let slots = from..end.min(from + SLOTS_PER_PIN);
                collector.walk(session, clock, slots, |key, mut origin| {
                    let part = self.splitters.part_of(key);
                    if parts.contains(&part) {
                        origin.live &= C::REPORTS_DUPLICATES;
                        keys[part - parts.start].push(key, origin)?;
                    }
                    Ok(())
                })?;
            }
            *lock(&collected[unit]) = keys;
            Ok(())
        })?;
        Ok(collected)
    }

    /// Builds the stretches of sorted parts that follow one another.
    fn build_stretches<C: Crew>(
        &self,
        crew: &C,
        parts: &[Keys],
        before: Option<&[u8]>,
        after: Option<&[u8]>,
        stretches: &mut Stretches,
    ) -> Result<(), EngineError> {
        let built: Vec<Mutex<Option<Built>>> = parts.iter().map(|_| Mutex::new(None)).collect();
        let target = &self.target;
        let outcome = crew.run(parts.len(), |session, clock, unit| {
            let previous = unit.checked_sub(1).and_then(|unit| parts[unit].last());
            let next = parts.get(unit + 1).and_then(Keys::first);
            let previous = previous.as_ref().map(AsRef::as_ref).or(before);
            let next = next.as_ref().map(AsRef::as_ref).or(after);
            let memory = session.tree_memory(Urgency::Ordinary);
            // SAFETY: nobody else uses the tree (caller).
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
            let stopped = groups.stopped.or(failure);
            *lock(&built[unit]) = Some((part, groups.postings, stopped));
            if !C::REPORTS_DUPLICATES {
                let progress = session.engine().progress();
                progress
                    .index_entries_built
                    .fetch_add(parts[unit].len() as u64, Ordering::Relaxed);
            }
            Ok(())
        });
        let mut failure = outcome.err();
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
                Some(Stopped::Duplicate(slots)) => {
                    stretches.duplicate.get_or_insert(slots);
                }
                None => {}
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

impl Stretches {
    fn join(&mut self, session: &Session, index: IndexRef) -> Result<(), EngineError> {
        let memory = session.tree_memory(Urgency::Ordinary);
        // SAFETY: nobody else uses the tree (caller).
        let tree = unsafe { Tree::new(&index.storage().root, &memory) };
        tree.join_parts(std::mem::take(&mut self.parts))
            .map_err(|error| failed(session, error))?;
        index
            .storage()
            .entries
            .store(self.entries, Ordering::Relaxed);
        Ok(())
    }

    fn free(&mut self, session: &Session, index: IndexRef) {
        let memory = session.tree_memory(Urgency::Ordinary);
        // SAFETY: nobody else uses the tree (caller).
        let tree = unsafe { Tree::new(&index.storage().root, &memory) };
        for part in self.parts.drain(..) {
            tree.free_part(part);
        }
        for block in self.postings.drain(..).filter_map(Posting::of) {
            // SAFETY: never published.
            unsafe { block.free(&session.local) };
        }
    }
}

/// Puts the parts together and sorts each.
fn sort<C: Crew>(
    crew: &C,
    collected: Vec<Mutex<Vec<Keys>>>,
    parts: usize,
) -> Result<Vec<Keys>, EngineError> {
    let sorted: Vec<Mutex<Keys>> = (0..parts).map(|_| Mutex::default()).collect();
    crew.run(parts, |_, _, part| {
        let mut keys = Keys::default();
        for unit in &collected {
            let taken = lock(unit).get_mut(part).map(std::mem::take);
            keys.append(taken.unwrap_or_default())?;
        }
        keys.sort();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transaction;
    use crate::all_committed::AllCommitted;
    use crate::ids::{CommandId, RelationKey};
    use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};
    use crate::memory::{ArenaOptions, HugePages, Memory, Purpose, Region};
    use crate::scan::{Direction, IndexScan, KeyRange};

    const KEY: RelationKey = RelationKey {
        database: 1,
        relation: 2,
    };
    const ROWS: u64 = 3000;

    /// A text of a common beginning, which makes layers, and a number.
    fn image(number: u64) -> Vec<u8> {
        let mut image = vec![0; 24];
        image[18] = 1;
        image[22] = 24;
        let text = format!("a common beginning {:05}", number * 7919 % 10_007);
        image.push((text.len() as u8 + 1) << 1 | 1);
        image.extend_from_slice(text.as_bytes());
        image
    }

    fn definition(relation: u32, unique: bool) -> IndexDefinition {
        IndexDefinition {
            relation,
            unique,
            nulls_not_distinct: false,
            columns: vec![KeyColumn {
                attnum: 1,
                kind: KeyKind::Text,
                descending: false,
                nulls_first: false,
                nullable: false,
            }],
            layout: vec![AttributeLayout {
                len: -1,
                align: 4,
                by_value: false,
            }],
        }
    }

    fn with_table(numbers: impl Iterator<Item = u64>, test: impl FnOnce(&Session, TableRef)) {
        let region = Region::create(64 << 20, HugePages::Off).expect("memory");
        // SAFETY: the region is fresh and outlives the engine.
        let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
        let session = Engine::format(memory)
            .and_then(Engine::join)
            .expect("formats");
        let mut transaction = Transaction::new();
        let table = transaction
            .create_table(&session, KEY, Xid(3))
            .expect("memory");
        for number in numbers {
            transaction
                .insert(&session, table, &image(number), Xid(3), CommandId(0))
                .expect("memory");
        }
        transaction.commit(&session);
        test(&session, table);
    }

    fn slots_of(session: &Session, table: TableRef, index: IndexRef) -> Vec<u64> {
        let mut scan = IndexScan::new();
        scan.start(table, index, &KeyRange::new(), Direction::Forward);
        std::iter::from_fn(|| scan.next(session, &AllCommitted).expect("scans"))
            .map(|(slot, _)| slot.0)
            .collect()
    }

    /// Many parts and turns, one thread and several: the same index, every row once and in order.
    #[test]
    fn parts_make_the_whole_index() {
        with_table(0..ROWS, |session, table| {
            let mut order: Vec<u64> = (0..ROWS).collect();
            order.sort_by_key(|number| number * 7919 % 10_007);
            let mut transaction = Transaction::new();
            for unique in [false, true] {
                let relation = 10 + u32::from(unique);
                let built = transaction
                    .create_index(
                        session,
                        &AllCommitted,
                        table,
                        &definition(relation, unique),
                        Xid(4),
                    )
                    .expect("builds");
                let Build::Done(index) = built else {
                    panic!("no key occurs twice")
                };
                assert_eq!(slots_of(session, table, index), order);
                assert_eq!(index.entry_count_estimate(), ROWS);
                let plan = Plan::make(session, table, index, turn_bytes(session)).expect("plans");
                let parts = plan.splitters.parts();
                assert!(
                    parts > 100 && plan.parts_per_turn < parts / 20,
                    "{parts} parts"
                );
                for threads in [1, 3] {
                    let id = crate::ids::IndexId(100 + threads as u64);
                    let again =
                        IndexRef::allocate(&session.local, id, table.0, &definition(50, unique), 0)
                            .expect("memory");
                    build_unjudged(session, table, again, threads).expect("builds");
                    assert_eq!(slots_of(session, table, again), order);
                    // SAFETY: never published.
                    unsafe { crate::transaction::free_index(session, again) };
                }
            }
            transaction.commit(session);
            session
                .check(table, &AllCommitted, |problem| panic!("{problem:?}"))
                .expect("looks at all");
        });
    }

    #[test]
    fn a_duplicate_leaves_nothing_behind() {
        let numbers = (0..ROWS).chain([ROWS / 2]);
        with_table(numbers, |session, table| {
            let bytes = || {
                session.memory().flush();
                session.memory().memory().purpose_bytes(Purpose::Index)
            };
            let before = bytes();
            let mut transaction = Transaction::new();
            let built = transaction
                .create_index(session, &AllCommitted, table, &definition(10, true), Xid(4))
                .expect("builds");
            let slots = [Slot(ROWS / 2), Slot(ROWS)];
            assert_eq!(built, Build::Duplicate { slots });
            assert_eq!(bytes(), before);
            // Recovery keeps both under one key until the log has been replayed.
            let definition = definition(10, true);
            let id = crate::ids::IndexId(100);
            let index =
                IndexRef::allocate(&session.local, id, table.0, &definition, 0).expect("memory");
            build_unjudged(session, table, index, 2).expect("builds");
            assert_eq!(index.entry_count_estimate(), ROWS + 1);
            assert_eq!(slots_of(session, table, index).len() as u64, ROWS + 1);
            // SAFETY: never published.
            unsafe { crate::transaction::free_index(session, index) };
            assert_eq!(bytes(), before);
        });
    }
}
