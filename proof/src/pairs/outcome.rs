//! What a pair came to on one side, and how a reader is told.

use crate::wire::{Answer, Row};
use std::fmt::{self, Write};

/// The same letter so many times in a row is told once.
const LETTERS_MOST: usize = 8;

/// What a pair came to on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The statement's answer.
    pub answer: Answer,
    /// The rows afterwards, of the tables that the pair works on, by each of their keys.
    pub after: Answer,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.answer.refusal {
            Some(refusal) => write!(f, "{refusal}")?,
            None => f.write_str(self.answer.tags.last().map_or("", String::as_str))?,
        }
        tell(f, &self.answer.rows)?;
        f.write_str("; then")?;
        if let Some(refusal) = &self.after.refusal {
            write!(f, " {refusal}")?;
        }
        tell(f, &self.after.rows)
    }
}

fn tell(f: &mut fmt::Formatter<'_>, rows: &[Row]) -> fmt::Result {
    for row in rows {
        let values: Vec<String> = row
            .iter()
            .map(|value| value.as_deref().map_or("NULL".to_owned(), shortened))
            .collect();
        write!(f, " ({})", values.join(","))?;
    }
    Ok(())
}

/// A value without long repetitions of a letter.
fn shortened(value: &str) -> String {
    let mut text = String::new();
    let mut rest = value;
    while let Some(letter) = rest.chars().next() {
        let after = rest.trim_start_matches(letter);
        let same = &rest[..rest.len() - after.len()];
        let count = same.chars().count();
        if count > LETTERS_MOST {
            // A String takes everything.
            let _ = write!(text, "{letter}*{count}");
        } else {
            text.push_str(same);
        }
        rest = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn repetitions_are_told_once() {
        assert_eq!(shortened("one"), "one");
        assert_eq!(shortened("aab"), "aab");
        assert_eq!(shortened(&format!("a{}b", "!".repeat(200))), "a!*200b");
    }
}
