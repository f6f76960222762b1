//! A private MariaDB beside the private PostgreSQL: own data directory, a socket only, run by the
//! same user; gone with its files when the value is dropped.
//!
//! Invariant: the only process ever signalled is the one this value started.

use crate::rig::Rig;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tpcc::failure::{Failure, Result};
use tpcc::processes::tree_cpu_time;

const SERVER: &str = "/usr/sbin/mariadbd";
const INSTALL: &str = "/usr/bin/mariadb-install-db";
/// What that program calls.
const DEFAULTS: &str = "/usr/bin/my_print_defaults";
/// The database that sysbench uses by default.
pub(crate) const DATABASE: &str = "sbtest";
/// Time the server gets to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks.
const POLL: Duration = Duration::from_millis(20);

/// What `mariadbd --version` says; `None` if it is not installed.
pub(crate) fn version() -> Option<String> {
    let output = Command::new(SERVER)
        .args(["--no-defaults", "--version"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Some(
        text.split_once("Ver ")
            .map_or(text.clone(), |(_, version)| version.to_owned()),
    )
}

/// A running server.
pub(crate) struct Mariadb {
    child: Child,
    directory: PathBuf,
}

impl Mariadb {
    /// Makes and starts one in the directory of the PostgreSQL cluster. As durable as that: the log
    /// is flushed at every commit, pages are protected from torn writes, no binary log. In a
    /// session of its own, as PostgreSQL's processes are: where the kernel shares the processors
    /// out by session, a server in its client's would wait for nobody else. `None` if MariaDB is
    /// not installed.
    pub(crate) fn start(rig: &Rig) -> Result<Option<Self>> {
        if ![SERVER, INSTALL, DEFAULTS]
            .iter()
            .all(|program| Path::new(program).exists())
        {
            return Ok(None);
        }
        let home = rig.cluster.directory();
        let directory = home.join("mariadb");
        let failed = |error: std::io::Error| {
            Failure::unexpected(format!("{}: {error}", directory.display()))
        };
        DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .map_err(failed)?;
        let owner = std::fs::metadata(home).map_err(failed)?;
        chown(&directory, Some(owner.uid()), Some(owner.gid())).map_err(failed)?;
        let data = format!("--datadir={}", directory.join("data").display());
        // An absolute path stands for itself among the cluster's programs; what matters is that
        // they run as its owner.
        let made = rig
            .cluster
            .program(INSTALL)
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
                &data,
            ])
            .output()
            .map_err(failed)?;
        if !made.status.success() {
            // It speaks on both.
            let (words, errors) = (
                String::from_utf8_lossy(&made.stdout),
                String::from_utf8_lossy(&made.stderr),
            );
            return Err(Failure::unexpected(format!("{INSTALL}: {words}{errors}")));
        }
        let init = rig.write_file(
            "mariadb.init",
            &format!("CREATE DATABASE IF NOT EXISTS {DATABASE};\n"),
        )?;
        let log = std::fs::File::create(directory.join("server.log")).map_err(failed)?;
        let mut server = rig.cluster.program(SERVER);
        server
            .args([
                "--no-defaults",
                "--skip-networking",
                "--skip-name-resolve",
                "--skip-log-bin",
                &data,
            ])
            .arg(format!("--socket={}", directory.join("socket").display()))
            .arg(format!("--pid-file={}", directory.join("pid").display()))
            .arg(format!("--init-file={}", init.display()))
            .arg(format!(
                "--innodb-buffer-pool-size={}",
                rig.plan.innodb_pool
            ))
            .args([
                "--innodb-flush-log-at-trx-commit=1",
                "--innodb-doublewrite=1",
                "--innodb-log-file-size=2G",
            ])
            .args(["--max-connections=200", "--max-prepared-stmt-count=100000"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        // SAFETY: setsid(2) may be called between fork and exec, and takes nothing of ours along.
        unsafe {
            server.pre_exec(|| match libc::setsid() {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            })
        };
        let child = server.spawn().map_err(failed)?;
        let mut server = Mariadb { child, directory };
        server.wait_until_ready()?;
        Ok(Some(server))
    }

    /// CPU time since its start.
    pub(crate) fn cpu_time(&self) -> Duration {
        tree_cpu_time(self.child.id() as i32)
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let log =
                std::fs::read_to_string(self.directory.join("server.log")).unwrap_or_default();
            if log.contains("ready for connections") {
                return Ok(());
            }
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                return Err(Failure::unexpected(format!(
                    "mariadbd did not start: {log}"
                )));
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // SAFETY: kill takes no pointer; the process is our own child, which has not been
            // waited for.
            unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        }
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(POLL);
        }
        // Best effort: there is nobody left to tell. Killing one that has ended does nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
