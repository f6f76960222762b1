//! A blocking, pipelining session with PostgreSQL: one socket, one thread.
//!
//! [`Session::queue`] appends a Bind and an Execute of a prepared statement to the send buffer;
//! [`Session::sync`] sends the buffer with one Sync, reads up to ReadyForQuery and hands each row
//! to the caller out of the receive buffer. One queued statement is an ordinary round trip, several
//! are what JDBC calls a batch. A steady state costs one `write` and one `read` per round trip and
//! no allocation; on a machine that also runs the server this is what keeps the client out of the
//! measurement.
//!
//! Invariants: after `sync` returns, successfully or with [`Failure::Server`], the session stands
//! at ReadyForQuery and both buffers are empty. After [`Failure::Disconnected`] it must be dropped.

mod read;
mod write;

pub use read::Completion;
pub use write::Param;

use crate::failure::{Failure, Result};
use crate::row::Row;
use crate::socket::Socket;
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use read::{completion_of, error_fields, formats_of};
use std::ops::Range;
use std::time::Duration;

/// Receive buffer's first size in bytes: holds the largest answer of the usual transactions.
const RECEIVE_BYTES: usize = 64 * 1024;

/// Silence after which the server counts as hung; well above any lock wait TPC-C can cause.
const SILENCE_LIMIT: Duration = Duration::from_secs(120);

/// A statement the server has parsed, and the result formats to ask for.
#[derive(Debug)]
pub struct Prepared {
    name: &'static str,
    result_formats: Vec<i16>,
}

/// One connection to the server.
pub struct Session {
    socket: Socket,
    send: BytesMut,
    receive: Vec<u8>,
    /// The unread part of `receive`.
    unread: Range<usize>,
}

impl Session {
    /// Connects and authenticates as `config` says, with `search_path` as the session's own and
    /// `options` (` -c name=value ...`) besides.
    pub fn connect(config: &postgres::Config, search_path: &str, options: &str) -> Result<Self> {
        let socket = Socket::open(config, SILENCE_LIMIT)?;
        let mut session = Session {
            socket,
            send: BytesMut::with_capacity(RECEIVE_BYTES),
            receive: vec![0; RECEIVE_BYTES],
            unread: 0..0,
        };
        crate::login::log_in(&mut session, config, search_path, options)?;
        Ok(session)
    }

    /// Has the server parse `text` under `name` and learns its result columns.
    pub fn prepare(&mut self, name: &'static str, text: &str) -> Result<Prepared> {
        frontend::parse(name, text, [], &mut self.send).map_err(Failure::lost)?;
        frontend::describe(b'S', name, &mut self.send).map_err(Failure::lost)?;
        frontend::sync(&mut self.send);
        self.flush()?;
        let mut result_formats = Vec::new();
        let mut refusal = None;
        loop {
            let (tag, body) = self.message()?;
            match tag {
                b'T' => result_formats = formats_of(&self.receive[body])?,
                b'E' => refusal = Some(self.refusal(body)?),
                b'Z' => break,
                _ => {}
            }
        }
        match refusal {
            Some(failure) => Err(failure),
            None => Ok(Prepared {
                name,
                result_formats,
            }),
        }
    }

