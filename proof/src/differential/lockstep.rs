//! One statement on both sides: sent, waited for, compared.

use super::by_design::{self, Allowed, Known};
use super::statement::Statement;
use crate::failure::{Failure, Result};
use crate::wire::{Answer, Row, Session, Standing};
use std::time::{Duration, Instant};

/// Time an answer gets before the server is asked whether the statement waits.
const GLANCE: Duration = Duration::from_millis(2);

/// Time in which a statement must answer or wait for a lock.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a statement came to.
#[derive(Debug)]
pub enum Came {
    /// The same on both sides.
    Same(Answer),
    /// It waits on both sides.
    Waits,
    /// It differs, and may.
    May(&'static Allowed),
    /// It differs.
    Differs(String),
}

/// A session on each side.
pub struct Pair {
    heap: Session,
    mot: Session,
    answers: [Option<Answer>; 2],
    asked: Option<Statement>,
    pub known: Known,
}

impl Pair {
    /// Of two sessions.
    pub fn new(heap: Session, mot: Session) -> Pair {
        Pair {
            heap,
            mot,
            answers: [None, None],
            asked: None,
            known: Known::NOTHING,
        }
    }

    /// Process numbers.
    pub fn pids(&self) -> [i32; 2] {
        [self.heap.pid, self.mot.pid]
    }

    /// Where the transaction stands; the same on both sides, or a difference was found.
    pub fn standing(&self) -> Standing {
        self.heap.standing
    }

    /// The statement that waits.
    pub fn waits_with(&self) -> Option<&Statement> {
        self.asked.as_ref()
    }

    /// Between transactions nothing of the last one is known.
    pub fn forget(&mut self) {
        self.known = Known::NOTHING;
    }

    /// Sends a statement to both sides. Names of prepared transactions are the server's, so they
    /// say the side.
    pub fn send(&mut self, statement: &Statement) -> Result<()> {
        self.heap.send(&statement.text.replace('@', "heap"))?;
        self.mot.send(&statement.text.replace('@', "mot"))?;
        self.answers = [None, None];
        self.asked = Some(statement.clone());
        Ok(())
    }

    fn look(&mut self, patience: Duration) -> Result<bool> {
        for (session, answer) in [&mut self.heap, &mut self.mot]
            .into_iter()
            .zip(&mut self.answers)
        {
            if answer.is_none() {
                *answer = session.receive_within(patience)?;
            }
        }
        Ok(self.answers.iter().all(Option::is_some))
    }

    /// Waits until each side has answered or waits for one of `others`. `beside` is what another
    /// session waits with.
    pub fn settle(
        &mut self,
        monitor: &mut Session,
        others: &[i32],
        beside: Option<&Statement>,
    ) -> Result<Came> {
        let deadline = Instant::now() + PATIENCE;
        let mut patience = GLANCE;
        loop {
            if self.look(patience)? {
                return Ok(self.compare());
            }
            patience = Duration::from_micros(200);
            let pids: Vec<i32> = self
                .pids()
                .into_iter()
                .zip(&self.answers)
                .filter(|(_, answer)| answer.is_none())
                .map(|(pid, _)| pid)
                .collect();
            if waiting(monitor, &pids, others)? == pids.len() {
                if pids.len() == 2 {
                    return Ok(Came::Waits);
                }
                // The other may have answered in between; then both have.
                if self.look(Duration::ZERO)? {
                    return Ok(self.compare());
                }
                let side = if self.answers[0].is_none() {
                    "the heap"
                } else {
                    "the MOT"
                };
                let statement = self.asked.clone().unwrap_or_else(|| Statement::plain(""));
                let Some(answered) = self.answers.iter().flatten().next() else {
                    return Err(Failure::other("one side waits, and the other is not asked"));
                };
                return Ok(
                    match by_design::waits(&statement, beside, &self.known, answered) {
                        Some(allowed) => Came::May(allowed),
                        None => Came::Differs(format!(
                            "only {side} side waits: {}\n  the other: {}",
                            statement.text,
                            summary(answered)
                        )),
                    },
                );
            }
            if Instant::now() > deadline {
                return Err(Failure::other(
                    "a statement neither answers nor waits for a lock",
                ));
            }
        }
    }

