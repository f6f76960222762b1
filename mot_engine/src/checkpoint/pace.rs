//! How fast a checkpoint writes: as fast as it can, within a bandwidth, or spread over a time as long as nobody is in a hurry.
//!
//! Contract: [`Pace::wrote`] and [`Pace::came_to`] are called when nothing is pinned and no latch is held; they sleep in short slices and ask at
//! each whether somebody waits for the checkpoint, for then no limit holds any more.

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
    /// Whether it is known that nobody minds how long it takes: asked at each slice of a spread checkpoint.
    fn has_time(&self) -> bool {
        false
    }
}

/// A bandwidth and a schedule, shared by all threads of a checkpoint.
pub struct Pace<'a> {
    limit: Option<(u64, &'a dyn Timer)>,
    spread: Option<(Duration, &'a dyn Timer)>,
    written: AtomicU64,
}

impl<'a> Pace<'a> {
    /// No limit.
    pub fn unlimited() -> Self {
        Pace {
            limit: None,
            spread: None,
            written: AtomicU64::new(0),
        }
    }

    /// At most `bytes_per_second`; 0 is no limit.
    pub fn limited(bytes_per_second: u64, timer: &'a dyn Timer) -> Self {
        Pace {
            limit: (bytes_per_second != 0).then_some((bytes_per_second, timer)),
            spread: None,
            written: AtomicU64::new(0),
        }
    }

    /// Besides: spread evenly over `time` while the timer says that there is time.
    pub fn spread_over(self, time: Duration, timer: &'a dyn Timer) -> Self {
        Pace {
            spread: Some((time, timer)),
            ..self
        }
    }

    /// So many units of all are done: sleeps until that many are due, as long as there is time.
    pub(super) fn came_to(&self, done: u64, all: u64) {
        let Some((time, timer)) = self.spread else {
            return;
        };
        let due = time.mul_f64(done.min(all) as f64 / all.max(1) as f64);
        loop {
            let left = due.saturating_sub(timer.elapsed());
            if left.is_zero() || !timer.has_time() || timer.must_hurry() {
                return;
            }
            timer.sleep(left.min(SLICE));
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
        has_time_until: u64,
        hurry_at: u64,
        longest: AtomicU64,
    }

    impl Simulated {
        fn new(hurry_at: Duration) -> Self {
            Simulated {
                nanos: AtomicU64::new(0),
                has_time_until: u64::MAX,
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
        fn has_time(&self) -> bool {
            self.nanos.load(Ordering::Relaxed) < self.has_time_until
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
    fn units_are_spread_while_there_is_time() {
        let (minute, seconds) = (Duration::from_secs(60), Duration::from_secs);
        let never = seconds(1 << 30);
        let timer = Simulated::new(never);
        let pace = Pace::unlimited().spread_over(minute, &timer);
        for (done, due) in [(1, 15), (2, 30), (2, 30), (4, 60)] {
            pace.came_to(done, 4);
            assert_eq!(timer.elapsed(), seconds(due));
        }
        // From a third on somebody waits.
        let timer = Simulated {
            has_time_until: seconds(20).as_nanos() as u64,
            ..Simulated::new(never)
        };
        let pace = Pace::unlimited().spread_over(minute, &timer);
        (1..=4).for_each(|done| pace.came_to(done, 4));
        assert_eq!(timer.elapsed(), seconds(20));
        // The server shuts down, whatever the checkpointer does.
        let timer = Simulated::new(seconds(30));
        let pace = Pace::unlimited().spread_over(minute, &timer);
        (1..=4).for_each(|done| pace.came_to(done, 4));
        assert_eq!(timer.elapsed(), seconds(30));
        let timer = Simulated::new(never);
        Pace::unlimited().came_to(1, 1);
        Pace::limited(1, &timer).came_to(1, 1);
        assert_eq!(timer.elapsed(), Duration::ZERO);
    }

    #[test]
    fn no_limit_asks_nobody() {
        let timer = Simulated::new(Duration::from_secs(1));
        Pace::limited(0, &timer).wrote(u64::MAX);
        Pace::unlimited().wrote(u64::MAX);
        assert_eq!(timer.elapsed(), Duration::ZERO);
    }
}
