//! Replay into an arena that is too small: it stops with `ArenaFull`, and goes on when there is
//! room.

use super::{HandOver, ParallelReplayer, Replayer, finish};
use crate::Clock;
use crate::all_committed::AllCommitted;
use crate::engine::{Engine, State};
use crate::errors::EngineError;
use crate::ids::{FileKey, IndexId, Lsn, RelationKey, RowId, TableId, Xid};
use crate::key::{AttributeLayout, IndexDefinition, KeyColumn, KeyKind};
use crate::log::{Base, DefinitionsWriter, RowsWriter};
use crate::memory::{ArenaOptions, HugePages, Memory, Purpose, Region, Urgency};
use crate::row::Head;
use crate::scan::{Direction, IndexScan, KeyRange, RowScan};
use crate::session::Session;
use crate::table::Persistence;

const KEY: RelationKey = RelationKey::of_file(1, 0, 2);
const ROWS: u64 = 3000;
/// Small enough that blocks of all classes come one by one.
const BALLAST_BYTES: usize = 16 << 10;
/// Blocks given back at a time.
const BALLAST_STEP: usize = 4;

fn body(key: u32) -> Vec<u8> {
    let mut body = vec![1, 0, 0, 0, 24, 0];
    body.extend_from_slice(&key.to_le_bytes());
    body.resize(120, 7);
    body
}

fn with_replayed_table(test: impl FnOnce(Engine, &Session, &mut Replayer)) {
    let region = Region::create(32 << 20, HugePages::Off).expect("memory");
    // SAFETY: the region is fresh and outlives the engine.
    let memory = unsafe { Memory::format(&region, &ArenaOptions::default()) }.expect("formats");
    let engine = Engine::format(memory).expect("formats");
    engine.set_state(State::Replaying);
    let session = engine.join().expect("joins");
    let mut replayer = Replayer::new(2);

    let mut definitions = DefinitionsWriter::new();
    definitions
        .create_table(TableId(1), KEY, Persistence::Logged)
        .expect("memory");
    let definition = IndexDefinition {
        relation: 77,
        file: FileKey::NONE,
        unique: true,
        nulls_not_distinct: false,
        columns: vec![KeyColumn {
            attnum: 1,
            kind: KeyKind::Int4,
            descending: false,
            nulls_first: false,
            nullable: false,
            collation: None,
        }],
        layout: vec![AttributeLayout {
            len: 4,
            align: 4,
            by_value: true,
        }],
        missing: Vec::new(),
        computed: None,
    };
    definitions
        .create_index(IndexId(1), TableId(1), &definition)
        .expect("memory");
    replayer
        .apply(&session, definitions.record(), Lsn(8), Xid(5))
        .expect("has room");
    test(engine, &session, &mut replayer);
}

#[test]
fn a_full_arena_stops_replay_and_room_lets_it_go_on() {
    with_replayed_table(|_, session, replayer| fill_and_go_on(session, replayer));
}

/// What the primary's sessions cannot have any more is there for replay: rows come in another order
/// and with other leftovers.
#[test]
fn replay_may_use_the_reserve() {
    with_replayed_table(|engine, session, replayer| {
        let other = engine.join().expect("joins");
        let allocate = || {
            other
                .memory()
                .allocate(BALLAST_BYTES, Purpose::Rows, Urgency::Ordinary)
        };
        while allocate().is_ok() {}
        let mut rows = RowsWriter::new();
        for number in 0..ROWS {
            rows.clear();
            rows.insert(TableId(1), RowId(number), &body(number as u32))
                .expect("memory");
            replayer
                .apply(session, rows.record(), Lsn(16 + number * 8), Xid(6))
                .expect("has room");
        }
        assert!(allocate().is_err());
    });
}

/// A table that was dropped, freed and followed by another is no more than the server had: not
/// while statements may still see it, though.
#[test]
fn what_the_server_freed_makes_room() {
    for (workers, has_readers) in [(0, false), (2, false), (0, true)] {
        with_replayed_table(|_, session, _| {
            let mut replayer = ParallelReplayer::new(session.engine(), workers, 2);
            let how = HandOver {
                is_ahead: true,
                bytes_max: 1 << 20,
                has_readers,
            };
            let mut lsn = 16;
            let mut apply = |record: &[u8], xid| {
                lsn += 8;
                let applied = replayer.apply(session, record, Lsn(lsn), Xid(xid), how, &mut || {});
                applied.and_then(|()| replayer.drain(&mut || {}))
            };
            let mut outcome = Ok(());
            for table in 1..=8 {
                let mut definitions = DefinitionsWriter::new();
                definitions
                    .create_table(TableId(table), KEY, Persistence::Logged)
                    .expect("memory");
                outcome = outcome.and_then(|()| apply(definitions.record(), table));
                let mut rows = RowsWriter::new();
                for first in (0..30_000).step_by(100) {
                    rows.clear();
                    for row_id in first..first + 100 {
                        rows.insert(TableId(table), RowId(row_id), &body(row_id as u32))
                            .expect("memory");
                    }
                    outcome = outcome.and_then(|()| apply(rows.record(), table));
                }
                for free in [false, true] {
                    definitions.clear();
                    match free {
                        false => definitions.drop_table(TableId(table)),
                        true => definitions.free_table(TableId(table)),
                    }
                    .expect("memory");
                    outcome = outcome.and_then(|()| apply(definitions.record(), table));
                }
            }
            match outcome {
                Ok(()) => assert!(!has_readers, "the arena is too large for this test"),
                Err(EngineError::ArenaFull(_)) => assert!(has_readers, "with {workers} workers"),
                Err(error) => panic!("{error}"),
            }
        });
    }
}

