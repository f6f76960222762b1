//! Tells messages of the server and of psql from rows.

use regex::Regex;
use std::sync::LazyLock;

/// Output in two parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Output<'a> {
    /// Messages, each with its details, hints and context.
    pub messages: Vec<Message<'a>>,
    /// Everything else: rows, plans, descriptions.
    pub rows: Vec<&'a str>,
}

/// A message with what explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its lines. The first one has the severity.
    pub lines: Vec<&'a str>,
    /// True if the statement failed.
    pub is_error: bool,
}

impl Message<'_> {
    /// The whole text.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is constant")
}

static BEGIN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:setup failed: |teardown failed: |[\w-]+: )?(ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|LOG|DEBUG):  ",
    )
});
/// What psql and the isolation tester say without a severity.
static PROGRAM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:no rows returned for|more than one row returned for|invalid command|invalid variable name|",
        r"server closed the connection|connection to server|Pipeline aborted|No pending results|",
        r"psql: error|\\\w+: |Did not find any |",
        r"step \w+ timed out after |active steps are: )"
    ))
});
static MORE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:DETAIL|HINT|CONTEXT|QUERY|LOCATION):  |^LINE \d+: "));
static CARET: LazyLock<Regex> = LazyLock::new(|| pattern(r"^ *\^$"));
/// Lines that follow the first one of a context or a detail.
static FOLLOWS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:SQL |PL/\w+ |COPY |compilation of |while |referenced |drop cascades to |\t| {8}|",
        r".* depends on |privileges for |owner of |and \d+ other )"
    ))
});

/// Sorts lines of output into messages and the rest.
pub fn split<'a>(lines: &[&'a str]) -> Output<'a> {
    let mut output = Output::default();
    // The part of a message that may go on: None where no message is open.
    let mut open: Option<Part> = None;
    for &line in lines {
        let begins = BEGIN.captures(line);
        if begins.is_some() || PROGRAM.is_match(line) {
            let severity = begins.and_then(|begins| begins.get(1));
            output.messages.push(Message {
                lines: vec![line],
                is_error: severity
                    .is_none_or(|s| ["ERROR", "FATAL", "PANIC"].contains(&s.as_str())),
            });
            open = Some(Part::default());
        } else if let (Some(part), Some(message)) = (&mut open, output.messages.last_mut())
            && part.takes(line)
        {
            message.lines.push(line);
        } else {
            open = None;
            output.rows.push(line);
        }
    }
    output
}

/// The part of a message that is being read.
#[derive(Default)]
struct Part {
    /// Quotes in it so far: an odd number means that a quoted statement goes on.
    quotes: usize,
    is_query: bool,
    is_source_line: bool,
    /// True once a detail or a context has begun.
    has_details: bool,
}

impl Part {
    /// True if the line belongs to the message.
    fn takes(&mut self, line: &str) -> bool {
        let quotes = line.matches('"').count();
        if MORE.is_match(line) {
            *self = Part {
                quotes,
                is_query: line.starts_with("QUERY:"),
                is_source_line: line.starts_with("LINE "),
                has_details: !line.starts_with("LINE "),
            };
            return true;
        }
        if self.is_source_line {
            self.is_source_line = false;
            return CARET.is_match(line);
        }
        let goes_on =
            self.is_query || self.has_details && (self.quotes % 2 == 1 || FOLLOWS.is_match(line));
        self.quotes += quotes;
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (Vec<String>, Vec<String>) {
        let lines: Vec<&str> = text.lines().collect();
        let output = split(&lines);
        (
            output.messages.iter().map(Message::text).collect(),
            output.rows.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn rows_stand_beside_messages() {
        let (messages, rows) = of(
            "NOTICE:  one\n a \n---\n 1\n(1 row)\n\nERROR:  two\nLINE 1: SELECT x;\n               ^\n b \n---",
        );
        assert_eq!(
            messages,
            [
                "NOTICE:  one",
                "ERROR:  two\nLINE 1: SELECT x;\n               ^"
            ]
        );
        assert_eq!(rows, [" a ", "---", " 1", "(1 row)", "", " b ", "---"]);
    }

    #[test]
    fn a_context_is_part_of_its_message() {
        let text = "ERROR:  no\nDETAIL:  view a depends on b\nview c depends on a\nHINT:  Use CASCADE.\n\
            CONTEXT:  SQL statement \"SELECT 1,\n 2\"\nPL/pgSQL function f() line 3 at SQL statement";
        let (messages, rows) = of(&format!("{text}\n 1"));
        assert_eq!(messages, [text]);
        assert_eq!(rows, [" 1"]);
    }

    #[test]
    fn sessions_of_the_isolation_tester_have_messages() {
        let text = "s1: NOTICE:  a\nsetup failed: ERROR:  b\nERROR:  c\n\
            step s1_commit timed out after 120 seconds\nactive steps are: s1_commit";
        let (messages, rows) = of(text);
        assert_eq!((messages.len(), rows.len()), (5, 0));
    }

    #[test]
    fn a_notice_is_no_error() {
        let lines = ["NOTICE:  a", "ERROR:  b", "no rows returned for \\gset"];
        let errors: Vec<bool> = split(&lines).messages.iter().map(|m| m.is_error).collect();
        assert_eq!(errors, [false, true, true]);
    }
}
