//! Tables and indexes that a transaction creates and drops.
//!
//! The caller holds PostgreSQL's lock: AccessExclusive for creating, dropping and truncating
//! tables, and at least Share for creating an index at once (no other session writes). Writers may
//! run beside the drop of an index, and beside an index that is begun and filled
//! (`index/build/beside.rs`). What is rolled back or dropped goes to the catalog's lists
//! (`free.rs`).

use super::free::free_index;
use super::{Kind, Transaction};
use crate::clock::Clock;
use crate::errors::EngineError;
use crate::ids::{FileKey, IndexId, RelationKey, RowId, TableId, Xid};
use crate::index::{Build, build};
use crate::key::IndexDefinition;
use crate::limits::INDEXES_PER_TABLE_MAX;
use crate::memory::{Purpose, Urgency};
use crate::reclaim::Quiet;
use crate::session::{Session, temporary};
use crate::table::{IndexRef, Persistence, TableRef, TableStorage};
use std::sync::atomic::Ordering;

impl Transaction {
    /// An empty storage for a relation, whose rows are logged.
    pub fn create_table(
        &mut self,
        session: &Session,
        key: RelationKey,
        xid: Xid,
    ) -> Result<TableRef, EngineError> {
        self.create_table_as(session, key, Persistence::Logged, xid)
    }

    /// An empty storage for a relation.
    pub fn create_table_as(
        &mut self,
        session: &Session,
        key: RelationKey,
        persistence: Persistence,
        xid: Xid,
    ) -> Result<TableRef, EngineError> {
        self.create_table_of(session, (key, persistence), xid, Urgency::Ordinary)
    }

    fn create_table_of(
        &mut self,
        session: &Session,
        (key, persistence): (RelationKey, Persistence),
        xid: Xid,
        urgency: Urgency,
    ) -> Result<TableRef, EngineError> {
        self.begin_operation(key, xid)?;
        self.own_tables.reserve()?;
        let id = TableId(
            session
                .catalog()
                .next_table_id
                .fetch_add(1, Ordering::Relaxed),
        );
        let new = NewTable {
            id,
            key,
            persistence,
        };
        let table = allocate_table(session, new, xid, urgency)?;
        session.catalog().link(table);
        self.own_tables.add(table, self.operations.len());
        self.push(Kind::CreateTable, table, RowId(0), 0);
        Ok(table)
    }

    /// Drops a relation's storage; its memory comes back after commit.
    pub fn drop_table(
        &mut self,
        _session: &Session,
        table: TableRef,
        xid: Xid,
    ) -> Result<(), EngineError> {
        self.begin_operation(table.key(), xid)?;
        let dropped_lsn = &table.storage().dropped_lsn;
        table.makers().set_dropped(dropped_lsn, xid);
        self.push(Kind::DropTable, table, RowId(0), 0);
        Ok(())
    }

    /// A new, empty storage with the same indexes in place of the old one. May use the arena's
    /// reserve: it takes a header for each, and more than that comes back after commit.
    pub fn truncate_table(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        xid: Xid,
    ) -> Result<TableRef, EngineError> {
        let urgency = Urgency::Reserve;
        let fresh =
            self.create_table_of(session, (table.key(), table.persistence()), xid, urgency)?;
        for index in session.indexes(table, clock) {
            let definition = IndexDefinition::from_bytes(index.definition_bytes())?;
            self.create_index_of(session, clock, fresh, &definition, xid, urgency)?;
        }
        self.drop_table(session, table, xid)?;
        Ok(fresh)
    }

    /// A new index, built from the rows that are there.
    pub fn create_index(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        definition: &IndexDefinition,
        xid: Xid,
    ) -> Result<Build, EngineError> {
        self.create_index_of(session, clock, table, definition, xid, Urgency::Ordinary)
    }

    fn create_index_of(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        definition: &IndexDefinition,
        xid: Xid,
        urgency: Urgency,
    ) -> Result<Build, EngineError> {
        definition.validate()?;
        self.begin_operation(table.key(), xid)?;
        let _charge = session.charge(table);
        let id = next_index_id(session);
        // Until it is published: a process that removes a version removes its entries only in the
        // indexes that it finds.
        let _quiet = Quiet::begin(table);
        let index = Unpublished {
            session,
            index: IndexRef::allocate(&session.local, id, table.0, definition, xid.0, urgency)?,
        };
        let built = build(session, clock, table, index.index)?;
        if let Build::Done(_) | Build::DoneBesideOlder(_) = built {
            publish_index(session, table, index.index)?;
            let index = index.keep();
            self.push(Kind::CreateIndex, table, RowId(0), index.address());
        }
        Ok(built)
    }

