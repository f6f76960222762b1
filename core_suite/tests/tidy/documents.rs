//! Documents stay short: a README beside code is read in a few minutes, and the first pages of the
//! tree in less.
use super::Exceptions;
use super::tree::Source;

/// Words of a README beside code.
const README_WORDS_MAX: usize = 1_500;
/// Words of a page that tells one decision.
const DECISION_WORDS_MAX: usize = 500;
/// Where these pages are.
const DECISIONS: &str = "docs/decisions/";
/// Lines of documents that everybody reads.
const LINES_MAX: [(&str, usize); 3] = [
    ("README.md", 150),
    ("CHANGELOG.md", 40),
    ("bench/BOUNDS.md", 80),
];

/// Columns of a line of prose. A row of a table and a line of code stay whole.
const PROSE_COLUMNS_MAX: usize = 140;
/// It is written by a program.
const GENERATED: &str = "bench/RESULTS.md";

/// What is too long of some documents.
pub fn long_documents(documents: &[Source]) -> Exceptions {
    let mut found = Exceptions::new();
    for document in documents {
        let mut note = |measure: &str, number: usize, most: usize| {
            if number > most {
                found.insert((measure.to_owned(), document.path.clone()), number);
            }
        };
        let lines_max = LINES_MAX.iter().find(|(path, _)| *path == document.path);
        if let Some((_, most)) = lines_max {
            note("lines of a document", document.text.lines().count(), *most);
        }
        if document.path != GENERATED {
            note("wide lines of prose", wide_prose(&document.text), 0);
        }
        if let Some(most) = words_max(&document.path) {
            let words = document.text.split_whitespace().count();
            note("words of a document", words, most);
        }
    }
    found
}

/// How many lines of prose are too wide.
fn wide_prose(text: &str) -> usize {
    let is_prose = |line: &&str| !line.trim_start().starts_with('|') && !line.starts_with("    ");
    let is_wide = |line: &&str| line.chars().count() > PROSE_COLUMNS_MAX;
    text.lines().filter(is_prose).filter(is_wide).count()
}

/// How many words a document may have; `None`: any number.
fn words_max(path: &str) -> Option<usize> {
    if path.ends_with("/README.md") {
        Some(README_WORDS_MAX)
    } else if path.starts_with(DECISIONS) {
        Some(DECISION_WORDS_MAX)
    } else {
        None
    }
}

#[test]
fn long_documents_are_found() {
    let of = |path: &str, text: String| Source {
        path: path.to_owned(),
        text,
    };
    let words = |number: usize| "word\n".repeat(number);
    let lines = |number: usize| "word\n".repeat(number);
    let documents = [
        of("README.md", lines(151)),
        of("ha/README.md", words(README_WORDS_MAX)),
        of("proof/README.md", words(README_WORDS_MAX + 1)),
        of("docs/decisions/101-a.md", words(DECISION_WORDS_MAX + 1)),
        of("docs/settings.md", words(README_WORDS_MAX + 1)),
        of("CHANGELOG.md", lines(41)),
        of("bench/BOUNDS.md", lines(80)),
        of(
            "docs/a.md",
            format!("{}\n| {}", "a".repeat(141), "b".repeat(141)),
        ),
    ];
    let found = long_documents(&documents);
    let paths: Vec<&str> = found.keys().map(|(_, path)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "CHANGELOG.md",
            "README.md",
            "docs/a.md",
            "docs/decisions/101-a.md",
            "proof/README.md"
        ]
    );
    assert_eq!(found.values().sum::<usize>(), 41 + 151 + 501 + 1_501 + 1);
}
