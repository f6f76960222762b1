//! Logical decoding, as a resource manager's `rm_decode` sees it.
use super::version;
use mot_engine::key::TAIL_MARK;
use mot_engine::log::FileLocator;
use mot_engine::row::STAMP_BYTES;
use pgrx::pg_sys;
use std::ffi::c_int;

unsafe extern "C" {
    /// How much a snapshot builder knows; raises nothing.
    fn SnapBuildCurrentState(builder: *mut pg_sys::SnapBuild) -> c_int;
}

#[allow(ffi_unwind_calls)]
unsafe extern "C-unwind" {
    fn SnapBuildProcessChange(
        builder: *mut pg_sys::SnapBuild,
        xid: pg_sys::TransactionId,
        at: pg_sys::XLogRecPtr,
    ) -> bool;
}

/// SNAPBUILD_FULL_SNAPSHOT: from here on changes are collected.
const FULL_SNAPSHOT: c_int = 1;

/// A tuple id that names nothing (`ItemPointerSetInvalid`).
const NO_TID: pg_sys::ItemPointerData = pg_sys::ItemPointerData {
    ip_blkid: pg_sys::BlockIdData {
        bi_hi: u16::MAX,
        bi_lo: u16::MAX,
    },
    ip_posid: 0,
};

/// core's `XLogRecordBuffer`, which the bindings lack.
#[repr(C)]
pub struct RecordBuffer {
    start: pg_sys::XLogRecPtr,
    end: pg_sys::XLogRecPtr,
    reader: *mut pg_sys::XLogReaderState,
}

/// A change of a row. Rows are bodies.
pub struct Change<'a> {
    pub kind: pg_sys::ReorderBufferChangeType::Type,
    pub table: FileLocator,
    pub new: Option<&'a [u8]>,
    pub old: Option<&'a [u8]>,
}

/// A decoding that has come to a record.
#[derive(Clone, Copy)]
pub struct Decoding<'p> {
    /// Core writes to it during our calls.
    context: *mut pg_sys::LogicalDecodingContext,
    record: &'p pg_sys::DecodedXLogRecord,
    start: pg_sys::XLogRecPtr,
}

impl<'p> Decoding<'p> {
    /// Of what core passes to `rm_decode`.
    ///
    /// # Safety
    /// It is that, and lives for `'p`.
    pub unsafe fn enter(
        context: *mut pg_sys::LogicalDecodingContext,
        buffer: *const RecordBuffer,
    ) -> Decoding<'p> {
        // SAFETY: the caller's; the reader is at a decoded record.
        unsafe {
            Decoding {
                context,
                record: &*(*(*buffer).reader).record,
                start: (*buffer).start,
            }
        }
    }

    /// The record's own bytes.
    pub fn data(self) -> &'p [u8] {
        let bytes = self.record.main_data_len as usize;
        if bytes == 0 {
            return &[];
        }
        // SAFETY: a decoded record has so many bytes there.
        unsafe { std::slice::from_raw_parts(self.record.main_data.cast(), bytes) }
    }

    /// The transaction, or subtransaction, that wrote the record.
    fn xid(self) -> pg_sys::TransactionId {
        self.record.header.xl_xid
    }

    /// Tells the reorder buffer of the record's transaction.
    pub fn note_transaction(self) {
        // SAFETY: the decoding's own buffer.
        unsafe { pg_sys::ReorderBufferProcessXid(self.reorder(), self.xid(), self.start) };
    }

    /// Whether changes of the record's transaction are collected.
    pub fn takes_changes(self) -> bool {
        // SAFETY: the decoding's own builder.
        let builder = unsafe { (*self.context).snapshot_builder };
        // SAFETY: as above.
        if unsafe { SnapBuildCurrentState(builder) } < FULL_SNAPSHOT {
            return false;
        }
        // SAFETY: as above. It may raise, and nothing here is to be dropped.
        #[allow(ffi_unwind_calls)]
        let process = || unsafe { SnapBuildProcessChange(builder, self.xid(), self.start) };
        // SAFETY: one call of core's.
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(process) && !(*self.context).fast_forward }
    }

    /// The slot's database.
    pub fn database(self) -> pg_sys::Oid {
        // SAFETY: a decoding has a slot.
        unsafe { (*(*self.context).slot).data.database }
    }

    fn origin(self) -> pg_sys::RepOriginId {
        self.record.record_origin
    }

    /// Whether the output plugin leaves out changes of the record's origin.
    pub fn leaves_out_origin(self) -> bool {
        // SAFETY: the decoding, whose plugin has the callback where it is asked.
        unsafe {
            (*self.context).callbacks.filter_by_origin_cb.is_some()
                && pg_sys::filter_by_origin_cb_wrapper(self.context, self.origin())
        }
    }

    fn reorder(self) -> *mut pg_sys::ReorderBuffer {
        // SAFETY: a decoding has a buffer.
        unsafe { (*self.context).reorder }
    }

    /// Hands a change over to the reorder buffer.
    pub fn queue(self, change: Change<'_>) {
        let reorder = self.reorder();
        // SAFETY: the decoding's own buffer, to which the new change and its tuples go over.
        unsafe {
            let made = version::new_logical_change(reorder, change.table);
            (*made).action = change.kind;
            (*made).origin_id = self.origin();
            let tuples = &mut (*made).data.tp;
            tuples.clear_toast_afterwards = true;
            let rows = [
                (change.new, &mut tuples.newtuple),
                (change.old, &mut tuples.oldtuple),
            ];
            for (body, place) in rows {
                if let Some(body) = body {
                    fill(version::new_logical_tuple(reorder, body.len(), place), body);
                }
            }
            let (xid, start) = (self.xid(), self.start);
            pg_sys::ReorderBufferQueueChange(reorder, xid, start, made, false);
        }
    }
}

/// Makes a new tuple of a row's body. No transaction is in its header.
///
/// # Safety
/// It has room for the body behind a header.
unsafe fn fill(tuple: pg_sys::HeapTuple, body: &[u8]) {
    // SAFETY: the caller's tuple. A body is what a tuple has behind the stamp.
    unsafe {
        let (tuple, header) = (&mut *tuple, (*tuple).t_data);
        tuple.t_len = (STAMP_BYTES + body.len()) as u32;
        tuple.t_tableOid = pg_sys::InvalidOid;
        tuple.t_self = NO_TID;
        header.cast::<u8>().write_bytes(0, STAMP_BYTES);
        let place = header.cast::<u8>().add(STAMP_BYTES);
        place.copy_from_nonoverlapping(body.as_ptr(), body.len());
        (*header).t_infomask2 &= !TAIL_MARK;
        (*header).t_ctid = NO_TID;
    }
}
