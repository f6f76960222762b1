//! Predicate locks (SIREAD): what of predicate.c is exported, and the relations that are spoken of.
//!
//! The functions read four things of a relation: its oid, its database, whether it is temporary,
//! whether it is an index (by `rd_index`, and only where a table's rows are locked or locks are
//! moved). So a [`Subject`] represents a relation, which need not be open.
use super::relation::Relation;
use super::snapshot::Snapshot;
use super::version;
use mot_engine::{Ordinal, RowId};
use pgrx::pg_sys;

/// A block number that is one.
const BLOCK_MAX: u32 = pg_sys::InvalidBlockNumber - 1;

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn PredicateLockRelation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot);
    fn PredicateLockPage(
        relation: pg_sys::Relation,
        block: pg_sys::BlockNumber,
        snapshot: pg_sys::Snapshot,
    );
    fn PredicateLockTID(
        relation: pg_sys::Relation,
        tid: pg_sys::ItemPointer,
        snapshot: pg_sys::Snapshot,
        maker: pg_sys::TransactionId,
    );
    fn CheckForSerializableConflictOutNeeded(
        relation: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
    ) -> bool;
    fn CheckForSerializableConflictOut(
        relation: pg_sys::Relation,
        xid: pg_sys::TransactionId,
        snapshot: pg_sys::Snapshot,
    );
    fn CheckForSerializableConflictIn(
        relation: pg_sys::Relation,
        tid: pg_sys::ItemPointer,
        block: pg_sys::BlockNumber,
    );
    fn CheckTableForSerializableConflictIn(relation: pg_sys::Relation);
    fn TransferPredicateLocksToHeapRelation(relation: pg_sys::Relation);
}

/// A version of a row for predicate locks: core's page of it is what several locked rows of one
/// page are promoted to.
#[derive(Clone, Copy)]
pub struct RowPlace {
    page: u32,
    /// From 1.
    offset: u16,
}

/// Rows of a page, as heap pages have them. Not a tid's block: core makes three locked rows of a
/// page (by default) a lock of the page, and one over a block's 1024 rows would meet most writers.
const ROWS_PER_PAGE: u64 = 64;

/// Versions of a row that have places of their own; they go round.
const VERSIONS_PER_ROW: u16 = 1023;

const _: () = assert!(ROWS_PER_PAGE * VERSIONS_PER_ROW as u64 <= u16::MAX as u64);

impl RowPlace {
    /// The place of the version of a row that has this ordinal.
    pub fn new(row: RowId, ordinal: Ordinal) -> RowPlace {
        let row_of_page = (row.0 % ROWS_PER_PAGE) as u16;
        RowPlace {
            page: block_of((row.0 / ROWS_PER_PAGE) as u32),
            offset: row_of_page * VERSIONS_PER_ROW + ordinal.0 % VERSIONS_PER_ROW + 1,
        }
    }
}

/// The number of a range, as a page of its index.
fn block_of(range: u32) -> pg_sys::BlockNumber {
    range.min(BLOCK_MAX)
}

/// A table or an index of this database.
pub struct Subject {
    relation: pg_sys::RelationData,
    form: pg_sys::FormData_pg_class,
}

impl Subject {
    /// The relation with this oid.
    pub fn new(oid: pg_sys::Oid) -> Box<Subject> {
        // SAFETY: both are plain structures of C; zeros are null pointers, no oid and false.
        let mut subject = Box::new(unsafe { std::mem::zeroed::<Subject>() });
        subject.form.relpersistence = pg_sys::RELPERSISTENCE_PERMANENT as _;
        // The box keeps its address as long as the subject lives.
        subject.relation.rd_rel = &raw mut subject.form;
        subject.relation.rd_id = oid;
        // SAFETY: a plain variable of this process.
        let database = unsafe { pg_sys::MyDatabaseId };
        version::table_am::set_database(&mut subject.relation, database);
        subject
    }

