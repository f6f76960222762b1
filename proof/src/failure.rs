//! What can go wrong between this program and a server.

use std::fmt;

/// An error the server answered a statement with; the session lives on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The five characters of SQLSTATE.
    pub state: String,
    /// The server's words.
    pub message: String,
    /// The constraint it names, if any.
    pub constraint: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.state, self.message)?;
        match &self.constraint {
            Some(constraint) => write!(f, " ({constraint})"),
            None => Ok(()),
        }
    }
}

impl Refusal {
    /// True if the server says that this session is over (`57P01` to `57P05`, class 08).
    pub fn ends_the_session(&self) -> bool {
        self.state.starts_with("57P") || self.state.starts_with("08")
    }
}

/// Why something did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A statement that has to work was refused.
    #[error("{refusal} in: {statement}")]
    Refused {
        /// The error.
        refusal: Refusal,
        /// What was asked.
        statement: String,
    },
    /// The connection is gone; what was asked last may or may not have happened.
    #[error("connection lost: {0}")]
    Lost(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// A failure of the last kind.
    pub fn other(what: impl Into<String>) -> Self {
        Failure::Other(what.into())
    }
}

impl From<tpcc::failure::Failure> for Failure {
    fn from(failure: tpcc::failure::Failure) -> Self {
        Failure::Other(failure.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Other(error.to_string())
    }
}

/// Results of this program.
pub type Result<T> = std::result::Result<T, Failure>;
