//! A session: one process or thread that uses the engine.
//!
//! It owns its allocation cache, epoch place, row id batches, key buffers and decoded index
//! definitions; none of it is shared. It is not `Send`. After a PostgreSQL error jumped over Rust
//! frames, [`Session::reset`] releases what they held.

mod node_memory;
mod old_snapshots;
mod pending_prunes;
mod replaced;
pub(crate) mod temporary;
mod unfinished;

pub(crate) use node_memory::NodeMemory;
pub use old_snapshots::{OldSnapshot, OldSnapshots};
pub(crate) use pending_prunes::PendingPrunes;
pub use replaced::Upon;
pub(crate) use unfinished::{Unfinished, find_lasting, find_unfinished};

use crate::clock::{Clock, Snapshot};
use crate::decoded::{Decoded, Definitions};
use crate::engine::{Engine, SessionLine};
use crate::errors::EngineError;
use crate::ids::{FileKey, Ordinal, RelationKey, RowId, Xid};
use crate::key::{HasNull, IndexDefinition, KeyBuffer, encode_row, is_outside, none_if_too_long};
use crate::limits::{KEYS_TOGETHER, SESSIONS_MAX, SESSIONS_NOT_OF_CLIENTS};
use crate::memory::{LocalMemory, Purpose, TooManyParticipants};
use crate::row::{self, Newest, VersionRef};
use crate::sync::{Ordering, order_unless_broken};
use crate::table::{Catalog, IndexRef, RowIdBatches, TableRef, Walk};
use std::cell::{Cell, RefCell};

/// Key buffers of a session: two to work with, and those of a row's keys that are entered together.
pub(crate) const KEY_BUFFERS: usize = 2 + KEYS_TOGETHER;

/// One process or thread that uses the engine.
pub struct Session {
    engine: Engine,
    pub(crate) local: LocalMemory,
    pub(crate) line: &'static SessionLine,
    pub(crate) batches: RefCell<RowIdBatches>,
    definitions: Definitions,
    /// Key buffers for the writers' paths: lent out by `with_keys`.
    keys: RefCell<[KeyBuffer; KEY_BUFFERS]>,
    logging: Cell<u64>,
    /// Below this, what a committed transaction superseded is dead to every snapshot, whatever the
    /// engine's horizon says.
    own_horizon: Cell<Xid>,
    /// The readers as of an earlier moment: for the sweeper.
    old_snapshots: RefCell<OldSnapshots>,
    /// What its commits left behind.
    pub(crate) pending_prunes: RefCell<PendingPrunes>,
    /// A version that a writer made and has not published yet: this session's alone.
    pub(crate) unpublished: Cell<Option<VersionRef>>,
    /// The most that its temporary tables may take.
    temporary_limit: Cell<Option<fn() -> u64>>,
    /// What its line's sum of temporary tables was when it joined.
    temporary_before: i64,
}

impl Engine {
    /// Joins this process or thread.
    pub fn join(self) -> Result<Session, EngineError> {
        Session::join(self, 0)
    }

    /// Joins a process that serves a client. The last places are not for such
    /// ([`SESSIONS_NOT_OF_CLIENTS`]).
    pub fn join_for_client(self) -> Result<Session, EngineError> {
        Session::join(self, SESSIONS_NOT_OF_CLIENTS)
    }

    /// Joins a process or thread that brings back what was there before: the arena's reserve is
    /// open to it. What fit the primary, or this server before it stopped, must not fail for rows
    /// that came in another order.
    pub fn join_for_recovery(self) -> Result<Session, EngineError> {
        let session = Session::join(self, 0)?;
        session.local.use_reserve();
        Ok(session)
    }
}

