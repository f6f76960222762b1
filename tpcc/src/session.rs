//! A blocking, pipelining session with PostgreSQL: one socket, one thread.
//!
//! [`Session::queue`] appends a Bind and an Execute of a prepared statement to the send buffer;
//! [`Session::sync`] sends the buffer with one Sync, reads up to ReadyForQuery and hands each row to
//! the caller out of the receive buffer. One queued statement is an ordinary round trip, several are
//! what JDBC calls a batch. A steady state costs one `write` and one `read` per round trip and no
//! allocation; on a machine that also runs the server this is what keeps the client out of the
//! measurement.
//!
//! Invariants: after `sync` returns, successfully or with [`Failure::Server`], the session stands at
//! ReadyForQuery and both buffers are empty. After [`Failure::Disconnected`] it must be dropped.

use crate::failure::{Failure, Result, SqlState};
use crate::row::{Row, binary_result};
use crate::socket::Socket;
use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use std::io::Write as _;
use std::ops::Range;
use std::time::Duration;

/// Receive buffer's first size in bytes: holds the largest answer of the usual transactions.
const RECEIVE_BYTES: usize = 64 * 1024;

/// Silence after which the server counts as hung; well above any lock wait TPC-C can cause.
const SILENCE_LIMIT: Duration = Duration::from_secs(120);

/// A value for a statement's parameter.
#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    /// SQL null.
    Null,
    /// A 32-bit integer, sent in binary.
    Int(i32),
    /// Text, sent as it is; also numerics and anything else in its text form.
    Text(&'a str),
    /// Money in cents, sent as a numeric.
    Cents(i64),
    /// Microseconds since 2000-01-01, sent as a timestamp in binary.
    Micros(i64),
    /// An array of 32-bit integers, sent in binary.
    Ints(&'a [i32]),
}

/// A statement the server has parsed, and the result formats to ask for.
#[derive(Debug)]
pub struct Prepared {
    name: &'static str,
    result_formats: Vec<i16>,
}

/// How the last command of a round trip ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// First four bytes of the command tag, enough to tell COMMIT from ROLLBACK.
    pub tag: [u8; 4],
    /// Rows the command touched, zero when its tag has no count.
    pub rows: u64,
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

impl Param<'_> {
    fn format(&self) -> i16 {
        match self {
            Param::Int(_) | Param::Micros(_) | Param::Ints(_) => 1,
            Param::Null | Param::Text(_) | Param::Cents(_) => 0,
        }
    }

    fn write(
        &self,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match *self {
            Param::Null => return Ok(IsNull::Yes),
            Param::Int(value) => out.extend_from_slice(&value.to_be_bytes()),
            Param::Micros(value) => out.extend_from_slice(&value.to_be_bytes()),
            Param::Text(value) => out.extend_from_slice(value.as_bytes()),
            Param::Cents(value) => {
                let mut text = [0u8; 24];
                let mut rest = &mut text[..];
                let sign = if value < 0 { "-" } else { "" };
                let cents = value.unsigned_abs();
                write!(rest, "{sign}{}.{:02}", cents / 100, cents % 100)?;
                let unused = rest.len();
                out.extend_from_slice(&text[..24 - unused]);
            }
            Param::Ints(values) => {
                let int4_oid = 23u32;
                let (dimensions, has_nulls, lower_bound) = (1i32, 0i32, 1i32);
                out.extend_from_slice(&dimensions.to_be_bytes());
                out.extend_from_slice(&has_nulls.to_be_bytes());
                out.extend_from_slice(&int4_oid.to_be_bytes());
                out.extend_from_slice(&(values.len() as i32).to_be_bytes());
                out.extend_from_slice(&lower_bound.to_be_bytes());
                for value in values {
                    out.extend_from_slice(&4i32.to_be_bytes());
                    out.extend_from_slice(&value.to_be_bytes());
                }
            }
        }
        Ok(IsNull::No)
    }
}

/// Result formats for the columns a RowDescription lists.
fn formats_of(body: &[u8]) -> Result<Vec<i16>> {
    let cut = || Failure::unexpected("a RowDescription is cut short");
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(cut)?;
    let mut formats = Vec::new();
    for _ in 0..i16::from_be_bytes(*count) {
        let name_end = rest.iter().position(|&byte| byte == 0).ok_or_else(cut)?;
        // After the name: table oid (4), column number (2), type oid (4), then 8 bytes not needed.
        let field = rest.get(name_end + 1..name_end + 19).ok_or_else(cut)?;
        let oid = u32::from_be_bytes([field[6], field[7], field[8], field[9]]);
        formats.push(i16::from(binary_result(oid)));
        rest = &rest[name_end + 19..];
    }
    Ok(formats)
}

fn completion_of(body: &[u8]) -> Completion {
    let mut tag = *b"    ";
    let text = body.split(|&byte| byte == 0).next().unwrap_or_default();
    for (to, from) in tag.iter_mut().zip(text) {
        *to = *from;
    }
    let digits = text.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    let rows = std::str::from_utf8(digits)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    Completion { tag, rows }
}

fn error_fields(body: &[u8]) -> (SqlState, String) {
    let mut state = SqlState(*b"XX000");
    let mut message = String::new();
    for field in body.split(|&byte| byte == 0) {
        match field.split_first() {
            Some((b'C', code)) => state.0 = code.try_into().unwrap_or(state.0),
            Some((b'M', text)) => message = String::from_utf8_lossy(text).into_owned(),
            Some((b'D', text)) => {
                message.push_str(" — ");
                message.push_str(&String::from_utf8_lossy(text));
            }
            _ => {}
        }
    }
    (state, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(param: Param<'_>) -> Vec<u8> {
        let mut out = BytesMut::new();
        param.write(&mut out).unwrap();
        out.to_vec()
    }

    #[test]
    fn money_is_sent_as_decimal_text() {
        assert_eq!(sent(Param::Cents(123_456)), b"1234.56");
        assert_eq!(sent(Param::Cents(-5)), b"-0.05");
        assert_eq!(sent(Param::Cents(i64::MIN)), b"-92233720368547758.08");
    }

    #[test]
    fn integer_arrays_have_the_binary_header() {
        let bytes = sent(Param::Ints(&[7, -1]));
        assert_eq!(bytes.len(), 20 + 2 * 8);
        assert_eq!(bytes[8..12], 23u32.to_be_bytes());
        assert_eq!(bytes[32..36], (-1i32).to_be_bytes());
    }

    #[test]
    fn command_tags_give_their_row_count() {
        assert_eq!(completion_of(b"UPDATE 3\0").rows, 3);
        assert_eq!(completion_of(b"INSERT 0 1\0").rows, 1);
        assert_eq!(
            completion_of(b"COMMIT\0"),
            Completion {
                tag: *b"COMM",
                rows: 0
            }
        );
    }

    #[test]
    fn error_responses_are_taken_apart() {
        let (state, message) = error_fields(b"SERROR\0VERROR\0C40P01\0Mdeadlock detected\0\0");
        assert_eq!(state, SqlState::DEADLOCK_DETECTED);
        assert_eq!(message, "deadlock detected");
    }
}
