//! The queue between the dispatcher, which reads the log, and the workers, which apply it.
//!
//! It is process-local. Records are copied into it once, gathered in batches. Every worker takes
//! every batch, in order, and a batch leaves when all workers have applied it. The dispatcher's
//! limit bounds the bytes of all batches, the open one included.
//!
//! - The open batch is sealed when it is large, or by the first worker that finds nothing else to
//!   do. So workers that are behind find large batches, and workers that are not find each record
//!   at once.
//! - A worker without work looks again every millisecond for a while, then sleeps until it is
//!   woken. The dispatcher wakes sleeping workers at once, the others when there is enough work.
//!   No worker spins.
//! - The lock is held for a copy of at most [`BATCH_BYTES`], never while a change is applied and
//!   never over the dispatcher's `pause`.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::errors::EngineError;
use crate::ids::{Lsn, Xid};
use crate::memory::ArenaFull;

/// A batch of so many bytes is sealed.
const BATCH_BYTES: usize = 64 << 10;
/// So many bytes are worth waking a worker that will look again soon by itself.
const WAKE_BYTES: usize = BATCH_BYTES / 4;
/// How soon a worker without work looks again, and how often before it sleeps.
const LOOK: Duration = Duration::from_millis(1);
const LOOKS: u32 = 50;
/// How often a worker that found no memory tries again by itself.
const RETRY: Duration = Duration::from_millis(100);
/// How often a dispatcher that waits hands control to its caller.
const PAUSE: Duration = Duration::from_millis(5);

/// Records, one behind the other.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    records: Vec<Entry>,
    /// How many records with definitions came before.
    pub(super) definitions: u64,
}

struct Entry {
    end: usize,
    lsn: Lsn,
    xid: Xid,
}

impl Batch {
    fn new(definitions: u64) -> Batch {
        Batch {
            definitions,
            ..Batch::default()
        }
    }

    fn push(&mut self, record: &[u8], lsn: Lsn, xid: Xid) -> Result<(), EngineError> {
        let reserved = self.bytes.try_reserve(record.len()).is_ok();
        if !reserved || self.records.try_reserve(1).is_err() {
            return Err(EngineError::OutOfProcessMemory);
        }
        self.bytes.extend_from_slice(record);
        self.records.push(Entry {
            end: self.bytes.len(),
            lsn,
            xid,
        });
        Ok(())
    }

    pub(super) fn records(&self) -> impl Iterator<Item = (&[u8], Lsn, Xid)> {
        let mut start = 0;
        self.records.iter().map(move |entry| {
            let record = &self.bytes[start..entry.end];
            start = entry.end;
            (record, entry.lsn, entry.xid)
        })
    }

    fn cost(&self) -> usize {
        self.records.len() * ENTRY_BYTES + self.bytes.len()
    }
}

const ENTRY_BYTES: usize = size_of::<Entry>();

/// What a record takes of the queue's limit.
pub(super) fn cost(record: &[u8]) -> usize {
    record.len() + ENTRY_BYTES
}

/// A worker found no memory.
#[derive(Copy, Clone)]
struct Stall {
    full: ArenaFull,
    lsn: Lsn,
    /// The dispatcher's call to try again that this was the answer to.
    answers: u64,
}

#[derive(Default)]
struct WorkerState {
    /// Batches taken and done since the beginning.
    taken: u64,
    done: u64,
    stall: Option<Stall>,
}

#[derive(Default)]
struct State {
    /// Batches that not all workers have done; the first one's number.
    sealed: VecDeque<Arc<Batch>>,
    first: u64,
    open: Batch,
    /// Cost of all of them.
    cost: usize,
    workers: Vec<WorkerState>,
    /// Workers without work, and those of them that sleep until they are woken.
    waiting: usize,
    asleep: usize,
    dispatcher_waits: bool,
    /// Calls to try again.
    calls: u64,
    definitions: u64,
    failure: Option<(Lsn, EngineError)>,
    has_failed: bool,
    has_stopped: bool,
}

impl State {
    fn seal(&mut self) {
        let open = std::mem::replace(&mut self.open, Batch::new(self.definitions));
        self.sealed.push_back(Arc::new(open));
    }
}

/// What keeps the dispatcher from continuing.
pub(super) enum Trouble {
    /// A worker has failed, at this record.
    Failed(Lsn, EngineError),
    /// A worker waits for memory, at this record.
    Full(Lsn, ArenaFull),
}

