//! Open relations.
use super::argument::Argument;
use super::list;
use super::node::{KeyColumn, Node};
use super::text;
use pgrx::pg_sys;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Of a call: it takes no lock, for the caller has one.
pub const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;

/// An entry of the relation cache that is open for the time `'p`.
#[derive(Clone, Copy)]
pub struct Relation<'p> {
    entry: NonNull<pg_sys::RelationData>,
    time: PhantomData<&'p pg_sys::RelationData>,
}

impl Argument<pg_sys::Relation> for Relation<'_> {
    #[inline]
    unsafe fn of(passed: pg_sys::Relation) -> Self {
        // SAFETY: the caller's.
        unsafe { Relation::enter(passed) }
    }
}

impl Argument<pg_sys::Relation> for Option<Relation<'_>> {
    #[inline]
    unsafe fn of(passed: pg_sys::Relation) -> Self {
        // SAFETY: NULL, or what the caller says.
        (!passed.is_null()).then(|| unsafe { Relation::enter(passed) })
    }
}

/// Methods that read fields of a relation's row of `pg_class`.
macro_rules! class {
    ($($(#[$doc:meta])* $name:ident: $field:ident $(as $type:ty)?, $result:ty;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(self) -> $result {
            // SAFETY: an open relation has its row of `pg_class`.
            unsafe { (*(*self.as_ptr()).rd_rel).$field $(as $type)? }
        }
    )*};
}

impl<'p> Relation<'p> {
    class! {
        /// The kind.
        kind: relkind as u8, u8;
        /// The access method.
        access_method: relam, pg_sys::Oid;
        /// Whether it is permanent, temporary or not logged.
        persistence: relpersistence as u8, u8;
        /// The schema.
        schema: relnamespace, pg_sys::Oid;
        /// The tablespace; invalid: the database's own.
        tablespace: reltablespace, pg_sys::Oid;
        /// The file; invalid: none, or a mapped catalog's.
        file: relfilenode, pg_sys::Oid;
        /// Pages, as VACUUM or ANALYZE has counted them.
        pages: relpages, i32;
        /// Rows, as VACUUM or ANALYZE has counted them; negative: not yet.
        rows: reltuples, f32;
        /// How a publication names its rows.
        replica_identity: relreplident as u8, u8;
        /// Whether it has, or had, indexes.
        has_indexes: relhasindex, bool;
        /// Whether it has, or had, children.
        has_children: relhassubclass, bool;
    }

