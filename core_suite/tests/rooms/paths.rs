//! Which paths of its own crate a source file names: `crate::...` and `super::...`, in `use` items
//! and everywhere else.

/// A path that a file names, from the crate's root on. Empty: the root itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    pub line: usize,
    pub path: Vec<String>,
}

/// The module that a file is, by its name under `src`.
pub fn module_of(file: &str) -> Vec<String> {
    let stem = file.strip_suffix(".rs").expect("a Rust file");
    let mut parts: Vec<String> = stem.split('/').map(String::from).collect();
    if parts.last().is_some_and(|last| last == "mod") || stem == "lib" {
        parts.pop();
    }
    parts
}

/// Every path of the crate in a file that is `module`.
pub fn paths_in(text: &str, module: &[String]) -> Vec<Named> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    // Modules inside the file, with the depth of braces at which each ends.
    let mut inner: Vec<(usize, String)> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        let word = |ahead: usize| {
            tokens
                .get(at + ahead)
                .map_or("", |token| token.text.as_str())
        };
        match word(0) {
            "mod" if word(2) == "{" => {
                inner.push((depth, word(1).to_string()));
                depth += 1;
                at += 3;
            }
            "{" => {
                depth += 1;
                at += 1;
            }
            "}" => {
                depth = depth.saturating_sub(1);
                if inner.last().is_some_and(|(end, _)| *end == depth) {
                    inner.pop();
                }
                at += 1;
            }
            "crate" | "super" if begins_path(&tokens[..at]) => {
                let names = inner.iter().map(|(_, name)| name.clone());
                let here: Vec<String> = module.iter().cloned().chain(names).collect();
                at = path(&tokens, at, &here, &mut found);
            }
            _ => at += 1,
        }
    }
    found
}

/// Whether a path may begin behind these tokens.
fn begins_path(before: &[Token]) -> bool {
    match before {
        [.., first, second] if second.text == "::" => first.text == "self",
        [.., last] => last.text != "::",
        [] => true,
    }
}

/// Reads the path, or the tree of paths, that begins at a token; answers where it ends.
fn path(tokens: &[Token], start: usize, here: &[String], found: &mut Vec<Named>) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut at = start;
    let mut prefix = here.to_vec();
    if text(at) == "crate" {
        prefix.clear();
        at += 1;
    }
    let is_root = at > start;
    let mut supers = 0;
    while text(at) == "super" || (supers > 0 && text(at) == "::" && text(at + 1) == "super") {
        at += if text(at) == "::" { 2 } else { 1 };
        prefix.pop();
        supers += 1;
    }
    if text(at) != "::" {
        // `crate` alone: a visibility, or the root under another name.
        if is_root && text(at) == "as" {
            found.push(named(tokens, start, Vec::new()));
        }
        return at;
    }
    tree(tokens, at + 1, &prefix, found)
}

/// Reads what follows a path's `::`; answers where it ends.
fn tree(tokens: &[Token], start: usize, prefix: &[String], found: &mut Vec<Named>) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut at = start;
    match text(at) {
        "{" => {
            at += 1;
            while !matches!(text(at), "}" | "") {
                at = tree(tokens, at, prefix, found);
                if text(at) == "as" {
                    at += 2;
                }
                if text(at) == "," {
                    at += 1;
                }
            }
            at + 1
        }
        "*" | "self" => {
            found.push(named(tokens, at, prefix.to_vec()));
            at + 1
        }
        word if is_word(word) => {
            let mut path = prefix.to_vec();
            if word == "super" {
                path.pop();
            } else {
                path.push(word.to_string());
            }
            if text(at + 1) == "::" && (is_word(text(at + 2)) || matches!(text(at + 2), "{" | "*"))
            {
                return tree(tokens, at + 2, &path, found);
            }
            found.push(named(tokens, at, path));
            at + 1
        }
        // A generic argument (`::<`), or the end of the file.
        _ => {
            found.push(named(tokens, at.min(tokens.len() - 1), prefix.to_vec()));
            at + 1
        }
    }
}

fn named(tokens: &[Token], at: usize, path: Vec<String>) -> Named {
    Named {
        line: tokens[at].line,
        path,
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// A word, `::`, or a single other character of the code.
struct Token {
    line: usize,
    text: String,
}

/// The code's tokens: no comments, and no text in quotes.
fn tokens(text: &str) -> Vec<Token> {
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
            ('"', _) => end_of_quotes(&chars, place),
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
