//! The socket under a session: a Unix-domain or a TCP one, blocking, with a limit on silence.
//!
//! Waits in `poll`, as libpq does, not in `read`: whoever sleeps in `read` on a Unix-domain socket
//! is also woken when the server has taken the request off it, finds nothing and sleeps again.
//! Those wake-ups were a tenth of a backend's CPU time, for any kind of table.

use crate::failure::{Failure, Result};
use postgres::config::Host;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Where a server listens unless the connection string says otherwise.
const DEFAULT_PORT: u16 = 5432;

/// A connected stream, and how long it may be silent.
pub(crate) struct Socket {
    stream: Stream,
    silence_ms: libc::c_int,
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Connects to the first host of `config` that answers.
    pub(crate) fn open(config: &postgres::Config, silence_limit: Duration) -> Result<Self> {
        let mut last = Failure::Disconnected("the connection string names no host".into());
        for (place, host) in config.get_hosts().iter().enumerate() {
            let ports = config.get_ports();
            let port = ports
                .get(place)
                .or(ports.first())
                .copied()
                .unwrap_or(DEFAULT_PORT);
            match Self::open_one(host, port, silence_limit) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = Failure::lost(error),
            }
        }
        Err(last)
    }

    fn open_one(host: &Host, port: u16, silence_limit: Duration) -> std::io::Result<Self> {
        let stream = match host {
            Host::Unix(directory) => {
                let path = directory.join(format!(".s.PGSQL.{port}"));
                Stream::Unix(UnixStream::connect(path)?)
            }
            Host::Tcp(name) => {
                let stream = TcpStream::connect((name.as_str(), port))?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
        };
        Ok(Socket {
            stream,
            silence_ms: silence_limit.as_millis().try_into().unwrap_or(-1),
        })
    }

    fn descriptor(&self) -> RawFd {
        match &self.stream {
            Stream::Unix(stream) => stream.as_raw_fd(),
            Stream::Tcp(stream) => stream.as_raw_fd(),
        }
    }

    /// Sends all of `bytes`.
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match &mut self.stream {
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tcp(stream) => stream.write_all(bytes),
        }
    }

    /// Sleeps until there is something to read, or the connection is gone; false after too long a
    /// silence.
    fn wait(&self) -> std::io::Result<bool> {
        let mut wanted = libc::pollfd {
            fd: self.descriptor(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor of ours, in a structure that outlives the call.
        match unsafe { libc::poll(&raw mut wanted, 1, self.silence_ms) } {
            -1 => Err(std::io::Error::last_os_error()),
            ready => Ok(ready > 0),
        }
    }

    /// Reads at least one byte.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        loop {
            let got = match self.wait() {
                Ok(true) => match &mut self.stream {
                    Stream::Unix(stream) => stream.read(into),
                    Stream::Tcp(stream) => stream.read(into),
                },
                Ok(false) => {
                    return Err(Failure::unexpected(
                        "the server has been silent for too long",
                    ));
                }
                Err(error) => Err(error),
            };
            match got {
                Ok(0) => {
                    return Err(Failure::Disconnected(
                        "the server closed the connection".into(),
                    ));
                }
                Ok(bytes) => return Ok(bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::lost(error)),
            }
        }
    }
}
