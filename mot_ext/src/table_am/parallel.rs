//! Scans of all rows that parallel workers share: the engine's counter is behind core's
//! descriptor.
use crate::pg::relation::Relation;
use crate::pg::snapshot::Snapshot;
use crate::pg::version::table_am as version;
use crate::transaction::applied;
use crate::{pg, serializable, storage};
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
pub fn estimate(_relation: Relation<'_>) -> pg_sys::Size {
    OFFSET + size_of::<SharedRowScan>()
}

/// `parallelscan_initialize`: what is behind the result is core's.
///
/// # Safety
/// Memory as large as was asked for, which no other process sees yet.
pub unsafe fn initialize(
    relation: Relation<'_>,
    descriptor: pg_sys::ParallelTableScanDesc,
) -> pg_sys::Size {
    // SAFETY: the caller's memory.
    let counter = unsafe {
        version::describe_parallel(descriptor, relation.as_ptr());
        let counter = descriptor.cast::<u8>().add(OFFSET).cast::<SharedRowScan>();
        counter.write(SharedRowScan::default());
        &*counter
    };
    begin(relation, counter);
    estimate(relation)
}

/// `parallelscan_reinitialize`: all workers have ended.
///
/// # Safety
/// A descriptor that was initialized.
pub unsafe fn reinitialize(relation: Relation<'_>, descriptor: pg_sys::ParallelTableScanDesc) {
    // SAFETY: the caller's descriptor.
    begin(relation, unsafe { shared(descriptor) });
}

/// Settles which rows the processes read.
///
/// - In a SERIALIZABLE transaction the table is locked before: a row that comes later is met by
///   none of them, so its writer has to meet the lock.
/// - On a standby, rows that the snapshot sees may still be with a replay worker. They are waited
///   for first: the processes wait, too, but read no row behind the end that is taken here.
fn begin(relation: Relation<'_>, counter: &SharedRowScan) {
    applied::wait_until_applied();
    if serializable::is_on() {
        // SAFETY: the query's snapshot is active, and the reader goes before.
        let snapshot = unsafe { Snapshot::enter(pg::active_snapshot()) };
        serializable::Reader::new(relation.oid(), snapshot).begin_all();
    }
    counter.begin(storage::table(relation));
    reach(Point::ScanBeforeSharing);
}
