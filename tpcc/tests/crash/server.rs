//! What the suite asks the server and its log.

use std::time::{Duration, Instant};
use tpcc::cluster::Cluster;
use tpcc::engine::Engine;
use tpcc::failure::{Failure, Result};
use tpcc::target::{Target, from_client};

/// Time all workers of a server get to run.
const WORKERS_PATIENCE: Duration = Duration::from_secs(30);

/// Process numbers of the terminals' backends.
pub fn terminal_backends(target: &Target) -> Result<Vec<i32>> {
    let query = "SELECT pid FROM pg_stat_activity \
                 WHERE application_name = 'tpcc' AND pid <> pg_backend_pid() AND state IS NOT NULL";
    let rows = target.client()?.query(query, &[]).map_err(from_client)?;
    if rows.is_empty() {
        return Err(Failure::unexpected("there is no backend to kill"));
    }
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Process numbers of the server's own processes that write: the extension's, and PostgreSQL's. By
/// title, since pg_stat_activity shows no worker without a database.
pub fn workers(cluster: &Cluster, engine: Engine) -> Result<Vec<i32>> {
    let mut titles = vec!["postgres: checkpointer", "postgres: walwriter"];
    if engine.is_mot() {
        titles.extend(["postgres: mot checkpointer", "postgres: mot reclaimer"]);
    }
    // The postmaster starts its workers again only a moment after it lets clients in.
    let start = Instant::now();
    let found = loop {
        let found: Vec<i32> = titles
            .iter()
            .map(|title| cluster.children_titled(title))
            .collect::<Result<Vec<_>>>()?
            .concat();
        if found.len() >= titles.len() {
            break found;
        }
        if start.elapsed() > WORKERS_PATIENCE {
            return Err(Failure::unexpected(format!(
                "of {titles:?} only {found:?} run"
            )));
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Ok(found)
}

/// Lines of the server's log, from byte `seen` on, that no crash of ours explains.
pub fn suspicious_lines(cluster: &Cluster, seen: &mut usize) -> Result<Vec<String>> {
    const SIGNS: [&str; 5] = [
        "PANIC:",
        "TRAP:",
        "by signal 6",
        "by signal 11",
        "panicked at",
    ];
    let path = cluster.log_path();
    let log = std::fs::read(&path)
        .map_err(|error| Failure::unexpected(format!("{}: {error}", path.display())))?;
    let new = String::from_utf8_lossy(log.get(*seen..).unwrap_or_default()).into_owned();
    *seen = log.len();
    let is_bad = |line: &&str| SIGNS.iter().any(|sign| line.contains(sign));
    Ok(new.lines().filter(is_bad).map(str::to_owned).collect())
}
