//! The one table the demo prints.

use super::summary::{Column, Summary};
use crate::inputs::Kind;
use crate::terminal::Mode;
use std::fmt::Write as _;

struct Table(String);

impl Table {
    fn line(&mut self, name: &str, mot: &str, heap: &str, ratio: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{name:<44}{mot:>17}{heap:>17}{ratio:>8}");
    }

    /// A line of two numbers and their ratio.
    fn numbers(&mut self, name: &str, digits: usize, value: impl Fn(Column) -> f64) {
        let (mot, heap) = (value(Column::Mot), value(Column::Heap));
        let ratio = format!("{:.2}", mot / heap);
        self.line(
            name,
            &format!("{mot:.digits$}"),
            &format!("{heap:.digits$}"),
            &ratio,
        );
    }
}

/// Renders the table.
pub(super) fn render(summary: &Summary) -> String {
    let mut table = Table(String::new());
    let quick = if summary.quick { ", quick" } else { "" };
    let _ = writeln!(
        table.0,
        "\nTPC-C, {} warehouses, {} terminals, synchronous_commit = on, medians of {} x {:.0} s{quick}",
        summary.warehouses, summary.terminals, summary.rounds, summary.seconds_per_run
    );
    let _ = writeln!(table.0, "{}", summary.machine);
    if summary.stand_in {
        let _ = writeln!(
            table.0,
            "HEAP TABLES IN BOTH COLUMNS: a trial of the demo itself"
        );
    }
    table.line("", "MOT", "heap", "ratio");
    for mode in [Mode::Interactive, Mode::Procedures] {
        table.numbers(&format!("tpmC, {mode}"), 0, |column| {
            summary.tpmc(column, mode)
        });
    }
    for mode in [Mode::Interactive, Mode::Procedures] {
        for kind in Kind::ALL {
            latency_line(&mut table, summary, mode, kind);
        }
    }
    table.numbers("WAL bytes per transaction", 0, |column| {
        summary.wal_bytes(column, None)
    });
    table.numbers("  of these not full-page images", 0, |column| {
        summary.wal_record_bytes(column)
    });
    table.numbers("server CPU microseconds per transaction", 0, |column| {
        summary.cpu_seconds(column, None) * 1e6
    });
    for mode in [Mode::Interactive, Mode::Procedures] {
        table.numbers(&format!("  {mode}"), 0, |column| {
            summary.cpu_seconds(column, Some(mode)) * 1e6
        });
    }
    table.numbers("loaded database, MB", 0, |column| {
        summary.memory_bytes(column) / 1e6
    });
    table.numbers("  bytes per row, indexes included", 0, |column| {
        summary.bytes_per_row(column)
    });
    table.line("errors and retries", &summary.errors().to_string(), "", "");
    if let Some(crowd) = &summary.crowd {
        let what = format!("tpmC, interactive, {} terminals", crowd.terminals);
        table.line(&what, &format!("{:.0}", crowd.tpmc), "", "");
    }
    if let Some(crash) = &summary.crash {
        let recovery = format!("{:.2} s", crash.recovery_seconds);
        table.line("kill -9: start to first query", &recovery, "", "");
        table.line(
            "  acknowledged transactions",
            &crash.acknowledged.to_string(),
            "",
            "",
        );
        table.line(
            "  of these lost",
            &crash.acknowledged_lost.to_string(),
            "",
            "",
        );
        table.line(
            "  unexplained transactions",
            &crash.unexplained.to_string(),
            "",
            "",
        );
        let violations = crash.consistency_violations.to_string();
        table.line("  consistency violations", &violations, "", "");
    }
    for message in summary.messages() {
        let _ = writeln!(table.0, "! {message}");
    }
    let verdict = if summary.is_good() {
        "nothing went wrong"
    } else {
        "SOMETHING WENT WRONG"
    };
    let _ = writeln!(table.0, "{verdict}; {:.0} s", summary.seconds_taken);
    table.0
}

fn latency_line(table: &mut Table, summary: &Summary, mode: Mode, kind: Kind) {
    let of = |column| {
        let latency = summary.middle_run(column, mode)?.report.latency_of(kind)?;
        let text = format!(
            "{:.1}/{:.1}/{:.1}",
            latency.p50_ms, latency.p90_ms, latency.p99_ms
        );
        Some((text, latency.p50_ms))
    };
    let (Some((mot, mot_p50)), Some((heap, heap_p50))) = (of(Column::Mot), of(Column::Heap)) else {
        return;
    };
    let name = format!("  {mode} {}, p50/p90/p99 ms", kind.name());
    table.line(&name, &mot, &heap, &format!("{:.2}", mot_p50 / heap_p50));
}
