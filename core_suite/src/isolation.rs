//! Cuts what the isolation tester printed into permutations and steps.

use crate::unit::Unit;
use regex::Regex;
use std::sync::LazyLock;

static STEP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^step ([^:]+): ?(.*)$").expect("the pattern is constant"));

const PERMUTATION: &str = "starting permutation: ";
const COMPLETED: &str = "<... completed>";
/// How the end of a step is noted.
const ENDS: &str = " ends";
const WAITING: &str = " <waiting ...>";

/// A permutation with its steps.
#[derive(Debug)]
struct Permutation {
    /// What it does: the order in which steps begin and end, and what stood before the first one.
    head: Unit,
    /// The steps in the order in which they began. What a step prints later is with it.
    steps: Vec<Unit>,
}

/// The steps of two runs of one spec, side by side. A step that one run lacks has not run there.
pub fn units(base: &str, test: &str) -> Vec<(Unit, Unit)> {
    let (base, test) = (permutations(base), permutations(test));
    let mut test = test.into_iter();
    let mut pairs = Vec::new();
    for base in base {
        let other = test.next().unwrap_or_else(|| absent(&base.head));
        pair(base, other, &mut pairs);
    }
    for other in test {
        pair(absent(&other.head), other, &mut pairs);
    }
    pairs
}

fn absent(head: &Unit) -> Permutation {
    Permutation {
        head: missing(head),
        steps: Vec::new(),
    }
}

/// A unit that the other run has and this one has not.
fn missing(unit: &Unit) -> Unit {
    Unit {
        output: Vec::new(),
        ran: false,
        ..unit.clone()
    }
}

fn pair(mut base: Permutation, mut test: Permutation, pairs: &mut Vec<(Unit, Unit)>) {
    // Only what waits has an end of its own. Where one run does not wait, the step says so.
    let (base_ends, test_ends) = (base.ends(), test.ends());
    for (head, ends) in [(&mut base.head, test_ends), (&mut test.head, base_ends)] {
        head.output
            .retain(|line| !line.ends_with(ENDS) || ends.contains(line));
    }
    pairs.push((base.head, test.head));
    for step in base.steps {
        let same = |other: &Unit| other.place == step.place;
        let other = match test.steps.iter().position(same) {
            Some(at) => test.steps.remove(at),
            None => missing(&step),
        };
        pairs.push((step, other));
    }
    for step in test.steps {
        pairs.push((missing(&step), step));
    }
}

fn permutations(result: &str) -> Vec<Permutation> {
    // What stands before the first permutation is one, too: errors of the setup.
    let mut permutations = vec![begin("", 0)];
    let mut current = None;
    for line in result.lines() {
        let number = permutations.len();
        if let Some(steps) = line.strip_prefix(PERMUTATION) {
            permutations.push(begin(steps, number));
            current = None;
            continue;
        }
        let Some(permutation) = permutations.last_mut() else {
            continue;
        };
        if let Some(step) = STEP.captures(line) {
            current = Some(permutation.enter(&step[1], &step[2], number - 1));
        } else {
            permutation.unit(current).output.push(line.to_string());
        }
    }
    permutations.iter_mut().for_each(Permutation::trim);
    permutations
}

fn begin(steps: &str, number: usize) -> Permutation {
    Permutation {
        head: Unit {
            place: format!("permutation {number}"),
            text: steps.to_string(),
            output: Vec::new(),
            ran: true,
        },
        steps: Vec::new(),
    }
}

impl Permutation {
    /// Notes that a step begins or ends, and says where it is.
    fn enter(&mut self, name: &str, text: &str, number: usize) -> usize {
        let ends = text == COMPLETED;
        let verb = if ends { ENDS } else { " begins" };
        self.head.output.push(format!("{name}{verb}"));
        let place = format!("permutation {number}, step {name}");
        if let Some(at) = self.steps.iter().position(|step| step.place == place) {
            self.steps[at].output.push(text.to_string());
            return at;
        }
        self.steps.push(Unit {
            place,
            text: text.to_string(),
            // A line of its own, so that the step's text is the same whether it waits or not.
            output: match text.strip_suffix(WAITING) {
                Some(text) => vec![text.to_string(), WAITING.to_string()],
                None => vec![text.to_string()],
            },
            ran: true,
        });
        self.steps.len() - 1
    }

