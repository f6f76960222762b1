//! The machine goes down at any point of the log, and what comes up again is what was committed.

use super::*;

impl World {
    /// The machine goes down with the log durable up to `at`, and comes up again.
    pub(super) fn recover(mut self, disk: &SimulatedDisk, at: u64) -> World {
        let wal = std::mem::take(&mut *self.wal.borrow_mut());
        World::try_recover(&mut self.random, wal, disk, at, &mut |_| Ok(())).expect("recovers")
    }

    /// As `recover`, on a machine that may go down again. `replayed` is called between records, at
    /// which a standby may write checkpoints.
    pub(in crate::recovery) fn try_recover(
        random: &mut Random,
        mut wal: Wal,
        disk: &SimulatedDisk,
        at: u64,
        replayed: &mut dyn FnMut(Replayed<'_>) -> Result<(), EngineError>,
    ) -> Result<World, EngineError> {
        wal.cut(at);
        wal.forget_unlogged_rows();
        wal.forget_temporary();
        let outcomes = Outcomes::default();
        *outcomes.committed.borrow_mut() = wal.committed();
        let prepared = wal.still_prepared();
        let oldest_prepared = prepared.iter().map(|prepared| prepared.xid).min();
        let (region, engine) = arena();
        let session = engine.join().expect("joins");
        engine.set_state(State::Loading);
        let mut from = 0;
        if let Some(manifest) = newest(disk, SYSTEM, |_, _| true)? {
            let threads = 1 + random.below(2) as usize;
            let loaded = load(engine, disk, &manifest, threads)?;
            assert!(loaded.flushed.0 <= at);
            // The server may go back further than the checkpoint.
            from = loaded.redo.0 * random.below(3) / 2;
        }
        engine.set_state(State::Replaying);
        // Alone, or with workers, which are then behind at any moment.
        let workers = [0, 2, 3][random.below(3) as usize];
        let mut replayer = ParallelReplayer::new(engine, workers, 2);
        let mut next_xid = 10;
        for (position, (lsn, entry)) in wal.entries.iter().enumerate() {
            let xid = entry.xid();
            // An xid that left no trace in the log is used again.
            next_xid = next_xid.max(xid + 1);
            if let Entry::Record { bytes, .. } = entry
                && *lsn > from.min(at)
            {
                let how = HandOver {
                    is_ahead: random.below(8) > 0,
                    bytes_max: 1 << (8 + random.below(8)),
                    has_readers: random.below(2) == 0,
                };
                replayer
                    .apply(&session, bytes, Lsn(*lsn), Xid(xid), how, &mut || {})
                    .unwrap_or_else(|error| panic!("{error}"));
            }
            replayed(Replayed {
                session: &session,
                wal: &wal,
                lsn: *lsn,
            })?;
            // Here the server that wrote the log cut its commit log off: what is older is asked for
            // in vain from now on.
            if random.below(40) == 0 {
                let later = wal.entries[position + 1..].iter();
                let later = later.map(|(_, entry)| entry.xid());
                let later = later.filter(|xid| *xid != 0).chain(oldest_prepared);
                let below = later.min().unwrap_or(next_xid);
                replayer.drain(&mut || {}).expect("applies");
                let clock = TestClock {
                    outcomes: &outcomes,
                    me: 0,
                };
                replayer
                    .resolve_below(&session, &clock, Xid(below), 2)
                    .expect("resolves");
                let committed = &mut outcomes.committed.borrow_mut();
                committed.retain(|xid| *xid >= below);
            }
        }
        replayer.drain(&mut || {}).expect("applies");
        // None is known to be prepared yet.
        let clock = TestClock {
            outcomes: &outcomes,
            me: 0,
        };
        let open = Xid(oldest_prepared.unwrap_or(next_xid))..Xid(next_xid);
        finish_beside_prepared(&session, &clock, open, 2).expect("finishes");
        engine.set_state(State::Ready);
        let random = Random(random.below(u64::MAX));
        // The old engine is gone without a word.
        let server = (session, engine, region);
        Ok(World::up(random, wal, outcomes, server, next_xid))
    }

    /// A machine that is up, with the prepared transactions that the log has.
    pub(super) fn up(
        random: Random,
        wal: Wal,
        outcomes: Outcomes,
        (session, engine, region): (Session, Engine, Region),
        next_xid: u64,
    ) -> World {
        let prepared = wal.still_prepared();
        let running = prepared.iter().map(|prepared| prepared.xid);
        outcomes.running.borrow_mut().extend(running);
        let world = World {
            random,
            wal: Rc::new(RefCell::new(wal)),
            outcomes,
            open: Vec::new(),
            prepared,
            next_xid: Cell::new(next_xid),
            shuts_down: false,
            session,
            engine,
            region,
        };
        world.check_prepared();
        world
    }

    /// Compares with the model. No transaction may be open.
    pub(in crate::recovery) fn check(&self) {
        let expected = self.wal.borrow().rows();
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: 0,
        };
        let everything = Everything(&self.outcomes);
        let mut found = BTreeMap::new();
        for key in RELATIONS {
            let Some(table) = self.session.find_table(key, &clock) else {
                continue;
            };
            let mut scan = RowScan::new(table);
            let mut row_ids = Vec::new();
            while let Some((row_id, version)) = scan.next(&self.session, &everything) {
                found.insert((key, table.id(), row_id.0), version.body().to_vec());
                row_ids.push(row_id);
            }
            // Prepared ones count as committed.
            if self.prepared.is_empty() {
                assert_eq!(
                    table.row_count_estimate(),
                    row_ids.len() as u64,
                    "rows counted"
                );
            }
            let mut problems = Vec::new();
            let report = self
                .session
                .check(table, &clock, |problem| problems.push(problem))
                .expect("looks at all");
            assert_eq!(problems, []);
            if self.prepared.is_empty() {
                assert_eq!(report.rows, row_ids.len() as u64);
            }
            for index in self.session.indexes(table, &clock) {
                let mut scan = IndexScan::new();
                scan.start(table, index, &KeyRange::new(), Direction::Forward);
                let mut reached = Vec::new();
                while let Some((row_id, _)) = scan.next(&self.session, &everything).expect("scans")
                {
                    reached.push(row_id);
                }
                reached.sort_unstable();
                assert_eq!(
                    reached,
                    row_ids,
                    "rows through index {}",
                    index.relation_oid()
                );
            }
        }
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>()
        );
        assert_eq!(found, expected);
    }
}

