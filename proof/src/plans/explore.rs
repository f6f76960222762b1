//! The plans of a query: found by forcing, executed, compared and timed.
use super::forced::{FORCED, set, told};
use super::plan::Plan;
use super::side::Side;
use super::{Query, Times};
use crate::failure::Result;
use crate::wire::{Answer, Row};
use std::time::{Duration, Instant};

/// Executions that go to the server together take about this long.
const TOGETHER: Duration = Duration::from_millis(4);
const TOGETHER_MAX: u128 = 40;
/// A plan that takes so many times the best one's time is timed once.
const HOPELESS: f64 = 2.5;
/// What a forced plan may take, beside so many times what the chosen one takes.
const PATIENCE_OF_FORCED: Duration = Duration::from_secs(1);
const TIMES_CHOSEN: u32 = 10;

/// A plan that was executed.
pub struct Timed {
    pub plan: Plan,
    /// What forced it.
    pub settings: String,
    /// The shortest execution.
    pub seconds: f64,
}

/// What became of a query.
pub struct Finding {
    pub query: Query,
    /// The first is the one that the planner chose.
    pub plans: Vec<Timed>,
    /// Its plan and time on heap tables.
    pub heap: Timed,
    /// Plans that took too long to end.
    pub endless: usize,
}

impl Finding {
    pub fn chosen(&self) -> &Timed {
        &self.plans[0]
    }

    pub fn best(&self) -> &Timed {
        let of = |left: &&Timed, right: &&Timed| left.seconds.total_cmp(&right.seconds);
        self.plans
            .iter()
            .min_by(of)
            .expect("the chosen plan is there")
    }

    /// What the chosen plan takes of the best one's time.
    pub fn ratio(&self) -> f64 {
        self.chosen().seconds / self.best().seconds
    }
}

/// What exploring a query came to.
pub enum Outcome {
    Found(Box<Finding>),
    /// The words of a difference.
    Differs(String),
    /// It failed, or did not end.
    Skipped,
}

/// A prepared statement.
struct Prepared {
    name: String,
    plan: Plan,
    settings: String,
}

/// Finds and times the plans of a query.
pub fn explore(heap: &mut Side, mot: &mut Side, query: Query, times: &Times) -> Result<Outcome> {
    let known = match only(heap, &query, times)? {
        Some(known) => known,
        None => return Ok(Outcome::Skipped),
    };
    mot.session.must("DEALLOCATE ALL")?;
    let mut prepared: Vec<Prepared> = Vec::new();
    for (at, settings) in FORCED.iter().enumerate() {
        let Some(found) = prepare(mot, &query.text, at, &set(settings), told(settings))? else {
            continue;
        };
        if prepared.iter().all(|known| known.plan != found.plan) {
            prepared.push(found);
        }
    }
    let mut plans = Vec::new();
    let mut endless = 0;
    let mut limit = times.patience;
    for found in prepared {
        let (seconds, answer) = execute(mot, &found.name, limit)?;
        if let Some(refusal) = &answer.refusal {
            let is_slow = refusal.state == "57014";
            match (is_slow, plans.is_empty()) {
                (true, true) => return Ok(Outcome::Skipped),
                (true, false) => endless += 1,
                (false, _) if query.may_fail => return Ok(Outcome::Skipped),
                (false, _) => {
                    return Ok(Outcome::Differs(difference(
                        &query, &found, &known.1, &answer,
                    )));
                }
            }
            continue;
        }
        if plans.is_empty() {
            let forced = PATIENCE_OF_FORCED + Duration::from_secs_f64(seconds) * TIMES_CHOSEN;
            limit = forced.min(times.patience);
        }
        if !are_same(&known.1, &answer, query.is_ordered) {
            return Ok(Outcome::Differs(difference(
                &query, &found, &known.1, &answer,
            )));
        }
        plans.push((found, seconds));
    }
    time(mot, &mut plans, times)?;
    let plans = plans
        .into_iter()
        .map(|(found, seconds)| Timed {
            plan: found.plan,
            settings: found.settings,
            seconds,
        })
        .collect();
    Ok(Outcome::Found(Box::new(Finding {
        query,
        plans,
        heap: known.0,
        endless,
    })))
}

