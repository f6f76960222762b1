//! `rm_decode`: from a record to a change in core's reorder buffer (`heap_decode`).
use crate::errors::or_raise;
use crate::pg::decoding::{Change, Decoding, RecordBuffer};
use mot_engine::log::{LogicalKind, Record, is_logical};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Decodes one of our records.
///
/// # Safety
/// As core calls it: a decoding, and a record of ours.
#[pg_guard]
pub unsafe extern "C-unwind" fn decode(
    context: *mut pg_sys::LogicalDecodingContext,
    buffer: *mut pg_sys::XLogRecordBuffer,
) {
    // SAFETY: the caller's.
    let decoding = unsafe { Decoding::enter(context, buffer.cast::<RecordBuffer>()) };
    // As core does for the records of others: it learns of the transaction.
    decoding.note_transaction();
    let record = decoding.data();
    if !is_logical(record) || !decoding.takes_changes() {
        return;
    }
    let Record::Logical(change) = or_raise(Record::parse(record)) else {
        unreachable!("the record is one for decoding");
    };
    if change.table.database != decoding.database().to_u32() || decoding.leaves_out_origin() {
        return;
    }
    use pg_sys::ReorderBufferChangeType as Kind;
    decoding.queue(Change {
        kind: match change.kind {
            LogicalKind::Insert => Kind::REORDER_BUFFER_CHANGE_INSERT,
            LogicalKind::Update => Kind::REORDER_BUFFER_CHANGE_UPDATE,
            LogicalKind::Delete => Kind::REORDER_BUFFER_CHANGE_DELETE,
        },
        table: change.table,
        new: change.new,
        old: change.old,
    });
}
