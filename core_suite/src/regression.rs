//! Cuts what psql printed for a script into the script's statements.

use crate::alignment::{Step, align};
use crate::script::{Line, Role, parse};
use crate::unit::Unit;

/// The statements of a script with their output. Two result files of one script have the same
/// statements.
pub fn units(script: &str, result: &str) -> Vec<Unit> {
    let lines = parse(script);
    let result: Vec<&str> = result.lines().collect();
    let mut units = Vec::new();
    let mut open = Open::default();
    let (mut line, mut at) = (0, 0);
    for step in align(&lines, &result) {
        match step {
            Step::Output => open.unit.output.push(result[at].to_string()),
            Step::Echo | Step::Absent => {
                if open.has_ended && lines[line].role != Role::Data {
                    units.push(std::mem::take(&mut open).close());
                }
                open.take(&lines[line], step == Step::Echo);
                line += 1;
            }
        }
        at += usize::from(step != Step::Absent);
    }
    // Comments behind the last statement are no unit.
    if open.has_ended || !open.unit.output.is_empty() {
        units.push(open.close());
    }
    units
}

/// The statement that is being read.
#[derive(Default)]
struct Open {
    unit: Unit,
    first_line: Option<usize>,
    has_ended: bool,
}

impl Open {
    fn take(&mut self, line: &Line, printed: bool) {
        let is_blank = line.text.trim().is_empty() || line.text.trim_start().starts_with("--");
        match line.role {
            Role::Data => return,
            Role::Within if is_blank && self.first_line.is_none() => return,
            Role::Within => {}
            Role::Ends => {
                self.has_ended = true;
                self.unit.ran = printed;
            }
        }
        self.first_line.get_or_insert(line.number);
        if !self.unit.text.is_empty() {
            self.unit.text.push('\n');
        }
        self.unit.text.push_str(line.text);
    }

    fn close(mut self) -> Unit {
        self.unit.place = self.first_line.unwrap_or_default().to_string();
        self.unit
    }
}

#[cfg(test)]
mod tests;