/// The query on heap tables, by the plan that is chosen there; `None`: it fails, or takes too long.
fn only(heap: &mut Side, query: &Query, times: &Times) -> Result<Option<(Timed, Answer)>> {
    heap.session.must("DEALLOCATE ALL")?;
    let Some(found) = prepare(heap, &query.text, 0, "", String::new())? else {
        return Ok(None);
    };
    let (seconds, answer) = execute(heap, &found.name, times.patience)?;
    if answer.refusal.is_some() {
        return Ok(None);
    }
    let mut plans = vec![(found, seconds)];
    time(heap, &mut plans, times)?;
    let (found, seconds) = plans.remove(0);
    let timed = Timed {
        plan: found.plan,
        settings: found.settings,
        seconds,
    };
    Ok(Some((timed, answer)))
}

/// Prepares the query under settings. It has no parameters, so its plan is kept.
fn prepare(
    side: &mut Side,
    text: &str,
    at: usize,
    set: &str,
    told: String,
) -> Result<Option<Prepared>> {
    let name = format!("p{at}");
    let answer = side.session.ask(&format!(
        "BEGIN; {set}PREPARE {name} AS {text}; EXPLAIN (FORMAT JSON, COSTS OFF) EXECUTE {name}; COMMIT"
    ))?;
    if answer.refusal.is_some() {
        side.session.must("ROLLBACK")?;
        return Ok(None);
    }
    let plan = answer.value().and_then(Plan::parse);
    Ok(plan.map(|plan| Prepared {
        name,
        plan,
        settings: told,
    }))
}

/// Executes a plan once.
fn execute(side: &mut Side, name: &str, limit: Duration) -> Result<(f64, Answer)> {
    side.session
        .must(&format!("SET statement_timeout = {}", limit.as_millis()))?;
    let start = Instant::now();
    let answer = side.session.ask(&format!("EXECUTE {name}"))?;
    let seconds = start.elapsed().as_secs_f64();
    side.session.must("SET statement_timeout = 0")?;
    Ok((seconds, answer))
}

/// Times plans in turns, until the shortest execution of each is found.
fn time(side: &mut Side, plans: &mut [(Prepared, f64)], times: &Times) -> Result<()> {
    for round in 0..times.rounds {
        let start = Instant::now();
        let best = plans
            .iter()
            .map(|(_, seconds)| *seconds)
            .fold(f64::MAX, f64::min);
        for (at, (found, seconds)) in plans.iter_mut().enumerate() {
            // The first execution of all may have been the slowest.
            if at > 0 && round > 0 && *seconds > best * HOPELESS {
                continue;
            }
            let together = TOGETHER.as_nanos() / (*seconds * 1e9).max(1.0) as u128;
            let together = together.clamp(1, TOGETHER_MAX) as u32;
            let statements = format!("EXECUTE {};", found.name).repeat(together as usize);
            let start = Instant::now();
            side.session.must(&statements)?;
            let once = start.elapsed().as_secs_f64() / f64::from(together);
            *seconds = seconds.min(once);
        }
        if start.elapsed() * (round + 1) > times.per_query && round >= 2 {
            break;
        }
    }
    Ok(())
}

fn are_same(known: &Answer, answer: &Answer, is_ordered: bool) -> bool {
    if is_ordered {
        return known.rows == answer.rows;
    }
    let sorted = |answer: &Answer| {
        let mut rows: Vec<Row> = answer.rows.clone();
        rows.sort();
        rows
    };
    sorted(known) == sorted(answer)
}

fn difference(query: &Query, found: &Prepared, heap: &Answer, mot: &Answer) -> String {
    let first = |answer: &Answer| match &answer.refusal {
        Some(refusal) => refusal.to_string(),
        None => {
            let rows: Vec<String> = (answer.rows.iter().take(5))
                .map(|row| format!("{row:?}"))
                .collect();
            format!("{} rows: {}", answer.rows.len(), rows.join(" "))
        }
    };
    format!(
        "{}\n  plan: {}\n  settings: {}\n  heap: {}\n  MOT:  {}",
        query.text,
        found.plan.told(),
        found.settings,
        first(heap),
        first(mot)
    )
}
