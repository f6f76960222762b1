//! Databases of a few lines, good and bad, that make histories of lists.

use proof::history::record::{
    Action, By, Header, History, Kind, Level, Operation, Outcome, Transaction,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

/// What they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// One transaction after the other.
    Serial,
    /// Readers and writers lock; who meets a lock aborts.
    TwoPhaseLocking,
    /// A snapshot for each transaction; the second updater aborts.
    Snapshot,
    /// The second updater puts its own state over what it has not seen.
    SnapshotWithoutFirstUpdaterWins,
    /// Snapshots that lag behind.
    StaleSnapshot,
    /// Each statement sees what is committed; a writer adds to the newest state.
    ReadCommitted,
    /// Each statement sees everything.
    ReadUncommitted,
}

type State = BTreeMap<u64, Vec<i64>>;

struct Running {
    transaction: Transaction,
    left: usize,
    snapshot: State,
    /// Its own writes.
    own: State,
}

const SESSIONS: usize = 4;
const TRANSACTIONS: usize = 120;

/// A history of one of them.
pub fn simulate(database: Database, level: Level, seed: u64) -> History {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut committed = State::new();
    // As it was when the last few transactions had not committed.
    let mut older = vec![State::new(); 4];
    let mut running: Vec<Option<Running>> = (0..SESSIONS).map(|_| None).collect();
    let mut done = Vec::new();
    let (mut clock, mut value, mut begun) = (0, 0, 0);
    loop {
        clock += 1;
        let session = if database == Database::Serial {
            running
                .iter()
                .position(Option::is_some)
                .unwrap_or_else(|| rng.random_range(0..SESSIONS))
        } else {
            rng.random_range(0..SESSIONS)
        };
        let Some(mut this) = running[session].take() else {
            if begun == TRANSACTIONS {
                if running.iter().all(Option::is_none) {
                    break;
                }
                continue;
            }
            begun += 1;
            let stale = database == Database::StaleSnapshot;
            running[session] = Some(Running {
                transaction: Transaction {
                    process: session as u32,
                    level,
                    begin: clock,
                    end: 0,
                    outcome: Outcome::Committed,
                    error: None,
                    operations: Vec::new(),
                },
                left: rng.random_range(1..6),
                snapshot: if stale {
                    older[0].clone()
                } else {
                    committed.clone()
                },
                own: State::new(),
            });
            continue;
        };
        let others: Vec<&Running> = running.iter().flatten().collect();
        if this.left == 0 {
            let aborts = rng.random_ratio(1, 12);
            if !aborts {
                for (key, own) in &this.own {
                    let list = committed.entry(*key).or_default();
                    match database {
                        Database::SnapshotWithoutFirstUpdaterWins | Database::StaleSnapshot => {
                            let mut whole = this.snapshot.get(key).cloned().unwrap_or_default();
                            whole.extend(own);
                            *list = whole;
                        }
                        _ => list.extend(own),
                    }
                }
                older.remove(0);
                older.push(committed.clone());
            }
            this.transaction.outcome = if aborts {
                Outcome::Aborted
            } else {
                Outcome::Committed
            };
            this.transaction.end = clock;
            done.push(this.transaction);
            continue;
        }
        this.left -= 1;
        let key = begun as u64 / 16 + rng.random_range(0..4);
        let is_write = rng.random_ratio(2, 5);
        let seen_by = |this: &Running| {
            let base = match database {
                Database::ReadCommitted
                | Database::ReadUncommitted
                | Database::Serial
                | Database::TwoPhaseLocking => &committed,
                _ => &this.snapshot,
            };
            let mut seen = base.get(&key).cloned().unwrap_or_default();
            if database == Database::ReadUncommitted {
                for other in &others {
                    seen.extend(other.own.get(&key).into_iter().flatten());
                }
            }
            seen.extend(this.own.get(&key).into_iter().flatten());
            seen
        };
        let wrote = |other: &&Running| other.own.contains_key(&key);
        let read = |other: &&Running| {
            other
                .transaction
                .operations
                .iter()
                .any(|operation| operation.key == key)
        };
        let changed = committed.get(&key) != this.snapshot.get(&key);
        let must_abort = match database {
            Database::TwoPhaseLocking if is_write => {
                others.iter().any(|other| wrote(other) || read(other))
            }
            Database::TwoPhaseLocking => others.iter().any(wrote),
            Database::Snapshot => is_write && (changed || others.iter().any(wrote)),
            Database::StaleSnapshot => is_write && others.iter().any(wrote),
            Database::ReadCommitted | Database::ReadUncommitted => {
                is_write && others.iter().any(wrote)
            }
            Database::Serial | Database::SnapshotWithoutFirstUpdaterWins => false,
        };
        if must_abort {
            this.transaction.outcome = Outcome::Aborted;
            this.transaction.end = clock;
            done.push(this.transaction);
            continue;
        }
        let action = if is_write {
            value += 1;
            this.own.entry(key).or_default().push(value);
            Action::Write {
                value,
                undone: false,
            }
        } else {
            Action::Read {
                seen: seen_by(&this),
                by: By::Key,
            }
        };
        let statement = this.transaction.operations.len() as u32;
        this.transaction.operations.push(Operation {
            key,
            statement,
            form: "simulated".to_owned(),
            action,
        });
        running[session] = Some(this);
    }
    let keys: BTreeSet<u64> = committed.keys().copied().collect();
    let last_look = |key: u64| Operation {
        key,
        statement: 0,
        form: "last look".to_owned(),
        action: Action::Read {
            seen: committed[&key].clone(),
            by: By::Key,
        },
    };
    done.push(Transaction {
        process: SESSIONS as u32,
        level: level.max(Level::RepeatableRead),
        begin: clock + 1,
        end: clock + 2,
        outcome: Outcome::Committed,
        error: None,
        operations: keys.into_iter().map(last_look).collect(),
    });
    History {
        header: Header {
            kind: Kind::List,
            level,
            seed,
            note: format!("{database:?}"),
        },
        transactions: done,
    }
}
