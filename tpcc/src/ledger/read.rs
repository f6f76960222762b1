//! Reading a ledger back.

use super::{Baseline, Baselines};
use crate::effect::{Delivered, Effect};
use crate::failure::{Failure, Result};
use std::collections::BTreeMap;
use std::path::Path;

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
    use super::super::write::push_line;
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
}
