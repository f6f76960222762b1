//! The socket under a session: a Unix-domain or a TCP one, blocking, with a limit on silence.

use crate::failure::{Failure, Result};
use postgres::config::Host;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Where a server listens unless the connection string says otherwise.
const DEFAULT_PORT: u16 = 5432;

/// A connected stream.
pub(crate) enum Socket {
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
        match host {
            Host::Unix(directory) => {
                let stream = UnixStream::connect(directory.join(format!(".s.PGSQL.{port}")))?;
                stream.set_read_timeout(Some(silence_limit))?;
                Ok(Socket::Unix(stream))
            }
            Host::Tcp(name) => {
                let stream = TcpStream::connect((name.as_str(), port))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(silence_limit))?;
                Ok(Socket::Tcp(stream))
            }
        }
    }

    /// Sends all of `bytes`.
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Socket::Unix(stream) => stream.write_all(bytes),
            Socket::Tcp(stream) => stream.write_all(bytes),
        }
    }

    /// Reads at least one byte.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        loop {
            let got = match self {
                Socket::Unix(stream) => stream.read(into),
                Socket::Tcp(stream) => stream.read(into),
            };
            match got {
                Ok(0) => {
                    return Err(Failure::Disconnected(
                        "the server closed the connection".into(),
                    ));
                }
                Ok(bytes) => return Ok(bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(Failure::unexpected(
                        "the server has been silent for too long",
                    ));
                }
                Err(error) => return Err(Failure::lost(error)),
            }
        }
    }
}
