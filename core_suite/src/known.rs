//! The list of differences that are known, with their reasons.

use crate::failure::{Failure, Result, read};
use regex::Regex;
use serde::Deserialize;
use std::path::Path;

/// The list as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    difference: Vec<WrittenEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEntry {
    reason: String,
    files: Vec<String>,
    most: usize,
    statement: Option<String>,
    error: Option<String>,
    base_error: Option<String>,
    plan: Option<String>,
    order: Option<String>,
    mask: Option<String>,
    description: Option<String>,
    place: Option<String>,
    missing: Option<String>,
    unguarded: Option<String>,
    arbitrary: Option<String>,
}

/// What an entry explains.
#[derive(Debug)]
pub enum Pattern {
    /// A message that the base run does not have.
    Error(Regex),
    /// A message that only the base run has.
    BaseError(Regex),
    /// A plan, one line of which differs and matches.
    Plan(Regex),
    /// Rows of a statement that names an order, in another one: it matches the statement.
    Order(Regex),
    /// Rows that are equal once what matches is left out.
    Mask(Regex),
    /// Rows that describe tables and indexes: it matches the statement, which reads catalogs.
    Description(Regex),
    /// Rows asked for by their places: it matches the statement, which names `ctid` or fetches from
    /// a cursor.
    Place(Regex),
    /// Rows that are missing, because a statement was refused that puts them there: it matches the
    /// statement.
    Missing(Regex),
    /// Rows of a table that a refused key guards in the base run alone: it matches the statement,
    /// which names a table that an earlier statement changed in the other run alone
    /// (`BaseError`).
    Unguarded(Regex),
    /// Rows that are new, where SQL leaves open which of equal values a set operation shows, and a
    /// condition above it tells them apart: it matches the statement.
    Arbitrary(Regex),
}

/// A known difference.
#[derive(Debug)]
pub struct Entry {
    /// Why it is.
    pub reason: String,
    /// What it explains.
    pub pattern: Pattern,
    /// The highest count of statements.
    pub most: usize,
    files: Vec<String>,
    statement: Option<Regex>,
}

impl Entry {
    /// True if the entry holds for this statement of this test.
    pub fn holds_in(&self, file: &str, statement: &str) -> bool {
        self.files.iter().any(|pattern| matches(pattern, file))
            && self
                .statement
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(statement))
    }
}

/// True if a test's name is this one, or begins with what stands before the `*`.
fn matches(pattern: &str, file: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => file.starts_with(prefix),
        None => pattern == file,
    }
}

/// Reads the list. Errors say which entry is wrong.
pub fn read_list(path: &Path) -> Result<Vec<Entry>> {
    let written: Written = toml::from_str(&read(path)?).map_err(|error| Failure::List {
        path: path.to_path_buf(),
        error: Box::new(error),
    })?;
    written
        .difference
        .into_iter()
        .map(|entry| {
            let reason = entry.reason.clone();
            compile(entry).map_err(|problem| Failure::Entry {
                path: path.to_path_buf(),
                reason,
                problem,
            })
        })
        .collect()
}

fn compile(written: WrittenEntry) -> std::result::Result<Entry, String> {
    let regex = |text: &str| {
        // Messages and statements have several lines.
        regex::RegexBuilder::new(text)
            .multi_line(true)
            .build()
            .map_err(|error| error.to_string())
    };
    let optional = |text: &Option<String>| text.as_deref().map(regex).transpose();
    let patterns = [
        optional(&written.error)?.map(Pattern::Error),
        optional(&written.base_error)?.map(Pattern::BaseError),
        optional(&written.plan)?.map(Pattern::Plan),
        optional(&written.order)?.map(Pattern::Order),
        optional(&written.mask)?.map(Pattern::Mask),
        optional(&written.description)?.map(Pattern::Description),
        optional(&written.place)?.map(Pattern::Place),
        optional(&written.missing)?.map(Pattern::Missing),
        optional(&written.unguarded)?.map(Pattern::Unguarded),
        optional(&written.arbitrary)?.map(Pattern::Arbitrary),
    ];
    let mut patterns = patterns.into_iter().flatten();
    let (Some(pattern), None) = (patterns.next(), patterns.next()) else {
        return Err(
            "it has to have one of error, base_error, plan, order, mask, description, place, missing, \
             unguarded, arbitrary"
                .to_string(),
        );
    };
    if matches!(pattern, Pattern::Mask(_)) && written.statement.is_none() {
        return Err("a mask needs a pattern for the statement".to_string());
    }
    if written.files.is_empty() {
        return Err("it names no file".to_string());
    }
    Ok(Entry {
        statement: optional(&written.statement)?,
        reason: written.reason,
        files: written.files,
        most: written.most,
        pattern,
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Entries from the text of a list.
    pub fn entries(text: &str) -> Vec<Entry> {
        let written: Written = toml::from_str(text).expect("a list");
        let compiled: std::result::Result<Vec<Entry>, String> =
            written.difference.into_iter().map(compile).collect();
        compiled.expect("entries that make sense")
    }

    fn problem(fields: &str) -> String {
        let text = format!("reason = 'r'\nmost = 1\n{fields}");
        compile(toml::from_str(&text).expect("an entry")).expect_err("it makes no sense")
    }

    #[test]
    fn files_are_names_or_beginnings() {
        let entry = &entries(
            "[[difference]]\nreason = 'r'\nfiles = ['gist', 'brin*']\nmost = 1\nerror = 'x'",
        )[0];
        assert!(entry.holds_in("gist", "") && entry.holds_in("brin_multi", ""));
        assert!(!entry.holds_in("gist2", "") && !entry.holds_in("isolation/brin", ""));
    }

    #[test]
    fn an_entry_has_one_pattern() {
        assert!(problem("files = ['a']").contains("one of"));
        assert!(problem("files = ['a']\nerror = 'x'\nplan = 'y'").contains("one of"));
        assert!(problem("files = []\nerror = 'x'").contains("no file"));
        assert!(problem("files = ['a']\nmask = 'x'").contains("statement"));
        assert!(problem("files = ['a']\nerror = '('").contains("unclosed"));
    }

    #[test]
    fn rows_cannot_be_listed() {
        assert!(
            toml::from_str::<WrittenEntry>("reason = 'r'\nmost = 1\nfiles = ['a']\nrows = 'x'")
                .is_err()
        );
    }
}
