//! What the machine itself gives while something long is measured: a guest on a shared machine gets
//! faster and slower memory, processors and disks from one minute to the next, and without a
//! measure of that a curve over an hour says as little of the tables as of the neighbours.
//!
//! A sample is taken every [`INTERVAL`]: arithmetic in registers, dependent reads at random places
//! of [`MEMORY_BYTES`] (which no cache holds), and flushes of a page. The first two are counted for
//! processor time of the thread, so that what is measured beside it takes away nothing but its
//! share of caches and memory bandwidth; a flush waits, and so for the server's flushes, too. All
//! of it is less than a hundredth of a processor.

use crate::machine::flush_milliseconds;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tpcc::failure::{Failure, Result};

/// Time between two samples.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);
/// Memory that is read at random: more than a processor's caches hold.
const MEMORY_BYTES: usize = 256 << 20;
/// What one read fetches: a line of the processor's caches.
const LINE_BYTES: usize = 64;
/// Reads of a sample: some ten milliseconds.
const READS: usize = 100_000;
/// Steps of arithmetic in a sample: some five milliseconds.
const STEPS: u64 = 4_000_000;
/// Flushes of a sample, of which the middle one counts.
const FLUSHES: usize = 5;

/// What one sample found, all of it better when larger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// Steps of arithmetic in a millisecond of processor time.
    pub arithmetic: u64,
    /// Reads of memory in a millisecond of processor time.
    pub reads: u64,
    /// Flushes of a page in a second.
    pub flushes: u64,
}

/// A thread that takes samples until it is asked for them.
pub(crate) struct Probe {
    stop: Sender<()>,
    thread: JoinHandle<Result<Vec<Sample>>>,
}

impl Probe {
    /// Begins. Pages are flushed in `directory`, where the server's files are.
    pub(crate) fn begin(directory: &Path) -> Result<Self> {
        let (stop, stopped) = channel();
        let directory = directory.to_owned();
        let thread = std::thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || sample_until(&stopped, directory))
            .map_err(|error| Failure::unexpected(format!("no thread for the probe: {error}")))?;
        Ok(Probe { stop, thread })
    }

    /// Ends; all samples, the first one from the begin.
    pub(crate) fn end(self) -> Result<Vec<Sample>> {
        // A thread that has failed no longer listens; what it says is below.
        let _ = self.stop.send(());
        self.thread
            .join()
            .unwrap_or_else(|_| Err(Failure::unexpected("the probe panicked")))
    }
}

fn sample_until(stopped: &Receiver<()>, directory: PathBuf) -> Result<Vec<Sample>> {
    let ring = ring(MEMORY_BYTES / LINE_BYTES);
    let mut at = 0;
    let mut samples = Vec::new();
    let begin = Instant::now();
    loop {
        samples.push(sample(&ring, &mut at, &directory)?);
        let next = INTERVAL * samples.len() as u32;
        match stopped.recv_timeout(next.saturating_sub(begin.elapsed())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(samples),
        }
    }
}

/// A line of memory that says where the next one is.
#[repr(align(64))]
#[derive(Clone)]
struct Line {
    next: u32,
}

const _: () = assert!(size_of::<Line>() == LINE_BYTES);

/// Lines in one ring that leads through all of them in no order a processor could guess (Sattolo's
/// shuffle).
fn ring(lines: usize) -> Vec<Line> {
    let mut ring: Vec<Line> = (0..lines as u32).map(|next| Line { next }).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15;
    for last in (1..lines).rev() {
        random = step(random);
        let other = (random % last as u64) as usize;
        let next = ring[last].next;
        ring[last].next = ring[other].next;
        ring[other].next = next;
    }
    ring
}

/// Marsaglia's xorshift.
fn step(mut value: u64) -> u64 {
    value ^= value << 13;
    value ^= value >> 7;
    value ^ (value << 17)
}

fn sample(ring: &[Line], at: &mut u32, directory: &Path) -> Result<Sample> {
    let arithmetic = per_millisecond(STEPS as f64, || {
        std::hint::black_box((0..STEPS).fold(1, |value, _| step(value)));
    });
    let reads = per_millisecond(READS as f64, || {
        for _ in 0..READS {
            *at = ring[*at as usize].next;
        }
        std::hint::black_box(*at);
    });
    let flush = flush_milliseconds(directory, FLUSHES).ok_or_else(|| {
        Failure::unexpected(format!("no page can be flushed in {}", directory.display()))
    })?;
    Ok(Sample {
        arithmetic,
        reads,
        flushes: (1e3 / flush) as u64,
    })
}

/// How many of `count` things `work` does in a millisecond of processor time.
fn per_millisecond(count: f64, work: impl FnOnce()) -> u64 {
    let before = thread_cpu_time();
    work();
    let spent = thread_cpu_time() - before;
    (count / (spent.as_secs_f64() * 1e3)) as u64
}

/// Processor time of this thread.
fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is this frame's own, and lives through the call.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "Linux has a clock for each thread");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_leads_through_all_lines() {
        let ring = ring(1000);
        let mut seen = vec![false; ring.len()];
        let mut at = 0;
        for _ in 0..ring.len() {
            assert!(!std::mem::replace(&mut seen[at], true));
            at = ring[at].next as usize;
        }
        assert_eq!(at, 0);
    }

    #[test]
    fn a_probe_has_a_sample_however_short_the_work() {
        let samples = Probe::begin(&std::env::temp_dir()).unwrap().end().unwrap();
        assert!(!samples.is_empty());
        let first = samples[0];
        assert!(
            first.arithmetic > 0 && first.reads > 0 && first.flushes > 0,
            "{first:?}"
        );
    }
}
