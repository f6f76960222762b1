//! Stopping a cluster's server, or killing it or a part of it.

use super::{Cluster, PATIENCE};
use crate::failure::{Failure, Result};
use crate::processes::{self, Process};
use std::time::{Duration, Instant};

/// Time orphans of a killed postmaster get to notice; what computes on without waiting for anything
/// is then killed too, as an administrator would.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(10);

/// Pause between two looks at something awaited.
const POLL: Duration = Duration::from_millis(2);

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

impl Cluster {
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
        // Stopped first: a process it forked between our look and its end would hold the shared
        // memory unseen.
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
