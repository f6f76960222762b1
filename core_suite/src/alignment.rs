//! Finds the lines of a script in a result file: everything else there is output.
//!
//! Output may contain lines that look like the script's. Of all ways to find the script's lines in
//! their order, the one is taken that has output only where statements end; of several such ones,
//! the one with the earliest lines.

use crate::script::{Line, Role};
use std::collections::HashMap;

/// What a line of the result file is, or that a line of the script is missing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next line of the script, printed.
    Echo,
    /// A line of output.
    Output,
    /// The next line of the script is not in the result file.
    Absent,
}

/// Output where no statement ends. It happens where the script is misread, so it must be possible.
const MISPLACED: u32 = 10;
/// A line of the script that was not printed: psql has ended early.
const NOT_PRINTED: u32 = 1000;

/// The steps through script and result file, from their beginnings to their ends.
pub fn align(script: &[Line], result: &[&str]) -> Vec<Step> {
    let steps = cheapest(script, result);
    let width = result.len() + 1;
    let (mut line, mut at) = (0, 0);
    let mut path = Vec::with_capacity(script.len() + result.len());
    while line < script.len() || at < result.len() {
        let step = steps[line * width + at];
        path.push(step);
        line += usize::from(step != Step::Output);
        at += usize::from(step != Step::Absent);
    }
    path
}

/// For each pair of a line of the script and one of the result file the best step from there to
/// both ends.
fn cheapest(script: &[Line], result: &[&str]) -> Vec<Step> {
    let mut numbers = HashMap::new();
    let mut number = |text| {
        let next = numbers.len();
        *numbers.entry(text).or_insert(next)
    };
    let script_numbers: Vec<usize> = script.iter().map(|line| number(line.text)).collect();
    let result_numbers: Vec<usize> = result.iter().map(|&text| number(text)).collect();

    let width = result.len() + 1;
    let mut steps = vec![Step::Absent; (script.len() + 1) * width];
    // The costs from the following line of the script on.
    let mut below: Vec<u32> = Vec::new();
    for line in (0..=script.len()).rev() {
        let mut costs = vec![0; width];
        for at in (0..width).rev() {
            let echo = (line < script.len()
                && at < result.len()
                && script[line].role != Role::Data
                && script_numbers[line] == result_numbers[at])
                .then(|| (below[at + 1], Step::Echo));
            let output = (at < result.len())
                .then(|| (costs[at + 1] + output_cost(script, line), Step::Output));
            let absent = (line < script.len())
                .then(|| (below[at] + absence_cost(script[line]), Step::Absent));
            // The first of equal ones wins. Data is left behind before its COPY's output.
            let is_data = line < script.len() && script[line].role == Role::Data;
            let candidates = if is_data {
                [absent, output, None]
            } else {
                [echo, output, absent]
            };
            if let Some((cost, step)) = candidates
                .into_iter()
                .flatten()
                .min_by_key(|(cost, _)| *cost)
            {
                costs[at] = cost;
                steps[line * width + at] = step;
            }
        }
        below = costs;
    }
    steps
}

/// The cost of output between this line of the script and the one before.
fn output_cost(script: &[Line], line: usize) -> u32 {
    match line.checked_sub(1).map(|before| script[before].role) {
        Some(Role::Ends | Role::Data) => 0,
        Some(Role::Within) | None => MISPLACED,
    }
}

fn absence_cost(line: Line) -> u32 {
    match line.role {
        Role::Data => 0,
        Role::Ends | Role::Within => NOT_PRINTED,
    }
}
