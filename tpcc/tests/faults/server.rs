//! A server with one table, and what it acknowledged.

use crate::tiny::Tiny;
use postgres::{Client, NoTls};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tpcc::cluster::{Cluster, Shutdown, scratch_directory};

/// Time anything awaited gets.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at it.
const POLL: Duration = Duration::from_millis(10);
/// Bytes of a row's filler: a thousand rows are a megabyte.
const FILLER_BYTES: usize = 1000;

/// A free name is found and taken by one test at a time.
static CREATING: Mutex<()> = Mutex::new(());

/// See the module.
pub struct Server {
    pub cluster: Cluster,
    /// Rows 1 to this are committed, and we were told so.
    acknowledged: i64,
    /// Bytes of the log that were looked at.
    log_seen: usize,
    /// Bytes of the log in which a crash of the server's own is no fault.
    log_forgiven: usize,
    tiny: Option<Tiny>,
}

impl Server {
    /// A new server with 500 rows in a checkpoint.
    pub fn new(settings: &[(&str, &str)]) -> Server {
        let mut all = vec![
            ("shared_preload_libraries", "mot"),
            ("mot.max_memory", "512MB"),
            ("shared_buffers", "32MB"),
        ];
        all.extend(settings);
        let mut cluster = {
            let _one = CREATING.lock().unwrap_or_else(|lock| lock.into_inner());
            Cluster::create(&scratch_directory("mot-faults"), None, &all).expect("initdb")
        };
        cluster.start_and_wait().expect("starts");
        let mut server = Server {
            cluster,
            acknowledged: 0,
            log_seen: 0,
            log_forgiven: 0,
            tiny: None,
        };
        server.run("CREATE EXTENSION mot");
        server.run("CREATE FOREIGN TABLE fact (id int PRIMARY KEY, filler text) SERVER mot");
        server.add(500);
        server.run("CHECKPOINT");
        server
    }

    /// Moves the checkpoints to a disk of their own. The server is restarted.
    pub fn with_tiny_disk(self, kib: u64) -> Server {
        let directory = self.directory();
        self.with_tiny(directory, kib)
    }

    /// Moves the write-ahead log to a disk of its own. The server is restarted.
    pub fn with_tiny_wal(self, kib: u64) -> Server {
        let directory = self.cluster.data().join("pg_wal");
        self.with_tiny(directory, kib)
    }

    fn with_tiny(mut self, directory: PathBuf, kib: u64) -> Server {
        self.cluster.stop(Shutdown::Fast).expect("stops");
        self.tiny = Some(Tiny::mount_over(&directory, kib));
        self.cluster.start_and_wait().expect("starts");
        self
    }

    pub fn tiny(&self) -> &Tiny {
        self.tiny.as_ref().expect("with_tiny_disk was called")
    }

    /// The checkpoints' directory.
    pub fn directory(&self) -> PathBuf {
        self.cluster.data().join("mot")
    }

