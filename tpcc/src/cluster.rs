//! A private PostgreSQL cluster: made, started, stopped in every way there is, and killed.
//!
//! Everything of it lives under one scratch directory and is reached through a Unix-domain socket
//! there; no existing cluster is looked at, let alone touched. Since PostgreSQL refuses to run as
//! root, a root caller's cluster belongs to the user `postgres`.
//!
//! Invariant: signals go only to the postmaster this value started and to processes that were its
//! children, told apart from later processes of the same number by their start time.

use crate::failure::{Failure, Result};
use crate::processes::{self, Process};
use crate::schema::Engine;
use crate::target::Target;
use postgres::NoTls;
use std::ffi::CString;
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The port only names the socket file in the cluster's own directory; nothing listens on TCP.
const PORT: u16 = 5432;

/// Time a server gets to start, recover or stop before that counts as a failure.
const PATIENCE: Duration = Duration::from_secs(180);

/// Time orphans of a killed postmaster get to notice; what computes on without waiting for anything
/// is then killed too, as an administrator would.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(10);

/// Pause between two looks at something awaited.
const POLL: Duration = Duration::from_millis(2);

/// Pause between two tries to connect; each costs the server a process.
const CONNECT_PAUSE: Duration = Duration::from_millis(10);

/// How to end a postmaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Waits for clients to leave (SIGTERM).
    Smart,
    /// Ends the clients' sessions, then shuts down cleanly (SIGINT).
    Fast,
    /// Everyone leaves at once; the next start recovers (SIGQUIT).
    Immediate,
}

/// A private cluster.
pub struct Cluster {
    directory: PathBuf,
    bindir: PathBuf,
    settings: Vec<(String, String)>,
    /// User and group the server runs as; `None` for the caller's own.
    owner: Option<(u32, u32)>,
    postmaster: Option<Child>,
    keep: bool,
}

impl Cluster {
    /// Makes a cluster under `directory`, which must not exist yet. The server is not started.
    pub fn create(
        directory: &Path,
        bindir: Option<&Path>,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let bindir = match bindir {
            Some(bindir) => bindir.to_owned(),
            None => pg_config_bindir()?,
        };
        DirBuilder::new()
            .mode(0o700)
            .create(directory)
            .map_err(|error| at(directory, &error))?;
        let owner = server_user()?;
        if let Some((user, group)) = owner {
            chown(directory, Some(user), Some(group)).map_err(|error| at(directory, &error))?;
        }
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let cluster = Cluster {
            directory: directory.to_owned(),
            bindir,
            settings: settings.iter().map(own).collect(),
            owner,
            postmaster: None,
            keep: false,
        };
        let data = cluster.data();
        let made = cluster
            .program("initdb")
            .arg("-D")
            .arg(&data)
            .args([
                "-U",
                "postgres",
                "-A",
                "trust",
                "--no-sync",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
            ])
            .output();
        succeed("initdb", made)?;
        Ok(cluster)
    }

    /// Makes a streaming standby of a running cluster by `pg_basebackup`, with the same settings. `name` is what the primary knows
    /// it by. The standby is not started.
    pub fn standby_of(primary: &Cluster, directory: &Path, name: &str) -> Result<Self> {
        DirBuilder::new()
            .mode(0o700)
            .create(directory)
            .map_err(|error| at(directory, &error))?;
        if let Some((user, group)) = primary.owner {
            chown(directory, Some(user), Some(group)).map_err(|error| at(directory, &error))?;
        }
        let standby = Cluster {
            directory: directory.to_owned(),
            bindir: primary.bindir.clone(),
            settings: primary.settings.clone(),
            owner: primary.owner,
            postmaster: None,
            keep: false,
        };
        let made = standby
            .program("pg_basebackup")
            .arg("-D")
            .arg(standby.data())
            .args(["-c", "fast", "-X", "stream", "-R", "-d"])
            .arg(format!("{} application_name={name}", primary.url()))
            .output();
        succeed("pg_basebackup", made)?;
        Ok(standby)
    }

    /// Leaves the directory behind when the value is dropped.
    pub fn keep_directory(&mut self) {
        self.keep = true;
    }

