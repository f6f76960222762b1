//! Checkpoints beside threads that write: rows and their LSNs must not come apart.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Replayer, finish, load};
use crate::checkpoint::{self, CheckpointContext, CheckpointProgress, Pace, read_manifest};
use crate::disk::simulated::SimulatedDisk;
use crate::engine::{Engine, State};
use crate::ids::{CommandId, Lsn, RelationKey, RowId, Xid};
use crate::memory::{ArenaOptions, HugePages, Memory, Region};
use crate::scan::RowScan;
use crate::transaction::{Log, Transaction, Written};
use crate::{Clock, Newest, Snapshot};

const ROWS_PER_THREAD: u64 = 8;
const WRITERS: u64 = 2;
const CHECKPOINTS: u64 = 12;
const KEY: RelationKey = RelationKey::of_file(1, 0, 2);

/// A record: its end, its transaction, its bytes.
type Record = (u64, u64, Vec<u8>);

#[derive(Default)]
struct Server {
    end: u64,
    records: Vec<Record>,
    running: BTreeSet<u64>,
    committed: HashSet<u64>,
}

struct Shared(Mutex<Server>);

impl Shared {
    fn with<R>(&self, work: impl FnOnce(&mut Server) -> R) -> R {
        work(&mut self.0.lock().expect("no thread panicked"))
    }
}

struct Asker<'a>(&'a Shared, u64);

impl Clock for Asker<'_> {
    fn is_current(&self, xid: Xid) -> bool {
        xid.0 == self.1
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        self.0.with(|server| server.running.contains(&xid.0))
    }
    fn did_commit(&self, xid: Xid) -> bool {
        self.0.with(|server| server.committed.contains(&xid.0))
    }
}

impl Snapshot for Asker<'_> {
    fn xmin(&self) -> Xid {
        Xid(u64::MAX)
    }
    fn own(&self, _xid: Xid, _cid: CommandId) -> Option<bool> {
        None
    }
    fn running(&self, _xid: Xid) -> bool {
        false
    }
    fn did_commit(&self, xid: Xid) -> bool {
        Clock::did_commit(self, xid)
    }
}

struct Appender<'a>(&'a Shared, u64);

impl Log for Appender<'_> {
    fn append(&mut self, record: &[u8]) -> Lsn {
        self.0.with(|server| {
            server.end += 40 + record.len() as u64;
            server.records.push((server.end, self.1, record.to_vec()));
            Lsn(server.end)
        })
    }
}

fn arena() -> (Region, Engine) {
    let region = Region::create(64 << 20, HugePages::Off).expect("memory");
    // SAFETY: the region is fresh and outlives the engine.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
    (region, Engine::format(memory).expect("formats"))
}

/// A body whose length and middle depend on the value, so that a difference against a wrong base
/// shows.
fn body(value: u64) -> Vec<u8> {
    let mut body = vec![0; 6];
    body[4] = 24;
    body.extend_from_slice(&value.to_le_bytes());
    body.extend(std::iter::repeat_n(value as u8, (value % 37) as usize));
    body.extend_from_slice(&[0xAB; 60]);
    body.extend_from_slice(&value.to_le_bytes());
    body
}

fn begin(shared: &Shared, next_xid: &AtomicU64) -> u64 {
    shared.with(|server| {
        let xid = next_xid.fetch_add(1, Ordering::Relaxed);
        server.running.insert(xid);
        xid
    })
}

fn commit(shared: &Shared, xid: u64) {
    shared.with(|server| {
        server.end += 30;
        server.running.remove(&xid);
        server.committed.insert(xid);
    });
}

