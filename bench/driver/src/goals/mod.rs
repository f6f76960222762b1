//! The goals, and what the record says of each.
//!
//! Every line of the table of goals is here, once for each of its figures: [`statements`] judges
//! single statements, [`applications`] sysbench and TPC-C, [`tables`] statements of many rows and
//! foreign keys, [`storage`] ingest, scans and memory, [`engine`] what runs without SQL. A goal
//! that the record cannot answer says why; one that a run was too short for has the figure that was
//! seen and no verdict.

mod applications;
mod engine;
mod statements;
mod storage;
mod tables;

use crate::plan::Plan;
use crate::record::{Figure, Record};
use serde::Serialize;

/// A goal and how near it is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Goal {
    pub name: String,
    /// In words.
    pub goal: String,
    pub measured: Option<f64>,
    /// Half the distance of the extremes of all rounds, relative to `measured`; of figures that
    /// have rounds.
    pub spread: Option<f64>,
    /// Nothing if nothing was measured, or by a run too short to tell.
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

    /// Whether of two figures the first is the worse one.
    fn is_worse(self, value: f64, than: f64) -> bool {
        match self {
            Wanted::AtLeast(_) | Wanted::MoreThan(_) => value < than,
            Wanted::AtMost(_) | Wanted::LessThan(_) => value > than,
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

/// A goal as the table of goals has it.
struct Asked<'a> {
    part: &'a str,
    name: &'a str,
    wanted: Wanted,
    /// What the figure is a figure of.
    of: &'a str,
}

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
    judge.tables();
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
    fn goal(&mut self, asked: &Asked<'_>, found: Option<Figure>, note: Option<String>) {
        let note = match found {
            Some(_) => note,
            None => Some(note.unwrap_or_else(|| self.why_not(asked.part))),
        };
        self.goals.push(Goal {
            name: asked.name.to_owned(),
            goal: asked.wanted.words(asked.of),
            measured: found.map(|figure| figure.value),
            spread: found.and_then(|figure| figure.spread),
            met: found.map(|figure| asked.wanted.is_met(figure.value)),
            note,
        });
    }

    /// Adds a goal that takes the worst of several figures, each with a name; the note has that
    /// one's.
    fn worst(
        &mut self,
        asked: &Asked<'_>,
        found: &[(String, Figure)],
        further: impl FnOnce() -> Option<String>,
    ) {
        let worst = found.iter().reduce(|worst, next| {
            if asked.wanted.is_worse(next.1.value, worst.1.value) {
                next
            } else {
                worst
            }
        });
        let note = worst.map(|(name, _)| {
            let note = match found.len() {
                1 => name.clone(),
                several => format!("{name}, the worst of {several}"),
            };
            further().map_or(note.clone(), |more| format!("{note}; {more}"))
        });
        self.goal(asked, worst.map(|(_, figure)| *figure), note);
    }

    /// Adds a goal that the run was too short for: what it saw, and no verdict.
    fn undecided(&mut self, asked: &Asked<'_>, seen: Option<f64>, note: Option<String>) {
        let note = note.unwrap_or_else(|| self.why_not(asked.part));
        self.goals.push(Goal {
            name: asked.name.to_owned(),
            goal: asked.wanted.words(asked.of),
            measured: seen,
            spread: None,
            met: None,
            note: Some(note),
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
}

#[cfg(test)]
mod tests {
    use super::statements::CLIENTS;
    use super::*;
    use crate::parts::statements::{reading, writing};
    use crate::parts::{endurance, plpgsql, statements as part, sysbench, tpcc};
    use crate::plan::Form;
    use crate::record::{Place, quantity};
    use crate::side::Side;

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
        let place = Place::new(part::PART, "point_select", reading(CLIENTS));
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
        let place = Place::new(part::PART, "update", writing(CLIENTS, false));
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

    #[test]
    fn the_worst_thread_count_decides_and_is_named() {
        let mut record = Record::default();
        for (threads, mot) in [(1, 300.0), (16, 150.0)] {
            let place = Place::new(
                sysbench::PART,
                "oltp_read_only",
                sysbench::threads_setting(threads),
            );
            for (side, value) in [(Side::Mot, mot), (Side::Heap, 100.0)] {
                record.add(&place, side, quantity::PER_SECOND, value);
            }
        }
        let goals = judge(&record, &Plan::new(Form::Quick), 15);
        let goal = goals
            .iter()
            .find(|goal| goal.name == "sysbench oltp_read_only against heap")
            .unwrap();
        assert_eq!((goal.measured, goal.met), (Some(1.5), Some(true)));
        assert_eq!(goal.note.as_deref(), Some("16 threads, the worst of 2"));
    }

    #[test]
    fn a_long_run_that_was_short_gets_no_verdict() {
        let plan = Plan::new(Form::Quick);
        let of = |seconds: usize| {
            let mut record = Record::default();
            let place = Place::new(
                endurance::PART,
                endurance::WORK,
                tpcc::setting(plan.tpcc_main()),
            );
            record.add_curve(&place, Side::Mot, vec![1000; seconds]);
            let goals = judge(&record, &plan, 15);
            let all = goals.into_iter();
            all.filter(|goal| {
                goal.name.starts_with("TPC-C after an hour") || goal.name.contains("variation")
            })
            .map(|goal| (goal.measured, goal.met))
            .collect::<Vec<_>>()
        };
        assert_eq!(of(120), [(Some(1.0), None), (Some(0.0), None)]);
        assert_eq!(of(600), [(Some(1.0), None), (Some(0.0), Some(true))]);
        assert_eq!(of(3600), [(Some(1.0), Some(true)), (Some(0.0), Some(true))]);
    }
}
