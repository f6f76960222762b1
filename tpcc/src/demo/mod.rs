//! `tpcc demo`: both engines on one private server, then a kill -9 in the middle of a run.
//!
//! Fairness: the same machine, settings, data, seeds and statements for both; heap tables get a
//! shared_buffers that holds all of them and autovacuum; a CHECKPOINT precedes every run; the
//! engines alternate, and which of them goes first alternates too; reported are medians.

mod crash;
mod summary;
mod table;

use crate::check;
use crate::cli::DemoArgs;
use crate::cluster::{Cluster, Shutdown, scratch_directory};
use crate::engine::Engine;
use crate::failure::{Failure, Result};
use crate::load::{LoadOptions, load};
use crate::meter::{Measured, ServerMeter};
use crate::processes::own_cpu_time;
use crate::run::{RunOptions, run};
use crate::scale::Scale;
use crate::schema::TABLES;
use crate::target::{Target, execute, from_client};
use crate::terminal::Mode;
use std::time::{Duration, Instant};
use summary::{Column, Loaded, Summary};

/// One row: all memory that MOT tables, indexes and old versions take up, in bytes.
const MOT_MEMORY_QUERY: &str = "SELECT arena_bytes_used::bigint FROM mot.stat_memory";

/// Terminals of the run that looks for errors under contention.
const CROWD_TERMINALS: u32 = 50;

/// The extension's library.
const MOT_LIBRARY: &str = "mot";

/// Settings of the terminals' sessions, for both engines. A heap's district table grows between two
/// autovacuums, its estimated row count with it, and a replanned stock-level may then hash-join a
/// whole warehouse's stock: thirty times slower, in some runs and not in others. The right plans of
/// all of TPC-C's joins are nested loops, so ruling out the others keeps luck out of the
/// comparison.
const TERMINAL_SETTINGS: [&str; 2] = ["enable_hashjoin=off", "enable_mergejoin=off"];

/// What `--quick` and its absence mean.
struct Plan {
    scale: Scale,
    terminals: u32,
    duration: Duration,
    warmup: Duration,
    rounds: u32,
    /// Length of the run with [`CROWD_TERMINALS`].
    crowd: Duration,
    /// Time into the last run at which the postmaster is killed.
    kill_after: Duration,
    seed: u64,
}

impl Plan {
    fn new(args: &DemoArgs) -> Result<Self> {
        let (warehouses, seconds, rounds) = if args.quick {
            (2, 7.0, 2)
        } else {
            (10, 30.0, 3)
        };
        let seconds = args.duration.unwrap_or(seconds);
        let duration = Duration::try_from_secs_f64(seconds)
            .map_err(|_| Failure::unexpected("--duration is not a number of seconds"))?;
        Ok(Plan {
            scale: Scale::full(args.warehouses.unwrap_or(warehouses).max(1)),
            terminals: args.terminals.max(1),
            duration,
            warmup: Duration::from_secs(if args.quick { 1 } else { 3 }),
            rounds: args.rounds.unwrap_or(rounds).max(1),
            crowd: duration / 2,
            kill_after: duration.min(Duration::from_secs(10)),
            seed: args.seed,
        })
    }

    fn run(&self, mode: Mode, terminals: u32, duration: Duration, seed: u64) -> RunOptions {
        RunOptions {
            terminals,
            duration,
            warmup: self.warmup,
            mode,
            seed,
            ledger: None,
            fixed_warehouse: false,
            rate: None,
            progress: false,
        }
    }
}

/// Both places to measure. The name of a column is the engine it stands for.
struct Bench {
    cluster: Cluster,
    mot: Target,
    heap: Target,
}

impl Bench {
    fn target(&self, column: Column) -> &Target {
        match column {
            Column::Mot => &self.mot,
            Column::Heap => &self.heap,
        }
    }
}