    /// The cluster's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// The server's log.
    pub fn log_path(&self) -> PathBuf {
        self.directory.join("server.log")
    }

    /// The connection string of database `postgres`.
    pub fn url(&self) -> String {
        format!(
            "host={} port={PORT} user=postgres dbname=postgres",
            self.directory.display()
        )
    }

    /// The tables of `engine` in this cluster.
    pub fn target(&self, engine: Engine, schema: Option<&str>) -> Result<Target> {
        Target::new(&self.url(), engine, schema)
    }

    /// Changes or adds a setting; takes effect with the next start.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.settings.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.settings.push((name.to_owned(), value.to_owned())),
        }
    }

    /// A server program of this cluster's version, run as the cluster's owner.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.bindir.join(name));
        if let Some((user, group)) = self.owner {
            command.gid(group).uid(user);
        }
        // The caller may have another server in its environment.
        for variable in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS"] {
            command.env_remove(variable);
        }
        // The caller's own directory may be one the owner cannot enter.
        command.current_dir(&self.directory).stdin(Stdio::null());
        command
    }

    /// Starts the postmaster and returns at once; see [`Cluster::wait_until_ready`].
    pub fn start(&mut self) -> Result<()> {
        if self.postmaster.is_some() {
            return Err(Failure::unexpected("the server is already running"));
        }
        let path = self.log_path();
        let log = OpenOptions::new().create(true).append(true).open(&path);
        let log = log.map_err(|error| at(&path, &error))?;
        let errors = log.try_clone().map_err(|error| at(&path, &error))?;
        let mut command = self.program("postgres");
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

    /// Process number of the postmaster.
    pub fn postmaster_pid(&self) -> Result<i32> {
        let child = self.postmaster.as_ref();
        child
            .map(|child| child.id() as i32)
            .ok_or_else(|| Failure::unexpected("the server is not running"))
    }

    /// Ends the server in the given way and waits until it is gone.
    pub fn stop(&mut self, how: Shutdown) -> Result<()> {
        let signal = match how {
            Shutdown::Smart => libc::SIGTERM,
            Shutdown::Fast => libc::SIGINT,
            Shutdown::Immediate => libc::SIGQUIT,
        };
        let pid = self.postmaster_pid()?;
        let orphans = processes::children(pid);
        send(pid, signal)?;
        self.wait_for_exit()?;
        wait_until_gone(&orphans);
        Ok(())
    }

    fn wait_for_exit(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let Some(child) = &mut self.postmaster else {
            return Ok(());
        };
        loop {
            match child.try_wait() {
                Ok(Some(_)) => break,
                Ok(None) if Instant::now() > deadline => {
                    return Err(Failure::unexpected("the server does not stop"));
                }
                Ok(None) => std::thread::sleep(POLL),
                Err(error) => return Err(Failure::unexpected(error.to_string())),
            }
        }
        self.postmaster = None;
        Ok(())
    }

    /// Kills the postmaster with SIGKILL and waits until its orphans have noticed. Returns how many
    /// of them had to be killed too.
    pub fn kill_postmaster(&mut self) -> Result<usize> {
        let pid = self.postmaster_pid()?;
        // Stopped first: a process it forked between our look and its end would hold the shared memory unseen.
        send(pid, libc::SIGSTOP)?;
        let orphans = processes::children(pid);
        send(pid, libc::SIGKILL)?;
        self.wait_for_exit()?;
        Ok(wait_until_gone(&orphans))
    }

    /// Kills one process of the server with SIGKILL, if it is one.
    pub fn kill_child(&self, pid: i32) -> Result<bool> {
        self.signal_child(pid, libc::SIGKILL)
    }

    /// Sends a signal to one process of the server, if it is one.
    pub fn signal_child(&self, pid: i32, signal: i32) -> Result<bool> {
        let is_ours = processes::children(self.postmaster_pid()?)
            .iter()
            .any(|child| child.pid == pid);
        if is_ours {
            send(pid, signal)?;
        }
        Ok(is_ours)
    }

    /// Children of the postmaster whose process title begins with `title`.
    pub fn children_titled(&self, title: &str) -> Result<Vec<i32>> {
        let children = processes::children(self.postmaster_pid()?);
        Ok(children
            .iter()
            .filter(|child| child.title().starts_with(title))
            .map(|child| child.pid)
            .collect())
    }

    /// CPU time of all server processes since the start.
    pub fn cpu_time(&self) -> Result<Duration> {
        Ok(processes::tree_cpu_time(self.postmaster_pid()?))
    }

    /// CPU time of the children alive whose process title begins with `title`.
    pub fn cpu_time_titled(&self, title: &str) -> Result<Duration> {
        let children = self.children_titled(title)?;
        Ok(children.into_iter().map(processes::tree_cpu_time).sum())
    }

    /// Lines of the log since the newest start whose message begins with `prefix`, without what stands before the message.
    pub fn log_lines_since_start(&self, prefix: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.log_path()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let start = lines
            .iter()
            .rposition(|line| line.contains("starting PostgreSQL"))
            .unwrap_or(0);
        lines[start..]
            .iter()
            .filter_map(|line| line.split_once("LOG:  "))
            .filter(|(_, message)| message.starts_with(prefix))
            .map(|(_, message)| message.to_owned())
            .collect()
    }

    /// The end of the server's log.
    pub fn log_tail(&self) -> String {
        const TAIL_LINES: usize = 15;
        let text = std::fs::read_to_string(self.log_path()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Best effort: there is nobody left to tell.
        if self.postmaster.is_some() {
            let _ = self.stop(Shutdown::Immediate);
        }
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

fn send(pid: i32, signal: i32) -> Result<()> {
    // SAFETY: kill takes no pointer; the caller vouches that `pid` is a process of this cluster.
    let sent = unsafe { libc::kill(pid, signal) };
    if sent == 0 {
        Ok(())
    } else {
        Err(Failure::unexpected(format!("no process {pid}")))
    }
}

/// Waits for `orphans` to leave, kills those that do not, returns how many that were.
fn wait_until_gone(orphans: &[Process]) -> usize {
    let deadline = Instant::now() + ORPHAN_PATIENCE;
    while orphans.iter().any(Process::is_alive) && Instant::now() < deadline {
        std::thread::sleep(POLL);
    }
    let stubborn: Vec<_> = orphans.iter().filter(|orphan| orphan.is_alive()).collect();
    for orphan in &stubborn {
        // One that left a moment ago needs no signal any more.
        let _ = send(orphan.pid, libc::SIGKILL);
        while orphan.is_alive() {
            std::thread::sleep(POLL);
        }
    }
    stubborn.len()
}

fn pg_config_bindir() -> Result<PathBuf> {
    let output = succeed(
        "pg_config",
        Command::new("pg_config").arg("--bindir").output(),
    )?;
    Ok(PathBuf::from(output.trim()))
}

/// The user and group a root caller's server runs as.
fn server_user() -> Result<Option<(u32, u32)>> {
    // SAFETY: geteuid reads the process's own credentials and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Ok(None);
    }
    let name = CString::from(c"postgres");
    // SAFETY: the name is a terminated string; nothing else in this program calls the getpw family,
    // so the static record stays ours until the two numbers are copied out.
    let entry = unsafe { libc::getpwnam(name.as_ptr()).as_ref() };
    let entry = entry.ok_or_else(|| Failure::unexpected("there is no user postgres"))?;
    Ok(Some((entry.pw_uid, entry.pw_gid)))
}

fn succeed(what: &str, output: std::io::Result<Output>) -> Result<String> {
    let output = output.map_err(|error| Failure::unexpected(format!("{what}: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(Failure::unexpected(format!(
        "{what} failed ({}): {errors}",
        output.status
    )))
}

fn at(path: &Path, error: &std::io::Error) -> Failure {
    Failure::unexpected(format!("{}: {error}", path.display()))
}

/// A name for a scratch directory that does not exist yet, short enough for a socket's path.
pub fn scratch_directory(purpose: &str) -> PathBuf {
    let base = std::env::var_os("MOT_SCRATCH").map_or_else(std::env::temp_dir, PathBuf::from);
    let free = |number: &u32| {
        let path = base.join(format!("{purpose}-{}-{number}", std::process::id()));
        (!path.exists()).then_some(path)
    };
    (0..).find_map(|number| free(&number)).unwrap_or_default()
}
