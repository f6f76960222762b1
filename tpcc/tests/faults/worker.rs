//! The checkpoint worker is ended, killed, stopped, or slow.

use crate::server::Server;
use tpcc::cluster::Shutdown;

#[test]
fn an_ended_worker_comes_again() {
    let mut server = Server::new(&[]);
    let ended = server.worker();
    let start = "SELECT pg_postmaster_start_time()::text";
    let started: String = server.client().query_one(start, &[]).expect("reads").get(0);
    assert!(
        server
            .cluster
            .signal_child(ended, libc::SIGTERM)
            .expect("runs")
    );
    server.wait_until(&format!(
        "SELECT worker_pid <> {ended} FROM mot.stat_checkpoint"
    ));
    server.add(100);
    server.run("CHECKPOINT");
    server.wait_until_covered();
    let again: String = server.client().query_one(start, &[]).expect("reads").get(0);
    assert_eq!(started, again);
    let log = server.wait_for_log(&["mot checkpoint complete"]);
    assert!(!log.contains("reinitializing"), "{log}");
    server.crash();
    server.verify();
}

#[test]
fn a_killed_worker_costs_a_recovery_and_no_row() {
    let mut server = Server::new(&[]);
    server.add(100);
    let worker = server.worker();
    server.forget_log();
    assert!(server.cluster.kill_child(worker).expect("runs"));
    server.wait_for_log(&["terminating any other active server processes"]);
    server.wait_for_log(&["database system is ready to accept connections"]);
    server.verify();
    server.add(100);
    server.run("CHECKPOINT");
    server.wait_until_covered();
    server.verify();
}

#[test]
fn a_stopped_worker_holds_checkpoints_and_nothing_else() {
    let mut server = Server::new(&[]);
    let worker = server.worker();
    assert!(
        server
            .cluster
            .signal_child(worker, libc::SIGSTOP)
            .expect("runs")
    );
    let checkpoint = server.checkpoint_in_background();
    server.wait_for_log(&["checkpoint starting", "immediate"]);
    for _ in 0..20 {
        server.add(50);
    }
    assert!(!checkpoint.is_finished());
    assert!(
        server
            .cluster
            .signal_child(worker, libc::SIGCONT)
            .expect("runs")
    );
    checkpoint.join().expect("no panic").expect("completes");
    server.wait_until_covered();
    server.crash();
    server.verify();
}

/// At this bandwidth the checkpoint would take an hour; nobody who waits for it has to wait that
/// long.
#[test]
fn a_slow_checkpoint_shows_its_progress_and_hurries_at_shutdown() {
    let mut server = Server::new(&[]);
    server.cluster.stop(Shutdown::Fast).expect("stops");
    server.cluster.set("mot.checkpoint_bandwidth", "8kB");
    server.cluster.start_and_wait().expect("starts");
    server.add(30_000);
    let checkpoint = server.checkpoint_in_background();
    server.wait_until(
        "SELECT count(*) = 1 FROM mot.stat_progress_checkpoint \
         WHERE phase = 'writing rows' AND bytes_written > 0 AND ranges_total = 2 AND ranges_done < 2 \
         AND tables_total = 1 AND tables_done = 0 AND started_at <= clock_timestamp() AND redo_lsn > '0/0' \
         AND pid = (SELECT worker_pid FROM mot.stat_checkpoint)",
    );
    server.add(10);
    assert!(!checkpoint.is_finished());
    server.forget_log();
    server.cluster.stop(Shutdown::Fast).expect("stops");
    // It had completed, or its session was ended first.
    let _ = checkpoint.join().expect("no panic");
    server.wait_for_log(&["mot checkpoint complete", "30510 rows"]);
    server.cluster.start_and_wait().expect("starts");
    server.verify();
}

