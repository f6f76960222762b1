//! The private server on which tables of every kind live side by side, and the readings taken from
//! it.

use crate::instructions::Counter;
use crate::plan::Plan;
use crate::side::Side;
use crate::stop;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tpcc::cluster::{Cluster, Shutdown, scratch_directory};
use tpcc::engine::Engine;
use tpcc::failure::{Failure, Result};
use tpcc::target::{Target, execute, from_client};

/// Share of the machine's memory that MOT tables may take.
const ARENA_SHARE: f64 = 0.6;
/// The least of it, in MB.
const ARENA_MB_MIN: f64 = 512.0;

/// Settings for both kinds of table. No checkpoint by itself within the short runs, so that no run
/// meets one that another does not meet: a round begins with one when much WAL has come together
/// ([`Rig::make_room_for_wal`]), well before `max_wal_size` would ask for it.
const SETTINGS: [(&str, &str); 9] = [
    ("shared_preload_libraries", "mot"),
    ("max_wal_size", "10GB"),
    ("checkpoint_timeout", "1h"),
    ("autovacuum", "on"),
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("jit", "off"),
    ("max_connections", "200"),
    ("log_checkpoints", "on"),
];

/// Before 17 every asynchronous commit wakes the WAL writer from a page's end until that page is
/// flushed: docs/performance.md. All kinds of table gain.
const BEFORE_17: (&str, &str) = ("wal_writer_flush_after", "0");

/// WAL since the last checkpoint after which a round begins with another. `max_wal_size` asks for
/// one at about half of itself.
const WAL_BYTES_MAX: i64 = 3 << 30;

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
    /// Its directory goes with an interrupt.
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
        stop::on_interrupt(directory.clone())?;
        let mut cluster = Cluster::create(&directory, bindir, &settings)?;
        if cluster.major_version()? < 17 && cluster.setting(BEFORE_17.0).is_none() {
            cluster.set(BEFORE_17.0, BEFORE_17.1);
        }
        cluster.start_and_wait()?;
        let counter = Counter::of(cluster.postmaster_pid()?);
        let rig = Rig {
            cluster,
            plan,
            counter,
        };
        execute(&mut rig.client(Side::Floor)?, "CREATE EXTENSION mot")?;
        Ok(rig)
    }

    /// A running server with an empty schema for each kind of table, whatever the part before has
    /// left; a server that is gone is started.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        let is_there = self.client(Side::Floor).is_ok()
            || (self.cluster.postmaster_pid().is_ok()
                && self.cluster.wait_until_ready("SELECT 1").is_ok());
        if !is_there {
            if self.cluster.postmaster_pid().is_ok() {
                self.cluster.stop(Shutdown::Immediate)?;
            }
            self.start()?;
        }
        let mut client = self.client(Side::Floor)?;
        execute(&mut client, "SET client_min_messages = warning")?;
        let tpcc = [Engine::Mot, Engine::Heap].map(Engine::default_schema);
        for schema in Side::TABLES.map(Side::schema).into_iter().chain(tpcc) {
            execute(
                &mut client,
                &format!("DROP SCHEMA IF EXISTS {schema} CASCADE"),
            )?;
        }
        for side in Side::TABLES {
            execute(&mut client, &format!("CREATE SCHEMA {}", side.schema()))?;
        }
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        stop::stay_if_interrupted();
        self.cluster.start_and_wait()?;
        self.counter = Counter::of(self.cluster.postmaster_pid()?);
        Ok(())
    }

    /// Starts the server anew: memory of dropped tables is given back in the background, and some
    /// of it only when the part has begun.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.cluster.stop(Shutdown::Fast)?;
        self.start()
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

    /// Makes one if there is much WAL since the last: called where a round begins, never within it.
    /// The round after it has full-page images of heap tables; the median of rounds leaves it out.
    pub(crate) fn make_room_for_wal(&self) -> Result<()> {
        let query =
            "SELECT (pg_current_wal_insert_lsn() - redo_lsn)::bigint FROM pg_control_checkpoint()";
        let row = self.client(Side::Floor)?.query_one(query, &[]);
        let since: i64 = row.map_err(from_client)?.get(0);
        if since > WAL_BYTES_MAX {
            self.checkpoint()?;
        }
        Ok(())
    }
}

/// Memory of the machine.
pub(crate) fn memory_mb() -> f64 {
    crate::machine::memory_kilobytes().map_or(0.0, |kilobytes| kilobytes as f64 / 1024.0)
}
