//! Start-up packet and authentication of a session: trust, clear text, MD5 and SCRAM-SHA-256.

use crate::failure::{Failure, Result};
use crate::session::Session;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

/// Name under which terminals show up in `pg_stat_activity`.
const APPLICATION_NAME: &str = "tpcc";

/// Authentication requests, by the number the protocol gives them.
mod request {
    pub const OK: u32 = 0;
    pub const CLEARTEXT_PASSWORD: u32 = 3;
    pub const MD5_PASSWORD: u32 = 5;
    pub const SASL: u32 = 10;
    pub const SASL_CONTINUE: u32 = 11;
    pub const SASL_FINAL: u32 = 12;
}

/// Brings a fresh connection to its first ReadyForQuery.
pub(crate) fn log_in(
    session: &mut Session,
    config: &postgres::Config,
    path: &str,
    more_options: &str,
) -> Result<()> {
    let user = config.get_user().unwrap_or("postgres");
    let database = config.get_dbname().unwrap_or(user);
    let own_options = config.get_options().unwrap_or_default();
    let options = format!("-c search_path={path}{more_options} {own_options}");
    let parameters = [
        ("user", user),
        ("database", database),
        ("client_encoding", "UTF8"),
        ("application_name", APPLICATION_NAME),
        ("options", options.trim_end()),
    ];
    frontend::startup_message(parameters, session.outgoing()).map_err(Failure::lost)?;
    session.flush()?;
    let password = config.get_password();
    let mut scram = None;
    loop {
        let (tag, body) = session.message()?;
        match tag {
            b'R' => {
                let body = session.body(body).to_vec();
                answer(session, user, password, &mut scram, &body)?;
            }
            b'E' => return Err(session.refusal(body)?),
            b'Z' => return Ok(()),
            // ParameterStatus, BackendKeyData and notices need no answer.
            _ => {}
        }
    }
}

fn answer(
    session: &mut Session,
    user: &str,
    password: Option<&[u8]>,
    scram: &mut Option<ScramSha256>,
    body: &[u8],
) -> Result<()> {
    let (kind, data) = body
        .split_first_chunk::<4>()
        .ok_or_else(|| Failure::unexpected("an authentication request without a kind"))?;
    let kind = u32::from_be_bytes(*kind);
    if kind == request::OK {
        return Ok(());
    }
    let password = password
        .ok_or_else(|| Failure::unexpected("the server asks for a password, --url has none"))?;
    match (kind, scram) {
        (request::CLEARTEXT_PASSWORD, _) => {
            frontend::password_message(password, session.outgoing()).map_err(Failure::lost)?;
        }
        (request::MD5_PASSWORD, _) => {
            let salt = data
                .try_into()
                .map_err(|_| Failure::unexpected("an MD5 salt of odd size"))?;
            let hash = md5_hash(user.as_bytes(), password, salt);
            frontend::password_message(hash.as_bytes(), session.outgoing())
                .map_err(Failure::lost)?;
        }
        (request::SASL, scram) => {
            let offered = scram.insert(ScramSha256::new(password, ChannelBinding::unsupported()));
            frontend::sasl_initial_response(SCRAM_SHA_256, offered.message(), session.outgoing())
                .map_err(Failure::lost)?;
        }
        (request::SASL_CONTINUE, Some(scram)) => {
            scram.update(data).map_err(Failure::lost)?;
            frontend::sasl_response(scram.message(), session.outgoing()).map_err(Failure::lost)?;
        }
        (request::SASL_FINAL, Some(scram)) => return scram.finish(data).map_err(Failure::lost),
        _ => {
            return Err(Failure::unexpected(format!(
                "authentication method {kind} is not supported"
            )));
        }
    }
    session.flush()
}
