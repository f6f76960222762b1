//! Servers that are killed, stopped and replaced while clients are at work.

use crate::failure::{Failure, Result};
use crate::wire::{Place, Session};
use rand::Rng;
use rand::rngs::SmallRng;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tpcc::cluster::{Cluster, Shutdown, scratch_directory};

/// Time a standby gets to connect or to promote.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(10);

/// Settings of private servers. Small, so that checkpoints happen within a run, too.
const SETTINGS: [(&str, &str); 6] = [
    ("shared_preload_libraries", "mot"),
    ("mot.max_memory", "512MB"),
    ("max_connections", "60"),
    ("max_wal_size", "64MB"),
    ("checkpoint_timeout", "30s"),
    ("restart_after_crash", "on"),
];

/// A private server, and its synchronous standby if it has one.
pub struct Servers {
    primary: Cluster,
    standby: Option<Cluster>,
    bindir: Option<PathBuf>,
}

impl Servers {
    /// Makes and starts them.
    pub fn start(bindir: Option<PathBuf>, with_standby: bool) -> Result<Servers> {
        let mut primary =
            Cluster::create(&scratch_directory("proof"), bindir.as_deref(), &SETTINGS)?;
        primary.start_and_wait()?;
        let mut servers = Servers {
            primary,
            standby: None,
            bindir,
        };
        if with_standby {
            servers.add_standby()?;
        }
        Ok(servers)
    }

    /// Where the primary is.
    pub fn place(&self) -> Result<Place> {
        Place::parse(&self.primary.url())
    }

    /// Where the server's programs are.
    pub fn bindir(&self) -> Option<&PathBuf> {
        self.bindir.as_ref()
    }

    /// Leaves the directories, and says which they are.
    pub fn keep(&mut self) -> String {
        self.primary.keep_directory();
        let mut words = format!(
            "the server's directory is {}",
            self.primary.directory().display()
        );
        if let Some(standby) = &mut self.standby {
            standby.keep_directory();
            words += &format!(", the standby's {}", standby.directory().display());
        }
        words
    }

    /// A standby that commits wait for.
    fn add_standby(&mut self) -> Result<()> {
        let mut standby = Cluster::standby_of(
            &self.primary,
            &scratch_directory("proof-standby"),
            "companion",
        )?;
        standby.start_and_wait()?;
        let mut session = Session::open(&self.place()?)?;
        session.must("ALTER SYSTEM SET synchronous_standby_names = 'companion'")?;
        session.must("SELECT pg_reload_conf()")?;
        wait_for("the standby to be synchronous", || {
            let query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
            Ok(session.must(query)?.value() == Some("1"))
        })?;
        self.standby = Some(standby);
        Ok(())
    }

    /// Ends the primary in one of several ways and brings it back, or makes the standby the
    /// primary. Returns what was done.
    pub fn strike(&mut self, rng: &mut SmallRng, has_moved: impl Fn(Place)) -> Result<String> {
        if let Some(mut standby) = self.standby.take() {
            self.primary.kill_postmaster()?;
            let mut session = Session::open(&Place::parse(&standby.url())?)?;
            session.must("SELECT pg_promote(true, 120)")?;
            // It knows the setting from its primary's files, and has nobody to wait for.
            session.must("ALTER SYSTEM SET synchronous_standby_names = ''")?;
            session.must("SELECT pg_reload_conf()")?;
            std::mem::swap(&mut self.primary, &mut standby);
            drop(standby);
            has_moved(self.place()?);
            self.add_standby()?;
            return Ok("killed the primary, promoted the standby, made a new one".to_owned());
        }
        Ok(match rng.random_range(0..4) {
            0 => {
                self.primary.kill_postmaster()?;
                self.primary.start_and_wait()?;
                "kill -9 of the postmaster"
            }
            1 => {
                self.primary.stop(Shutdown::Immediate)?;
                self.primary.start_and_wait()?;
                "immediate shutdown"
            }
            2 => {
                self.primary.stop(Shutdown::Fast)?;
                self.primary.start_and_wait()?;
                "fast shutdown"
            }
            _ => {
                let victim = self.a_backend()?;
                self.primary.kill_child(victim)?;
                self.primary.wait_until_ready("SELECT 1")?;
                "kill -9 of a backend"
            }
        }
        .to_owned())
    }

    fn a_backend(&self) -> Result<i32> {
        let mut session = Session::open(&self.place()?)?;
        let query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> \
            pg_backend_pid() LIMIT 1";
        let answer = session.must(query)?;
        answer
            .value()
            .and_then(|pid| pid.parse().ok())
            .ok_or_else(|| Failure::other("there is no client to kill"))
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !is_so()? {
        if Instant::now() > deadline {
            return Err(Failure::other(format!("waited in vain for {what}")));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
