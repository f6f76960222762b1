//! A workload with its own ledger in memory: money moved between accounts, with what TPC-C does not
//! do — savepoints, rollbacks of its own, deletes and re-inserts, updates of indexed columns, large
//! transactions, and a heap table written in the same transactions.
//!
//! The memory of what was acknowledged spans all rounds, so that a row lost in a later round shows.

use crate::workers::{Round, Worker, Workers};
use postgres::{Client, Transaction};
use std::collections::HashMap;
use std::sync::Mutex;
use tpcc::failure::{Failure, Result};
use tpcc::random::TpccRng;
use tpcc::target::{Target, execute, from_client};

const ACCOUNTS: i32 = 200;
const BRANCHES: i32 = 10;
const FIRST_BALANCE: i64 = 1000;
const WORKERS: Workers = Workers {
    count: 3,
    stream: 2_000_000,
};

/// Rows of one large transaction: a few hundred KiB of write set.
const BULK_ROWS: i64 = 1500;

/// Who made an entry: round and worker in one number, and the worker's count.
type Key = (i32, i32);

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moved {
    from: i32,
    to: i32,
    amount: i64,
    /// The transaction also inserted [`BULK_ROWS`] rows.
    bulk: bool,
}

#[derive(Default)]
struct Memory {
    acknowledged: HashMap<Key, Moved>,
    in_flight: HashMap<Key, Moved>,
}

/// The bank and what it was told.
pub struct Bank {
    memory: Mutex<Memory>,
}

impl Bank {
    /// Makes the tables.
    pub fn open(target: &Target) -> Result<Self> {
        let mut client = target.client()?;
        let table =
            |name: &str, columns: &str| target.engine.create(&format!("{name} ({columns})"));
        let entry = "who integer, seq integer, from_id integer, to_id integer, amount bigint, \
                     bulk boolean, PRIMARY KEY (who, seq)";
        for statement in [
            table(
                "bank_account",
                "id integer PRIMARY KEY, branch integer NOT NULL, balance bigint NOT NULL, note text",
            ),
            "CREATE INDEX bank_account_branch ON bank_account (branch, id)".to_owned(),
            table("bank_entry", entry),
            table(
                "bank_bulk",
                "who integer, seq integer, n bigint, pad text, PRIMARY KEY (who, seq, n)",
            ),
            // Always a heap table: the halves of a transaction stay together or are both gone.
            format!("CREATE TABLE bank_mirror ({entry})"),
            format!(
                "INSERT INTO bank_account SELECT id, id % {BRANCHES}, {FIRST_BALANCE}, 'first' \
                 FROM generate_series(1, {ACCOUNTS}) AS id"
            ),
        ] {
            execute(&mut client, &statement)?;
        }
        Ok(Bank {
            memory: Mutex::default(),
        })
    }

    /// Moves money until the server goes away.
    pub fn work(&self, target: &Target, round: Round) -> Result<()> {
        let open = |worker: Worker| Ok((target.client()?, worker.who as i32));
        let step = |session: &mut (Client, i32), rng: &mut TpccRng, number| {
            let (client, who) = session;
            self.one_transaction(client, rng, (*who, number as i32))
        };
        WORKERS.run(round, open, step)
    }

    fn one_transaction(&self, client: &mut Client, rng: &mut TpccRng, key: Key) -> Result<()> {
        let (a, b) = (rng.uniform(1, ACCOUNTS), rng.uniform(1, ACCOUNTS));
        if a == b {
            return Ok(());
        }
        let moved = Moved {
            from: a,
            to: b,
            amount: rng.uniform_long(1, 50),
            bulk: rng.percent(2),
        };
        let roll_back = rng.percent(10);
        let mut transaction = client.transaction().map_err(from_client)?;
        transfer(&mut transaction, rng, key, moved).map_err(from_client)?;
        if roll_back {
            return transaction.rollback().map_err(from_client);
        }
        let commit = transaction.commit().map_err(from_client);
        let mut memory = self
            .memory
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        match commit {
            Ok(()) => {
                memory.acknowledged.insert(key, moved);
                Ok(())
            }
            Err(failure) => {
                if matches!(failure, Failure::Disconnected(_)) {
                    memory.in_flight.insert(key, moved);
                }
                Err(failure)
            }
        }
    }

