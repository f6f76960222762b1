//! Keys that rows get in an index that came after them: beside readers and writers, in the log, in
//! checkpoints, and where the log cannot be told.

mod common;

use common::{
    Fate, Me, NUMBER, Random, Row, Wal, World, body, check, computed, definition, engine, formed,
    reader, row, sweep,
};
use mot_engine::checkpoint::{
    self, CheckpointContext, CheckpointProgress, Pace, read_manifest, write,
};
use mot_engine::disk::DirectoryDisk;
use mot_engine::key::{Tail, without_tail};
use mot_engine::memory::Region;
use mot_engine::recovery::{Replayer, finish, load};
use mot_engine::{
    Build, CommandId, Entered, Log, Lsn, Newest, Reforms, RelationKey, RowId, Session, Standing,
    State, TableRef, Transaction, VersionRef, Written, Xid,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

const TABLE: RelationKey = RelationKey::of_file(1, 0, 100);
const BYTES: usize = 1 << 26;

fn new_row(a: i32, b: i32) -> Row {
    let c = (b % 3 != 0).then_some(b);
    Row { a, b, c }
}

struct Server {
    world: World,
    s: Session,
    wal: Wal,
    table: TableRef,
    _region: Region,
}

/// A transaction that is not over.
struct Open {
    me: Me,
    work: Transaction,
}

impl Server {
    fn new() -> Server {
        let (region, engine) = engine(BYTES);
        engine.set_state(State::Ready);
        let s = engine.join().unwrap();
        let world = World::new();
        let mut wal = Wal::default();
        let me = world.begin();
        let (mut work, xid) = (Transaction::new(), Xid(me.top));
        let table = work.create_table(&s, TABLE, xid).unwrap();
        let key = definition(101, true, &[(1, false)]);
        work.create_index(&s, &me, table, &key, xid).unwrap();
        wal.xid = me.top;
        work.log(&s, &mut wal).unwrap();
        me.end(Fate::Committed);
        work.commit(&s);
        Server {
            world,
            s,
            wal,
            table,
            _region: region,
        }
    }

    fn begin(&self) -> Open {
        Open {
            me: self.world.begin(),
            work: Transaction::new(),
        }
    }

    fn log(&mut self, open: &mut Open) {
        self.wal.xid = open.me.top;
        open.work.log(&self.s, &mut self.wal).unwrap();
    }

    fn end(&self, mut open: Open, fate: Fate) {
        open.me.end(fate);
        match fate {
            Fate::Committed => open.work.commit(&self.s),
            _ => open.work.abort(&self.s),
        }
    }

    fn commit(&mut self, mut open: Open) {
        self.log(&mut open);
        self.end(open, Fate::Committed);
    }

    fn insert(&mut self, new: &[u8]) -> RowId {
        let mut open = self.begin();
        let xid = Xid(open.me.top);
        let (row_id, version) = open
            .work
            .insert(&self.s, self.table, new, xid, CommandId(0))
            .unwrap();
        let entered = open
            .work
            .enter(&self.s, &open.me, self.table, row_id, version);
        assert_eq!(entered.unwrap(), Entered::Done);
        self.commit(open);
        row_id
    }

    /// Changes a row from a state that was seen.
    fn change(&self, open: &mut Open, row_id: RowId, seen: VersionRef, new: &[u8]) -> Written {
        let (s, table, xid) = (&self.s, self.table, Xid(open.me.top));
        let work = &mut open.work;
        let written = work.update(s, &open.me, table, row_id, seen, new, xid, CommandId(0));
        let written = written.unwrap();
        if let Written::Done(version) = written {
            let entered = work.enter(s, &open.me, table, row_id, version);
            assert_eq!(entered.unwrap(), Entered::Done);
        }
        written
    }

    fn current(&self, row_id: RowId) -> Option<VersionRef> {
        match self.s.newest(&reader(&self.world), self.table, row_id) {
            Newest::Live(version) => Some(version),
            _ => None,
        }
    }

    /// The rows that would get another tail, with it.
    fn lacking(&self, row_ids: impl Iterator<Item = RowId>) -> Reforms {
        let mut reforms = Reforms::new(NUMBER, Some(Vec::new()));
        for row_id in row_ids {
            let standing = self.s.standing(&reader(&self.world), self.table, row_id);
            let Standing::Committed(seen) = standing else {
                continue;
            };
            let wanted = Tail::of(&formed(row(seen.body()))).unwrap();
            if !wanted.is_last_in(seen.body(), NUMBER).unwrap() {
                reforms.add(row_id, seen, &wanted).unwrap();
            }
        }
        reforms
    }

    fn reform(&mut self, row_ids: impl Iterator<Item = RowId>) -> Vec<RowId> {
        let mut reforms = self.lacking(row_ids);
        self.put(&mut reforms);
        reforms.take_left().collect()
    }

    fn put(&mut self, reforms: &mut Reforms) {
        let next = || Xid(self.world.next());
        self.wal.xid = 0;
        let clock = reader(&self.world);
        self.s
            .reform(&clock, self.table, reforms, &mut self.wal, next)
            .unwrap();
    }

    fn all(&self) -> impl Iterator<Item = RowId> + use<> {
        (0..self.table.row_ids_end().0).map(RowId)
    }

    fn build(&mut self) -> Build {
        let mut open = self.begin();
        let (xid, index) = (Xid(open.me.top), computed(501, false));
        let built = open
            .work
            .create_index(&self.s, &open.me, self.table, &index, xid)
            .unwrap();
        self.commit(open);
        built
    }

    /// What another server makes of a checkpoint and some of the log; its rows' bodies.
    fn recovers(
        &self,
        disk: Option<(&DirectoryDisk, u64)>,
        records: &[(Lsn, Xid, Vec<u8>)],
    ) -> Vec<Option<Vec<u8>>> {
        let (_region, second) = engine(BYTES);
        if let Some((disk, generation)) = disk {
            second.set_state(State::Loading);
            let manifest = read_manifest(disk, generation).unwrap();
            load(second, disk, &manifest, 1).unwrap();
        }
        let session = second.join().unwrap();
        second.set_state(State::Replaying);
        let mut replayer = Replayer::new(1);
        for (lsn, xid, record) in records {
            replayer.apply(&session, record, *lsn, *xid).unwrap();
            // Once more: after a restart that began earlier.
            replayer.apply(&session, record, *lsn, *xid).unwrap();
        }
        let me = self.world.begin();
        finish(&session, &me, 1).unwrap();
        second.set_state(State::Ready);
        let table = session.find_table(TABLE, &me);
        let bodies = table.map_or(Vec::new(), |table| {
            check(&session, table, &me);
            bodies(&session, table, &me)
        });
        me.end(Fate::Committed);
        bodies
    }

    fn bodies(&self) -> Vec<Option<Vec<u8>>> {
        bodies(&self.s, self.table, &reader(&self.world))
    }

    fn checkpoint(&self, disk: &DirectoryDisk, generation: u64) {
        let end = Lsn(self.wal.end);
        let mut context = CheckpointContext {
            system_id: 1,
            timeline: 1,
            redo: end,
            generation,
            finished_below: self.world.horizon(),
            is_final: false,
            threads: 1,
            pace: Pace::unlimited(),
            progress: &CheckpointProgress::default(),
            outcomes: &mut |_| Ok(Vec::new()),
            flush: &mut |_| Ok(end),
        };
        write(&self.s, disk, &mut context).unwrap();
        checkpoint::remove_old(disk, 1, |_| false).unwrap();
    }
}

fn bodies(session: &Session, table: TableRef, me: &Me) -> Vec<Option<Vec<u8>>> {
    let row_ids = 0..table.row_ids_end().0;
    let body = |row_id| match session.newest(me, table, RowId(row_id)) {
        Newest::Live(version) => Some(version.body().to_vec()),
        _ => None,
    };
    let mut bodies: Vec<_> = row_ids.map(body).collect();
    // Row ids that were handed out to nobody yet.
    while bodies.last().is_some_and(Option::is_none) {
        bodies.pop();
    }
    bodies
}

fn versions(server: &Server) -> u64 {
    sweep(&server.s, &server.world, server.table);
    check(&server.s, server.table, &reader(&server.world)).versions
}

#[test]
fn a_row_stays_what_it_is_and_its_former_image_stays_for_who_may_read_it() {
    let mut server = Server::new();
    let row_id = server.insert(&body(new_row(1, 1)));
    let seen = server.current(row_id).unwrap();
    let old = reader(&server.world).snapshot(0);
    assert_eq!(server.reform(server.all()), []);
    let now = server.current(row_id).unwrap();
    assert_ne!(now, seen);
    assert_eq!((now.xid(), now.ordinal()), (seen.xid(), seen.ordinal()));
    assert_eq!(now.body(), formed(new_row(1, 1)));
    assert_eq!(server.s.visible(server.table, row_id, &old), Some(now));
    // Any number of transactions may end: the snapshot is from before.
    for a in 2..5 {
        server.insert(&formed(new_row(a, 1)));
    }
    assert_eq!(versions(&server), 5);
    assert_eq!(seen.body(), body(new_row(1, 1)));
    drop(old);
    assert_eq!(versions(&server), 4);
    assert!(matches!(server.build(), Build::Done(_)));
    check(&server.s, server.table, &reader(&server.world));
}

#[test]
fn a_build_passes_over_former_images() {
    let mut server = Server::new();
    for a in 0..10 {
        server.insert(&body(new_row(a, a)));
    }
    let _old = reader(&server.world).snapshot(0);
    server.reform(server.all());
    // Everybody finds all rows by it.
    assert!(matches!(server.build(), Build::Done(_)));
    check(&server.s, server.table, &reader(&server.world));
    assert_eq!(server.recovers(None, &server.wal.records), server.bodies());
}

#[test]
fn who_has_seen_the_former_image_may_change_and_lock_the_row() {
    let mut server = Server::new();
    let row_id = server.insert(&body(new_row(1, 1)));
    let seen = server.current(row_id).unwrap();
    let _old = reader(&server.world).snapshot(0);
    server.reform(server.all());
    server.reform(server.all());
    let mut open = server.begin();
    let locked = open.work.lock(
        &server.s,
        &open.me,
        server.table,
        row_id,
        seen,
        mot_engine::LockStrength::Update,
        Xid(open.me.top),
    );
    assert_eq!(locked.unwrap(), mot_engine::transaction::Locked::Done);
    let written = server.change(&mut open, row_id, seen, &formed(new_row(1, 2)));
    assert!(matches!(written, Written::Done(_)), "{written:?}");
    server.commit(open);
    let mut late = server.begin();
    let written = server.change(&mut late, row_id, seen, &formed(new_row(1, 3)));
    assert_eq!(written, Written::Changed);
    server.end(late, Fate::Aborted);
    assert_eq!(server.recovers(None, &server.wal.records), server.bodies());
}

#[test]
fn a_row_with_unfinished_work_is_left() {
    let mut server = Server::new();
    let row_id = server.insert(&body(new_row(1, 1)));
    let seen = server.current(row_id).unwrap();
    let mut open = server.begin();
    let mut reforms = server.lacking(server.all());
    server.change(&mut open, row_id, seen, &formed(new_row(1, 2)));
    let clock = reader(&server.world);
    let standing = server.s.standing(&clock, server.table, row_id);
    assert_eq!(standing, Standing::Under(seen, Xid(open.me.top)));
    server.put(&mut reforms);
    assert_eq!(reforms.take_left().collect::<Vec<_>>(), [row_id]);
    server.log(&mut open);
    server.end(open, Fate::Aborted);
    assert_eq!(server.current(row_id), Some(seen));
    assert_eq!(server.reform(server.all()), []);
    let mut open = server.begin();
    let now = server.current(row_id).unwrap();
    server.change(&mut open, row_id, now, &formed(new_row(1, 7)));
    server.commit(open);
    assert_eq!(server.recovers(None, &server.wal.records), server.bodies());
}

#[test]
fn entries_of_indexes_that_are_gone_go() {
    const GONE: u32 = 498;
    const KEPT: u32 = 499;
    let mut server = Server::new();
    let mut tail = Tail::default();
    tail.leave_out(GONE).unwrap();
    tail.leave_out(KEPT).unwrap();
    let mut new = Vec::new();
    tail.append_to(&body(new_row(1, 1)), &mut new).unwrap();
    let row_id = server.insert(&new);
    let seen = server.current(row_id).unwrap();
    let mut wanted = Tail::default();
    wanted.take_some(seen.body(), &[KEPT]).unwrap();
    wanted.leave_out(NUMBER).unwrap();
    let mut reforms = Reforms::new(NUMBER, Some(vec![KEPT]));
    reforms.add(row_id, seen, &wanted).unwrap();
    server.put(&mut reforms);
    assert_eq!(reforms.take_left().count(), 0);
    let now = server.current(row_id).unwrap();
    assert_eq!(now.body().len(), seen.body().len());
    let mut left = Tail::default();
    left.take_some(now.body(), &[GONE]).unwrap();
    assert_eq!(left.bytes(), 0);
    assert_eq!(server.recovers(None, &server.wal.records), server.bodies());
}

/// A log that fails, before or behind the record.
struct Failing<'a> {
    wal: &'a mut Wal,
    is_written: bool,
}

