//! A session that can be asked, left alone, and looked at again.
//!
//! The lock-step tester has to send a statement and then see whether it waits, which a blocking
//! client has no call for; so this speaks the simple-query half of the protocol itself, in text,
//! over Unix-domain sockets, to servers that trust their clients.
//!
//! Invariant: at most one question is on its way; [`Session::send`] comes after the answer to the
//! one before.

use crate::failure::{Failure, Refusal, Result};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Longest a statement may take where nothing else limits it; beyond it something hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Protocol version 3.0.
const PROTOCOL: i32 = 196_608;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    socket: String,
    database: String,
    user: String,
}

impl Place {
    /// From a connection string: `host` a socket directory, `port`, `dbname`, `user`.
    pub fn parse(url: &str) -> Result<Place> {
        let config: postgres::Config = url
            .parse()
            .map_err(|error| Failure::other(format!("--url: {error}")))?;
        let Some(postgres::config::Host::Unix(directory)) = config.get_hosts().first() else {
            return Err(Failure::other("--url: host must be a socket directory"));
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let user = config.get_user().unwrap_or("postgres").to_owned();
        Ok(Place {
            socket: format!("{}/.s.PGSQL.{port}", directory.display()),
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
        })
    }

    /// The same server, another database.
    pub fn database(mut self, name: &str) -> Place {
        name.clone_into(&mut self.database);
        self
    }
}

/// A row: its values as text.
pub type Row = Vec<Option<String>>;

/// What a statement (or several in one string) came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// All rows.
    pub rows: Vec<Row>,
    /// The command tags.
    pub tags: Vec<String>,
    /// The error, if there was one.
    pub refusal: Option<Refusal>,
}

impl Answer {
    /// Rows the last command counted.
    pub fn count(&self) -> u64 {
        let tag = self.tags.last().map_or("", String::as_str);
        tag.rsplit(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or(0)
    }

    /// The first value.
    pub fn value(&self) -> Option<&str> {
        self.rows.first()?.first()?.as_deref()
    }
}

/// Where the session stands, as the server says with every answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No transaction.
    Idle,
    /// In a transaction.
    Open,
    /// In a transaction that can only be rolled back.
    Failed,
}

/// One session.
pub struct Session {
    stream: UnixStream,
    incoming: Vec<u8>,
    answer: Answer,
    /// The backend's process number.
    pub pid: i32,
    /// After the last answer.
    pub standing: Standing,
}

impl Session {
    /// Opens a session.
    pub fn open(place: &Place) -> Result<Session> {
        let stream = UnixStream::connect(&place.socket).map_err(lost)?;
        let mut session = Session {
            stream,
            incoming: Vec::new(),
            answer: Answer::default(),
            pid: 0,
            standing: Standing::Idle,
        };
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for (name, value) in [
            ("user", place.user.as_str()),
            ("database", place.database.as_str()),
            ("client_encoding", "UTF8"),
            ("application_name", "proof"),
        ] {
            for text in [name, value] {
                body.extend_from_slice(text.as_bytes());
                body.push(0);
            }
        }
        body.push(0);
        let length = (body.len() + 4) as i32;
        let mut packet = length.to_be_bytes().to_vec();
        packet.extend_from_slice(&body);
        session.stream.write_all(&packet).map_err(lost)?;
        let answer = session.receive()?;
        match answer.refusal {
            Some(refusal) => Err(Failure::Lost(refusal.to_string())),
            None => Ok(session),
        }
    }

    /// Asks.
    pub fn send(&mut self, statement: &str) -> Result<()> {
        let length = (statement.len() + 5) as i32;
        let mut packet = Vec::with_capacity(statement.len() + 6);
        packet.push(b'Q');
        packet.extend_from_slice(&length.to_be_bytes());
        packet.extend_from_slice(statement.as_bytes());
        packet.push(0);
        self.stream.write_all(&packet).map_err(lost)
    }

