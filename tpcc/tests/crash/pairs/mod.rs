//! Tables in pairs, a heap table and a memory-optimized one that the same transactions make,
//! write, lock, alter, rewrite and drop: logged, unlogged and temporary ones, keys of many types
//! and forms; definitions, rows and row locks in prepared transactions.
//!
//! The heap is the oracle. A transaction does to one table what it does to the other, and
//! PostgreSQL ends both at once. So whatever the moment at which the server goes away, both schemas
//! have the same tables with the same indexes and rows.

mod locks;
mod statements;

use crate::workers::{Round, Worker, Workers};
use postgres::Client;
use statements::{Work, draw};
use std::time::{Duration, Instant};
use tpcc::failure::{Failure, Result};
use tpcc::random::TpccRng;
use tpcc::target::{Target, execute, from_client};

/// Sessions, each with tables of its own.
const WORKERS: Workers = Workers {
    count: 2,
    stream: 3_000_000,
};
/// Prepared transactions that one session leaves open at a time.
const PREPARED_MAX: usize = 3;
/// Time the reclaimer gets to free what belongs to no table.
const FREEING_PATIENCE: Duration = Duration::from_secs(30);

/// Errors that the drawn statements may meet, each of which rolls its transaction back: a table,
/// column or index that is not there or is there already, keys, casts, locks of a prepared
/// transaction, what a prepared transaction may not have done, more indexes than there are places.
const EXPECTED: [&[u8; 5]; 13] = [
    b"42P01", b"42P07", b"42701", b"42703", b"42704", b"23505", b"22003", b"55P03", b"40P01",
    b"0A000", b"55006", b"2BP01", b"54011",
];

/// Makes the schemas and what both sides share.
pub fn open(target: &Target) -> Result<()> {
    let mut client = target.client()?;
    execute(
        &mut client,
        "CREATE SCHEMA pairs; CREATE SCHEMA pairs_heap; CREATE SCHEMA pairs_mot; \
         CREATE TYPE pairs.mood AS ENUM ('low', 'fair', 'high'); \
         CREATE TYPE pairs.named AS (number int, name text)",
    )
}

/// Runs transactions until the server goes away.
pub fn work(target: &Target, round: Round) -> Result<()> {
    let open = |worker| Session::open(target, worker);
    let step = |session: &mut Session, rng: &mut TpccRng, number| {
        let name = format!("pairs_{}_{number}", session.worker.who);
        session.one_transaction(rng, &name)
    };
    WORKERS.run(round, open, step)
}

/// One worker's connection.
struct Session {
    client: Client,
    worker: Worker,
    /// Access method of the side that is not heap.
    method: &'static str,
    /// Its prepared transactions that are open.
    prepared: Vec<String>,
}

impl Session {
    fn open(target: &Target, worker: Worker) -> Result<Self> {
        let mut client = target.client()?;
        execute(
            &mut client,
            "SET lock_timeout = '200ms'; SET client_min_messages = error",
        )?;
        Ok(Session {
            client,
            worker,
            method: if target.engine.is_mot() {
                "mot"
            } else {
                "heap"
            },
            prepared: Vec::new(),
        })
    }

    fn one_transaction(&mut self, rng: &mut TpccRng, name: &str) -> Result<()> {
        if self.prepared.len() >= PREPARED_MAX || (!self.prepared.is_empty() && rng.percent(40)) {
            let at = rng.uniform(0, self.prepared.len() as i32 - 1) as usize;
            let name = self.prepared.swap_remove(at);
            let verb = if rng.percent(60) {
                "COMMIT"
            } else {
                "ROLLBACK"
            };
            return execute(&mut self.client, &format!("{verb} PREPARED '{name}'"));
        }
        let end = match rng.uniform(1, 100) {
            1..=65 => "COMMIT".to_owned(),
            66..=80 => "ROLLBACK".to_owned(),
            _ => format!("PREPARE TRANSACTION '{name}'"),
        };
        let done = self.attempt(rng, &end);
        match done {
            Ok(()) if end.starts_with("PREPARE") => self.prepared.push(name.to_owned()),
            Err(Failure::Server { state, message }) => {
                execute(&mut self.client, "ROLLBACK")?;
                if !EXPECTED.contains(&&state.0) {
                    return Err(Failure::Server { state, message });
                }
            }
            other => return other,
        }
        Ok(())
    }

    fn attempt(&mut self, rng: &mut TpccRng, end: &str) -> Result<()> {
        execute(&mut self.client, "BEGIN")?;
        for _ in 0..rng.uniform(1, 4) {
            let table = format!("t{}_{}", self.worker.number, rng.uniform(0, 2));
            let work = draw(rng, &table, self.method);
            let is_undone = rng.percent(15);
            if is_undone {
                execute(&mut self.client, "SAVEPOINT before")?;
            }
            match work {
                Work::OnBoth(statement) => {
                    self.on("heap", "heap", &statement)?;
                    self.on("mot", self.method, &statement)?;
                }
                Work::OnMot(statement) => self.on("mot", self.method, &statement)?,
            }
            if is_undone {
                execute(&mut self.client, "ROLLBACK TO before")?;
            }
        }
        execute(&mut self.client, end)
    }

