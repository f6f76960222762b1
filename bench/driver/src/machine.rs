//! Facts of the machine and the software, for the head of the report.

use crate::rig::Rig;
use crate::side::Side;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tpcc::failure::Result;
use tpcc::stats::median;
use tpcc::target::from_client;

/// Flushes of which the middle one is reported.
const FLUSHES: usize = 100;
/// Bytes of one: a page of WAL.
const FLUSH_BYTES: usize = 8192;

/// Nanoseconds for which a guest's idle processor polls (`.ci/bench` sets it).
const HALT_POLL: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

/// What stands at the head of the report.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_mb: u64,
    pub kernel: String,
    /// Median time to write and flush 8 KiB where the server's files are, milliseconds.
    pub flush_ms: Option<f64>,
    /// How long an idle processor of a guest looks for work before it halts, microseconds; none of
    /// it on other machines.
    #[serde(default)]
    pub halt_poll_us: Option<f64>,
    /// Load average of the last minute when the run began: noise of others.
    pub load_before: f64,
    pub postgresql: String,
    /// Its major version.
    pub version: u32,
    pub mariadb: Option<String>,
    /// Commit of this tree.
    pub commit: String,
    /// Seconds since 1970 at the begin.
    pub begun_at: u64,
    /// Settings of the server that are not PostgreSQL's own defaults.
    pub settings: Vec<String>,
}

impl Machine {
    pub(crate) fn look(rig: &Rig) -> Result<Self> {
        let mut client = rig.client(Side::Floor)?;
        let row = client
            .query_one(
                "SELECT version(), current_setting('server_version_num')::int / 10000",
                &[],
            )
            .map_err(from_client)?;
        let settings = client
            .query(
                "SELECT name || ' = ' || current_setting(name) FROM pg_settings \
                 WHERE source = 'command line' AND name NOT IN ('port', 'listen_addresses', \
                 'unix_socket_directories') ORDER BY name",
                &[],
            )
            .map_err(from_client)?;
        Ok(Machine {
            cpu: proc_line("/proc/cpuinfo", "model name").unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            memory_mb: memory_kilobytes().unwrap_or_default() / 1024,
            kernel: word_of("/proc/sys/kernel/osrelease"),
            flush_ms: flush_milliseconds(rig.cluster.directory(), FLUSHES),
            halt_poll_us: word_of(HALT_POLL)
                .parse()
                .ok()
                .map(|nanoseconds: f64| nanoseconds / 1e3),
            load_before: word_of("/proc/loadavg").parse().unwrap_or_default(),
            postgresql: row.get(0),
            version: row.get::<_, i32>(1).unsigned_abs(),
            mariadb: crate::mariadb::version(),
            commit: commit(),
            begun_at: seconds_since_1970(),
            settings: settings.iter().map(|row| row.get(0)).collect(),
        })
    }
}

/// The clock, in whole seconds.
pub(crate) fn seconds_since_1970() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Memory of the machine.
pub(crate) fn memory_kilobytes() -> Option<u64> {
    proc_line("/proc/meminfo", "MemTotal")?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// What a line of `path` that begins with `name` says after its colon.
fn proc_line(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn word_of(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// The commit that was checked out; `-dirty` if files differ from it.
fn commit() -> String {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        // No repository, or one that belongs to somebody else.
        _ => "unknown".to_owned(),
    }
}

/// How long the disk takes to have a page for good: the middle one of `flushes`. `None` if it takes
/// none.
pub(crate) fn flush_milliseconds(directory: &Path, flushes: usize) -> Option<f64> {
    let path = directory.join("flush.probe");
    let mut file = std::fs::File::create(&path).ok()?;
    let page = [1u8; FLUSH_BYTES];
    let mut times = Vec::with_capacity(flushes);
    for _ in 0..flushes {
        let begin = Instant::now();
        file.write_all(&page).ok()?;
        file.sync_data().ok()?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    std::fs::remove_file(&path).ok()?;
    Some(median(times))
}
