//! A private PostgreSQL cluster: made, started, stopped in every way there is, and killed.
//!
//! Everything of it lives under one scratch directory and is reached through a Unix-domain socket
//! there; no existing cluster is looked at, let alone touched. Since PostgreSQL refuses to run as
//! root, a root caller's cluster belongs to the user `postgres`.
//!
//! Invariant: signals go only to the postmaster this value started and to processes that were its
//! children, told apart from later processes of the same number by their start time.

mod start;
mod stop;

pub use stop::Shutdown;

use crate::engine::Engine;
use crate::failure::{Failure, Result};
use crate::processes;
use crate::target::Target;
use std::ffi::CString;
use std::fs::DirBuilder;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The port only names the socket file in the cluster's own directory; nothing listens on TCP.
const PORT: u16 = 5432;

/// Time a server gets to start, recover or stop before that counts as a failure.
const PATIENCE: Duration = Duration::from_secs(180);

/// A private cluster.
pub struct Cluster {
    directory: PathBuf,
    bindir: PathBuf,
    settings: Vec<(String, String)>,
    /// User and group the server runs as; `None` for the caller's own.
    owner: Option<(u32, u32)>,
    postmaster: Option<Child>,
    /// A program and its arguments that runs the server's programs; none: they run by themselves.
    runner: Vec<String>,
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
            runner: Vec::new(),
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

    /// Makes a streaming standby of a running cluster by `pg_basebackup`, with the same settings.
    /// `name` is what the primary knows it by. The standby is not started.
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
            runner: Vec::new(),
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

    /// Takes a setting back: the server's own default holds from the next start on.
    pub fn unset(&mut self, name: &str) {
        self.settings.retain(|(known, _)| known != name);
    }

    /// What a setting of the next start is, if it was given.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let mut settings = self.settings.iter();
        let found = settings.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// From the next start on the server runs under another program, which takes its command line
    /// behind `runner`, its own, and executes it in its own process; an empty one: by itself again.
    pub fn run_under(&mut self, runner: &[String]) {
        self.runner = runner.to_vec();
    }

    /// A program of this cluster's version, run as the cluster's owner.
    pub fn program(&self, name: &str) -> Command {
        self.prepared(Command::new(self.bindir.join(name)))
    }

    /// The server itself.
    fn server(&self) -> Command {
        let server = self.bindir.join("postgres");
        let Some((runner, arguments)) = self.runner.split_first() else {
            return self.prepared(Command::new(server));
        };
        let mut command = Command::new(runner);
        command.args(arguments).arg(server);
        self.prepared(command)
    }

    fn prepared(&self, mut command: Command) -> Command {
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

    /// PostgreSQL's major version.
    pub fn major_version(&self) -> Result<u32> {
        let version = std::fs::read_to_string(self.data().join("PG_VERSION"));
        let version = version.map_err(|error| at(&self.data(), &error))?;
        let number = version.trim().parse();
        number.map_err(|_| Failure::unexpected(format!("PostgreSQL's version is {version}")))
    }

    /// Process number of the postmaster.
    pub fn postmaster_pid(&self) -> Result<i32> {
        let child = self.postmaster.as_ref();
        child
            .map(|child| child.id() as i32)
            .ok_or_else(|| Failure::unexpected("the server is not running"))
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

    /// Lines of the log since the newest start whose message begins with `prefix`, without what
    /// stands before the message.
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
        let end = read_end(&self.log_path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&end);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

/// The last bytes of a file, however long it is: a server that refuses every statement for an hour
/// writes gigabytes.
fn read_end(path: &Path) -> std::io::Result<Vec<u8>> {
    const END_BYTES: u64 = 64 << 10;
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES)))?;
    let mut end = Vec::new();
    file.take(END_BYTES).read_to_end(&mut end)?;
    Ok(end)
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