/// Runs the demo; true if nothing went wrong.
pub fn demo(args: &DemoArgs) -> Result<bool> {
    let plan = Plan::new(args)?;
    let start = Instant::now();
    std::fs::create_dir_all(&args.out)
        .map_err(|error| Failure::unexpected(format!("{}: {error}", args.out.display())))?;
    announce(args, &plan);

    let mut bench = prepare(args)?;
    let mut summary = Summary::new(args, &plan, machine());
    if let Err(failure) = measure_all(args, &plan, &mut bench, &mut summary) {
        eprintln!("the server's last words:\n{}", bench.cluster.log_tail());
        return Err(failure);
    }
    summary.seconds_taken = start.elapsed().as_secs_f64();

    println!("{}", table::render(&summary));
    let path = args.out.join("summary.json");
    let json = serde_json::to_string_pretty(&summary.to_json())
        .map_err(|error| Failure::unexpected(error.to_string()))?;
    std::fs::write(&path, json + "\n")
        .map_err(|error| Failure::unexpected(format!("{}: {error}", path.display())))?;
    println!("written to {}", path.display());
    Ok(summary.is_good())
}

/// Loads, measures, crashes and checks.
fn measure_all(
    args: &DemoArgs,
    plan: &Plan,
    bench: &mut Bench,
    summary: &mut Summary,
) -> Result<()> {
    for column in [Column::Mot, Column::Heap] {
        summary
            .loaded
            .insert(column, load_column(bench, plan, column)?);
    }
    for mode in [Mode::Interactive, Mode::Procedures] {
        for round in 0..plan.rounds {
            let order = if round % 2 == 0 {
                Column::ALL
            } else {
                [Column::Heap, Column::Mot]
            };
            for column in order {
                let last = round + 1 == plan.rounds;
                let measured = measure_once(bench, plan, column, mode, round, last)?;
                say(&format!(
                    "{mode} {}/{} {column}: tpmC {:.0}",
                    round + 1,
                    plan.rounds,
                    measured.report.tpmc
                ));
                summary.measured.push((column, measured));
            }
        }
    }
    let crowd = plan.run(
        Mode::Interactive,
        CROWD_TERMINALS,
        plan.crowd,
        plan.seed + 1000,
    );
    let crowd = run(&bench.mot, &crowd, &mut ())?;
    say(&format!(
        "{CROWD_TERMINALS} terminals: tpmC {:.0}",
        crowd.tpmc
    ));
    summary.crowd = Some(crowd);
    summary.heap_violations = check::violations(&check::check(&bench.heap)?);

    say("kill -9 of the postmaster in the middle of a run");
    summary.crash = Some(crash::crash(bench, plan, &args.out)?);
    bench.cluster.stop(Shutdown::Fast)?;
    Ok(())
}

fn announce(args: &DemoArgs, plan: &Plan) {
    let quick = if args.quick {
        " (quick: smaller and shorter, so noisier)"
    } else {
        ""
    };
    say(&format!(
        "{} warehouses, {} terminals, {} rounds of {:.0} s per mode and engine{quick}",
        plan.scale.warehouses,
        plan.terminals,
        plan.rounds,
        plan.duration.as_secs_f64()
    ));
    say("foreign keys in both columns");
    if args.heap_in_place_of_mot {
        say("heap tables stand in for MOT tables: this tries the demo, not the engine");
    }
}