    /// Appends one execution of `statement` to the round trip being built.
    pub fn queue(&mut self, statement: &Prepared, params: &[Param<'_>]) -> Result<()> {
        let formats = params.iter().map(Param::format);
        let bound = frontend::bind(
            "",
            statement.name,
            formats,
            params,
            |param, out| param.write(out),
            statement.result_formats.iter().copied(),
            &mut self.send,
        );
        if bound.is_err() {
            return Err(Failure::unexpected(
                "a parameter does not fit into a message",
            ));
        }
        frontend::execute("", 0, &mut self.send).map_err(Failure::lost)
    }

    /// Sends what is queued and reads all answers. `on_row` gets the statement's place in the round
    /// trip (from zero) and the row. The first error of the server or of `on_row` is returned once
    /// the round trip is over.
    pub fn sync(
        &mut self,
        mut on_row: impl FnMut(usize, Row<'_>) -> Result<()>,
    ) -> Result<Completion> {
        frontend::sync(&mut self.send);
        self.flush()?;
        let mut failure = None;
        let mut place = 0;
        let mut completion = Completion {
            tag: *b"    ",
            rows: 0,
        };
        loop {
            let (tag, body) = self.message()?;
            match tag {
                b'D' if failure.is_none() => {
                    let read = Row::new(&self.receive[body]).and_then(|row| on_row(place, row));
                    failure = read.err();
                }
                b'C' => {
                    completion = completion_of(&self.receive[body]);
                    place += 1;
                }
                b'E' => {
                    let refusal = self.refusal(body)?;
                    failure = failure.or(Some(refusal));
                }
                b'Z' => break,
                _ => {}
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(completion),
        }
    }

    /// One statement in its own round trip, rows ignored.
    pub fn run(&mut self, statement: &Prepared, params: &[Param<'_>]) -> Result<Completion> {
        self.queue(statement, params)?;
        self.sync(|_, _| Ok(()))
    }

    /// Forgets what was queued and not yet sent.
    pub fn discard_queued(&mut self) {
        self.send.clear();
    }

    /// The send buffer, for the messages of the login.
    pub(crate) fn outgoing(&mut self) -> &mut BytesMut {
        &mut self.send
    }

    /// Sends the send buffer.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let sent = self.socket.write_all(&self.send);
        self.send.clear();
        // A server that died has often said why before it went: the reader looks for that first.
        match sent {
            Ok(()) => Ok(()),
            Err(error) => Err(self.last_words().unwrap_or_else(|| Failure::lost(error))),
        }
    }

    /// The tag of the next message and the place of its body in `receive`.
    pub(crate) fn message(&mut self) -> Result<(u8, Range<usize>)> {
        loop {
            let unread = &self.receive[self.unread.clone()];
            if let Some((head, _)) = unread.split_first_chunk::<5>() {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                if length < 4 {
                    return Err(Failure::unexpected("a message shorter than its own length"));
                }
                if unread.len() > length {
                    let start = self.unread.start;
                    self.unread.start += 1 + length;
                    return Ok((head[0], start + 5..start + 1 + length));
                }
                self.make_room(1 + length);
            } else {
                self.make_room(5);
            }
            let got = self.socket.read(&mut self.receive[self.unread.end..])?;
            self.unread.end += got;
        }
    }

    /// The body of a message returned by [`Session::message`].
    pub(crate) fn body(&self, body: Range<usize>) -> &[u8] {
        &self.receive[body]
    }

    /// Makes room for a message of `wanted` bytes from the unread part's start on.
    fn make_room(&mut self, wanted: usize) {
        if self.unread.is_empty() {
            self.unread = 0..0;
        }
        if self.unread.start + wanted > self.receive.len() {
            self.receive.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        if wanted > self.receive.len() {
            self.receive.resize(wanted.next_power_of_two(), 0);
        }
        if self.unread.end == self.receive.len() {
            self.receive.resize(self.receive.len() * 2, 0);
        }
    }

    /// Turns an ErrorResponse into a failure; one that ends the session is an `Err` at once, since
    /// no ReadyForQuery follows it.
    pub(crate) fn refusal(&self, body: Range<usize>) -> Result<Failure> {
        let (state, message) = error_fields(&self.receive[body]);
        if state.ends_the_session() {
            return Err(Failure::Disconnected(format!("{state:?}: {message}")));
        }
        Ok(Failure::Server { state, message })
    }

    fn last_words(&mut self) -> Option<Failure> {
        loop {
            match self.message() {
                Ok((b'E', body)) => return Some(self.refusal(body).unwrap_or_else(|lost| lost)),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.send.clear();
        frontend::terminate(&mut self.send);
        // The server may be gone already; nothing is lost if the farewell does not reach it.
        let _ = self.socket.write_all(&self.send);
    }
}
