//! The goals, and what the record says of each.
//!
//! Every line of the table of goals is here, once for each of its figures. A goal that the record cannot answer says why.

use crate::parts::endurance::{self, last_over_first, variation};
use crate::parts::statements::{reading, writing};
use crate::parts::{engine, hot_row, ingest, memory, plpgsql, scan, statements, sysbench, tpcc};
use crate::plan::Plan;
use crate::record::{Place, Record, quantity};
use crate::side::Side;
use ::tpcc::inputs::Kind;
use ::tpcc::terminal::Mode;
use serde::Serialize;

/// A goal and how near it is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Goal {
    pub name: String,
    /// In words.
    pub goal: String,
    pub measured: Option<f64>,
    pub met: Option<bool>,
    /// Why it was not measured, or what to know of the figure.
    pub note: Option<String>,
}

/// Which way is better.
#[derive(Clone, Copy)]
enum Wanted {
    AtLeast(f64),
    MoreThan(f64),
    AtMost(f64),
    LessThan(f64),
}

impl Wanted {
    fn is_met(self, value: f64) -> bool {
        match self {
            Wanted::AtLeast(limit) => value >= limit,
            Wanted::MoreThan(limit) => value > limit,
            Wanted::AtMost(limit) => value <= limit,
            Wanted::LessThan(limit) => value < limit,
        }
    }

    fn words(self, of: &str) -> String {
        let (word, limit) = match self {
            Wanted::AtLeast(limit) => ("at least", limit),
            Wanted::MoreThan(limit) => ("more than", limit),
            Wanted::AtMost(limit) => ("at most", limit),
            Wanted::LessThan(limit) => ("less than", limit),
        };
        format!("{word} {limit} {of}")
    }
}

/// Clients that goals of asynchronous statements speak of.
const CLIENTS: u32 = 8;
/// Clients that goals of synchronous statements speak of.
const CLIENTS_SYNCHRONOUS: u32 = 32;
/// Seconds of the long run that evenness is asked of.
const EVEN_SECONDS: usize = 600;
/// Seconds of load after which the throughput must still be there, and those that are compared.
const LONG_SECONDS: usize = 3600;
const COMPARED_SECONDS: usize = 300;

struct Judge<'a> {
    record: &'a Record,
    plan: &'a Plan,
    goals: Vec<Goal>,
}

/// All goals. `version` is PostgreSQL's major version.
pub(crate) fn judge(record: &Record, plan: &Plan, version: u32) -> Vec<Goal> {
    let mut judge = Judge {
        record,
        plan,
        goals: Vec::new(),
    };
    judge.statements(version);
    judge.loops();
    judge.hot_row();
    judge.sysbench();
    judge.tpcc();
    judge.endurance();
    judge.ingest_and_scan();
    judge.engine();
    judge.memory();
    judge.goals
}

