//! Words: those that gave way to the field's own come back nowhere, and what a user may set or look
//! at is in a document.
use super::tree::{Source, root, sources};
use super::{EXTENSION, Exceptions};
use std::fs;

/// Old words, as parts of names or in comments, and the words instead; of some that PostgreSQL has
/// for something else, in the engine.
const OLD: [(&str, &str); 10] = [
    ("crew", "build threads"),
    ("haste", "no-wait allocation"),
    ("litter", "deferred prunes"),
    ("unrest", "not_quiescent_because"),
    ("set_aside", "recreate_indexes"),
    ("starting_values", "deferred_defaults"),
    ("row_work", "table_rewrite"),
    ("retype", "column_type"),
    ("see_to", "handle"),
    ("sees to", "handles"),
];

/// The engine's sources, and the words that are old there.
const ENGINE: (&str, [(&str, &str); 2]) = (
    "mot_engine/src/",
    [("slot", "row id"), ("slots", "row ids")],
);

/// Where the old words are.
const THIS: &str = "core_suite/tests/tidy/";

/// How often the sources have old words.
pub fn old_words(sources: &[Source]) -> Exceptions {
    let mut found = Exceptions::new();
    for source in sources {
        if source.path.starts_with(THIS) {
            continue;
        }
        let of_engine = ENGINE
            .1
            .iter()
            .filter(|_| source.path.starts_with(ENGINE.0));
        for (old, new) in OLD.iter().chain(of_engine) {
            let lines = source.text.lines().filter(|line| has(line, old)).count();
            if lines > 0 {
                let measure = format!("old words: {old}; better: {new}");
                found.insert((measure, source.path.clone()), lines);
            }
        }
    }
    found
}

/// Whether a line has a word, of its own or as a part of a name.
fn has(line: &str, word: &str) -> bool {
    let line = line.to_lowercase();
    line.match_indices(word).any(|(at, _)| {
        let is_letter = |side: Option<char>| side.is_some_and(char::is_alphabetic);
        let (before, behind) = (&line[..at], &line[at + word.len()..]);
        !is_letter(before.chars().next_back()) && !is_letter(behind.chars().next())
    })
}

/// The words of a text that begin so, each up to what is no part of a name.
fn names(text: &str, begin: &str) -> Vec<String> {
    let parts = text.split(begin).skip(1);
    let name = |part: &str| -> String {
        let is_part = |letter: &char| letter.is_alphanumeric() || *letter == '_';
        part.chars().take_while(is_part).collect()
    };
    parts.map(name).collect()
}

#[test]
fn each_setting_and_view_is_documented() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect(path);
    let settings = names(&read("mot_ext/src/shared_memory/settings.rs"), "c\"mot.");
    assert!(settings.len() > 10, "only {} settings", settings.len());
    let guide = read("docs/settings.md");
    for setting in settings {
        let title = format!("| `mot.{setting}` |");
        assert!(guide.contains(&title), "docs/settings.md has no {title}");
    }
    let sources = sources();
    let extension = sources
        .iter()
        .filter(|source| source.path.starts_with(EXTENSION));
    let views = extension.flat_map(|source| names(&source.text, "CREATE VIEW mot."));
    let views: Vec<String> = views.collect();
    assert!(views.len() > 7, "only {} views", views.len());
    let first_page = read("README.md");
    for view in views {
        let title = format!("`mot.{view}`");
        assert!(first_page.contains(&title), "README.md has no {title}");
    }
}

#[test]
fn old_words_are_found_in_names_and_comments() {
    for line in ["// The crew", "let crew_size = 1;", "CREW"] {
        assert!(has(line, "crew"), "{line}");
    }
    for line in ["// a screw", "let crewed = 1;"] {
        assert!(!has(line, "crew"), "{line}");
    }
}
