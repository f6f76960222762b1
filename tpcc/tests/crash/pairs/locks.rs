//! Which rows prepared transactions hold: those that somebody else cannot lock.

use super::{query, tables};
use postgres::Client;
use tpcc::failure::{Failure, Result};
use tpcc::target::execute;

/// Rows that nobody may lock now; none of a table that a prepared transaction has for itself.
fn held(client: &mut Client, table: &str) -> Result<Option<Vec<i32>>> {
    execute(client, "BEGIN; SET LOCAL lock_timeout = '200ms'")?;
    let found = query(
        client,
        &format!(
            "WITH free AS MATERIALIZED (SELECT id FROM {table} FOR UPDATE SKIP LOCKED) \
             SELECT id FROM {table} EXCEPT ALL SELECT id FROM free ORDER BY id"
        ),
    );
    execute(client, "ROLLBACK")?;
    match found {
        Ok(rows) => Ok(Some(rows.iter().map(|row| row.get(0)).collect())),
        Err(Failure::Server { state, .. }) if &state.0 == b"55P03" => Ok(None),
        Err(other) => Err(other),
    }
}

/// Compares both sides. Returns how many rows there are that prepared transactions hold, and what
/// differs.
pub fn compare(client: &mut Client) -> Result<(i64, Vec<String>)> {
    let (mut rows, mut complaints) = (0, Vec::new());
    for table in tables(client)? {
        let heap = held(client, &format!("pairs_heap.{table}"))?;
        let mot = held(client, &format!("pairs_mot.{table}"))?;
        if let (Some(heap), Some(mot)) = (heap, mot) {
            rows += heap.len() as i64;
            if heap != mot {
                complaints.push(format!(
                    "{table}: rows {heap:?} are held, and on the other side {mot:?}"
                ));
            }
        }
    }
    Ok((rows, complaints))
}