/// As a table, an index: entries of the one that was freed make room for those of the next.
#[test]
fn an_index_that_the_server_freed_goes() {
    with_replayed_table(|_, session, replayer| {
        replayer.set_has_readers(false);
        let mut definitions = DefinitionsWriter::new();
        definitions
            .drop_index(IndexId(1), TableId(1))
            .expect("memory");
        definitions
            .free_index(IndexId(1), TableId(1))
            .expect("memory");
        // Of a table that is gone, too, or was never in the checkpoint.
        definitions
            .free_index(IndexId(1), TableId(0))
            .expect("memory");
        definitions.free_table(TableId(0)).expect("memory");
        replayer
            .apply(session, definitions.record(), Lsn(16), Xid(9))
            .expect("has room");
        let table = session.find_table(KEY, &AllCommitted).expect("exists");
        assert_eq!(table.all_indexes().count(), 0);
        assert_eq!(crate::transaction::free_pending(session, || ()), 1);
    });
}

/// Before any session reads on a standby, superseded versions are room, and those that transactions
/// still to end superseded are not.
#[test]
fn what_nobody_reads_makes_room() {
    struct Until(u64);
    impl Clock for Until {
        fn is_current(&self, _xid: Xid) -> bool {
            false
        }
        fn is_in_progress(&self, xid: Xid) -> bool {
            xid.0 > self.0
        }
        fn did_commit(&self, xid: Xid) -> bool {
            xid.0 <= self.0
        }
    }
    with_replayed_table(|engine, session, replayer| {
        let mut rows = RowsWriter::new();
        for number in 0..4 {
            rows.clear();
            rows.update(TableId(1), RowId(0), None, &body(number as u32))
                .expect("memory");
            replayer
                .apply(
                    session,
                    rows.record(),
                    Lsn(16 + number * 8),
                    Xid(6 + number),
                )
                .expect("has room");
        }
        // 6, 7 and 8 have committed; 9 may yet.
        let clock = Until(8);
        let table = session.find_table(KEY, &clock).expect("exists");
        let sweep = || session.sweep(&clock, table, true, || {});
        assert_eq!(sweep().versions_removed, 0);
        assert_eq!(session.while_nobody_reads(sweep).versions_removed, 2);
        assert_eq!(engine.horizon(), Xid::NONE);
        let newest = table.anchor(RowId(0)).expect("exists").head().version();
        let left: Vec<u64> = std::iter::successors(newest, crate::VersionRef::next)
            .map(|version| version.xid().0)
            .collect();
        assert_eq!(left, [9, 8]);
        assert_eq!(sweep().versions_removed, 0);
    });
}

/// A record of changes.
fn written(changes: impl FnOnce(&mut RowsWriter)) -> RowsWriter {
    let mut rows = RowsWriter::new();
    changes(&mut rows);
    rows
}

