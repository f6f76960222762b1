//! Checkpoints that write only what was changed, on the engine itself: what is written again, what
//! is not, and why.

mod common;

use common::{Fate, Row, TABLE, Wal, World, body, check, definition, engine, sweep};
use mot_engine::checkpoint::{
    self, CheckpointContext, CheckpointProgress, Pace, Written, read_manifest, rows_name, write,
};
use mot_engine::disk::{DirectoryDisk, Disk};
use mot_engine::recovery::{Replayer, finish, load};
use mot_engine::{
    CommandId, Engine, Entered, Lsn, Newest, RowId, Session, State, TableRef, Transaction, Xid,
};
use std::cell::Cell;

/// Rows of the table: five ranges of 16,384 row ids, so that two of them can be changed without the
/// rest of their file being written anew.
const ROWS: i32 = 80_000;
const RANGES: u64 = 5;

struct Server {
    world: World,
    session: Session,
    wal: Wal,
    disk: DirectoryDisk,
    table: TableRef,
    generation: Cell<u64>,
    /// Rows that are deleted and swept.
    gone: u64,
    progress: CheckpointProgress,
    _directory: tempfile::TempDir,
    _region: mot_engine::memory::Region,
}

fn row(a: i32, b: i32) -> Row {
    Row { a, b, c: Some(7) }
}

impl Server {
    /// A server with [`ROWS`] rows, row ids in order, and no checkpoint.
    fn new() -> Server {
        let (region, engine) = engine(256 << 20);
        engine.set_state(State::Ready);
        let session = engine.join().unwrap();
        let world = World::new();
        let mut wal = Wal::default();
        let me = world.begin();
        let mut t = Transaction::new();
        let xid = Xid(me.top);
        let table = t.create_table(&session, TABLE, xid).unwrap();
        let key = definition(101, true, &[(1, false)]);
        t.create_index(&session, &me, table, &key, xid).unwrap();
        for a in 0..ROWS {
            let new = body(row(a, 0));
            let (row_id, version) = t.insert(&session, table, &new, xid, CommandId(0)).unwrap();
            assert_eq!(row_id, RowId(a as u64));
            let entered = t.enter(&session, &me, table, row_id, version).unwrap();
            assert_eq!(entered, Entered::Done);
        }
        wal.xid = me.top;
        t.log(&session, &mut wal).unwrap();
        me.end(Fate::Committed);
        t.commit(&session);
        let directory = tempfile::tempdir().unwrap();
        let disk = DirectoryDisk::open(directory.path()).unwrap();
        Server {
            world,
            session,
            wal,
            disk,
            table,
            generation: Cell::new(0),
            gone: 0,
            progress: CheckpointProgress::default(),
            _directory: directory,
            _region: region,
        }
    }

    fn checkpoint(&self) -> Written {
        let end = Lsn(self.wal.end);
        self.generation.set(self.generation.get() + 1);
        let mut context = CheckpointContext {
            system_id: 1,
            timeline: 1,
            redo: end,
            generation: self.generation.get(),
            finished_below: self.world.horizon(),
            is_final: false,
            threads: 1,
            pace: Pace::unlimited(),
            progress: &self.progress,
            outcomes: &mut |_| Ok(Vec::new()),
            flush: &mut |_| Ok(end),
        };
        let written = write(&self.session, &self.disk, &mut context).unwrap();
        assert_eq!(written.rows, ROWS as u64 - self.gone);
        assert_eq!(written.ranges + written.ranges_reused, RANGES);
        checkpoint::remove_old(&self.disk, 1, |_| false).unwrap();
        written
    }

    /// Logs an update of a row; the transaction is neither committed nor aborted.
    fn log_update(&mut self, row_id: u64, b: i32) -> (common::Me, Transaction) {
        let me = self.world.begin();
        let mut t = Transaction::new();
        let row_id = RowId(row_id);
        let Newest::Live(seen) = self.session.newest(&me, self.table, row_id) else {
            panic!("the row exists");
        };
        let (xid, new) = (Xid(me.top), body(row(row_id.0 as i32, b)));
        t.update(
            &self.session,
            &me,
            self.table,
            row_id,
            seen,
            &new,
            xid,
            CommandId(0),
        )
        .unwrap();
        self.wal.xid = me.top;
        t.log(&self.session, &mut self.wal).unwrap();
        (me, t)
    }

