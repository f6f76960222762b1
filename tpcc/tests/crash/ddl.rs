//! Tables made, truncated, dropped and left unmade around a crash.

use postgres::Client;
use tpcc::failure::{Failure, Result};
use tpcc::target::{Target, execute, from_client};

/// Rows a table gets when it is made, and after it was truncated in the round after.
const FIRST_ROWS: i64 = 300;
const SECOND_ROWS: i64 = 70;

fn create(target: &Target, name: &str) -> String {
    let columns = "id integer PRIMARY KEY, word text NOT NULL";
    target.engine.create(&format!("{name} ({columns})"))
}

fn fill(name: &str, rows: i64) -> String {
    format!("INSERT INTO {name} SELECT n, 'w' || n % 7 FROM generate_series(1, {rows}) AS n")
}

/// Makes this round's table, empties and refills the last round's, drops the one before.
pub fn prepare(target: &Target, round: u64) -> Result<()> {
    let mut client = target.client()?;
    let name = format!("made_{round}");
    execute(
        &mut client,
        &format!(
            "BEGIN; {}; {}; CREATE INDEX {name}_word ON {name} (word, id); COMMIT",
            create(target, &name),
            fill(&name, FIRST_ROWS)
        ),
    )?;
    if round >= 1 {
        let last = format!("made_{}", round - 1);
        let refill = fill(&last, SECOND_ROWS);
        execute(
            &mut client,
            &format!("BEGIN; TRUNCATE {last}; {refill}; COMMIT"),
        )?;
    }
    if round >= 2 {
        execute(&mut client, &format!("DROP TABLE made_{}", round - 2))?;
    }
    Ok(())
}

/// A session with a table, rows and a truncation that it never commits. The server's end is the
/// session's; until then it must be held.
pub fn leave_open(target: &Target, round: u64) -> Result<Client> {
    let mut client = target.client()?;
    let ghost = format!("ghost_{round}");
    let statements = format!(
        "BEGIN; {}; {}; TRUNCATE made_{round}; {}",
        create(target, &ghost),
        fill(&ghost, FIRST_ROWS),
        fill(&format!("made_{round}"), 5)
    );
    execute(&mut client, &statements)?;
    Ok(client)
}

/// What was committed is there, what was not is not.
pub fn verify(target: &Target, round: u64) -> Result<()> {
    let mut client = target.client()?;
    expect(&mut client, &format!("made_{round}"), FIRST_ROWS)?;
    if round >= 1 {
        expect(&mut client, &format!("made_{}", round - 1), SECOND_ROWS)?;
    }
    let query = "SELECT count(*) FROM pg_class WHERE relname LIKE 'ghost%' OR relname = $1";
    let dropped = format!("made_{}", round.wrapping_sub(2));
    let left: i64 = client
        .query_one(query, &[&dropped])
        .map_err(from_client)?
        .get(0);
    if left > 0 {
        return Err(Failure::unexpected(
            "a table that was dropped or never committed is there",
        ));
    }
    Ok(())
}

fn expect(client: &mut Client, name: &str, rows: i64) -> Result<()> {
    let queries = [
        (format!("SELECT count(*) FROM {name}"), rows),
        (
            format!("SELECT sum(id)::bigint FROM {name}"),
            rows * (rows + 1) / 2,
        ),
        (
            format!("SELECT count(*) FROM {name} WHERE word = 'w3'"),
            (rows + 4) / 7,
        ),
    ];
    for (query, expected) in queries {
        let found: i64 = client.query_one(&query, &[]).map_err(from_client)?.get(0);
        if found != expected {
            return Err(Failure::unexpected(format!(
                "{query} is {found}, not {expected}"
            )));
        }
    }
    Ok(())
}
