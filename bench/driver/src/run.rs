//! A whole run: the parts that were asked for, one after another, and the files.

use crate::charts;
use crate::cli::Cli;
use crate::goals::{Goal, judge};
use crate::machine::{Machine, seconds_since_1970};
use crate::parts::{Bench, PARTS, Part};
use crate::plan::Plan;
use crate::record::{PartRun, Record};
use crate::report;
use crate::rig::Rig;
use crate::stop::{self, Deadline};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;
use tpcc::failure::{Failure, Result};

/// The file with everything in it.
const LATEST: &str = "results/latest.json";

/// What the file holds.
#[derive(Serialize)]
pub(crate) struct Latest<'a> {
    pub machine: &'a Machine,
    pub goals: Vec<Goal>,
    #[serde(flatten)]
    pub record: &'a Record,
}

/// What is read back of it: goals follow from the rest.
#[derive(Deserialize)]
struct Kept {
    #[serde(flatten)]
    record: Record,
}

/// Works to measure by part; a part with none is measured whole.
type Selection = BTreeMap<String, Vec<String>>;

/// Measures what `cli` asks for; the parts that did not come to their end, and why.
pub(crate) fn run(cli: &Cli) -> Result<Vec<(&'static str, String)>> {
    let selection = selection(&cli.only)?;
    std::fs::create_dir_all(cli.out.join("results")).map_err(|error| at(&cli.out, &error))?;
    let plan = Plan::new(cli.form());
    let mut record = if cli.only.is_empty() {
        Record::default()
    } else {
        kept(&cli.out.join(LATEST))?
    };
    let mut rig = Rig::new(plan.clone(), cli.bindir.as_deref(), &cli.settings)?;
    let machine = Machine::look(&rig)?;
    eprintln!(
        "bench: {} form on {}, {} cores",
        plan.form, machine.cpu, machine.cores
    );
    let begin = Instant::now();
    let mut failed = Vec::new();
    for part in &PARTS {
        let Some(works) = selection.get(part.name) else {
            continue;
        };
        if works.is_empty() {
            record.forget(part.name);
        }
        eprintln!(
            "bench: part {} (at {:.0} s)",
            part.name,
            begin.elapsed().as_secs_f64()
        );
        let run = one(part, works, &mut rig, &mut record, &machine);
        if let Some(failure) = &run.failure {
            eprintln!(
                "bench: part {} failed: {failure}\n{}",
                part.name,
                rig.cluster.log_tail()
            );
            failed.push((part.name, failure.clone()));
        }
        record.parts.insert(part.name.to_owned(), run);
        // After each part: a long run that is stopped has told what it knows.
        write(&cli.out, &machine, &record, &plan)?;
    }
    let goals = judge(&record, &plan, machine.version);
    println!("{}", report::goals_as_text(&goals));
    println!(
        "measured in {:.0} s; written to {}",
        begin.elapsed().as_secs_f64(),
        cli.out.join("RESULTS.md").display()
    );
    Ok(failed)
}

/// One part, to its end or to its failure, with a server that knows nothing of the parts before it.
fn one(
    part: &Part,
    works: &[String],
    rig: &mut Rig,
    record: &mut Record,
    machine: &Machine,
) -> PartRun {
    let begin = Instant::now();
    let limit = rig.plan.part_limit;
    let form = rig.plan.form.to_string();
    let mut notes = Vec::new();
    let deadline = Deadline::after(limit);
    // A panic, too, is the failure of one part.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        rig.refresh()?;
        (part.measure)(&mut Bench {
            rig,
            record,
            notes: &mut notes,
            works,
        })
    }));
    stop::stay_if_interrupted();
    let is_late = deadline.has_passed();
    let failure = match outcome {
        Ok(Ok(())) => None,
        _ if is_late => Some(format!("not done after {} s", limit.as_secs())),
        Ok(Err(failure)) => Some(failure.to_string()),
        Err(_) => Some("the driver panicked; its words are above".to_owned()),
    };
    PartRun {
        form,
        commit: machine.commit.clone(),
        ended_at: seconds_since_1970(),
        seconds: begin.elapsed().as_secs_f64(),
        failure,
        notes,
    }
}

/// What `--only` names: every part without it.
fn selection(only: &[String]) -> Result<Selection> {
    let mut selection = Selection::new();
    if only.is_empty() {
        selection.extend(PARTS.iter().map(|part| (part.name.to_owned(), Vec::new())));
        return Ok(selection);
    }
    for wanted in only {
        let (part, work) = wanted
            .split_once('/')
            .map_or((wanted.as_str(), None), |(part, work)| (part, Some(work)));
        if !PARTS.iter().any(|known| known.name == part) {
            let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
            return Err(Failure::unexpected(format!(
                "--only {wanted}: the parts are {}",
                known.join(", ")
            )));
        }
        selection
            .entry(part.to_owned())
            .or_default()
            .extend(work.map(str::to_owned));
    }
    Ok(selection)
}

/// What an earlier run left.
fn kept(path: &Path) -> Result<Record> {
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let kept: Kept = serde_json::from_str(&text).map_err(|error| at(path, &error))?;
            Ok(kept.record)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Record::default()),
        Err(error) => Err(at(path, &error)),
    }
}

fn write(out: &Path, machine: &Machine, record: &Record, plan: &Plan) -> Result<()> {
    let latest = Latest {
        machine,
        goals: judge(record, plan, machine.version),
        record,
    };
    let json = serde_json::to_string_pretty(&latest)
        .map_err(|error| Failure::unexpected(error.to_string()))?;
    let charts = charts::draw_all(record, &out.join("results"))?;
    let text = report::render(&latest, &charts);
    for (name, text) in [(LATEST, json + "\n"), ("RESULTS.md", text)] {
        let path = out.join(name);
        std::fs::write(&path, text).map_err(|error| at(&path, &error))?;
    }
    Ok(())
}

fn at(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::unexpected(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(only: &[&str]) -> Result<Selection> {
        selection(&only.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn parts_and_works_are_selected_and_unknown_parts_refused() {
        assert_eq!(select(&[]).unwrap().len(), PARTS.len());
        let some = select(&["tpcc", "statements/update", "statements/insert"]).unwrap();
        assert_eq!(some["statements"], ["update", "insert"]);
        assert!(some["tpcc"].is_empty() && some.len() == 2);
        assert!(select(&["nothing"]).is_err());
    }
}
