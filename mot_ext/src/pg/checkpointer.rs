//! Whether PostgreSQL's checkpointer takes its time.
//!
//! It spreads the writing of buffers over `checkpoint_completion_target` of `checkpoint_timeout`
//! unless a process waits for the checkpoint (CHECKPOINT, a backup, a shutdown) or the WAL grows
//! fast; no hook says which it is. But while it is ahead of its schedule it sleeps between buffers,
//! with a wait event of that name, and stops doing so as soon as a process waits. That is what is
//! read here.
//!
//! The wait event of a process that ended in its sleep (because the postmaster is gone) stays, so
//! its process number is read, too.
use super::interrupts;
use super::version::{checkpointer, is_own_virtual};
use mot_engine::checkpoint;
use pgrx::pg_sys;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

unsafe extern "C" {
    static CheckPointTimeout: std::ffi::c_int;
    static CheckPointCompletionTarget: f64;
}

const WRITE_DELAY: u32 = pg_sys::WaitEventTimeout::WAIT_EVENT_CHECKPOINT_WRITE_DELAY;

/// How long its end is waited for, which nothing but a scheduler can delay.
const END_WAIT: Duration = Duration::from_secs(1);

/// Between two looks whether commits are through, in milliseconds.
const POLL_MS: i64 = 1;

/// The checkpointer's place among the processes.
#[derive(Clone, Copy)]
pub struct Checkpointer(NonNull<pg_sys::PGPROC>);

// SAFETY: the place is in shared memory and stays; one word of it is read.
unsafe impl Sync for Checkpointer {}

impl Checkpointer {
    /// None while there is none.
    pub fn find() -> Option<Checkpointer> {
        // SAFETY: the list of processes is set up before any process starts. The field is the
        // checkpointer's own while it runs.
        unsafe { checkpointer(&*pg_sys::ProcGlobal).map(Checkpointer) }
    }

    /// Whether it lives and sleeps between two buffers because it is ahead of its schedule. For any
    /// thread: it reads shared memory.
    pub fn takes_its_time(&self) -> bool {
        let place = self.0.as_ptr();
        // SAFETY: `find` found the place; the words are written by its process alone, whole, and
        // any process may read them (pg_stat_activity does).
        let (pid, waits_for) = unsafe {
            (
                (&raw const (*place).pid).read_volatile(),
                (&raw const (*place).wait_event_info).read_volatile(),
            )
        };
        pid != 0 && waits_for == WRITE_DELAY
    }

    /// Ends it as an immediate shutdown does: it completes nothing any more. For when the
    /// postmaster is gone, which the checkpointer does not notice while it waits for a delayed
    /// checkpoint.
    pub fn end_at_once(&self) {
        // SAFETY: as above. It is 0 when the process has ended by itself.
        let pid = unsafe { (&raw const (*self.0.as_ptr()).pid).read_volatile() };
        // SAFETY: a signal to a process of this server; it ends there before it continues with
        // anything. 0 sends none.
        let send = |signal| unsafe { libc::kill(pid, signal) } == 0;
        if pid == 0 || !send(libc::SIGQUIT) {
            return;
        }
        let start = Instant::now();
        while send(0) && start.elapsed() < END_WAIT {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Over how long PostgreSQL spreads a checkpoint that no process waits for, by this process's
/// settings; `since_previous` is the time since the one before.
pub fn time_to_spread(since_previous: Option<Duration>) -> Duration {
    // SAFETY: plain settings of this process.
    let (seconds, target) = unsafe { (CheckPointTimeout, CheckPointCompletionTarget) };
    let timeout = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    checkpoint::time_to_spread(timeout, since_previous, target)
}

/// Waits until the transactions that were between their commit record and the commit log are past
/// that, as the checkpointer does behind its choice of a redo position: what is committed before
/// that position is in the commit log then. May raise.
pub fn wait_for_commits_under_way() {
    let mut count = 0;
    // SAFETY: collects under ProcArrayLock into memory of this context; every slot up to the count
    // is set.
    let mut under_way: Vec<pg_sys::VirtualTransactionId> = unsafe {
        let found = pg_sys::GetVirtualXIDsDelayingChkpt(&mut count, super::DELAY_START);
        let others = (0..count.max(0) as usize).map(|place| found.add(place).read());
        // The checkpoint worker has the flag up all the time.
        let others = others.filter(|transaction| !is_own_virtual(transaction));
        let others = others.collect();
        pg_sys::pfree(found.cast());
        others
    };
    let (all, count) = (under_way.as_mut_ptr(), under_way.len() as i32);
    let are_there = || {
        // SAFETY: the list outlives the call.
        unsafe { pg_sys::HaveVirtualXIDsDelayingChkpt(all, count, super::DELAY_START) }
    };
    while count > 0 && are_there() {
        interrupts::sleep_ms(POLL_MS);
    }
}
