//! The private server on which tables of every kind live side by side, and the readings taken from it.

use crate::instructions::Counter;
use crate::plan::Plan;
use crate::side::Side;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tpcc::cluster::{Cluster, scratch_directory};
use tpcc::failure::{Failure, Result};
use tpcc::schema::Engine;
use tpcc::target::{Target, execute, from_client};

/// Share of the machine's memory that MOT tables may take.
const ARENA_SHARE: f64 = 0.6;
/// The least of it, in MB.
const ARENA_MB_MIN: f64 = 512.0;

/// Settings for both kinds of table. No checkpoint by itself within the short runs: after the first round no full-page images weigh on
/// heap tables any more, and no run meets a checkpoint that another does not meet.
const SETTINGS: [(&str, &str); 9] = [
    ("shared_preload_libraries", "mot"),
    ("max_wal_size", "32GB"),
    ("checkpoint_timeout", "1h"),
    ("autovacuum", "on"),
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("jit", "off"),
    ("max_connections", "200"),
    ("log_checkpoints", "on"),
];

/// The server.
pub(crate) struct Rig {
    pub cluster: Cluster,
    pub plan: Plan,
    /// Of the processes that the postmaster has started since it was made.
    counter: Option<Counter>,
}

/// The server's counters at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    wal_bytes: i64,
    cpu: Duration,
    instructions: Option<u64>,
}

/// What happened between two readings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub wal_bytes: i64,
    pub cpu: Duration,
    pub instructions: Option<u64>,
}

impl Rig {
    /// Makes and starts the server, with the extension and a schema for each kind of table.
    pub(crate) fn new(plan: Plan, bindir: Option<&Path>, further: &[String]) -> Result<Self> {
        let arena_mb = (memory_mb() * ARENA_SHARE).max(ARENA_MB_MIN);
        let arena = format!("{arena_mb:.0}MB");
        let mut settings: Vec<(&str, &str)> = SETTINGS.to_vec();
        settings.push(("shared_buffers", plan.shared_buffers));
        settings.push(("mot.max_memory", &arena));
        for setting in further {
            let pair = setting.split_once('=');
            settings.push(pair.ok_or_else(|| Failure::unexpected("--setting wants name=value"))?);
        }
        let directory = scratch_directory("mot-bench");
        let mut cluster = Cluster::create(&directory, bindir, &settings)?;
        cluster.start_and_wait()?;
        let counter = Counter::of(cluster.postmaster_pid()?);
        let rig = Rig {
            cluster,
            plan,
            counter,
        };
        let mut client = rig.client(Side::Floor)?;
        execute(&mut client, "CREATE EXTENSION mot")?;
        for side in Side::TABLES {
            execute(&mut client, &format!("CREATE SCHEMA {}", side.schema()))?;
        }
        Ok(rig)
    }

    /// A connection that finds the tables of `side`.
    pub(crate) fn client(&self, side: Side) -> Result<postgres::Client> {
        let url = format!(
            "{} options='-c search_path={}'",
            self.cluster.url(),
            side.schema()
        );
        postgres::Client::connect(&url, postgres::NoTls).map_err(from_client)
    }

    /// TPC-C's tables of one kind.
    pub(crate) fn tpcc(&self, engine: Engine) -> Result<Target> {
        self.cluster.target(engine, None)
    }

    /// Reads the counters.
    pub(crate) fn read(&self) -> Result<Reading> {
        let mut client = self.client(Side::Floor)?;
        let row = client
            .query_one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint", &[])
            .map_err(from_client)?;
        Ok(Reading {
            wal_bytes: row.get(0),
            cpu: self.cluster.cpu_time()?,
            instructions: self.counter.as_ref().and_then(Counter::read),
        })
    }

    /// What the server spent since `begin`.
    pub(crate) fn spent_since(&self, begin: Reading) -> Result<Spent> {
        let end = self.read()?;
        Ok(Spent {
            wal_bytes: end.wal_bytes - begin.wal_bytes,
            cpu: end.cpu.saturating_sub(begin.cpu),
            instructions: end
                .instructions
                .zip(begin.instructions)
                .map(|(end, begin)| end.saturating_sub(begin)),
        })
    }

    /// Writes a file that the server's user can read.
    pub(crate) fn write_file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.cluster.directory().join(name);
        std::fs::write(&path, text)
            .map_err(|error| Failure::unexpected(format!("{}: {error}", path.display())))?;
        Ok(path)
    }

    /// Makes a CHECKPOINT.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        execute(&mut self.client(Side::Floor)?, "CHECKPOINT")
    }
}

/// Memory of the machine.
fn memory_mb() -> f64 {
    crate::machine::memory_kilobytes().map_or(0.0, |kilobytes| kilobytes as f64 / 1024.0)
}
