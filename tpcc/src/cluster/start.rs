//! Starting a cluster's server.

use super::{Cluster, PATIENCE, PORT, at};
use crate::failure::{Failure, Result};
use postgres::NoTls;
use std::fs::OpenOptions;
use std::time::{Duration, Instant};

/// Pause between two tries to connect; each costs the server a process.
const CONNECT_PAUSE: Duration = Duration::from_millis(10);

impl Cluster {
    /// Starts the postmaster and returns at once; see [`Cluster::wait_until_ready`].
    pub fn start(&mut self) -> Result<()> {
        if self.postmaster.is_some() {
            return Err(Failure::unexpected("the server is already running"));
        }
        let path = self.log_path();
        let log = OpenOptions::new().create(true).append(true).open(&path);
        let log = log.map_err(|error| at(&path, &error))?;
        let errors = log.try_clone().map_err(|error| at(&path, &error))?;
        let mut command = self.server();
        command
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(&self.directory);
        command.args(["-p", &PORT.to_string(), "-c", "listen_addresses="]);
        for (name, value) in &self.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let child = command.stdout(log).stderr(errors).spawn();
        self.postmaster = Some(child.map_err(|error| at(&self.bindir, &error))?);
        Ok(())
    }

    /// Starts the server and waits for its first answer.
    pub fn start_and_wait(&mut self) -> Result<Duration> {
        let start = Instant::now();
        self.start()?;
        self.wait_until_ready("SELECT 1")?;
        Ok(start.elapsed())
    }

    /// Waits until `query` succeeds; fails if the postmaster ends instead.
    pub fn wait_until_ready(&mut self, query: &str) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let url = self.url();
        loop {
            let answer = postgres::Client::connect(&url, NoTls)
                .and_then(|mut client| client.simple_query(query).map(|_| ()));
            let Err(error) = answer else { return Ok(()) };
            // "Starting up" and "no socket yet" pass; any other word of the server's is final.
            let state = error.as_db_error().map(|db| db.code().code().to_owned());
            if state.is_some_and(|state| !state.starts_with("57P")) {
                return Err(crate::target::from_client(error));
            }
            if let Some(child) = &mut self.postmaster
                && let Ok(Some(status)) = child.try_wait()
            {
                self.postmaster = None;
                return Err(Failure::unexpected(format!(
                    "the server did not start ({status}): {}",
                    self.log_tail()
                )));
            }
            if Instant::now() > deadline {
                return Err(Failure::unexpected(format!("no answer in time: {error}")));
            }
            std::thread::sleep(CONNECT_PAUSE);
        }
    }
}
