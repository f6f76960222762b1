//! The drills on one server.

use super::Size;
use super::report::{Crash, Heap, SizeReport, Start};
use super::standby;
use crate::check;
use crate::cli::RtoArgs;
use crate::cluster::{Cluster, Shutdown, scratch_directory};
use crate::engine::Engine;
use crate::failure::{Failure, Result};
use crate::ledger::Ledger;
use crate::ledger_check;
use crate::load::{LoadOptions, load};
use crate::run::{self, RunOptions};
use crate::scale::Scale;
use crate::target::{Target, execute, from_client};
use crate::terminal::Mode;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time of load before a kill.
const LOAD_SECONDS: u64 = 10;
/// The same with `--quick`.
const QUICK_LOAD_SECONDS: u64 = 5;

/// Reads one row through its primary key.
const FIRST_QUERY: &str = "SELECT d_next_o_id FROM bmsql_district WHERE d_w_id = 1 AND d_id = 1";

/// Puts every page of the heap tables and their indexes into shared buffers.
const PREWARM: &str = "SELECT coalesce(sum(public.pg_prewarm(c.oid)), 0)::bigint FROM pg_class c \
     JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'i') AND nspname = $1";

/// What a start tells of itself.
const RECOVERY: &str = "SELECT to_jsonb(r)::text FROM mot.stat_recovery r";

/// One server with both engines' tables.
pub(super) struct Rig {
    pub cluster: Cluster,
    pub mot: Target,
    pub heap: Target,
    pub size: Size,
    pub out: PathBuf,
    terminals: u32,
    pub load_for: Duration,
    seed: u64,
}

impl Rig {
    pub(super) fn new(args: &RtoArgs, size: Size) -> Result<Self> {
        let arena = format!("{}MB", size.arena_mb());
        let settings = [
            ("shared_preload_libraries", "mot"),
            ("mot.max_memory", arena.as_str()),
            ("shared_buffers", if args.quick { "2GB" } else { "6GB" }),
            ("max_wal_size", "8GB"),
            // A standby that is stopped for some runs must find what it missed.
            ("wal_keep_size", "4GB"),
            ("checkpoint_timeout", "15min"),
            ("jit", "off"),
            ("max_connections", "200"),
            ("log_checkpoints", "on"),
            ("wal_level", "replica"),
            ("max_wal_senders", "5"),
            ("hot_standby", "on"),
        ];
        let directory = scratch_directory("mot-rto");
        let mut cluster = Cluster::create(&directory, args.bindir.as_deref(), &settings)?;
        cluster.start_and_wait()?;
        let seconds = args.seconds.unwrap_or(if args.quick {
            QUICK_LOAD_SECONDS
        } else {
            LOAD_SECONDS
        });
        Ok(Rig {
            mot: cluster.target(Engine::Mot, None)?,
            heap: cluster.target(Engine::Heap, None)?,
            cluster,
            size,
            out: args.out.clone(),
            terminals: args.terminals,
            load_for: Duration::from_secs(seconds),
            seed: args.seed,
        })
    }

    pub(super) fn log_tail(&self) -> String {
        self.cluster.log_tail()
    }

    /// Loads both engines' tables.
    pub(super) fn load(&mut self, report: &mut SizeReport) -> Result<()> {
        let mut client = self.mot.client()?;
        execute(&mut client, "CREATE EXTENSION mot")?;
        execute(&mut client, "CREATE EXTENSION pg_prewarm SCHEMA public")?;
        let options = LoadOptions {
            scale: Scale::full(self.size.warehouses),
            seed: self.seed,
            workers: std::thread::available_parallelism().map_or(2, |cores| cores.get().min(4)),
            keys_first: false,
            foreign_keys: false,
            verbose: false,
        };
        load(&self.mot, &options)?;
        load(&self.heap, &options)?;
        report.mot_bytes = client
            .query_one("SELECT arena_bytes_used::bigint FROM mot.stat_memory", &[])
            .map_err(from_client)?
            .get(0);
        Ok(())
    }

    /// A start until a row of a MOT table is read, and what the server says of its phases.
    fn start(&mut self) -> Result<Start> {
        let begin = Instant::now();
        self.cluster.start()?;
        self.cluster.wait_until_ready("SELECT 1")?;
        let up = begin.elapsed();
        let query = format!("SET search_path = {}; {FIRST_QUERY}", self.mot.schema);
        self.cluster.wait_until_ready(&query)?;
        let first_query = begin.elapsed();
        let mut client = self.mot.client()?;
        let text: String = client.query_one(RECOVERY, &[]).map_err(from_client)?.get(0);
        let server = serde_json::from_str(&text)
            .map_err(|error| Failure::unexpected(format!("mot.stat_recovery: {error}")))?;
        Ok(Start {
            up_seconds: up.as_secs_f64(),
            first_query_seconds: first_query.as_secs_f64(),
            server,
            log: self.cluster.log_lines_since_start("mot "),
        })
    }

