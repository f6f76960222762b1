//! Plain threads for checkpoints and loading.
//!
//! Contract: the threads run with every signal blocked, so that a server's signal handlers run only
//! in its own thread; the caller's mask is as before afterwards. They call nothing of PostgreSQL.
//! The first error is handed out, and stops the others at their next unit of work.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::errors::EngineError;

/// What a thread gives way by: about a third of the processor's time that another one gets beside
/// it.
const NICE: libc::c_int = 5;

/// The calling thread gives way to others from now on; there is no way back. Only for one that ends
/// soon and runs nothing but the engine: a process that waits for what it holds waits longer. What
/// it may not do it leaves.
#[cfg(target_os = "linux")]
pub(crate) fn give_way() {
    // SAFETY: both calls are about the calling thread alone (0), in Linux also the first; the
    // parameter is plain bits.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICE);
        let batch: libc::sched_param = std::mem::zeroed();
        // It does not interrupt others when it wakes up.
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &batch);
    }
}

/// See above: elsewhere the priority is the process's.
#[cfg(not(target_os = "linux"))]
pub(crate) fn give_way() {}

/// Hands out units of work 0..count, until all are taken or one failed.
pub struct NextUnit {
    next: AtomicUsize,
    count: usize,
    stopped: AtomicBool,
}

impl NextUnit {
    pub(crate) fn new(count: usize) -> NextUnit {
        NextUnit {
            next: AtomicUsize::new(0),
            count,
            stopped: AtomicBool::new(false),
        }
    }

    /// No more units are handed out.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// The next unit to do.
    pub fn take(&self) -> Option<usize> {
        if self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let unit = self.next.fetch_add(1, Ordering::Relaxed);
        if unit < self.count { Some(unit) } else { None }
    }

    /// Whether another thread has failed.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Blocks all signals of the calling thread while it lives; threads made meanwhile never take any.
pub struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    /// Blocks them.
    #[expect(clippy::new_without_default, reason = "it acts")]
    pub fn new() -> Self {
        // SAFETY: a sigset_t is plain bits, for which zero is a value; both calls only write to the
        // sets given.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            // It cannot fail with a valid `how`.
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            Self { before }
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: `before` is the mask that pthread_sigmask gave us.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}

/// Runs `work(thread number, units)` on `threads` threads and gives their results.
///
/// A single thread is the caller's own. A panic of a thread continues in the caller.
pub fn on_threads<T: Send>(
    threads: usize,
    units: usize,
    work: impl Fn(usize, &NextUnit) -> Result<T, EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    let threads = threads.clamp(1, units.max(1));
    let next = NextUnit::new(units);
    if threads == 1 {
        return Ok(vec![work(0, &next)?]);
    }
    let failure: Mutex<Option<EngineError>> = Mutex::new(None);
    let results = std::thread::scope(|scope| {
        let blocked = SignalsBlocked::new();
        let mut handles = Vec::new();
        for number in 0..threads {
            let (next, failure, work) = (&next, &failure, &work);
            let spawned = std::thread::Builder::new()
                .name(format!("mot {number}"))
                .spawn_scoped(scope, move || match work(number, next) {
                    Ok(result) => Some(result),
                    Err(error) => {
                        next.stop();
                        let mut failure = failure.lock().unwrap_or_else(|lock| lock.into_inner());
                        failure.get_or_insert(error);
                        None
                    }
                });
            match spawned {
                Ok(handle) => handles.push(handle),
                // Fewer threads do as well, if there is one.
                Err(_) if !handles.is_empty() => break,
                Err(_) => {
                    drop(blocked);
                    return Err(EngineError::OutOfProcessMemory);
                }
            }
        }
        drop(blocked);
        let mut results = Vec::new();
        let mut panic = None;
        for handle in handles {
            match handle.join() {
                Ok(result) => results.extend(result),
                Err(payload) => panic = Some(payload),
            }
        }
        if let Some(payload) = panic {
            std::panic::resume_unwind(payload);
        }
        Ok(results)
    })?;
    match failure
        .into_inner()
        .unwrap_or_else(|lock| lock.into_inner())
    {
        Some(error) => Err(error),
        None => Ok(results),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_done_once() {
        let results = on_threads(4, 1000, |_, units| {
            let mut done = Vec::new();
            while let Some(unit) = units.take() {
                done.push(unit);
            }
            Ok(done)
        })
        .expect("no thread fails");
        let mut all = results.concat();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        assert!(on_threads(3, 0, |_, units| Ok(units.take())).expect("works") == [None]);
    }

    #[test]
    fn the_first_error_stops_all() {
        let result = on_threads(2, usize::MAX, |_, units| {
            while let Some(unit) = units.take() {
                if unit == 100 {
                    return Err(EngineError::OutOfProcessMemory);
                }
            }
            Ok(())
        });
        assert!(matches!(result, Err(EngineError::OutOfProcessMemory)));
    }

    #[test]
    fn a_panic_goes_on_in_the_caller() {
        let result = std::panic::catch_unwind(|| {
            on_threads(2, 2, |number, _| {
                assert!(number != 1, "made up");
                Ok(())
            })
        });
        assert!(result.is_err());
    }
}
