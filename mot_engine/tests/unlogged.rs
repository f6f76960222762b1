//! Tables whose rows are not logged, and tables of which nothing is: what the log and checkpoints
//! hold of them, and with what a start comes up.

mod common;

use common::{Fate, Row, Wal, World, body, check, definition, engine};
use mot_engine::checkpoint::{CheckpointContext, CheckpointProgress, Pace, read_manifest, write};
use mot_engine::disk::DirectoryDisk;
use mot_engine::log::{DefinitionChange, Record};
use mot_engine::memory::Region;
use mot_engine::recovery::{Replayer, finish_beside_prepared, load, load_after_shutdown};
use mot_engine::{
    CommandId, Engine, Entered, Lsn, Newest, Persistence, RelationKey, RowId, Session, State,
    TableRef, Transaction, Xid,
};

/// Tables that a start may find.
const KEPT: &[Persistence] = &[Persistence::Logged, Persistence::Unlogged];

const ALL: [Persistence; 3] = [
    Persistence::Logged,
    Persistence::Unlogged,
    Persistence::Temporary,
];

fn key(persistence: Persistence) -> RelationKey {
    let file = RelationKey::of_file(1, 0, 100 + persistence as u32);
    match persistence {
        Persistence::Temporary => file.of_temporary(1),
        _ => file,
    }
}

/// A server with a table of each kind, and what it has written.
struct Server {
    world: World,
    session: Session,
    wal: Wal,
    disk: DirectoryDisk,
    /// That of a temporary one is gone after a start.
    tables: [TableRef; 3],
    generation: u64,
    _directory: tempfile::TempDir,
    _region: Region,
}

impl Server {
    fn new() -> Server {
        let (region, engine) = engine(64 << 20);
        engine.set_state(State::Ready);
        let session = engine.join().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let world = World::new();
        let mut wal = Wal::default();
        let me = world.begin();
        let mut work = Transaction::new();
        let xid = Xid(me.top);
        let tables = ALL.map(|persistence| {
            let table = work.create_table_as(&session, key(persistence), persistence, xid);
            let table = table.unwrap();
            assert_eq!(table.persistence(), persistence);
            assert_eq!(table.is_logged(), persistence == Persistence::Logged);
            let index = definition(200 + persistence as u32, true, &[(1, false)]);
            work.create_index(&session, &me, table, &index, xid)
                .unwrap();
            table
        });
        wal.xid = me.top;
        work.log(&session, &mut wal).unwrap();
        me.end(Fate::Committed);
        work.commit(&session);
        Server {
            world,
            session,
            wal,
            disk: DirectoryDisk::open(directory.path()).unwrap(),
            tables,
            generation: 0,
            _directory: directory,
            _region: region,
        }
    }

    /// Runs a transaction, logs it, and ends it, or leaves it prepared without a fate.
    fn run(&mut self, fate: Option<Fate>, work: impl FnOnce(&mut Writer<'_>)) -> (Lsn, common::Me) {
        let me = self.world.begin();
        let mut transaction = Transaction::new();
        work(&mut Writer {
            server: self,
            me: &me,
            work: &mut transaction,
        });
        self.wal.xid = me.top;
        let logged = transaction.log(&self.session, &mut self.wal).unwrap();
        match fate {
            None => transaction.give_up(&self.session),
            Some(fate) => {
                me.end(fate);
                match fate {
                    Fate::Committed => transaction.commit(&self.session),
                    _ => transaction.abort(&self.session),
                }
            }
        }
        (logged, me)
    }

    /// Rows with these numbers in tables of these kinds.
    fn insert(&mut self, kinds: &[Persistence], numbers: std::ops::Range<i32>) {
        self.run(Some(Fate::Committed), |writer| {
            for kind in kinds {
                let table = writer.server.tables[*kind as usize];
                numbers.clone().for_each(|a| writer.insert(table, a));
            }
        });
    }

    fn checkpoint(&mut self, is_final: bool) -> u64 {
        let end = Lsn(self.wal.end);
        self.generation += 1;
        let world = self.world.clone();
        let mut context = CheckpointContext {
            system_id: 1,
            timeline: 1,
            redo: end,
            generation: self.generation,
            finished_below: self.world.horizon(),
            is_final,
            threads: 2,
            pace: Pace::unlimited(),
            progress: &CheckpointProgress::default(),
            outcomes: &mut |xids| {
                let committed = |xid: &&Xid| world.fate(xid.0) == Fate::Committed;
                Ok(xids.iter().filter(committed).copied().collect())
            },
            flush: &mut |_| Ok(end),
        };
        let written = write(&self.session, &self.disk, &mut context).unwrap();
        written.rows
    }

    /// Goes on in the memory of a start from the newest checkpoint: a clean one, or one that
    /// replays all that was logged behind it.
    fn start(&mut self, is_clean: bool) {
        let (region, engine) = engine(64 << 20);
        let manifest = read_manifest(&self.disk, self.generation).unwrap();
        if is_clean {
            load_after_shutdown(engine, &self.disk, &manifest, 2).unwrap();
        } else {
            load(engine, &self.disk, &manifest, 2).unwrap();
            let session = engine.join_for_recovery().unwrap();
            let mut replayer = Replayer::new(1);
            for (lsn, xid, record) in &self.wal.records {
                if *lsn > manifest.redo {
                    replayer.apply(&session, record, *lsn, *xid).unwrap();
                }
            }
        }
        self.come_up(region, engine);
    }

    fn come_up(&mut self, region: Region, engine: Engine) {
        let reader = common::reader(&self.world);
        engine.set_state(State::Ready);
        self.session = engine.join().unwrap();
        let open = self.world.horizon()..Xid(self.world.next());
        finish_beside_prepared(&self.session, &reader, open, 2).unwrap();
        self._region = region;
        for (place, persistence) in ALL.into_iter().enumerate() {
            if let Some(table) = self.session.find_table(key(persistence), &reader) {
                assert_eq!(table.persistence(), persistence);
                self.tables[place] = table;
            } else {
                assert_eq!(persistence, Persistence::Temporary);
            }
        }
    }

    /// The rows of the logged and of the unlogged table, after a check of both.
    fn rows(&self) -> [Vec<i32>; 2] {
        [self.tables[0], self.tables[1]].map(|table| {
            let reader = common::reader(&self.world);
            check(&self.session, table, &reader);
            let row_ids = (0..table.row_ids_end().0).map(RowId);
            let mut rows: Vec<i32> = row_ids
                .filter_map(|row_id| match self.session.newest(&reader, table, row_id) {
                    Newest::Live(version) => Some(common::row(version.body()).a),
                    _ => None,
                })
                .collect();
            rows.sort_unstable();
            rows
        })
    }
}

struct Writer<'a> {
    server: &'a Server,
    me: &'a common::Me,
    work: &'a mut Transaction,
}

