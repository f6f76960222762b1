//! The disk refuses to make a checkpoint durable: an operation of the checkpoint worker answers
//! EIO, as `mot.fail_at` has it do in builds with debug assertions. What was written before such an
//! error may be lost or half there, so nothing of that attempt is ever built upon.

use crate::server::Server;
use tpcc::cluster::Shutdown;

/// The operation, and what the message calls what could not be made durable.
const CASES: [(&str, &str); 4] = [
    ("checkpoint-sync-rows", "\"mot/rows-"),
    ("checkpoint-sync-rows-directory", "\"mot\""),
    ("checkpoint-sync-manifest", "\"mot/manifest-"),
    ("checkpoint-sync-manifest-directory", "\"mot\""),
];

#[test]
fn what_could_not_be_synced_is_named_and_written_anew() {
    let mut server = Server::new(&[]);
    for (point, name) in CASES {
        for is_killed in [false, true] {
            server.add(100);
            server.wait_until_covered();
            let before = server.names();
            server.forget_log();
            server.run(&format!("SELECT mot.fail_at('{point}')"));
            // Completes: the slot keeps the WAL.
            server.run("CHECKPOINT");
            let log =
                server.wait_for_log(&["mot checkpoint at redo", "failed: could not sync", name]);
            assert!(log.contains("HINT:  It is tried again"), "{log}");
            let after = server.names();
            let is_kept = before.iter().all(|name| after.contains(name));
            assert!(is_kept, "{point}: {before:?} has become {after:?}");
            if point != "checkpoint-sync-manifest-directory" {
                assert_eq!(after, before, "nothing is left of the attempt");
            }
            if !is_killed {
                server.wait_until_covered();
                assert_ne!(server.names(), before);
            }
            server.crash();
            server.verify();
        }
    }
}

/// At a shutdown nobody tries again.
#[test]
fn a_last_checkpoint_that_could_not_be_synced_costs_a_replay() {
    let mut server = Server::new(&[]);
    for (point, name) in CASES {
        server.add(100);
        server.forget_log();
        // More than once: the first checkpoint after a start, or after room was asked for, may come
        // before the last one.
        server.run(&format!("SELECT mot.fail_at('{point}', 1000)"));
        server.cluster.stop(Shutdown::Fast).expect("stops");
        server.wait_for_log(&["failed: could not sync", name]);
        server.wait_for_log(&["mot could not write its last checkpoint"]);
        server.cluster.start_and_wait().expect("starts");
        server.verify();
    }
}
