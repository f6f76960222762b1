//! What can go wrong between a terminal and the server, told apart by what the terminal does next.

use std::fmt;

/// The five characters PostgreSQL names an error by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// `serialization_failure`.
    pub const SERIALIZATION_FAILURE: SqlState = SqlState(*b"40001");
    /// `deadlock_detected`.
    pub const DEADLOCK_DETECTED: SqlState = SqlState(*b"40P01");
    /// `raise_exception`: how the new-order procedure reports the unused item.
    pub const RAISE_EXCEPTION: SqlState = SqlState(*b"P0001");

    /// The code as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("?????")
    }

    /// True for the two states after which TPC-C may try the same transaction again.
    pub fn is_retryable(&self) -> bool {
        matches!(*self, Self::SERIALIZATION_FAILURE | Self::DEADLOCK_DETECTED)
    }

    /// True when the server says that this session is over (`57P01` to `57P05`, class 08).
    pub fn ends_the_session(&self) -> bool {
        self.0.starts_with(b"57P") || self.0.starts_with(b"08")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a statement or a transaction did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The server refused a statement; the session lives on.
    #[error("{state:?}: {message}")]
    Server {
        /// The error's SQLSTATE.
        state: SqlState,
        /// The server's own words.
        message: String,
    },
    /// The connection is gone. Whether a COMMIT already sent took effect is not known.
    #[error("disconnected: {0}")]
    Disconnected(String),
    /// The database holds what TPC-C rules out, or the server broke the protocol.
    #[error("unexpected: {0}")]
    Unexpected(String),
}

impl Failure {
    /// A failure of the second kind from an I/O error.
    pub fn lost(error: std::io::Error) -> Self {
        Failure::Disconnected(error.to_string())
    }

    /// A failure of the third kind.
    pub fn unexpected(what: impl Into<String>) -> Self {
        Failure::Unexpected(what.into())
    }
}

/// Results of everything that talks to the server.
pub type Result<T> = std::result::Result<T, Failure>;