pub(super) struct Queue {
    state: Mutex<State>,
    /// For workers: there is work, or a call.
    work: Condvar,
    /// For the dispatcher: there is room, or trouble.
    room: Condvar,
}

impl Queue {
    pub(super) fn new(workers: usize) -> Queue {
        let state = State {
            workers: (0..workers).map(|_| WorkerState::default()).collect(),
            ..State::default()
        };
        Queue {
            state: Mutex::new(state),
            work: Condvar::new(),
            room: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|lock| lock.into_inner())
    }

    /// Dispatcher: waits until there is room for `cost` within `limit`; what is larger than the
    /// limit gets the queue for itself.
    pub(super) fn wait_for_room(
        &self,
        cost: usize,
        limit: usize,
        pause: &mut dyn FnMut(),
    ) -> Result<(), Trouble> {
        self.wait(pause, |state| state.cost == 0 || state.cost + cost <= limit)
    }

    /// Dispatcher: waits until everything is done.
    pub(super) fn wait_until_empty(&self, pause: &mut dyn FnMut()) -> Result<(), Trouble> {
        self.wait(pause, |state| state.cost == 0)
    }

    fn wait(
        &self,
        pause: &mut dyn FnMut(),
        is_enough: impl Fn(&State) -> bool,
    ) -> Result<(), Trouble> {
        loop {
            let mut state = self.lock();
            if state.has_failed {
                let known = EngineError::Corrupt {
                    what: "replay has failed before",
                };
                let (lsn, error) = state.failure.take().unwrap_or((Lsn::NONE, known));
                return Err(Trouble::Failed(lsn, error));
            }
            if state.workers.iter().any(|worker| worker.stall.is_some()) {
                self.call_stalled(state, pause)?;
                continue;
            }
            if is_enough(&state) {
                return Ok(());
            }
            if state.waiting > 0 {
                self.work.notify_all();
            }
            self.rest(state);
            pause();
        }
    }

