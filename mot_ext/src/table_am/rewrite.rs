//! Rewrites that keep the rows as they are: CLUSTER, VACUUM FULL, SET TABLESPACE (README,
//! "Rewrites").
//!
//! The engine copies rows with their makers (`mot_engine/src/transaction/copy.rs` is the protocol).
//! Here is what it cannot know: in which order, and what the catalogs say of columns.
use super::relation::size_bytes;
use crate::errors::or_raise;
use crate::pg::argument::{Given, Out};
use crate::pg::memory::within;
use crate::pg::nodes::attributes_of;
use crate::pg::relation::Relation;
use crate::pg::version::{index_am, table_am};
use crate::pg::{self, interrupts, predicate};
use crate::rows::{tid, tuple};
use crate::storage;
use crate::transaction::clock::{PgClock, widen};
use crate::transaction::{session, xact};
use mot_engine::key::Tail;
use mot_engine::transaction::{Form, TableCopy, Which};
use mot_engine::{EngineError, FileKey, RowId, TableRef, VersionRef};
use pgrx::pg_sys;
use std::ffi::{c_char, c_int};

/// Rows between two reports of progress.
const ROWS_PER_REPORT: u64 = 1024;

/// `relation_copy_data`: SET TABLESPACE. Core keeps the indexes' files, so the new storage gets
/// indexes of the same names. Core keeps the columns' missing values, too, so rows stay as they
/// are.
///
/// # Safety
/// The relation is locked exclusively, and its catalog row names the former file.
pub unsafe fn copy_data(relation: Relation<'_>, Given(file): Given<table_am::FileName>) {
    let key = FileKey {
        tablespace: table_am::file_tablespace(&file),
        relation: table_am::file_number(&file),
    };
    // Rows get other ids. ALTER TABLE ALL IN TABLESPACE does not ask this.
    relation.check_not_in_use(c"ALTER TABLE");
    predicate::move_to_table(relation);
    let persistence = relation.persistence() as c_char;
    let kept = storage::persistence_of(persistence);
    storage::create_table(relation, key, kept, |former, made| {
        let mut copy = Copy::begin(former, made);
        copy.by_row_id(Which::All, None);
        // SAFETY: both storages are the caller's relation's.
        unsafe { storage::build_same_indexes(former, made) };
    });
    // SAFETY: core gives the new file to the relation, whose former one goes with the commit.
    unsafe {
        table_am::create_file(&raw const file, persistence);
        pg_sys::RelationDropStorage(relation.as_ptr());
    }
}

/// `relation_copy_for_cluster`: CLUSTER, in the order of an index, and VACUUM FULL. The cutoffs
/// stay as core has them: what is copied and known to be committed asks the commit log no more.
///
/// # Safety
/// Tables of one row type.
#[allow(clippy::too_many_arguments)]
pub unsafe fn copy_for_cluster(
    old: Relation<'_>,
    new: Relation<'_>,
    index: Option<Relation<'_>>,
    _sorts: bool,
    horizon: pg_sys::TransactionId,
    _frozen_below: *mut pg_sys::TransactionId,
    _multixacts_from: *mut pg_sys::MultiXactId,
    rows: Out<'_, f64>,
    vacuumed: Out<'_, f64>,
    recently_dead: Out<'_, f64>,
) {
    let (former, made) = (storage::table(old), storage::table(new));
    let mut copy = Copy::begin(former, made);
    if !table_am::leaves_out_old_snapshots() {
        copy.rows.raise_horizon(widen(horizon));
    }
    // SAFETY: the caller's tables.
    let mut former = unsafe { Former::new(old, new) };
    match index {
        None => copy.all(old, former.as_mut()),
        Some(index) => copy.all_in_order(old, index, former.as_mut()),
    }
    copy.report();
    rows.set(copy.copied as f64);
    vacuumed.set(copy.dead as f64);
    recently_dead.set(copy.recently_dead as f64);
}

fn report(parameter: u32, value: u64) {
    // SAFETY: a number of this backend's entry of the progress reports; nothing is written if it
    // has none.
    unsafe { pg_sys::pgstat_progress_update_param(parameter as c_int, value as i64) };
}

/// A copy under way, with what is reported to core of it: numbers of versions.
struct Copy {
    rows: TableCopy<'static, PgClock>,
    former: TableRef,
    looked_at: u64,
    copied: u64,
    recently_dead: u64,
    dead: u64,
}

impl Copy {
    fn begin(former: TableRef, made: TableRef) -> Copy {
        let xid = xact::write_xid();
        Copy {
            rows: TableCopy::begin(session::session(), &PgClock, former, made, xid),
            former,
            looked_at: 0,
            copied: 0,
            recently_dead: 0,
            dead: 0,
        }
    }

    /// Copies a table in the order of its rows' ids.
    fn all(&mut self, table: Relation<'_>, former: Option<&mut Former<'_>>) {
        report(
            pg_sys::PROGRESS_CLUSTER_PHASE,
            u64::from(pg_sys::PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP),
        );
        let bytes = size_bytes(table, pg_sys::ForkNumber::MAIN_FORKNUM);
        let blocks = bytes / u64::from(pg_sys::BLCKSZ);
        report(pg_sys::PROGRESS_CLUSTER_TOTAL_HEAP_BLKS, blocks);
        self.by_row_id(Which::All, former);
        report(pg_sys::PROGRESS_CLUSTER_HEAP_BLKS_SCANNED, blocks);
    }