    /// Compares the bank with its memory; returns the number of entries.
    pub fn verify(&self, target: &Target) -> Result<usize> {
        let mut client = target.client()?;
        let complain = |what: String| Err(Failure::unexpected(format!("the bank: {what}")));
        let mut memory = self
            .memory
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let entries = entries_of(&mut client, "bank_entry")?;
        let mirror = entries_of(&mut client, "bank_mirror")?;
        if entries != mirror {
            let torn = entries
                .keys()
                .chain(mirror.keys())
                .find(|key| entries.get(key) != mirror.get(key));
            return complain(format!(
                "entry {torn:?} is in one of two tables, or differs"
            ));
        }
        for (key, moved) in &memory.acknowledged {
            if entries.get(key) != Some(moved) {
                return complain(format!(
                    "{key:?} {moved:?} was acknowledged, found {:?}",
                    entries.get(key)
                ));
            }
        }
        for (key, moved) in &entries {
            let known = memory.acknowledged.get(key).or(memory.in_flight.get(key));
            if known != Some(moved) {
                return complain(format!("{key:?} {moved:?} is there, known is {known:?}"));
            }
        }
        balances_fit(&mut client, &entries)?;
        bulk_fits(&mut client, &entries)?;
        // What the crash decided stays decided.
        let settled = std::mem::take(&mut memory.in_flight);
        for (key, moved) in settled {
            if entries.contains_key(&key) {
                memory.acknowledged.insert(key, moved);
            }
        }
        Ok(entries.len())
    }
}

fn transfer(
    transaction: &mut Transaction<'_>,
    rng: &mut TpccRng,
    (who, seq): Key,
    moved: Moved,
) -> std::result::Result<(), postgres::Error> {
    // In order of account numbers, so that workers cannot deadlock.
    let (low, high) = (moved.from.min(moved.to), moved.from.max(moved.to));
    for id in [low, high] {
        transaction.query_one(
            "SELECT balance FROM bank_account WHERE id = $1 FOR UPDATE",
            &[&id],
        )?;
    }
    if rng.percent(20) {
        let mut inner = transaction.transaction()?;
        inner.execute(
            "UPDATE bank_account SET balance = -1, branch = 99 WHERE id = $1",
            &[&high],
        )?;
        inner.execute("DELETE FROM bank_account WHERE id = $1", &[&low])?;
        insert_entry(
            &mut inner,
            "bank_entry",
            who,
            seq,
            Moved {
                amount: -1,
                ..moved
            },
        )?;
        inner.rollback()?;
    }
    for (id, change) in [(moved.from, -moved.amount), (moved.to, moved.amount)] {
        let update = "UPDATE bank_account SET balance = balance + $2 WHERE id = $1";
        transaction.execute(update, &[&id, &change])?;
    }
    if rng.percent(15) {
        let update = "UPDATE bank_account SET branch = (branch + 1) % 10, note = $2 WHERE id = $1";
        transaction.execute(update, &[&low, &format!("{who}/{seq}")])?;
    }
    if rng.percent(10) {
        let delete = "DELETE FROM bank_account WHERE id = $1 RETURNING branch, balance, note";
        let row = transaction.query_one(delete, &[&high])?;
        let (branch, balance, note) = (
            row.get::<_, i32>(0),
            row.get::<_, i64>(1),
            row.get::<_, Option<String>>(2),
        );
        let insert = "INSERT INTO bank_account (id, branch, balance, note) VALUES ($1, $2, $3, $4)";
        transaction.execute(insert, &[&high, &branch, &balance, &note])?;
    }
    for table in ["bank_entry", "bank_mirror"] {
        insert_entry(transaction, table, who, seq, moved)?;
    }
    if moved.bulk {
        let insert = "INSERT INTO bank_bulk SELECT $1, $2, n, repeat('x', 200) \
                      FROM generate_series(1, $3::bigint) AS n";
        transaction.execute(insert, &[&who, &seq, &BULK_ROWS])?;
    }
    Ok(())
}

