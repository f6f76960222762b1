//! One result row, read column by column straight out of the receive buffer.
//!
//! Columns come in binary for the types of [`binary_result`] and as text for all others; the
//! readers below must be called in column order. Nothing is copied and nothing is allocated.

use crate::failure::{Failure, Result};

const BYTEA_BOOL_AND_INTS: [u32; 5] = [16, 17, 20, 21, 23];
const TIMESTAMPS: [u32; 2] = [1114, 1184];

/// True if a column of type `oid` is asked for in binary.
pub(crate) fn binary_result(oid: u32) -> bool {
    BYTEA_BOOL_AND_INTS.contains(&oid) || TIMESTAMPS.contains(&oid)
}

/// A cursor over the columns of one row.
pub struct Row<'a> {
    rest: &'a [u8],
}

impl<'a> Row<'a> {
    /// `body` is a DataRow message without tag and length.
    pub(crate) fn new(body: &'a [u8]) -> Result<Self> {
        let rest = body
            .get(2..)
            .ok_or_else(|| Failure::unexpected("a DataRow without a count"))?;
        Ok(Row { rest })
    }

    fn next(&mut self) -> Result<Option<&'a [u8]>> {
        let cut = || Failure::unexpected("a DataRow is shorter than its columns");
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let length = i32::from_be_bytes(*length);
        if length < 0 {
            self.rest = rest;
            return Ok(None);
        }
        let (value, rest) = rest.split_at_checked(length as usize).ok_or_else(cut)?;
        self.rest = rest;
        Ok(Some(value))
    }

    fn present(&mut self) -> Result<&'a [u8]> {
        self.next()?
            .ok_or_else(|| Failure::unexpected("a null where TPC-C has a value"))
    }

    /// Steps over `columns` columns.
    pub fn skip(&mut self, columns: usize) -> Result<()> {
        for _ in 0..columns {
            self.next()?;
        }
        Ok(())
    }

    /// An integer of any width, sent in binary.
    pub fn int(&mut self) -> Result<i64> {
        self.int_or_null()?
            .ok_or_else(|| Failure::unexpected("a null where TPC-C has a number"))
    }

    /// An integer or null.
    pub fn int_or_null(&mut self) -> Result<Option<i64>> {
        let Some(bytes) = self.next()? else {
            return Ok(None);
        };
        let value = match *bytes {
            [a, b] => i64::from(i16::from_be_bytes([a, b])),
            [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
            _ => return Err(Failure::unexpected("an integer of an odd width")),
        };
        Ok(Some(value))
    }

    /// An integer of 32 bits, as TPC-C's keys are.
    pub fn id(&mut self) -> Result<i32> {
        let value = self.int()?;
        i32::try_from(value).map_err(|_| Failure::unexpected("a key beyond 32 bits"))
    }

    /// A text column.
    pub fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.present()?).map_err(|e| Failure::unexpected(e.to_string()))
    }

    /// A numeric column with at most `digits` digits after the point, in units of its last digit.
    pub fn numeric(&mut self, digits: u32) -> Result<i64> {
        let text = self.text()?;
        parse_numeric(text, digits)
            .ok_or_else(|| Failure::unexpected(format!("\"{text}\" is not a numeric({digits})")))
    }

    /// A sum of money, in cents.
    pub fn cents(&mut self) -> Result<i64> {
        self.numeric(2)
    }
}

/// Reads a decimal text as a whole number of units of its `digits`-th place after the point.
pub fn parse_numeric(text: &str, digits: u32) -> Option<i64> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value: i64 = 0;
    for byte in whole.bytes() {
        value = value.checked_mul(10)?.checked_add(digit(byte)?)?;
    }
    let mut places = fraction.bytes();
    for _ in 0..digits {
        value = value
            .checked_mul(10)?
            .checked_add(places.next().map_or(Some(0), digit)?)?;
    }
    // Digits beyond the wanted scale must be zeros: money is never rounded here.
    if places.any(|byte| byte != b'0') {
        return None;
    }
    Some(if negative { -value } else { value })
}

fn digit(byte: u8) -> Option<i64> {
    byte.is_ascii_digit().then(|| i64::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerics_are_read_exactly() {
        assert_eq!(parse_numeric("12.34", 2), Some(1234));
        assert_eq!(parse_numeric("-10.00", 2), Some(-1000));
        assert_eq!(parse_numeric("-0.05", 2), Some(-5));
        assert_eq!(parse_numeric("0.1999", 4), Some(1999));
        assert_eq!(parse_numeric("7", 2), Some(700));
        assert_eq!(parse_numeric("7.5", 2), Some(750));
        assert_eq!(parse_numeric("1.2300", 2), Some(123));
        assert_eq!(parse_numeric("1.234", 2), None);
        assert_eq!(parse_numeric("", 2), None);
        assert_eq!(parse_numeric("x", 2), None);
        assert_eq!(parse_numeric("99999999999999999999", 2), None);
    }

    #[test]
    fn a_row_is_walked_in_order() {
        let mut body = vec![0, 4];
        body.extend([0, 0, 0, 4, 0, 0, 0x0b, 0xb8]);
        body.extend([0xff; 4]);
        body.extend([0, 0, 0, 2]);
        body.extend(b"GC");
        body.extend([0, 0, 0, 5]);
        body.extend(b"-1.50");
        let mut row = Row::new(&body).unwrap();
        assert_eq!(row.int().unwrap(), 3000);
        assert_eq!(row.int_or_null().unwrap(), None);
        assert_eq!(row.text().unwrap(), "GC");
        assert_eq!(row.cents().unwrap(), -150);
        assert!(row.text().is_err());
    }
}
