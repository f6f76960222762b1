//! How fast a checkpoint writes: as fast as it can, within a bandwidth, or spread over a time as
//! long as no process is in a hurry.
//!
//! Contract: [`Pace::wrote`] and [`Pace::before_unit`] are called when nothing is pinned and no
//! latch is held; they sleep in short slices and ask at each whether a process waits for the
//! checkpoint, for then no limit holds any more, and whether any process has a use for it at all:
//! if not, they end it with `Cancelled`. A unit is waited for before it is written, so nothing is
//! waited for once the last one is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::errors::EngineError;
use crate::threads::NextUnit;

/// Longest sleep before it is asked again whether to hurry.
const SLICE: Duration = Duration::from_millis(10);

/// Time, and which processes wait: the server's, or a test's.
pub trait Timer: Sync {
    /// Time since the checkpoint began.
    fn elapsed(&self) -> Duration;
    /// Sleeps.
    fn sleep(&self, time: Duration);
    /// Whether to write as fast as possible from now on.
    fn must_hurry(&self) -> bool;
    /// Whether it is known that no process waits for it: asked at each slice of a spread
    /// checkpoint.
    fn has_time(&self) -> bool {
        false
    }
    /// Whether no process has a use for the checkpoint any more: the server is gone, and only this
    /// process keeps its memory.
    fn must_end(&self) -> bool {
        false
    }
}

/// How long a checkpoint is spread that PostgreSQL spreads over `target` of the time that it wants
/// between two of them.
///
/// That is `timeout`, or less where the volume of WAL causes them: then what has passed since the
/// one before began is the better guess. If that time is unknown (the first one since the
/// start) it is not spread at all.
pub fn time_to_spread(
    timeout: Duration,
    since_previous: Option<Duration>,
    target: f64,
) -> Duration {
    let between = since_previous.map_or(Duration::ZERO, |since| since.min(timeout));
    between.mul_f64(target.clamp(0.0, 1.0))
}

