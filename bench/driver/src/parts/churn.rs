//! Memory of a table whose rows are replaced by others of other lengths again and again, as in a
//! long day; then of the tenth that is left, and when it has been filled again with longer rows.

use super::Bench;
use crate::record::{Place, quantity};
use crate::rig::Rig;
use crate::side::Side;
use tpcc::failure::{Failure, Result};
use tpcc::target::{execute, from_client};

pub(crate) const PART: &str = "churn";
/// What the table takes, its two indexes included.
const WHOLE: &str = "table and indexes";
/// What of it are free blocks and the like, in which nothing lies
/// (`mot.stat_memory.block_bytes_free`).
const FREE: &str = "of that, free blocks";

/// Changes a row to one of another length and another key of the second index, or takes it out and
/// puts another in: each of `many` at random places. A transaction is a hundred such.
const PROCEDURE: &str = "CREATE PROCEDURE churn(many int, rows int) LANGUAGE plpgsql AS $$
DECLARE
    k bigint;
    length int;
BEGIN
    FOR i IN 1 .. many LOOP
        k := 1 + floor(random() * rows);
        length := 20 + floor(random() * 400);
        IF i % 4 = 0 THEN
            DELETE FROM churned WHERE id = k;
            INSERT INTO churned VALUES (k, md5(random()::text), repeat('i', length));
        ELSE
            UPDATE churned SET owner = md5(random()::text), payload = repeat('u', length) WHERE id = k;
        END IF;
        IF i % 100 = 0 THEN
            COMMIT;
        END IF;
    END LOOP;
END $$";

pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<()> {
    // Nothing of what earlier parts have dropped may go while the table grows and shrinks.
    bench.rig.restart()?;
    let (rows, times) = (bench.rig.plan.churn_rows, bench.rig.plan.churn_times);
    for side in [Side::Mot, Side::Heap] {
        let mut client = bench.rig.client(side)?;
        let columns = "churned (id bigint PRIMARY KEY, owner text NOT NULL, payload text NOT NULL)";
        let begin = match side {
            Side::Mot => used(bench.rig, side)?,
            _ => Used::default(),
        };
        let fill = format!(
            "INSERT INTO churned SELECT n, md5(n::text), repeat('f', (20 + n::bigint * 7919 % 400)::int) FROM \
             generate_series(1, {rows}) n"
        );
        for statement in [
            &side.create(columns),
            "CREATE INDEX ON churned (owner)",
            &fill,
            PROCEDURE,
        ] {
            execute(&mut client, statement)?;
        }
        let note = |bench: &mut Bench<'_>, setting: &str| -> Result<()> {
            let now = used(bench.rig, side)?;
            let mut add = |work, bytes: f64| {
                let place = Place::new(PART, work, setting);
                bench
                    .record
                    .add(&place, side, quantity::MEGABYTES, bytes / 1e6);
            };
            add(WHOLE, now.all - begin.all);
            if side == Side::Mot {
                add(FREE, now.free - begin.free);
            }
            Ok(())
        };
        note(bench, "filled")?;
        for time in 1..=times {
            bench.say(&format!("churn, {side}, {time} of {times}"));
            execute(&mut client, &format!("CALL churn({rows}, {rows})"))?;
            // The first ones, and each time that they have doubled.
            if (time as u32).is_power_of_two() || time == times {
                note(bench, &format!("each row replaced {time} times"))?;
            }
        }
        let left = format!("DELETE FROM churned WHERE id % 10 <> {}", times % 10);
        execute(&mut client, &left)?;
        note(bench, "nine rows of ten deleted")?;
        let longer = format!(
            "INSERT INTO churned SELECT n, md5(n::text), repeat('l', (420 + n::bigint * 7919 % 400)::int) FROM \
             generate_series(1, {rows}) n \
             ON CONFLICT (id) DO NOTHING"
        );
        execute(&mut client, &longer)?;
        note(bench, "filled again, rows twice as long")?;
        let there = client
            .query_one("SELECT count(*) FROM churned", &[])
            .map_err(from_client)?;
        if there.get::<_, i64>(0) != i64::from(rows) {
            return Err(Failure::unexpected(format!("{side} has lost rows")));
        }
    }
    bench.notes.push(format!(
        "{rows} rows of 20 to 420 bytes beside two keys, changed one by one in one session. MOT: growth of \
         arena_bytes_used, two seconds after \
         the last change; heap: sizes of files"
    ));
    Ok(())
}

/// Bytes.
#[derive(Clone, Copy, Default)]
struct Used {
    all: f64,
    free: f64,
}

/// What is used two seconds after the last change: an idle reclaimer looks twice a second, and
/// frees in the rounds after.
fn used(rig: &Rig, side: Side) -> Result<Used> {
    let mut client = rig.client(side)?;
    execute(&mut client, "SELECT pg_sleep(2)")?;
    let query = match side {
        Side::Mot => {
            "SELECT arena_bytes_used::float8, block_bytes_free::float8 FROM mot.stat_memory"
        }
        _ => "SELECT pg_total_relation_size('churned')::float8, 0::float8",
    };
    let row = client.query_one(query, &[]).map_err(from_client)?;
    Ok(Used {
        all: row.get(0),
        free: row.get(1),
    })
}
