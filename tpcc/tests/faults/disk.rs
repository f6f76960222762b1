//! The disk of the checkpoints is full.

use crate::server::Server;
use tpcc::cluster::Shutdown;

/// A size that the first 500 rows fit in, and its change.
const SMALL_KIB: u64 = 2 << 10;
const LARGE_KIB: u64 = 64 << 10;

#[test]
fn a_failed_checkpoint_is_tried_again_and_the_wal_is_kept() {
    let mut server = Server::new(&[]).with_tiny_disk(SMALL_KIB);
    let before = server.names();
    server.add(5000);
    // Completes: the slot keeps the WAL.
    server.run("CHECKPOINT");
    let log = server.wait_for_log(&[
        "mot checkpoint at redo",
        "failed",
        "\"mot/rows-",
        "No space",
    ]);
    assert!(log.contains("HINT:  It is tried again"), "{log}");
    assert!(server.is_true("SELECT checkpoints_failed > 0 FROM mot.stat_checkpoint"));
    assert!(server.is_true(
        "SELECT s.covered_lsn < c.redo_lsn FROM mot.stat_checkpoint s, pg_control_checkpoint() c"
    ));
    server.wait_until("SELECT count(*) = 0 FROM mot.stat_progress_checkpoint");
    assert_eq!(server.names(), before, "nothing is left of the attempt");
    // WAL files may go now, but not those that the tables need.
    server.run("SELECT pg_switch_wal(); CHECKPOINT; SELECT pg_switch_wal(); CHECKPOINT");
    server.crash();
    server.verify();
    // Neither can the last checkpoint be written.
    server.forget_log();
    server.cluster.stop(Shutdown::Fast).expect("stops");
    server.wait_for_log(&["mot could not write its last checkpoint"]);
    server.tiny().resize(LARGE_KIB);
    server.cluster.start_and_wait().expect("starts");
    server.verify();
    server.run("CHECKPOINT");
    server.wait_until_covered();
    assert_ne!(server.names(), before);
    server.crash();
    server.verify();
}

/// The server may take the slot's WAL away, so nothing keeps it but a checkpoint that does not
/// complete.
#[test]
fn postgresqls_checkpoint_waits_where_the_slot_is_no_guard() {
    let settings = [("max_slot_wal_keep_size", "16MB"), ("min_wal_size", "32MB")];
    let mut server = Server::new(&settings).with_tiny_disk(SMALL_KIB);
    server.add(5000);
    let checkpoint = server.checkpoint_in_background();
    let log = server.wait_for_log(&["mot checkpoint at redo", "failed", "No space"]);
    assert!(log.contains("max_slot_wal_keep_size is not -1"), "{log}");
    // Statements do not wait. More WAL than the slot may keep.
    for _ in 0..4 {
        server.add(16_000);
        server.run("SELECT pg_switch_wal()");
    }
    assert!(!checkpoint.is_finished());
    server.cluster.kill_postmaster().expect("runs");
    checkpoint
        .join()
        .expect("no panic")
        .expect_err("the server was killed");
    // Recovery ends with a checkpoint, which waits, too.
    server.forget_log();
    server.cluster.start().expect("the program runs");
    server.wait_for_log(&["mot checkpoint at redo", "failed", "No space"]);
    server.tiny().resize(256 << 10);
    server.cluster.wait_until_ready("SELECT 1").expect("starts");
    server.verify();
    server.run("CHECKPOINT");
    server.wait_until_covered();
    server.crash();
    server.verify();
}

#[test]
fn statements_wait_for_room_after_a_clean_start() {
    let mut server = Server::new(&[]).with_tiny_disk(SMALL_KIB);
    server.cluster.stop(Shutdown::Fast).expect("stops");
    let filler = server.tiny().fill();
    server.forget_log();
    server
        .cluster
        .start_and_wait()
        .expect("heap tables can be used");
    let log = server.wait_for_log(&["statements cannot begin", "\"mot/manifest-", "No space"]);
    assert!(log.contains("HINT:  It is tried again"), "{log}");
    let mut client = server.client();
    let read = client.batch_execute("SET mot.load_timeout = '10ms'; SELECT count(*) FROM fact");
    let error = read.expect_err("it is not ready");
    assert_eq!(
        error.code().map(|code| code.code()),
        Some("57P03"),
        "{error:?}"
    );
    // A shutdown meanwhile changes nothing.
    server.cluster.stop(Shutdown::Fast).expect("stops");
    server
        .cluster
        .start_and_wait()
        .expect("heap tables can be used");
    std::fs::remove_file(filler).expect("removes");
    server.verify();
    server.add(10);
    server.crash();
    server.verify();
}

/// PostgreSQL's own way with a full pg_wal: whoever cannot write there takes the server down, which
/// comes up when there is room. Nothing acknowledged is lost, and the transaction under way is
/// there as a whole or not at all.
#[test]
fn nothing_acknowledged_is_lost_when_the_log_has_no_room() {
    const ROWS: i64 = 2000;
    /// More than the disk has by far.
    const TRIES: usize = 3 * (LARGE_KIB >> 10) as usize / 2;
    let settings = [
        ("max_wal_size", "1GB"),
        ("min_wal_size", "32MB"),
        ("checkpoint_timeout", "1h"),
    ];
    let mut server = Server::new(&settings).with_tiny_wal(LARGE_KIB);
    server.forget_log();
    let failed = (0..TRIES).any(|_| server.try_add(ROWS).is_err());
    assert!(failed, "the disk has room for everything");
    let log = server.wait_for_log(&["PANIC", "\"pg_wal/", "No space left on device"]);
    assert!(!log.contains("panicked at"), "{log}");
    // It may be down already, for want of room to recover in, or try that still.
    server.cluster.kill_postmaster().expect("runs");
    server.tiny().resize(4 * LARGE_KIB);
    server.forgive_log();
    server.cluster.start_and_wait().expect("starts");
    server.resolve(ROWS);
    server.verify();
    server.add(ROWS);
    server.run("CHECKPOINT");
    server.wait_until_covered();
    server.crash();
    server.verify();
}