    /// A view of an open relation.
    ///
    /// # Safety
    /// It is open for `'p`.
    #[inline]
    pub unsafe fn enter(entry: pg_sys::Relation) -> Relation<'p> {
        debug_assert!(!entry.is_null());
        Relation {
            // SAFETY: an open relation (caller).
            entry: unsafe { NonNull::new_unchecked(entry) },
            time: PhantomData,
        }
    }

    /// The entry, for calls of core.
    #[inline]
    pub fn as_ptr(self) -> pg_sys::Relation {
        self.entry.as_ptr()
    }

    /// The oid.
    #[inline]
    pub fn oid(self) -> pg_sys::Oid {
        // SAFETY: an open relation.
        unsafe { (*self.as_ptr()).rd_id }
    }

    /// The name.
    pub fn name(self) -> &'p CStr {
        // SAFETY: an open relation's row of `pg_class`, which stays in its place, has the name as a
        // terminated array.
        unsafe { CStr::from_ptr((*(*self.as_ptr()).rd_rel).relname.data.as_ptr()) }
    }

    /// The functions of a table's access method; NULL of other relations.
    #[inline]
    pub fn table_routine(self) -> *const pg_sys::TableAmRoutine {
        // SAFETY: an open relation.
        unsafe { (*self.as_ptr()).rd_tableam }
    }

    /// The number of a temporary relation's session, as the server counts them; of others -1.
    #[inline]
    pub fn session(self) -> i32 {
        // SAFETY: an open relation.
        unsafe { (*self.as_ptr()).rd_backend }
    }

    /// Whether it is a temporary one of this session.
    #[inline]
    pub fn is_temporary_here(self) -> bool {
        // SAFETY: an open relation.
        unsafe { (*self.as_ptr()).rd_islocaltemp }
    }

    /// The name, for messages.
    pub fn name_text(self) -> String {
        // SAFETY: a terminated string.
        unsafe { text::from_c(self.name().as_ptr()) }
    }

    /// Whether the current transaction has made it.
    #[inline]
    pub fn is_made_here(self) -> bool {
        // SAFETY: an open relation.
        unsafe { (*self.as_ptr()).rd_createSubid != 0 }
    }

    /// The order of an index's key column, from 0: flags of `pg_index.indoption`.
    pub fn column_order(self, position: usize) -> i16 {
        assert!(position < self.index_row().indnkeyatts as usize);
        // SAFETY: an open index's array has an element for each key column.
        unsafe { *(*self.as_ptr()).rd_indoption.add(position) }
    }

    /// The options of a table, if it has any.
    pub fn table_options(self) -> Option<pg_sys::StdRdOptions> {
        if ![pg_sys::RELKIND_RELATION, pg_sys::RELKIND_MATVIEW].contains(&self.kind()) {
            return None;
        }
        // SAFETY: an open table's options, if it has any, are of this type.
        unsafe {
            let options = (*self.as_ptr()).rd_options.cast::<pg_sys::StdRdOptions>();
            options.as_ref().copied()
        }
    }

    /// An index's row of `pg_index`, but for its columns.
    pub fn index_row(self) -> pg_sys::FormData_pg_index {
        // SAFETY: an open relation.
        let row = unsafe { (*self.as_ptr()).rd_index };
        assert!(!row.is_null());
        // SAFETY: an open index has its row of `pg_index`.
        unsafe { row.read() }
    }

    /// The table of an index.
    pub fn table(self) -> pg_sys::Oid {
        self.index_row().indrelid
    }

    /// Whether it is an index, partitioned ones included.
    pub fn is_index(self) -> bool {
        // SAFETY: an open relation.
        unsafe { !(*self.as_ptr()).rd_index.is_null() }
    }

    /// The columns of an index, as numbers of its table's; 0: an expression.
    pub fn index_columns(self) -> &'p [i16] {
        let count = self.index_row().indnatts as usize;
        // SAFETY: an open index's row, which stays in its place, has so many columns.
        unsafe { (*(*self.as_ptr()).rd_index).indkey.values.as_slice(count) }
    }

    /// The same without the columns that it only includes.
    pub fn key_columns(self) -> &'p [i16] {
        &self.index_columns()[..self.index_row().indnkeyatts as usize]
    }

    /// A key column of an index, from 0.
    pub fn key_column(self, position: usize) -> KeyColumn {
        assert!(position < self.index_row().indnkeyatts as usize);
        // SAFETY: an open index's arrays have an element for each key column.
        unsafe {
            let index = &*self.as_ptr();
            KeyColumn {
                input: *index.rd_opcintype.add(position),
                family: *index.rd_opfamily.add(position),
                collation: *index.rd_indcollation.add(position),
                column: self.index_columns()[position].into(),
            }
        }
    }

    /// Whether an option of tables says that logical decoding reads it as a catalog.
    pub fn is_catalog_table(self) -> bool {
        self.table_options()
            .is_some_and(|options| options.user_catalog_table)
    }

    /// The indexes of a table.
    pub fn indexes(self) -> Vec<pg_sys::Oid> {
        // SAFETY: an open table; the list is a copy, which is freed.
        unsafe {
            let list = pg_sys::RelationGetIndexList(self.as_ptr());
            let indexes = pgrx::PgList::<pg_sys::Oid>::from_pg(list)
                .iter_oid()
                .collect();
            pg_sys::list_free(list);
            indexes
        }
    }

    /// Whether an index is of some rows only.
    pub fn has_predicate(self) -> bool {
        // SAFETY: an open relation.
        assert!(unsafe { !(*self.as_ptr()).rd_index.is_null() });
        // SAFETY: an open index.
        unsafe { !pg_sys::RelationGetIndexPredicate(self.as_ptr()).is_null() }
    }

    /// Waits until all transactions have ended that may write to it now.
    pub fn wait_for_writers(self) {
        let share = pg_sys::ShareLock as pg_sys::LOCKMODE;
        // SAFETY: an open relation, whose lock has a tag.
        unsafe {
            let lock = (*self.as_ptr()).rd_lockInfo.lockRelId;
            let tag = pg_sys::LOCKTAG {
                locktag_field1: lock.dbId.to_u32(),
                locktag_field2: lock.relId.to_u32(),
                locktag_field3: 0,
                locktag_field4: 0,
                locktag_type: pg_sys::LockTagType::LOCKTAG_RELATION as u8,
                locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
            };
            pg_sys::WaitForLockers(tag, share, false);
        }
    }

    /// Whether this session holds exactly this lock of it.
    pub fn is_locked(self, lock: pg_sys::LOCKMODE) -> bool {
        // SAFETY: an open relation.
        unsafe { pg_sys::CheckRelationLockedByMe(self.as_ptr(), lock, false) }
    }

    /// Whether this session holds this lock of it, or a stronger one.
    pub fn is_locked_at_least(self, lock: pg_sys::LOCKMODE) -> bool {
        // SAFETY: an open relation.
        unsafe { pg_sys::CheckRelationLockedByMe(self.as_ptr(), lock, true) }
    }

    /// Raises 55006 if an open cursor of the session reads it, or a trigger is still to fire for
    /// it. Only the caller may have it open.
    pub fn check_not_in_use(self, statement: &CStr) {
        // SAFETY: an open relation.
        unsafe { pg_sys::CheckTableNotInUse(self.as_ptr(), statement.as_ptr()) };
    }

    /// Tells all sessions that what they know of it is not so any more, when the transaction
    /// commits.
    pub fn invalidate(self) {
        // SAFETY: an open relation, in a transaction.
        unsafe { pg_sys::CacheInvalidateRelcache(self.as_ptr()) };
    }

    /// Makes it a heap table.
    ///
    /// # Safety
    /// Core is making it, and writes the catalog from this entry.
    pub unsafe fn become_heap(self) {
        // SAFETY: an entry that core is making (caller). The routine lives as long as the process.
        unsafe {
            let entry = self.as_ptr();
            (*(*entry).rd_rel).relam = pg_sys::HEAP_TABLE_AM_OID;
            (*entry).rd_amhandler = pg_sys::Oid::from(pg_sys::F_HEAP_TABLEAM_HANDLER);
            (*entry).rd_tableam = pg_sys::GetHeapamTableAmRoutine();
        }
    }

    /// The row type.
    pub fn row_type(self) -> pg_sys::TupleDesc {
        // SAFETY: an open relation.
        unsafe { (*self.as_ptr()).rd_att }
    }

    /// The row type's columns and constraints.
    pub fn description(self) -> Node<'p, pg_sys::TupleDescData> {
        // SAFETY: an open relation keeps its row type.
        unsafe { Node::enter(self.row_type()) }
    }

    /// Whether it is a partition.
    pub fn is_partition(self) -> bool {
        // SAFETY: as above.
        unsafe { (*(*self.as_ptr()).rd_rel).relispartition }
    }

    /// Its owner and its schema.
    pub fn owner_and_schema(self) -> (pg_sys::Oid, pg_sys::Oid) {
        // SAFETY: as above.
        let row = unsafe { &*(*self.as_ptr()).rd_rel };
        (row.relowner, row.relnamespace)
    }

    /// Its triggers; `None`: it has none.
    ///
    /// # Safety
    /// For `'p` no message of an invalidation is accepted: core replaces them then.
    pub unsafe fn triggers(self) -> Option<Node<'p, pg_sys::TriggerDesc>> {
        // SAFETY: an open relation has there NULL, or its triggers.
        unsafe { Node::enter_if_any((*self.as_ptr()).trigdesc) }
    }

    /// Its foreign keys, as the relation cache has them now.
    pub fn foreign_keys(self) -> impl Iterator<Item = pg_sys::ForeignKeyCacheInfo> {
        // SAFETY: an open relation; the cache's list, which is copied at once.
        let keys = unsafe {
            let list = pg_sys::RelationGetFKeyList(self.as_ptr());
            list::items::<pg_sys::ForeignKeyCacheInfo>(list)
                .into_iter()
                .map(|key| key.read())
                .collect::<Vec<_>>()
        };
        keys.into_iter()
    }

    /// Whether one of these columns is in a key that a foreign key may refer to.
    pub fn has_any_in_keys(self, mut columns: impl Iterator<Item = i16>) -> bool {
        let keys = pg_sys::IndexAttrBitmapKind::INDEX_ATTR_BITMAP_KEY;
        // SAFETY: an open relation; the set of columns is a copy of ours.
        unsafe {
            let keys = pg_sys::RelationGetIndexAttrBitmap(self.as_ptr(), keys);
            let is_in_keys = columns.any(|column| {
                let member = i32::from(column) - pg_sys::FirstLowInvalidHeapAttributeNumber;
                pg_sys::bms_is_member(member, keys)
            });
            pg_sys::bms_free(keys);
            is_in_keys
        }
    }

    /// The columns, from 0, of the key by which a publication names its rows.
    pub fn identity_columns(self) -> Vec<usize> {
        let kind = pg_sys::IndexAttrBitmapKind::INDEX_ATTR_BITMAP_IDENTITY_KEY;
        // SAFETY: an open relation, of which core copies the set.
        let numbers =
            unsafe { column_numbers(pg_sys::RelationGetIndexAttrBitmap(self.as_ptr(), kind)) };
        numbers
            .into_iter()
            .map(|number| number as usize - 1)
            .collect()
    }

    /// Raises 55000 if a publication could not name rows that an operation changes.
    pub fn check_replica_identity(self, operation: pg_sys::CmdType::Type) {
        // SAFETY: an open relation.
        unsafe { pg_sys::CheckCmdReplicaIdentity(self.as_ptr(), operation) };
    }
}

