//! Watching a row's owner for a moment before sleeping on its transaction.
//!
//! An owner whose client commits with each statement, asynchronously, ends some ten microseconds
//! after its change. To sleep until then costs both more than that: lock manager, semaphore, two
//! switches of context. So the head of a row's queue first watches the owner's process.
//!
//! - Only the head watches: it has the tuple lock, all others sleep on that. So the order of the
//!   queue is what it was. (A session that holds a lock on the row already does not queue, and
//!   watches, too.)
//! - What it learns is only that reading the row again is worth while: PostgreSQL, asked then,
//!   says that the transaction has ended. The engine resolves rows as ever. What was read in the
//!   process is a hint: the process may be another one by now, or the transaction have been
//!   prepared.
//! - Nothing is watched that sleeps: an owner that waits for its client, for another row, or for
//!   its commit to reach the disk.
//! - No process is woken by what the owner does, so the watch is short ([`WATCH_MAX`]). It ends
//!   when an interrupt comes. The wait that follows serves it, with deadlock detection, timeouts
//!   and its line in the context of an error; where none follows, the caller does.
//! - Watches that did not pay make a process pass over the next ones ([`Patience`]): an owner that
//!   computes, or one that does not run.
//! - With one processor the owner cannot run meanwhile: there is no watch.
//!
//! Measured with `make bench QUICK=1` on 2 processors, nothing else at work (8 clients, one row,
//! asynchronous commit; together with the shorter walk for locks of
//! `mot_engine/src/row/README.md`): 35,000 updates a second, 42 µs of the server's processors each,
//! heap tables in the same run 25,500 and 68 µs; a run without either change 28,900 and 53 µs, heap
//! 28,200 and 60 µs.
use crate::pg::interrupts;
use crate::pg::local::ProcessLocal;
use crate::pg::owner::Owner;
use crate::transaction::clock::{PgClock, narrow};
use mot_engine::{Clock, Xid};
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Longest watch. What an asynchronous one-row transaction still has to do when the next waiter has
/// reached the head takes 5 to 20 µs; to sleep and be woken costs about as much as this.
const WATCH_MAX: Duration = Duration::from_micros(30);

/// Looks between two readings of the clock; a look and its pause take about 50 ns.
const LOOKS_PER_READING: u32 = 16;

/// Most watches passed over after one that did not pay.
const PASSED_OVER_MAX: u32 = 63;

/// Watches until the transaction has ended. False: it has not, or was not watched; sleep.
pub fn until_ended(xid: Xid) -> bool {
    if !can_run_beside_us() || !PATIENCE.allows() {
        return false;
    }
    let Some(owner) = Owner::find(narrow(xid)) else {
        // It has ended, for a waiter that slept in the queue, most likely. If not, it is prepared,
        // or a subtransaction.
        return !PgClock.is_in_progress(xid);
    };
    // The process says so; PostgreSQL has to agree, or the caller would come again and again
    // without ever sleeping.
    let has_ended = watch(owner) && !PgClock.is_in_progress(xid);
    PATIENCE.learn(has_ended);
    has_ended
}

fn watch(owner: Owner) -> bool {
    if owner.is_asleep() {
        return owner.has_ended();
    }
    let start = Instant::now();
    loop {
        for _ in 0..LOOKS_PER_READING {
            if owner.has_ended() {
                return true;
            }
            std::hint::spin_loop();
        }
        if owner.is_asleep() || interrupts::is_pending() || start.elapsed() > WATCH_MAX {
            return owner.has_ended();
        }
    }
}

/// What this process has learned about watching.
struct Patience {
    /// Watches to pass over now.
    passes: Cell<u32>,
    /// Watches to pass over when the next one does not pay.
    passes_next: Cell<u32>,
}

static PATIENCE: ProcessLocal<Patience> = ProcessLocal(Patience {
    passes: Cell::new(0),
    passes_next: Cell::new(0),
});

impl Patience {
    fn allows(&self) -> bool {
        match self.passes.get().checked_sub(1) {
            Some(left) => {
                self.passes.set(left);
                false
            }
            None => true,
        }
    }

    fn learn(&self, has_paid: bool) {
        if has_paid {
            self.passes_next.set(0);
        } else {
            self.passes.set(self.passes_next.get());
            self.passes_next
                .set((2 * self.passes_next.get() + 1).min(PASSED_OVER_MAX));
        }
    }
}

/// Whether the owner may have a processor while this process has one.
fn can_run_beside_us() -> bool {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, |count| count.get()))
        > 1
}
