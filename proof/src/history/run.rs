//! A run: a crowd of clients for some time, then a look at everything that is left.

use super::client::{Crowd, values, work};
use super::record::{Action, By, Header, History, Kind, Level, Operation, Outcome, Transaction};
use super::tables::{self, Tables};
use super::upset::Servers;
use super::workload::Keys;
use crate::failure::{Failure, Result};
use crate::wire::{Place, Session};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The database of the tables.
const DATABASE: &str = "proof_history";

/// How a run goes.
#[derive(Clone, Debug)]
pub struct Plan {
    pub level: Level,
    pub kind: Kind,
    pub tables: Tables,
    pub connections: u32,
    pub duration: Duration,
    pub seed: u64,
    /// Statements for every session of the crowd.
    pub settings: Vec<String>,
    /// Times that the server is struck within the duration.
    pub strikes: u32,
}

/// Where it goes: a server that is left as it is, or ones that may be struck.
pub enum Target<'a> {
    Given(Place),
    Private(&'a mut Servers),
}

/// Runs a plan and returns the history.
pub fn run(plan: &Plan, target: &mut Target<'_>) -> Result<History> {
    let place = match target {
        Target::Given(place) => place.clone(),
        Target::Private(servers) => servers.place()?,
    };
    tables::make(&place, DATABASE, plan)?;
    let crowd = Crowd {
        place: Mutex::new(place.database(DATABASE)),
        tables: plan.tables,
        kind: plan.kind,
        level: plan.level,
        settings: plan.settings.clone(),
        keys: Keys::default(),
        is_upset: plan.strikes > 0,
        stop: AtomicBool::new(false),
        clock: Instant::now(),
        next_value: AtomicI64::new(1),
        next_process: AtomicU32::new(0),
    };
    let mut notes = vec![format!(
        "{:?}, {} connections",
        plan.tables, plan.connections
    )];
    let mut transactions = std::thread::scope(|scope| -> Result<Vec<Transaction>> {
        let crowd = &crowd;
        let clients: Vec<_> = (0..plan.connections)
            .map(|number| {
                let seed = plan.seed.wrapping_mul(1000).wrapping_add(u64::from(number));
                scope.spawn(move || {
                    let worked = work(crowd, seed);
                    // The others need not go on.
                    if worked.is_err() {
                        crowd.stop.store(true, Ordering::Relaxed);
                    }
                    worked
                })
            })
            .collect();
        let struck = conduct(plan, target, crowd, &mut notes);
        crowd.stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for client in clients {
            let worked = client
                .join()
                .unwrap_or_else(|_| Err(Failure::other("a client panicked")));
            all.extend(worked?);
        }
        struck?;
        Ok(all)
    })?;
    transactions.extend(last_look(&crowd)?);
    transactions.sort_by_key(|transaction| transaction.begin);
    let header = Header {
        kind: plan.kind,
        level: plan.level,
        seed: plan.seed,
        note: notes.join("; "),
    };
    Ok(History {
        header,
        transactions,
    })
}

/// Lets the time go by, with a strike after each of equal parts of it.
fn conduct(
    plan: &Plan,
    target: &mut Target<'_>,
    crowd: &Crowd,
    notes: &mut Vec<String>,
) -> Result<()> {
    let mut rng = SmallRng::seed_from_u64(plan.seed ^ 0x5eed);
    let part = plan.duration / (plan.strikes + 1);
    let is_over = || crowd.stop.load(Ordering::Relaxed);
    for round in 0..=plan.strikes {
        let part = part.mul_f64(rng.random_range(0.7..1.3));
        let end = Instant::now() + part;
        while Instant::now() < end && !is_over() {
            std::thread::sleep(Duration::from_millis(5).min(part));
        }
        if round == plan.strikes || is_over() {
            break;
        }
        let Target::Private(servers) = target else {
            return Err(Failure::other("a given server is not struck"));
        };
        let done = servers.strike(&mut rng, |place| {
            let place = place.database(DATABASE);
            *crowd
                .place
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner()) = place;
        })?;
        notes.push(done);
    }
    Ok(())
}

/// Reads all keys, by scan and by index, when everyone is gone: what was acknowledged and is lost
/// shows here at the latest.
fn last_look(crowd: &Crowd) -> Result<Vec<Transaction>> {
    let mut session: Session = crowd.session()?;
    let level = match crowd.level {
        Level::Serializable => Level::Serializable,
        _ => Level::RepeatableRead,
    };
    let mut looks = Vec::new();
    for (form, condition) in [
        ("last scan", "k + 0 >= 0"),
        ("last look by index", "k >= 0"),
    ] {
        let process = crowd.next_process.fetch_add(1, Ordering::Relaxed);
        let begin = crowd.now();
        let mut operations = Vec::new();
        session.must(&format!("BEGIN ISOLATION LEVEL {level}"))?;
        session.must(if form == "last scan" {
            "SET LOCAL enable_seqscan = on"
        } else {
            "SET LOCAL enable_seqscan = off"
        })?;
        for (statement, (table, _)) in crowd.tables.names().iter().enumerate() {
            let answer = session.must(&format!("SELECT k, v FROM {table} WHERE {condition}"))?;
            let mut found = std::collections::HashMap::new();
            for row in &answer.rows {
                let key: u64 = row[0]
                    .as_deref()
                    .and_then(|key| key.parse().ok())
                    .unwrap_or(u64::MAX);
                if found.insert(key, values(row.get(1))).is_some() {
                    return Err(Failure::other(format!("{table} has key {key} twice")));
                }
            }
            for key in (0..crowd.keys.end()).filter(|key| crowd.tables.of_key(*key) == *table) {
                operations.push(Operation {
                    key,
                    statement: statement as u32,
                    form: form.to_owned(),
                    action: Action::Read {
                        seen: found.remove(&key).unwrap_or_default(),
                        by: By::Key,
                    },
                });
            }
        }
        session.must("COMMIT")?;
        looks.push(Transaction {
            process,
            level,
            begin,
            end: crowd.now(),
            outcome: Outcome::Committed,
            error: None,
            operations,
        });
    }
    for (table, is_mot) in crowd.tables.names() {
        if *is_mot {
            session.must(&format!("SELECT rows FROM mot.check('{table}')"))?;
        }
    }
    Ok(looks)
}
