//! Scans of all rows that parallel workers share: the engine's counter is behind core's
//! descriptor.
use crate::pg::version::table_am as version;
use crate::transaction::applied;
use crate::{serializable, storage};
use mot_engine::SharedRowScan;
use mot_engine::pause::{Point, reach};
use pgrx::pg_sys;

/// The counter's place in core's shared memory.
const OFFSET: usize =
    size_of::<pg_sys::ParallelTableScanDescData>().next_multiple_of(align_of::<SharedRowScan>());

const _: () = assert!(align_of::<SharedRowScan>() <= pg_sys::MAXIMUM_ALIGNOF as usize);

/// The counter behind a descriptor that was initialized.
///
/// # Safety
/// The descriptor's memory outlives the reference.
pub unsafe fn shared(descriptor: pg_sys::ParallelTableScanDesc) -> &'static SharedRowScan {
    // SAFETY: `initialize` has written it there.
    unsafe { &*descriptor.cast::<u8>().add(OFFSET).cast::<SharedRowScan>() }
}

/// `parallelscan_estimate`.
pub unsafe fn estimate(_relation: pg_sys::Relation) -> pg_sys::Size {
    OFFSET + size_of::<SharedRowScan>()
}

/// `parallelscan_initialize`: what is behind the result is core's.
pub unsafe fn initialize(
    relation: pg_sys::Relation,
    descriptor: pg_sys::ParallelTableScanDesc,
) -> pg_sys::Size {
    // SAFETY: as core calls it: memory as large as was asked for, which no other process sees yet.
    unsafe {
        version::describe_parallel(descriptor, relation);
        let counter = descriptor.cast::<u8>().add(OFFSET).cast::<SharedRowScan>();
        counter.write(SharedRowScan::default());
        begin(relation, &*counter);
        estimate(relation)
    }
}

/// `parallelscan_reinitialize`: all workers have ended.
pub unsafe fn reinitialize(relation: pg_sys::Relation, descriptor: pg_sys::ParallelTableScanDesc) {
    // SAFETY: as core calls it.
    unsafe { begin(relation, shared(descriptor)) }
}

/// Settles which rows the processes read.
///
/// - In a SERIALIZABLE transaction the table is locked before: a row that comes later is met by
///   none of them, so its writer has to meet the lock.
/// - On a standby, rows that the snapshot sees may still be with a replay worker. They are waited
///   for first: the processes wait, too, but read no row behind the end that is taken here.
unsafe fn begin(relation: pg_sys::Relation, counter: &SharedRowScan) {
    // SAFETY: the caller's relation is open, and the query's snapshot is active.
    unsafe {
        applied::wait_until_applied();
        if serializable::is_on() {
            let snapshot = pg_sys::GetActiveSnapshot();
            serializable::Reader::new((*relation).rd_id, snapshot).begin_all();
        }
        counter.begin(storage::table(relation));
    }
    reach(Point::ScanBeforeSharing);
}
