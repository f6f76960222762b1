//! Checkpoints while transactions go on.

use super::*;

impl World {
    /// A checkpoint during which transactions go on. Gives the LSN up to which WAL is durable then.
    pub(super) fn checkpoint(&mut self, disk: &SimulatedDisk, steps: u64) -> u64 {
        let wal = Rc::clone(&self.wal);
        let flush = &mut |_| Ok(Lsn(wal.borrow().end));
        let written = self.try_checkpoint(disk, steps, flush).expect("writes");
        written.flushed.0
    }

    /// As `checkpoint`, on a machine that may go down.
    pub(in crate::recovery) fn try_checkpoint(
        &mut self,
        disk: &SimulatedDisk,
        steps: u64,
        flush: &mut dyn FnMut(Lsn) -> Result<Lsn, EngineError>,
    ) -> Result<checkpoint::Written, EngineError> {
        let redo = Lsn(self.wal.borrow().end);
        for _ in 0..self.random.below(steps + 1) {
            self.step();
        }
        self.checkpoint_from(redo, disk, steps, flush)
    }

    /// The last checkpoint of a shutdown. No transaction is open.
    pub(in crate::recovery) fn last_checkpoint(
        &mut self,
        disk: &SimulatedDisk,
        flush: &mut dyn FnMut(Lsn) -> Result<Lsn, EngineError>,
    ) -> Result<checkpoint::Written, EngineError> {
        assert!(self.open.is_empty());
        self.shuts_down = true;
        let redo = Lsn(self.wal.borrow().end);
        let written = self.checkpoint_from(redo, disk, 0, flush);
        self.shuts_down = false;
        written
    }

    /// As `try_checkpoint`, with a redo position that was fixed some time ago.
    pub(super) fn checkpoint_from(
        &mut self,
        redo: Lsn,
        disk: &SimulatedDisk,
        steps: u64,
        flush: &mut dyn FnMut(Lsn) -> Result<Lsn, EngineError>,
    ) -> Result<checkpoint::Written, EngineError> {
        let wal = Rc::clone(&self.wal);
        let engine = self.engine;
        let defined = engine.last_lsn();
        let round = begin_round(engine)?;
        let (base, _) = read_base(self.engine, disk);
        let finished_below = self.outcomes.running.borrow().first().copied();
        let finished_below = Xid(finished_below.unwrap_or(self.next_xid.get()));
        let session = self.engine.join().expect("joins");
        let mut inner =
            EngineSource::collect(&session, redo, defined, finished_below).expect("collects");
        let is_final = self.shuts_down;
        if !is_final {
            inner.leave_unlogged_rows();
        }
        let source = Fuzzy {
            inner,
            world: RefCell::new(self),
            steps,
        };
        let progress = CheckpointProgress::default();
        let generation = next_generation(disk)?;
        let mut context = CheckpointContext {
            system_id: SYSTEM,
            timeline: 1,
            redo,
            generation,
            finished_below,
            is_final,
            threads: 1,
            pace: Pace::unlimited(),
            progress: &progress,
            outcomes: &mut |open| {
                let committed = wal.borrow().committed();
                let has_committed = |xid: &Xid| committed.contains(&xid.0);
                Ok(open.iter().copied().filter(has_committed).collect())
            },
            flush,
        };
        let written = write_from(&source, disk, &mut context, base.as_ref())?;
        engine.set_base(generation, round);
        let manifest = crate::checkpoint::read_manifest(disk, generation)?;
        for table in &manifest.tables {
            for parts in table.ranges.chunk_by(|one, next| one.number == next.number) {
                // The newest may have more: rows that were marked while it was written.
                let kept = &parts[..parts.len() - 1];
                let entries: Vec<_> = parts.iter().map(|part| part.entries).collect();
                assert!(
                    kept.is_sorted_by(|older, newer| older.entries > newer.entries),
                    "parts of {entries:?} rows"
                );
            }
        }
        Ok(written)
    }
}

/// The engine's rows, with transactions going on between one row and the next.
struct Fuzzy<'a> {
    inner: EngineSource<'a>,
    world: RefCell<&'a mut World>,
    steps: u64,
}

// SAFETY: a checkpoint with one thread walks in the caller's thread.
unsafe impl Sync for Fuzzy<'_> {}

impl RowSource for Fuzzy<'_> {
    type Walker<'b>
        = Session
    where
        Self: 'b;

    fn definitions(&self) -> Result<Definitions, EngineError> {
        let definitions = self.inner.definitions();
        self.go_on();
        definitions
    }

    fn has_changed(&self, table: TableId, first: RowId) -> Result<bool, EngineError> {
        let changed = self.inner.has_changed(table, first);
        self.go_on();
        changed
    }

    fn was_reformed(&self, table: TableId) -> Result<bool, EngineError> {
        self.inner.was_reformed(table)
    }

    fn count(
        &self,
        table: TableId,
        row_ids: Range<RowId>,
        above: &[Lsn],
    ) -> Result<checkpoint::Counts, EngineError> {
        let counts = self.inner.count(table, row_ids, above);
        self.go_on();
        counts
    }

    fn walker(&self) -> Result<Session, EngineError> {
        self.inner.walker()
    }

    fn walk(
        &self,
        walker: &mut Session,
        table: TableId,
        row_ids: Range<RowId>,
        since: Lsn,
        block: &mut BlockBuilder,
    ) -> Result<(RowId, u64), EngineError> {
        self.go_on();
        let end = row_ids.end.min(RowId(
            row_ids.start.0 + 1 + self.world.borrow_mut().random.below(4),
        ));
        self.inner
            .walk(walker, table, row_ids.start..end, since, block)
    }

    fn release(&self, table: TableId) {
        self.inner.release(table);
        self.go_on();
    }
}

impl Fuzzy<'_> {
    fn go_on(&self) {
        let mut world = self.world.borrow_mut();
        for _ in 0..world.random.below(self.steps + 1) {
            world.step();
        }
    }
}
