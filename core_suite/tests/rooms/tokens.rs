//! Rust's words and marks, as far as looking for paths needs them.

/// A word, a text in quotes, `::`, or a single other character of the code.
#[derive(Clone)]
pub struct Token {
    pub line: usize,
    pub text: String,
}

/// The code's tokens, without comments.
pub fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |place: usize| chars.get(place).copied().unwrap_or('\0');
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut place = 0;
    while place < chars.len() {
        let end = match (at(place), at(place + 1)) {
            ('/', '/') => until(&chars, place, |rest| rest[0] == '\n'),
            ('/', '*') => end_of_comment(&chars, place),
            ('r', '"' | '#') | ('b' | 'c', 'r') if raw_text(&chars, place).is_some() => {
                raw_text(&chars, place).expect("as asked")
            }
            // A raw identifier is the word behind its mark.
            ('r', '#') => place + 2,
            ('"', _) => {
                let end = end_of_quotes(&chars, place);
                tokens.push(Token {
                    line,
                    text: chars[place..end].iter().collect(),
                });
                end
            }
            ('\'', '\\') => end_of_quotes(&chars, place),
            ('\'', _) if at(place + 2) == '\'' => place + 3,
            (':', ':') => {
                tokens.push(Token {
                    line,
                    text: "::".into(),
                });
                place + 2
            }
            (first, _) if first.is_alphanumeric() || first == '_' => {
                let end = until(&chars, place, |rest| {
                    !rest[0].is_alphanumeric() && rest[0] != '_'
                });
                tokens.push(Token {
                    line,
                    text: chars[place..end].iter().collect(),
                });
                end
            }
            (first, _) => {
                if !first.is_whitespace() {
                    tokens.push(Token {
                        line,
                        text: first.into(),
                    });
                }
                place + 1
            }
        };
        line += chars[place..end].iter().filter(|c| **c == '\n').count();
        place = end;
    }
    tokens
}

/// The first place from `start` on of which `is_end` holds, or the end of the text.
fn until(chars: &[char], start: usize, is_end: impl Fn(&[char]) -> bool) -> usize {
    (start..chars.len())
        .find(|place| is_end(&chars[*place..]))
        .unwrap_or(chars.len())
}

/// Behind a comment that may have others in it.
fn end_of_comment(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut place = start;
    while place < chars.len() {
        match (chars[place], chars.get(place + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                place += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                place += 2;
                if depth == 0 {
                    break;
                }
            }
            _ => place += 1,
        }
    }
    place.min(chars.len())
}

/// Behind a text or character in quotes, in which a backslash takes the next character along.
fn end_of_quotes(chars: &[char], start: usize) -> usize {
    let quote = chars[start];
    let mut place = start + 1;
    while place < chars.len() && chars[place] != quote {
        place += if chars[place] == '\\' { 2 } else { 1 };
    }
    (place + 1).min(chars.len())
}

/// Behind a raw text that begins at a place, if one does.
fn raw_text(chars: &[char], start: usize) -> Option<usize> {
    let mark = start + chars[start..].iter().position(|c| *c == 'r')?;
    let hashes = chars[mark + 1..].iter().take_while(|c| **c == '#').count();
    if chars.get(mark + 1 + hashes) != Some(&'"') {
        return None;
    }
    let closed = |rest: &[char]| {
        rest[0] == '"' && rest.len() > hashes && rest[1..=hashes].iter().all(|c| *c == '#')
    };
    Some((until(chars, mark + 2 + hashes, closed) + 1 + hashes).min(chars.len()))
}