impl Log for Failing<'_> {
    fn append(&mut self, record: &[u8]) -> Lsn {
        if self.is_written {
            self.wal.append(record);
        }
        panic!("the log is full");
    }
}

#[test]
fn an_error_of_the_log_leaves_rows_that_are_logged_right() {
    for is_written in [false, true] {
        let mut server = Server::new();
        let row_ids = [0, 1].map(|a| server.insert(&body(new_row(a, 1))));
        let mut reforms = server.lacking(server.all());
        let clock = reader(&server.world);
        let failed = catch_unwind(AssertUnwindSafe(|| {
            let mut log = Failing {
                wal: &mut server.wal,
                is_written,
            };
            let next = || Xid(server.world.next());
            let (s, table) = (&server.s, server.table);
            s.reform(&clock, table, &mut reforms, &mut log, next)
        }));
        assert!(failed.is_err());
        let bare = body(new_row(0, 1));
        assert_eq!(server.current(row_ids[0]).unwrap().body(), bare);
        // One is changed before it gets its key after all, the other one behind it.
        for row_id in row_ids {
            let mut open = server.begin();
            let seen = server.current(row_id).unwrap();
            let new = formed(new_row(row_id.0 as i32, 1));
            server.change(&mut open, row_id, seen, &new);
            server.commit(open);
            assert_eq!(server.reform(server.all()), []);
        }
        assert_eq!(server.recovers(None, &server.wal.records), server.bodies());
    }
}

