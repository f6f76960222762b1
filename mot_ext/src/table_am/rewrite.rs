//! Rewrites that keep the rows as they are: CLUSTER, VACUUM FULL, SET TABLESPACE (README,
//! "Rewrites").
//!
//! The engine copies rows with their makers (`mot_engine/src/transaction/copy.rs` is the protocol).
//! Here is what it cannot know: in which order, and what the catalogs say of columns.
use super::relation::size_bytes;
use crate::errors::or_raise;
use crate::pg::version::{self, index_am, table_am};
use crate::pg::{self, interrupts, predicate};
use crate::rows::{tid, tuple};
use crate::storage;
use crate::transaction::clock::{PgClock, widen};
use crate::transaction::{session, xact};
use mot_engine::key::Tail;
use mot_engine::transaction::{Form, TableCopy, Which};
use mot_engine::{EngineError, FileKey, Slot, TableRef, VersionRef};
use pgrx::pg_sys;
use std::ffi::c_int;

/// Rows between two reports of progress.
const ROWS_PER_REPORT: u64 = 1024;

/// `relation_copy_data`: SET TABLESPACE. Core keeps the indexes' files, so the new storage gets
/// indexes of the same names. Core keeps the columns' missing values, too, so rows stay as they
/// are.
pub unsafe fn copy_data(relation: pg_sys::Relation, file: *const table_am::FileName) {
    // SAFETY: as core calls it: an open relation, locked exclusively, whose catalog row names the
    // former file.
    unsafe {
        let key = FileKey {
            tablespace: table_am::file_tablespace(&*file),
            relation: table_am::file_number(&*file),
        };
        // Rows get other ids.
        predicate::move_to_table(relation);
        let persistence = (*(*relation).rd_rel).relpersistence;
        let kept = storage::persistence_of(persistence);
        storage::create_table(relation, key, kept, |former, made| {
            let mut copy = Copy::begin(former, made);
            copy.by_slot(Which::All, None);
            storage::build_same_indexes(former, made);
        });
        table_am::create_file(file, persistence);
        pg_sys::RelationDropStorage(relation);
    }
}

