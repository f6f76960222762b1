//! A whole run: the parts that were asked for, one after another, and the files.

use crate::charts;
use crate::cli::Cli;
use crate::goals::{Goal, judge};
use crate::machine::{Machine, seconds_since_1970};
use crate::parts::{Bench, PARTS};
use crate::plan::Plan;
use crate::record::{PartRun, Record};
use crate::report;
use crate::rig::Rig;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

/// Measures what `cli` asks for; true if every part came to its end.
pub(crate) fn run(cli: &Cli) -> Result<bool> {
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
    let mut is_good = true;
    for part in &PARTS {
        let Some(works) = selection.get(part.name) else {
            continue;
        };
        if works.is_empty() {
            record.forget(part.name);
        }
        let begin = Instant::now();
        let mut notes = Vec::new();
        let mut bench = Bench {
            rig: &mut rig,
            record: &mut record,
            notes: &mut notes,
            works,
        };
        bench.say(&format!("part {}", part.name));
        let failure = (part.measure)(&mut bench)
            .err()
            .map(|failure| failure.to_string());
        if let Some(failure) = &failure {
            is_good = false;
            eprintln!(
                "bench: part {} failed: {failure}\n{}",
                part.name,
                rig.cluster.log_tail()
            );
        }
        let run = PartRun {
            form: plan.form.to_string(),
            ended_at: seconds_since_1970(),
            seconds: begin.elapsed().as_secs_f64(),
            failure,
            notes,
        };
        record.parts.insert(part.name.to_owned(), run);
        // After each part: a long run that is stopped has told what it knows.
        write(&cli.out, &machine, &record, &plan)?;
    }
    let goals = judge(&record, &plan, machine.version);
    println!("{}", report::goals_as_text(&goals));
    println!("written to {}", cli.out.join("RESULTS.md").display());
    Ok(is_good)
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
