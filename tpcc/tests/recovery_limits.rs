//! Recovery into too little memory: the server must say what it waits for and do as it is told
//! meanwhile, and nothing is lost.

use std::time::{Duration, Instant};
use tpcc::cluster::{Cluster, Shutdown, scratch_directory};
use tpcc::engine::Engine;
use tpcc::target::Target;

const ROWS: i64 = 200_000;
/// Time a replay of the rows below gets.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until the server's log, from byte `seen` on, has all of `texts`.
fn wait_for_log(cluster: &Cluster, seen: usize, texts: &[&str]) {
    let start = Instant::now();
    loop {
        let log = std::fs::read(cluster.log_path()).unwrap();
        let log = String::from_utf8_lossy(&log[seen..]).into_owned();
        if texts.iter().all(|text| log.contains(text)) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "no {texts:?} in {log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const FILL: &str =
    "INSERT INTO public.wide SELECT n, repeat('x', 400) FROM generate_series(1, $1::bigint) n";

/// A server with an empty table, and no checkpoints of its own accord.
fn started(name: &str, max_memory: &str) -> (Cluster, Target) {
    let settings = [
        ("shared_preload_libraries", "mot"),
        ("mot.max_memory", max_memory),
        ("max_wal_size", "4GB"),
        ("checkpoint_timeout", "1h"),
        ("max_prepared_transactions", "5"),
    ];
    let mut cluster = Cluster::create(&scratch_directory(name), None, &settings).unwrap();
    cluster.start_and_wait().unwrap();
    let target = cluster.target(Engine::Mot, None).unwrap();
    let create = "CREATE EXTENSION IF NOT EXISTS mot;
         CREATE FOREIGN TABLE public.wide (id int PRIMARY KEY, filler text) SERVER mot";
    target.client().unwrap().batch_execute(create).unwrap();
    (cluster, target)
}

/// A server without a checkpoint of its rows is killed and comes up with less memory than they
/// need: as a standby, and for itself.
#[test]
fn replay_waits_for_memory_and_can_be_stopped() {
    let (mut cluster, target) = started("mot-limits", "512MB");
    let mut client = target.client().unwrap();
    client.batch_execute("CHECKPOINT").unwrap();
    client.execute(FILL, &[&ROWS]).unwrap();
    drop(client);
    cluster.kill_postmaster().unwrap();

    cluster.set("mot.max_memory", "64MB");
    for standby in [true, false] {
        let signal = cluster.data().join("standby.signal");
        if standby {
            std::fs::write(&signal, "").unwrap();
        } else {
            std::fs::remove_file(&signal).unwrap();
        }
        let seen = std::fs::read(cluster.log_path()).unwrap().len();
        cluster.start().unwrap();
        let texts = [
            "replay of memory-optimized tables waits at",
            "mot.max_memory = 64 MB is used up",
            // The hint, whether the server can be read by then or not.
            "raise mot.max_memory",
        ];
        wait_for_log(&cluster, seen, &texts);
        // The startup process, or the worker in its place: with threads the last record may be the
        // one that waits, and then the startup process waits for the next one.
        let titled = |process: &str| {
            let title = format!("postgres: {process} waiting for mot.max_memory at");
            cluster.children_titled(&title).unwrap().len()
        };
        assert!(titled("startup") + titled("mot checkpointer") >= 1);
        cluster.stop(Shutdown::Fast).unwrap();
        let log = std::fs::read(cluster.log_path()).unwrap();
        let log = String::from_utf8_lossy(&log[seen..]).into_owned();
        assert!(
            !log.contains("PANIC") && !log.contains("by signal"),
            "{log}"
        );
    }

    cluster.set("mot.max_memory", "512MB");
    cluster.start_and_wait().unwrap();
    let mut client = target.client().unwrap();
    let row = client
        .query_one("SELECT count(*), sum(id::bigint) FROM public.wide", &[])
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), ROWS);
    client
        .batch_execute("SELECT * FROM mot.check('public.wide')")
        .unwrap();
    let row = client
        .query_one(
            "SELECT changes_replayed, waits_for_memory FROM mot.stat_recovery",
            &[],
        )
        .unwrap();
    assert!(row.get::<_, i64>(0) >= ROWS);
    assert!(!row.get::<_, bool>(1));
}

/// What a server had room for it must have room for when it recovers: a table that was truncated
/// and filled again since the last checkpoint.
#[test]
fn a_table_filled_again_is_recovered_in_the_same_memory() {
    const ROWS: i64 = 70_000;
    let (mut cluster, target) = started("mot-refill", "64MB");
    let mut client = target.client().unwrap();
    client.execute(FILL, &[&ROWS]).unwrap();
    client.batch_execute("CHECKPOINT").unwrap();
    client.batch_execute("TRUNCATE public.wide").unwrap();
    // The reclaimer frees the old rows in its own time.
    let start = Instant::now();
    while client.execute(FILL, &[&ROWS]).is_err() {
        assert!(start.elapsed() < PATIENCE, "there is no room");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(client);
    cluster.kill_postmaster().unwrap();
    cluster.start_and_wait().unwrap();
    let mut client = target.client().unwrap();
    let row = client
        .query_one("SELECT count(*) FROM public.wide", &[])
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), ROWS);
}

/// So must a server that rolled back what was logged already: it had the memory again at once.
#[test]
fn changes_that_were_rolled_back_are_recovered_in_the_same_memory() {
    const ROWS: i64 = 40_000;
    let (mut cluster, target) = started("mot-rolled-back", "64MB");
    let mut client = target.client().unwrap();
    client.execute(FILL, &[&ROWS]).unwrap();
    client.batch_execute("CHECKPOINT").unwrap();
    for _ in 0..4 {
        // The reclaimer takes out in its own time what was rolled back before.
        let start = Instant::now();
        let prepare =
            "BEGIN; UPDATE public.wide SET filler = repeat('y', 400); PREPARE TRANSACTION 'lost'";
        while client.batch_execute(prepare).is_err() {
            client.batch_execute("ROLLBACK").unwrap();
            assert!(start.elapsed() < PATIENCE, "there is no room");
            std::thread::sleep(Duration::from_millis(20));
        }
        client.batch_execute("ROLLBACK PREPARED 'lost'").unwrap();
    }
    let start = Instant::now();
    let change = "UPDATE public.wide SET filler = 'z' WHERE id % 100 = 0";
    while client.batch_execute(change).is_err() {
        assert!(start.elapsed() < PATIENCE, "there is no room");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(client);
    cluster.kill_postmaster().unwrap();
    cluster.start_and_wait().unwrap();
    let mut client = target.client().unwrap();
    let row = client
        .query_one(
            "SELECT count(*), count(*) FILTER (WHERE filler = 'z'), count(*) FILTER (WHERE filler LIKE 'y%') \
             FROM public.wide",
            &[],
        )
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), ROWS);
    assert_eq!(row.get::<_, i64>(1), ROWS / 100);
    assert_eq!(row.get::<_, i64>(2), 0);
    client
        .batch_execute("SELECT * FROM mot.check('public.wide')")
        .unwrap();
}
