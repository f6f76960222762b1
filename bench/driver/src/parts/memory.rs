//! Memory of rows and index entries, filled in random order.

use super::Bench;
use crate::record::{Place, quantity};
use crate::side::Side;
use tpcc::failure::{Failure, Result};
use tpcc::target::{execute, from_client};

pub(crate) const PART: &str = "memory";
/// Bytes a row takes beyond its tuple.
pub(crate) const ROW_OVERHEAD: &str = "row, beyond its tuple";
/// Bytes of an index entry with a key of 8 bytes.
pub(crate) const ENTRY: &str = "index entry of an 8-byte key";
/// Bytes of a row with everything, its index included.
const WHOLE: &str = "row with its primary key, all";
/// The setting's name.
pub(crate) const SETTING: &str = "after random inserts";

/// Rows, then indexes, in bytes.
struct Sizes {
    all: f64,
    indexes: f64,
}

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    // Nothing of what earlier parts have dropped may go while the growth is measured.
    bench.rig.restart()?;
    let rows = bench.rig.plan.memory_rows;
    for side in [Side::Mot, Side::Heap] {
        let mut client = bench.rig.client(side)?;
        execute(
            &mut client,
            &side.create(
                "held (id bigint PRIMARY KEY, account bigint NOT NULL, delta bigint NOT NULL)",
            ),
        )?;
        let before = sizes(&mut client, side)?;
        execute(
            &mut client,
            &format!(
                "INSERT INTO held SELECT n, n, n FROM generate_series(1, {rows}) n ORDER BY hashint8(n)"
            ),
        )?;
        let after = sizes(&mut client, side)?;
        let tuple: f64 = client
            .query_one("SELECT avg(pg_column_size(held.*))::float8 FROM held", &[])
            .map_err(from_client)?
            .get(0);
        let indexes = (after.indexes - before.indexes) / rows as f64;
        let all = (after.all - before.all) / rows as f64;
        if all <= 0.0 || indexes <= 0.0 {
            return Err(Failure::unexpected(format!(
                "{rows} rows of {side} take {all} bytes each, index entries {indexes}: something else gave \
                 memory back meanwhile"
            )));
        }
        for (work, bytes) in [
            (ENTRY, indexes),
            (ROW_OVERHEAD, all - indexes - tuple),
            (WHOLE, all),
        ] {
            bench.record.add(
                &Place::new(PART, work, SETTING),
                side,
                quantity::BYTES,
                bytes,
            );
        }
    }
    bench.notes.push(
        "MOT: growth of mot.stat_memory's arena_bytes_used and index_bytes; heap: sizes of files; a tuple \
         includes PostgreSQL's header of \
         24 bytes"
            .into(),
    );
    Ok(())
}

fn sizes(client: &mut postgres::Client, side: Side) -> Result<Sizes> {
    let query = match side {
        Side::Mot => "SELECT arena_bytes_used::float8, index_bytes::float8 FROM mot.stat_memory",
        _ => "SELECT pg_total_relation_size('held')::float8, pg_indexes_size('held')::float8",
    };
    let row = client.query_one(query, &[]).map_err(from_client)?;
    Ok(Sizes {
        all: row.get(0),
        indexes: row.get(1),
    })
}
