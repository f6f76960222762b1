//! Enough of psql's reading of SQL to know where statements end.

/// What an unfinished line leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Inside {
    /// Plain SQL.
    #[default]
    Nothing,
    /// A string; `escapes` says whether a backslash quotes the next character.
    String {
        escapes: bool,
    },
    Identifier,
    /// A dollar-quoted string with its tag, dollars included.
    Dollars(String),
    /// Comments nest.
    Comment(u32),
}

/// The state of psql's reader between two lines.
#[derive(Debug, Default)]
pub struct Lexer {
    inside: Inside,
    parentheses: u32,
    /// The first words of the statement, in lower case: they tell functions from others.
    words: Vec<String>,
    /// Depth of BEGIN and CASE in an SQL-standard function body.
    blocks: u32,
    /// The statement so far, in lower case.
    statement: String,
    /// True while `standard_conforming_strings` is off.
    plain_escapes: bool,
}

impl Lexer {
    /// True if a quote or a comment goes on in the next line.
    pub fn is_in_quotes(&self) -> bool {
        self.inside != Inside::Nothing
    }

    /// Reads a line; true if a statement or a psql command ends on it.
    pub fn ends_within(&mut self, line: &str) -> bool {
        let mut rest = line;
        let mut ended = false;
        while !rest.is_empty() {
            let (length, ends) = match &self.inside {
                Inside::Nothing => self.plain(rest, &line[..line.len() - rest.len()]),
                _ => (self.quoted(rest), false),
            };
            self.statement
                .push_str(&rest[..length].to_ascii_lowercase());
            rest = &rest[length..];
            if ends {
                self.finish();
                ended = true;
            }
        }
        self.statement.push('\n');
        ended
    }

    /// Takes the next token of plain SQL: its length, and whether a statement ends with it.
    fn plain(&mut self, rest: &str, before: &str) -> (usize, bool) {
        let first = rest.chars().next().unwrap_or_default();
        match first {
            '-' if rest.starts_with("--") => return (rest.len(), false),
            '/' if rest.starts_with("/*") => {
                self.inside = Inside::Comment(1);
                return (2, false);
            }
            '\'' => {
                self.inside = Inside::String {
                    escapes: self.plain_escapes || has_escape_prefix(before),
                };
            }
            '"' => self.inside = Inside::Identifier,
            '$' => return (self.dollar(rest), false),
            '(' => self.parentheses += 1,
            ')' => self.parentheses = self.parentheses.saturating_sub(1),
            ';' => return (1, self.parentheses == 0 && self.blocks == 0),
            '\\' => return backslash(rest),
            c if is_word(c) => return (self.word(rest), false),
            _ => {}
        }
        (first.len_utf8(), false)
    }

    /// Takes text in quotes or in a comment, up to its end or that of the line.
    fn quoted(&mut self, rest: &str) -> usize {
        let first = rest.chars().next().unwrap_or_default();
        let mut length = first.len_utf8();
        match &mut self.inside {
            Inside::String { escapes: true } if first == '\\' => {
                length += rest[length..].chars().next().map_or(0, char::len_utf8);
            }
            Inside::String { .. } if first == '\'' => self.inside = Inside::Nothing,
            Inside::Identifier if first == '"' => self.inside = Inside::Nothing,
            Inside::Dollars(tag) if rest.starts_with(tag.as_str()) => {
                length = tag.len();
                self.inside = Inside::Nothing;
            }
            Inside::Comment(depth) if rest.starts_with("/*") => {
                *depth += 1;
                length = 2;
            }
            Inside::Comment(depth) if rest.starts_with("*/") => {
                *depth -= 1;
                length = 2;
                if *depth == 0 {
                    self.inside = Inside::Nothing;
                }
            }
            _ => {}
        }
        length
    }

    /// Takes a dollar: the beginning of a dollar-quoted string, or a parameter.
    fn dollar(&mut self, rest: &str) -> usize {
        let tag_length = rest[1..]
            .find(|c: char| !is_word(c) || c == '$')
            .map_or(rest.len(), |length| length + 1);
        let is_tag = rest[tag_length..].starts_with('$')
            && !rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if is_tag {
            self.inside = Inside::Dollars(rest[..=tag_length].to_string());
            tag_length + 1
        } else {
            1
        }
    }

    /// Takes a word, which may open or close a block of a function's body.
    fn word(&mut self, rest: &str) -> usize {
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = rest[..length].to_ascii_lowercase();
        // A string's prefix is a token of its own, and the quote follows it.
        if self.words.len() < 4 {
            self.words.push(word.clone());
        }
        if self.makes_function() && self.parentheses == 0 {
            match word.as_str() {
                "begin" => self.blocks += 1,
                "case" if self.blocks > 0 => self.blocks += 1,
                "end" => self.blocks = self.blocks.saturating_sub(1),
                _ => {}
            }
        }
        length
    }

    fn makes_function(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        matches!(
            words[..],
            ["create", "function" | "procedure", ..]
                | ["create", "or", "replace", "function" | "procedure"]
        )
    }

    /// Begins the next statement.
    fn finish(&mut self) {
        if self.statement.contains("standard_conforming_strings") {
            self.plain_escapes = self.statement.contains("off");
        }
        *self = Lexer {
            plain_escapes: self.plain_escapes,
            ..Lexer::default()
        };
    }
}

/// Takes a backslash: a separator that psql sends on, or a command up to the end of the line or to
/// `\\`.
fn backslash(rest: &str) -> (usize, bool) {
    match rest[1..].chars().next() {
        Some(';' | ':') => (2, false),
        _ => (rest.find(r" \\").map_or(rest.len(), |at| at + 3), true),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()
}

/// True if what stands before a quote is the word `E`.
fn has_escape_prefix(before: &str) -> bool {
    let mut back = before.chars().rev();
    matches!(back.next(), Some('e' | 'E')) && !back.next().is_some_and(is_word)
}
