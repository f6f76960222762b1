//! Judges what two runs made of one statement.

use crate::known::{Entry, Pattern};
use crate::message::{Message, split};
use crate::unit::Unit;
use regex::Regex;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

/// What became of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same output.
    Identical,
    /// The same lines in another order, and the statement asks for none.
    Order,
    /// Explained by these entries of the list.
    Listed(Vec<usize>),
    /// It was not come to, because of a difference before it.
    NotRun,
    /// Not explained.
    Different,
}

/// The statements of a test in both runs, with their verdicts.
pub struct Comparison {
    /// The statement in the base run.
    pub base: Unit,
    /// The statement in the other run.
    pub test: Unit,
    /// What became of it.
    pub verdict: Verdict,
}

impl Comparison {
    /// True if the statement fails in the other run only.
    pub fn fails_only_in_test(&self) -> bool {
        has_error(&self.test) && !has_error(&self.base)
    }
}

fn has_error(unit: &Unit) -> bool {
    split(&lines(unit))
        .messages
        .iter()
        .any(|message| message.is_error)
}

fn lines(unit: &Unit) -> Vec<&str> {
    unit.output.iter().map(String::as_str).collect()
}

static NAMES_AN_ORDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\border\s+by\b").expect("the pattern is constant"));
/// Statements that read catalogs, or how values are stored, not tables of a test.
static DESCRIBES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:from|join)\s+(?:pg_catalog\.)?pg_\w+|\binformation_schema\.|",
        r"\bpg_get_\w+def\b|\bpg_\w*size\b|\bpg_column_compression\b|^\\d"
    ))
    .expect("the pattern is constant")
});
/// Statements that ask for rows by their places, which differ.
static ASKS_BY_PLACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bctid\b|^\s*(?:fetch|move)\b").expect("the pattern is constant")
});
/// Statements whose answer may depend on which of equal values is kept.
static SET_OPERATION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:union|intersect|except)\b").expect("the pattern is constant")
});
static WORD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\w+").expect("the pattern is constant"));
static EXPLAINS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\bexplain").expect("the pattern is constant"));

/// Judges the statements of a test.
pub fn compare(file: &str, pairs: Vec<(Unit, Unit)>, known: &[Entry]) -> Vec<Comparison> {
    let mut has_difference = false;
    let mut unguarded = HashSet::new();
    pairs
        .into_iter()
        .map(|(base, test)| {
            let verdict = if base.ran && !test.ran && has_difference {
                Verdict::NotRun
            } else {
                judge(file, (&base, &test), known, &unguarded)
            };
            if let Verdict::Listed(used) = &verdict {
                let went_through = |entry: &usize| {
                    matches!(known[*entry].pattern, Pattern::BaseError(_)) && has_error(&base)
                };
                if used.iter().any(went_through) {
                    unguarded.extend(changed_table(&base.text));
                }
            }
            has_difference |= matches!(verdict, Verdict::Listed(_) | Verdict::Different);
            Comparison {
                base,
                test,
                verdict,
            }
        })
        .collect()
}

static CHANGES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:insert\s+into|update|delete\s+from|merge\s+into)\s+(?:only\s+)?(\w+)")
        .expect("the pattern is constant")
});

/// The table that a statement changes.
fn changed_table(statement: &str) -> Option<String> {
    CHANGES
        .captures(statement)
        .map(|found| found[1].to_string())
}

/// Judges one statement. `unguarded` are the tables that earlier statements changed in the other
/// run alone, because a key that was refused there refuses them in the base run.
fn judge(
    file: &str,
    (base, test): (&Unit, &Unit),
    known: &[Entry],
    unguarded: &HashSet<String>,
) -> Verdict {
    if base.ran != test.ran {
        return Verdict::Different;
    }
    if base.output == test.output {
        return Verdict::Identical;
    }
    let statement = statement(base);
    let entries: Vec<(usize, &Entry)> = known
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.holds_in(file, &statement))
        .collect();
    if records(&lines(base)) == records(&lines(test)) {
        let names_order = NAMES_AN_ORDER.is_match(&statement);
        let listed = entries.iter().find(
            |(_, entry)| matches!(&entry.pattern, Pattern::Order(pattern) if pattern.is_match(&statement)),
        );
        return match listed {
            Some((number, _)) if names_order => Verdict::Listed(vec![*number]),
            None if names_order => Verdict::Different,
            _ => Verdict::Order,
        };
    }
    match explain(base, test, &entries, unguarded) {
        Some(used) => Verdict::Listed(used),
        None => Verdict::Different,
    }
}

/// The statement. That of a step may stand in its output's first lines.
fn statement(unit: &Unit) -> Cow<'_, str> {
    if unit.place.starts_with("permutation") {
        Cow::Owned(unit.output.join("\n"))
    } else {
        Cow::Borrowed(&unit.text)
    }
}

/// The rows and other lines, sorted. Lines of one row stay together.
fn records(lines: &[&str]) -> Vec<String> {
    let mut records: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        match records.last_mut() {
            Some(record) if goes_on => {
                record.push('\n');
                record.push_str(line);
            }
            _ => records.push(line.to_string()),
        }
        // psql's mark of a value that has another line.
        goes_on = line.ends_with('+') && !line.starts_with('-') || line.contains("+|");
    }
    records.sort();
    records
}

