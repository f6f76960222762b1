//! A work queue: many consumers take the oldest task under FOR UPDATE SKIP LOCKED and delete it,
//! each puts a new one in.
//!
//! The queue keeps its length, so every second of a run does the same work; each run begins with a
//! table filled anew. Removing from one end is what heap tables find hard: the index's dead entries
//! lie where everybody looks.

use super::Bench;
use super::statements::writing;
use crate::pgbench::{self, Load};
use crate::record::Place;
use crate::rig::Rig;
use crate::side::{Side, turns};
use tpcc::failure::{Failure, Result};
use tpcc::target::{execute, from_client};

pub(crate) const PART: &str = "queue";
const WORK: &str = "task";
const CONSUMERS: u32 = 32;
/// Tasks that wait at any time.
const TASKS: i64 = 10_000;

/// Taking, deleting and replacing a task is one transaction.
const SCRIPT: &str = "WITH done AS (DELETE FROM task WHERE id = \
    (SELECT id FROM task ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING payload) \
    INSERT INTO task SELECT nextval('ids'), payload FROM done;\n";

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let sides = [Side::Mot, Side::Heap];
    for side in sides {
        let mut client = bench.rig.client(side)?;
        execute(&mut client, "CREATE SEQUENCE ids CACHE 100")?;
        let columns = "task (id bigint PRIMARY KEY, payload text NOT NULL)";
        execute(&mut client, &side.create(columns))?;
    }
    let script = bench.rig.write_file("queue.sql", SCRIPT)?;
    for synchronous in [false, true] {
        let place = Place::new(PART, WORK, writing(CONSUMERS, synchronous));
        for round in 0..bench.rig.plan.rounds {
            bench.rig.make_room_for_wal()?;
            for side in turns(&sides, round) {
                fill(bench.rig, side)?;
                let load = Load {
                    script: script.clone(),
                    clients: CONSUMERS,
                    writes: true,
                    synchronous,
                    length: bench.rig.plan.statement,
                    variables: Vec::new(),
                };
                pgbench::measure(bench.rig, bench.record, &place, side, &load)?;
                check_length(bench.rig, side)?;
            }
        }
    }
    Ok(())
}

fn fill(rig: &Rig, side: Side) -> Result<()> {
    let mut client = rig.client(side)?;
    execute(&mut client, "TRUNCATE task")?;
    let fill = format!(
        "INSERT INTO task SELECT nextval('ids'), repeat('x', 100) FROM generate_series(1, {TASKS})"
    );
    execute(&mut client, &fill)?;
    execute(&mut client, &side.settle("task"))
}

/// Every transaction replaces the task it takes: another length would mean that two took the same
/// one.
fn check_length(rig: &Rig, side: Side) -> Result<()> {
    let row = rig
        .client(side)?
        .query_one("SELECT count(*) FROM task", &[]);
    let left: i64 = row.map_err(from_client)?.get(0);
    if left == TASKS {
        return Ok(());
    }
    Err(Failure::unexpected(format!(
        "{left} tasks are left of {TASKS}, {side}"
    )))
}