    fn ends(&self) -> Vec<String> {
        let ends = self.head.output.iter().filter(|line| line.ends_with(ENDS));
        ends.cloned().collect()
    }

    /// Drops empty lines, which stand between permutations and behind rows rather than say
    /// something of a step.
    fn trim(&mut self) {
        for unit in self.steps.iter_mut().chain([&mut self.head]) {
            unit.output.retain(|line| !line.is_empty());
        }
    }

    fn unit(&mut self, step: Option<usize>) -> &mut Unit {
        match step {
            Some(at) => &mut self.steps[at],
            None => &mut self.head,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAP: &str = "Parsed test spec with 2 sessions\n\nstarting permutation: a b c\n\
        step a: UPDATE t SET x = 1;\nstep b: \n  UPDATE t SET x = 2;\n <waiting ...>\nstep c: COMMIT;\n\
        step b: <... completed>\n\nstarting permutation: b a\nstep b: SELECT;\nstep a: SELECT;\n";

    fn places(pairs: &[(Unit, Unit)]) -> Vec<&str> {
        pairs.iter().map(|(base, _)| base.place.as_str()).collect()
    }

    #[test]
    fn a_step_has_what_it_printed_before_and_after_its_wait() {
        let pairs = units(HEAP, HEAP);
        assert_eq!(
            places(&pairs),
            [
                "permutation 0",
                "permutation 1",
                "permutation 1, step a",
                "permutation 1, step b",
                "permutation 1, step c",
                "permutation 2",
                "permutation 2, step b",
                "permutation 2, step a",
            ]
        );
        assert_eq!(
            pairs[3].0.output,
            ["  UPDATE t SET x = 2;", " <waiting ...>", "<... completed>"]
        );
        assert!(pairs.iter().all(|(base, test)| base == test));
    }

    #[test]
    fn the_order_of_steps_is_compared() {
        let other = HEAP.replace(
            "step c: COMMIT;\nstep b: <... completed>",
            "step b: <... completed>\nstep c: COMMIT;",
        );
        let pairs = units(HEAP, &other);
        let differing: Vec<&str> = pairs
            .iter()
            .filter(|(base, test)| base != test)
            .map(|(base, _)| base.place.as_str())
            .collect();
        assert_eq!(differing, ["permutation 1"]);
    }

    #[test]
    fn a_step_that_does_not_wait_is_a_difference_of_that_step() {
        let base = "starting permutation: a b\nstep a: X; <waiting ...>\nstep b: Y;\nstep a: <... completed>\n";
        let test = "starting permutation: a b\nstep a: X;\nERROR:  no\nstep b: Y;\n";
        let pairs = units(base, test);
        assert_eq!(pairs[1].0, pairs[1].1);
        assert_eq!(pairs[2].0.output, ["X;", WAITING, COMPLETED]);
        assert_eq!(pairs[2].1.output, ["X;", "ERROR:  no"]);
    }

    #[test]
    fn a_message_behind_rows_is_all_that_differs() {
        let base = "starting permutation: a\nstep a: SELECT 1;\n1\n(1 row)\n\n";
        let test = format!("{base}s1: NOTICE:  a\n");
        let pairs = units(base, &test);
        assert_eq!(pairs[2].0.output, ["SELECT 1;", "1", "(1 row)"]);
        assert_eq!(pairs[2].1.output[3..], ["s1: NOTICE:  a"]);
    }

    #[test]
    fn a_failed_setup_leaves_the_rest_not_run() {
        let other = "Parsed test spec with 2 sessions\nsetup failed: ERROR:  no\n";
        let pairs = units(HEAP, other);
        assert_eq!(pairs[0].1.output[1], "setup failed: ERROR:  no");
        assert!(pairs[1..].iter().all(|(base, test)| base.ran && !test.ran));
    }
}