impl Session {
    /// Leaves so many places to others.
    fn join(engine: Engine, places: usize) -> Result<Session, EngineError> {
        let local = engine.memory().join_leaving(places)?;
        let max = SESSIONS_MAX - places;
        let line = engine
            .root()
            .sessions
            .iter()
            .take(max)
            .find(|line| {
                line.taken
                    .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            })
            .ok_or(TooManyParticipants { max })?;
        let logging = line.logging.load(Ordering::Relaxed);
        let temporary_before = line.temporary_bytes.load(Ordering::Relaxed);
        Ok(Session {
            engine,
            local,
            line,
            batches: RefCell::default(),
            definitions: Definitions::new(),
            keys: RefCell::new([const { KeyBuffer::new() }; KEY_BUFFERS]),
            logging: Cell::new(logging),
            own_horizon: Cell::new(Xid::NONE),
            old_snapshots: RefCell::default(),
            pending_prunes: RefCell::default(),
            unpublished: Cell::new(None),
            temporary_limit: Cell::new(None),
            temporary_before,
        })
    }

    /// The engine.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    pub(crate) fn catalog(&self) -> &'static Catalog {
        &self.engine.root().catalog
    }

    /// Allocation, epochs.
    pub fn memory(&self) -> &LocalMemory {
        &self.local
    }

    /// Releases what Rust frames held that an error jumped over.
    pub fn reset(&self) {
        self.free_unpublished();
        self.local.forget_charges();
        self.local.unpin_all();
        self.end_logging();
    }

    /// Frees the version that a writer made, if it was not published.
    pub(crate) fn free_unpublished(&self) {
        if let Some(version) = self.unpublished.take() {
            // SAFETY: its publisher takes it out of the cell, so no other code ever reached
            // it.
            unsafe {
                self.local
                    .free(version.block(), version.block_bytes(), Purpose::Rows)
            };
        }
    }

    /// From now on this session's sweeps also take out what lies between the states that these old
    /// snapshots see and those that all others do.
    pub fn set_old_snapshots(&self, old: OldSnapshots) {
        *self.old_snapshots.borrow_mut() = old;
    }

    /// Rows in which this session's commits have left something behind since it began, taken out by
    /// now or not: for wakers of the sweeper.
    pub fn rows_left_behind(&self) -> u64 {
        self.pending_prunes.borrow().noted()
    }

    pub(crate) fn old_snapshots(&self) -> std::cell::Ref<'_, OldSnapshots> {
        self.old_snapshots.borrow()
    }

    /// Runs `work`, during which what is superseded by a transaction that is known to be committed
    /// counts as dead: for a caller that knows that no session reads now, and that none will read
    /// as of an earlier moment. The engine's horizon stays where it is, since it also speaks of
    /// transactions that are still to commit.
    pub fn while_nobody_reads<R>(&self, work: impl FnOnce() -> R) -> R {
        struct Until<'a>(&'a Cell<Xid>);
        impl Drop for Until<'_> {
            fn drop(&mut self) {
                self.0.set(Xid::NONE);
            }
        }
        self.own_horizon.set(Xid(u64::MAX));
        let _until = Until(&self.own_horizon);
        work()
    }

    /// Versions superseded by a committed transaction below this are dead to every snapshot.
    pub(crate) fn horizon(&self) -> Xid {
        self.engine.horizon().max(self.own_horizon.get())
    }

    /// From before the first record of a transaction is appended until its rows are marked.
    pub(crate) fn begin_logging(&self) {
        if self.logging.get().is_multiple_of(2) {
            self.logging.set(self.logging.get() + 1);
            let order = order_unless_broken(Ordering::SeqCst, "log: the fence of a mark");
            self.line.logging.store(self.logging.get(), order);
        }
    }

    pub(crate) fn end_logging(&self) {
        if !self.logging.get().is_multiple_of(2) {
            self.logging.set(self.logging.get() + 1);
            self.line
                .logging
                .store(self.logging.get(), Ordering::SeqCst);
        }
    }

    /// The storage of a relation that exists for the caller.
    pub fn find_table(&self, key: RelationKey, clock: &impl Clock) -> Option<TableRef> {
        let _pin = self.local.pin();
        self.catalog().find(key, clock)
    }

    /// All storages, kept alive for walking without relation locks.
    pub fn tables(&self) -> Vec<Walk<'_>> {
        self.catalog().hold_where(|_| true)
    }

    /// The indexes of a table that exist for the caller.
    pub fn indexes(&self, table: TableRef, clock: &impl Clock) -> Vec<IndexRef> {
        let _pin = self.local.pin();
        table
            .all_indexes()
            .filter(|index| self.index_exists(*index, clock))
            .collect()
    }

    /// The oids of these indexes. A caller with a lock on the table alone looks each one up again
    /// under a lock on the index, which may be dropped meanwhile.
    pub fn index_oids(&self, table: TableRef, clock: &impl Clock) -> Vec<u32> {
        let _pin = self.local.pin();
        table
            .all_indexes()
            .filter(|index| self.index_exists(*index, clock))
            .map(IndexRef::relation_oid)
            .collect()
    }

    /// The index with this oid, if it exists for the caller.
    pub fn find_index(
        &self,
        table: TableRef,
        relation: u32,
        clock: &impl Clock,
    ) -> Option<IndexRef> {
        self.find_index_that(table, clock, |index| index.relation_oid() == relation)
    }

    /// The index with this file, if it exists for the caller.
    pub fn find_index_of_file(
        &self,
        table: TableRef,
        file: FileKey,
        clock: &impl Clock,
    ) -> Option<IndexRef> {
        debug_assert!(file.is_some());
        self.find_index_that(table, clock, |index| index.file() == file)
    }

    fn find_index_that(
        &self,
        table: TableRef,
        clock: &impl Clock,
        is_meant: impl Fn(IndexRef) -> bool,
    ) -> Option<IndexRef> {
        let _pin = self.local.pin();
        table
            .all_indexes()
            .find(|index| is_meant(*index) && self.index_exists(*index, clock))
    }

    /// Whether a table has an index of this file, dropped ones that are not freed yet included.
    pub fn knows_file(&self, table: TableRef, file: FileKey) -> bool {
        let _pin = self.local.pin();
        table.all_indexes().any(|index| index.file() == file)
    }

    /// Indexes of a standby that lack rows for snapshots from before they were replayed, by their
    /// oids, each with the transaction that made it. A snapshot to which that is not surely over
    /// must not use it. What the server that made them knows of its own snapshots is in its
    /// catalog.
    pub fn indexes_kept_from_older(&self, table: TableRef) -> Vec<(u32, Xid)> {
        let _pin = self.local.pin();
        let kept = |index: IndexRef| Some((index.relation_oid(), index.kept_from_older()?));
        table.all_indexes().filter_map(kept).collect()
    }

    /// Whether the keys of some index of the table are computed by the code that forms a row.
    pub fn has_computed_keys(&self, table: TableRef) -> bool {
        let _pin = self.local.pin();
        table.all_indexes().any(IndexRef::is_computed)
    }

    fn index_exists(&self, index: IndexRef, clock: &impl Clock) -> bool {
        let storage = index.storage();
        crate::table::exists(
            storage.created.load(Ordering::Acquire),
            storage.dropped.load(Ordering::Acquire),
            clock,
        )
    }

    /// The index's definition, decoded once per session: its reference is good as long as that,
    /// whatever becomes of the index. Without the index's oid and file: indexes of the same columns
    /// share it.
    pub fn definition(&self, index: IndexRef) -> Result<&IndexDefinition, EngineError> {
        self.decoded(index).map(|decoded| &decoded.definition)
    }

    /// Replaces `key` by the key that the index has of the row `body`, as [`encode_row`] does.
    #[inline]
    pub(crate) fn encode_key(
        &self,
        index: IndexRef,
        body: &[u8],
        key: &mut KeyBuffer,
    ) -> Result<HasNull, EngineError> {
        let Decoded { definition, fixed } = self.decoded(index)?;
        if fixed.as_ref().is_some_and(|fixed| fixed.encode(body, key)) {
            return Ok(HasNull(false));
        }
        encode_row(definition, body, key)
    }

    /// The same of a row that the index need not have taken, as [`crate::key::encode_row_if_any`]
    /// does.
    #[inline]
    pub(crate) fn encode_key_if_any(
        &self,
        index: IndexRef,
        body: &[u8],
        key: &mut KeyBuffer,
    ) -> Result<HasNull, EngineError> {
        let encoded = self.encode_key(index, body, key);
        none_if_too_long(encoded, key)
    }

    /// Whether the row `body` is no row of a partial index.
    pub(crate) fn is_outside(&self, index: IndexRef, body: &[u8]) -> Result<bool, EngineError> {
        Ok(index.is_computed() && is_outside(self.definition(index)?, body))
    }

    #[inline]
    fn decoded(&self, index: IndexRef) -> Result<&Decoded, EngineError> {
        self.definitions.get(index)
    }

    /// Lends the session's key buffers. Not reentrant: nothing that is called inside may ask for
    /// them again.
    pub(crate) fn with_keys<R>(&self, work: impl FnOnce(&mut [KeyBuffer; KEY_BUFFERS]) -> R) -> R {
        work(&mut self.keys.borrow_mut())
    }

    /// The newest version of the row that the snapshot sees. Valid while the snapshot is
    /// registered.
    pub fn visible<S: Snapshot>(
        &self,
        table: TableRef,
        row_id: RowId,
        snapshot: &S,
    ) -> Option<VersionRef> {
        let _pin = self.local.pin();
        row::visible(table.anchor(row_id)?, snapshot)
    }

    /// Whether `version` is a state of the row that the caller's transaction made. Asked of one
    /// that nothing keeps, which may have been replaced and taken out by now: then it was
    /// another's.
    pub fn is_own_state(
        &self,
        clock: &impl Clock,
        table: TableRef,
        row_id: RowId,
        version: VersionRef,
    ) -> bool {
        let _pin = self.local.pin();
        let head = table
            .anchor(row_id)
            .and_then(|anchor| anchor.head().version());
        std::iter::successors(head, VersionRef::next)
            .any(|at| at == version && !at.is_lock() && clock.is_current(at.xid()))
    }

    /// Whether the row, deleted as far as the caller is concerned, went to another partition. Its
    /// newest state that is committed or the caller's own says so.
    pub fn is_moved_away(&self, clock: &impl Clock, table: TableRef, row_id: RowId) -> bool {
        let _pin = self.local.pin();
        let Some(anchor) = table.anchor(row_id) else {
            return false;
        };
        let newest = row::newest_committed_or_own(anchor, clock);
        newest.is_some_and(|newest| newest.is_moved_away())
    }

    /// The row's state now. The version is valid as long as it cannot be superseded and pruned:
    /// while the caller's transaction locks or owns the row, or a snapshot sees it, or pinned.
    pub fn newest(&self, clock: &impl Clock, table: TableRef, row_id: RowId) -> Newest {
        let _pin = self.local.pin();
        match table.anchor(row_id) {
            Some(anchor) => row::newest(anchor, clock),
            None => Newest::None,
        }
    }

    /// The ordinal of a row's newest state that is committed or the caller's; 0 without one.
    pub fn newest_ordinal(&self, clock: &impl Clock, table: TableRef, row_id: RowId) -> Ordinal {
        let _pin = self.local.pin();
        let anchor = table.anchor(row_id);
        let newest = anchor.and_then(|anchor| row::newest_committed_or_own(anchor, clock));
        newest.map_or(Ordinal(0), |newest| newest.ordinal())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.reset();
        self.batches.borrow_mut().give_back(self.catalog());
        self.end_unresolved();
        self.line.taken.store(0, Ordering::Release);
    }
}
