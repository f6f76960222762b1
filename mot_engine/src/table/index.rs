//! An index's storage: its definition and the root of its tree.
//!
//! Entries: for a *pointed* key (unique index and no NULL in the key, or NULLs not distinct) the
//! tree's value is one row id (shifted, low bit 0) or, while several rows share the key, a posting
//! block (low bit 1, see `crate::index`). For any other key the row id's number, in three, four or
//! seven bytes (`crate::index::append_row_id`), is appended and the value is the row id. Encoded
//! keys are prefix-free, so both forms live in one tree.

use super::makers::Makers;
use super::storage::{TableRef, TableStorage};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{FileKey, IndexId, TableId, Xid};
use crate::key::IndexDefinition;
use crate::memory::{LocalMemory, Purpose, Urgency};
use mot_index::TreeRoot;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// What a look-up reads is in the first cache line, what look-ups and inserts count in the last
/// one.
#[repr(C, align(64))]
pub(crate) struct IndexStorage {
    pub(crate) root: TreeRoot,
    pub(crate) id: IndexId,
    pub(crate) relation: u32,
    pub(crate) file: FileKey,
    pub(crate) unique: bool,
    pub(crate) nulls_not_distinct: bool,
    pub(crate) definition_bytes: u32,
    /// [`IndexDefinition::collations_fingerprint`], as the process found it that made the index.
    pub(crate) collations: u64,
    pub(crate) table: NonNull<TableStorage>,
    /// As in a table: 0 when resolved.
    pub(crate) created: AtomicU64,
    pub(crate) dropped: AtomicU64,
    /// As in a table.
    pub(crate) created_lsn: AtomicU64,
    pub(crate) dropped_lsn: AtomicU64,
    /// Next in the catalog's list of indexes that are pending free.
    pub(crate) next_pending_free: AtomicU64,
    /// For the process that frees it: a table may be gone before its unlinked index is.
    pub(crate) table_id: TableId,
    /// What [`marks`] say of it.
    pub(crate) marks: AtomicU32,
    /// See `makers.rs`.
    pub(super) given_up: AtomicU32,
    /// Its maker, if replay built it beside states of rows that have no key in it: a snapshot that
    /// may be older must not use it. 0: there are none.
    pub(crate) kept_from_older: AtomicU64,
    pub(crate) counters: IndexCounters,
    // definition bytes follow
}

/// Marks of an index. None is taken back.
mod marks {
    /// The server's catalog has it as dead: writers still enter their rows, and ask for no
    /// uniqueness.
    pub const DEAD: u32 = 1;
    /// A state of a row that a snapshot may see has no entry: its key is too long.
    pub const HAS_LEFT_OUT: u32 = 2;
    /// Its keys are computed.
    pub const COMPUTED: u32 = 4;
    /// The server checks that its keys are unique.
    pub const UNIQUE_TO_SERVER: u32 = 8;
    /// Its keys are computed, of columns alone: they have labels.
    pub const OF_COLUMNS: u32 = 16;
}

/// Counters of an index, for views.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct IndexCounters {
    pub(crate) entries: AtomicI64,
    pub(crate) scans: AtomicU64,
}

const _: () = assert!(size_of::<IndexStorage>() == 3 * align_of::<IndexStorage>());

/// How an entry of a key is stored in the tree.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub(crate) enum EntryForm {
    /// The key alone; the value points to the row ids.
    Pointed,
    /// The key and the row id.
    Suffixed,
}

/// An index. Valid as long as its table's reference is.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct IndexRef(pub(crate) NonNull<IndexStorage>);

impl IndexRef {
    pub(crate) fn storage<'a>(self) -> &'a IndexStorage {
        // SAFETY: the type's contract.
        unsafe { &*self.0.as_ptr() }
    }

