//! Which database, which schema, which engine.

use crate::engine::Engine;
use crate::failure::{Failure, Result};
use crate::session::Session;
use postgres::NoTls;

/// A place that holds, or will hold, one set of TPC-C tables.
#[derive(Clone)]
pub struct Target {
    config: postgres::Config,
    /// The engine of its tables.
    pub engine: Engine,
    /// The PostgreSQL schema of its tables.
    pub schema: String,
    /// Start-up options of terminals' sessions.
    terminal_options: String,
}

impl Target {
    /// The tables of `engine` at the server `url` names; in its default schema if none is given.
    pub fn new(url: &str, engine: Engine, schema: Option<&str>) -> Result<Self> {
        let config: postgres::Config = url
            .parse()
            .map_err(|error| Failure::unexpected(format!("--url: {error}")))?;
        let schema = schema.unwrap_or(engine.default_schema());
        // The name goes into statements and start-up options unquoted.
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if schema.is_empty() || !schema.chars().all(plain) {
            return Err(Failure::unexpected(
                "--schema: lower-case letters, digits and _ only",
            ));
        }
        Ok(Target {
            config,
            engine,
            schema: schema.to_owned(),
            terminal_options: String::new(),
        })
    }

    /// The same place, with `settings` (each `name=value`, without blanks) in terminals' sessions.
    pub fn with_terminal_settings<S: AsRef<str>>(mut self, settings: &[S]) -> Self {
        for setting in settings {
            self.terminal_options.push_str(" -c ");
            self.terminal_options.push_str(setting.as_ref());
        }
        self
    }

    /// A connection for loading, checking and measuring.
    pub fn client(&self) -> Result<postgres::Client> {
        let mut config = self.config.clone();
        let options = config.get_options().unwrap_or_default();
        let options = format!("-c search_path={} {options}", self.schema);
        config.options(options.trim_end()).application_name("tpcc");
        config.connect(NoTls).map_err(from_client)
    }

    /// A connection for a terminal.
    pub fn session(&self) -> Result<Session> {
        Session::connect(&self.config, &self.schema, &self.terminal_options)
    }
}

/// A failure out of the blocking client's error.
pub fn from_client(error: postgres::Error) -> Failure {
    match error.as_db_error() {
        Some(db) => {
            let code = db.code().code().as_bytes().try_into().unwrap_or(*b"XX000");
            let state = crate::failure::SqlState(code);
            let message = match db.detail() {
                Some(detail) => format!("{} — {detail}", db.message()),
                None => db.message().to_owned(),
            };
            if state.ends_the_session() {
                Failure::Disconnected(message)
            } else {
                Failure::Server { state, message }
            }
        }
        None => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            Failure::Disconnected(format!("{error}{}", cause.unwrap_or_default()))
        }
    }
}

/// Runs one statement and names it if it fails.
pub fn execute(client: &mut postgres::Client, statement: &str) -> Result<()> {
    client
        .batch_execute(statement)
        .map_err(|error| match from_client(error) {
            Failure::Server { state, message } => Failure::Server {
                state,
                message: format!("{message} in: {statement}"),
            },
            other => other,
        })
}
