//! Starts that follow a clean shutdown: the tables come from its last checkpoint, or are still in
//! memory.

use super::*;

impl World {
    /// The start that follows a shutdown: nothing is replayed, and the checkpoint is final no
    /// longer.
    pub(in crate::recovery) fn start(
        mut random: Random,
        mut wal: Wal,
        disk: &SimulatedDisk,
    ) -> Result<World, EngineError> {
        wal.forget_temporary();
        let mut manifest = newest(disk, SYSTEM, |_, _| true)?.expect("there is one");
        assert!(manifest.is_final && manifest.redo.0 == wal.end);
        let outcomes = Outcomes::default();
        *outcomes.committed.borrow_mut() = wal.committed();
        let (region, engine) = arena();
        let session = engine.join().expect("joins");
        engine.set_state(State::Loading);
        let threads = 1 + random.below(2) as usize;
        load_after_shutdown(engine, disk, &manifest, threads)?;
        manifest.is_final = false;
        seal(disk, &manifest)?;
        let clock = TestClock {
            outcomes: &outcomes,
            me: 0,
        };
        let xids = wal.entries.iter().map(|(_, entry)| entry.xid());
        // Ids of transactions that changed only what is not logged are in the log, too: they have
        // commits.
        let next_xid = xids.max().unwrap_or(0).max(9) + 1;
        let prepared = wal.still_prepared();
        let oldest_prepared = prepared.iter().map(|prepared| prepared.xid).min();
        let open = Xid(oldest_prepared.unwrap_or(next_xid))..Xid(next_xid);
        finish_beside_prepared(&session, &clock, open, threads)?;
        engine.set_state(State::Ready);
        let server = (session, engine, region);
        Ok(World::up(random, wal, outcomes, server, next_xid))
    }

    /// The same start, by a server that finds the memory as the one before it has left it.
    pub(in crate::recovery) fn start_warm(
        self,
        disk: &SimulatedDisk,
    ) -> Result<World, EngineError> {
        let mut manifest = newest(disk, SYSTEM, |_, _| true)?.expect("there is one");
        assert!(manifest.is_final && self.open.is_empty());
        manifest.is_final = false;
        seal(disk, &manifest)?;
        drop(self.session);
        assert!(self.engine.not_quiescent_because().is_none());
        // SAFETY: this process laid the region out, and nothing is left that uses it.
        let taken = unsafe { Engine::take_over(&self.region, &ArenaOptions::default()) };
        let (engine, _) = taken.expect("is quiescent");
        engine.set_state(State::Ready);
        let mut wal = self.wal.take();
        wal.forget_temporary();
        let session = engine.join().expect("joins");
        let server = (session, engine, self.region);
        let next_xid = self.next_xid.get();
        Ok(World::up(self.random, wal, self.outcomes, server, next_xid))
    }
}

impl World {
    /// A transaction inserts rows into the unlogged relation, which it makes if there is none.
    fn insert_unlogged(&mut self, keys: Range<u64>) {
        let at = self.begin();
        let clock = TestClock {
            outcomes: &self.outcomes,
            me: self.open[at].xid,
        };
        let (session, open) = (&self.session, &mut self.open[at]);
        let (work, xid) = (&mut open.transaction, Xid(open.xid));
        let table = match session.find_table(UNLOGGED, &clock) {
            Some(table) => table,
            None => {
                let persistence = persistence_of(UNLOGGED);
                let made = work.create_table_as(session, UNLOGGED, persistence, xid);
                let table = made.expect("memory");
                open.storages.push((UNLOGGED, Some(table.id())));
                open.unlogged.push(table.id());
                table
            }
        };
        for key in keys {
            let row = body(key, 0, 0);
            let inserted = work.insert(session, table, &row, xid, CommandId(0));
            let (row_id, _) = inserted.expect("memory");
            open.touched.insert((UNLOGGED, table.id(), row_id.0));
        }
        self.log(at);
        self.commit(at);
    }
}

/// A crash takes unlogged rows that a prepared transaction has locked. Other rows have their places
/// when the next shutdown writes them and the start behind it puts locks back.
#[test]
fn locks_of_rows_that_a_crash_has_taken_hold_no_others() {
    for seed in 0..8 {
        let mut world = World::new(seed);
        let disk = SimulatedDisk::new(seed);
        world.insert_unlogged(0..3);
        let at = world.begin();
        world.lock(at, UNLOGGED);
        world.log_with_locks(at);
        world.prepare(at);
        assert!(!world.prepared[0].rows.is_empty());
        if seed % 2 == 0 {
            world.checkpoint(&disk, 0);
        }
        let end = world.wal.borrow().end;
        let mut world = world.recover(&disk, end);
        world.check();
        world.insert_unlogged(3..6);
        let wal = Rc::clone(&world.wal);
        let flush = &mut |_| Ok(Lsn(wal.borrow().end));
        world.last_checkpoint(&disk, flush).expect("writes");
        let mut world = World::start(Random(seed), wal.take(), &disk).expect("starts");
        assert_eq!(world.prepared.len(), 1);
        world.check();
        world.end_all();
        world.check();
    }
}
