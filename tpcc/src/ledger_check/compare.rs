//! Plain data against plain data: every noted transaction is looked for, then everything found is
//! asked for its explanation.

use super::{Found, Verdict};
use crate::effect::Effect;
use crate::ledger::{Entry, Ledger};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The comparison.
pub fn compare(ledger: &Ledger, found: &Found) -> Verdict {
    let mut comparison = Comparison {
        ledger,
        found,
        verdict: Verdict {
            acknowledged: ledger.acknowledged.len(),
            ..Verdict::default()
        },
        known_orders: HashSet::new(),
        known_deliveries: HashSet::new(),
        known_payments: HashSet::new(),
        payments: HashMap::new(),
    };
    comparison.index_payments();
    for entry in &ledger.acknowledged {
        let outcome = comparison.find(entry);
        // Complained of once: what is left of a damaged transaction is not an extra as well.
        comparison.explain(entry);
        if let Err(complaint) = outcome {
            let (terminal, seq) = (entry.terminal, entry.seq);
            comparison
                .verdict
                .lost
                .push(format!("terminal {terminal} seq {seq}: {complaint}"));
        }
    }
    for entry in &ledger.in_flight {
        match comparison.find(entry) {
            Ok(()) => {
                comparison.explain(entry);
                comparison.verdict.in_flight_kept += 1;
            }
            Err(_) => comparison.verdict.in_flight_gone += 1,
        }
    }
    comparison.look_for_extras();
    comparison.verdict
}

struct Comparison<'a> {
    ledger: &'a Ledger,
    found: &'a Found,
    verdict: Verdict,
    /// What the ledger explains, acknowledged or in flight.
    known_orders: HashSet<(i32, i32, i32)>,
    known_deliveries: HashSet<(i32, i32, i32)>,
    known_payments: HashSet<(u32, u64)>,
    payments: HashMap<(u32, u64), &'a Effect>,
}

type Complaint = std::result::Result<(), String>;

