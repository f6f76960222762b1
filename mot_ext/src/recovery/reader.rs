//! Reads WAL by itself: the gap between the checkpoint that was loaded and the position from which
//! PostgreSQL replays. A gap exists where the checkpoint worker could not hold PostgreSQL's
//! checkpoint (restartpoints of a standby, a worker that was down). The physical slot `mot` has
//! then kept the WAL.
//!
//! Runs in the startup process (inside rm_startup) and in the checkpoint worker (after a clean
//! start). May raise.
use super::commit_log;
use crate::pg;
use crate::pg::text::show_lsn;
use crate::transaction::wal_log::{NAMED_XID_BYTES, NAMES_XID, RMGR_ID};
use mot_engine::Lsn;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char, c_int};

/// What a read of a gap found.
#[derive(Debug, Default, Clone, Copy)]
pub struct GapRead {
    /// Records of any kind.
    pub records: u64,
    /// Records of ours, handed to the visitor.
    pub own_records: u64,
}

/// One record of ours.
pub struct OwnRecord<'a> {
    pub data: &'a [u8],
    pub end: Lsn,
    pub xid: pg_sys::TransactionId,
}

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Committed,
    RolledBack,
}

/// What a gap is read for.
pub trait GapVisitor {
    /// One of our records.
    fn own(&mut self, record: OwnRecord<'_>);
    /// A transaction or subtransaction has ended: nothing more of it is in the log.
    fn ended(&mut self, xid: pg_sys::TransactionId, end: End);
    /// The commit log was cut off below `oldest`.
    fn cut(&mut self, oldest: pg_sys::TransactionId);
}

/// Shows `visitor` what begins in `[from, to)`. An error text says why `to` could not be reached.
pub fn read_gap(from: Lsn, to: Lsn, visitor: &mut impl GapVisitor) -> Result<GapRead, String> {
    let mut found = GapRead::default();
    if from >= to {
        return Ok(found);
    }
    let mut end_of_wal = pg_sys::ReadLocalXLogPageNoWaitPrivate { end_of_wal: false };
    let mut routine = pg::timeline::local_wal_routine();
    // SAFETY: the routine and the private data live until the reader is freed below. An error that
    // unwinds leaks the reader to its memory context, which dies with the caller's transaction or
    // process.
    unsafe {
        let reader = pg_sys::XLogReaderAllocate(
            pg_sys::wal_segment_size,
            std::ptr::null(),
            &mut routine,
            (&raw mut end_of_wal).cast(),
        );
        if reader.is_null() {
            return Err("out of memory for a WAL reader".into());
        }
        let outcome = walk(reader, from, to, &mut found, visitor);
        pg_sys::XLogReaderFree(reader);
        outcome.map(|()| found)
    }
}

/// # Safety
/// `reader` is valid.
unsafe fn walk(
    reader: *mut pg_sys::XLogReaderState,
    from: Lsn,
    to: Lsn,
    found: &mut GapRead,
    visitor: &mut impl GapVisitor,
) -> Result<(), String> {
    // Where the last record ends: `to` may lie behind the header of a page that has none yet.
    let last = pg::wal_pages().end_of_last_record(to);
    // SAFETY: the caller's promise; a decoded record is valid until the next read.
    unsafe {
        if pg_sys::XLogFindNextRecord(reader, from.0) == 0 {
            return if from >= last {
                Ok(())
            } else {
                Err(missing(from))
            };
        }
        let mut reached = from.0;
        loop {
            let mut message: *mut c_char = std::ptr::null_mut();
            let record = pg_sys::XLogReadRecord(reader, &mut message);
            if record.is_null() {
                if reached >= last.0 {
                    return Ok(());
                }
                let why = if message.is_null() {
                    missing(Lsn(reached))
                } else {
                    CStr::from_ptr(message).to_string_lossy().into_owned()
                };
                return Err(why);
            }
            if (*reader).ReadRecPtr >= to.0 {
                return Ok(());
            }
            reached = (*reader).EndRecPtr;
            found.records += 1;
            if (*record).xl_rmid == RMGR_ID {
                found.own_records += 1;
                visitor.own(OwnRecord {
                    data: own_data(reader),
                    end: Lsn((*reader).EndRecPtr),
                    xid: (*record).xl_xid,
                });
            } else if u32::from((*record).xl_rmid) == pg_sys::RmgrIds::RM_XACT_ID {
                each_end(reader, |xid, end| visitor.ended(xid, end));
            } else if u32::from((*record).xl_rmid) == pg_sys::RmgrIds::RM_CLOG_ID
                && commit_log::is_cut(reader)
            {
                visitor.cut(commit_log::oldest_kept(reader));
            }
            if reached >= to.0 {
                return Ok(());
            }
        }
    }
}

/// How a transaction ends by a record of PostgreSQL's transactions, if one does.
///
/// # Safety
/// `reader` has a decoded record of PostgreSQL's transactions.
pub unsafe fn end_of(reader: *mut pg_sys::XLogReaderState) -> Option<End> {
    // SAFETY: the caller's promise.
    let info = unsafe { (*(*reader).record).header.xl_info };
    match u32::from(info) & pg_sys::XLOG_XACT_OPMASK {
        pg_sys::XLOG_XACT_COMMIT | pg_sys::XLOG_XACT_COMMIT_PREPARED => Some(End::Committed),
        pg_sys::XLOG_XACT_ABORT | pg_sys::XLOG_XACT_ABORT_PREPARED => Some(End::RolledBack),
        _ => None,
    }
}

/// Calls `visit` for the transaction that ends by the record, if one does, and for its
/// subtransactions that end with it.
///
/// # Safety
/// As `end_of`.
pub unsafe fn each_end(
    reader: *mut pg_sys::XLogReaderState,
    mut visit: impl FnMut(pg_sys::TransactionId, End),
) {
    // SAFETY: the caller's promise.
    let Some(end) = (unsafe { end_of(reader) }) else {
        return;
    };
    // SAFETY: the record is of such an end, and stays until the next read.
    let (top, subtransactions, count) = unsafe { ended_by(reader, end) };
    visit(top, end);
    for at in 0..count.max(0) as usize {
        // SAFETY: the record has so many, which need not be aligned.
        visit(unsafe { subtransactions.add(at).read_unaligned() }, end);
    }
}

/// The transaction that ends by the record, and how many subtransactions with it, and where they
/// are in the record.
///
/// # Safety
/// `reader` has a decoded record of such an end.
unsafe fn ended_by(
    reader: *mut pg_sys::XLogReaderState,
    end: End,
) -> (pg_sys::TransactionId, *const pg_sys::TransactionId, c_int) {
    // SAFETY: the caller's promise.
    let (header, data) = unsafe { ((*(*reader).record).header, (*(*reader).record).main_data) };
    let (prepared, subtransactions, count) = match end {
        End::Committed => {
            let mut parsed = pg_sys::xl_xact_parsed_commit::default();
            // SAFETY: the record is of a commit. The parsed form points into it.
            unsafe { pg_sys::ParseCommitRecord(header.xl_info, data.cast(), &mut parsed) };
            (parsed.twophase_xid, parsed.subxacts, parsed.nsubxacts)
        }
        End::RolledBack => {
            let mut parsed = pg_sys::xl_xact_parsed_abort::default();
            // SAFETY: the record is of an abort. The parsed form points into it.
            unsafe { pg_sys::ParseAbortRecord(header.xl_info, data.cast(), &mut parsed) };
            (parsed.twophase_xid, parsed.subxacts, parsed.nsubxacts)
        }
    };
    // A record that ends a prepared transaction names it apart from its header.
    let top = match prepared {
        pg_sys::InvalidTransactionId => header.xl_xid,
        prepared => prepared,
    };
    (top, subtransactions, count)
}

/// The engine's record, of ours at the reader's position.
///
/// # Safety
/// `reader` has a decoded record of ours, which stays until the next read.
pub unsafe fn own_data<'a>(reader: *mut pg_sys::XLogReaderState) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { parts(reader).0 }
}