/// A bandwidth and a schedule, shared by all threads of a checkpoint.
pub struct Pace<'a> {
    limit: Option<(u64, &'a dyn Timer)>,
    spread: Option<(Duration, &'a dyn Timer)>,
    /// What says whether it is to end.
    timer: Option<&'a dyn Timer>,
    written: AtomicU64,
}

impl<'a> Pace<'a> {
    /// No limit.
    pub fn unlimited() -> Self {
        Pace {
            limit: None,
            spread: None,
            timer: None,
            written: AtomicU64::new(0),
        }
    }

    /// At most `bytes_per_second`; 0 is no limit.
    pub fn limited(bytes_per_second: u64, timer: &'a dyn Timer) -> Self {
        Pace {
            limit: (bytes_per_second != 0).then_some((bytes_per_second, timer)),
            spread: None,
            timer: Some(timer),
            written: AtomicU64::new(0),
        }
    }

    /// Besides: spread evenly over `time` while the timer says that there is time.
    pub fn spread_over(self, time: Duration, timer: &'a dyn Timer) -> Self {
        Pace {
            spread: Some((time, timer)),
            timer: Some(timer),
            ..self
        }
    }

    /// Whether the work is to continue.
    pub(super) fn is_wanted(&self) -> Result<(), EngineError> {
        match self.timer {
            Some(timer) if timer.must_end() => Err(EngineError::Cancelled),
            _ => Ok(()),
        }
    }

    /// So many units of all come before the one that is written next: sleeps until it is due, as
    /// long as there is time.
    pub(super) fn before_unit(
        &self,
        before: u64,
        all: u64,
        units: &NextUnit,
    ) -> Result<(), EngineError> {
        self.is_wanted()?;
        let Some((time, timer)) = self.spread else {
            return Ok(());
        };
        let due = time.mul_f64(before.min(all) as f64 / all.max(1) as f64);
        self.sleep_until(due, timer, units, || timer.has_time())
    }

    /// The calling thread has written so many bytes: sleeps until all that was written fits the
    /// bandwidth.
    pub(super) fn wrote(&self, bytes: u64, units: &NextUnit) -> Result<(), EngineError> {
        self.is_wanted()?;
        let written = self.written.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let Some((limit, timer)) = self.limit else {
            return Ok(());
        };
        let nanos = u128::from(written) * 1_000_000_000 / u128::from(limit);
        let due = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.sleep_until(due, timer, units, || true)
    }

    fn sleep_until(
        &self,
        due: Duration,
        timer: &dyn Timer,
        units: &NextUnit,
        may_sleep: impl Fn() -> bool,
    ) -> Result<(), EngineError> {
        loop {
            let left = due.saturating_sub(timer.elapsed());
            if left.is_zero() || units.is_stopped() || !may_sleep() || timer.must_hurry() {
                return Ok(());
            }
            timer.sleep(left.min(SLICE));
            self.is_wanted()?;
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
        gone_at: u64,
        longest: AtomicU64,
    }

    impl Simulated {
        fn new(hurry_at: Duration) -> Self {
            Simulated {
                nanos: AtomicU64::new(0),
                has_time_until: u64::MAX,
                hurry_at: hurry_at.as_nanos() as u64,
                gone_at: u64::MAX,
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
        fn must_end(&self) -> bool {
            self.nanos.load(Ordering::Relaxed) >= self.gone_at
        }
    }

    /// Goes through so many units as a single thread does.
    fn write_units(pace: &Pace<'_>, all: u64) -> Result<(), EngineError> {
        let units = NextUnit::new(all as usize);
        while let Some(unit) = units.take() {
            pace.before_unit(unit as u64, all, &units)?;
        }
        Ok(())
    }

    #[test]
    fn bytes_take_as_long_as_the_bandwidth_says() {
        let timer = Simulated::new(Duration::MAX.min(Duration::from_secs(1 << 30)));
        let pace = Pace::limited(1000, &timer);
        for _ in 0..7 {
            pace.wrote(500, &NextUnit::new(1)).expect("goes on");
        }
        assert_eq!(timer.elapsed(), Duration::from_millis(3500));
        let longest = timer.longest.load(Ordering::Relaxed);
        assert_eq!(Duration::from_nanos(longest), SLICE);
    }

    #[test]
    fn who_must_hurry_does_not_sleep_on() {
        let timer = Simulated::new(Duration::from_secs(2));
        let pace = Pace::limited(1, &timer);
        for _ in 0..2 {
            pace.wrote(1 << 40, &NextUnit::new(1)).expect("goes on");
        }
        assert_eq!(timer.elapsed(), Duration::from_secs(2));
    }

    #[test]
    fn units_are_spread_while_there_is_time() {
        let (minute, seconds) = (Duration::from_secs(60), Duration::from_secs);
        let never = seconds(1 << 30);
        let timer = Simulated::new(never);
        let pace = Pace::unlimited().spread_over(minute, &timer);
        let units = NextUnit::new(4);
        for (before, due) in [(0, 0), (1, 15), (2, 30), (2, 30), (3, 45)] {
            pace.before_unit(before, 4, &units).expect("goes on");
            assert_eq!(timer.elapsed(), seconds(due));
        }
        // From a third on a process waits.
        let timer = Simulated {
            has_time_until: seconds(20).as_nanos() as u64,
            ..Simulated::new(never)
        };
        write_units(&Pace::unlimited().spread_over(minute, &timer), 4).expect("goes on");
        assert_eq!(timer.elapsed(), seconds(20));
        // The server shuts down, whatever the checkpointer does.
        let timer = Simulated::new(seconds(30));
        write_units(&Pace::unlimited().spread_over(minute, &timer), 4).expect("goes on");
        assert_eq!(timer.elapsed(), seconds(30));
        let timer = Simulated::new(never);
        write_units(&Pace::unlimited(), 4).expect("goes on");
        write_units(&Pace::limited(1, &timer), 4).expect("goes on");
        assert_eq!(timer.elapsed(), Duration::ZERO);
    }

    #[test]
    fn checkpoints_that_come_early_are_spread_over_less() {
        let seconds = Duration::from_secs;
        let spread = |since| time_to_spread(seconds(300), since, 0.5);
        assert_eq!(spread(Some(seconds(300))), seconds(150));
        assert_eq!(spread(Some(seconds(100_000))), seconds(150));
        assert_eq!(spread(Some(seconds(10))), seconds(5));
        assert_eq!(spread(None), Duration::ZERO);
    }

    /// What comes after the last unit (syncs, the manifest) does not wait, so a checkpoint of one
    /// unit does not wait at all.
    #[test]
    fn nothing_is_waited_for_after_the_last_unit() {
        let timer = Simulated::new(Duration::from_secs(1 << 30));
        write_units(
            &Pace::unlimited().spread_over(Duration::from_secs(60), &timer),
            1,
        )
        .expect("goes on");
        assert_eq!(timer.elapsed(), Duration::ZERO);
    }

    #[test]
    fn who_was_stopped_does_not_sleep() {
        let timer = Simulated::new(Duration::from_secs(1 << 30));
        let pace = Pace::limited(1, &timer).spread_over(Duration::from_secs(60), &timer);
        let units = NextUnit::new(4);
        units.stop();
        pace.before_unit(3, 4, &units).expect("goes on");
        pace.wrote(1 << 20, &units).expect("goes on");
        assert_eq!(timer.elapsed(), Duration::ZERO);
    }

    /// An hour's sleep, be it for the bandwidth or the schedule, ends when the server is gone.
    #[test]
    fn nothing_is_written_for_nobody() {
        let at = Duration::from_secs(5);
        let gone = || Simulated {
            gone_at: at.as_nanos() as u64,
            ..Simulated::new(Duration::from_secs(1 << 30))
        };
        let timer = gone();
        let spread = Pace::unlimited().spread_over(Duration::from_secs(3600), &timer);
        let ended = write_units(&spread, 2);
        assert!(matches!(ended, Err(EngineError::Cancelled)));
        assert_eq!(timer.elapsed(), at);
        let timer = gone();
        let ended = Pace::limited(1, &timer).wrote(3600, &NextUnit::new(1));
        assert!(matches!(ended, Err(EngineError::Cancelled)));
        assert_eq!(timer.elapsed(), at);
        // Nor what needs no sleep.
        let ended = write_units(&Pace::limited(0, &timer), 1);
        assert!(matches!(ended, Err(EngineError::Cancelled)));
        assert!(matches!(
            Pace::limited(0, &timer).is_wanted(),
            Err(EngineError::Cancelled)
        ));
    }

    #[test]
    fn no_limit_asks_nobody() {
        let timer = Simulated::new(Duration::from_secs(1));
        let units = NextUnit::new(1);
        Pace::limited(0, &timer)
            .wrote(u64::MAX, &units)
            .expect("goes on");
        Pace::unlimited().wrote(u64::MAX, &units).expect("goes on");
        assert_eq!(timer.elapsed(), Duration::ZERO);
    }
}
