//! Table access methods: what differs in their callbacks and around them.
use crate::pg::guard::guarded;
use crate::pg::relation::Relation;
use pgrx::pg_sys;

/// The counters of a table's statistics.
pub fn counts(status: &mut pg_sys::PgStat_TableStatus) -> &mut pg_sys::PgStat_TableCounts {
    #[cfg(feature = "pg15")]
    return &mut status.t_counts;
    #[cfg(not(feature = "pg15"))]
    return &mut status.counts;
}

/// A scan begins.
pub fn count_scan(counts: &mut pg_sys::PgStat_TableCounts) {
    #[cfg(feature = "pg15")]
    {
        counts.t_numscans += 1;
    }
    #[cfg(not(feature = "pg15"))]
    {
        counts.numscans += 1;
    }
}

/// A scan gives rows: of all, or an index's entries.
pub fn count_rows_read(counts: &mut pg_sys::PgStat_TableCounts, rows: i64) {
    #[cfg(feature = "pg15")]
    {
        counts.t_tuples_returned += rows;
    }
    #[cfg(not(feature = "pg15"))]
    {
        counts.tuples_returned += rows;
    }
}

/// An index scan gives rows of the table.
pub fn count_rows_fetched(counts: &mut pg_sys::PgStat_TableCounts, rows: i64) {
    #[cfg(feature = "pg15")]
    {
        counts.t_tuples_fetched += rows;
    }
    #[cfg(not(feature = "pg15"))]
    {
        counts.tuples_fetched += rows;
    }
}

/// Makes the first file of a relation that has just become a heap table.
pub unsafe fn set_new_heap_file(
    relation: pg_sys::Relation,
    file: *const FileName,
    persistence: std::ffi::c_char,
    frozen_below: *mut pg_sys::TransactionId,
    multixacts_from: *mut pg_sys::MultiXactId,
) {
    // SAFETY: as core calls the table's routine, which has every callback (caller).
    unsafe {
        let routine = &*(*relation).rd_tableam;
        #[cfg(feature = "pg15")]
        let set = routine.relation_set_new_filenode;
        #[cfg(not(feature = "pg15"))]
        let set = routine.relation_set_new_filelocator;
        let set = set.expect("heap has it");
        #[allow(ffi_unwind_calls)]
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            set(relation, file, persistence, frozen_below, multixacts_from)
        });
    }
}

/// Makes the file of a table, empty as it stays. An unlogged table gets the one that core puts in
/// its place after a crash, too. Core would complete a checkpoint that does not have it, so it is
/// made durable at once.
///
/// # Safety
/// The file of a relation that core is about to give to it.
pub unsafe fn create_file(file: *const FileName, persistence: std::ffi::c_char) {
    // SAFETY: the caller's file, which no other process knows yet.
    unsafe {
        let opened = pg_sys::RelationCreateStorage(*file, persistence, true);
        if persistence as u8 == pg_sys::RELPERSISTENCE_UNLOGGED {
            let fork = pg_sys::ForkNumber::INIT_FORKNUM;
            pg_sys::smgrcreate(opened, fork, false);
            #[allow(ffi_unwind_calls)]
            pg_sys::ffi::pg_guard_ffi_boundary(|| log_smgrcreate(file, fork));
            pg_sys::smgrimmedsync(opened, fork);
        }
        pg_sys::smgrclose(opened);
    }
}

/// Makes the file durable that core puts in place of an unlogged relation's after a crash.
///
/// # Safety
/// An open relation that has such a file.
pub unsafe fn sync_init_file(relation: pg_sys::Relation) {
    // SAFETY: the caller's relation.
    unsafe {
        let opened = pg_sys::RelationGetSmgr(relation);
        pg_sys::smgrimmedsync(opened, pg_sys::ForkNumber::INIT_FORKNUM);
    }
}

unsafe extern "C-unwind" {
    /// Logs that a fork was made (storage.c).
    fn log_smgrcreate(file: *const FileName, fork: pg_sys::ForkNumber::Type);
}

/// A row was changed.
pub unsafe fn count_update(relation: pg_sys::Relation) {
    // SAFETY: an open relation (caller).
    unsafe { count_one_update(relation, false) };
}

/// A row was changed, and no index needed a new entry: PostgreSQL's figure of HOT updates.
pub unsafe fn count_update_beside_keys(relation: pg_sys::Relation) {
    // SAFETY: an open relation (caller).
    unsafe { count_one_update(relation, true) };
}

unsafe fn count_one_update(relation: pg_sys::Relation, is_hot: bool) {
    // SAFETY: an open relation (callers).
    unsafe {
        pg_sys::pgstat_count_heap_update(
            relation,
            is_hot,
            #[cfg(not(feature = "pg15"))]
            false,
        )
    }
}

/// As [`count_update_beside_keys`], beside the transaction's own counters.
pub fn count_beside_keys(counts: &mut pg_sys::PgStat_TableCounts) {
    #[cfg(feature = "pg15")]
    {
        counts.t_tuples_hot_updated += 1;
    }
    #[cfg(not(feature = "pg15"))]
    {
        counts.tuples_hot_updated += 1;
    }
}

