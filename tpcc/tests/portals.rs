//! Portals executed in parts, as drivers with a fetch size do it: whatever runs a statement, parts
//! and neighbours change nothing.

use postgres::Client;
use tpcc::cluster::{Cluster, Shutdown, scratch_directory};
use tpcc::engine::Engine;

/// Each takes one number and gives one text column.
const STATEMENTS: [&str; 5] = [
    "SELECT id::text FROM public.part_row WHERE id > $1::int ORDER BY id",
    "SELECT r.id || d.name FROM public.part_row r JOIN public.part_dim d USING (kind) WHERE r.id > $1::int \
     ORDER BY r.id",
    "SELECT kind || ':' || count(*) || ':' || sum(id) FROM public.part_row WHERE id > $1::int GROUP BY kind \
     ORDER BY kind",
    "SELECT id || coalesce(note, '-') FROM public.part_row WHERE id > $1::int ORDER BY note, id LIMIT 9",
    "UPDATE public.part_row SET note = note || 'x' WHERE id > $1::int AND id < 9 RETURNING id || coalesce(note, '-')",
];

/// More than the five executions after which PostgreSQL takes to the generic plan.
const ROUNDS: i32 = 9;

fn set_up(client: &mut Client) {
    client
        .batch_execute(
            "CREATE EXTENSION IF NOT EXISTS mot;
             CREATE FOREIGN TABLE public.part_row (id int PRIMARY KEY, kind int, note text) SERVER mot;
             CREATE FOREIGN TABLE public.part_dim (kind int PRIMARY KEY, name text) SERVER mot;
             INSERT INTO public.part_row SELECT i, i % 4, nullif('n' || i % 3, 'n0') FROM generate_series(1, 30) i;
             INSERT INTO public.part_dim SELECT i, ' of ' || i FROM generate_series(0, 3) i;
             SET enable_hashjoin = off; SET enable_mergejoin = off;",
        )
        .unwrap();
}

/// All rows that the portals give, read in turns and in parts of growing size; some are left before
/// their end.
fn read_in_turns(client: &mut Client, round: i32) -> Vec<String> {
    let prepared: Vec<_> = STATEMENTS
        .iter()
        .map(|text| client.prepare(text).unwrap())
        .collect();
    let mut seen = Vec::new();
    for first in 0..ROUNDS {
        let mut transaction = client.transaction().unwrap();
        // Each statement twice at a time.
        let portals: Vec<_> = prepared
            .iter()
            .chain(&prepared)
            .enumerate()
            .map(|(place, statement)| {
                let above = (first + place as i32 + round) % 24;
                transaction.bind(statement, &[&above]).unwrap()
            })
            .collect();
        for part in 1..=4 {
            for (place, portal) in portals.iter().enumerate() {
                let is_rest = part == 4 && (place as i32 + first) % 3 > 0;
                let rows_max = if is_rest { 0 } else { part };
                let rows = transaction.query_portal(portal, rows_max).unwrap();
                seen.extend(
                    rows.iter()
                        .map(|row| format!("{place} {}", row.get::<_, String>(0))),
                );
            }
        }
        transaction.rollback().unwrap();
    }
    seen
}

#[test]
fn parts_of_portals_are_the_same_however_a_statement_runs() {
    let settings = [
        ("shared_preload_libraries", "mot"),
        ("mot.max_memory", "128MB"),
    ];
    let directory = scratch_directory("mot-portals");
    let mut cluster = Cluster::create(&directory, None, &settings).unwrap();
    cluster.start_and_wait().unwrap();
    let target = cluster.target(Engine::Mot, None).unwrap();
    let mut client = target.client().unwrap();
    set_up(&mut client);
    for round in 0..2 {
        let mut read = |mode: &str| {
            client
                .batch_execute(&format!("SET mot.compiled_statements = {mode}"))
                .unwrap();
            read_in_turns(&mut client, round)
        };
        let general = read("off");
        assert!(general.len() > 500, "{} rows", general.len());
        assert_eq!(general, read("on"));
        assert_eq!(general, read("always"));
    }
    drop(client);
    cluster.stop(Shutdown::Fast).unwrap();
}