    fn call<T>(&self, call: impl FnOnce(pg_sys::Relation) -> T) -> T {
        // SAFETY: the functions above only read the relation; none of the closures holds a value
        // with a destructor.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| call((&raw const self.relation).cast_mut()))
        }
    }

    /// Locks all of it.
    pub fn lock_all(&self, snapshot: Snapshot<'_>) {
        // SAFETY: the snapshot is registered.
        #[allow(ffi_unwind_calls)]
        self.call(|relation| unsafe { PredicateLockRelation(relation, snapshot.as_ptr()) });
    }

    /// Locks a range of an index.
    pub fn lock_range(&self, range: u32, snapshot: Snapshot<'_>) {
        let block = block_of(range);
        // SAFETY: the snapshot is registered.
        #[allow(ffi_unwind_calls)]
        self.call(|relation| unsafe { PredicateLockPage(relation, block, snapshot.as_ptr()) });
    }

    /// Locks a version of a row of a table, unless this transaction made the state it sees.
    pub fn lock_row(&self, row: RowPlace, maker: pg_sys::TransactionId, snapshot: Snapshot<'_>) {
        let mut tid = tid(row);
        // SAFETY: the snapshot is registered; the place is read during the call.
        #[allow(ffi_unwind_calls)]
        self.call(|relation| unsafe {
            PredicateLockTID(relation, &raw mut tid, snapshot.as_ptr(), maker)
        });
    }

    /// Raises 40001 if this transaction is doomed; whether it needs to know of writers at all.
    pub fn is_watched(&self, snapshot: Snapshot<'_>) -> bool {
        // SAFETY: the snapshot is registered.
        #[allow(ffi_unwind_calls)]
        self.call(|relation| unsafe {
            CheckForSerializableConflictOutNeeded(relation, snapshot.as_ptr())
        })
    }

    /// This transaction did not see what the top-level transaction `xid` wrote.
    pub fn conflict_out(&self, xid: pg_sys::TransactionId, snapshot: Snapshot<'_>) {
        // SAFETY: the snapshot is registered.
        #[allow(ffi_unwind_calls)]
        self.call(|relation| unsafe {
            CheckForSerializableConflictOut(relation, xid, snapshot.as_ptr())
        });
    }

    /// This transaction wrote: a new row, which no transaction can have locked.
    pub fn conflict_in(&self) {
        let none = std::ptr::null_mut();
        // SAFETY: no row and no page are allowed.
        #[allow(ffi_unwind_calls)]
        self.call(|relation| unsafe {
            CheckForSerializableConflictIn(relation, none, pg_sys::InvalidBlockNumber)
        });
    }

    /// This transaction replaced a version of a row. The page with it: locks of rows may have been
    /// promoted to locks of their page.
    pub fn conflict_in_row(&self, row: RowPlace) {
        let mut tid = tid(row);
        // SAFETY: the place is read during the call.
        #[allow(ffi_unwind_calls)]
        self.call(|relation| unsafe {
            CheckForSerializableConflictIn(relation, &raw mut tid, row.page)
        });
    }

    /// This transaction made an entry in a range of an index.
    pub fn conflict_in_range(&self, range: u32) {
        let (none, block) = (std::ptr::null_mut(), block_of(range));
        // SAFETY: no row is allowed.
        #[allow(ffi_unwind_calls)]
        self.call(|relation| unsafe { CheckForSerializableConflictIn(relation, none, block) });
    }

    /// This transaction took all rows of a table away.
    pub fn conflict_in_all(&self) {
        // SAFETY: no other condition.
        #[allow(ffi_unwind_calls)]
        self.call(|relation| unsafe { CheckTableForSerializableConflictIn(relation) });
    }
}

/// Turns all transactions' locks of an index, or of a table's rows and indexes, into locks of the
/// whole table. The caller has locked the table exclusively.
pub fn move_to_table(relation: Relation<'_>) {
    let relation = relation.as_ptr();
    // SAFETY: an open relation. The closure holds one call.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            #[allow(ffi_unwind_calls)]
            TransferPredicateLocksToHeapRelation(relation)
        });
    }
}

fn tid(row: RowPlace) -> pg_sys::ItemPointerData {
    pg_sys::ItemPointerData {
        ip_blkid: pg_sys::BlockIdData {
            bi_hi: (row.page >> 16) as u16,
            bi_lo: row.page as u16,
        },
        ip_posid: row.offset,
    }
}