/// Starts the private server.
fn prepare(args: &DemoArgs) -> Result<Bench> {
    let shared_buffers = if args.quick { "1GB" } else { "2GB" };
    let mut settings = vec![
        ("shared_buffers", shared_buffers),
        ("max_wal_size", "16GB"),
        ("checkpoint_timeout", "15min"),
        ("autovacuum", "on"),
        ("synchronous_commit", "on"),
        ("fsync", "on"),
        ("jit", "off"),
        ("max_connections", "200"),
        ("log_checkpoints", "on"),
    ];
    if !args.heap_in_place_of_mot {
        settings.push(("shared_preload_libraries", MOT_LIBRARY));
        settings.push(("mot.max_memory", if args.quick { "4GB" } else { "12GB" }));
    }
    for setting in &args.settings {
        let pair = setting.split_once('=');
        settings.push(pair.ok_or_else(|| Failure::unexpected("--setting wants name=value"))?);
    }
    let directory = scratch_directory("mot-demo");
    let mut cluster = Cluster::create(&directory, args.bindir.as_deref(), &settings)?;
    if args.keep {
        cluster.keep_directory();
        say(&format!(
            "the server's directory is {}",
            directory.display()
        ));
    }
    cluster.start_and_wait()?;
    let mot_engine = if args.heap_in_place_of_mot {
        Engine::Heap
    } else {
        Engine::Mot
    };
    Ok(Bench {
        mot: cluster
            .target(mot_engine, Some(Engine::Mot.default_schema()))?
            .with_terminal_settings(&TERMINAL_SETTINGS),
        heap: cluster
            .target(Engine::Heap, None)?
            .with_terminal_settings(&TERMINAL_SETTINGS),
        cluster,
    })
}

fn load_column(bench: &Bench, plan: &Plan, column: Column) -> Result<Loaded> {
    let target = bench.target(column);
    let mut client = target.client()?;
    if target.engine.is_mot() {
        execute(&mut client, "CREATE EXTENSION IF NOT EXISTS mot")?;
    }
    let before = memory_bytes(target, &mut client)?;
    let options = LoadOptions {
        scale: plan.scale,
        seed: plan.seed,
        workers: std::thread::available_parallelism().map_or(2, |cores| cores.get().min(4)),
        keys_first: false,
        foreign_keys: true,
        verbose: false,
    };
    let start = Instant::now();
    let times = load(target, &options)?;
    let seconds = start.elapsed().as_secs_f64();
    say(&format!("{column} loaded in {seconds:.1} s"));
    let mut rows = 0;
    for table in &TABLES {
        let query = format!("SELECT count(*) FROM {}", table.name);
        rows += client
            .query_one(&query, &[])
            .map_err(from_client)?
            .get::<_, i64>(0);
    }
    Ok(Loaded {
        seconds,
        copy_seconds: times.rows.as_secs_f64(),
        key_seconds: times.keys.as_secs_f64(),
        rows,
        memory_bytes: memory_bytes(target, &mut client)? - before,
    })
}

/// Bytes the tables and indexes of `target` take up: of the arena, or of heap and index files.
fn memory_bytes(target: &Target, client: &mut postgres::Client) -> Result<i64> {
    let query = match target.engine {
        Engine::Mot => MOT_MEMORY_QUERY.to_owned(),
        Engine::Heap => format!(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint \
             FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
             WHERE relkind = 'r' AND nspname = '{}'",
            target.schema
        ),
    };
    Ok(client.query_one(&query, &[]).map_err(from_client)?.get(0))
}

fn measure_once(
    bench: &mut Bench,
    plan: &Plan,
    column: Column,
    mode: Mode,
    round: u32,
    look_into_wal: bool,
) -> Result<Measured> {
    let target = bench.target(column).clone();
    execute(&mut target.client()?, "CHECKPOINT")?;
    // Both engines get the same inputs in a round.
    let options = plan.run(
        mode,
        plan.terminals,
        plan.duration,
        plan.seed + u64::from(round),
    );
    let mut meter = ServerMeter::new(&bench.cluster)?;
    let client_before = own_cpu_time();
    let report = run(&target, &options, &mut meter)?;
    let client_cpu = own_cpu_time() - client_before;
    meter.finish(report, client_cpu, look_into_wal)
}

fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    format!(
        "{cores} cores, {}",
        model.map_or("unknown model", |(_, model)| model)
    )
}

fn say(what: &str) {
    eprintln!("demo: {what}");
}