impl Comparison<'_> {
    fn index_payments(&mut self) {
        for payment in &self.found.payments {
            if self.payments.insert(payment.key, &payment.effect).is_some() {
                let (terminal, seq) = payment.key;
                self.verdict
                    .extra
                    .push(format!("payment {terminal}:{seq} is there twice"));
            }
        }
    }

    /// Looks for one noted transaction's effect, whole and unchanged.
    fn find(&self, entry: &Entry) -> Complaint {
        match &entry.effect {
            Effect::Nothing => Ok(()),
            Effect::NewOrder {
                w,
                d,
                o,
                lines,
                total_cents,
            } => {
                let key = (*w, *d, *o);
                let order = self.found.orders.get(&key);
                let order = order.ok_or_else(|| format!("new order {key:?} is not there"))?;
                let same = order.lines_said == *lines
                    && order.lines == i64::from(*lines)
                    && order.total_cents == *total_cents;
                same.then_some(()).ok_or_else(|| {
                    format!(
                        "new order {key:?}: {lines} lines, {total_cents} cents; found {order:?}"
                    )
                })
            }
            effect @ Effect::Payment { .. } => {
                let found = self.payments.get(&(entry.terminal, entry.seq));
                let found = found.ok_or_else(|| format!("{effect:?} is not there"))?;
                let same = *found == effect;
                same.then_some(())
                    .ok_or_else(|| format!("{effect:?}; found {found:?}"))
            }
            Effect::Delivery { w, carrier, orders } => orders.iter().try_for_each(|delivered| {
                let key = (*w, delivered.d, delivered.o);
                let order = self.found.orders.get(&key);
                let order = order.ok_or_else(|| format!("delivered order {key:?} is not there"))?;
                let same = order.carrier == Some(*carrier)
                    && !order.is_new
                    && order.lines_delivered == order.lines
                    && order.total_cents == delivered.amount_cents;
                same.then_some(())
                    .ok_or_else(|| format!("order {key:?} delivered by {carrier}; found {order:?}"))
            }),
        }
    }

    /// Notes that what `entry` names in the database has its explanation.
    fn explain(&mut self, entry: &Entry) {
        match &entry.effect {
            Effect::Nothing => {}
            Effect::NewOrder { w, d, o, .. } => {
                self.known_orders.insert((*w, *d, *o));
            }
            Effect::Payment { .. } => {
                self.known_payments.insert((entry.terminal, entry.seq));
            }
            Effect::Delivery { w, orders, .. } => {
                let keys = orders
                    .iter()
                    .map(|delivered| (*w, delivered.d, delivered.o));
                self.known_deliveries.extend(keys);
            }
        }
    }

    /// Everything the run can have made must be explained by the ledger; a terminal of which the
    /// ledger does not say how it ended may have left one transaction more.
    fn look_for_extras(&mut self) {
        let mut extra = Vec::new();
        let mut delivered_by: BTreeMap<(i32, Option<i32>), Vec<String>> = BTreeMap::new();
        for (&(w, d), baseline) in &self.ledger.baselines {
            let Some(now) = self.found.districts.get(&(w, d)) else {
                extra.push(format!("district {w}/{d} is gone"));
                continue;
            };
            for o in baseline.next_o..now.next_o {
                if !self.known_orders.contains(&(w, d, o)) {
                    extra.push(format!("order {:?}", (w, d, o)));
                }
            }
            for o in baseline.oldest_new_o..now.oldest_new_o {
                let key = (w, d, o);
                if !self.known_deliveries.contains(&key) {
                    let carrier = self.found.orders.get(&key).and_then(|order| order.carrier);
                    delivered_by
                        .entry((w, carrier))
                        .or_default()
                        .push(format!("{key:?}"));
                }
            }
        }
        // One delivery touches up to ten districts of a warehouse with one carrier: count it once.
        for ((w, carrier), orders) in delivered_by {
            extra.push(format!(
                "delivery in {w} by {carrier:?} of {}",
                orders.join(" ")
            ));
        }
        // An order beyond d_next_o_id can come from nowhere.
        for &(w, d, o) in self.found.orders.keys() {
            if self
                .found
                .districts
                .get(&(w, d))
                .is_none_or(|now| o >= now.next_o)
            {
                extra.push(format!(
                    "order {:?} is beyond its district's next",
                    (w, d, o)
                ));
            }
        }
        for payment in &self.found.payments {
            if !self.known_payments.contains(&payment.key) {
                extra.push(format!("payment {:?}: {:?}", payment.key, payment.effect));
            }
        }
        let allowed = self.ledger.silent_terminals();
        if extra.len() > allowed {
            self.verdict.extra.append(&mut extra);
        } else {
            self.verdict.in_flight_kept += extra.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FoundOrder, FoundPayment};
    use super::*;
    use crate::ledger::Baseline;

    const LEDGER: &str = "H r s 2\n\
        B 1 1 3001 2101\nB 1 2 3001 2101\n\
        A 0 1 N 1 1 3001 5 12345\n\
        A 0 2 P 1 2 1 2 7 500\n\
        A 1 1 D 1 4 1:2101:100,2:2101:200\n\
        I 1 2 N 1 2 3001 6 777\n\
        E 0 2\n";

    fn order(lines: i32, total_cents: i64, carrier: Option<i32>) -> FoundOrder {
        FoundOrder {
            lines_said: lines,
            lines: lines.into(),
            lines_delivered: if carrier.is_some() { lines.into() } else { 0 },
            total_cents,
            carrier,
            is_new: carrier.is_none(),
        }
    }

    /// The database exactly as the ledger's acknowledged part says.
    fn as_acknowledged() -> Found {
        let mut found = Found::default();
        found.orders.insert((1, 1, 3001), order(5, 12_345, None));
        found.orders.insert((1, 1, 2101), order(7, 100, Some(4)));
        found.orders.insert((1, 2, 2101), order(8, 200, Some(4)));
        let effect = Effect::Payment {
            w: 1,
            d: 2,
            c_w: 1,
            c_d: 2,
            c: 7,
            amount_cents: 500,
        };
        found.payments.push(FoundPayment {
            key: (0, 2),
            effect,
        });
        found.districts.insert(
            (1, 1),
            Baseline {
                next_o: 3002,
                oldest_new_o: 2102,
            },
        );
        found.districts.insert(
            (1, 2),
            Baseline {
                next_o: 3001,
                oldest_new_o: 2102,
            },
        );
        found
    }

    fn verdict(change: impl FnOnce(&mut Found)) -> Verdict {
        let mut found = as_acknowledged();
        change(&mut found);
        compare(&Ledger::parse(LEDGER).unwrap(), &found)
    }

    #[test]
    fn what_was_acknowledged_is_enough() {
        let verdict = verdict(|_| {});
        assert!(verdict.holds(), "{verdict}");
        assert_eq!((verdict.acknowledged, verdict.in_flight_gone), (3, 1));
    }

    #[test]
    fn a_commit_in_flight_may_have_happened() {
        let verdict = verdict(|found| {
            found.orders.insert((1, 2, 3001), order(6, 777, None));
            found.districts.insert(
                (1, 2),
                Baseline {
                    next_o: 3002,
                    oldest_new_o: 2102,
                },
            );
        });
        assert!(verdict.holds(), "{verdict}");
        assert_eq!((verdict.in_flight_kept, verdict.in_flight_gone), (1, 0));
    }

    #[test]
    fn losses_are_seen() {
        let lost = |change: fn(&mut Found)| {
            let verdict = verdict(change);
            assert_eq!(
                (verdict.lost.len(), verdict.extra.len()),
                (1, 0),
                "{verdict}"
            );
        };
        lost(|found| {
            found.orders.remove(&(1, 1, 3001));
            found.districts.insert(
                (1, 1),
                Baseline {
                    next_o: 3001,
                    oldest_new_o: 2102,
                },
            );
        });
        lost(|found| {
            found.orders.remove(&(1, 1, 3001));
        });
        lost(|found| found.orders.get_mut(&(1, 1, 3001)).unwrap().lines = 4);
        lost(|found| found.orders.get_mut(&(1, 1, 3001)).unwrap().total_cents = 1);
        lost(|found| found.payments.clear());
    }

    #[test]
    fn a_lost_delivery_is_seen() {
        let verdict = verdict(|found| {
            found.orders.insert((1, 2, 2101), order(8, 200, None));
            found.districts.insert(
                (1, 2),
                Baseline {
                    next_o: 3001,
                    oldest_new_o: 2101,
                },
            );
        });
        assert_eq!(verdict.lost.len(), 1, "{verdict}");
    }

    #[test]
    fn extras_are_seen() {
        let extra = |change: fn(&mut Found)| {
            let verdict = verdict(change);
            assert_eq!(
                (verdict.lost.len(), verdict.extra.len()),
                (0, 1),
                "{verdict}"
            );
        };
        extra(|found| {
            found.orders.insert((1, 1, 3002), order(5, 1, None));
            found.districts.insert(
                (1, 1),
                Baseline {
                    next_o: 3003,
                    oldest_new_o: 2102,
                },
            );
        });
        extra(|found| {
            let effect = found.payments[0].effect.clone();
            found.payments.push(FoundPayment {
                key: (0, 3),
                effect,
            });
        });
        extra(|found| {
            found.orders.insert((1, 1, 2102), order(5, 1, Some(9)));
            found.districts.insert(
                (1, 1),
                Baseline {
                    next_o: 3002,
                    oldest_new_o: 2103,
                },
            );
        });
        // The order in flight, but with other lines than those that were in flight.
        extra(|found| {
            found.orders.insert((1, 2, 3001), order(6, 778, None));
            found.districts.insert(
                (1, 2),
                Baseline {
                    next_o: 3002,
                    oldest_new_o: 2102,
                },
            );
        });
    }

    #[test]
    fn a_silent_terminal_may_leave_one() {
        let text = LEDGER.replace("E 0 2\n", "");
        let mut found = as_acknowledged();
        let effect = found.payments[0].effect.clone();
        found.payments.push(FoundPayment {
            key: (0, 3),
            effect: effect.clone(),
        });
        let ledger = Ledger::parse(&text).unwrap();
        assert!(compare(&ledger, &found).holds());
        found.payments.push(FoundPayment {
            key: (0, 4),
            effect,
        });
        assert_eq!(compare(&ledger, &found).extra.len(), 2);
    }
}
