//! Lines of a psql script, and where statements end in them.
//!
//! psql with `-a` prints each line when it reads it, and results when a statement ends. So output
//! can only stand behind a line on which a statement or a psql command ends. psql passes empty
//! lines over, except in quotes.

mod lexer;

use lexer::Lexer;
use regex::Regex;
use std::sync::LazyLock;

/// What a line means for the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing ends here, so no output follows.
    Within,
    /// A statement or a psql command ends here.
    Ends,
    /// Data of a COPY. psql does not print it, unless the COPY failed at once.
    Data,
}

/// A line of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number, from 1 on.
    pub number: usize,
    /// The line without its end.
    pub text: &'a str,
    /// What it means for the output.
    pub role: Role,
}

static FROM_STDIN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\bfrom\s+stdin\b").expect("the pattern is constant"));

/// The lines of a script with their roles, without those that psql passes over.
pub fn parse(script: &str) -> Vec<Line<'_>> {
    let texts: Vec<&str> = script.lines().collect();
    let data = data_lines(&texts);
    let mut lexer = Lexer::default();
    texts
        .iter()
        .zip(data)
        .zip(1..)
        .filter_map(|((&text, is_data), number)| {
            if text.is_empty() && !is_data && !lexer.is_in_quotes() {
                return None;
            }
            let role = match () {
                () if is_data => Role::Data,
                () if lexer.ends_within(text) => Role::Ends,
                () => Role::Within,
            };
            Some(Line { number, text, role })
        })
        .collect()
}

/// Which lines are data of a COPY: those up to `\.` from the nearest `FROM stdin` before it. A COPY
/// that is meant to fail at once has neither data nor `\.`.
fn data_lines(texts: &[&str]) -> Vec<bool> {
    let mut data = vec![false; texts.len()];
    let mut begin = None;
    for (at, text) in texts.iter().enumerate() {
        if *text == r"\." {
            if let Some(begin) = begin.take() {
                data[begin..=at].fill(true);
            }
        } else if FROM_STDIN.is_match(text) {
            begin = texts[at..]
                .iter()
                .position(|text| text.contains(';') || text.starts_with(r"\copy"))
                .map(|lines| at + lines + 1);
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(script: &str) -> String {
        parse(script)
            .iter()
            .map(|line| match line.role {
                Role::Within => '.',
                Role::Ends => 'E',
                Role::Data => 'd',
            })
            .collect()
    }

    #[test]
    fn a_statement_ends_at_its_semicolon() {
        assert_eq!(
            roles("-- words; no end\nSELECT 1\n  , 2;\n\nBEGIN; COMMIT;"),
            "..EE"
        );
    }

    #[test]
    fn empty_lines_are_passed_over_outside_of_quotes() {
        let lines = parse("SELECT 1\n\n, '\n\n';\n\n");
        let numbers: Vec<usize> = lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [1, 3, 4, 5]);
    }

    #[test]
    fn quotes_comments_and_parentheses_hide_semicolons() {
        let script = "SELECT ';\n;', \"a;\n\", E'\\';\n' /* ; /* ; */\n; */ ;\n\
                      CREATE RULE r AS ON INSERT TO t DO (\n SELECT 1;\n SELECT 2;\n);";
        assert_eq!(roles(script), "....E...E");
    }

    #[test]
    fn dollar_quotes_end_at_their_own_tag() {
        assert_eq!(
            roles("DO $a$\nBEGIN\n x := $$;$$; $b$;\nEND $a$;\nSELECT a$1, b$2;"),
            "...EE"
        );
    }

    #[test]
    fn an_atomic_body_ends_with_its_end() {
        let script = "CREATE FUNCTION f() RETURNS int\nBEGIN ATOMIC\n SELECT CASE WHEN true THEN 1 END;\n\
                       SELECT 2;\nEND;\nBEGIN;\nEND;";
        assert_eq!(roles(script), "....EEE");
    }

    #[test]
    fn psql_commands_end_statements() {
        let script = "SELECT 1\n\\gset\nSELECT 1 \\; SELECT 2\n;\n\\if :x\n\\echo ';'\n\\endif\n\\x \\\\ SELECT 1\n;";
        assert_eq!(roles(script), ".E.EEEEEE");
    }

    #[test]
    fn plain_strings_have_escapes_when_told_so() {
        let script = "SET standard_conforming_strings TO off;\nSELECT '\\';\n';\n\
                      SET standard_conforming_strings TO on;\nSELECT '\\';";
        assert_eq!(roles(script), "E.EEE");
    }

    #[test]
    fn copy_data_reaches_back_to_its_own_copy() {
        let script = "COPY t FROM stdin;\nCOPY t (a)\nFROM STDIN WITH (\nFORMAT csv);\n1,it's\n\\.\nSELECT 1;";
        assert_eq!(roles(script), "E..EddE");
    }
}
