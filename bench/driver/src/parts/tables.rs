//! What tables get from PostgreSQL itself: statements of many rows, MERGE, foreign keys.
//!
//! Statements are prepared, each is a transaction of its own with asynchronous commit. A figure of
//! a round is the median of its statements, so that a pause of the machine does not count.

use super::Bench;
use super::statements::writing;
use crate::pgbench::{self, Load};
use crate::record::{Place, quantity};
use crate::rig::Rig;
use crate::side::{Side, turns};
use postgres::Client;
use std::time::Instant;
use tpcc::failure::Result;
use tpcc::stats::median;
use tpcc::target::{execute, from_client};

pub(crate) const PART: &str = "tables";
/// Setting of what one session does alone.
pub(crate) const ONE_SESSION: &str = "one session";
/// What a foreign key adds to an INSERT in a PL/pgSQL loop.
pub(crate) const KEY_CHECK: &str = "key_check";
/// Sessions that insert children of one parent.
pub(crate) const HOT_PARENT: &str = "hot_parent";
/// Sessions of `HOT_PARENT`.
pub(crate) const CLIENTS: u32 = 8;

const SIDES: [Side; 2] = [Side::Mot, Side::Heap];
/// Rows of one statement.
const TOGETHER: i64 = 1000;

/// A statement of many rows: `$1` is the first id, and what puts the rows back is not timed.
pub(crate) struct Work {
    pub name: &'static str,
    statement: &'static str,
    put_back: Option<&'static str>,
}

pub(crate) const WORKS: [Work; 3] = [
    Work {
        name: "update_1000",
        statement: "UPDATE stock SET quantity = quantity - 1 WHERE id BETWEEN $1 AND $1 + 999",
        put_back: None,
    },
    Work {
        name: "delete_1000",
        statement: "DELETE FROM stock WHERE id BETWEEN $1 AND $1 + 999",
        put_back: Some(
            "INSERT INTO stock SELECT n, n % 100, 10, '' FROM generate_series($1::bigint, $1::bigint + 999) n",
        ),
    },
    // Half of the rows are there already.
    Work {
        name: "merge_1000",
        statement: "MERGE INTO stock USING \
                    (SELECT CASE WHEN id <= 500 THEN id - 1 ELSE id + 1000000000 END + $1::bigint AS id, \
                    quantity FROM delivered) d \
                    ON stock.id = d.id \
                    WHEN MATCHED THEN UPDATE SET quantity = stock.quantity + d.quantity \
                    WHEN NOT MATCHED THEN INSERT VALUES (d.id, 1, d.quantity, '')",
        put_back: Some("DELETE FROM stock WHERE id >= 1000000000 + $1::bigint"),
    },
];

const CHILDREN: &str = "\\set n :n + 1\n\\set id :client_id * 1000000000 + :n\n\
                        INSERT INTO child VALUES (:id, 1);\n";

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    for side in SIDES {
        fill(bench.rig, side)?;
    }
    for work in &WORKS {
        if bench.wants(work.name) {
            bench.say(&format!("tables {}", work.name));
            many_rows(bench, work)?;
        }
    }
    if bench.wants(KEY_CHECK) {
        bench.say("tables key_check");
        key_check(bench)?;
    }
    if bench.wants(HOT_PARENT) {
        bench.say("tables hot_parent");
        hot_parent(bench)?;
    }
    Ok(())
}