    /// The names of the checkpoints' files, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory()).expect("exists");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry
                .expect("reads")
                .file_name()
                .into_string()
                .expect("text")
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.cluster.url(), NoTls).expect("connects")
    }

    pub fn run(&self, sql: &str) {
        self.client()
            .batch_execute(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// As `IS TRUE` has it: what is not known (NULL) is not true. A position of a worker that still
    /// loads is not, yet.
    pub fn is_true(&self, sql: &str) -> bool {
        let row = self.client().query_one(sql, &[]);
        let row = row.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        row.get::<_, Option<bool>>(0) == Some(true)
    }

    /// Commits so many more rows.
    pub fn add(&mut self, rows: i64) {
        let (first, last) = (self.acknowledged + 1, self.acknowledged + rows);
        self.run(&format!(
            "INSERT INTO fact SELECT g, repeat('x', {FILLER_BYTES}) FROM generate_series({first}, {last}) g"
        ));
        self.acknowledged = last;
    }

    /// Commits so many more rows, which may fail; then nobody knows whether they are there
    /// (`resolve`). Each takes its whole length in the log, where a row is told by its difference
    /// from the one before: those of `add` take a few bytes.
    pub fn try_add(&mut self, rows: i64) -> Result<(), postgres::Error> {
        let (first, last) = (self.acknowledged + 1, self.acknowledged + rows);
        let mut client = Client::connect(&self.cluster.url(), NoTls)?;
        client.batch_execute(&format!(
            "INSERT INTO fact SELECT g, left(repeat(md5(g::text), 32), {FILLER_BYTES}) FROM \
             generate_series({first}, {last}) g"
        ))?;
        self.acknowledged = last;
        Ok(())
    }

    /// After a `try_add` that failed: the rows are all there, or none.
    pub fn resolve(&mut self, rows: i64) {
        let all = self.acknowledged + rows;
        if self.is_true(&format!("SELECT max(id) = {all} FROM fact")) {
            self.acknowledged = all;
        }
    }

    /// Loses the server, and starts it again.
    pub fn crash(&mut self) {
        self.cluster.kill_postmaster().expect("runs");
        self.cluster.start_and_wait().expect("starts");
    }

    /// Everything acknowledged is there, and nothing else; the log tells of no crash that was not
    /// ours.
    pub fn verify(&self) {
        let row = self
            .client()
            .query_one(
                "SELECT count(*), max(id)::bigint, sum(length(filler)) FROM fact",
                &[],
            )
            .expect("reads");
        let n = self.acknowledged;
        let found: (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(found, (n, n, n * FILLER_BYTES as i64));
        self.run("SELECT mot.check('fact')");
        let log = self.log();
        let log = log.get(self.log_forgiven..).unwrap_or_default();
        for sign in [
            "PANIC:",
            "TRAP:",
            "by signal 6",
            "by signal 11",
            "panicked at",
        ] {
            assert!(!log.contains(sign), "{sign} in {log}");
        }
    }

    fn log(&self) -> String {
        let bytes = std::fs::read(self.cluster.log_path()).expect("reads");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What the server logs from here on counts for `wait_for_log`.
    pub fn forget_log(&mut self) {
        self.log_seen = self.log().len();
    }

    /// The server has crashed, and had to: `verify` looks at what is logged from here on.
    pub fn forgive_log(&mut self) {
        self.forget_log();
        self.log_forgiven = self.log_seen;
    }

    /// Waits until the log has a line with all of `texts`; gives what was logged since
    /// `forget_log`.
    pub fn wait_for_log(&self, texts: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let log = self.log();
            let new = log.get(self.log_seen..).unwrap_or_default();
            let has_all = |line: &str| texts.iter().all(|text| line.contains(text));
            if new.lines().any(has_all) {
                return new.to_owned();
            }
            assert!(Instant::now() < deadline, "no {texts:?} in the log: {new}");
            std::thread::sleep(POLL);
        }
    }

    /// Waits until `sql` gives true.
    pub fn wait_until(&self, sql: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.is_true(sql) {
            assert!(Instant::now() < deadline, "never: {sql}");
            std::thread::sleep(POLL);
        }
    }

    /// Waits until our newest checkpoint covers PostgreSQL's.
    pub fn wait_until_covered(&self) {
        self.wait_until(
            "SELECT s.covered_lsn >= c.redo_lsn FROM mot.stat_checkpoint s, pg_control_checkpoint() c",
        );
    }

    /// CHECKPOINT in a thread of its own: it may have to wait.
    pub fn checkpoint_in_background(&self) -> std::thread::JoinHandle<Result<(), postgres::Error>> {
        let mut client = self.client();
        std::thread::spawn(move || client.batch_execute("CHECKPOINT"))
    }

    /// The process number of the checkpoint worker.
    pub fn worker(&self) -> i32 {
        let titled = self.cluster.children_titled("postgres: mot checkpointer");
        let titled = titled.expect("reads processes");
        assert_eq!(titled.len(), 1, "{titled:?}");
        titled[0]
    }

    /// Starts the server, which must refuse to; gives the reason.
    pub fn refuses_to_start(&mut self) -> String {
        self.cluster.start().expect("the program runs");
        let refused = self.cluster.wait_until_ready("SELECT 1");
        refused.expect_err("must not start").to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.cluster.log_tail());
        }
        // The disk can be unmounted when nobody uses it. It may not be running.
        let _ = self.cluster.stop(Shutdown::Immediate);
        self.tiny = None;
    }
}
