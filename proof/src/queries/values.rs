//! Values of types: few, so that conditions meet, and among them those at the ends of what a type
//! holds.
use super::types::{Class, Type, one};
use rand::Rng;
use rand::rngs::SmallRng;

/// Floating-point numbers; the last is one for sums of eight bytes alone.
const FLOATS: [&str; 11] = [
    "-0",
    "0",
    "0.5",
    "1",
    "2",
    "3",
    "-1",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e10",
];

impl Type {
    fn texts(self) -> &'static [&'static str] {
        match self {
            Type::Int2 => &[
                "-32768", "-1", "0", "1", "2", "3", "7", "1", "2", "3", "32767",
            ],
            Type::Int4 => &[
                "-2147483648",
                "-1",
                "0",
                "1",
                "2",
                "3",
                "5",
                "1",
                "2",
                "3",
                "40000",
                "2147483647",
            ],
            Type::Int8 => &[
                "-9223372036854775808",
                "-1",
                "0",
                "1",
                "2",
                "3",
                "1",
                "2",
                "3",
                "5000000000",
                "9223372036854775807",
            ],
            Type::Numeric => &[
                "0",
                "0.00",
                "1",
                "1.0",
                "1.000",
                "-1.5",
                "2",
                "3",
                "2.5",
                "12345678901234567890",
                "99999999999999999999.9999999999999999",
                "-99999999999999999999.9999999999999999",
                "0.0000000000000001",
                "100000000000000000000",
                "1e40",
                "-1e40",
                "0.00000000000000001",
                "1e-30",
                "9999.9999",
                "-10000.0001",
                "1e300",
                "NaN",
                "Infinity",
                "-Infinity",
                "1e20",
            ],
            Type::Amount => &[
                "0",
                "1",
                "-1.50",
                "2.25",
                "3",
                "999999.99",
                "-999999.99",
                "0.01",
                "NaN",
            ],
            Type::Float4 => &FLOATS[..FLOATS.len() - 1],
            Type::Float8 => &FLOATS,
            Type::Text | Type::DatabaseText | Type::LanguageText | Type::Varchar => &[
                "", "a", "ab", "abc", "abd", "b", "B", "ä", "a%", "a_b", "ab ", "Ab", "\u{1}",
                "äb", "zzzzzzz",
            ],
            Type::Char => &["", "a", "a ", "ab", "abc", "b", "B", "a\u{1}"],
            Type::Name => &["", "a", "ab", "abc", "b", "B"],
            Type::Date => &[
                "-infinity",
                "infinity",
                "2020-01-01",
                "2020-01-02",
                "2020-03-29",
                "2020-10-25",
                "4713-01-01 BC",
                "5874897-12-31",
                "1999-12-31",
            ],
            Type::Timestamp => &[
                "-infinity",
                "infinity",
                "2020-01-01 00:00",
                "2020-01-01 12:00:00.000001",
                "2020-01-02",
                "2020-03-29 02:30",
                "2020-10-25 02:30",
                "2020-10-25 01:30",
                "4713-01-01 00:00 BC",
                "294276-12-31 23:59:59",
            ],
            Type::Timestamptz => &[
                "-infinity",
                "infinity",
                "2020-01-01 00:00+00",
                "2020-01-01 12:00:00.000001+00",
                "2020-01-02 00:00+01",
                "2020-03-29 01:30+00",
                "2020-10-25 00:30+00",
                "2020-10-25 01:30+00",
                "4713-01-02 00:00+00 BC",
                "294276-12-30 23:59:59+00",
                "2020-01-01 05:00+00",
            ],
            Type::Time => &["00:00", "12:34:56", "24:00", "23:59:59.999999"],
            Type::Bool => &["true", "false"],
            Type::Uuid => &[
                "00000000-0000-0000-0000-000000000000",
                "00000000-0000-0000-0000-000000000001",
                "80000000-0000-0000-0000-000000000000",
                "ffffffff-ffff-ffff-ffff-ffffffffffff",
            ],
            Type::Bytea => &["", "\\x00", "\\x0000", "\\x61", "\\x6162", "\\xff"],
            Type::Interval => &[
                "0",
                "1 day",
                "24:00",
                "1 mon",
                "30 days",
                "-1 day",
                "1 mon -30 days",
                "36:00",
            ],
            Type::Byte => &["", "a", "b", "B", "\u{1}", "ä"],
            Type::Oid => &["0", "1", "2", "2147483648", "4294967295"],
            Type::Timetz => &[
                "00:00+00",
                "01:00+01",
                "24:00-12",
                "00:00+14",
                "12:00:00.5-05",
            ],
            Type::Inet => &[
                "0.0.0.0/0",
                "10.0.0.0/8",
                "10.0.0.0/16",
                "10.0.0.1",
                "10.0.0.1/8",
                "::",
                "::1",
                "fe80::/10",
            ],
            Type::Domain => &["-100", "0", "1", "2", "3", "2147483647"],
            Type::LooseText => &["", "a", "A", "ab", "AB", "abc", "b", "B", "ä", "Ä"],
            Type::Varbit => &[
                "",
                "0",
                "00",
                "1",
                "10",
                "000000000",
                "11111111",
                "111111111",
            ],
            Type::Json => &[
                "null",
                "true",
                "false",
                "1",
                "-2.5",
                "\"\"",
                "\"a\"",
                "\"b\"",
                "[]",
                "[1]",
                "[[1]]",
                "[\"a\", 1]",
                "{}",
                "{\"a\": 1}",
                "{\"b\": [null]}",
            ],
            Type::Search => &[
                "", "a", "b", "a:1", "a:2", "a:1B", "a b", "a:1 b:2", "ab", "abc:3,4",
            ],
            Type::SearchQuery => &[
                "", "a", "b", "!a", "a & b", "b & a", "a | b", "a <-> b", "a <2> b", "!(a | b)",
            ],
            Type::Row => &[
                "(1,a)",
                "(1,b)",
                "(1,)",
                "(2,a)",
                "(,)",
                "(,a)",
                "(-3,\"\")",
                "(1,ab)",
            ],
            Type::Rows => &[
                "{}",
                "{NULL}",
                "{\"(1,a)\"}",
                "{\"(1,)\"}",
                "{\"(1,a)\",NULL}",
                "{\"(1,a)\",\"(2,)\"}",
            ],
            Type::Folded => &["", "a", "A", "ab", "AB", "abc", "b", "B", "ä", "Ä"],
            Type::Ltree => &[
                "",
                "a",
                "a.b",
                "ab",
                "a.a",
                "a.b.c",
                "A",
                "b",
                "Top.Science",
            ],
            Type::Segment => &[
                "1", "1.0", "~1", "<1", ">1", "1 .. 2", "1 .. ~2", ".. 1", "1 ..", "0",
            ],
            Type::Spelled => &["(a)", "(A)", "(b)", "(B)", "(ab)", "(aB)", "()", "(z)"],
            Type::Quantity => &[
                "(1,eur)", "(1,EUR)", "(1,)", "(0,eur)", "(0,EUR)", "(2,usd)", "(-1,)",
            ],
            Type::Stretch => &[
                "empty",
                "[\"(a)\",\"(b)\"]",
                "[\"(A)\",\"(B)\"]",
                "[\"(a)\",\"(B)\")",
                "(\"(a)\",\"(b)\")",
                "[\"(a)\",)",
                "(,\"(A)\"]",
                "(,)",
                "[\"(ab)\",\"(Z)\"]",
            ],
            Type::SpelledArray => &[
                "{}",
                "{NULL}",
                "{(a)}",
                "{(A)}",
                "{(a),(b)}",
                "{(A),(B)}",
                "{(b),NULL}",
            ],
            Type::Money => &["-12.34", "0", "1.00", "99.99"],
        }
    }

    /// A value that is not NULL, without its type.
    pub fn bare(self, rng: &mut SmallRng) -> String {
        let texts = self.texts();
        // Those that make sums useless, or expressions fail, are rarer.
        let is_wild = |text: &str| {
            text.len() > 17 || matches!(text, "NaN" | "Infinity" | "-Infinity" | "1e300")
        };
        loop {
            let text = one(rng, texts);
            if self.class() != Class::Number || !is_wild(text) || rng.random_ratio(1, 4) {
                return match self {
                    Type::Text | Type::DatabaseText if rng.random_ratio(1, 30) => {
                        "repeat('ab', 150)".to_owned()
                    }
                    Type::LooseText if rng.random_ratio(1, 8) => "repeat('Ab', 3000)".to_owned(),
                    _ => format!("'{text}'"),
                };
            }
        }
    }

    /// A value that is not NULL.
    pub fn literal(self, rng: &mut SmallRng) -> String {
        let is_plain = matches!(self, Type::Int4 | Type::Bool) && rng.random();
        if self == Type::Text && rng.random_ratio(1, 50) {
            // Longer than any key.
            return "repeat('ab', 2000)".to_owned();
        }
        match self.bare(rng) {
            bare if is_plain => format!("({})", bare.trim_matches('\'')),
            bare => format!("{bare}::{}", self.sql()),
        }
    }
}