    /// The answer, if it comes within `patience`.
    pub fn receive_within(&mut self, patience: Duration) -> Result<Option<Answer>> {
        let deadline = Instant::now() + patience;
        loop {
            while let Some((tag, body)) = self.message() {
                if self.take(tag, &body)? {
                    return Ok(Some(std::mem::take(&mut self.answer)));
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left = left.max(Duration::from_micros(1));
            self.stream.set_read_timeout(Some(left)).map_err(lost)?;
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(Failure::Lost("the server closed it".to_owned())),
                Ok(length) => self.incoming.extend_from_slice(&chunk[..length]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if Instant::now() >= deadline {
                        return Ok(None);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(error)),
            }
        }
    }

    /// The answer.
    pub fn receive(&mut self) -> Result<Answer> {
        self.receive_within(PATIENCE)?
            .ok_or_else(|| Failure::other("a statement hangs"))
    }

    /// Asks and waits for the answer. An error that ends the session is [`Failure::Lost`].
    pub fn ask(&mut self, statement: &str) -> Result<Answer> {
        self.send(statement)?;
        let answer = self.receive()?;
        match &answer.refusal {
            Some(refusal) if refusal.ends_the_session() => Err(Failure::Lost(refusal.to_string())),
            _ => Ok(answer),
        }
    }

    /// Asks what must not be refused.
    pub fn must(&mut self, statement: &str) -> Result<Answer> {
        let mut answer = self.ask(statement)?;
        match answer.refusal.take() {
            None => Ok(answer),
            Some(refusal) => Err(Failure::Refused {
                refusal,
                statement: statement.to_owned(),
            }),
        }
    }

    fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let header: [u8; 5] = self.incoming.get(..5)?.try_into().ok()?;
        let length = i32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let body = self.incoming.get(5..1 + length)?.to_vec();
        self.incoming.drain(..1 + length);
        Some((header[0], body))
    }

    /// Takes one message; true if the answer is complete.
    fn take(&mut self, tag: u8, body: &[u8]) -> Result<bool> {
        let broken = || Failure::other("the server broke the protocol");
        match tag {
            b'R' if body != [0, 0, 0, 0] => {
                return Err(Failure::other("the server wants a password"));
            }
            b'K' => {
                let pid = body.get(..4).and_then(|pid| pid.try_into().ok());
                self.pid = i32::from_be_bytes(pid.ok_or_else(broken)?);
            }
            b'D' => self.answer.rows.push(row(body).ok_or_else(broken)?),
            b'C' => self.answer.tags.push(text(body)),
            b'E' => {
                let refusal = refusal(body);
                // Nothing follows it.
                if refusal.ends_the_session() {
                    return Err(Failure::Lost(refusal.to_string()));
                }
                self.answer.refusal.get_or_insert(refusal);
            }
            b'Z' => {
                self.standing = match body {
                    b"I" => Standing::Idle,
                    b"T" => Standing::Open,
                    _ => Standing::Failed,
                };
                return Ok(true);
            }
            // Descriptions, parameters and notices.
            _ => {}
        }
        Ok(false)
    }
}

fn lost(error: std::io::Error) -> Failure {
    Failure::Lost(error.to_string())
}

fn text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

fn row(body: &[u8]) -> Option<Row> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut values = Vec::new();
    for _ in 0..i16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        rest = after;
        if length < 0 {
            values.push(None);
        } else {
            values.push(Some(text(rest.get(..length as usize)?)));
            rest = &rest[length as usize..];
        }
    }
    Some(values)
}

fn refusal(body: &[u8]) -> Refusal {
    let mut refusal = Refusal {
        state: String::new(),
        message: String::new(),
        constraint: None,
    };
    for field in body.split(|byte| *byte == 0) {
        match field.split_first() {
            Some((b'C', code)) => refusal.state = text(code),
            Some((b'M', message)) => refusal.message = text(message),
            Some((b'n', name)) => refusal.constraint = Some(text(name)),
            _ => {}
        }
    }
    refusal
}
