//! Says what the comparison found.

use crate::compare::{Comparison, Verdict, beyond};
use crate::groups::unexplained_messages;
use crate::known::Entry;
use crate::suite::TestFile;
use std::fmt::{self, Display, Formatter};

/// Most lines that are shown of one side of a difference.
const MOST_LINES: usize = 40;

/// The counts over all tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All statements and steps.
    pub all: usize,
    /// With the same output.
    pub identical: usize,
    /// With the same rows in another order.
    pub order: usize,
    /// Explained by the list.
    pub listed: usize,
    /// Not come to.
    pub not_run: usize,
    /// Not explained.
    pub different: usize,
    /// Those, listed or not, that fail in the other run only.
    pub failing: usize,
}

/// What two runs have in common and what not.
pub struct Report<'a> {
    files: &'a [TestFile],
    known: &'a [Entry],
    /// The counts over all tests.
    pub counts: Counts,
    /// How often each entry of the list was needed.
    pub uses: Vec<usize>,
}

impl<'a> Report<'a> {
    /// Counts what was found.
    pub fn new(files: &'a [TestFile], known: &'a [Entry]) -> Self {
        let mut counts = Counts::default();
        let mut uses = vec![0; known.len()];
        for comparison in files.iter().flat_map(|file| &file.comparisons) {
            counts.all += 1;
            counts.failing += usize::from(comparison.fails_only_in_test());
            match &comparison.verdict {
                Verdict::Identical => counts.identical += 1,
                Verdict::Order => counts.order += 1,
                Verdict::NotRun => counts.not_run += 1,
                Verdict::Different => counts.different += 1,
                Verdict::Listed(entries) => {
                    counts.listed += 1;
                    entries.iter().for_each(|&entry| uses[entry] += 1);
                }
            }
        }
        Report {
            files,
            known,
            counts,
            uses,
        }
    }

    /// True if each difference is listed, and no entry explains more of them than it may.
    pub fn holds(&self) -> bool {
        let too_often = |(uses, entry): (&usize, &Entry)| *uses > entry.most;
        self.counts.all > 0
            && self.counts.different == 0
            && !self.uses.iter().zip(self.known).any(too_often)
    }

    /// Where each entry of the list was needed, forms of unexplained messages, and the differences
    /// with their outputs, for whoever examines them.
    pub fn details(&self) -> String {
        let mut text = String::new();
        for (number, entry) in self.known.iter().enumerate() {
            text += &format!("{:6}  listed: {}\n       ", self.uses[number], entry.reason);
            for file in self.files {
                let count = uses_in(file, number);
                if count > 0 {
                    text += &format!(" {} {count}", file.name);
                }
            }
            text.push('\n');
        }
        for (form, group) in unexplained_messages(self.files) {
            let files: Vec<&str> = group.files.iter().map(String::as_str).collect();
            text += &format!("{:6}  {form}\n        {}\n", group.count, files.join(" "));
        }
        for file in self.files {
            for comparison in different(file) {
                text += &format!("\n== {}:{}\n", file.name, describe(comparison));
            }
        }
        text
    }
}

fn uses_in(file: &TestFile, number: usize) -> usize {
    file.comparisons
        .iter()
        .filter(|comparison| matches!(&comparison.verdict, Verdict::Listed(entries) if entries.contains(&number)))
        .count()
}

fn different(file: &TestFile) -> impl Iterator<Item = &Comparison> {
    file.comparisons
        .iter()
        .filter(|comparison| comparison.verdict == Verdict::Different)
}

/// A difference: the statement, and what only one of the runs printed. Where only the order
/// differs, both in full.
fn describe(comparison: &Comparison) -> String {
    let Comparison { base, test, .. } = comparison;
    let mut text = format!("{}\n{}\n", base.place, base.text);
    if !test.ran {
        text += "(not run)\n";
    }
    let mut sides = [
        beyond(&base.output, &test.output),
        beyond(&test.output, &base.output),
    ];
    if sides.iter().all(Vec::is_empty) {
        sides = [base.output.clone(), test.output.clone()];
    }
    for (mark, lines) in ["-", "+"].iter().zip(&sides) {
        for line in lines.iter().take(MOST_LINES) {
            text += &format!("{mark}{line}\n");
        }
        if lines.len() > MOST_LINES {
            text += &format!("{mark}... {} more lines\n", lines.len() - MOST_LINES);
        }
    }
    text
}

impl Display for Report<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let files = self.files.len();
        let Counts {
            all,
            identical,
            order,
            listed,
            not_run,
            different: unexplained,
            failing,
        } = self.counts;
        writeln!(f, "{all:7} statements and steps in {files} files")?;
        writeln!(f, "{identical:7} identical")?;
        writeln!(f, "{order:7} with the same rows in another order")?;
        writeln!(f, "{listed:7} listed:")?;
        for (entry, uses) in self.known.iter().zip(&self.uses) {
            let verdict = match uses {
                uses if *uses > entry.most => ": TOO MANY",
                _ => "",
            };
            writeln!(
                f,
                "        {uses:5} of at most {:5}  {}{verdict}",
                entry.most, entry.reason
            )?;
        }
        writeln!(f, "{not_run:7} not come to, because of a difference before")?;
        writeln!(f, "{unexplained:7} different:")?;
        for file in self.files {
            let count = different(file).count();
            if count > 0 {
                writeln!(f, "        {count:5} in {}", file.name)?;
            }
        }
        let failing_files = self
            .files
            .iter()
            .filter(|file| file.comparisons.iter().any(Comparison::fails_only_in_test))
            .count();
        writeln!(
            f,
            "{failing:7} of all, in {failing_files} files, fail where heap does not"
        )
    }
}
