//! How fast a checkpoint writes: as fast as it can, or within a bandwidth.
//!
//! Contract: [`Pace::wrote`] is called when nothing is pinned and no latch is held; it sleeps in short slices and asks at each whether
//! somebody waits for the checkpoint, for then no limit holds any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longest sleep before it is asked again whether to hurry.
const SLICE: Duration = Duration::from_millis(10);

/// Time, and who waits: the server's, or a test's.
pub trait Timer: Sync {
    /// Time since the checkpoint began.
    fn elapsed(&self) -> Duration;
    /// Sleeps.
    fn sleep(&self, time: Duration);
    /// Whether to write as fast as possible from now on.
    fn must_hurry(&self) -> bool;
}

/// A bandwidth, shared by all threads of a checkpoint.
pub struct Pace<'a> {
    limit: Option<(u64, &'a dyn Timer)>,
    written: AtomicU64,
}

impl<'a> Pace<'a> {
    /// No limit.
    pub fn unlimited() -> Self {
        Pace {
            limit: None,
            written: AtomicU64::new(0),
        }
    }

    /// At most `bytes_per_second`; 0 is no limit.
    pub fn limited(bytes_per_second: u64, timer: &'a dyn Timer) -> Self {
        Pace {
            limit: (bytes_per_second != 0).then_some((bytes_per_second, timer)),
            written: AtomicU64::new(0),
        }
    }

    /// The calling thread has written so many bytes: sleeps until all that was written fits the bandwidth.
    pub(super) fn wrote(&self, bytes: u64) {
        let written = self.written.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let Some((limit, timer)) = self.limit else {
            return;
        };
        let nanos = u128::from(written) * 1_000_000_000 / u128::from(limit);
        let due = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        loop {
            let left = due.saturating_sub(timer.elapsed());
            if left.is_zero() || timer.must_hurry() {
                return;
            }
            timer.sleep(left.min(SLICE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Time passes by sleeping alone.
    struct Simulated {
        nanos: AtomicU64,
        hurry_at: u64,
        longest: AtomicU64,
    }

    impl Simulated {
        fn new(hurry_at: Duration) -> Self {
            Simulated {
                nanos: AtomicU64::new(0),
                hurry_at: hurry_at.as_nanos() as u64,
                longest: AtomicU64::new(0),
            }
        }
    }

    impl Timer for Simulated {
        fn elapsed(&self) -> Duration {
            Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
        }
        fn sleep(&self, time: Duration) {
            let nanos = time.as_nanos() as u64;
            self.nanos.fetch_add(nanos, Ordering::Relaxed);
            self.longest.fetch_max(nanos, Ordering::Relaxed);
        }
        fn must_hurry(&self) -> bool {
            self.nanos.load(Ordering::Relaxed) >= self.hurry_at
        }
    }

    #[test]
    fn bytes_take_as_long_as_the_bandwidth_says() {
        let timer = Simulated::new(Duration::MAX.min(Duration::from_secs(1 << 30)));
        let pace = Pace::limited(1000, &timer);
        for _ in 0..7 {
            pace.wrote(500);
        }
        assert_eq!(timer.elapsed(), Duration::from_millis(3500));
        let longest = timer.longest.load(Ordering::Relaxed);
        assert_eq!(Duration::from_nanos(longest), SLICE);
    }

    #[test]
    fn who_must_hurry_does_not_sleep_on() {
        let timer = Simulated::new(Duration::from_secs(2));
        let pace = Pace::limited(1, &timer);
        pace.wrote(1 << 40);
        pace.wrote(1 << 40);
        assert_eq!(timer.elapsed(), Duration::from_secs(2));
    }

    #[test]
    fn no_limit_asks_nobody() {
        let timer = Simulated::new(Duration::from_secs(1));
        Pace::limited(0, &timer).wrote(u64::MAX);
        Pace::unlimited().wrote(u64::MAX);
        assert_eq!(timer.elapsed(), Duration::ZERO);
    }
}
