//! The sources and documents of the tree.
use std::fs;
use std::path::{Path, PathBuf};

/// Directories that hold no source of ours.
const LEFT_OUT: [&str; 3] = ["target", ".git", "node_modules"];

/// A file of the tree.
pub struct Source {
    /// From the tree's root on.
    pub path: String,
    pub text: String,
}

impl Source {
    /// Whether it is Rust; shell and Perl otherwise.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether a line is a comment and nothing else.
    pub fn is_comment(&self, line: &str) -> bool {
        line.trim_start()
            .starts_with(if self.is_rust() { "//" } else { "# " })
    }
}

/// The root of the tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All Rust, shell and Perl of the tree.
pub fn sources() -> Vec<Source> {
    let sources = files(is_source);
    assert!(sources.len() > 500, "only {} sources", sources.len());
    sources
}

/// All Markdown of the tree.
pub fn documents() -> Vec<Source> {
    let documents = files(|path| path.extension().is_some_and(|end| end == "md"));
    assert!(documents.len() > 30, "only {} documents", documents.len());
    documents
}

/// The files of the tree that are wanted, by their paths.
fn files(is_wanted: impl Fn(&Path) -> bool) -> Vec<Source> {
    let mut files = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root().join(&directory)).expect("a directory of the tree") {
            let entry = entry.expect("an entry of it");
            let name = entry.file_name();
            let path = directory.join(&name);
            let kind = entry.file_type().expect("its type");
            if kind.is_dir() {
                if !LEFT_OUT.iter().any(|left_out| name == *left_out) {
                    directories.push(path);
                }
            } else if kind.is_file() && is_wanted(&path) {
                let text = fs::read_to_string(entry.path()).expect("a text");
                let path = path.to_string_lossy().into_owned();
                files.push(Source { path, text });
            }
        }
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    files
}

fn is_source(path: &Path) -> bool {
    match path.extension().and_then(|end| end.to_str()) {
        Some(end) => ["rs", "sh", "pl", "pm"].contains(&end),
        None => path.parent().is_some_and(|of| of == Path::new(".ci")),
    }
}
