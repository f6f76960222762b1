//! The crash suite: kills the server at random moments under load, several dozen rounds, and
//! compares what is left with what the clients were told.
//!
//! Every round runs TPC-C with a ledger, the [`bank`] and [`pairs`] of tables beside it. It ends
//! the server in one of the ways of [`event::Event`], starts it again and looks at everything: the
//! ledger in both directions, the twelve consistency conditions, the bank of all rounds so far,
//! tables made and left unmade ([`ddl`]), the pairs, `mot.check` of every table, and the server's
//! log for assertion failures. Then the next round goes on with the same cluster, so that a loss
//! shows even if it shows late.
//!
//! `--engine heap` (or `MOT_TEST_ENGINE=heap`) tries the suite itself against PostgreSQL's own
//! tables. `--rounds` and `--seed` (`MOT_CRASH_ROUNDS`, `MOT_CRASH_SEED`) repeat a failure;
//! `--event` (`MOT_CRASH_EVENT`) has every round end in the same way. `--standby`
//! (`MOT_CRASH_STANDBY=true`) adds a streaming standby with mishaps of its own, compared with the
//! primary after every round. `--warm` (`MOT_CRASH_WARM`) says whether warm restarts follow the
//! clean ends; otherwise the seed does.

mod bank;
mod companion;
mod ddl;
mod event;
mod pairs;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod workers;

use bank::Bank;
use clap::Parser;
use companion::{Companion, Mishap};
use event::Event;
use server::suspicious_lines;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use support::small_load;
use tpcc::check;
use tpcc::cluster::{Cluster, scratch_directory};
use tpcc::engine::Engine;
use tpcc::failure::{Failure, Result};
use tpcc::ledger::Ledger;
use tpcc::ledger_check;
use tpcc::random::TpccRng;
use tpcc::run::{self, RunOptions};
use tpcc::target::Target;
use tpcc::terminal::Mode;
use workers::Round;

/// The options; what the test harness would understand and this does not is ignored.
#[derive(Parser)]
#[command(ignore_errors = true)]
struct Options {
    #[arg(long, env = "MOT_TEST_ENGINE", value_enum, default_value = "mot")]
    engine: Engine,
    #[arg(long, env = "MOT_CRASH_ROUNDS", default_value_t = 24)]
    rounds: u64,
    #[arg(long, env = "MOT_CRASH_SEED")]
    seed: Option<u64>,
    /// Only this event, instead of drawn ones.
    #[arg(long, env = "MOT_CRASH_EVENT", value_enum)]
    event: Option<Event>,
    /// With a standby.
    #[arg(long, env = "MOT_CRASH_STANDBY")]
    standby: bool,
    /// Whether the server keeps its memory over clean shutdowns; the seed says so if this does not.
    #[arg(long, env = "MOT_CRASH_WARM", num_args = 0..=1, default_missing_value = "true")]
    warm: Option<bool>,
}

/// What lives through all rounds.
struct Suite {
    cluster: Cluster,
    target: Target,
    bank: Bank,
    companion: Option<Companion>,
    /// Bytes of the server's log that were looked at.
    log_seen: usize,
}

fn main() {
    let options = Options::parse();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seed = options.seed.unwrap_or(now.as_micros() as u64 % 1_000_000);
    println!(
        "crash suite: engine {}, {} rounds, seed {seed}",
        options.engine, options.rounds
    );
    let mut suite = match Suite::new(&options, seed) {
        Ok(suite) => suite,
        Err(failure) => panic!("set-up, seed {seed}: {failure}"),
    };
    for round in 0..options.rounds {
        if let Err(failure) = suite.round(seed, round, options.event) {
            suite.cluster.keep_directory();
            if let Some(companion) = &mut suite.companion {
                companion.keep_directory();
            }
            panic!(
                "seed {seed}, round {round}: {failure}\nthe server's directory is {}\n{}",
                suite.cluster.directory().display(),
                suite.cluster.log_tail()
            );
        }
    }
    println!("crash suite: {} rounds hold, seed {seed}", options.rounds);
}

impl Suite {
    fn new(options: &Options, seed: u64) -> Result<Self> {
        let engine = options.engine;
        // Small, so that checkpoints and log switches happen during a round too.
        let mut settings = support::settings(engine);
        settings.extend([("max_wal_size", "64MB"), ("checkpoint_timeout", "30s")]);
        settings.push(("max_prepared_transactions", "20"));
        if options.warm.unwrap_or(seed % 2 == 1) {
            settings.push(("mot.warm_restart", "on"));
        }
        let with_standby = options.standby;
        if with_standby {
            // A standby that was away for a round still finds what it missed.
            settings.extend([("wal_keep_size", "4GB"), ("hot_standby_feedback", "on")]);
            // Threads replay there, too, though it keeps up.
            settings.push(("mot.replay_hand_over", "always"));
        }
        let mut cluster = Cluster::create(&scratch_directory("mot-crash"), None, &settings)?;
        cluster.start_and_wait()?;
        let target = cluster.target(engine, None)?;
        small_load(&target, seed, true)?;
        let bank = Bank::open(&target)?;
        pairs::open(&target)?;
        let companion = with_standby
            .then(|| Companion::of(&cluster, &target))
            .transpose()?;
        Ok(Suite {
            cluster,
            target,
            bank,
            companion,
            log_seen: 0,
        })
    }

