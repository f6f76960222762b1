//! The tree keeps to its own measures: widths, lengths, one room for PostgreSQL's versions, and a
//! result beside each test. It needs no PostgreSQL and reads sources and documents only.
//!
//! What does not keep to a measure is in `exceptions.txt`, with its number. A number may only
//! shrink: a larger one fails, and so does one that is no longer true. The way of TigerBeetle's
//! `tidy.zig`.
mod documents;
mod formats;
mod functions;
mod tree;
mod unsafe_bodies;
mod words;

use documents::long_documents;
use functions::long_functions;
use std::collections::BTreeMap;
use std::fs;
use tree::{Source, documents, root, sources};
use unsafe_bodies::unsafe_bodies;

/// Columns of a comment line.
const COMMENT_COLUMNS_MAX: usize = 100;
/// Columns of a line of code.
const CODE_COLUMNS_MAX: usize = 120;
/// Lines of a file.
const FILE_LINES_MAX: usize = 500;
/// Lines of a function.
const FUNCTION_LINES_MAX: usize = 70;
/// The extension, and its room of typed views and bindings, which may be unsafe all over.
const EXTENSION: &str = "mot_ext/src/";
const UNSAFE_ROOM: &str = "mot_ext/src/pg/";
/// The one place that may ask which version of PostgreSQL it is built for.
const VERSION_ROOM: &str = "mot_ext/src/pg/version/";

/// A measure and a file, and how much of the file does not keep to it.
type Exceptions = BTreeMap<(String, String), usize>;

/// What of a tree does not keep to its measures.
fn exceptions_of(sources: &[Source]) -> Exceptions {
    let mut found = Exceptions::new();
    for source in sources {
        let mut note = |measure: &str, number: usize| {
            if number > 0 {
                found.insert((measure.to_owned(), source.path.clone()), number);
            }
        };
        let wide =
            |line: &&str| source.is_comment(line) && line.chars().count() > COMMENT_COLUMNS_MAX;
        note(
            "wide comment lines",
            source.text.lines().filter(wide).count(),
        );
        if !source.is_rust() {
            continue;
        }
        let wide = |line: &&str| line.chars().count() > CODE_COLUMNS_MAX;
        note("wide lines", source.text.lines().filter(wide).count());
        if source.path.starts_with(EXTENSION) && !source.path.starts_with(UNSAFE_ROOM) {
            note("unsafe bodies", unsafe_bodies(&source.text));
        }
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            note("lines of a file", lines);
        }
        note(
            "long functions",
            long_functions(&source.text, FUNCTION_LINES_MAX).count(),
        );
        if !source.path.starts_with(VERSION_ROOM) {
            let asks = source.text.lines().filter(|line| asks_for_version(line));
            note("versions outside their room", asks.count());
        }
    }
    found
}

/// Whether a line is built for some versions of PostgreSQL only.
fn asks_for_version(line: &str) -> bool {
    let line = line.trim_start();
    !line.starts_with("//")
        && line.contains("cfg")
        && line
            .split("feature = \"pg")
            .skip(1)
            .any(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// The list: a number, a measure, a file in each line.
fn listed(text: &str) -> Exceptions {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let mut parts = line.split('\t');
            let number = parts.next().and_then(|number| number.parse().ok());
            match (number, parts.next(), parts.next()) {
                (Some(number), Some(measure), Some(path)) => {
                    ((measure.to_owned(), path.to_owned()), number)
                }
                _ => panic!("not a number, a measure and a file, with tabs between: {line}"),
            }
        })
        .collect()
}

/// In what a tree and its list differ, one line each.
fn differences(found: &Exceptions, listed: &Exceptions) -> Vec<String> {
    let mut all: Vec<_> = found.keys().chain(listed.keys()).collect();
    all.sort();
    all.dedup();
    let lines = all.into_iter().filter_map(|what| {
        let (is, may) = (found.get(what).copied(), listed.get(what).copied());
        let (measure, path) = what;
        let (is, may) = (is.unwrap_or(0), may.unwrap_or(0));
        match is.cmp(&may) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(format!(
                "{path}: {measure}: {is}, and the list allows {may}"
            )),
            std::cmp::Ordering::Less => Some(format!(
                "{path}: {measure}: {is} only; lower the {may} of the list"
            )),
        }
    });
    lines.collect()
}

#[test]
fn the_tree_keeps_to_its_measures() {
    let list = root().join("core_suite/tests/tidy/exceptions.txt");
    let list = fs::read_to_string(list).expect("the list of exceptions");
    let mut found = exceptions_of(&sources());
    found.extend(long_documents(&documents()));
    found.extend(words::old_words(&sources()));
    let differences = differences(&found, &listed(&list));
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

#[test]
fn each_test_has_its_result() {
    let pairs = [
        ("sql", "sql", "expected", "out"),
        ("isolation/specs", "spec", "isolation/expected", "out"),
    ];
    let mut lonely = Vec::new();
    for (tests, test_end, results, result_end) in pairs {
        let names = |directory: &str, end: &str| {
            let mut names: Vec<String> = fs::read_dir(root().join(directory))
                .expect("a directory of tests")
                .map(|entry| entry.expect("an entry of it").file_name())
                .filter_map(|name| {
                    let name = name.to_str()?.strip_suffix(end)?.strip_suffix('.')?;
                    // pg_regress and the isolation tester take a second result as NAME_1.
                    Some(name.strip_suffix("_1").unwrap_or(name).to_owned())
                })
                .collect();
            names.sort();
            names.dedup();
            names
        };
        let (tests_there, results_there) = (names(tests, test_end), names(results, result_end));
        assert!(tests_there.len() > 10, "{tests} has hardly a test");
        for name in &tests_there {
            if !results_there.contains(name) {
                lonely.push(format!("{tests}/{name}.{test_end} has no result"));
            }
        }
        for name in &results_there {
            if !tests_there.contains(name) {
                lonely.push(format!("{results}/{name}.{result_end} is of no test"));
            }
        }
    }
    assert!(lonely.is_empty(), "\n{}", lonely.join("\n"));
}

#[test]
fn what_is_wide_long_or_of_a_version_is_found() {
    let wide = "x".repeat(COMMENT_COLUMNS_MAX);
    let long = "    let _ = 0;\n".repeat(FUNCTION_LINES_MAX);
    let text = format!(
        "//! {wide}\nlet s = \"{wide}\";\n#[cfg(feature = \"pg15\")]\nfn long() {{\n{long}}}\n"
    );
    let source = Source {
        path: "mot_ext/src/made_up.rs".to_owned(),
        text,
    };
    let found = exceptions_of(&[source]);
    let measures: Vec<&str> = found.keys().map(|(measure, _)| measure.as_str()).collect();
    assert_eq!(
        measures,
        [
            "long functions",
            "versions outside their room",
            "wide comment lines"
        ]
    );
    assert!(found.values().all(|number| *number == 1));
}

#[test]
fn a_list_that_is_no_longer_true_fails() {
    let one = |number| listed(&format!("{number}\tlong functions\ta.rs\n"));
    assert!(differences(&one(2), &one(2)).is_empty());
    assert_eq!(differences(&one(3), &one(2)).len(), 1);
    assert_eq!(differences(&one(1), &one(2)).len(), 1);
    assert_eq!(differences(&Exceptions::new(), &one(2)).len(), 1);
}