    fn update(&mut self, row_id: u64, b: i32) {
        let (me, mut t) = self.log_update(row_id, b);
        me.end(Fate::Committed);
        t.commit(&self.session);
    }

    /// Deletes rows; their row ids are free then.
    fn delete(&mut self, row_ids: &[u64]) {
        let me = self.world.begin();
        let mut t = Transaction::new();
        let xid = Xid(me.top);
        for row_id in row_ids.iter().copied().map(RowId) {
            let Newest::Live(seen) = self.session.newest(&me, self.table, row_id) else {
                panic!("the row exists");
            };
            t.delete(
                &self.session,
                &me,
                self.table,
                row_id,
                seen,
                xid,
                CommandId(0),
            )
            .unwrap();
        }
        self.wal.xid = me.top;
        t.log(&self.session, &mut self.wal).unwrap();
        me.end(Fate::Committed);
        t.commit(&self.session);
        sweep(&self.session, &self.world, self.table);
        self.gone += row_ids.len() as u64;
    }

    /// The newest checkpoint and the rest of the log in another engine give the rows of this one.
    fn recovers(&self) -> (mot_engine::memory::Region, Engine) {
        let (region, second) = engine(256 << 20);
        second.set_state(State::Loading);
        let manifest = read_manifest(&self.disk, self.generation.get()).unwrap();
        let loaded = load(second, &self.disk, &manifest, 2).unwrap();
        assert_eq!(loaded.rows, ROWS as u64 - self.gone);
        let session = second.join().unwrap();
        second.set_state(State::Replaying);
        let mut replayer = Replayer::new(1);
        for (lsn, xid, record) in &self.wal.records {
            replayer.apply(&session, record, *lsn, *xid).unwrap();
        }
        let me = self.world.begin();
        finish(&session, &me, 2).unwrap();
        second.set_state(State::Ready);
        let table = session.find_table(TABLE, &me).unwrap();
        for row_id in (0..ROWS as u64).map(RowId) {
            let found = |session: &Session, table| match session.newest(&me, table, row_id) {
                Newest::Live(version) => Some(version.body().to_vec()),
                _ => None,
            };
            assert_eq!(found(&session, table), found(&self.session, self.table));
        }
        check(&session, table, &me);
        me.end(Fate::Committed);
        (region, second)
    }
}

#[test]
fn only_ranges_with_a_change_are_written() {
    let mut server = Server::new();
    assert_eq!(server.checkpoint().ranges, RANGES);
    let idle = server.checkpoint();
    assert_eq!((idle.ranges, idle.bytes, idle.files), (0, 0, 0));
    assert!(idle.bytes_reused > ROWS as u64 * 20);
    server.update(16_384, 1);
    server.update(17_000, 2);
    let written = server.checkpoint();
    assert_eq!((written.ranges, written.files), (1, 1));
    server.update(0, 3);
    server.update(16_383, 4);
    assert_eq!(server.checkpoint().ranges, 1);
    assert_eq!(server.checkpoint().ranges, 0);
    server.update(5, 5);
    let recovered = server.recovers();
    // What was replayed counts as changed, what was loaded does not.
    let progress = CheckpointProgress::default();
    let end = Lsn(server.wal.end);
    let mut context = CheckpointContext {
        system_id: 1,
        timeline: 1,
        redo: end,
        generation: server.generation.get() + 1,
        finished_below: server.world.horizon(),
        is_final: false,
        threads: 1,
        pace: Pace::unlimited(),
        progress: &progress,
        outcomes: &mut |_| Ok(Vec::new()),
        flush: &mut |_| Ok(end),
    };
    let session = recovered.1.join().unwrap();
    let written = write(&session, &server.disk, &mut context).unwrap();
    assert_eq!((written.ranges, written.ranges_reused), (1, RANGES - 1));
}

