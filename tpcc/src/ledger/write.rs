//! Writing a ledger.

use super::Baselines;
use crate::effect::{Delivered, Effect};
use crate::failure::{Failure, Result};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

/// The ledger being written; shared by all terminals.
pub struct LedgerWriter {
    file: Mutex<File>,
}

impl LedgerWriter {
    /// Starts a ledger at `path`.
    pub fn create(
        path: &Path,
        run: &str,
        schema: &str,
        terminals: u32,
        baselines: &Baselines,
    ) -> std::io::Result<Self> {
        let mut text = format!("H {run} {schema} {terminals}\n");
        for ((w, d), baseline) in baselines {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "B {w} {d} {} {}",
                baseline.next_o, baseline.oldest_new_o
            );
        }
        let mut file = File::create(path)?;
        file.write_all(text.as_bytes())?;
        Ok(LedgerWriter {
            file: Mutex::new(file),
        })
    }

    fn append(&self, line: &str) -> Result<()> {
        let mut file = self
            .file
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        file.write_all(line.as_bytes())
            .map_err(|error| Failure::unexpected(format!("ledger: {error}")))
    }

    /// Notes an acknowledged commit. `line` is the caller's buffer.
    pub fn acknowledge(
        &self,
        line: &mut String,
        terminal: u32,
        seq: u64,
        effect: &Effect,
    ) -> Result<()> {
        self.note('A', line, terminal, seq, effect)
    }

    /// Notes a commit whose answer never came.
    pub fn in_flight(
        &self,
        line: &mut String,
        terminal: u32,
        seq: u64,
        effect: &Effect,
    ) -> Result<()> {
        self.note('I', line, terminal, seq, effect)
    }

    fn note(
        &self,
        tag: char,
        line: &mut String,
        terminal: u32,
        seq: u64,
        effect: &Effect,
    ) -> Result<()> {
        line.clear();
        if push_line(line, tag, terminal, seq, effect) {
            self.append(line)?;
        }
        Ok(())
    }

    /// Notes that the terminal ended of its own will after transaction `seq`.
    pub fn end(&self, terminal: u32, seq: u64) -> Result<()> {
        self.append(&format!("E {terminal} {seq}\n"))
    }
}

/// Appends a line for `effect`; false if there is nothing to note.
pub(super) fn push_line(
    line: &mut String,
    tag: char,
    terminal: u32,
    seq: u64,
    effect: &Effect,
) -> bool {
    let _ = write!(line, "{tag} {terminal} {seq} ");
    let _ = match effect {
        Effect::Nothing => return false,
        Effect::NewOrder {
            w,
            d,
            o,
            lines,
            total_cents,
        } => {
            write!(line, "N {w} {d} {o} {lines} {total_cents}")
        }
        Effect::Payment {
            w,
            d,
            c_w,
            c_d,
            c,
            amount_cents,
        } => {
            write!(line, "P {w} {d} {c_w} {c_d} {c} {amount_cents}")
        }
        Effect::Delivery { orders, .. } if orders.is_empty() => return false,
        Effect::Delivery { w, carrier, orders } => {
            let _ = write!(line, "D {w} {carrier} ");
            for (place, Delivered { d, o, amount_cents }) in orders.iter().enumerate() {
                let comma = if place == 0 { "" } else { "," };
                let _ = write!(line, "{comma}{d}:{o}:{amount_cents}");
            }
            Ok(())
        }
    };
    line.push('\n');
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_deliveries_leave_no_line() {
        let mut line = String::new();
        let effect = Effect::Delivery {
            w: 1,
            carrier: 2,
            orders: Vec::new(),
        };
        assert!(!push_line(&mut line, 'A', 0, 1, &effect));
    }
}
