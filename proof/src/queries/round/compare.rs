//! The answers of both sides.
use super::Round;
use crate::failure::{Refusal, Result};
use crate::wire::{Answer, Standing};

impl Round<'_> {
    /// Asks both sides, and compares.
    pub(super) fn both(&mut self, statement: &str, is_ordered: bool, may_fail: bool) -> Result<()> {
        self.tally.statements += 1;
        self.log += &format!("{statement};\n");
        for side in &mut self.sides {
            side.send(statement)?;
        }
        let heap = self.sides[0].receive()?;
        let mot = self.sides[1].receive()?;
        self.tally.rows += heap.rows.len();
        let same_refusal = match (&heap.refusal, &mot.refusal) {
            (Some(heap), Some(mot)) if heap.state == mot.state => Some(heap.state.clone()),
            _ => None,
        };
        let is_same = match (&heap.refusal, &mot.refusal) {
            (None, None) => are_same(&heap, &mot, is_ordered),
            // Which of two errors comes first is a matter of the order of rows.
            (Some(heap), Some(mot)) => {
                heap.state == mot.state || is_of_values(heap) && is_of_values(mot)
            }
            (Some(refusal), None) | (None, Some(refusal)) => {
                self.tally.plans += 1;
                may_fail && is_of_values(refusal)
            }
        };
        if let Some(state) = same_refusal {
            *self.tally.errors.entry(state).or_default() += 1;
        }
        if !is_same {
            self.log += "-- DIFFERS\n";
            self.note_difference(statement, &heap, &mot)?;
        }
        if self.sides[1].standing == Standing::Idle {
            self.has_changed = false;
        }
        // A transaction that failed on one side only.
        if self.sides[0].standing != self.sides[1].standing {
            for side in &mut self.sides {
                side.ask("ROLLBACK")?;
            }
            self.log += "ROLLBACK;\n";
            self.has_savepoint = false;
        }
        Ok(())
    }

    pub(super) fn note_difference(
        &mut self,
        statement: &str,
        heap: &Answer,
        mot: &Answer,
    ) -> Result<()> {
        let mut words = format!(
            "{statement}\n  heap: {}\n  MOT:  {}",
            summary(heap),
            summary(mot)
        );
        let explained = match statement {
            query if query.starts_with("SELECT") || query.starts_with("EXECUTE") => {
                self.sides[1].ask(&format!("EXPLAIN (COSTS off, VERBOSE) {query}"))?
            }
            _ => Answer::default(),
        };
        for row in explained.rows {
            words += &format!("\n    {}", row[0].as_deref().unwrap_or_default());
        }
        self.found.push(words);
        Ok(())
    }
}

/// What a row's values bring about, and those of another row do not.
fn is_of_values(refusal: &Refusal) -> bool {
    refusal.state.starts_with("22")
        || matches!(refusal.state.as_str(), "42P22" | "40001")
        // LIKE.
        || refusal.message.contains("nondeterministic collations")
}

fn are_same(heap: &Answer, mot: &Answer, is_ordered: bool) -> bool {
    if is_ordered {
        return heap.rows == mot.rows && heap.tags == mot.tags;
    }
    let sorted = |answer: &Answer| {
        let mut rows = answer.rows.clone();
        rows.sort();
        rows
    };
    sorted(heap) == sorted(mot) && heap.tags == mot.tags
}

fn summary(answer: &Answer) -> String {
    let mut words = match &answer.refusal {
        Some(refusal) => refusal.to_string(),
        None => format!("{} rows", answer.rows.len()),
    };
    for row in answer.rows.iter().take(12) {
        let values: Vec<&str> = row
            .iter()
            .map(|value| value.as_deref().unwrap_or("NULL"))
            .collect();
        words += &format!(" ({})", values.join(", "));
    }
    words
}