    /// A new, empty index beside writers, which enter their rows from now on: `Session::fill_index`
    /// enters those that are there. No writer is refused for it before this transaction commits.
    pub fn begin_index(
        &mut self,
        session: &Session,
        table: TableRef,
        definition: &IndexDefinition,
        xid: Xid,
    ) -> Result<IndexRef, EngineError> {
        definition.validate()?;
        self.begin_operation(table.key(), xid)?;
        let _charge = session.charge(table);
        let id = next_index_id(session);
        let urgency = Urgency::Ordinary;
        let index = Unpublished {
            session,
            index: IndexRef::allocate(&session.local, id, table.0, definition, xid.0, urgency)?,
        };
        publish_index(session, table, index.index)?;
        let index = index.keep();
        self.push(Kind::CreateIndex, table, RowId(0), index.address());
        Ok(index)
    }

    /// Drops the index with this oid; `false` if the table has none.
    pub fn drop_index(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        relation: u32,
        xid: Xid,
    ) -> Result<bool, EngineError> {
        let index = session.find_index(table, relation, clock);
        self.drop_found_index(table, index, xid)
    }

    /// Drops the index with this file; `false` if the table has none.
    pub fn drop_index_of_file(
        &mut self,
        session: &Session,
        clock: &impl Clock,
        table: TableRef,
        file: FileKey,
        xid: Xid,
    ) -> Result<bool, EngineError> {
        let index = session.find_index_of_file(table, file, clock);
        self.drop_found_index(table, index, xid)
    }

    fn drop_found_index(
        &mut self,
        table: TableRef,
        index: Option<IndexRef>,
        xid: Xid,
    ) -> Result<bool, EngineError> {
        self.begin_operation(table.key(), xid)?;
        let Some(index) = index else {
            return Ok(false);
        };
        let dropped_lsn = &index.storage().dropped_lsn;
        index.makers().set_dropped(dropped_lsn, xid);
        self.push(Kind::DropIndex, table, RowId(0), index.address());
        Ok(true)
    }
}

fn next_index_id(session: &Session) -> IndexId {
    let next = &session.catalog().next_index_id;
    IndexId(next.fetch_add(1, Ordering::Relaxed))
}

/// An index that is freed, with what it holds, unless it is published: also when the clock unwinds
/// out of its build.
struct Unpublished<'a> {
    session: &'a Session,
    index: IndexRef,
}

impl Unpublished<'_> {
    fn keep(self) -> IndexRef {
        let index = self.index;
        std::mem::forget(self);
        index
    }
}

impl Drop for Unpublished<'_> {
    fn drop(&mut self) {
        // SAFETY: never published.
        unsafe { free_index(self.session, self.index) };
    }
}

/// What of a storage never changes.
pub(crate) struct NewTable {
    pub(crate) id: TableId,
    pub(crate) key: RelationKey,
    pub(crate) persistence: Persistence,
}

/// A table's storage, linked to nothing.
pub(crate) fn allocate_table(
    session: &Session,
    new: NewTable,
    created: Xid,
    urgency: Urgency,
) -> Result<TableRef, EngineError> {
    debug_assert_eq!(
        new.key.is_temporary(),
        new.persistence == Persistence::Temporary
    );
    let bytes = size_of::<TableStorage>();
    let block = session.local.allocate(bytes, Purpose::Catalog, urgency)?;
    let storage = block.cast::<TableStorage>();
    // SAFETY: the block is ours and that large. All-zero is an empty storage, to which identity and
    // creator are added before any process can reach it.
    unsafe {
        block.write_bytes(0, bytes);
        let storage = storage.as_ptr();
        (&raw mut (*storage).id).write(new.id);
        (&raw mut (*storage).key).write(new.key);
        (&raw mut (*storage).persistence).write(new.persistence);
        (*storage).created.store(created.0, Ordering::Relaxed);
        (*storage).lists_free.store(1, Ordering::Relaxed);
        (&raw mut (*storage).owner).write(&raw const session.line.temporary_bytes as u64);
    }
    let table = TableRef(storage);
    if new.key.is_temporary() {
        temporary::add(table, crate::memory::block_bytes(bytes) as i64);
    }
    Ok(table)
}

/// Puts an index where writers and readers find it.
pub(crate) fn publish_index(
    session: &Session,
    table: TableRef,
    index: IndexRef,
) -> Result<(), EngineError> {
    let _pin = session.local.pin();
    let storage = table.storage();
    for (position, word) in storage.indexes.iter().enumerate() {
        if word
            .compare_exchange(0, index.address(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            storage
                .index_count
                .fetch_max(position as u32 + 1, Ordering::AcqRel);
            storage.indexes_published.fetch_add(1, Ordering::AcqRel);
            table.order_places();
            return Ok(());
        }
    }
    Err(EngineError::TooManyIndexes {
        max: INDEXES_PER_TABLE_MAX,
    })
}
