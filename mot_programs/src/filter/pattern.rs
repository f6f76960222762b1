//! Patterns of LIKE.
use memchr::memmem;

/// A pattern of LIKE without `_` and escapes: what stands between its `%`.
#[derive(Debug)]
pub struct Pattern {
    /// What a text begins with.
    start: Box<[u8]>,
    /// What it ends with; `None`: there is no `%`, and it is `start` alone.
    end: Option<Box<[u8]>>,
    /// What there is in between, in this order.
    parts: Vec<memmem::Finder<'static>>,
}

impl Pattern {
    /// `None`: the pattern has `_` or escapes, and needs PostgreSQL.
    pub fn new(pattern: &[u8]) -> Option<Pattern> {
        if pattern.iter().any(|byte| matches!(byte, b'_' | b'\\')) {
            return None;
        }
        let mut pieces: Vec<&[u8]> = pattern.split(|byte| *byte == b'%').collect();
        let start = pieces.remove(0).into();
        let end = pieces.pop().map(Into::into);
        let parts = pieces
            .into_iter()
            .filter(|piece| !piece.is_empty())
            .map(|piece| memmem::Finder::new(piece).into_owned())
            .collect();
        Some(Pattern { start, end, parts })
    }

    /// Whether a text is like it.
    pub fn fits(&self, text: &[u8]) -> bool {
        let Some(end) = &self.end else {
            return text == &self.start[..];
        };
        // An empty piece lies nowhere, and the C library's comparison of no bytes there is slow on
        // some processors: it takes a page fault back.
        let (mut rest, start) = (text, &self.start[..]);
        if !start.is_empty() {
            match rest.strip_prefix(start) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        if !end.is_empty() {
            match rest.strip_suffix(&end[..]) {
                Some(before) => rest = before,
                None => return false,
            }
        }
        self.parts.iter().all(|part| match part.find(rest) {
            Some(at) => {
                rest = &rest[at + part.needle().len()..];
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// LIKE as it is defined: `%` stands for any bytes.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'%', rest @ ..] => (0..=text.len()).any(|at| naive(rest, &text[at..])),
            [byte, rest @ ..] => text.first() == Some(byte) && naive(rest, &text[1..]),
        }
    }

    #[test]
    fn underscores_and_escapes_are_refused() {
        assert!(Pattern::new(b"a_c").is_none());
        assert!(Pattern::new(b"a\\%").is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn fits_as_defined(pattern in "[ab%]{0,7}", text in "[ab]{0,10}") {
            let compiled = Pattern::new(pattern.as_bytes()).expect("no underscore, no escape");
            let expected = naive(pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(compiled.fits(text.as_bytes()), expected);
        }
    }
}
