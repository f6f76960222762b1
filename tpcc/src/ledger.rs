//! The ledger: what the client was told is durable, kept outside the server.
//!
//! A text file, one line per event, written by the driver after the server's answer:
//!
//! ```text
//! H run schema terminals              header
//! B w d next_o oldest_new_o           a district before the run; no undelivered order: next_o
//! A terminal seq <effect>             acknowledged: the COMMIT was answered
//! I terminal seq <effect>             in flight: the connection was lost after COMMIT was sent
//! E terminal seq                      the terminal ended; it started nothing after seq
//! ```
//!
//! An effect is `N w d o lines total_cents`, `P w d c_w c_d c amount_cents` or
//! `D w carrier d:o:amount_cents,...`. Sequence numbers count a terminal's transactions from 1; a
//! payment's row in `bmsql_history` starts with `run:terminal:seq`, so that each is found exactly.
//!
//! Invariant: a line is handed to the kernel in one `write` before the terminal goes on, so the file
//! is complete even if the driver is killed; only the machine's own power failure could cut it, and
//! that would take the server's word with it.

use crate::effect::{Delivered, Effect};
use crate::failure::{Failure, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

/// Characters of a run's name: with terminal and sequence number it must leave room in `h_data`.
const RUN_NAME_CHARS: usize = 6;

/// A name for a run, different for each, out of a number.
pub fn run_name(number: u64) -> String {
    let mut rest = number;
    let digit = |rest: &mut u64| {
        let digit = (*rest % 36) as u32;
        *rest /= 36;
        char::from_digit(digit, 36).unwrap_or('0')
    };
    (0..RUN_NAME_CHARS).map(|_| digit(&mut rest)).collect()
}

/// One district before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// The number the next order gets.
    pub next_o: i32,
    /// The oldest undelivered order; `next_o` if there is none.
    pub oldest_new_o: i32,
}

/// Baselines by (warehouse, district).
pub type Baselines = BTreeMap<(i32, i32), Baseline>;

/// Reads every district's baseline.
pub fn read_baselines(client: &mut postgres::Client) -> Result<Baselines> {
    let query = "SELECT d_w_id, d_id, d_next_o_id, coalesce(oldest, d_next_o_id) \
         FROM bmsql_district LEFT JOIN (SELECT no_w_id, no_d_id, min(no_o_id) AS oldest \
             FROM bmsql_new_order GROUP BY no_w_id, no_d_id) AS undelivered \
         ON no_w_id = d_w_id AND no_d_id = d_id";
    let rows = client
        .query(query, &[])
        .map_err(|error| Failure::unexpected(format!("reading the districts: {error:?}")))?;
    let entry = |row: postgres::Row| {
        let baseline = Baseline {
            next_o: row.get(2),
            oldest_new_o: row.get(3),
        };
        ((row.get(0), row.get(1)), baseline)
    };
    Ok(rows.into_iter().map(entry).collect())
}

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
fn push_line(line: &mut String, tag: char, terminal: u32, seq: u64, effect: &Effect) -> bool {
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

/// A noted transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who ran it.
    pub terminal: u32,
    /// The terminal's count.
    pub seq: u64,
    /// What it changed.
    pub effect: Effect,
}

/// A ledger read back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The run's name.
    pub run: String,
    /// The PostgreSQL schema of the tables.
    pub schema: String,
    /// Number of terminals.
    pub terminals: u32,
    /// Districts before the run.
    pub baselines: Baselines,
    /// What was acknowledged.
    pub acknowledged: Vec<Entry>,
    /// What was in flight when its connection was lost.
    pub in_flight: Vec<Entry>,
    /// Terminals that ended of their own will, with their last sequence number.
    pub ended: BTreeMap<u32, u64>,
}

impl Ledger {
    /// Reads the file at `path`. A last line without its newline, cut by the driver's own death, is
    /// an unacknowledged one and is left out.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::unexpected(format!("{}: {error}", path.display())))?;
        Self::parse(&text)
    }

    /// Reads a ledger's text.
    pub fn parse(text: &str) -> Result<Self> {
        let mut ledger = Ledger::default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for (place, line) in whole.lines().enumerate() {
            ledger.take(line).ok_or_else(|| {
                Failure::unexpected(format!("ledger line {}: \"{line}\"", place + 1))
            })?;
        }
        if ledger.run.is_empty() {
            return Err(Failure::unexpected("the ledger has no header"));
        }
        Ok(ledger)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        match words.next()? {
            "H" => {
                self.run = words.next()?.to_owned();
                self.schema = words.next()?.to_owned();
                self.terminals = words.next()?.parse().ok()?;
            }
            "B" => {
                let [w, d, next_o, oldest_new_o] = numbers(&mut words)?;
                self.baselines.insert(
                    (w, d),
                    Baseline {
                        next_o,
                        oldest_new_o,
                    },
                );
            }
            tag @ ("A" | "I") => {
                let terminal = words.next()?.parse().ok()?;
                let seq = words.next()?.parse().ok()?;
                let effect = parse_effect(&mut words)?;
                let entries = if tag == "A" {
                    &mut self.acknowledged
                } else {
                    &mut self.in_flight
                };
                entries.push(Entry {
                    terminal,
                    seq,
                    effect,
                });
            }
            "E" => {
                self.ended
                    .insert(words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            }
            _ => return None,
        }
        words.next().is_none().then_some(())
    }

    /// Terminals of which nothing says how they ended: the driver itself was killed. Each may have
    /// one unknown transaction in flight.
    pub fn silent_terminals(&self) -> usize {
        let told = |terminal: &u32| {
            self.ended.contains_key(terminal)
                || self
                    .in_flight
                    .iter()
                    .any(|entry| entry.terminal == *terminal)
        };
        (0..self.terminals)
            .filter(|terminal| !told(terminal))
            .count()
    }
}

