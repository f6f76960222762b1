//! What can go wrong outside of the comparison itself.

use std::path::PathBuf;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file or a directory that could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The list of known differences is no TOML, or has unknown fields.
    #[error("{}: {error}", path.display())]
    List {
        /// The list.
        path: PathBuf,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// An entry of the list that makes no sense.
    #[error("{}: \"{reason}\": {problem}", path.display())]
    Entry {
        /// The list.
        path: PathBuf,
        /// The entry's reason.
        reason: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Failure>;

/// Reads a file. Results are not always UTF-8, since some tests print in other encodings.
pub fn read(path: &std::path::Path) -> Result<String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => Err(Failure::File {
            path: path.to_path_buf(),
            error,
        }),
    }
}
