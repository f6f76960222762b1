//! The last run of the demo: MOT tables under load, the postmaster killed, and what is left.

use super::{Bench, Plan};
use crate::check;
use crate::failure::{Failure, Result};
use crate::ledger::Ledger;
use crate::ledger_check;
use crate::run;
use crate::target::execute;
use crate::terminal::Mode;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// Reads one row of a MOT table through its primary key.
const FIRST_QUERY: &str = "SELECT d_next_o_id FROM bmsql_district WHERE d_w_id = 1 AND d_id = 1";

/// What the crash left.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CrashOutcome {
    /// Transactions acknowledged before the kill.
    pub acknowledged: usize,
    /// Of these, missing or changed.
    pub acknowledged_lost: usize,
    /// Transactions that nobody can have committed.
    pub unexplained: usize,
    /// Commits in flight at the kill that took effect.
    pub in_flight_kept: usize,
    /// Violations of the twelve consistency conditions and of `mot.check`.
    pub consistency_violations: i64,
    /// From the start of the postmaster to the first answer from a MOT table.
    pub recovery_seconds: f64,
    /// Errors of the run other than the lost sessions.
    pub run_errors: u64,
    /// What the ledger's comparison and the checks said, where they complained.
    pub complaints: Vec<String>,
}

pub(super) fn crash(bench: &mut Bench, plan: &Plan, out: &Path) -> Result<CrashOutcome> {
    let target = bench.mot.clone();
    execute(&mut target.client()?, "CHECKPOINT")?;
    let path = out.join("ledger.txt");
    // Longer than it will be let live; the kill ends it.
    let duration = plan.kill_after + Duration::from_secs(60);
    let mut options = plan.run(
        Mode::Interactive,
        plan.terminals,
        duration,
        plan.seed + 2000,
    );
    options.ledger = Some(path.clone());
    options.warmup = Duration::ZERO;
    let cluster = &mut bench.cluster;
    let report = std::thread::scope(|scope| {
        let running = run::start(scope, &target, &options);
        std::thread::sleep(plan.kill_after);
        let killed = cluster.kill_postmaster();
        let report = running
            .join()
            .unwrap_or_else(|_| Err(Failure::unexpected("the run panicked")))?;
        killed.map(|_| report)
    })?;

    let start = Instant::now();
    cluster.start()?;
    let first_query = format!("SET search_path = {}; {FIRST_QUERY}", target.schema);
    cluster.wait_until_ready(&first_query)?;
    let recovery_seconds = start.elapsed().as_secs_f64();

    let ledger = Ledger::read(&path)?;
    let verdict = ledger_check::check(&target, &ledger)?;
    let findings = check::check(&target)?;
    let mut complaints: Vec<String> = verdict.lost.iter().chain(&verdict.extra).cloned().collect();
    let broken = findings.iter().filter(|finding| finding.violations > 0);
    complaints.extend(broken.map(|finding| {
        format!(
            "condition {}: {} violations",
            finding.condition, finding.violations
        )
    }));
    let table_complaints = check::table_complaints(&target)?;
    let table_violations = table_complaints.len() as i64;
    complaints.extend(table_complaints);
    Ok(CrashOutcome {
        acknowledged: verdict.acknowledged,
        acknowledged_lost: verdict.lost.len(),
        unexplained: verdict.extra.len(),
        in_flight_kept: verdict.in_flight_kept,
        consistency_violations: check::violations(&findings) + table_violations,
        recovery_seconds,
        run_errors: report.troubles(),
        complaints,
    })
}