/// Replay that begins behind the index finds rows without keys in it.
#[test]
fn a_replay_enters_keys_in_an_index_that_is_there() {
    let mut server = Server::new();
    for a in 0..20 {
        server.insert(&body(new_row(a, a)));
    }
    let disk_at = tempfile::tempdir().unwrap();
    let disk = DirectoryDisk::open(disk_at.path()).unwrap();
    let (rows, redo) = (server.wal.records.len(), server.wal.end);
    server.reform(server.all());
    server.build();
    // The definitions first, as of a checkpoint that copied them late.
    let mut records = server.wal.records.clone();
    let definition = records.pop().unwrap();
    records.insert(rows, (Lsn(redo + 1), definition.1, definition.2));
    server.checkpoint(&disk, 1);
    assert_eq!(server.recovers(None, &records), server.bodies());
    let records = &server.wal.records[rows..];
    assert_eq!(server.recovers(Some((&disk, 1)), records), server.bodies());
}

/// Changes, rollbacks, row locks and checkpoints beside it, and crashes at each record.
#[test]
fn what_is_recovered_is_what_was() {
    for seed in 1..=40 {
        run(seed);
    }
}

fn run(seed: u64) {
    const ROWS: u64 = 12;
    let mut random = Random(seed * 7919);
    let mut server = Server::new();
    let disk_at = tempfile::tempdir().unwrap();
    let disk = DirectoryDisk::open(disk_at.path()).unwrap();
    let mut generation = 0;
    let mut has_index = false;
    let mut opens: Vec<Open> = Vec::new();
    for a in 0..ROWS {
        server.insert(&body(new_row(a as i32, a as i32)));
    }
    for step in 0..160 {
        // Writers know the index from here on.
        let is_known = step > 40;
        match random.below(8) {
            0..=2 => {
                let row_id = RowId(random.below(ROWS));
                if let Standing::Committed(seen) =
                    server
                        .s
                        .standing(&reader(&server.world), server.table, row_id)
                {
                    let b = random.below(50) as i32;
                    let new = new_row(row_id.0 as i32, b);
                    let new = if is_known { formed(new) } else { body(new) };
                    let mut open = server.begin();
                    server.change(&mut open, row_id, seen, &new);
                    match random.below(4) {
                        0 => server.end(open, Fate::Aborted),
                        1 => {
                            server.log(&mut open);
                            server.end(open, Fate::Aborted);
                        }
                        2 if is_known => opens.push(open),
                        _ => server.commit(open),
                    }
                }
            }
            3 if !opens.is_empty() => {
                let at = random.below(opens.len() as u64) as usize;
                let mut open = opens.swap_remove(at);
                match random.below(3) {
                    0 => server.commit(open),
                    1 => {
                        server.log(&mut open);
                        server.end(open, Fate::Aborted);
                    }
                    _ => server.end(open, Fate::Aborted),
                }
            }
            4 | 5 if is_known && !has_index => {
                let from = random.below(ROWS);
                let mut reforms = server.lacking((from..ROWS.min(from + 4)).map(RowId));
                // Others come in between.
                if random.one_in(2)
                    && let row_id = RowId(random.below(ROWS))
                    && let Standing::Committed(seen) =
                        server
                            .s
                            .standing(&reader(&server.world), server.table, row_id)
                {
                    let mut open = server.begin();
                    let new = formed(new_row(row_id.0 as i32, 7));
                    server.change(&mut open, row_id, seen, &new);
                    server.end(open, Fate::Aborted);
                }
                server.put(&mut reforms);
            }
            6 if opens.is_empty() || random.one_in(2) => {
                generation += 1;
                server.checkpoint(&disk, generation);
                let base = generation;
                let from = Some((&disk, base));
                if opens.is_empty() {
                    assert_eq!(server.recovers(from, &server.wal.records), server.bodies());
                }
            }
            _ => sweep(&server.s, &server.world, server.table),
        }
        if step == 120 {
            opens
                .drain(..)
                .for_each(|open| server.end(open, Fate::Aborted));
            assert_eq!(server.reform(server.all()), []);
            server.build();
            has_index = true;
        }
    }
    opens
        .drain(..)
        .for_each(|open| server.end(open, Fate::Aborted));
    check(&server.s, server.table, &reader(&server.world));
    for version in server.bodies().into_iter().flatten() {
        let whole = formed(row(&version));
        assert_eq!(without_tail(&version)[6..], without_tail(&whole)[6..]);
        assert_eq!(version.len(), whole.len());
    }
    let records = &server.wal.records;
    assert_eq!(server.recovers(None, records), server.bodies());
    if generation > 0 {
        let from = Some((&disk, generation));
        assert_eq!(server.recovers(from, records), server.bodies());
    }
    for end in (0..records.len()).step_by(5) {
        server.recovers(None, &records[..end]);
    }
}

/// A second builder of the same table, or a second try, computes anew what the first one left.
#[test]
fn two_builds_leave_each_other_their_keys() {
    let mut server = Server::new();
    let row_id = server.insert(&body(new_row(1, 1)));
    let mut first = server.lacking(server.all());
    let mut second = server.lacking(server.all());
    server.put(&mut first);
    assert_eq!(first.take_left().count(), 0);
    server.put(&mut second);
    assert_eq!(second.take_left().collect::<Vec<_>>(), [row_id]);
}
