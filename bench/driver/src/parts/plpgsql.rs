//! Statements in a PL/pgSQL loop, where no protocol stands between them: microseconds each, less
//! those of the empty loop.

use super::Bench;
use super::statements;
use crate::record::{Place, quantity};
use crate::rig::Rig;
use crate::side::{Side, turns};
use tpcc::failure::Result;
use tpcc::target::{execute, from_client};

pub(crate) const PART: &str = "plpgsql";
/// The setting's name.
pub(crate) const SETTING: &str = "one transaction";

/// Name and body of the loops; the first has none.
pub(crate) const LOOPS: [(&str, &str); 4] = [
    ("empty", ""),
    (
        "update",
        "UPDATE account SET balance = balance + 1 WHERE id = key;",
    ),
    (
        "select",
        "SELECT balance INTO found FROM account WHERE id = key;",
    ),
    (
        "insert",
        "INSERT INTO journal VALUES (i, key, 1, 'sixteen bytes ..');",
    ),
];

/// A loop as a function of its length and the number of rows.
fn definition(name: &str, body: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION loop_{name}(length int, rows bigint) RETURNS double precision LANGUAGE plpgsql AS $$
         DECLARE
           began timestamptz := clock_timestamp();
           key bigint;
           found bigint;
         BEGIN
           FOR i IN 1..length LOOP
             key := i::bigint * 7919 % rows + 1;
             {body}
           END LOOP;
           RETURN extract(epoch FROM clock_timestamp() - began) * 1e6 / length;
         END $$"
    )
}

/// Makes the loops' functions for the tables of `side`.
pub(crate) fn define(rig: &Rig, side: Side) -> Result<()> {
    let mut client = rig.client(side)?;
    let mut loops = LOOPS.iter();
    loops.try_for_each(|(name, body)| execute(&mut client, &definition(name, body)))
}

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let plan = bench.rig.plan.clone();
    let sides = [Side::Mot, Side::Heap];
    for side in sides {
        statements::fill(bench.rig, side)?;
        define(bench.rig, side)?;
    }
    for round in 0..plan.rounds {
        for side in turns(&sides, round) {
            let mut client = bench.rig.client(side)?;
            execute(&mut client, "SET synchronous_commit = off")?;
            let mut empty = 0.0;
            for (name, _) in LOOPS {
                execute(&mut client, "TRUNCATE journal")?;
                if side == Side::Heap {
                    execute(&mut client, "VACUUM account")?;
                }
                let query = format!("SELECT loop_{name}($1, $2)");
                let row = client
                    .query_one(&query, &[&plan.loop_length, &plan.rows])
                    .map_err(from_client)?;
                let each: f64 = row.get(0);
                if name == "empty" {
                    empty = each;
                }
                let net = if name == "empty" {
                    each
                } else {
                    (each - empty).max(0.0)
                };
                bench.record.add(
                    &Place::new(PART, name, SETTING),
                    side,
                    quantity::MICROSECONDS,
                    net,
                );
            }
        }
    }
    bench
        .notes
        .push("UPDATE, SELECT and INSERT without the loop's own time, which `empty` gives".into());
    Ok(())
}
