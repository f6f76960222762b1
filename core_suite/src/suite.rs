//! Finds the result files of two runs and compares them.

use crate::compare::{Comparison, compare};
use crate::failure::{Failure, Result, read};
use crate::known::Entry;
use crate::{isolation, regression};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where scripts and results are.
pub struct Runs {
    /// The tests' source: `regress/sql` is in it.
    pub source: PathBuf,
    /// The results on heap: `regress/results` and `isolation/results` are in it.
    pub base: PathBuf,
    /// The results on the other kind of table.
    pub test: PathBuf,
}

/// A test file with its statements.
pub struct TestFile {
    /// Its name; specs of the isolation suite have `isolation/` before it.
    pub name: String,
    /// Its statements or steps.
    pub comparisons: Vec<Comparison>,
}

/// Compares all tests of the base run.
pub fn compare_runs(runs: &Runs, known: &[Entry]) -> Result<Vec<TestFile>> {
    let mut files = Vec::new();
    for name in names(&runs.base.join("regress/results"))? {
        let script = read(&runs.source.join(format!("regress/sql/{name}.sql")))?;
        let (base, test) = results(runs, &format!("regress/results/{name}.out"))?;
        let units = regression::units(&script, &base)
            .into_iter()
            .zip(regression::units(&script, &test))
            .collect();
        let comparisons = compare(&name, units, known);
        files.push(TestFile { name, comparisons });
    }
    for spec in names(&runs.base.join("isolation/results"))? {
        let name = format!("isolation/{spec}");
        let (base, test) = results(runs, &format!("isolation/results/{spec}.out"))?;
        let comparisons = compare(&name, isolation::units(&base, &test), known);
        files.push(TestFile { name, comparisons });
    }
    Ok(files)
}

/// The tests whose results are in a directory; none if there is no directory.
fn names(directory: &Path) -> Result<BTreeSet<String>> {
    let failure = |error| Failure::File {
        path: directory.to_path_buf(),
        error,
    };
    if !directory.exists() {
        return Ok(BTreeSet::new());
    }
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(directory).map_err(failure)? {
        let path = entry.map_err(failure)?.path();
        if path.extension().is_some_and(|extension| extension == "out")
            && let Some(name) = path.file_stem()
        {
            names.insert(name.to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Both results of a test. Each run prints its own directory, which is no difference.
fn results(runs: &Runs, file: &str) -> Result<(String, String)> {
    let base = read(&runs.base.join(file))?;
    let test = match runs.test.join(file) {
        path if path.exists() => read(&path)?,
        _ => String::new(),
    };
    let (base_directory, test_directory) =
        (runs.base.to_string_lossy(), runs.test.to_string_lossy());
    Ok((base, test.replace(&*test_directory, &base_directory)))
}