#[test]
fn of_a_changed_range_only_changed_rows_are_written() {
    const STEP: usize = 100;
    let mut server = Server::new();
    let whole = server.checkpoint().bytes;
    let mut bytes = 0;
    for round in 0..20 {
        for row_id in (round * 37 % STEP..ROWS as usize).step_by(STEP) {
            server.update(row_id as u64, round as i32 + 1);
        }
        let written = server.checkpoint();
        assert_eq!((written.ranges, written.ranges_in_part), (RANGES, RANGES));
        bytes += written.bytes;
        if round == 0 {
            assert!(bytes * 40 < whole, "{bytes} of {whole}");
            server.recovers();
        }
    }
    // A hundredth of the rows twenty times, and what is merged.
    assert!(bytes < whole, "{bytes} of {whole}");
    server.recovers();
    // Half of a range's rows.
    for row_id in (0..16_384).step_by(2) {
        server.update(row_id, 99);
    }
    let written = server.checkpoint();
    assert_eq!((written.ranges, written.ranges_in_part), (1, 0));
    server.recovers();
}

/// Older files have it, so the newest must say that it is gone.
#[test]
fn a_row_that_is_gone_does_not_come_back() {
    let mut server = Server::new();
    server.checkpoint();
    server.delete(&[7, 20_000]);
    let written = server.checkpoint();
    assert_eq!((written.ranges, written.ranges_in_part), (2, 2));
    server.wal.records.clear();
    server.recovers();
    // Nor when what says so is written again with later changes.
    server.update(8, 1);
    server.update(20_001, 1);
    server.checkpoint();
    server.wal.records.clear();
    server.recovers();
}

/// Its outcome is known to the commit log only: the file must not be kept for long.
#[test]
fn row_ids_behind_the_last_row_are_given_out_again() {
    for (kept, end) in [(20_000, 1 << 15), (0, 0)] {
        let mut server = Server::new();
        server.delete(&(kept..ROWS as u64).collect::<Vec<_>>());
        server.checkpoint();
        // Nothing is to be replayed.
        server.wal.records.clear();
        let (_region, second) = server.recovers();
        let session = second.join().unwrap();
        let me = server.world.begin();
        let table = session.find_table(TABLE, &me).unwrap();
        // That of the last row's segment.
        assert_eq!(table.row_ids_end(), RowId(end));
        let mut t = Transaction::new();
        let new = body(row(1, 1));
        let inserted = t.insert(&session, table, &new, Xid(me.top), CommandId(0));
        assert_eq!(inserted.unwrap().0, RowId(kept));
        t.abort(&session);
        me.end(Fate::Aborted);
    }
}

#[test]
fn a_range_with_an_open_version_is_written_until_the_outcome_is_known() {
    for fate in [Fate::Committed, Fate::Aborted] {
        let mut server = Server::new();
        server.checkpoint();
        let (me, mut t) = server.log_update(100, 9);
        assert_eq!(server.checkpoint().ranges, 1, "changed");
        assert_eq!(server.checkpoint().ranges, 1, "open");
        assert_eq!(server.checkpoint().ranges, 1, "open still");
        me.end(fate);
        match fate {
            Fate::Aborted => t.abort(&server.session),
            _ => t.commit(&server.session),
        }
        assert_eq!(server.checkpoint().ranges, 1, "decided");
        assert_eq!(server.checkpoint().ranges, 0);
        server.recovers();
    }
}

#[test]
fn a_failed_attempt_forgets_no_change() {
    let mut server = Server::new();
    server.checkpoint();
    server.update(20_000, 1);
    let end = Lsn(server.wal.end);
    let generation = server.generation.get() + 1;
    server.generation.set(generation);
    let mut context = CheckpointContext {
        system_id: 1,
        timeline: 1,
        redo: end,
        generation,
        finished_below: server.world.horizon(),
        is_final: false,
        threads: 1,
        pace: Pace::unlimited(),
        progress: &server.progress,
        outcomes: &mut |_| Ok(Vec::new()),
        flush: &mut |_| Err(mot_engine::EngineError::OutOfProcessMemory),
    };
    write(&server.session, &server.disk, &mut context).unwrap_err();
    server.update(3, 1);
    assert_eq!(server.checkpoint().ranges, 2);
    server.recovers();
}

#[test]
fn a_base_that_cannot_be_read_is_not_built_upon() {
    let server = Server::new();
    server.checkpoint();
    server.disk.remove(&rows_name(1, 0)).unwrap();
    let written = server.checkpoint();
    assert_eq!(written.ranges, RANGES);
    let why = written.base_lost.expect("is told");
    assert!(why.contains(&rows_name(1, 0)), "{why}");
    assert_eq!(server.checkpoint().ranges, 0);
    server.recovers();
}