#[test]
fn checkpoints_beside_writers_fit_the_log() {
    let shared = Shared(Mutex::default());
    let next_xid = AtomicU64::new(10);
    let (_region, engine) = arena();
    engine.set_state(State::Ready);
    let session = engine.join().expect("joins");
    let xid = begin(&shared, &next_xid);
    let mut transaction = Transaction::new();
    let table = transaction
        .create_table(&session, KEY, Xid(xid))
        .expect("memory");
    for value in 0..WRITERS * ROWS_PER_THREAD {
        let inserted = transaction.insert(
            &session,
            table,
            &body(value),
            Xid(xid),
            CommandId(value as u32),
        );
        inserted.expect("memory");
    }
    transaction
        .log(&session, &mut Appender(&shared, xid))
        .expect("logs");
    commit(&shared, xid);
    transaction.commit(&session);
    let row_ids: Vec<RowId> = {
        let mut scan = RowScan::new(table);
        let asker = Asker(&shared, 0);
        std::iter::from_fn(|| scan.next(&session, &asker).map(|(row_id, _)| row_id)).collect()
    };
    assert_eq!(row_ids.len() as u64, WRITERS * ROWS_PER_THREAD);

    let disk = SimulatedDisk::new(1);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (writer, mine) in row_ids.chunks(ROWS_PER_THREAD as usize).enumerate() {
            let (shared, next_xid, stop) = (&shared, &next_xid, &stop);
            scope.spawn(move || {
                let session = engine.join().expect("joins");
                let mut transaction = Transaction::new();
                let mut value = writer as u64 * 1_000_003;
                while !stop.load(Ordering::Relaxed) {
                    let xid = begin(shared, next_xid);
                    let asker = Asker(shared, xid);
                    let table = session.find_table(KEY, &asker).expect("exists");
                    for step in 0..4 {
                        value = value
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        let row_id = mine[(value >> 33) as usize % mine.len()];
                        let Newest::Live(seen) = session.newest(&asker, table, row_id) else {
                            panic!("nobody deletes");
                        };
                        let new = body(value >> 20);
                        let written = transaction
                            .update(
                                &session,
                                &asker,
                                table,
                                row_id,
                                seen,
                                &new,
                                Xid(xid),
                                CommandId(step),
                            )
                            .expect("memory");
                        assert!(matches!(
                            written,
                            Written::Done(_) | Written::SelfModified(_)
                        ));
                    }
                    if value >> 40 & 7 == 0 {
                        // Some are logged and rolled back all the same.
                        transaction
                            .log(&session, &mut Appender(shared, xid))
                            .expect("logs");
                        transaction.abort(&session);
                        shared.with(|server| server.running.remove(&xid));
                    } else {
                        transaction
                            .log(&session, &mut Appender(shared, xid))
                            .expect("logs");
                        commit(shared, xid);
                        transaction.commit(&session);
                    }
                    let oldest = shared.with(|server| server.running.first().copied());
                    engine.raise_horizon(Xid(oldest.unwrap_or(xid)));
                }
            });
        }
        for generation in 1..=CHECKPOINTS {
            let (redo, finished_below) = shared.with(|server| {
                let oldest = server.running.first().copied();
                (
                    server.end,
                    oldest.unwrap_or_else(|| next_xid.load(Ordering::Relaxed)),
                )
            });
            let progress = CheckpointProgress::default();
            let mut context = CheckpointContext {
                system_id: 1,
                timeline: 1,
                redo: Lsn(redo),
                generation,
                finished_below: Xid(finished_below),
                is_final: false,
                threads: 1,
                pace: Pace::unlimited(),
                progress: &progress,
                outcomes: &mut |_| Ok(Vec::new()),
                flush: &mut |_| Ok(Lsn(shared.with(|server| server.end))),
            };
            for _ in 0..40 {
                checkpoint::write(&session, &disk, &mut context).expect("writes");
                if shared.with(|server| server.end) > redo + 100_000 {
                    break;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });

    let rows = |session: &crate::Session| {
        let asker = Asker(&shared, 0);
        let table = session.find_table(KEY, &asker).expect("exists");
        let mut scan = RowScan::new(table);
        let mut rows = BTreeMap::new();
        while let Some((row_id, version)) = scan.next(session, &asker) {
            rows.insert(row_id, version.body().to_vec());
        }
        rows
    };
    let expected = rows(&session);
    for generation in 1..=CHECKPOINTS {
        let (_region, engine) = arena();
        engine.set_state(State::Replaying);
        let manifest = read_manifest(&disk, generation).expect("is whole");
        load(engine, &disk, &manifest, 1).expect("loads");
        let session = engine.join().expect("joins");
        let mut replayer = Replayer::new(2);
        let records = shared.with(|server| server.records.clone());
        for (lsn, xid, bytes) in &records {
            replayer
                .apply(&session, bytes, Lsn(*lsn), Xid(*xid))
                .unwrap_or_else(|error| panic!("generation {generation}: {error}"));
        }
        finish(&session, &Asker(&shared, 0), 1).expect("finishes");
        assert_eq!(rows(&session), expected, "generation {generation}");
    }
}