fn fill(rig: &Rig, side: Side) -> Result<()> {
    let mut client = rig.client(side)?;
    let rows = rig.plan.rows.max(TOGETHER);
    let key = "id bigint PRIMARY KEY, parent int NOT NULL";
    for table in [
        "stock (id bigint PRIMARY KEY, place int NOT NULL, quantity int NOT NULL, filler char(84) NOT NULL)".to_owned(),
        "delivered (id bigint PRIMARY KEY, quantity int NOT NULL)".to_owned(),
        "parent (id int PRIMARY KEY, name text NOT NULL)".to_owned(),
        format!("child ({key})"),
        format!("orphan ({key})"),
    ] {
        execute(&mut client, &side.create(&table))?;
    }
    for statement in [
        format!(
            "INSERT INTO stock SELECT n, n % 100, 10, '' FROM generate_series(1::bigint, {rows}) n"
        ),
        "CREATE INDEX ON stock (place)".to_owned(),
        format!("INSERT INTO delivered SELECT n, 5 FROM generate_series(1::bigint, {TOGETHER}) n"),
        "INSERT INTO parent SELECT n, 'parent ' || n FROM generate_series(1, 1000) n".to_owned(),
        "ALTER TABLE child ADD FOREIGN KEY (parent) REFERENCES parent".to_owned(),
    ] {
        execute(&mut client, &statement)?;
    }
    for table in ["child", "orphan"] {
        let definition = format!(
            "CREATE FUNCTION fill_{table}(length int) RETURNS double precision LANGUAGE plpgsql AS $$
             DECLARE
               began timestamptz := clock_timestamp();
             BEGIN
               FOR i IN 1..length LOOP
                 INSERT INTO {table} VALUES (i, i % 1000 + 1);
               END LOOP;
               RETURN extract(epoch FROM clock_timestamp() - began) * 1e6 / length;
             END $$"
        );
        execute(&mut client, &definition)?;
    }
    for table in ["stock", "delivered", "parent"] {
        execute(&mut client, &side.settle(table))?;
    }
    Ok(())
}

/// Before each run: heap tables are vacuumed, and what only grows is empty.
fn refresh(client: &mut Client, side: Side) -> Result<()> {
    execute(client, "SET synchronous_commit = off")?;
    execute(client, "TRUNCATE child, orphan")?;
    for table in ["stock", "parent"] {
        execute(client, &side.settle(table))?;
    }
    Ok(())
}

fn many_rows(bench: &mut Bench<'_>, work: &Work) -> Result<()> {
    let place = Place::new(PART, work.name, ONE_SESSION);
    let times = bench.rig.plan.many_rows_times;
    let groups = (bench.rig.plan.rows / TOGETHER).max(1);
    for round in 0..bench.rig.plan.rounds {
        bench.rig.make_room_for_wal()?;
        for side in turns(&SIDES, round) {
            let mut client = bench.rig.client(side)?;
            refresh(&mut client, side)?;
            let statement = client.prepare(work.statement).map_err(from_client)?;
            let mut milliseconds = Vec::new();
            for time in 0..times {
                let first = i64::from(time) * 7919 % groups * TOGETHER + 1;
                let begin = Instant::now();
                client.execute(&statement, &[&first]).map_err(from_client)?;
                milliseconds.push(begin.elapsed().as_secs_f64() * 1e3);
                if let Some(put_back) = work.put_back {
                    client.execute(put_back, &[&first]).map_err(from_client)?;
                }
            }
            let typical = median(milliseconds);
            bench
                .record
                .add(&place, side, quantity::MILLISECONDS, typical);
        }
    }
    Ok(())
}

fn key_check(bench: &mut Bench<'_>) -> Result<()> {
    let place = Place::new(PART, KEY_CHECK, ONE_SESSION);
    let length = bench.rig.plan.loop_length;
    for round in 0..bench.rig.plan.rounds {
        bench.rig.make_room_for_wal()?;
        for side in turns(&SIDES, round) {
            let mut client = bench.rig.client(side)?;
            refresh(&mut client, side)?;
            let mut each = |name: &str| -> Result<f64> {
                let query = format!("SELECT fill_{name}($1)");
                let row = client.query_one(&query, &[&length]);
                Ok(row.map_err(from_client)?.get(0))
            };
            let without = each("orphan")?;
            let check = (each("child")? - without).max(0.0);
            bench
                .record
                .add(&place, side, quantity::MICROSECONDS, check);
        }
    }
    Ok(())
}

fn hot_parent(bench: &mut Bench<'_>) -> Result<()> {
    let script = bench.rig.write_file("hot_parent.sql", CHILDREN)?;
    let place = Place::new(PART, HOT_PARENT, writing(CLIENTS, false));
    for round in 0..bench.rig.plan.rounds {
        bench.rig.make_room_for_wal()?;
        for side in turns(&SIDES, round) {
            refresh(&mut bench.rig.client(side)?, side)?;
            let load = Load {
                script: script.clone(),
                clients: CLIENTS,
                writes: true,
                synchronous: false,
                length: bench.rig.plan.statement,
                variables: vec![("n", 0)],
            };
            pgbench::measure(bench.rig, bench.record, &place, side, &load)?;
        }
    }
    Ok(())
}