    fn on(&mut self, side: &str, method: &str, statement: &str) -> Result<()> {
        execute(
            &mut self.client,
            &format!(
                "SET LOCAL search_path = pairs_{side}; \
                 SET LOCAL default_table_access_method = {method}; {statement}"
            ),
        )
    }
}

/// What the pairs are.
#[derive(Default)]
pub struct Compared {
    tables: usize,
    rows: i64,
    /// Rows that prepared transactions held.
    held: i64,
}

impl std::fmt::Display for Compared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Compared { tables, rows, held } = self;
        write!(
            f,
            "{tables} pairs with {rows} rows, of which {held} were held"
        )
    }
}

/// Compares what prepared transactions hold, ends them, and compares both sides.
pub fn verify(target: &Target) -> Result<Compared> {
    let mut client = target.client()?;
    let (held, mut complaints) = locks::compare(&mut client)?;
    for row in query(
        &mut client,
        "SELECT gid, ('x' || substr(md5(gid), 1, 1))::bit(4)::int % 2 = 0 \
         FROM pg_prepared_xacts WHERE gid LIKE 'pairs%' ORDER BY md5(gid || 'order')",
    )? {
        let (name, commits): (String, bool) = (row.get(0), row.get(1));
        let verb = if commits { "COMMIT" } else { "ROLLBACK" };
        execute(&mut client, &format!("{verb} PREPARED '{name}'"))?;
    }
    let differences = query(&mut client, DIFFERENT_DEFINITIONS)?;
    let named = |row: &postgres::Row| row.get::<_, String>(0);
    complaints.extend(differences.iter().map(named));
    let tables = tables(&mut client)?;
    let mut rows = 0;
    for table in &tables {
        // Columns may have been dropped and added: the texts of rows leave out what is dropped.
        let all = |side: &str| format!("SELECT t::text FROM pairs_{side}.{table} t");
        let (heap, mot) = (all("heap"), all("mot"));
        let counts = query(
            &mut client,
            &format!(
                "SELECT (SELECT count(*) FROM pairs_heap.{table}), \
                        (SELECT count(*) FROM ({heap} EXCEPT ALL {mot}) d), \
                        (SELECT count(*) FROM ({mot} EXCEPT ALL {heap}) d)"
            ),
        )?;
        let [count, missing, more] = [0, 1, 2].map(|at| counts[0].get::<_, i64>(at));
        rows += count;
        if missing + more > 0 {
            complaints.push(format!(
                "{table}: of {count} rows {missing} are missing, and {more} are more"
            ));
        }
    }
    if target.engine.is_mot() {
        complaints.extend(checks(&mut client)?);
        complaints.extend(leaks(&mut client)?);
    }
    match complaints.is_empty() {
        true => Ok(Compared {
            tables: tables.len(),
            rows,
            held,
        }),
        false => Err(Failure::unexpected(complaints.join("\n"))),
    }
}

fn tables(client: &mut Client) -> Result<Vec<String>> {
    let found = query(
        client,
        "SELECT relname FROM pg_class \
         WHERE relnamespace = 'pairs_heap'::regnamespace AND relkind = 'r'",
    )?;
    Ok(found.iter().map(|row| row.get(0)).collect())
}

/// Tables, columns and indexes that only one side has.
const DIFFERENT_DEFINITIONS: &str = "
WITH defined AS (
  SELECT CASE nspname WHEN 'pairs_heap' THEN 'heap' ELSE 'mot' END AS side,
    format('%s %s %s: %s', relname, relkind, relpersistence, CASE relkind
      WHEN 'r' THEN (SELECT string_agg(format('%s %s', attname, atttypid::regtype), ', ' ORDER BY attname)
        FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
      ELSE regexp_replace(pg_get_indexdef(c.oid), 'pairs_\\w+\\.', '') END) AS what
  FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
  WHERE nspname IN ('pairs_heap', 'pairs_mot') AND relkind IN ('r', 'i'))
SELECT format('only on %s: %s', max(side), what) FROM defined GROUP BY what HAVING count(*) <> 2";

/// What `mot.check` says of the tables.
fn checks(client: &mut Client) -> Result<Vec<String>> {
    let tables = query(
        client,
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_am a ON a.oid = relam \
         WHERE relnamespace = 'pairs_mot'::regnamespace AND amname = 'mot'",
    )?;
    let mut complaints = Vec::new();
    for row in tables {
        let table: String = row.get(0);
        match query(client, &format!("SELECT mot.check('{table}')")) {
            Ok(_) => {}
            Err(Failure::Server { message, .. }) => {
                complaints.push(format!("mot.check of {table}: {message}"));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(complaints)
}

/// Storages of no table: the reclaimer frees those of a crash soon.
fn leaks(client: &mut Client) -> Result<Option<String>> {
    let start = Instant::now();
    loop {
        let left = query(
            client,
            "SELECT count(*) FROM mot.storages() s \
             WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.relfilenode = s.relation)",
        )?;
        let left: i64 = left[0].get(0);
        if left == 0 {
            return Ok(None);
        }
        if start.elapsed() > FREEING_PATIENCE {
            return Ok(Some(format!("{left} storages belong to no table")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn query(client: &mut Client, text: &str) -> Result<Vec<postgres::Row>> {
    client.query(text, &[]).map_err(from_client)
}