fn insert_entry(
    transaction: &mut Transaction<'_>,
    table: &str,
    who: i32,
    seq: i32,
    moved: Moved,
) -> std::result::Result<u64, postgres::Error> {
    let insert = format!("INSERT INTO {table} VALUES ($1, $2, $3, $4, $5, $6)");
    let Moved {
        from,
        to,
        amount,
        bulk,
    } = moved;
    transaction.execute(&insert, &[&who, &seq, &from, &to, &amount, &bulk])
}

fn entries_of(client: &mut Client, table: &str) -> Result<HashMap<Key, Moved>> {
    let query = format!("SELECT who, seq, from_id, to_id, amount, bulk FROM {table}");
    let rows = client.query(&query, &[]).map_err(from_client)?;
    let count = rows.len();
    let entries: HashMap<_, _> = rows
        .into_iter()
        .map(|row| {
            let moved = Moved {
                from: row.get(2),
                to: row.get(3),
                amount: row.get(4),
                bulk: row.get(5),
            };
            ((row.get(0), row.get(1)), moved)
        })
        .collect();
    if entries.len() != count {
        return Err(Failure::unexpected(format!("{table} has an entry twice")));
    }
    Ok(entries)
}

/// Every account holds what the entries say, seen over the table and over each index.
fn balances_fit(client: &mut Client, entries: &HashMap<Key, Moved>) -> Result<()> {
    let mut expected: HashMap<i32, i64> = (1..=ACCOUNTS).map(|id| (id, FIRST_BALANCE)).collect();
    for moved in entries.values() {
        *expected.entry(moved.from).or_default() -= moved.amount;
        *expected.entry(moved.to).or_default() += moved.amount;
    }
    let mut by_branch: HashMap<i32, i64> = HashMap::new();
    let rows = client
        .query("SELECT id, balance, branch FROM bank_account", &[])
        .map_err(from_client)?;
    if rows.len() != expected.len() {
        return Err(Failure::unexpected(format!(
            "the bank has {} accounts",
            rows.len()
        )));
    }
    for row in rows {
        let (id, balance, branch): (i32, i64, i32) = (row.get(0), row.get(1), row.get(2));
        if expected.get(&id) != Some(&balance) {
            let wanted = expected.get(&id);
            return Err(Failure::unexpected(format!(
                "account {id} has {balance}, not {wanted:?}"
            )));
        }
        let query = "SELECT balance FROM bank_account WHERE id = $1";
        let keyed: i64 = client.query_one(query, &[&id]).map_err(from_client)?.get(0);
        if keyed != balance {
            return Err(Failure::unexpected(format!(
                "account {id} has {keyed} by its key"
            )));
        }
        *by_branch.entry(branch).or_default() += 1;
    }
    for branch in 0..BRANCHES {
        let query =
            "SELECT count(*) FROM (SELECT id FROM bank_account WHERE branch = $1 ORDER BY id) AS b";
        let count: i64 = client
            .query_one(query, &[&branch])
            .map_err(from_client)?
            .get(0);
        let scanned = by_branch.get(&branch).copied().unwrap_or(0);
        if count != scanned {
            let what = format!("branch {branch} has {count} accounts by index, {scanned} by scan");
            return Err(Failure::unexpected(what));
        }
    }
    Ok(())
}

/// Large transactions are whole or absent.
fn bulk_fits(client: &mut Client, entries: &HashMap<Key, Moved>) -> Result<()> {
    let query = "SELECT who, seq, count(*), sum(n)::bigint FROM bank_bulk GROUP BY who, seq";
    let mut found = 0;
    for row in client.query(query, &[]).map_err(from_client)? {
        let key: Key = (row.get(0), row.get(1));
        let (count, sum): (i64, i64) = (row.get(2), row.get(3));
        let whole = count == BULK_ROWS && sum == BULK_ROWS * (BULK_ROWS + 1) / 2;
        if !whole || entries.get(&key).is_none_or(|moved| !moved.bulk) {
            return Err(Failure::unexpected(format!(
                "bulk {key:?} has {count} rows"
            )));
        }
        found += 1;
    }
    let expected = entries.values().filter(|moved| moved.bulk).count();
    if found != expected {
        return Err(Failure::unexpected(format!(
            "{found} of {expected} bulks are there"
        )));
    }
    Ok(())
}
