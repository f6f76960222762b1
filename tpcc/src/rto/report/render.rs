//! The report as text.

use super::{Report, Start};
use crate::engine::Engine;
use crate::rto::cost::{self, Cost};
use crate::rto::steady::Condition;
use std::fmt::Write as _;

impl Report {
    /// The report as text.
    pub(in crate::rto) fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\nTime until rows can be read or written again, in seconds"
        );
        for size in &self.sizes {
            let _ = writeln!(
                text,
                "\n{} warehouses, {} MB of rows and indexes in memory",
                size.warehouses,
                size.mot_bytes / 1_000_000
            );
            for (name, seconds) in size.bars() {
                let _ = writeln!(text, "  {name:<24}{seconds:>9.2}");
            }
            if let Some(start) = &size.cold_start {
                phases(&mut text, "cold start", start);
            }
            if let Some(crash) = &size.crash {
                phases(&mut text, "crash recovery", &crash.start);
                told(
                    &mut text,
                    "crash",
                    crash.acknowledged,
                    crash.acknowledged_lost,
                );
            }
            if let Some(it) = &size.failover {
                let _ = writeln!(
                    text,
                    "  failover: promoted after {:.2}; before it: base backup {:.1}, standby's start {:.1}",
                    it.promote_seconds, it.backup_seconds, it.standby_start_seconds
                );
                told(&mut text, "failover", it.acknowledged, it.acknowledged_lost);
            }
            for (name, condition) in [
                ("checkpoints back to back", Condition::Checkpoints),
                ("asynchronous standby", Condition::Asynchronous),
                ("synchronous standby", Condition::Synchronous),
            ] {
                let costs = [Engine::Mot, Engine::Heap]
                    .map(|engine| cost::of(&size.steady, condition, engine));
                if let [Some(mot), Some(heap)] = costs {
                    let _ = writeln!(
                        text,
                        "  {name}: of the tpmC without, MOT keeps {}, heap {}; p99 times {} and {}",
                        mot.tpmc, heap.tpmc, mot.p99, heap.p99
                    );
                    for (engine, cost) in [("MOT", &mot), ("heap", &heap)] {
                        cpu(&mut text, engine, cost);
                    }
                    for (engine, cost) in [("MOT", mot), ("heap", heap)] {
                        if let (Some(lag), Some(seconds)) =
                            (cost.lag_bytes_max, cost.catch_up_seconds_max)
                        {
                            let _ = writeln!(
                                text,
                                "    {engine}: the standby was at most {} kB behind, and caught up within \
                                 {seconds:.2} s of the load's end",
                                lag / 1000
                            );
                        }
                    }
                }
            }
            for note in &size.notes {
                let _ = writeln!(text, "  note: {note}");
            }
            for complaint in size.complaints() {
                let _ = writeln!(text, "  ! {complaint}");
            }
        }
        let verdict = if self.is_good() {
            "nothing acknowledged was lost, every check held"
        } else {
            "SOMETHING WENT WRONG"
        };
        let _ = writeln!(text, "\n{verdict}; {:.0} s", self.seconds_taken);
        text
    }
}

/// What the primary's processes pay, and what a standby takes that elsewhere has a machine of its
/// own.
fn cpu(text: &mut String, engine: &str, cost: &Cost) {
    let primary = cost.primary_cpu_us;
    let _ = write!(
        text,
        "    {engine}: a transaction takes {:.0} us of the primary's CPU, times {} of that without",
        primary.all, cost.primary_cpu
    );
    let _ = match (cost.standby_cpu_us, cost.checkpoints) {
        (Some(standby), _) => writeln!(
            text,
            " (walsender {:.0}), and {:.0} of the standby's (startup process {:.0})",
            primary.log, standby.all, standby.log
        ),
        (None, Some(checkpoints)) => writeln!(text, "; {checkpoints} checkpoints"),
        (None, None) => writeln!(text),
    };
}

fn phases(text: &mut String, drill: &str, start: &Start) {
    let _ = writeln!(
        text,
        "  {drill}: answers after {:.2}, load {:.2} ({} rows, {} MB)",
        start.up_seconds,
        start.load_seconds(),
        start.number("rows_loaded"),
        (start.number("bytes_loaded") / 1e6) as i64
    );
    for line in &start.log {
        let _ = writeln!(text, "    {line}");
    }
}

fn told(text: &mut String, drill: &str, acknowledged: usize, lost: usize) {
    let _ = writeln!(
        text,
        "  {drill}: {acknowledged} transactions acknowledged, {lost} lost"
    );
}
