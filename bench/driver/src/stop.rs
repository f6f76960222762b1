//! How a run ends before its time: somebody interrupts it, or a part takes longer than it may.
//!
//! Either way every program that this process started is ended, servers included; whoever waits for
//! one of them gets an error. After an interrupt the servers' directory goes too, and the process
//! with it. A part that took too long fails, and the next one begins with a server started anew.
//!
//! Invariant: the only processes ever signalled are children of this one and the process groups
//! they lead.

use std::io::Read;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tpcc::failure::{Failure, Result};
use tpcc::processes::{Process, children};

const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// What a shell makes of a program ended by SIGINT.
const INTERRUPTED_STATUS: i32 = 130;
/// Time the programs get to end by themselves.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time without children after which there will be no more.
const QUIET: Duration = Duration::from_millis(300);
/// Pause between two looks.
const POLL: Duration = Duration::from_millis(20);

/// Where the handler writes that a signal came.
static TELL: AtomicI32 = AtomicI32::new(-1);
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_signal: i32) {
    let byte = 1u8;
    // SAFETY: write(2) may be called in a handler; the byte outlives the call. If the pipe is full,
    // enough has been told.
    unsafe { libc::write(TELL.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
}

/// From now on SIGINT, SIGTERM and SIGHUP end everything and remove `directory`.
pub(crate) fn on_interrupt(directory: PathBuf) -> Result<()> {
    let failed = |error: std::io::Error| Failure::unexpected(format!("signals: {error}"));
    let (mut told, tell) = UnixStream::pair().map_err(failed)?;
    // The handler's end stays open for as long as the process lives.
    TELL.store(tell.as_raw_fd(), Ordering::Relaxed);
    let _ = tell.into_raw_fd();
    for signal in SIGNALS {
        // SAFETY: the handler only writes to a pipe, which is allowed at any moment.
        let before = unsafe { libc::signal(signal, on_signal as *const () as libc::sighandler_t) };
        if before == libc::SIG_ERR {
            return Err(failed(std::io::Error::last_os_error()));
        }
    }
    std::thread::spawn(move || {
        let mut byte = [0];
        if told.read_exact(&mut byte).is_err() {
            return;
        }
        IS_INTERRUPTED.store(true, Ordering::Relaxed);
        eprintln!("bench: interrupted; what was measured is written, the servers are stopped");
        end_programs(QUIET);
        // Best effort: there is nobody left to tell.
        let _ = std::fs::remove_dir_all(&directory);
        std::process::exit(INTERRUPTED_STATUS);
    });
    Ok(())
}

/// Never comes back after an interrupt: the process is about to end, and nothing new may begin.
pub(crate) fn stay_if_interrupted() {
    while IS_INTERRUPTED.load(Ordering::Relaxed) {
        std::thread::park();
    }
}

/// Does something unless it is asked in time whether it has.
pub(crate) struct Deadline {
    end: Sender<()>,
    watch: JoinHandle<bool>,
}

impl Deadline {
    /// Ends all programs when `limit` has passed.
    pub(crate) fn after(limit: Duration) -> Self {
        Self::with(limit, || end_programs(Duration::ZERO))
    }

    fn with(limit: Duration, action: impl FnOnce() + Send + 'static) -> Self {
        let (end, ended) = channel::<()>();
        let watch = std::thread::spawn(move || {
            let is_late = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if is_late {
                action();
            }
            is_late
        });
        Deadline { end, watch }
    }

    /// Whether it passed.
    pub(crate) fn has_passed(self) -> bool {
        drop(self.end);
        self.watch.join().unwrap_or(false)
    }
}

/// Ends every child of this process, until there has been none for `quiet`.
fn end_programs(quiet: Duration) {
    let own = std::process::id() as i32;
    end(&|| children(own), quiet);
}

/// Ends what `list` finds, until it has found nothing for `quiet`. SIGQUIT is an immediate shutdown
/// to a postmaster.
fn end(list: &dyn Fn() -> Vec<Process>, quiet: Duration) {
    let mut last_seen = Instant::now();
    let mut asked: Vec<(Process, Instant)> = Vec::new();
    loop {
        let alive: Vec<Process> = list().into_iter().filter(Process::is_alive).collect();
        if !alive.is_empty() {
            last_seen = Instant::now();
        } else if last_seen.elapsed() >= quiet {
            return;
        }
        for process in alive {
            match asked.iter().find(|(known, _)| *known == process) {
                None => {
                    signal(process, libc::SIGQUIT);
                    asked.push((process, Instant::now()));
                }
                Some((_, at)) if at.elapsed() > PATIENCE => signal(process, libc::SIGKILL),
                Some(_) => {}
            }
        }
        std::thread::sleep(POLL);
    }
}

/// Signals a child, and the whole group if it leads one.
fn signal(process: Process, signal: i32) {
    // SAFETY: neither call takes a pointer; the process is a child of ours that has not been waited
    // for, or was so a moment ago.
    unsafe {
        let leads_group = libc::getpgid(process.pid) == process.pid;
        let target = if leads_group {
            -process.pid
        } else {
            process.pid
        };
        libc::kill(target, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_program_ends_with_its_group() {
        // The shell has a child of its own; the pipe is at its end only when both are gone.
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 600; true"])
            .stdout(Stdio::piped())
            .process_group(0);
        let shell = command.spawn().unwrap();
        let (own, pid) = (std::process::id() as i32, shell.id() as i32);
        let ended = std::thread::spawn(move || {
            let only = || -> Vec<Process> {
                let all = children(own).into_iter();
                all.filter(|child| child.pid == pid).collect()
            };
            end(&only, Duration::ZERO);
        });
        let output = shell.wait_with_output().unwrap();
        ended.join().unwrap();
        assert!(!output.status.success());
    }

    #[test]
    fn a_deadline_acts_only_when_it_passes() {
        let (tell, told) = channel();
        let far = tell.clone();
        let deadline = Deadline::with(Duration::from_secs(600), move || far.send(1).unwrap());
        assert!(!deadline.has_passed());
        let deadline = Deadline::with(Duration::ZERO, move || tell.send(2).unwrap());
        assert_eq!(told.recv(), Ok(2));
        assert!(deadline.has_passed());
    }
}