    /// Lets workers that found no memory try again, and waits for their answers.
    fn call_stalled<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        pause: &mut dyn FnMut(),
    ) -> Result<(), Trouble> {
        state.calls += 1;
        let call = state.calls;
        self.work.notify_all();
        loop {
            let stalls = || state.workers.iter().filter_map(|worker| worker.stall);
            let all_answered = stalls().all(|stall| stall.answers >= call);
            if state.has_failed || all_answered {
                let first = stalls().min_by_key(|stall| stall.lsn);
                return first.map_or(Ok(()), |stall| Err(Trouble::Full(stall.lsn, stall.full)));
            }
            self.rest(state);
            pause();
            state = self.lock();
        }
    }

    /// Dispatcher: sleeps until there is news, or for a short time.
    fn rest(&self, mut state: MutexGuard<'_, State>) {
        state.dispatcher_waits = true;
        let (mut state, _) = self
            .room
            .wait_timeout(state, PAUSE)
            .unwrap_or_else(|lock| lock.into_inner());
        state.dispatcher_waits = false;
    }

    /// Dispatcher: puts a record in. There is room.
    pub(super) fn put(&self, record: &[u8], lsn: Lsn, xid: Xid) -> Result<(), EngineError> {
        // A large record is copied before the lock is taken.
        let mut own = Batch::default();
        let is_large = record.len() >= BATCH_BYTES;
        if is_large {
            own.push(record, lsn, xid)?;
        }
        let mut state = self.lock();
        if is_large {
            if !state.open.records.is_empty() {
                state.seal();
            }
            own.definitions = state.definitions;
            state.open = own;
        } else {
            state.open.push(record, lsn, xid)?;
        }
        state.cost += cost(record);
        let gathered = state.open.bytes.len();
        if gathered >= BATCH_BYTES {
            state.seal();
        }
        if state.asleep > 0 || (state.waiting > 0 && gathered >= WAKE_BYTES) {
            self.work.notify_all();
        }
        Ok(())
    }

    /// Dispatcher: definitions change; the queue is empty.
    pub(super) fn definitions_change(&self) {
        let mut state = self.lock();
        state.definitions += 1;
        state.open.definitions = state.definitions;
    }

    /// Workers are to end; what is queued is not applied any more.
    pub(super) fn stop(&self) {
        self.lock().has_stopped = true;
        self.work.notify_all();
        self.room.notify_all();
    }

    /// A worker's next batch; None: it is to end.
    pub(super) fn take(&self, worker: usize) -> Option<Arc<Batch>> {
        let mut state = self.lock();
        let mut looks = 0;
        loop {
            if state.has_stopped {
                return None;
            }
            let number = state.workers[worker].taken;
            let place = (number - state.first) as usize;
            if let Some(batch) = state.sealed.get(place).map(Arc::clone) {
                state.workers[worker].taken += 1;
                return Some(batch);
            }
            if !state.open.records.is_empty() {
                state.seal();
                continue;
            }
            state.waiting += 1;
            if looks < LOOKS {
                looks += 1;
                (state, _) = self
                    .work
                    .wait_timeout(state, LOOK)
                    .unwrap_or_else(|lock| lock.into_inner());
            } else {
                state.asleep += 1;
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(|lock| lock.into_inner());
                state.asleep -= 1;
            }
            state.waiting -= 1;
        }
    }

    /// A worker has done the batch that it took last.
    pub(super) fn done(&self, worker: usize, batch: Arc<Batch>) {
        drop(batch);
        let mut state = self.lock();
        state.workers[worker].done += 1;
        let done = state
            .workers
            .iter()
            .map(|worker| worker.done)
            .min()
            .unwrap_or(0);
        let before = state.cost;
        while state.first < done {
            let batch = state.sealed.pop_front().expect("done by all, so sealed");
            state.first += 1;
            state.cost -= batch.cost();
        }
        if state.dispatcher_waits && state.cost < before {
            self.room.notify_one();
        }
    }

    /// A worker found no memory for the record that ends at `lsn`. Waits until it is to try again:
    /// gives the call that it answers then, or None if the worker is to end.
    pub(super) fn stall(
        &self,
        worker: usize,
        lsn: Lsn,
        full: ArenaFull,
        answers: u64,
    ) -> Option<u64> {
        let mut state = self.lock();
        state.workers[worker].stall = Some(Stall { full, lsn, answers });
        self.room.notify_one();
        if !state.has_stopped && state.calls == answers {
            (state, _) = self
                .work
                .wait_timeout(state, RETRY)
                .unwrap_or_else(|lock| lock.into_inner());
        }
        (!state.has_stopped).then_some(state.calls)
    }

    /// A worker that stalled has found memory.
    pub(super) fn end_stall(&self, worker: usize) {
        self.lock().workers[worker].stall = None;
        self.room.notify_one();
    }

    /// A worker cannot continue. The first reason counts.
    pub(super) fn fail(&self, lsn: Lsn, error: EngineError) {
        let mut state = self.lock();
        if !state.has_failed {
            state.has_failed = true;
            state.failure = Some((lsn, error));
        }
        self.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However slow the worker is, no more than the limit is under way, and nothing is lost or out
    /// of order. A record that is larger than the limit goes alone.
    #[test]
    fn the_limit_holds_while_the_worker_is_behind() {
        const LIMIT: usize = 4 * BATCH_BYTES;
        const RECORDS: u64 = 500;
        let queue = Queue::new(1);
        let mut seen = Vec::new();
        let mut most = 0;
        let mut worker = |queue: &Queue| {
            most = queue.lock().cost.max(most);
            let batch = queue.take(0).expect("does not stop");
            seen.extend(
                batch
                    .records()
                    .map(|(record, lsn, _)| (record.len(), lsn.0)),
            );
            queue.done(0, batch);
        };
        let length = |number: u64| match number {
            100 => 2 * LIMIT,
            _ => (number as usize * 7919) % (BATCH_BYTES + 5000),
        };
        let mut pauses = 0;
        for number in 1..=RECORDS {
            let record = vec![number as u8; length(number)];
            let waited = queue.wait_for_room(cost(&record), LIMIT, &mut || {
                pauses += 1;
                worker(&queue);
            });
            assert!(waited.is_ok());
            let put = queue.put(&record, Lsn(number), Xid(1));
            assert!(put.is_ok());
            let under_way = queue.lock().cost;
            assert!(under_way <= LIMIT || under_way == cost(&record));
        }
        assert!(pauses > 10);
        assert!(queue.wait_until_empty(&mut || worker(&queue)).is_ok());
        let expected: Vec<_> = (1..=RECORDS)
            .map(|number| (length(number), number))
            .collect();
        assert_eq!(seen, expected);
        assert!(most > LIMIT / 2);
    }
}