impl Writer<'_> {
    fn insert(&mut self, table: TableRef, a: i32) {
        let (session, me) = (&self.server.session, self.me);
        let new = body(Row { a, b: 0, c: None });
        let xid = Xid(me.top);
        let (row_id, version) = self
            .work
            .insert(session, table, &new, xid, CommandId(0))
            .unwrap();
        let entered = self
            .work
            .enter(session, me, table, row_id, version)
            .unwrap();
        assert_eq!(entered, Entered::Done);
    }
}

#[test]
fn the_log_has_the_definitions_of_unlogged_tables_and_nothing_of_temporary_ones() {
    let mut server = Server::new();
    server.insert(&ALL, 0..3);
    let [logged, unlogged, temporary] = server.tables.map(TableRef::id);
    let mut made = Vec::new();
    for (_, _, record) in &server.wal.records {
        match Record::parse(record).unwrap() {
            Record::Definitions(changes) => {
                for change in changes {
                    match change.unwrap() {
                        DefinitionChange::CreateTable {
                            table, persistence, ..
                        } => made.push((table, persistence)),
                        DefinitionChange::CreateIndex { table, .. } => assert_ne!(table, temporary),
                        other => panic!("{other:?}"),
                    }
                }
            }
            Record::Locks(_) => panic!("nothing is prepared"),
            Record::Keys(_) => panic!("no index is computed"),
            Record::Logical(_) => panic!("the engine logs none"),
            Record::Rows(mut changes) => {
                while let Some(change) = changes.next().unwrap() {
                    assert_eq!(change.table, logged);
                }
            }
        }
    }
    let expected = [
        (logged, Persistence::Logged),
        (unlogged, Persistence::Unlogged),
    ];
    assert_eq!(made, expected);
    // A transaction that changes nothing else logs nothing.
    let tables = server.tables;
    let (logged, _) = server.run(Some(Fate::Committed), |writer| {
        writer.insert(tables[1], 50);
        writer.insert(tables[2], 50);
    });
    assert_eq!(logged, Lsn::NONE);
}

#[test]
fn a_checkpoint_passes_unlogged_rows_over_but_for_the_final_one() {
    let mut server = Server::new();
    server.insert(&ALL, 0..100);
    assert_eq!(server.checkpoint(false), 100);
    assert_eq!(server.checkpoint(true), 200);
    let manifest = read_manifest(&server.disk, 2).unwrap();
    let tables: Vec<_> = manifest.tables.iter().map(|table| table.id).collect();
    assert_eq!(tables, [server.tables[0].id(), server.tables[1].id()]);
}

#[test]
fn unlogged_rows_stay_over_a_clean_start_and_go_with_any_other() {
    let mut server = Server::new();
    server.insert(KEPT, 0..10);
    server.checkpoint(true);
    server.start(true);
    let ten: Vec<i32> = (0..10).collect();
    assert_eq!(server.rows(), [ten.clone(), ten.clone()]);
    // Changed since, and not by the base's files: those are written anew.
    server.insert(KEPT, 10..12);
    server.checkpoint(true);
    server.start(true);
    let twelve: Vec<i32> = (0..12).collect();
    assert_eq!(server.rows(), [twelve.clone(), twelve.clone()]);
    // The files have the rows, but the server was not shut down behind them.
    server.insert(KEPT, 12..13);
    server.start(false);
    let thirteen: Vec<i32> = (0..13).collect();
    assert_eq!(server.rows(), [thirteen.clone(), Vec::new()]);
    // The table is one as any other after that.
    let tables = server.tables;
    server.run(Some(Fate::Committed), |writer| {
        writer.insert(tables[0], 13);
        writer.insert(tables[1], 5);
    });
    server.checkpoint(true);
    server.start(true);
    assert_eq!(server.rows()[1], [5]);
    // A checkpoint that is not final has none, whatever starts from it.
    server.checkpoint(false);
    server.start(true);
    assert_eq!(server.rows()[1], [0; 0]);
}

#[test]
fn unlogged_rows_of_a_prepared_transaction_stay_over_a_clean_start() {
    for fate in [Fate::Committed, Fate::Aborted] {
        let mut server = Server::new();
        server.insert(KEPT, 0..2);
        let unlogged = server.tables[1];
        let (_, prepared) = server.run(None, |writer| writer.insert(unlogged, 7));
        server.checkpoint(true);
        server.start(true);
        assert_eq!(server.rows()[1], [0, 1]);
        prepared.end(fate);
        let rows: &[i32] = match fate {
            Fate::Committed => &[0, 1, 7],
            _ => &[0, 1],
        };
        assert_eq!(server.rows()[1], rows);
    }
}