    /// Start after a clean shutdown, beside the heap's.
    pub(super) fn cold_start(&mut self, report: &mut SizeReport) -> Result<()> {
        self.cluster.stop(Shutdown::Fast)?;
        report.cold_start = Some(self.start()?);
        let begin = Instant::now();
        let mut client = self.heap.client()?;
        client
            .query_one(PREWARM, &[&self.heap.schema])
            .map_err(from_client)?;
        report.heap = Some(Heap {
            up_seconds: report
                .cold_start
                .as_ref()
                .map_or(f64::NAN, |start| start.up_seconds),
            prewarm_seconds: begin.elapsed().as_secs_f64(),
        });
        Ok(())
    }

    /// Start after a clean shutdown that left the arena in place.
    pub(super) fn warm_restart(&mut self, report: &mut SizeReport) -> Result<()> {
        let mut client = self.mot.client()?;
        let can = client
            .query_opt(
                "SELECT 1 FROM pg_settings WHERE name = 'mot.warm_restart'",
                &[],
            )
            .map_err(from_client)?;
        if can.is_none() {
            report
                .notes
                .push("warm restart not run: the extension has no mot.warm_restart".into());
            return Ok(());
        }
        drop(client);
        self.cluster.set("mot.warm_restart", "on");
        self.cluster.stop(Shutdown::Fast)?;
        // The first start with the setting loads, and leaves the arena behind at its end.
        self.start()?;
        self.cluster.stop(Shutdown::Fast)?;
        let start = self.start()?;
        if !start.log.iter().any(|line| line.contains("took over")) {
            report
                .notes
                .push("the warm restart was not warm: the server loaded its tables".into());
        }
        report.warm_restart = Some(start);
        self.cluster.set("mot.warm_restart", "off");
        self.cluster.stop(Shutdown::Fast)?;
        self.start()?;
        Ok(())
    }

    /// A run that ends by itself.
    pub(super) fn steady_options(&self) -> RunOptions {
        RunOptions {
            terminals: self.terminals,
            duration: self.load_for,
            warmup: Duration::from_secs(1),
            mode: Mode::Procedures,
            seed: self.seed,
            ledger: None,
            fixed_warehouse: false,
            rate: None,
            progress: false,
        }
    }

    fn run_options(&self, ledger: PathBuf, seed: u64) -> RunOptions {
        RunOptions {
            terminals: self.terminals,
            // Longer than it will be let live; the kill ends it.
            duration: self.load_for + Duration::from_secs(60),
            warmup: Duration::ZERO,
            mode: Mode::Procedures,
            seed: self.seed + seed,
            ledger: Some(ledger),
            fixed_warehouse: false,
            rate: None,
            progress: false,
        }
    }

    /// Runs TPC-C with a ledger and kills the postmaster in the middle. Returns the moment of the
    /// kill.
    pub(super) fn load_and_kill(&mut self, ledger: PathBuf, seed: u64) -> Result<Instant> {
        let options = self.run_options(ledger, seed);
        let (target, cluster, load_for) = (self.mot.clone(), &mut self.cluster, self.load_for);
        std::thread::scope(|scope| {
            let running = run::start(scope, &target, &options);
            std::thread::sleep(load_for);
            let at = Instant::now();
            let killed = cluster.kill_postmaster();
            let report = running
                .join()
                .unwrap_or_else(|_| Err(Failure::unexpected("the run panicked")))?;
            if report.troubles() > 0 {
                let messages = format!("{:?}", report.first_messages);
                return Err(Failure::unexpected(format!(
                    "errors under load: {messages}"
                )));
            }
            killed.map(|_| at)
        })
    }

    /// Start after kill -9 under load.
    pub(super) fn crash(&mut self, report: &mut SizeReport) -> Result<()> {
        execute(&mut self.mot.client()?, "CHECKPOINT")?;
        let path = self
            .out
            .join(format!("crash-{}.ledger", self.size.warehouses));
        self.load_and_kill(path.clone(), 1000)?;
        let start = self.start()?;
        report.crash = Some(Crash::new(start, verify(&self.mot, &path)?));
        Ok(())
    }

    /// Failover under load.
    pub(super) fn fail_over(&mut self, report: &mut SizeReport) -> Result<()> {
        report.failover = Some(standby::fail_over(self, &mut report.steady)?);
        Ok(())
    }
}

/// What a crash left, compared with what clients were told.
pub(super) struct Verified {
    pub acknowledged: usize,
    pub lost: usize,
    pub complaints: Vec<String>,
}

pub(super) fn verify(target: &Target, path: &std::path::Path) -> Result<Verified> {
    let verdict = ledger_check::check(target, &Ledger::read(path)?)?;
    let mut complaints: Vec<String> = verdict.lost.iter().chain(&verdict.extra).cloned().collect();
    let findings = check::check(target)?;
    complaints.extend(
        findings
            .iter()
            .filter(|found| found.violations > 0)
            .map(|found| {
                let (condition, violations) = (found.condition, found.violations);
                format!("condition {condition}: {violations} violations")
            }),
    );
    complaints.extend(check::table_complaints(target)?);
    Ok(Verified {
        acknowledged: verdict.acknowledged,
        lost: verdict.lost.len(),
        complaints,
    })
}