/// The entries that together explain all differences between the outputs, if there are such.
fn explain(
    base: &Unit,
    test: &Unit,
    entries: &[(usize, &Entry)],
    unguarded: &HashSet<String>,
) -> Option<Vec<usize>> {
    let (base_lines, test_lines) = (lines(base), lines(test));
    let (base_output, test_output) = (split(&base_lines), split(&test_lines));
    let mut used = Vec::new();

    let only_in_test = beyond(&test_output.messages, &base_output.messages);
    for message in &only_in_test {
        let text = message.text();
        used.push(find(entries, |pattern| match pattern {
            Pattern::Error(pattern) => pattern.is_match(&text),
            _ => false,
        })?);
    }
    let test_fails = only_in_test.iter().any(|message| message.is_error);

    // Where the other run fails, messages of the base may be missing without being listed.
    let only_in_base = beyond(&base_output.messages, &test_output.messages);
    let mut base_fails = false;
    for message in only_in_base.iter().filter(|_| !test_fails) {
        let text = message.text();
        used.push(find(entries, |pattern| match pattern {
            Pattern::BaseError(pattern) => pattern.is_match(&text),
            _ => false,
        })?);
        base_fails |= message.is_error;
    }

    let (base_rows, test_rows) = (records(&base_output.rows), records(&test_output.rows));
    let (only_base, only_test) = (
        beyond(&base_rows, &test_rows),
        beyond(&test_rows, &base_rows),
    );
    let rows_are_explained = match (test_fails, base_fails) {
        // What failed prints less, and nothing else.
        (true, _) => only_test.is_empty(),
        (_, true) => only_base.is_empty(),
        _ => only_base.is_empty() && only_test.is_empty(),
    };
    if !rows_are_explained {
        let differing = [only_base, only_test].concat();
        let statement = statement(base);
        used.push(find(entries, |pattern| match pattern {
            Pattern::Plan(pattern) => {
                EXPLAINS.is_match(&statement)
                    && !base_rows.is_empty()
                    && !test_rows.is_empty()
                    && differing.iter().any(|line| pattern.is_match(line))
            }
            Pattern::Description(pattern) => {
                DESCRIBES.is_match(&statement) && pattern.is_match(&statement)
            }
            Pattern::Place(pattern) => {
                ASKS_BY_PLACE.is_match(&statement) && pattern.is_match(&statement)
            }
            Pattern::Missing(pattern) => {
                pattern.is_match(&statement) && !has_new_rows(&base_output.rows, &test_output.rows)
            }
            Pattern::Unguarded(pattern) => {
                pattern.is_match(&statement)
                    && WORD
                        .find_iter(&statement)
                        .any(|word| unguarded.contains(word.as_str()))
            }
            Pattern::Arbitrary(pattern) => {
                pattern.is_match(&statement)
                    && SET_OPERATION.is_match(&statement)
                    && !has_new_rows(&test_output.rows, &base_output.rows)
            }
            Pattern::Mask(pattern) => {
                masked(&base_output.rows, pattern) == masked(&test_output.rows, pattern)
            }
            _ => false,
        })?);
    }
    used.sort_unstable();
    used.dedup();
    Some(used)
}

fn find(entries: &[(usize, &Entry)], explains: impl Fn(&Pattern) -> bool) -> Option<usize> {
    entries
        .iter()
        .find(|(_, entry)| explains(&entry.pattern))
        .map(|(number, _)| *number)
}

/// What is in `these` more often than in `those`.
pub fn beyond<T: Clone + PartialEq>(these: &[T], those: &[T]) -> Vec<T> {
    let mut those: Vec<&T> = those.iter().collect();
    these
        .iter()
        .filter(|this| match those.iter().position(|that| that == this) {
            Some(at) => {
                those.swap_remove(at);
                false
            }
            None => true,
        })
        .cloned()
        .collect()
}

static COUNTS_ROWS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\(\d+ rows?\)$").expect("the pattern is constant"));

/// True if the other run has rows that the base run lacks.
fn has_new_rows(base: &[&str], test: &[&str]) -> bool {
    let (base, test) = (masked(base, &COUNTS_ROWS), masked(test, &COUNTS_ROWS));
    !beyond(&test, &base).is_empty()
}

/// The messages that only the other run has, for the report.
pub fn new_messages(base: &Unit, test: &Unit) -> Vec<String> {
    let (base, test) = (lines(base), lines(test));
    let (base, test) = (split(&base), split(&test));
    beyond(&test.messages, &base.messages)
        .iter()
        .map(Message::text)
        .collect()
}

/// The rows without what matches. Columns get narrower, so the number of blanks and dashes does not
/// count.
fn masked(rows: &[&str], pattern: &Regex) -> Vec<String> {
    let masked: Vec<String> = rows
        .iter()
        .map(|row| {
            let row = pattern.replace_all(row, "#");
            let cells = row
                .split('|')
                .map(|cell| cell.split_whitespace().collect::<Vec<_>>().join(" "));
            cells.collect::<Vec<_>>().join("|")
        })
        .filter(|row| row.chars().any(|c| !"-+".contains(c)))
        .collect();
    let masked: Vec<&str> = masked.iter().map(String::as_str).collect();
    records(&masked)
}

#[cfg(test)]
mod tests;