/// The columns of a set as core has them, system columns below 0, and 0 for the whole row. The set
/// is freed.
///
/// # Safety
/// A set of the current memory context, which no other code uses.
pub unsafe fn column_numbers(set: *mut pg_sys::Bitmapset) -> Vec<i16> {
    let mut columns = Vec::new();
    // SAFETY: the caller's set.
    unsafe {
        let mut member = pg_sys::bms_next_member(set, -1);
        while member >= 0 {
            columns.push((member + pg_sys::FirstLowInvalidHeapAttributeNumber) as i16);
            member = pg_sys::bms_next_member(set, member);
        }
        pg_sys::bms_free(set);
    }
    columns
}

/// Opens a relation for the time of `read`. A lock that is taken stays to the end of the
/// transaction. After an error core closes it.
pub fn with<T>(
    relation: pg_sys::Oid,
    lock: pg_sys::LOCKMODE,
    read: impl FnOnce(Relation<'_>) -> T,
) -> T {
    // SAFETY: core raises for what is not there.
    unsafe { until_closed(pg_sys::relation_open(relation, lock), read) }
}

/// Reads a relation, and closes it without giving its lock back.
///
/// # Safety
/// It is open, and nobody else closes it.
unsafe fn until_closed<T>(opened: pg_sys::Relation, read: impl FnOnce(Relation<'_>) -> T) -> T {
    // SAFETY: the caller's relation, whose view ends before it is closed.
    unsafe {
        let found = read(Relation::enter(opened));
        pg_sys::relation_close(opened, NO_LOCK);
        found
    }
}

/// Opens a relation that may be gone for the time of `read`, and gives the lock back; `None`: it is
/// gone.
pub fn try_with<T>(
    relation: pg_sys::Oid,
    lock: pg_sys::LOCKMODE,
    read: impl FnOnce(Relation<'_>) -> T,
) -> Option<T> {
    // SAFETY: open until it is closed below.
    unsafe {
        let opened = pg_sys::try_relation_open(relation, lock);
        if opened.is_null() {
            return None;
        }
        let found = read(Relation::enter(opened));
        pg_sys::relation_close(opened, lock);
        Some(found)
    }
}

/// Gives what is done with a relation's entry of the cache, without a lock; `None`: there is none.
pub fn with_entry<T>(relation: pg_sys::Oid, read: impl FnOnce(Relation<'_>) -> T) -> Option<T> {
    // SAFETY: the entry is counted until it is closed below.
    unsafe {
        let entry = pg_sys::RelationIdGetRelation(relation);
        if entry.is_null() {
            return None;
        }
        let found = read(Relation::enter(entry));
        pg_sys::RelationClose(entry);
        Some(found)
    }
}

/// As [`with`], of an index.
pub fn with_index<T>(
    index: pg_sys::Oid,
    lock: pg_sys::LOCKMODE,
    read: impl FnOnce(Relation<'_>) -> T,
) -> T {
    // SAFETY: core raises for what is no index, or not there.
    unsafe { until_closed(pg_sys::index_open(index, lock), read) }
}
