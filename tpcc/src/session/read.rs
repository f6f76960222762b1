//! Bodies of the server's messages, taken apart.

use crate::failure::{Failure, Result, SqlState};
use crate::row::binary_result;

/// How the last command of a round trip ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// First four bytes of the command tag, enough to tell COMMIT from ROLLBACK.
    pub tag: [u8; 4],
    /// Rows the command touched, zero when its tag has no count.
    pub rows: u64,
}

/// Result formats for the columns a RowDescription lists.
pub(super) fn formats_of(body: &[u8]) -> Result<Vec<i16>> {
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

pub(super) fn completion_of(body: &[u8]) -> Completion {
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

pub(super) fn error_fields(body: &[u8]) -> (SqlState, String) {
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