/// A VACUUM of a table that began at a time has ended; since 18 the time that it took is counted.
#[cfg_attr(not(feature = "pg18"), allow(unused_variables))]
pub unsafe fn report_vacuum(
    relation: pg_sys::Relation,
    live_rows: i64,
    dead_rows: i64,
    began: pg_sys::TimestampTz,
) {
    // SAFETY: an open relation (caller).
    unsafe {
        pg_sys::pgstat_report_vacuum(
            (*relation).rd_id,
            false,
            live_rows,
            dead_rows,
            #[cfg(feature = "pg18")]
            began,
        )
    }
}

/// Below which transaction VACUUM with these parameters freezes the rows of a table. Warns of a far
/// too old horizon, as core does.
pub unsafe fn freeze_limit(
    relation: pg_sys::Relation,
    parameters: *mut pg_sys::VacuumParams,
) -> pg_sys::TransactionId {
    // SAFETY: an open relation, locked as VACUUM locks it, and the statement's parameters (caller).
    unsafe {
        #[cfg(feature = "pg15")]
        {
            let asked = &*parameters;
            let mut limit = pg_sys::InvalidTransactionId;
            let (mut oldest, mut oldest_multi, mut multi_limit) = (limit, 0.into(), 0.into());
            pg_sys::vacuum_set_xid_limits(
                relation,
                asked.freeze_min_age,
                asked.freeze_table_age,
                asked.multixact_freeze_min_age,
                asked.multixact_freeze_table_age,
                &raw mut oldest,
                &raw mut oldest_multi,
                &raw mut limit,
                &raw mut multi_limit,
            );
            limit
        }
        #[cfg(not(feature = "pg15"))]
        {
            let mut cutoffs = pg_sys::VacuumCutoffs::default();
            pg_sys::vacuum_get_cutoffs(relation, parameters, &raw mut cutoffs);
            cutoffs.FreezeLimit
        }
    }
}

/// Writes a table's size and freeze bounds into its row of pg_class.
pub unsafe fn update_statistics(
    relation: pg_sys::Relation,
    pages: u32,
    rows: f64,
    frozen_below: pg_sys::TransactionId,
    multixacts_from: pg_sys::MultiXactId,
) {
    // SAFETY: an open relation, locked as VACUUM locks it (caller).
    unsafe {
        // As core's VACUUM: the last index may have been dropped.
        let has_indexes =
            (*(*relation).rd_rel).relhasindex && !Relation::enter(relation).indexes().is_empty();
        pg_sys::vac_update_relstats(
            relation,
            pages,
            rows,
            0,
            #[cfg(feature = "pg18")]
            0,
            has_indexes,
            frozen_below,
            multixacts_from,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            false,
        )
    }
}

/// Says which relation a parallel scan is of.
pub unsafe fn describe_parallel(
    descriptor: pg_sys::ParallelTableScanDesc,
    relation: pg_sys::Relation,
) {
    // SAFETY: memory of a descriptor that no other code sees yet (caller).
    unsafe {
        #[cfg(not(feature = "pg18"))]
        {
            (*descriptor).phs_relid = (*relation).rd_id;
        }
        #[cfg(feature = "pg18")]
        {
            (*descriptor).phs_locator = (*relation).rd_locator;
        }
        (*descriptor).phs_syncscan = false;
    }
}

/// A file of a relation, as core names it in callbacks.
#[cfg(feature = "pg15")]
pub type FileName = pg_sys::RelFileNode;
/// A file of a relation, as core names it in callbacks.
#[cfg(not(feature = "pg15"))]
pub type FileName = pg_sys::RelFileLocator;

/// Says in which database the file of a relation is that a structure stands for.
pub fn set_database(relation: &mut pg_sys::RelationData, database: pg_sys::Oid) {
    #[cfg(feature = "pg15")]
    {
        relation.rd_node.dbNode = database;
    }
    #[cfg(not(feature = "pg15"))]
    {
        relation.rd_locator.dbOid = database;
    }
}

/// A file's number in its tablespace.
pub fn file_number(file: &FileName) -> u32 {
    #[cfg(feature = "pg15")]
    return file.relNode.to_u32();
    #[cfg(not(feature = "pg15"))]
    return file.relNumber.to_u32();
}

/// A file's tablespace as pg_class has it: 0 for the database's own.
pub fn file_tablespace(file: &FileName) -> u32 {
    #[cfg(feature = "pg15")]
    let tablespace = file.spcNode;
    #[cfg(not(feature = "pg15"))]
    let tablespace = file.spcOid;
    // SAFETY: a plain variable of this process.
    match tablespace == unsafe { pg_sys::MyDatabaseTableSpace } {
        true => 0,
        false => tablespace.to_u32(),
    }
}