impl Judge<'_> {
    /// Adds a goal; `found` is the figure, or nothing.
    fn goal(
        &mut self,
        part: &str,
        name: &str,
        wanted: Wanted,
        of: &str,
        found: Option<f64>,
        note: Option<String>,
    ) {
        let note = match found {
            Some(_) => note,
            None => Some(note.unwrap_or_else(|| self.why_not(part))),
        };
        self.goals.push(Goal {
            name: name.to_owned(),
            goal: wanted.words(of),
            measured: found,
            met: found.map(|value| wanted.is_met(value)),
            note,
        });
    }

    fn why_not(&self, part: &str) -> String {
        match self.record.parts.get(part) {
            None => format!("part {part} was not run"),
            Some(run) => match &run.failure {
                Some(failure) => format!("part {part} failed: {failure}"),
                None => format!(
                    "not among what part {part} measured in the {} form",
                    run.form
                ),
            },
        }
    }

    fn statements(&mut self, version: u32) {
        let of_floor =
            |record: &Record, work: &str, setting: &str, floor: &str, floor_setting: &str| {
                let floor = Place::new(statements::PART, floor, floor_setting);
                let place = Place::new(statements::PART, work, setting);
                let floor = record.median(&floor, Side::Floor, quantity::PER_SECOND)?;
                Some(record.median(&place, Side::Mot, quantity::PER_SECOND)? / floor)
            };
        let of_heap = |record: &Record, work: &str, setting: &str| {
            let place = Place::new(statements::PART, work, setting);
            record.ratio(&place, Side::Mot, Side::Heap, quantity::PER_SECOND)
        };
        let (read, write) = (reading(CLIENTS), writing(CLIENTS, false));
        let at = Some(format!("{CLIENTS} clients"));
        let record = self.record;
        let found = of_floor(record, "point_select", &read, "select_1", &read);
        self.goal(
            statements::PART,
            "point SELECT, of the floor",
            Wanted::AtLeast(0.92),
            "of SELECT 1",
            found,
            at.clone().filter(|_| found.is_some()),
        );
        let found = of_heap(record, "point_select", &read);
        self.goal(
            statements::PART,
            "point SELECT",
            Wanted::AtLeast(1.2),
            "x heap",
            found,
            at.clone().filter(|_| found.is_some()),
        );
        for (work, times_heap) in [("update", 2.0), ("insert", 1.7)] {
            let title = work.to_uppercase();
            let floor = of_floor(record, work, &write, "select_1", &read);
            let heap = of_heap(record, work, &write);
            let is_new = version >= 17;
            let other = |wanted: &str| {
                Some(format!(
                    "this is PostgreSQL {version}; run with PG={wanted}"
                ))
            };
            let note = |found: Option<f64>| at.clone().filter(|_| found.is_some());
            let (new_floor, new_heap) = if is_new { (floor, heap) } else { (None, None) };
            let why = |found: Option<f64>| if is_new { note(found) } else { other("17") };
            self.goal(
                statements::PART,
                &format!("{title}, asynchronous, 17 or 18, of the floor"),
                Wanted::AtLeast(0.75),
                "of SELECT 1",
                new_floor,
                why(new_floor),
            );
            self.goal(
                statements::PART,
                &format!("{title}, asynchronous, 17 or 18"),
                Wanted::AtLeast(times_heap),
                "x heap",
                new_heap,
                why(new_heap),
            );
            let old_heap = heap.filter(|_| !is_new);
            let near = of_floor(record, work, &write, "xid", &write).map(|of_xid| {
                format!("{CLIENTS} clients; {of_xid:.2} of a statement that only takes an xid, {:.2} of SELECT 1", floor.unwrap_or(f64::NAN))
            });
            let why = if is_new { other("15") } else { near };
            self.goal(
                statements::PART,
                &format!("{title}, asynchronous, 15"),
                Wanted::AtLeast(1.5),
                "x heap",
                old_heap,
                why,
            );
        }
        for work in ["update", "insert"] {
            let found = of_heap(record, work, &writing(CLIENTS_SYNCHRONOUS, true));
            let name = format!(
                "{}, synchronous, {CLIENTS_SYNCHRONOUS} clients",
                work.to_uppercase()
            );
            self.goal(
                statements::PART,
                &name,
                Wanted::AtLeast(1.3),
                "x heap",
                found,
                None,
            );
        }
    }

    fn loops(&mut self) {
        for work in ["update", "select"] {
            let place = Place::new(plpgsql::PART, work, plpgsql::SETTING);
            let found = self
                .record
                .median(&place, Side::Mot, quantity::MICROSECONDS);
            let heap = self
                .record
                .median(&place, Side::Heap, quantity::MICROSECONDS);
            let note = heap.map(|heap| format!("heap {heap:.2} µs"));
            let name = format!("{} in a PL/pgSQL loop", work.to_uppercase());
            self.goal(plpgsql::PART, &name, Wanted::AtMost(0.6), "µs", found, note);
        }
    }

    fn hot_row(&mut self) {
        let place = Place::new(
            hot_row::PART,
            hot_row::WORK,
            writing(hot_row::CLIENTS, false),
        );
        let found = self
            .record
            .ratio(&place, Side::Mot, Side::Heap, quantity::PER_SECOND);
        self.goal(
            hot_row::PART,
            "one hot row, 8 clients, asynchronous UPDATE",
            Wanted::AtLeast(1.5),
            "x heap",
            found,
            None,
        );
    }

    fn sysbench(&mut self) {
        for test in ["oltp_read_only", "oltp_read_write"] {
            for peer in [Side::Heap, Side::Innodb] {
                let ratios: Vec<(u32, f64)> = self
                    .plan
                    .sysbench_threads
                    .iter()
                    .filter_map(|&threads| {
                        let place =
                            Place::new(sysbench::PART, test, sysbench::threads_setting(threads));
                        Some((
                            threads,
                            self.record
                                .ratio(&place, Side::Mot, peer, quantity::PER_SECOND)?,
                        ))
                    })
                    .collect();
                let least = ratios.iter().min_by(|a, b| a.1.total_cmp(&b.1));
                let note = least.map(|(threads, _)| {
                    let all: Vec<String> = ratios
                        .iter()
                        .map(|(threads, ratio)| format!("{threads}: {ratio:.2}"))
                        .collect();
                    format!("the least, at {threads} threads ({})", all.join(", "))
                });
                let found = least.map(|(_, ratio)| *ratio);
                self.goal(
                    sysbench::PART,
                    &format!("sysbench {test} against {peer}"),
                    Wanted::MoreThan(1.0),
                    &format!("x {peer} at every thread count"),
                    found,
                    note,
                );
            }
        }
    }

    fn tpcc(&mut self) {
        let at = self.plan.tpcc_main();
        let record = self.record;
        let place = |mode: Mode| Place::new(tpcc::PART, mode.to_string(), tpcc::setting(at));
        for (mode, times) in [(Mode::Procedures, 2.5), (Mode::Interactive, 1.8)] {
            let found = record.ratio(&place(mode), Side::Mot, Side::Heap, quantity::PER_SECOND);
            self.goal(
                tpcc::PART,
                &format!("TPC-C {mode}, synchronous"),
                Wanted::AtLeast(times),
                "x heap",
                found,
                None,
            );
        }
        let mut worst: Option<(f64, String)> = None;
        for mode in [Mode::Procedures, Mode::Interactive] {
            for kind in Kind::ALL {
                let place = Place::new(tpcc::PART, mode.to_string(), tpcc::equal_load(at));
                let Some(ratio) = record.ratio(&place, Side::Mot, Side::Heap, &tpcc::p90(kind))
                else {
                    continue;
                };
                if worst.as_ref().is_none_or(|(of, _)| ratio > *of) {
                    worst = Some((ratio, format!("the worst type, {} in {mode}", kind.name())));
                }
            }
        }
        let (found, note) = worst.unzip();
        self.goal(
            tpcc::PART,
            "TPC-C p90 of every type at equal load",
            Wanted::AtMost(0.5),
            "x heap",
            found,
            note,
        );
        for (name, quantity, times) in [
            (
                "server CPU per TPC-C transaction",
                quantity::SERVER_CPU,
                0.45,
            ),
            ("WAL bytes per TPC-C transaction", quantity::WAL_BYTES, 0.25),
        ] {
            let of = |mode| record.ratio(&place(mode), Side::Mot, Side::Heap, quantity);
            let (procedures, interactive) = (of(Mode::Procedures), of(Mode::Interactive));
            let found = procedures.into_iter().chain(interactive).reduce(f64::max);
            let note = found.map(|_| {
                let show = |ratio: Option<f64>| {
                    ratio.map_or("not run".to_owned(), |ratio| format!("{ratio:.2}"))
                };
                let mut note = format!(
                    "the worse of procedures {} and interactive {}",
                    show(procedures),
                    show(interactive)
                );
                if quantity == quantity::WAL_BYTES {
                    let without = record.ratio(
                        &place(Mode::Procedures),
                        Side::Mot,
                        Side::Heap,
                        quantity::WAL_RECORD_BYTES,
                    );
                    note += &format!("; procedures without full-page images {}", show(without));
                }
                note
            });
            self.goal(
                tpcc::PART,
                name,
                Wanted::AtMost(times),
                "x heap",
                found,
                note,
            );
        }
    }

    fn endurance(&mut self) {
        let place = Place::new(
            endurance::PART,
            endurance::WORK,
            tpcc::setting(self.plan.tpcc_main()),
        );
        let curve = self
            .record
            .curve(&place, Side::Mot)
            .map(|curve| curve.per_second.as_slice());
        let long = curve.filter(|curve| curve.len() >= LONG_SECONDS);
        let found = long.and_then(|curve| last_over_first(curve, COMPARED_SECONDS));
        let short = |what: &str| {
            curve.map(|curve| {
                format!(
                    "needs {what}; the {} form ran {} s",
                    self.plan.form,
                    curve.len()
                )
            })
        };
        let note = if found.is_some() {
            None
        } else {
            short("an hour of load")
        };
        self.goal(
            endurance::PART,
            "TPC-C after an hour of load",
            Wanted::AtLeast(1.0),
            "x the first five minutes",
            found,
            note,
        );
        let even = curve.filter(|curve| curve.len() >= EVEN_SECONDS);
        let found = even
            .and_then(|curve| variation(&curve[..EVEN_SECONDS]))
            .map(|share| share * 100.0);
        let note = match found {
            Some(_) => None,
            None => short("ten minutes").map(|short| {
                let seen = curve.and_then(variation);
                let seen = seen.map_or(String::new(), |share| {
                    format!(", with a variation of {:.1} %", share * 100.0)
                });
                short + &seen
            }),
        };
        self.goal(
            endurance::PART,
            "throughput variation over 10 minutes with checkpoints",
            Wanted::LessThan(2.0),
            "%",
            found,
            note,
        );
    }

    fn ingest_and_scan(&mut self) {
        let record = self.record;
        let place = Place::new(ingest::PART, ingest::COPY, ingest::COPY_SETTING);
        let found = record.ratio(&place, Side::Mot, Side::Heap, quantity::ROWS_PER_SECOND);
        let rows = record.median(&place, Side::Mot, quantity::ROWS_PER_SECOND);
        let note = rows.map(|rows| format!("{rows:.0} rows/s"));
        self.goal(
            ingest::PART,
            "COPY of 200-byte rows, 3 indexes",
            Wanted::AtLeast(2.0),
            "x heap",
            found,
            note,
        );
        let best = self
            .plan
            .ingest_clients
            .iter()
            .filter_map(|&clients| {
                let place = Place::new(ingest::PART, ingest::TEN_ROWS, writing(clients, false));
                Some((
                    clients,
                    record.median(&place, Side::Mot, quantity::ROWS_PER_SECOND)?,
                ))
            })
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let note = best.map(|(clients, _)| format!("{clients} clients, asynchronous"));
        let found = best.map(|(_, rows)| rows);
        self.goal(
            ingest::PART,
            "inserts of ten 200-byte rows, 3 indexes",
            Wanted::AtLeast(200_000.0),
            "rows/s",
            found,
            note,
        );
        let one = Place::new(scan::PART, scan::FILTER, scan::ONE_PROCESS);
        let parallel = Place::new(scan::PART, scan::FILTER, scan::PARALLEL);
        let faster =
            |place: &Place| record.ratio(place, Side::Heap, Side::Mot, quantity::MILLISECONDS);
        let found = faster(&one);
        let note = faster(&parallel).map(|ratio| {
            format!("one process each; {ratio:.2} where heap tables may use parallel workers")
        });
        self.goal(
            scan::PART,
            "full scan with filter",
            Wanted::AtLeast(1.5),
            "x heap",
            found,
            note,
        );
    }

    fn engine(&mut self) {
        for (work, times) in [("get", 1.2), ("insert", 1.2), ("scan of 100", 3.0)] {
            let mut worst: Option<(f64, String)> = None;
            for series in &self.record.series {
                if series.part != engine::PART || series.work != work || series.side != Side::Mot {
                    continue;
                }
                let place = Place::new(engine::PART, work, &series.setting);
                let Some(ratio) =
                    self.record
                        .ratio(&place, Side::Masstree, Side::Mot, quantity::NANOSECONDS)
                else {
                    continue;
                };
                if worst.as_ref().is_none_or(|(of, _)| ratio < *of) {
                    worst = Some((ratio, format!("the worst kind of keys, {}", series.setting)));
                }
            }
            let (found, note) = worst.unzip();
            self.goal(
                engine::PART,
                &format!("index alone: {work}"),
                Wanted::AtLeast(times),
                "x masstree",
                found,
                note,
            );
        }
        let place = Place::new(engine::PART, engine::TPCC, engine::TPCC_SETTING);
        let found = self.record.median(&place, Side::Mot, quantity::PER_SECOND);
        self.goal(
            engine::PART,
            "engine TPC-C without SQL",
            Wanted::AtLeast(60_000.0),
            "transactions/s per core",
            found,
            None,
        );
    }

    fn memory(&mut self) {
        for (work, wanted) in [(memory::ROW_OVERHEAD, 24.0), (memory::ENTRY, 20.0)] {
            let place = Place::new(memory::PART, work, memory::SETTING);
            let found = self.record.median(&place, Side::Mot, quantity::BYTES);
            let heap = self.record.median(&place, Side::Heap, quantity::BYTES);
            let note = heap.map(|heap| format!("heap {heap:.1} bytes"));
            self.goal(
                memory::PART,
                &format!("memory: {work}"),
                Wanted::AtMost(wanted),
                "bytes",
                found,
                note,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Form;

    #[test]
    fn nothing_measured_gives_every_goal_with_a_reason() {
        let goals = judge(&Record::default(), &Plan::new(Form::Quick), 15);
        assert!(goals.len() >= 30, "{}", goals.len());
        for goal in &goals {
            assert_eq!((goal.measured, goal.met), (None, None), "{}", goal.name);
            assert!(
                goal.note.as_ref().is_some_and(|note| !note.is_empty()),
                "{}",
                goal.name
            );
        }
    }

    #[test]
    fn a_goal_is_met_on_its_own_side_of_the_limit() {
        let mut record = Record::default();
        let place = Place::new(statements::PART, "point_select", reading(CLIENTS));
        record.add(&place, Side::Mot, quantity::PER_SECOND, 120.0);
        record.add(&place, Side::Heap, quantity::PER_SECOND, 100.0);
        let loops = Place::new(plpgsql::PART, "update", plpgsql::SETTING);
        record.add(&loops, Side::Mot, quantity::MICROSECONDS, 0.7);
        let goals = judge(&record, &Plan::new(Form::Quick), 15);
        let found = |name: &str| goals.iter().find(|goal| goal.name == name).unwrap().clone();
        let select = found("point SELECT");
        assert_eq!((select.measured, select.met), (Some(1.2), Some(true)));
        assert_eq!(found("UPDATE in a PL/pgSQL loop").met, Some(false));
        assert_eq!(found("point SELECT, of the floor").met, None);
    }

    #[test]
    fn goals_of_another_version_are_not_judged() {
        let mut record = Record::default();
        let place = Place::new(statements::PART, "update", writing(CLIENTS, false));
        record.add(&place, Side::Mot, quantity::PER_SECOND, 160.0);
        record.add(&place, Side::Heap, quantity::PER_SECOND, 100.0);
        let of = |version| {
            let goals = judge(&record, &Plan::new(Form::Quick), version);
            let met = |name: &str| goals.iter().find(|goal| goal.name == name).unwrap().met;
            (
                met("UPDATE, asynchronous, 15"),
                met("UPDATE, asynchronous, 17 or 18"),
            )
        };
        assert_eq!(of(15), (Some(true), None));
        assert_eq!(of(18), (None, Some(false)));
    }
}