fn numbers<const N: usize>(words: &mut std::str::Split<'_, char>) -> Option<[i32; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    Some(numbers)
}

fn parse_effect(words: &mut std::str::Split<'_, char>) -> Option<Effect> {
    match words.next()? {
        "N" => {
            let [w, d, o, lines] = numbers(words)?;
            Some(Effect::NewOrder {
                w,
                d,
                o,
                lines,
                total_cents: words.next()?.parse().ok()?,
            })
        }
        "P" => {
            let [w, d, c_w, c_d, c] = numbers(words)?;
            let amount_cents = words.next()?.parse().ok()?;
            Some(Effect::Payment {
                w,
                d,
                c_w,
                c_d,
                c,
                amount_cents,
            })
        }
        "D" => {
            let [w, carrier] = numbers(words)?;
            let orders = words
                .next()?
                .split(',')
                .map(parse_delivered)
                .collect::<Option<_>>()?;
            Some(Effect::Delivery { w, carrier, orders })
        }
        _ => None,
    }
}

fn parse_delivered(text: &str) -> Option<Delivered> {
    let mut parts = text.split(':');
    let delivered = Delivered {
        d: parts.next()?.parse().ok()?,
        o: parts.next()?.parse().ok()?,
        amount_cents: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(delivered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn effects() -> impl Strategy<Value = Effect> {
        let delivered = (1..=10i32, 1..9999i32, 0..9_999_999i64)
            .prop_map(|(d, o, amount_cents)| Delivered { d, o, amount_cents });
        prop_oneof![
            (1..99i32, 1..=10i32, 1..9999i32, 5..=15i32, 0..99_999_999i64).prop_map(
                |(w, d, o, lines, total_cents)| Effect::NewOrder {
                    w,
                    d,
                    o,
                    lines,
                    total_cents
                }
            ),
            (
                1..99i32,
                1..=10i32,
                1..99i32,
                1..=10i32,
                1..3000i32,
                1..500_000i64
            )
                .prop_map(|(w, d, c_w, c_d, c, amount_cents)| {
                    Effect::Payment {
                        w,
                        d,
                        c_w,
                        c_d,
                        c,
                        amount_cents,
                    }
                }),
            (
                1..99i32,
                1..=10i32,
                proptest::collection::vec(delivered, 1..10)
            )
                .prop_map(|(w, carrier, orders)| Effect::Delivery {
                    w,
                    carrier,
                    orders
                }),
        ]
    }

    proptest! {
        #[test]
        fn lines_are_read_back(entries in proptest::collection::vec(
            (0..50u32, 1..1_000_000u64, any::<bool>(), effects()), 0..20)) {
            let mut text = "H abc tpcc_mot 50\nB 1 2 3001 2101\n".to_owned();
            for (terminal, seq, acknowledged, effect) in &entries {
                let tag = if *acknowledged { 'A' } else { 'I' };
                prop_assert!(push_line(&mut text, tag, *terminal, *seq, effect));
            }
            let ledger = Ledger::parse(&text).unwrap();
            let expected = |wanted: bool| -> Vec<Entry> {
                let kept = entries.iter().filter(|entry| entry.2 == wanted).cloned();
                kept.map(|(terminal, seq, _, effect)| Entry { terminal, seq, effect }).collect()
            };
            prop_assert_eq!(ledger.acknowledged, expected(true));
            prop_assert_eq!(ledger.in_flight, expected(false));
            prop_assert_eq!(ledger.baselines[&(1, 2)], Baseline { next_o: 3001, oldest_new_o: 2101 });
        }
    }

    #[test]
    fn a_cut_last_line_is_left_out() {
        let ledger = Ledger::parse("H r s 2\nA 0 1 P 1 1 1 1 7 100\nA 0 2 P 1 1 1 1 7 10").unwrap();
        assert_eq!(ledger.acknowledged.len(), 1);
        assert_eq!(ledger.silent_terminals(), 2);
    }

    #[test]
    fn odd_lines_are_refused() {
        assert!(Ledger::parse("H r s 2\nX 1 2\n").is_err());
        assert!(Ledger::parse("H r s 2\nA 0 1 P 1 1 1 1 7 100 9\n").is_err());
        assert!(Ledger::parse("A 0 1 P 1 1 1 1 7 100\n").is_err());
    }

    #[test]
    fn ends_and_flights_explain_a_terminal() {
        let text = "H r s 3\nE 0 12\nI 1 4 P 1 1 1 1 7 100\n";
        assert_eq!(Ledger::parse(text).unwrap().silent_terminals(), 1);
    }

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

    #[test]
    fn run_names_leave_room_in_h_data() {
        let name = run_name(u64::MAX);
        assert_eq!(name.len(), RUN_NAME_CHARS);
        assert!(format!("{name}:{}:{}", 999, 9_999_999).len() <= crate::effect::MAX_TAG_BYTES);
    }
}