/// The relation with a file, in a tablespace or the database's own (0); invalid if there is none.
pub fn oid_of_file(tablespace: u32, number: u32) -> pg_sys::Oid {
    #[allow(ffi_unwind_calls)]
    unsafe extern "C-unwind" {
        #[cfg_attr(feature = "pg15", link_name = "RelidByRelfilenode")]
        #[cfg_attr(not(feature = "pg15"), link_name = "RelidByRelfilenumber")]
        fn oid_by_file(tablespace: pg_sys::Oid, number: pg_sys::Oid) -> pg_sys::Oid;
    }
    // SAFETY: a look-up in the catalog and a cache of core's; errors pass the guard.
    #[allow(ffi_unwind_calls)]
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| oid_by_file(tablespace.into(), number.into()))
    }
}

/// What `tuple_update` says of indexes.
#[cfg(feature = "pg15")]
pub type IndexesToUpdate = bool;
/// What `tuple_update` says of indexes.
#[cfg(not(feature = "pg15"))]
pub type IndexesToUpdate = pg_sys::TU_UpdateIndexes::Type;

/// No index gets an entry for an update.
pub const NO_INDEXES: IndexesToUpdate = {
    #[cfg(feature = "pg15")]
    {
        false
    }
    #[cfg(not(feature = "pg15"))]
    {
        pg_sys::TU_UpdateIndexes::TU_None
    }
};

/// Every index gets an entry for an update.
pub const ALL_INDEXES: IndexesToUpdate = {
    #[cfg(feature = "pg15")]
    {
        true
    }
    #[cfg(not(feature = "pg15"))]
    {
        pg_sys::TU_UpdateIndexes::TU_All
    }
};

/// Sets the callbacks whose place in the routine differs.
pub fn set_files(
    routine: &mut pg_sys::TableAmRoutine,
    set_new: unsafe extern "C-unwind" fn(
        pg_sys::Relation,
        *const FileName,
        std::ffi::c_char,
        *mut pg_sys::TransactionId,
        *mut pg_sys::MultiXactId,
    ),
) {
    #[cfg(feature = "pg15")]
    {
        routine.relation_set_new_filenode = Some(set_new);
    }
    #[cfg(not(feature = "pg15"))]
    {
        routine.relation_set_new_filelocator = Some(set_new);
    }
}

/// A table's blocks for ANALYZE, and the callback by which core goes from one to the next.
pub trait Blocks {
    /// Begins a block.
    ///
    /// # Safety
    /// A scan that core has begun for ANALYZE.
    unsafe fn begin_block(scan: pg_sys::TableScanDesc, block: pg_sys::BlockNumber);

    /// `scan_analyze_next_block` of 15 and 16, which is given a block number.
    ///
    /// # Safety
    /// As core calls it.
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    unsafe fn next_block(
        scan: pg_sys::TableScanDesc,
        block: pg_sys::BlockNumber,
        _strategy: pg_sys::BufferAccessStrategy,
    ) -> bool {
        // SAFETY: the caller's.
        unsafe { Self::begin_block(scan, block) };
        true
    }

    /// `scan_analyze_next_block` since 17: core's stream chooses the blocks, and reads none if it
    /// is only asked for their numbers.
    ///
    /// # Safety
    /// As core calls it.
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    unsafe fn next_block(scan: pg_sys::TableScanDesc, stream: *mut pg_sys::ReadStream) -> bool {
        #[allow(ffi_unwind_calls)]
        unsafe extern "C-unwind" {
            fn read_stream_next_block(
                stream: *mut pg_sys::ReadStream,
                strategy: *mut pg_sys::BufferAccessStrategy,
            ) -> pg_sys::BlockNumber;
        }
        // SAFETY: the caller's stream; errors pass the guard.
        unsafe {
            let mut strategy = std::ptr::null_mut();
            let block = pg_sys::ffi::pg_guard_ffi_boundary(|| {
                #[allow(ffi_unwind_calls)]
                read_stream_next_block(stream, &raw mut strategy)
            });
            if block == pg_sys::InvalidBlockNumber {
                return false;
            }
            Self::begin_block(scan, block);
            true
        }
    }
}

/// Sets the callback by which core goes over blocks.
pub fn set_blocks<T: Blocks>(routine: &mut pg_sys::TableAmRoutine) {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    {
        routine.scan_analyze_next_block = Some(guarded!(T::next_block(scan, block, strategy)));
    }
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    {
        routine.scan_analyze_next_block = Some(guarded!(T::next_block(scan, stream)));
    }
}

/// Whether core's bound below which no snapshot sees dead rows leaves out snapshots that are older
/// than a setting allows (`old_snapshot_threshold`, up to 16): their readers get an error on heap
/// tables, which ours do not raise.
pub fn leaves_out_old_snapshots() -> bool {
    // SAFETY: a plain variable of this process.
    #[cfg(feature = "pg15")]
    return unsafe { pg_sys::old_snapshot_threshold } >= 0;
    #[cfg(not(feature = "pg15"))]
    false
}

/// The number from 1 of the session whose temporary tables are in a schema; 0 if it is no such
/// schema.
pub fn temporary_backend(namespace: pg_sys::Oid) -> u32 {
    // SAFETY: a catalog look-up; -1 of other schemas.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let backend = pg_sys::GetTempNamespaceBackendId(namespace);
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        let backend = pg_sys::GetTempNamespaceProcNumber(namespace);
        (backend + 1) as u32
    }
}
