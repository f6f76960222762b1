//! `docs/formats.md` knows the newest version of everything that is stored.
use crate::tree::root;
use std::fs;

/// A constant of a source file, and how the document tells its value.
const VERSIONS: [(&str, &str, &str); 5] = [
    (
        "mot_engine/src/log/mod.rs",
        "LOG_VERSION: u8",
        "| {} | changes for logical decoding",
    ),
    (
        "mot_engine/src/checkpoint/manifest.rs",
        "MANIFEST_VERSION: u32",
        "| {} | tables whose rows are not logged",
    ),
    (
        "mot_engine/src/checkpoint/block.rs",
        "BLOCK_VERSION: u32",
        "(magic, version {})",
    ),
    (
        "mot_engine/src/checkpoint/source_note.rs",
        "NOTE_VERSION: u32",
        "magic `MOTU`, version {} ",
    ),
    (
        "mot_engine/src/memory/arena.rs",
        "LAYOUT_VERSION: u32",
        "one layout version, {}\nnow",
    ),
];

#[test]
fn the_document_knows_the_newest_versions() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect(path);
    let document = read("docs/formats.md");
    for (path, constant, told) in VERSIONS {
        let source = read(path);
        let value = source
            .split_once(&format!("const {constant} = "))
            .and_then(|(_, rest)| rest.split_once(';'))
            .unwrap_or_else(|| panic!("{path} has no {constant}"))
            .0;
        let told = told.replace("{}", value);
        assert!(
            document.contains(&told),
            "docs/formats.md does not say: {told}"
        );
    }
}