    fn round(&mut self, seed: u64, round: u64, only: Option<Event>) -> Result<()> {
        let mut rng = TpccRng::new(seed, 1_000_000 + round);
        let drawn = Event::draw(&mut rng);
        let event = only.unwrap_or(drawn);
        let moment = Duration::from_millis(rng.uniform(300, 2000) as u64);
        let mode = if rng.percent(50) {
            Mode::Interactive
        } else {
            Mode::Procedures
        };
        let terminals = rng.uniform(2, 8) as u32;
        let mishap = Mishap::draw(&mut rng);
        let ledger = self.cluster.directory().join(format!("ledger-{round}"));
        let start = Instant::now();
        ddl::prepare(&self.target, round)?;

        // Who is to stop in time is told so; everyone else runs until the server goes away.
        let clients_leave = event == Event::SmartAfterClientsLeft;
        let options = RunOptions {
            terminals,
            duration: if clients_leave {
                moment
            } else {
                Duration::from_secs(100)
            },
            warmup: Duration::ZERO,
            mode,
            seed: seed.wrapping_add(round),
            ledger: Some(ledger.clone()),
            fixed_warehouse: false,
            rate: None,
            progress: false,
        };
        let report = std::thread::scope(|scope| -> Result<_> {
            let target = &self.target;
            let workload = run::start(scope, target, &options);
            let stop_after = clients_leave.then_some(moment);
            let bank = &self.bank;
            let of_round = Round {
                seed,
                number: round,
                stop_after,
            };
            let banking = scope.spawn(move || bank.work(target, of_round));
            let pairing = scope.spawn(move || pairs::work(target, of_round));
            let ghost = ddl::leave_open(&self.target, round);
            let suffered = self
                .companion
                .as_mut()
                .map_or(Ok(()), |companion| companion.suffer(mishap));
            let struck = if clients_leave {
                Ok(())
            } else {
                std::thread::sleep(moment);
                event.strike(&mut self.cluster, &self.target, &mut rng)
            };
            let report = workload
                .join()
                .unwrap_or_else(|_| Err(Failure::unexpected("panicked")));
            let banked = banking
                .join()
                .unwrap_or_else(|_| Err(Failure::unexpected("panicked")));
            let paired = pairing
                .join()
                .unwrap_or_else(|_| Err(Failure::unexpected("panicked")));
            drop(ghost?);
            suffered?;
            struck?;
            banked?;
            paired?;
            report
        })?;
        if clients_leave {
            event.strike(&mut self.cluster, &self.target, &mut rng)?;
        }
        if report.troubles() > 0 {
            return Err(Failure::unexpected(format!("errors in the run:\n{report}")));
        }
        let recovery = event.start_again(&mut self.cluster, &mut rng)?;
        let told = self.verify(&ledger, round)?;
        // What was recovered must still be there after another crash that nothing was done before.
        let again = rng.percent(25);
        if again {
            self.cluster.kill_postmaster()?;
            self.cluster.start_and_wait()?;
            self.verify(&ledger, round)?;
        }
        // What is prepared was brought back by all recoveries of the round.
        let pairs = pairs::verify(&self.target)?;
        let compared = match &mut self.companion {
            None => String::new(),
            Some(companion) => {
                companion.return_from(mishap)?;
                let rows = companion.compare(&self.target)?;
                format!(", standby ({mishap:?}) has the same {rows} rows")
            }
        };
        println!(
            "round {round}: {event:?} after {:.1} s of {mode} with {terminals} terminals, \
             recovered in {:.2} s{}: {told}, {pairs}{compared} ({:.1} s)",
            moment.as_secs_f64(),
            recovery.as_secs_f64(),
            if again { ", twice" } else { "" },
            start.elapsed().as_secs_f64()
        );
        Ok(())
    }

    fn verify(&mut self, ledger: &Path, round: u64) -> Result<String> {
        let verdict = ledger_check::check(&self.target, &Ledger::read(ledger)?)?;
        if !verdict.holds() {
            return Err(Failure::unexpected(format!("the ledger: {verdict}")));
        }
        for finding in check::check(&self.target)? {
            if finding.violations > 0 {
                return Err(Failure::unexpected(format!("consistency: {finding:?}")));
            }
        }
        let entries = self.bank.verify(&self.target)?;
        ddl::verify(&self.target, round)?;
        let mut complaints = check::table_complaints(&self.target)?;
        complaints.extend(suspicious_lines(&self.cluster, &mut self.log_seen)?);
        if !complaints.is_empty() {
            return Err(Failure::unexpected(complaints.join("\n")));
        }
        let (acknowledged, kept) = (verdict.acknowledged, verdict.in_flight_kept);
        Ok(format!(
            "{acknowledged} acknowledged, {kept} more in flight, {entries} bank entries"
        ))
    }
}