    /// Copies a table in the order of an index, and behind that the rows that are gone.
    fn all_in_order(
        &mut self,
        table: Relation<'_>,
        index: Relation<'_>,
        mut former: Option<&mut Former<'_>>,
    ) {
        report(
            pg_sys::PROGRESS_CLUSTER_PHASE,
            u64::from(pg_sys::PROGRESS_CLUSTER_PHASE_INDEX_SCAN_HEAP),
        );
        let oid = u64::from(index.oid().to_u32());
        report(pg_sys::PROGRESS_CLUSTER_INDEX_RELID, oid);
        self.by_index(table, index, former.as_deref_mut());
        self.by_row_id(Which::Gone, former);
    }

    /// Copies rows in the order of their ids.
    fn by_row_id(&mut self, which: Which, mut former: Option<&mut Former<'_>>) {
        for slot in 0..self.former.row_ids_end().0 {
            self.row(RowId(slot), which, former.as_deref_mut());
        }
    }

    /// Copies the rows that are there in the order of an index of the former storage's table.
    fn by_index(
        &mut self,
        table: Relation<'_>,
        index: Relation<'_>,
        mut former: Option<&mut Former<'_>>,
    ) {
        let storage = storage::table(table);
        let snapshot = &raw mut pg_sys::SnapshotSelfData;
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        // SAFETY: open relations, and a constant snapshot. What a scan holds goes with the
        // statement after an error.
        let scan = unsafe { index_am::begin_scan_of_all(table.as_ptr(), index.as_ptr(), snapshot) };
        // SAFETY: the scan's id, which it keeps until the next one.
        while let Some(tid) = unsafe { pg_sys::index_getnext_tid(scan, forward).as_ref() } {
            if let Some(name) = tid::name(storage, *tid) {
                self.row(name.row, Which::All, former.as_deref_mut());
            }
        }
        // SAFETY: the scan from above.
        unsafe { pg_sys::index_endscan(scan) };
    }

    fn row(&mut self, row: RowId, which: Which, former: Option<&mut Former<'_>>) {
        let work = xact::current();
        let copied = match former {
            Some(former) => {
                let mut form = |version: VersionRef, body: &mut Vec<u8>| former.form(version, body);
                let form: &mut Form<'_> = &mut form;
                self.rows.row(work, row, which, Some(form))
            }
            None => self.rows.row(work, row, which, None),
        };
        let copied = or_raise(copied);
        if let Some(row) = copied.row {
            super::target::check_row_id(row);
        }
        self.copied += copied.copied;
        self.recently_dead += copied.recently_dead;
        self.dead += copied.dead;
        self.looked_at += 1;
        if self.looked_at.is_multiple_of(ROWS_PER_REPORT) {
            self.report();
        }
        if interrupts::is_pending() {
            interrupts::check_for_interrupts();
        }
    }

    fn report(&self) {
        report(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED, self.copied);
        report(pg_sys::PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN, self.copied);
    }
}

/// Forms rows anew: without the values of dropped columns, and with those of columns that were
/// added later. Core forgets the latter behind a rewrite (`RelationClearMissing`).
struct Former<'p> {
    old: Relation<'p>,
    new: Relation<'p>,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    dropped: Vec<usize>,
    memory: pg_sys::MemoryContext,
}

impl<'p> Former<'p> {
    /// `None`: rows can stay as they are.
    ///
    /// # Safety
    /// Tables of one row type.
    unsafe fn new(old: Relation<'p>, new: Relation<'p>) -> Option<Former<'p>> {
        // SAFETY: an open table, whose row type is read here alone.
        let attributes = unsafe { attributes_of(old.row_type()) };
        let count = attributes.len();
        let is_missing = attributes.iter().any(|attribute| attribute.atthasmissing);
        let dropped: Vec<usize> = (0..count)
            .filter(|at| attributes[*at].attisdropped)
            .collect();
        if dropped.is_empty() && !is_missing {
            return None;
        }
        Some(Former {
            old,
            new,
            values: vec![pg_sys::Datum::null(); count],
            nulls: vec![true; count],
            dropped,
            // SAFETY: a variable of this process: a context that lives as long as the statement.
            memory: unsafe {
                pg::small_context(pg_sys::CurrentMemoryContext, c"mot rewritten row")
            },
        })
    }

    fn form(&mut self, version: VersionRef, body: &mut Vec<u8>) -> Result<(), EngineError> {
        let mut row = tuple::empty();
        let no_tid = row.t_self;
        tuple::point(&mut row, no_tid, version, pg_sys::InvalidOid);
        let (values, nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
        // SAFETY: the engine keeps the version meanwhile; the arrays have a place for each
        // attribute.
        unsafe { pg_sys::heap_deform_tuple(&raw mut row, self.old.row_type(), values, nulls) };
        for at in &self.dropped {
            self.nulls[*at] = true;
        }
        let (values, nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
        let form = || {
            // SAFETY: both tables are of one row type, and the arrays have a value for each of its
            // attributes.
            unsafe { tuple::form_values(self.new.row_type(), values, nulls) }
        };
        // SAFETY: a context of this value's own, in which the row is until it is emptied below.
        let formed = unsafe { within(self.memory, form) };
        // Computed keys go along: core builds the indexes behind the rewrite.
        let tail = Tail::of(version.body());
        let put = tail.and_then(|tail| tail.append_to(formed, body));
        // SAFETY: the context is a bare one, and the body was copied out of it.
        unsafe { pg::empty_bare_context(self.memory) };
        put
    }
}
