//! ANALYZE: a uniform sample of the rows the command's snapshot sees.
//!
//! Every row is looked at, since memory is cheap to walk; a reservoir keeps `targrows` of them (Vitter's algorithm Z, core's own).
use super::size;
use super::tuple;
use crate::clock::PgSnapshot;
use crate::pg::guard::guarded;
use crate::relation;
use crate::session;
use mot_engine::RowScan;
use pgrx::pg_sys;
use std::ffi::c_int;

/// Rows between two looks at interrupts.
const ROWS_PER_INTERRUPT_CHECK: u64 = 1024;

pub unsafe fn analyze_foreign_table(
    relation: pg_sys::Relation,
    sampler: *mut pg_sys::AcquireSampleRowsFunc,
    pages: *mut pg_sys::BlockNumber,
) -> bool {
    // SAFETY: as core calls it, with an open relation and two places to fill.
    unsafe {
        *sampler = Some(guarded!(acquire_sample_rows(
            relation, level, rows, wanted, live, dead
        )));
        *pages = size::pages(relation::table(relation));
    }
    true
}

unsafe fn acquire_sample_rows(
    relation: pg_sys::Relation,
    _level: c_int,
    rows: *mut pg_sys::HeapTuple,
    wanted: c_int,
    live: *mut f64,
    dead: *mut f64,
) -> c_int {
    // SAFETY: as core calls it: room for `wanted` rows, an active snapshot; the copies go to the current memory context.
    unsafe {
        let session = session::session();
        let table = relation::table(relation);
        let snapshot = PgSnapshot::new(pg_sys::GetActiveSnapshot());
        let mut scan = RowScan::new(table);
        let mut reservoir: pg_sys::ReservoirStateData = std::mem::zeroed();
        pg_sys::reservoir_init_selection_state(&mut reservoir, wanted);
        let mut row = tuple::empty();
        let mut seen = 0_u64;
        let mut kept = 0;
        let mut to_skip = -1.0;
        while let Some((slot, version)) = scan.next(session, &snapshot) {
            if seen.is_multiple_of(ROWS_PER_INTERRUPT_CHECK) {
                pgrx::check_for_interrupts!();
            }
            tuple::point(&mut row, slot, version, (*relation).rd_id);
            if kept < wanted {
                *rows.add(kept as usize) = pg_sys::heap_copytuple(&raw mut row);
                kept += 1;
            } else {
                if to_skip < 0.0 {
                    to_skip = pg_sys::reservoir_get_next_S(&mut reservoir, seen as f64, wanted);
                }
                if to_skip <= 0.0 {
                    let fraction = pg_sys::sampler_random_fract(&mut reservoir.randstate);
                    let victim = rows.add((f64::from(wanted) * fraction) as usize);
                    pg_sys::heap_freetuple(*victim);
                    *victim = pg_sys::heap_copytuple(&raw mut row);
                }
                to_skip -= 1.0;
            }
            seen += 1;
        }
        *live = seen as f64;
        *dead = 0.0;
        kept
    }
}
