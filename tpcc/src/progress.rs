//! The progress line: every second on a terminal, every ten seconds into a file.

use crate::terminal::Shared;
use std::io::{IsTerminal, Write};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Prints how fast things go.
pub(crate) struct Progress {
    enabled: bool,
    on_tty: bool,
    start: Instant,
    last: Instant,
    last_ended: u64,
    last_new_orders: u64,
}

impl Progress {
    pub(crate) fn new(enabled: bool) -> Self {
        let now = Instant::now();
        let on_tty = std::io::stderr().is_terminal();
        Progress {
            enabled,
            on_tty,
            start: now,
            last: now,
            last_ended: 0,
            last_new_orders: 0,
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(if self.on_tty { 1 } else { 10 })
    }

    /// Prints a line if it is time for one.
    pub(crate) fn tick(&mut self, shared: &Shared) {
        let passed = self.last.elapsed();
        if !self.enabled || passed < self.interval() {
            return;
        }
        let ended = shared.ended.load(Ordering::Relaxed);
        let new_orders = shared.new_orders.load(Ordering::Relaxed);
        let per_minute = |count: u64| count as f64 * 60.0 / passed.as_secs_f64();
        let line = format!(
            "{:>4} s  {:>7.0} new orders/min  {:>7.0} transactions/min",
            self.start.elapsed().as_secs(),
            per_minute(new_orders - self.last_new_orders),
            per_minute(ended - self.last_ended),
        );
        if self.on_tty {
            eprint!("\r{line}");
            // Progress that cannot be shown is not worth stopping for.
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{line}");
        }
        (self.last, self.last_ended, self.last_new_orders) = (Instant::now(), ended, new_orders);
    }

    /// Leaves the line.
    pub(crate) fn end(&mut self) {
        if self.enabled && self.on_tty {
            eprintln!();
        }
    }
}