    pub(crate) fn address(self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// Its own id, never reused.
    pub fn id(self) -> IndexId {
        self.storage().id
    }

    /// The index's oid in PostgreSQL's catalog.
    pub fn relation_oid(self) -> u32 {
        self.storage().relation
    }

    /// Its file; none if it is of an earlier build's table.
    pub fn file(self) -> FileKey {
        self.storage().file
    }

    /// Whether keys are unique.
    pub fn is_unique(self) -> bool {
        self.storage().unique
    }

    /// Whether a change of its columns changes a key of the row, for row locks. As on
    /// heap, those of expressions, or of some rows, do not.
    #[inline]
    pub(crate) fn is_key(self) -> bool {
        let is_unique = self.is_unique() || self.has_mark(marks::UNIQUE_TO_SERVER);
        let is_of_columns = !self.is_computed() || self.has_mark(marks::OF_COLUMNS);
        is_unique && !self.is_dead() && is_of_columns
    }

    /// The server checks that the keys of an index are unique that is not unique here. Set by its
    /// maker, and after a restart ahead of each session's first update.
    pub fn set_unique_to_server(self) {
        let marks = &self.storage().marks;
        marks.fetch_or(marks::UNIQUE_TO_SERVER, Ordering::Relaxed);
    }

    /// Bytes that an index takes beside its nodes.
    pub(crate) const STORAGE_BYTES: u64 = size_of::<IndexStorage>() as u64;

    /// Entries, as far as counted.
    pub fn entry_count_estimate(self) -> u64 {
        self.storage()
            .counters
            .entries
            .load(Ordering::Relaxed)
            .max(0) as u64
    }

    /// Scans begun.
    pub fn scans(self) -> u64 {
        self.storage().counters.scans.load(Ordering::Relaxed)
    }

    /// Its creator and its dropper.
    pub(crate) fn makers<'a>(self) -> Makers<'a> {
        let storage = self.storage();
        Makers {
            created: &storage.created,
            dropped: &storage.dropped,
            given_up: &storage.given_up,
        }
    }

    /// Whether its making or its drop is of a transaction that has not ended, or has only just.
    pub(crate) fn is_unresolved(self) -> bool {
        let storage = self.storage();
        storage.created.load(Ordering::Acquire) | storage.dropped.load(Ordering::Acquire) != 0
    }

    /// Whether every row must have its entry, and unique keys are asked for: it exists for the
    /// caller. An index that another transaction is building takes what it can get.
    #[inline]
    pub(crate) fn is_asked(self, clock: &impl Clock) -> bool {
        if self.is_dead() {
            return false;
        }
        let storage = self.storage();
        let created = storage.created.load(Ordering::Acquire);
        let dropped = storage.dropped.load(Ordering::Acquire);
        created | dropped == 0 || super::catalog::exists(created, dropped, clock)
    }

    /// Whether writers know that the server's catalog has it as dead.
    #[inline]
    pub(crate) fn is_dead(self) -> bool {
        self.has_mark(marks::DEAD)
    }

    /// From now on it is asked no more: the server's catalog has it as dead. False: that was known.
    pub(crate) fn set_dead(self) -> bool {
        let before = self
            .storage()
            .marks
            .fetch_or(marks::DEAD, Ordering::Relaxed);
        before & marks::DEAD == 0
    }

    /// Whether states of rows were left out that a snapshot may see, while it was built beside
    /// writers. Its maker has waited for these writers.
    pub fn has_left_out(self) -> bool {
        self.has_mark(marks::HAS_LEFT_OUT)
    }

    /// Whether its keys are computed by the code that forms a row (`key/computed.rs`).
    #[inline]
    pub fn is_computed(self) -> bool {
        self.has_mark(marks::COMPUTED)
    }

    /// A state of a row that a snapshot may see gets no entry.
    pub(crate) fn leave_out(self) {
        let marks = &self.storage().marks;
        marks.fetch_or(marks::HAS_LEFT_OUT, Ordering::Relaxed);
    }

    #[inline]
    fn has_mark(self, mark: u32) -> bool {
        self.storage().marks.load(Ordering::Relaxed) & mark != 0
    }

    /// From which sessions it is kept, if it is: those with snapshots that are not younger than
    /// this transaction.
    pub(crate) fn kept_from_older(self) -> Option<Xid> {
        let xid = self.storage().kept_from_older.load(Ordering::Acquire);
        (xid != 0).then_some(Xid(xid))
    }

    /// Keeps it, made by `maker`, from snapshots that may be older. Before it is published.
    pub(crate) fn keep_from_older(self, maker: Xid) {
        let word = &self.storage().kept_from_older;
        word.store(maker.0, Ordering::Release);
    }

    pub(crate) fn form(self, has_null: bool) -> EntryForm {
        let storage = self.storage();
        if storage.unique && (!has_null || storage.nulls_not_distinct) {
            EntryForm::Pointed
        } else {
            EntryForm::Suffixed
        }
    }

    /// The definition's bytes.
    pub fn definition_bytes<'a>(self) -> &'a [u8] {
        // SAFETY: the bytes follow the header in the same block and never change.
        unsafe {
            std::slice::from_raw_parts(
                self.0.as_ptr().add(1).cast::<u8>(),
                self.storage().definition_bytes as usize,
            )
        }
    }

    /// Checks that this process orders the keys as those do that entered them.
    pub(crate) fn check_collations(self, definition: &IndexDefinition) -> Result<(), EngineError> {
        if definition.collations_fingerprint() == self.storage().collations {
            return Ok(());
        }
        Err(EngineError::CollationChanged {
            index: self.relation_oid(),
        })
    }

    /// A new, empty index, not reachable yet.
    pub(crate) fn allocate(
        memory: &LocalMemory,
        id: IndexId,
        table: NonNull<TableStorage>,
        definition: &IndexDefinition,
        created: u64,
        urgency: Urgency,
    ) -> Result<IndexRef, EngineError> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve(definition.bytes_len())
            .map_err(|_| EngineError::OutOfProcessMemory)?;
        definition.write_bytes(&mut bytes)?;
        let block = memory.allocate(block_bytes(bytes.len()), Purpose::Catalog, urgency)?;
        let storage = block.cast::<IndexStorage>();
        // SAFETY: the block is ours and large enough for the header and the bytes.
        unsafe {
            storage.write(IndexStorage {
                id,
                table,
                created: AtomicU64::new(created),
                dropped: AtomicU64::new(0),
                created_lsn: AtomicU64::new(0),
                dropped_lsn: AtomicU64::new(0),
                marks: AtomicU32::new(match definition.computed {
                    Some(_) if definition.is_of_columns() => marks::COMPUTED | marks::OF_COLUMNS,
                    Some(_) => marks::COMPUTED,
                    None => 0,
                }),
                given_up: AtomicU32::new(0),
                next_pending_free: AtomicU64::new(0),
                table_id: TableRef(table).id(),
                kept_from_older: AtomicU64::new(0),
                counters: IndexCounters::default(),
                relation: definition.relation,
                file: definition.file,
                unique: definition.unique,
                nulls_not_distinct: definition.nulls_not_distinct,
                definition_bytes: bytes.len() as u32,
                collations: definition.collations_fingerprint(),
                root: TreeRoot::new(),
            });
            let at = storage.add(1).cast::<u8>();
            at.copy_from_nonoverlapping(NonNull::from(&bytes[..]).cast(), bytes.len());
        }
        Ok(IndexRef(storage))
    }

    /// Gives the header back; the tree must be cleared before.
    ///
    /// # Safety
    /// Nothing uses the index any more.
    pub(crate) unsafe fn free(self, memory: &LocalMemory) {
        let bytes = block_bytes(self.storage().definition_bytes as usize);
        // SAFETY: allocated with these bytes by `allocate`; unused (caller).
        unsafe { memory.free(self.0.cast(), bytes, Purpose::Catalog) };
    }
}

fn block_bytes(definition_bytes: usize) -> usize {
    (size_of::<IndexStorage>() + definition_bytes).next_multiple_of(align_of::<IndexStorage>())
}
