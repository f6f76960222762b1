//! The rooms of `mot_ext` are layers: each uses only those below it, so there is no import cycle.
//!
//! A room is a directory or a file directly under `mot_ext/src`. [`LAYERS`] is the one place in
//! which their order is written. The test reads every path that begins with `crate` or `super` in
//! every file, in `use` items and elsewhere, and names those that point upward. It needs no
//! PostgreSQL.
//!
//! `lib.rs` is above all rooms and may use each of them.
mod paths;

use paths::{Named, module_of, paths_in};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms, the lowest first.
const LAYERS: [&str; 21] = [
    // Bindings of PostgreSQL, and what they need of each other.
    "pg",
    // The control block and the settings.
    "shared_memory",
    // Every error and log message.
    "errors",
    // Values as key bytes.
    "keys",
    // Filters, accumulators and core's expressions over one row or a group of rows.
    "executor",
    // Transactions, snapshots, sessions, waiting for a row.
    "transaction",
    // What PostgreSQL's SSI is told.
    "serializable",
    // From a relation to its storage; definitions and builds of indexes.
    "storage",
    // One row: its tuple id, showing, writing and locking it.
    "rows",
    // Reading rows by key.
    "access",
    // The access methods.
    "table_am",
    "index_am",
    // Nodes of core's executor, and the paths that lead to them.
    "plan_nodes",
    "planner",
    // Statements that run without core's executor.
    "compiled",
    // What core's DDL cannot know.
    "ddl",
    // Checkpoint files and gates; loading and replay; removing dead versions.
    "checkpoint",
    "recovery",
    "reclaim",
    // The background workers that drive the three.
    "workers",
    // Views and the check of tables.
    "monitoring",
];

/// A file of the extension: its path under `src`, and its text.
type File = (String, String);

/// What is wrong with the rooms of some files, one line each.
fn violations(files: &[File], layers: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut rooms = BTreeSet::new();
    for (name, text) in files {
        let module = module_of(name);
        let Some(room) = module.first() else {
            continue;
        };
        rooms.insert(room.clone());
        let Some(level) = level_of(room, layers) else {
            continue;
        };
        if text.contains("#[path") {
            found.push(format!(
                "mot_ext/src/{name}: a module lies where its name says"
            ));
        }
        for Named { line, path } in paths_in(text, &module) {
            let shown = format!("crate::{}", path.join("::"));
            let place = format!("mot_ext/src/{name}:{line}");
            let Some(other) = path.first() else {
                found.push(format!(
                    "{place}: a path must name a room, not the whole crate"
                ));
                continue;
            };
            match level_of(other, layers) {
                None => found.push(format!("{place}: {shown} is in no room of the list")),
                Some(above) if above > level => found.push(format!(
                    "{place}: {room} -> {other} points upward ({shown})"
                )),
                Some(_) => {}
            }
        }
    }
    for room in &rooms {
        if level_of(room, layers).is_none() {
            found.push(format!("room {room} is not in the list of layers"));
        }
    }
    for layer in layers {
        if !rooms.contains(*layer) {
            found.push(format!("layer {layer} is no room"));
        }
    }
    found
}

fn level_of(room: &str, layers: &[&str]) -> Option<usize> {
    layers.iter().position(|layer| *layer == room)
}

/// Every Rust file below a directory.
fn files_below(root: &Path) -> Vec<File> {
    let mut files = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory)).expect("a directory of sources") {
            let entry = entry.expect("an entry of it");
            let name = directory.join(entry.file_name());
            if entry.file_type().expect("its type").is_dir() {
                directories.push(name);
            } else if name.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(entry.path()).expect("a source file");
                files.push((name.to_string_lossy().into_owned(), text));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn rooms_use_only_rooms_below_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mot_ext/src");
    let found = violations(&files_below(&root), &LAYERS);
    assert!(
        found.is_empty(),
        "a room of mot_ext may use only those below it, which are in this order:\n{}\n\n{}\n\n\
         Move the state down, pass it in, or let the upper room register a function.",
        LAYERS.join(" < "),
        found.join("\n")
    );
}

fn made_up(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<File> = files
        .iter()
        .map(|(name, text)| (name.to_string(), text.to_string()))
        .collect();
    violations(&files, &["low", "high"])
}

#[test]
fn a_cycle_is_found_at_its_upward_edge() {
    let found = made_up(&[
        ("low/a.rs", "//! A file.\nuse crate::high::x;\n"),
        ("high.rs", "use crate::low::a;\n"),
        ("lib.rs", "mod high;\nmod low;\nuse crate::high::x;\n"),
    ]);
    assert_eq!(
        found,
        ["mot_ext/src/low/a.rs:2: low -> high points upward (crate::high::x)"]
    );
}

#[test]
fn every_form_of_a_path_is_seen() {
    for text in [
        "fn f() {\n crate::high::x() }",
        "use crate::{\n high::x };",
        "use crate::{low,\n high::{self, x}};",
        "use {crate::low::b,\n crate::high as above};",
        "fn f() {\n super::super::high::x() }",
        "mod inner {\n use super::super::super::high::x; }",
        "pub(in crate::low) type T =\n crate::high::T;",
        "macro_rules! m { () => {\n $crate::high::x() } }",
        "use ::std::fmt;\nuse crate\n::\nhigh::x;",
        "use crate::low::b;\npub use self::super::super::high::x;",
    ] {
        let found = made_up(&[("low/a.rs", text), ("high.rs", "")]);
        assert!(!found.is_empty(), "{text}");
        assert!(
            found.iter().all(|one| one.contains("low -> high")),
            "{text}: {found:?}"
        );
        let line = text.lines().position(|line| line.contains("high")).unwrap() + 1;
        assert!(line == 1 || !found[0].contains(".rs:1:"), "{found:?}");
    }
}

#[test]
fn only_code_counts() {
    let text = r##"
        //! See `crate::high::x`.
        /* crate::high::x /* super::super::high */ crate::high */
        const TEXT: &str = "crate::high::x \" crate::high";
        const RAW: &str = r#"crate::high::x "quoted" crate::high"#;
        const BYTES: &[u8] = b"crate::high::x";
        const QUOTE: char = '"';
        fn f<'a>(a: &'a str) -> char { let _ = a; '\'' }
        pub(crate) fn g() { high::x(); self::super_::y() }
    "##;
    assert!(made_up(&[("low/a.rs", text), ("high.rs", "")]).is_empty());
}

#[test]
fn rooms_and_list_must_agree() {
    assert_eq!(
        made_up(&[("low/mod.rs", "use crate::other::x;"), ("new.rs", "")]),
        [
            "mot_ext/src/low/mod.rs:1: crate::other::x is in no room of the list",
            "room new is not in the list of layers",
            "layer high is no room",
        ]
    );
}

#[test]
fn a_module_lies_where_its_name_says() {
    let text = "#[path = \"../high/x.rs\"]\nmod x;";
    let found = made_up(&[("low/mod.rs", text), ("high.rs", "")]);
    assert_eq!(
        found,
        ["mot_ext/src/low/mod.rs: a module lies where its name says"]
    );
}

#[test]
fn the_whole_crate_is_not_to_be_imported() {
    for text in [
        "use crate::*;",
        "use crate::{self as root};",
        "use crate as root;",
    ] {
        let found = made_up(&[("low/a.rs", text), ("high.rs", "")]);
        assert_eq!(
            found,
            ["mot_ext/src/low/a.rs:1: a path must name a room, not the whole crate"]
        );
    }
}
