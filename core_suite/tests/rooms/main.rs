//! The rooms of `mot_index`, `mot_engine` and `mot_ext` are layers: each uses only those below it,
//! so there is no import cycle.
//!
//! A room is a directory or a file directly under the crate's `src`. `layers.rs` is the one place
//! in which their order is written. The test reads every path that begins with `crate` or `super`
//! in every file, in `use` items and elsewhere, and names those that point upward. It needs no
//! PostgreSQL.
//!
//! - `lib.rs` is above all rooms and may use each of them. A name that it hands on counts as the
//!   room's from which it has it.
//! - Code for tests alone (`#[cfg(test)]`) does not count: a test may use all of its crate.
mod layers;
mod paths;
mod tokens;

use layers::{Crate, ENGINE, EXTENSION, INDEX};
use paths::{Code, Named, module_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A file of a crate: its path under `src`, and its text.
type File = (String, String);

/// A file without what is for tests alone.
struct Parsed {
    name: String,
    module: Vec<String>,
    code: Code,
}

/// The files of a crate that are not for tests alone.
fn parse(files: &[File]) -> Vec<Parsed> {
    let mut for_tests = Vec::new();
    let mut parsed = Vec::new();
    for (name, text) in files {
        let module = module_of(name);
        let code = Code::of(text);
        for test in code.test_modules(&module) {
            for_tests.push(match test.file {
                Some(file) => module_of(&beside(name, &file)),
                None => test.module,
            });
        }
        let name = name.clone();
        parsed.push(Parsed { name, module, code });
    }
    parsed.retain(|file| !for_tests.iter().any(|test| file.module.starts_with(test)));
    parsed
}

/// A file in the directory of another one.
fn beside(file: &str, other: &str) -> String {
    let directory = Path::new(file).parent().unwrap_or(Path::new(""));
    directory.join(other).to_string_lossy().into_owned()
}

/// What is wrong with the rooms of some files, one line each.
fn violations(of: &Crate, files: &[File]) -> Vec<String> {
    let (directory, layers) = (of.name, of.layers);
    let files = parse(files);
    let root = files.iter().find(|file| file.name == "lib.rs");
    let handed_on = root.map_or(BTreeMap::new(), |root| root.code.handed_on());
    let mut found = Vec::new();
    let mut rooms = BTreeSet::new();
    for Parsed { name, module, code } in &files {
        let Some(room) = module.first() else {
            continue;
        };
        rooms.insert(room.clone());
        let Some(level) = level_of(room, layers) else {
            continue;
        };
        if code.places_a_module() {
            found.push(format!(
                "{directory}/src/{name}: a module lies where its name says"
            ));
        }
        for Named { line, path, .. } in code.paths(module) {
            let shown = format!("crate::{}", path.join("::"));
            let place = format!("{directory}/src/{name}:{line}");
            let Some(other) = path.first() else {
                found.push(format!(
                    "{place}: a path must name a room, not the whole crate"
                ));
                continue;
            };
            let other = handed_on.get(other).unwrap_or(other);
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

fn must_be_layers(of: &Crate) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let found = violations(of, &files_below(&root.join(of.name).join("src")));
    assert!(
        found.is_empty(),
        "a room of {} may use only those below it, which are in this order:\n{}\n\n{}\n\n\
         Move the state down, pass it in, or let the upper room register a function.",
        of.name,
        of.layers.join(" < "),
        found.join("\n")
    );
}

#[test]
fn rooms_of_the_index_use_only_rooms_below_them() {
    must_be_layers(&INDEX);
}

#[test]
fn rooms_of_the_engine_use_only_rooms_below_them() {
    must_be_layers(&ENGINE);
}

#[test]
fn rooms_of_the_extension_use_only_rooms_below_them() {
    must_be_layers(&EXTENSION);
}

fn made_up(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<File> = files
        .iter()
        .map(|(name, text)| (name.to_string(), text.to_string()))
        .collect();
    let of = Crate {
        name: "made_up",
        layers: &["low", "high"],
    };
    violations(&of, &files)
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
        ["made_up/src/low/a.rs:2: low -> high points upward (crate::high::x)"]
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
            "made_up/src/low/mod.rs:1: crate::other::x is in no room of the list",
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
        ["made_up/src/low/mod.rs: a module lies where its name says"]
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
            ["made_up/src/low/a.rs:1: a path must name a room, not the whole crate"]
        );
    }
}

#[test]
fn a_name_handed_on_by_the_root_is_that_of_its_room() {
    for (root, name) in [
        ("mod high;\npub use high::x;", "x"),
        ("pub use crate::high::{a, inner::{x, y}};", "x"),
        ("pub(crate) use {low::a, high::b as x};", "x"),
        ("use self::high::inner::{self, z};", "inner"),
    ] {
        let text = format!("use crate::{name};");
        let found = made_up(&[("low/a.rs", &text), ("high.rs", ""), ("lib.rs", root)]);
        assert_eq!(
            found,
            [format!(
                "made_up/src/low/a.rs:1: low -> high points upward (crate::{name})"
            )],
            "{root}"
        );
    }
}

#[test]
fn code_for_tests_alone_does_not_count() {
    let text = "
        #[cfg(test)]
        use crate::high::{x, y};
        #[cfg(all(test, debug_assertions))]
        #[allow(unused)]
        fn f<A, B>(a: A) -> [B; { crate::high::X }] { crate::high::x() }
        #[cfg(test)]
        #[path = \"a_tests.rs\"]
        mod other;
        #[cfg(test)]
        mod tests;
        struct S { #[cfg(test)] x: crate::high::X<1, 2>, y: u8 }
    ";
    let for_tests = "use crate::high::x;";
    let files = [
        ("low/a.rs", text),
        ("low/a_tests.rs", for_tests),
        ("low/a/tests.rs", for_tests),
        ("low/a/tests/more.rs", for_tests),
        ("high.rs", ""),
    ];
    assert_eq!(made_up(&files), Vec::<String>::new());
    let behind = format!("{text} use crate::high::x;");
    assert_eq!(made_up(&[("low/a.rs", &behind), ("high.rs", "")]).len(), 1);
    for text in [
        "#[cfg(any(test, feature = \"model\"))]\nuse crate::high::x;",
        "#[cfg(not(test))]\nuse crate::high::x;",
        "struct S { #[cfg(test)] x: u8, y: crate::high::X }",
        "#[cfg(test)]\nfn f() {}\nfn g() { crate::high::x() }",
    ] {
        assert_eq!(
            made_up(&[("low/a.rs", text), ("high.rs", "")]).len(),
            1,
            "{text}"
        );
    }
}
