//! One client of the crowd: runs transactions and notes what became of them.

mod read;
mod write;

use read::number;
pub use read::values;

use super::record::{Action, By, Kind, Level, Operation, Outcome, Transaction};
use super::tables::{GROUP, Tables};
use super::workload::{self, Keys, RangeForm, Step};
use crate::failure::{Failure, Result};
use crate::wire::{Answer, Place, Session, Standing};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Pause between two tries to reach a server that is away.
const AWAY_PAUSE: Duration = Duration::from_millis(10);

/// What all clients share.
pub struct Crowd {
    /// Where the server is; a failover moves it.
    pub place: Mutex<Place>,
    pub tables: Tables,
    pub kind: Kind,
    pub level: Level,
    /// Statements for each new session.
    pub settings: Vec<String>,
    pub keys: Keys,
    /// A lost connection is no error.
    pub is_upset: bool,
    pub stop: AtomicBool,
    pub clock: Instant,
    pub next_value: AtomicI64,
    pub next_process: AtomicU32,
}

impl Crowd {
    /// Nanoseconds since the run began.
    pub fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    fn process(&self) -> u32 {
        self.next_process.fetch_add(1, Ordering::Relaxed)
    }

    /// A session as the workload wants it.
    pub fn session(&self) -> Result<Session> {
        let place = self
            .place
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut session = Session::open(&place)?;
        session.must(&format!(
            "SET default_transaction_isolation = '{}'",
            self.level
        ))?;
        session.must("SET statement_timeout = '60s'")?;
        session.must("SET deadlock_timeout = '20ms'")?;
        for setting in &self.settings {
            session.must(setting)?;
        }
        for (table, _) in self.tables.names() {
            let change = match self.kind {
                Kind::List => "v || $2::int",
                Kind::Register => "$2",
            };
            session.must(&format!(
                "PREPARE get_{table} (bigint) AS SELECT k, v FROM {table} WHERE k = $1"
            ))?;
            session.must(&format!(
                "PREPARE set_{table} (bigint, int) AS UPDATE {table} SET v = {change} WHERE k = $1"
            ))?;
        }
        Ok(session)
    }
}

/// Why a transaction's body ended early.
enum Stop {
    Refused(String),
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Failed(failure)
    }
}

type Stepped<T> = std::result::Result<T, Stop>;

/// Runs transactions until told to stop.
pub fn work(crowd: &Crowd, seed: u64) -> Result<Vec<Transaction>> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut done = Vec::new();
    while !crowd.stop.load(Ordering::Relaxed) {
        let session = match crowd.session() {
            Ok(session) => session,
            Err(_) if crowd.is_upset => {
                std::thread::sleep(AWAY_PAUSE);
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let mut client = Client {
            crowd,
            session,
            rng: &mut rng,
            operations: Vec::new(),
            statement: 0,
        };
        let process = crowd.process();
        while !crowd.stop.load(Ordering::Relaxed) {
            let (transaction, lost) = client.transaction(process)?;
            done.push(transaction);
            if lost {
                if !crowd.is_upset {
                    return Err(Failure::other("a connection was lost"));
                }
                break;
            }
        }
    }
    Ok(done)
}

struct Client<'a> {
    crowd: &'a Crowd,
    session: Session,
    rng: &'a mut SmallRng,
    operations: Vec<Operation>,
    statement: u32,
}