/// `relation_copy_for_cluster`: CLUSTER, in the order of an index, and VACUUM FULL. The cutoffs
/// stay as core has them: what is copied and known to be committed asks the commit log no more.
#[allow(clippy::too_many_arguments)]
pub unsafe fn copy_for_cluster(
    old: pg_sys::Relation,
    new: pg_sys::Relation,
    index: pg_sys::Relation,
    _sorts: bool,
    horizon: pg_sys::TransactionId,
    _frozen_below: *mut pg_sys::TransactionId,
    _multixacts_from: *mut pg_sys::MultiXactId,
    rows: *mut f64,
    vacuumed: *mut f64,
    recently_dead: *mut f64,
) {
    // SAFETY: as core calls it: open relations of one row type, locked exclusively, and places to
    // fill.
    unsafe {
        let mut copy = Copy::begin(storage::table(old), storage::table(new));
        if !table_am::leaves_out_old_snapshots() {
            copy.rows.raise_horizon(widen(horizon));
        }
        let mut former = Former::new(old, new);
        if index.is_null() {
            report(
                pg_sys::PROGRESS_CLUSTER_PHASE,
                u64::from(pg_sys::PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP),
            );
            let blocks =
                size_bytes(old, pg_sys::ForkNumber::MAIN_FORKNUM) / u64::from(pg_sys::BLCKSZ);
            report(pg_sys::PROGRESS_CLUSTER_TOTAL_HEAP_BLKS, blocks);
            copy.by_slot(Which::All, former.as_mut());
            report(pg_sys::PROGRESS_CLUSTER_HEAP_BLKS_SCANNED, blocks);
        } else {
            report(
                pg_sys::PROGRESS_CLUSTER_PHASE,
                u64::from(pg_sys::PROGRESS_CLUSTER_PHASE_INDEX_SCAN_HEAP),
            );
            let oid = u64::from((*index).rd_id.to_u32());
            report(pg_sys::PROGRESS_CLUSTER_INDEX_RELID, oid);
            copy.by_index(old, index, former.as_mut());
            copy.by_slot(Which::Gone, former.as_mut());
        }
        copy.report();
        *rows = copy.copied as f64;
        *vacuumed = copy.dead as f64;
        *recently_dead = copy.recently_dead as f64;
    }
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

    /// Copies rows in the order of their ids.
    fn by_slot(&mut self, which: Which, mut former: Option<&mut Former>) {
        for slot in 0..self.former.slots_end().0 {
            self.row(Slot(slot), which, former.as_deref_mut());
        }
    }

    /// Copies the rows that are there in the order of an index.
    ///
    /// # Safety
    /// The former storage's open table, and an open index of it.
    unsafe fn by_index(
        &mut self,
        table: pg_sys::Relation,
        index: pg_sys::Relation,
        mut former: Option<&mut Former>,
    ) {
        let snapshot = &raw mut pg_sys::SnapshotSelfData;
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        // SAFETY: the caller's relations. What a scan holds goes with the statement after an error.
        unsafe {
            let storage = storage::table(table);
            let scan = index_am::begin_scan_of_all(table, index, snapshot);
            loop {
                let tid = pg_sys::index_getnext_tid(scan, forward);
                if tid.is_null() {
                    break;
                }
                if let Some(name) = tid::name(storage, *tid) {
                    self.row(name.row, Which::All, former.as_deref_mut());
                }
            }
            pg_sys::index_endscan(scan);
        }
    }

    fn row(&mut self, row: Slot, which: Which, former: Option<&mut Former>) {
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
struct Former {
    old: pg_sys::TupleDesc,
    new: pg_sys::TupleDesc,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    dropped: Vec<usize>,
    memory: pg_sys::MemoryContext,
}

impl Former {
    /// `None`: rows can stay as they are.
    ///
    /// # Safety
    /// Open relations of one row type, which stay open as long as the value is used.
    unsafe fn new(old: pg_sys::Relation, new: pg_sys::Relation) -> Option<Former> {
        // SAFETY: the caller's relations.
        unsafe {
            let descriptor = (*old).rd_att;
            let count = (*descriptor).natts as usize;
            let attribute = |at: usize| &*version::attributes(descriptor).add(at);
            let dropped: Vec<usize> = (0..count)
                .filter(|at| attribute(*at).attisdropped)
                .collect();
            let is_missing = (0..count).any(|at| attribute(at).atthasmissing);
            if dropped.is_empty() && !is_missing {
                return None;
            }
            Some(Former {
                old: descriptor,
                new: (*new).rd_att,
                values: vec![pg_sys::Datum::null(); count],
                nulls: vec![true; count],
                dropped,
                memory: pg::small_context(pg_sys::CurrentMemoryContext, c"mot rewritten row"),
            })
        }
    }

    fn form(&mut self, version: VersionRef, body: &mut Vec<u8>) -> Result<(), EngineError> {
        let mut row = tuple::empty();
        tuple::point(&mut row, Slot(0), version, pg_sys::InvalidOid);
        let (values, nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
        // SAFETY: the engine keeps the version meanwhile; the arrays have a place for each
        // attribute. The context is a bare one, and is emptied when the body was copied out of it.
        unsafe {
            pg_sys::heap_deform_tuple(&raw mut row, self.old, values, nulls);
            for at in &self.dropped {
                self.nulls[*at] = true;
            }
            let former_context = pg_sys::MemoryContextSwitchTo(self.memory);
            let formed = tuple::form_values(self.new, values, nulls);
            pg_sys::MemoryContextSwitchTo(former_context);
            // Computed keys go along: core builds the indexes behind the rewrite.
            let tail = Tail::of(version.body());
            let put = tail.and_then(|tail| tail.append_to(formed, body));
            pg::empty_bare_context(self.memory);
            put
        }
    }
}
