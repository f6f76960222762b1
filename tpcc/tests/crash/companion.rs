//! A streaming standby beside the server that is killed: killed and stopped itself at random, and
//! compared with the primary, row for row at the same position of the log, after every round.

use std::time::{Duration, Instant};
use tpcc::cluster::{Cluster, Shutdown, scratch_directory};
use tpcc::failure::{Failure, Result};
use tpcc::random::TpccRng;
use tpcc::target::{Target, from_client};

/// Time the standby gets to replay what the primary wrote.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two looks.
const POLL: Duration = Duration::from_millis(10);

/// What happens to the standby in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    None,
    /// Killed under replay, and started again at once.
    Killed,
    /// Shut down at the beginning, started again when the primary is back.
    Away,
    /// Its backends are told to end, as an administrator would.
    Restarted,
}

impl Mishap {
    pub fn draw(rng: &mut TpccRng) -> Self {
        match rng.uniform(1, 100) {
            1..=40 => Mishap::None,
            41..=65 => Mishap::Killed,
            66..=85 => Mishap::Away,
            _ => Mishap::Restarted,
        }
    }
}

/// The standby.
pub struct Companion {
    standby: Cluster,
    target: Target,
}

impl Companion {
    /// Makes one of a running primary.
    pub fn of(primary: &Cluster, target: &Target) -> Result<Self> {
        let directory = scratch_directory("mot-companion");
        let mut standby = Cluster::standby_of(primary, &directory, "companion")?;
        standby.start_and_wait()?;
        let target = standby.target(target.engine, Some(&target.schema))?;
        Ok(Companion { standby, target })
    }

    /// While the primary is under load.
    pub fn suffer(&mut self, mishap: Mishap) -> Result<()> {
        match mishap {
            Mishap::None => Ok(()),
            Mishap::Killed => {
                self.standby.kill_postmaster()?;
                self.standby.start()
            }
            Mishap::Away => self.standby.stop(Shutdown::Fast),
            Mishap::Restarted => {
                self.standby.stop(Shutdown::Immediate)?;
                self.standby.start()
            }
        }
    }

    /// When the primary is back.
    pub fn return_from(&mut self, mishap: Mishap) -> Result<()> {
        if mishap == Mishap::Away {
            self.standby.start()?;
        }
        self.standby.wait_until_ready("SELECT 1")
    }

    /// Waits until everything the primary wrote is replayed, and compares all tables.
    pub fn compare(&mut self, primary: &Target) -> Result<u64> {
        let mut here = primary.client()?;
        let mut there = self.target.client()?;
        let end: String = here
            .query_one("SELECT pg_current_wal_flush_lsn()::text", &[])
            .map_err(from_client)?
            .get(0);
        let deadline = Instant::now() + PATIENCE;
        let caught_up = format!("SELECT pg_last_wal_replay_lsn() >= '{end}'::pg_lsn");
        while !there
            .query_one(&caught_up, &[])
            .map_err(from_client)?
            .get::<_, Option<bool>>(0)
            .unwrap_or(false)
        {
            if Instant::now() > deadline {
                return Err(Failure::unexpected(format!(
                    "the standby does not replay up to {end}\n{}",
                    self.standby.log_tail()
                )));
            }
            std::thread::sleep(POLL);
        }
        let tables = "SELECT format('%I.%I', nspname, relname) FROM pg_class c \
                      JOIN pg_namespace n ON n.oid = relnamespace \
                      WHERE relkind IN ('r', 'f') AND relpersistence = 'p' AND nspname !~ '^(pg_|information_schema)' \
                      ORDER BY 1";
        let names = |client: &mut postgres::Client| -> Result<Vec<String>> {
            let rows = client.query(tables, &[]).map_err(from_client)?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        };
        let (tables_here, tables_there) = (names(&mut here)?, names(&mut there)?);
        if tables_here != tables_there {
            return Err(Failure::unexpected(format!(
                "tables differ: {tables_here:?} and {tables_there:?}"
            )));
        }
        let mut rows = 0;
        for table in &tables_here {
            // Order-independent, and the same on both sides exactly if the rows are.
            let query = format!(
                "SELECT count(*), coalesce(sum(('x' || substr(md5(t::text), 1, 15))::bit(60)::bigint), 0)::text \
                 FROM {table} t"
            );
            let look = |client: &mut postgres::Client| -> Result<(i64, String)> {
                let row = client.query_one(&query, &[]).map_err(from_client)?;
                Ok((row.get(0), row.get(1)))
            };
            let (primary_has, standby_has) = (look(&mut here)?, look(&mut there)?);
            if primary_has != standby_has {
                return Err(Failure::unexpected(format!(
                    "{table} at {end}: the primary has {primary_has:?}, the standby {standby_has:?} (rows, digest)"
                )));
            }
            rows += primary_has.0 as u64;
        }
        if self.target.engine.is_mot() {
            let complaints = tpcc::check::table_complaints(&self.target)?;
            if !complaints.is_empty() {
                return Err(Failure::unexpected(format!(
                    "the standby's mot.check: {}",
                    complaints.join("\n")
                )));
            }
        }
        Ok(rows)
    }

    /// Keeps the standby's directory for whoever looks for the cause.
    pub fn keep_directory(&mut self) {
        self.standby.keep_directory();
        println!(
            "the standby's directory is {}",
            self.standby.directory().display()
        );
    }
}