/// At the same bandwidth: statements run after a crash though the checkpoint that follows would
/// take an hour, and crashes before it is complete lose nothing. The replay is shorter than the
/// worker's turns take to come to its slot, by which the WAL between is known to stay.
#[test]
fn recovery_does_not_wait_for_its_checkpoint() {
    const LAGS: &str =
        "SELECT s.covered_lsn < c.redo_lsn FROM mot.stat_checkpoint s, pg_control_checkpoint() c";
    let mut server = Server::new(&[]);
    server.cluster.stop(Shutdown::Fast).expect("stops");
    server.cluster.set("mot.checkpoint_bandwidth", "8kB");
    server.cluster.set("mot.test_switch", "skip-prompt-slot");
    server.cluster.start_and_wait().expect("starts");
    server.add(20_000);
    for more in [100, 0, 100] {
        let stayed = server.cluster.kill_postmaster().expect("runs");
        assert_eq!(stayed, 0, "an orphan would have kept the memory");
        server.cluster.start_and_wait().expect("starts");
        server.verify();
        // Not before a statement has read the table: where no WAL is to be replayed the worker
        // loads it, and what is covered is not known until then.
        assert!(server.is_true(LAGS));
        server.add(more);
    }
    server.crash();
    // PostgreSQL began after what its own checkpoint covers.
    assert!(server.is_true("SELECT gap_records > 0 FROM mot.stat_recovery"));
    server.verify();
    server.cluster.set("mot.checkpoint_bandwidth", "0");
    server.crash();
    server.wait_until_covered();
    server.crash();
    server.verify();
}

/// PostgreSQL's checkpointer sleeps between buffers, and ours is spread with it, when the
/// postmaster is killed: nobody stays to keep the shared memory from the next start.
#[test]
fn a_spread_checkpoint_does_not_outlive_the_postmaster() {
    const SPREAD: &str = "SELECT p.ranges_total > 1 AND p.ranges_done < p.ranges_total \
         AND a.wait_event = 'CheckpointWriteDelay' \
         FROM mot.stat_progress_checkpoint p, pg_stat_activity a \
         WHERE p.phase = 'writing rows' AND a.backend_type = 'checkpointer'";
    let mut server = Server::new(&[
        ("checkpoint_timeout", "30s"),
        ("checkpoint_completion_target", "0.9"),
        ("mot.checkpoint_workers", "2"),
        // On a busy machine ours would be done before PostgreSQL's has come to its first sleep, and
        // only then is it known that there is time.
        ("mot.checkpoint_bandwidth", "8MB"),
    ]);
    server.run("CREATE TABLE heap AS SELECT g FROM generate_series(1, 300000) g");
    server.add(70_000);
    server.wait_until(&format!(
        "SELECT coalesce(bool_and(s), false) FROM ({SPREAD}) AS p (s)"
    ));
    let stayed = server.cluster.kill_postmaster().expect("runs");
    assert_eq!(stayed, 0, "an orphan would have kept the memory");
    server.cluster.start_and_wait().expect("starts");
    server.verify();
}

/// A table that was dropped while a checkpoint is under way gives its memory back when its own rows
/// are written, or need not be.
#[test]
fn a_slow_checkpoint_does_not_keep_dropped_tables() {
    let mut server = Server::new(&[("mot.checkpoint_workers", "1")]);
    server.run(
        "CREATE FOREIGN TABLE gone (id int PRIMARY KEY, filler text) SERVER mot;
         INSERT INTO gone SELECT g, repeat('x', 1000) FROM generate_series(1, 30000) g;
         CHECKPOINT",
    );
    server.cluster.stop(Shutdown::Fast).expect("stops");
    server.cluster.set("mot.checkpoint_bandwidth", "8kB");
    server.cluster.start_and_wait().expect("starts");
    server.add(5_000);
    let checkpoint = server.checkpoint_in_background();
    const AT_IT: &str = "SELECT count(*) = 1 FROM mot.stat_progress_checkpoint \
         WHERE phase = 'writing rows' AND bytes_written > 0 AND ranges_done < ranges_total";
    server.wait_until(AT_IT);
    server.run("DROP FOREIGN TABLE gone");
    server.wait_until("SELECT row_bytes < 20000000 FROM mot.stat_memory");
    assert!(server.is_true(AT_IT));
    assert!(!checkpoint.is_finished());
    server.cluster.stop(Shutdown::Fast).expect("stops");
    let _ = checkpoint.join().expect("no panic");
    server.cluster.start_and_wait().expect("starts");
    server.verify();
}
