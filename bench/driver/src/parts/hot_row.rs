//! Every client updates the same row.

use super::Bench;
use super::statements::writing;
use crate::pgbench::{self, Load};
use crate::record::Place;
use crate::side::{Side, turns};
use tpcc::failure::Result;
use tpcc::target::execute;

pub(crate) const PART: &str = "hot_row";
pub(crate) const WORK: &str = "update";
/// Clients that the goal speaks of.
pub(crate) const CLIENTS: u32 = 8;

const SCRIPT: &str = "UPDATE counter SET value = value + 1 WHERE id = 1;\n";

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let sides = [Side::Mot, Side::Heap];
    for side in sides {
        let mut client = bench.rig.client(side)?;
        execute(
            &mut client,
            &side.create("counter (id int PRIMARY KEY, value bigint NOT NULL)"),
        )?;
        execute(&mut client, "INSERT INTO counter VALUES (1, 0)")?;
        execute(&mut client, &side.settle("counter"))?;
    }
    let script = bench.rig.write_file("hot_row.sql", SCRIPT)?;
    for synchronous in [false, true] {
        let place = Place::new(PART, WORK, writing(CLIENTS, synchronous));
        for round in 0..bench.rig.plan.rounds {
            bench.rig.make_room_for_wal()?;
            for side in turns(&sides, round) {
                if side == Side::Heap {
                    execute(&mut bench.rig.client(side)?, "VACUUM counter")?;
                }
                let load = Load {
                    script: script.clone(),
                    clients: CLIENTS,
                    writes: true,
                    synchronous,
                    length: bench.rig.plan.statement,
                    variables: Vec::new(),
                };
                pgbench::measure(bench.rig, bench.record, &place, side, &load)?;
            }
        }
    }
    Ok(())
}