    /// Cancels the statement that waits, and takes the answers, whatever they are.
    pub fn cancel(&mut self, monitor: &mut Session) -> Result<Came> {
        for (place, pid) in self.pids().into_iter().enumerate() {
            if self.answers[place].is_none() {
                monitor.must(&format!("SELECT pg_cancel_backend({pid})"))?;
            }
        }
        if self.look(PATIENCE)? {
            return Ok(self.compare());
        }
        Err(Failure::other("a cancelled statement does not end"))
    }

    /// Both sides back to no transaction, without cursors.
    pub fn roll_back(&mut self) -> Result<()> {
        self.asked = None;
        for session in [&mut self.heap, &mut self.mot] {
            if session.standing != Standing::Idle {
                session.must("ROLLBACK")?;
            }
            session.must("CLOSE ALL")?;
        }
        Ok(())
    }

    fn compare(&mut self) -> Came {
        let [Some(heap), Some(mot)] = std::mem::take(&mut self.answers) else {
            return Came::Differs("an answer is missing".to_owned());
        };
        let Some(statement) = self.asked.take() else {
            return Came::Differs("an answer to nothing".to_owned());
        };
        let differs = difference(&statement, &heap, &mot);
        let allowed = differs
            .is_some()
            .then(|| by_design::answers(&statement, &self.known, &heap, &mot))
            .flatten();
        match (differs, allowed) {
            (None, _) if self.heap.standing != self.mot.standing => Came::Differs(format!(
                "the heap side's transaction is {:?}, the MOT side's {:?} after: {}",
                self.heap.standing, self.mot.standing, statement.text
            )),
            (None, _) => Came::Same(heap),
            (Some(_), Some(allowed)) => Came::May(allowed),
            (Some(words), None) => Came::Differs(format!(
                "{words}\n  {}, {}",
                self.known.level, statement.text
            )),
        }
    }
}

/// How many of `pids` wait for one of `others`, or for a prepared transaction, which has no
/// process.
fn waiting(monitor: &mut Session, pids: &[i32], others: &[i32]) -> Result<usize> {
    let list = |pids: &[i32]| {
        let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
        pids.join(",")
    };
    let query = format!(
        "SELECT count(*) FROM unnest('{{{}}}'::int[]) pid WHERE pg_blocking_pids(pid) && '{{0,{}}}'::int[]",
        list(pids),
        list(others)
    );
    let answer = monitor.must(&query)?;
    Ok(answer
        .value()
        .and_then(|count| count.parse().ok())
        .unwrap_or(0))
}

/// What an answer says, for a reader.
pub fn summary(answer: &Answer) -> String {
    match &answer.refusal {
        Some(refusal) => refusal.to_string(),
        None => format!("{}, {} rows", answer.tags.join(" "), answer.rows.len()),
    }
}

fn difference(statement: &Statement, heap: &Answer, mot: &Answer) -> Option<String> {
    let error = |answer: &Answer| {
        answer
            .refusal
            .as_ref()
            .map(|refusal| (refusal.state.clone(), refusal.constraint.clone()))
    };
    if error(heap) != error(mot) || heap.tags != mot.tags {
        return Some(format!("heap: {}\n  MOT: {}", summary(heap), summary(mot)));
    }
    let rows = |answer: &Answer| {
        let mut rows = answer.rows.clone();
        if !statement.is_ordered {
            rows.sort();
        }
        rows
    };
    let (heap, mot) = (rows(heap), rows(mot));
    if heap == mot {
        return None;
    }
    let only = |these: &[Row], those: &[Row]| {
        let rows: Vec<String> = these
            .iter()
            .filter(|row| !those.contains(row))
            .take(5)
            .map(|row| told(row))
            .collect();
        rows.join(" ")
    };
    Some(format!(
        "{} heap rows, {} MOT rows; only heap: {}; only MOT: {}; first heap: {}; first MOT: {}",
        heap.len(),
        mot.len(),
        only(&heap, &mot),
        only(&mot, &heap),
        heap.first().map_or(String::new(), |row| told(row)),
        mot.first().map_or(String::new(), |row| told(row)),
    ))
}

fn told(row: &[Option<String>]) -> String {
    let values: Vec<&str> = row
        .iter()
        .map(|value| value.as_deref().unwrap_or("NULL"))
        .collect();
    format!("({})", values.join(", "))
}