/// The id that the record names besides its transaction's.
///
/// # Safety
/// As `own_data`.
pub unsafe fn named_xid(reader: *mut pg_sys::XLogReaderState) -> Option<pg_sys::TransactionId> {
    // SAFETY: the caller's promise.
    let named = unsafe { parts(reader).1 };
    let bytes = named.try_into().ok()?;
    Some(pg_sys::TransactionId::from_inner(u32::from_le_bytes(bytes)))
}

/// The engine's record, and the named id's bytes.
///
/// # Safety
/// As `own_data`.
unsafe fn parts<'a>(reader: *mut pg_sys::XLogReaderState) -> (&'a [u8], &'a [u8]) {
    // SAFETY: the caller's promise.
    let (data, info) = unsafe {
        let decoded = (*reader).record;
        let bytes = (*decoded).main_data_len as usize;
        if bytes == 0 {
            return (&[], &[]);
        }
        let data = std::slice::from_raw_parts((*decoded).main_data.cast(), bytes);
        (data, (*decoded).header.xl_info)
    };
    let named = if info & NAMES_XID != 0 {
        NAMED_XID_BYTES
    } else {
        0
    };
    data.split_at(data.len().saturating_sub(named))
}

fn missing(at: Lsn) -> String {
    format!("no WAL record was found from {} on", show_lsn(at))
}
