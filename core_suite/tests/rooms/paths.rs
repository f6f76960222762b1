//! Which paths of its own crate a source file names: `crate::...` and `super::...`, in `use` items
//! and everywhere else.

use crate::tokens::{Token, tokens};
use std::collections::BTreeMap;

/// A path that a file names, from the crate's root on. Empty: the root itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    pub line: usize,
    pub path: Vec<String>,
    /// The name that a `use` item gives it, if that is another one.
    alias: Option<String>,
}

/// A module for tests alone.
pub struct TestModule {
    pub module: Vec<String>,
    /// Its file, if an attribute names one.
    pub file: Option<String>,
}

/// A file's code: no comments, and nothing that is for tests alone.
pub struct Code {
    tokens: Vec<Token>,
    /// Names of modules for tests alone, with the text of a `path` attribute.
    tests: Vec<(String, Option<String>)>,
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

impl Code {
    pub fn of(text: &str) -> Code {
        let mut code = Code {
            tokens: Vec::new(),
            tests: Vec::new(),
        };
        let all = tokens(text);
        let mut at = 0;
        while at < all.len() {
            if is_for_tests(&all[at..]) {
                let end = at + item_length(&all[at..]);
                code.tests.extend(test_module(&all[at..end]));
                at = end;
            } else {
                code.tokens.push(all[at].clone());
                at += 1;
            }
        }
        code
    }

    /// The modules for tests alone that a file that is `module` declares.
    pub fn test_modules(&self, module: &[String]) -> impl Iterator<Item = TestModule> {
        self.tests.iter().map(|(name, file)| TestModule {
            module: module.iter().chain([name]).cloned().collect(),
            file: file.clone(),
        })
    }

    /// Whether a module is said to lie in another file than its name says.
    pub fn places_a_module(&self) -> bool {
        let mut windows = self.tokens.windows(3);
        windows.any(|three| three[0].text == "#" && three[1].text == "[" && three[2].text == "path")
    }

    /// The names that the root has from its modules by `use`, each with the first part of its path.
    pub fn handed_on(&self) -> BTreeMap<String, String> {
        let mut found = Vec::new();
        for at in 0..self.tokens.len() {
            if self.tokens[at].text == "use" {
                let text = |at: usize| self.tokens.get(at).map_or("", |token| &token.text);
                let is_rooted = matches!(text(at + 1), "crate" | "self") && text(at + 2) == "::";
                let begin = at + if is_rooted { 3 } else { 1 };
                tree(&self.tokens, begin, &[], &mut found);
            }
        }
        let pair = |named: Named| {
            let name = named.alias.or(named.path.last().cloned())?;
            Some((name, named.path.first()?.clone()))
        };
        found.into_iter().filter_map(pair).collect()
    }

    /// Every path of the crate in the code of a file that is `module`.
    pub fn paths(&self, module: &[String]) -> Vec<Named> {
        let tokens = &self.tokens;
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
                    at = path(tokens, at, &here, &mut found);
                }
                _ => at += 1,
            }
        }
        found
    }
}

/// Whether an attribute begins here that keeps what follows to tests.
fn is_for_tests(tokens: &[Token]) -> bool {
    let begins = |with: &[&str]| {
        tokens.len() > with.len()
            && with
                .iter()
                .zip(tokens)
                .all(|(text, token)| token.text == *text)
    };
    begins(&["#", "[", "cfg", "(", "test", ")"])
        || begins(&["#", "[", "cfg", "(", "all", "(", "test"])
}

/// How many tokens an item takes with the attributes before it; also a field, a statement, an arm.
fn item_length(tokens: &[Token]) -> usize {
    let mut at = 0;
    let mut depth = 0;
    let mut is_attribute = false;
    let mut keyword = "";
    while at < tokens.len() {
        let text = tokens[at].text.as_str();
        at += 1;
        match text {
            "#" if depth == 0 => is_attribute = true,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => return at - 1,
            ")" | "]" | "}" => {
                depth -= 1;
                if depth == 0 && is_attribute {
                    is_attribute = false;
                } else if depth == 0 && text == "}" && keyword != "use" {
                    return at;
                }
            }
            ";" if depth == 0 => return at,
            "," if depth == 0 && keyword.is_empty() => return at,
            "fn" | "mod" | "use" | "impl" | "struct" | "enum" | "const" | "static" | "type"
            | "trait" | "extern"
                if depth == 0 && keyword.is_empty() =>
            {
                keyword = text;
            }
            _ => {}
        }
    }
    at
}

/// The module that an item is, if it lies in a file of its own.
fn test_module(item: &[Token]) -> Option<(String, Option<String>)> {
    let [.., keyword, name, end] = item else {
        return None;
    };
    if keyword.text != "mod" || end.text != ";" {
        return None;
    }
    let path = item
        .windows(3)
        .find(|three| three[0].text == "path" && three[1].text == "=");
    let file = path.map(|three| three[2].text.trim_matches('"').to_string());
    Some((name.text.clone(), file))
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
        alias: match (tokens.get(at + 1), tokens.get(at + 2)) {
            (Some(next), Some(name)) if next.text == "as" => Some(name.text.clone()),
            _ => None,
        },
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}
