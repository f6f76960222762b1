//! Puts messages that differ in names and numbers only into one group.

use crate::Verdict;
use crate::compare::new_messages;
use crate::suite::TestFile;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Messages of one form.
#[derive(Default)]
pub struct Group {
    /// How many there are.
    pub count: usize,
    /// The tests they are in.
    pub files: BTreeSet<String>,
}

static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#""[^"]*"|'[^']*'"#).expect("the pattern is constant"));
static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d+").expect("the pattern is constant"));

/// The first lines of messages that only the other run has and that nothing explains, the most
/// frequent first.
pub fn unexplained_messages(files: &[TestFile]) -> Vec<(String, Group)> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for file in files {
        let different = file
            .comparisons
            .iter()
            .filter(|comparison| comparison.verdict == Verdict::Different);
        for comparison in different {
            for message in new_messages(&comparison.base, &comparison.test) {
                let first_line = message.lines().next().unwrap_or_default();
                let form = NAME.replace_all(first_line, "\"…\"");
                let form = NUMBER.replace_all(&form, "N").into_owned();
                let group = groups.entry(form).or_default();
                group.count += 1;
                group.files.insert(file.name.clone());
            }
        }
    }
    let mut groups: Vec<(String, Group)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
    groups
}
