//! A file of a checkpoint is damaged or missing.

use crate::server::Server;
use std::fs;
use std::path::{Path, PathBuf};
use tpcc::cluster::Shutdown;

/// What happens to a file; `undo` takes it back.
struct Damage {
    what: &'static str,
    path: PathBuf,
    whole: Vec<u8>,
}

impl Damage {
    /// Flips a bit in the middle, cuts the file, or removes it.
    fn to(path: &Path, what: &'static str) -> Damage {
        let whole = fs::read(path).expect("reads");
        let mut bytes = whole.clone();
        let middle = bytes.len() / 2;
        match what {
            "flip" => bytes[middle] ^= 1,
            "cut" => bytes.truncate(middle),
            _ => {}
        }
        // Written over in place, so that its owner stays.
        fs::write(path, &bytes).expect("writes");
        if what == "remove" {
            fs::rename(path, path.with_extension("away")).expect("renames");
        }
        Damage {
            what,
            path: path.into(),
            whole,
        }
    }

    fn undo(self) {
        if self.what == "remove" {
            fs::rename(self.path.with_extension("away"), &self.path).expect("renames");
        }
        fs::write(&self.path, self.whole).expect("writes");
    }
}

/// The newest manifest, and a file of rows that it needs though an older generation wrote it.
fn victims(server: &Server) -> (PathBuf, PathBuf) {
    let names = server.names();
    let of = |prefix: &str| {
        let mut all = names.iter().filter(|name| name.starts_with(prefix));
        server.directory().join(all.next_back().expect("exists"))
    };
    (of("manifest-"), of("rows-"))
}

#[test]
fn the_file_is_named_and_nothing_is_changed() {
    let mut server = Server::new(&[]);
    // Several generations, and the newest refers to an older one's file.
    server.run("SELECT pg_switch_wal(); CHECKPOINT; SELECT pg_switch_wal(); CHECKPOINT");
    let cases = [
        ("rows", "flip"),
        ("rows", "remove"),
        ("manifest", "flip"),
        ("manifest", "cut"),
    ];
    for (kind, what) in cases {
        let told = |text: &str, path: &Path| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .expect("text");
            let is_told = text.contains(&format!("mot/{name}"));
            assert!(is_told, "{what} of {name}: {text}");
        };
        let pick = |server: &Server| {
            let (manifest, rows) = victims(server);
            if kind == "rows" { rows } else { manifest }
        };
        // A clean start: the server is up, the tables are refused.
        server.cluster.stop(Shutdown::Fast).expect("stops");
        let path = pick(&server);
        let damage = Damage::to(&path, what);
        let before = server.names();
        server
            .cluster
            .start_and_wait()
            .expect("heap tables can be used");
        let read = server.client().batch_execute("SELECT count(*) FROM fact");
        let error = read.expect_err("is damaged");
        let error = error.as_db_error().expect("of the server");
        assert_eq!(error.code().code(), "XX001");
        told(error.detail().unwrap_or_default(), &path);
        assert!(
            error
                .hint()
                .unwrap_or_default()
                .contains("Put the damaged file back")
        );
        server.cluster.stop(Shutdown::Fast).expect("stops");
        assert_eq!(
            server.names(),
            before,
            "no checkpoint is written over what is there"
        );
        damage.undo();
        server.cluster.start_and_wait().expect("starts");
        server.verify();
        server.add(100);

        // A start after a crash: it is refused.
        server.cluster.kill_postmaster().expect("runs");
        let path = pick(&server);
        let damage = Damage::to(&path, what);
        let before = server.names();
        server.forget_log();
        server.refuses_to_start();
        let log = server.wait_for_log(&["FATAL", "could not be loaded"]);
        told(&log, &path);
        assert!(
            log.contains("HINT:  Put the damaged or missing file back"),
            "{log}"
        );
        assert_eq!(server.names(), before);
        damage.undo();
        server.cluster.start_and_wait().expect("starts");
        server.verify();
    }
}

/// Tables without rows would be a silent end.
#[test]
fn no_checkpoint_at_all_is_not_taken_for_a_new_cluster() {
    let mut server = Server::new(&[]);
    let away = server.cluster.data().join("mot-away");
    for is_clean in [true, false] {
        if is_clean {
            server.cluster.stop(Shutdown::Fast).expect("stops");
        } else {
            server.add(10);
            server.cluster.kill_postmaster().expect("runs");
        }
        fs::rename(server.directory(), &away).expect("renames");
        if is_clean {
            server
                .cluster
                .start_and_wait()
                .expect("heap tables can be used");
            let read = server.client().batch_execute("SELECT count(*) FROM fact");
            let error = read.expect_err("nothing is there");
            let error = error.as_db_error().expect("of the server");
            assert_eq!(error.code().code(), "XX001");
            let detail = error.detail().unwrap_or_default();
            assert!(detail.contains("\"mot\""), "{detail}");
            server.cluster.stop(Shutdown::Fast).expect("stops");
        } else {
            server.forget_log();
            server.refuses_to_start();
            server.wait_for_log(&["FATAL", "holds no checkpoint"]);
        }
        assert!(server.names().is_empty(), "no checkpoint is written");
        fs::remove_dir(server.directory()).expect("is empty");
        fs::rename(&away, server.directory()).expect("renames");
        server.cluster.start_and_wait().expect("starts");
        server.verify();
    }
}

/// While the server runs, files are only written and removed: what it cannot build upon it writes
/// anew.
#[test]
fn a_file_lost_while_the_server_runs_is_no_loss() {
    let mut server = Server::new(&[]);
    let (_, rows) = victims(&server);
    fs::remove_file(&rows).expect("removes");
    server.add(100);
    server.run("CHECKPOINT");
    let name = rows
        .file_name()
        .and_then(|name| name.to_str())
        .expect("text");
    let log = server.wait_for_log(&["WARNING", "whole checkpoint", name]);
    assert!(log.contains("Nothing is lost"), "{log}");
    server.crash();
    server.verify();
}
