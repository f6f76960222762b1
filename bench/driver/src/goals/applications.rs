//! Goals of sysbench and TPC-C.

use super::{Asked, Judge, Wanted};
use crate::parts::endurance::{self, last_over_first, variation};
use crate::parts::{sysbench, tpcc};
use crate::record::{Figure, Place, quantity};
use crate::side::Side;
use ::tpcc::inputs::Kind;
use ::tpcc::terminal::Mode;

/// Seconds of the long run that evenness is asked of.
const EVEN_SECONDS: usize = 600;
/// Seconds of load after which the throughput must still be there, and those that are compared.
const LONG_SECONDS: usize = 3600;
const COMPARED_SECONDS: usize = 300;

impl Judge<'_> {
    /// What MOT is to `peer` in every setting of a work that both were measured in.
    fn in_every_setting(
        &self,
        part: &'static str,
        work: &str,
        peer: Side,
        quantity: &str,
        takes: impl Fn(&str) -> bool,
    ) -> Vec<(String, Figure)> {
        let of_mot = self.record.series.iter().filter(|series| {
            (series.part.as_str(), series.work.as_str()) == (part, work)
                && (series.side, series.quantity.as_str()) == (Side::Mot, quantity)
                && takes(&series.setting)
        });
        of_mot
            .filter_map(|series| {
                let place = Place::new(part, work, &series.setting);
                let ratio = self.record.ratio(&place, Side::Mot, peer, quantity)?;
                Some((series.setting.clone(), ratio))
            })
            .collect()
    }

    pub(super) fn sysbench(&mut self) {
        for test in ["oltp_read_only", "oltp_read_write"] {
            for peer in [Side::Heap, Side::Innodb] {
                let per_second = quantity::PER_SECOND;
                let found = self.in_every_setting(sysbench::PART, test, peer, per_second, |_| true);
                let asked = Asked {
                    part: sysbench::PART,
                    name: &format!("sysbench {test} against {peer}"),
                    wanted: Wanted::MoreThan(1.0),
                    of: &format!("x {peer} at every thread count"),
                };
                self.worst(&asked, &found, || None);
            }
        }
    }

    pub(super) fn tpcc(&mut self) {
        let has_keys = |setting: &str| setting.ends_with(tpcc::FOREIGN_KEYS);
        let is_free =
            |setting: &str| !setting.ends_with(tpcc::EQUAL_LOAD_SUFFIX) && !has_keys(setting);
        let of = |judge: &Self, mode: Mode, quantity: &str| {
            let work = mode.to_string();
            judge.in_every_setting(tpcc::PART, &work, Side::Heap, quantity, is_free)
        };
        for (mode, times) in [(Mode::Procedures, 2.5), (Mode::Interactive, 1.8)] {
            let found = of(self, mode, quantity::PER_SECOND);
            let asked = Asked {
                part: tpcc::PART,
                name: &format!("TPC-C {mode}, synchronous"),
                wanted: Wanted::AtLeast(times),
                of: "x heap",
            };
            self.worst(&asked, &found, || None);
        }
        for (mode, times) in [(Mode::Procedures, 2.0), (Mode::Interactive, 1.7)] {
            let (work, per_second) = (mode.to_string(), quantity::PER_SECOND);
            let found = self.in_every_setting(tpcc::PART, &work, Side::Heap, per_second, has_keys);
            let asked = Asked {
                part: tpcc::PART,
                name: &format!("TPC-C {mode} with foreign keys, synchronous"),
                wanted: Wanted::AtLeast(times),
                of: "x heap",
            };
            self.worst(&asked, &found, || None);
        }
        self.response_times();
        let modes = [Mode::Procedures, Mode::Interactive];
        for (name, quantity, times) in [
            (
                "server CPU per TPC-C transaction",
                quantity::SERVER_CPU,
                0.45,
            ),
            // Page images would flatter: a short run after a checkpoint has more of them than
            // everyday operation.
            (
                "WAL bytes per TPC-C transaction",
                quantity::WAL_RECORD_BYTES,
                0.25,
            ),
        ] {
            let named = |judge: &Self, quantity: &str| -> Vec<(String, Figure)> {
                let all = modes.into_iter().flat_map(|mode| {
                    let found = of(judge, mode, quantity).into_iter();
                    found.map(move |(setting, figure)| (format!("{mode}, {setting}"), figure))
                });
                all.collect()
            };
            let found = named(self, quantity);
            let with_images = named(self, quantity::WAL_BYTES);
            let asked = Asked {
                part: tpcc::PART,
                name,
                wanted: Wanted::AtMost(times),
                of: "x heap",
            };
            self.worst(&asked, &found, || {
                let with_images = with_images
                    .iter()
                    .filter(|_| quantity == quantity::WAL_RECORD_BYTES)
                    .map(|(_, figure)| figure.value)
                    .reduce(f64::max)?;
                Some(format!(
                    "without full-page images; with them at worst {with_images:.2}"
                ))
            });
        }
    }

    /// Nine of ten transactions of each type at equal load.
    fn response_times(&mut self) {
        let at = tpcc::equal_load(self.plan.tpcc_main());
        let mut found = Vec::new();
        for mode in [Mode::Procedures, Mode::Interactive] {
            let place = Place::new(tpcc::PART, mode.to_string(), &at);
            for kind in Kind::ALL {
                let quantity = tpcc::p90(kind);
                if let Some(ratio) = self.record.ratio(&place, Side::Mot, Side::Heap, &quantity) {
                    found.push((format!("{} by {mode}", kind.name()), ratio));
                }
            }
        }
        let asked = Asked {
            part: tpcc::PART,
            name: "TPC-C p90 of every type at equal load",
            wanted: Wanted::AtMost(0.5),
            of: "x heap",
        };
        self.worst(&asked, &found, || None);
    }

    /// How what a second of the servers' processor time gave, and what the machine gave to the
    /// probe beside the long run, changed from its first five minutes to its last.
    fn machine_over_the_hour(&self) -> Option<String> {
        let setting = tpcc::setting(self.plan.tpcc_main());
        let of = |work: &str| {
            let place = Place::new(endurance::PART, work, &setting);
            let curve = self.record.curve(&place, Side::Mot)?;
            let share = last_over_first(&curve.per_second, COMPARED_SECONDS)?;
            Some(format!("{work} {share:.2}"))
        };
        let all: Option<Vec<String>> = endurance::BESIDE.iter().map(|(work, _)| of(work)).collect();
        let all = all?.join(", ");
        // Records of before it was taken are without it.
        let own = of(endurance::PER_CPU_SECOND).map_or(String::new(), |own| format!("{own}; "));
        Some(format!("of {own}the machine, by a probe: {all}"))
    }

    pub(super) fn endurance(&mut self) {
        let place = Place::new(
            endurance::PART,
            endurance::WORK,
            tpcc::setting(self.plan.tpcc_main()),
        );
        let curve = self.record.curve(&place, Side::Mot);
        let curve = curve.map_or(&[][..], |curve| curve.per_second.as_slice());
        let too_short = |wanted: &str| {
            let is_there = !curve.is_empty();
            is_there.then(|| format!("{wanted}; the run had {} s", curve.len()))
        };

        let asked = Asked {
            part: endurance::PART,
            name: "TPC-C after an hour of load",
            wanted: Wanted::AtLeast(1.0),
            of: "x the first five minutes",
        };
        if curve.len() >= LONG_SECONDS {
            let found = last_over_first(curve, COMPARED_SECONDS).map(Figure::single);
            let note = self.machine_over_the_hour();
            self.goal(&asked, found, note);
        } else {
            // The same share of what there is.
            let compared = curve.len() * COMPARED_SECONDS / LONG_SECONDS;
            let seen = (compared > 0)
                .then(|| last_over_first(curve, compared))
                .flatten();
            let note =
                too_short("no verdict: the last twelfth over the first, an hour is asked for");
            self.undecided(&asked, seen, note);
        }

        let asked = Asked {
            part: endurance::PART,
            name: "throughput variation over 10 minutes with checkpoints",
            wanted: Wanted::LessThan(2.0),
            of: "%",
        };
        let seen = variation(&curve[..curve.len().min(EVEN_SECONDS)]).map(|share| share * 100.0);
        if curve.len() >= EVEN_SECONDS {
            self.goal(&asked, seen.map(Figure::single), None);
        } else {
            self.undecided(
                &asked,
                seen,
                too_short("no verdict: ten minutes are asked for"),
            );
        }
    }
}