impl Client<'_> {
    /// One transaction, and whether the connection was lost.
    fn transaction(&mut self, process: u32) -> Result<(Transaction, bool)> {
        self.operations.clear();
        self.statement = 0;
        let begin = self.crowd.now();
        let one_statement = self.rng.random_ratio(3, 20);
        let mut is_committing = one_statement;
        let body = if one_statement {
            self.step(false, true).map(|()| true)
        } else {
            self.block(&mut is_committing)
        };
        let (outcome, error, lost) = match body {
            Ok(true) => (Outcome::Committed, None, false),
            Ok(false) => (Outcome::Aborted, None, false),
            Err(Stop::Refused(error)) => {
                if self.session.standing != Standing::Idle {
                    // Lost now, it is rolled back all the same.
                    let _ = self.session.ask("ROLLBACK");
                }
                (Outcome::Aborted, Some(error), false)
            }
            Err(Stop::Failed(Failure::Lost(words))) => {
                let outcome = if is_committing {
                    Outcome::Unknown
                } else {
                    Outcome::Aborted
                };
                (outcome, Some(format!("lost: {words}")), true)
            }
            Err(Stop::Failed(failure)) => return Err(failure),
        };
        let transaction = Transaction {
            process,
            level: self.crowd.level,
            begin,
            end: self.crowd.now(),
            outcome,
            error,
            operations: std::mem::take(&mut self.operations),
        };
        Ok((transaction, lost))
    }

    /// BEGIN to COMMIT (true) or ROLLBACK (false).
    fn block(&mut self, is_committing: &mut bool) -> Stepped<bool> {
        let reads_only = self.rng.random_ratio(1, 10);
        let begin = if !reads_only {
            "BEGIN"
        } else if self.crowd.level == Level::Serializable && self.rng.random_ratio(1, 5) {
            "BEGIN READ ONLY DEFERRABLE"
        } else {
            "BEGIN READ ONLY"
        };
        self.ask(begin)?;
        for _ in 0..self.rng.random_range(1..=4) {
            if reads_only || !self.rng.random_ratio(3, 20) {
                self.step(reads_only, false)?;
                continue;
            }
            self.ask("SAVEPOINT s")?;
            let first = self.operations.len();
            for _ in 0..self.rng.random_range(1..=2) {
                self.step(false, false)?;
            }
            if self.rng.random() {
                self.ask("RELEASE SAVEPOINT s")?;
            } else {
                self.ask("ROLLBACK TO SAVEPOINT s")?;
                for operation in &mut self.operations[first..] {
                    match &mut operation.action {
                        Action::Write { undone, .. } => *undone = true,
                        // It saw the newest state all the same.
                        Action::Read { by, .. } if *by == By::Lock => *by = By::WasLocked,
                        Action::Read { .. } => {}
                    }
                }
            }
        }
        if self.rng.random_ratio(1, 20) {
            self.ask("ROLLBACK")?;
            return Ok(false);
        }
        *is_committing = true;
        self.ask("COMMIT")?;
        Ok(true)
    }

    fn ask(&mut self, statement: &str) -> Stepped<Answer> {
        let mut answer = self.session.ask(statement)?;
        match answer.refusal.take() {
            None => Ok(answer),
            Some(refusal) => Err(Stop::Refused(format!("{refusal} in {statement}"))),
        }
    }

    fn note(&mut self, key: u64, form: &str, action: Action) {
        self.operations.push(Operation {
            key,
            statement: self.statement,
            form: form.to_owned(),
            action,
        });
    }

    fn step(&mut self, reads_only: bool, one_statement: bool) -> Stepped<()> {
        let crowd = self.crowd;
        let step = workload::draw(
            self.rng,
            &crowd.keys,
            crowd.tables,
            crowd.kind,
            reads_only,
            one_statement,
        );
        self.statement += 1;
        match step {
            Step::Read(form, key) => self.read(form, key),
            Step::ReadSeveral(keys) => {
                let list = format!("{}, {}, {}", keys[0], keys[1], keys[2]);
                let parts: Vec<String> = crowd
                    .tables
                    .names()
                    .iter()
                    .map(|(table, _)| format!("SELECT k, v FROM {table} WHERE k IN ({list})"))
                    .collect();
                let mut keys = keys.to_vec();
                keys.sort_unstable();
                keys.dedup();
                self.read_all(&parts.join(" UNION ALL "), "several keys", By::Key, keys)
                    .map(|_| ())
            }
            Step::ReadRange(form, table, first, last) => {
                let keys = (first..=last)
                    .filter(|key| crowd.tables.of_key(*key) == table)
                    .collect();
                let (query, name) = match form {
                    RangeForm::Plain => (
                        format!("SELECT k, v FROM {table} WHERE k BETWEEN {first} AND {last}"),
                        "a range",
                    ),
                    RangeForm::Cursor => (
                        format!(
                            "DECLARE c CURSOR FOR SELECT k, v FROM {table} WHERE k BETWEEN {first} AND {last} \
                             ORDER BY k; \
                             FETCH ALL FROM c; CLOSE c"
                        ),
                        "a range by cursor",
                    ),
                    RangeForm::WholeTable => (
                        format!("SELECT k, v FROM {table} WHERE k + 0 BETWEEN {first} AND {last}"),
                        "a scan of all rows",
                    ),
                };
                self.read_all(&query, name, By::Predicate, keys).map(|_| ())
            }
            Step::ReadGroup(table, group) => {
                let keys = (group * GROUP..(group + 1) * GROUP)
                    .filter(|key| crowd.tables.of_key(*key) == table)
                    .collect();
                let query = format!("SELECT k, v FROM {table} WHERE grp = {group}");
                self.read_all(&query, "a group", By::Predicate, keys)
                    .map(|_| ())
            }
            Step::Write(form, key) => self.write(form, key),
            Step::WriteGroup(table, group) => {
                let value = self.value();
                let change = self.change(value);
                let update =
                    format!("UPDATE {table} SET v = {change} WHERE grp = {group} RETURNING k");
                for row in self.ask(&update)?.rows {
                    let key = number(row.first()) as u64;
                    self.note(
                        key,
                        "UPDATE of a group",
                        Action::Write {
                            value,
                            undone: false,
                        },
                    );
                }
                Ok(())
            }
        }
    }
}
