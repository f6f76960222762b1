//! Parameters of statements, as they go to the server.

use bytes::BytesMut;
use postgres_protocol::IsNull;
use std::io::Write as _;

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

impl Param<'_> {
    pub(super) fn format(&self) -> i16 {
        match self {
            Param::Int(_) | Param::Micros(_) | Param::Ints(_) => 1,
            Param::Null | Param::Text(_) | Param::Cents(_) => 0,
        }
    }

    pub(super) fn write(
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
}