/// So is what was rolled back, which the server that wrote the log had taken out at once. What
/// comes behind it in the log fits all the same.
#[test]
fn what_was_rolled_back_makes_room() {
    /// These have ended where the log is. The others may yet commit.
    struct Ended {
        committed: &'static [u64],
        rolled_back: &'static [u64],
    }
    impl Clock for Ended {
        fn is_current(&self, _xid: Xid) -> bool {
            false
        }
        fn is_in_progress(&self, xid: Xid) -> bool {
            !self.committed.contains(&xid.0) && !self.rolled_back.contains(&xid.0)
        }
        fn did_commit(&self, xid: Xid) -> bool {
            self.committed.contains(&xid.0)
        }
    }
    with_replayed_table(|engine, session, replayer| {
        let mut apply = |lsn: u64, xid: u64, rows: RowsWriter| {
            replayer
                .apply(session, rows.record(), Lsn(lsn), Xid(xid))
                .expect("has room");
        };
        let update = |rows: &mut RowsWriter, key: u32| {
            rows.update(TableId(1), RowId(0), None, &body(key))
                .expect("memory");
        };
        let insert = |rows: &mut RowsWriter, row_id: u64, key: u32| {
            rows.insert(TableId(1), RowId(row_id), &body(key))
                .expect("memory");
        };
        apply(16, 6, written(|rows| insert(rows, 0, 100)));
        // Rolled back: a state with another key, and a row.
        let lost = written(|rows| {
            update(rows, 101);
            insert(rows, 1, 200);
        });
        apply(24, 7, lost);
        // Prepared: its end is still to come.
        apply(32, 8, written(|rows| update(rows, 102)));

        let before = Ended {
            committed: &[5, 6],
            rolled_back: &[7],
        };
        let table = session.find_table(KEY, &before).expect("exists");
        let sweep = |clock: &Ended| {
            let done = session.while_nobody_reads(|| session.sweep(clock, table, true, || {}));
            done.versions_removed
        };
        let head = |row_id: u64| table.anchor(RowId(row_id)).expect("exists").head();
        let chain = |row_id: u64| -> Vec<u64> {
            std::iter::successors(head(row_id).version(), crate::VersionRef::next)
                .map(|version| version.xid().0)
                .collect()
        };
        assert_eq!(sweep(&before), 2);
        assert_eq!(chain(0), [8, 6]);
        assert!(chain(1).is_empty());
        let after = Ended {
            committed: &[5, 6],
            rolled_back: &[7, 8],
        };
        assert_eq!(sweep(&after), 1);
        assert_eq!(chain(0), [6]);
        assert!(head(0).has(Head::FULL_IMAGE_NEXT));

        // The server logged the row whole then, and differences from there on; the row id had
        // become free.
        let whole = written(|rows| {
            update(rows, 101);
            insert(rows, 1, 201);
        });
        apply(40, 9, whole);
        assert!(!head(0).has(Head::FULL_IMAGE_NEXT));
        let last = body(101);
        let base = Base {
            lsn: Lsn(40),
            body: &last,
        };
        let difference = written(|rows| {
            rows.update(TableId(1), RowId(0), Some(base), &body(103))
                .expect("memory");
        });
        apply(48, 10, difference);
        let all = Ended {
            committed: &[5, 6, 9, 10],
            rolled_back: &[7, 8],
        };
        assert_eq!(sweep(&all), 2);
        finish(session, &all, 2).expect("finishes");
        engine.set_state(State::Ready);
        let found = |row_id: u64| head(row_id).version().expect("exists").body().to_vec();
        assert_eq!((chain(0), found(0)), (vec![10], body(103)));
        assert_eq!((chain(1), found(1)), (vec![9], body(201)));
        assert_eq!(table.row_count_estimate(), 2);
        let mut problems = Vec::new();
        let report = session.check(table, &all, |problem| problems.push(problem));
        assert_eq!(problems, []);
        assert_eq!(report.expect("looks at all").entries, 2);
    });
}

fn fill_and_go_on(session: &Session, replayer: &mut Replayer) {
    // Fill the arena up to the last span, then give it back in small pieces.
    let mut ballast = Vec::new();
    while let Ok(block) = session
        .memory()
        .allocate(BALLAST_BYTES, Purpose::Rows, Urgency::Reserve)
    {
        ballast.push(block);
    }
    let mut stops = 0;
    let mut keys = ROWS as u32;
    for number in 0..ROWS {
        let mut rows = RowsWriter::new();
        keys -= 1;
        rows.insert(TableId(1), RowId(number), &body(keys))
            .expect("memory");
        let lsn = Lsn(16 + number * 8);
        loop {
            match replayer.apply(session, rows.record(), lsn, Xid(6)) {
                Ok(()) => break,
                Err(EngineError::ArenaFull(_)) => {
                    stops += 1;
                    for _ in 0..BALLAST_STEP {
                        let block = ballast.pop().expect("the rows fit the whole arena");
                        // SAFETY: allocated above with this size; nothing else has it.
                        unsafe {
                            session.memory().free(block, BALLAST_BYTES, Purpose::Rows);
                        }
                    }
                }
                Err(error) => panic!("row {number}: {error}"),
            }
        }
        // A record that is there already changes nothing.
        replayer
            .apply(session, rows.record(), lsn, Xid(6))
            .expect("is skipped");
    }
    assert!(stops > 3, "the arena was full {stops} times only");

    finish(session, &AllCommitted, 2).expect("finishes");
    let table = session.find_table(KEY, &AllCommitted).expect("exists");
    let mut row_ids = 0;
    let mut scan = RowScan::new(table);
    while let Some((row_id, version)) = scan.next(session, &AllCommitted) {
        assert_eq!(row_id, RowId(row_ids));
        assert_eq!(version.body(), body((ROWS - 1 - row_ids) as u32));
        assert!(version.next().is_none(), "applied once");
        row_ids += 1;
    }
    assert_eq!(row_ids, ROWS);
    let index = session
        .find_index(table, 77, &AllCommitted)
        .expect("exists");
    let mut scan = IndexScan::new();
    scan.start(table, index, &KeyRange::new(), Direction::Forward);
    for row_id in (0..ROWS).rev() {
        let (found, _) = scan
            .next(session, &AllCommitted)
            .expect("scans")
            .expect("has more");
        assert_eq!(found, RowId(row_id));
    }
    assert!(scan.next(session, &AllCommitted).expect("scans").is_none());
}