/// The clock that is asked for an outcome has forgotten it.
struct NobodyKnows;

impl Clock for NobodyKnows {
    fn is_current(&self, _: Xid) -> bool {
        false
    }
    fn is_in_progress(&self, xid: Xid) -> bool {
        panic!("what became of {}?", xid.0)
    }
    fn did_commit(&self, xid: Xid) -> bool {
        panic!("what became of {}?", xid.0)
    }
}

impl World {
    /// Unless something is prepared, every row's newest state is resolved by the end of recovery.
    /// The server may forget outcomes from then on: those of what lies below it no process needs.
    fn sweep_unasked(&self) {
        if !self.prepared.is_empty() {
            return;
        }
        self.engine.raise_horizon(Xid(self.next_xid.get()));
        for walk in self.session.tables() {
            self.session.sweep(&NobodyKnows, walk.table(), true, || {});
        }
    }
}

/// Replay has come so far.
pub(in crate::recovery) struct Replayed<'a> {
    pub(in crate::recovery) session: &'a Session,
    pub(in crate::recovery) wal: &'a Wal,
    pub(in crate::recovery) lsn: u64,
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    let mut disk = SimulatedDisk::new(seed);
    // Before this nothing can be lost.
    let mut durable = 0;
    for _ in 0..4 {
        for _ in 0..world.random.below(3) {
            for _ in 0..world.random.below(150) {
                world.step();
            }
            let steps = world.random.below(12);
            durable = world.checkpoint(&disk, steps);
        }
        for _ in 0..world.random.below(150) {
            world.step();
        }
        if world.random.below(4) == 0 {
            world.end_all();
            world.check();
        }
        let end = world.wal.borrow().end;
        let at = durable + world.random.below(end - durable + 1);
        disk = disk.restart();
        world = world.recover(&disk, at);
        // What was lost is written anew.
        let kept = world.wal.borrow().entries.last().map_or(0, |(lsn, _)| *lsn);
        world.wal.borrow_mut().end = kept.max(durable);
        if world.random.below(2) == 0 {
            world.sweep_unasked();
        }
        world.check();
    }
}

#[test]
fn recovers_what_was_committed() {
    let seeds = match std::env::var("MOT_TEST_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a number");
            seed..seed + 1
        }
        Err(_) => 0..300,
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| run(seed));
        if let Err(payload) = outcome {
            eprintln!("failed with MOT_TEST_SEED={seed}");
            std::panic::resume_unwind(payload);
        }
    }
}
