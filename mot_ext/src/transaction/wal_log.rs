//! Writing records: the engine's `Log` over `XLogInsert`.
//!
//! # Ids of subtransactions
//!
//! PostgreSQL's header of a record has the top transaction's id, and redo takes that id for used.
//! Rows bear the id of the subtransaction that made them. A subtransaction that wrote only rows of
//! ours is in no record before the commit's. But a checkpoint of ours may have its rows, and load
//! them after a crash that lost the commit. PostgreSQL would then give the id out again, and the
//! new owner's commit would count as that of the rows.
//!
//! So the first record of a transaction whose rows bear larger ids than its own names the largest
//! one ([`NAMES_XID`]). Redo then does what PostgreSQL does for the id in a header
//! (`pg::observe_xid`): the next id moves past it, and a standby counts it as running. The id is in
//! the log wherever the rows are, since a checkpoint is valid only with the log up to the last of
//! them. In a gap nobody need observe it: PostgreSQL's checkpoint lies behind the gap, and its next
//! id is above all ids in it.
//!
//! Removing rows of unknown ids at the end of replay is not enough. The checkpoint on disk still
//! has them, and may be loaded again when the id has a new owner.
use super::clock::narrow;
use crate::pg;
use mot_engine::limits::LOG_RECORD_BYTES_OF_LONG_ROW_MAX;
use mot_engine::log::LOG_RECORD_BYTES_MAX;
use mot_engine::{Log, Lsn, Xid};
use pgrx::pg_sys;

/// Number of our resource manager, from the range for extensions (128 to 255). It is written into
/// every record, so it must never change; 128 is also the number set aside for experiments, and mot
/// has not reserved another one yet.
pub const RMGR_ID: u8 = 128;

/// The server's WAL. PostgreSQL gives each record the current transaction's id, and none in the
/// reclaimer, which has no transaction.
#[derive(Default)]
pub struct WalLog {
    names: Option<Xid>,
}

impl WalLog {
    /// As `default`; the first record names an id besides.
    pub fn naming(xid: Option<Xid>) -> WalLog {
        WalLog { names: xid }
    }
}

/// In the record's info: behind the engine's record there is an id that was given out, of
/// [`NAMED_XID_BYTES`] bytes.
pub const NAMES_XID: u8 = 0x10;
/// PostgreSQL's 32 bits of it, little endian.
pub const NAMED_XID_BYTES: usize = size_of::<u32>();

/// Largest record. Only a single huge row comes near; the engine closes records at
/// `LOG_RECORD_BYTES_MAX`.
const RECORD_BYTES_MAX: usize = LOG_RECORD_BYTES_OF_LONG_ROW_MAX;

/// After a record this long its transaction has, most likely, more to log: the WAL writer is asked
/// to begin. Else all of a COPY's WAL would be written and flushed by the session, behind its last
/// record. In bytes; also what lets the WAL writer flush, by default (`wal_writer_flush_after`).
const WRITTEN_EARLY_BYTES: usize = 1 << 20;

const _: () = assert!(LOG_RECORD_BYTES_MAX < RECORD_BYTES_MAX);
const _: () = assert!(WRITTEN_EARLY_BYTES < LOG_RECORD_BYTES_MAX);

impl Log for WalLog {
    fn append(&mut self, record: &[u8]) -> Lsn {
        assert!(
            !record.is_empty() && record.len() <= RECORD_BYTES_MAX,
            "{} bytes",
            record.len()
        );
        let named = self.names.take();
        let bytes = named.map(|xid| narrow(xid).into_inner().to_le_bytes());
        // SAFETY: outside a critical section; record and id outlive the insertion, which copies
        // them. Each call may raise, and XLogBeginInsert's state is reset by PostgreSQL's abort,
        // and by the reclaimer, which has no transaction to abort.
        let end = unsafe {
            pg_sys::XLogBeginInsert();
            pg_sys::XLogRegisterData(record.as_ptr().cast_mut().cast(), record.len() as _);
            match &bytes {
                None => pg_sys::XLogInsert(RMGR_ID, 0),
                Some(bytes) => {
                    pg_sys::XLogRegisterData(bytes.as_ptr().cast_mut().cast(), bytes.len() as _);
                    pg_sys::XLogInsert(RMGR_ID, NAMES_XID)
                }
            }
        };
        if record.len() >= WRITTEN_EARLY_BYTES {
            // SAFETY: sets a position that the WAL writer may write up to, and wakes it. WAL may be
            // flushed at any time.
            unsafe { pg_sys::XLogSetAsyncXactLSN(end) };
        }
        Lsn(end)
    }

    fn held<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let _delay = DelayCheckpoint::begin();
        work(self)
    }
}

/// Appends a record for logical decoding, whose parts follow each other. It bears the id of the
/// current subtransaction, and its origin.
pub fn append_for_decoding(parts: [&[u8]; 3]) {
    // SAFETY: outside a critical section; the parts outlive the insertion, which copies them. Each
    // call may raise, and XLogBeginInsert's state is reset by PostgreSQL's abort.
    unsafe {
        pg_sys::XLogBeginInsert();
        pg_sys::XLogSetRecordFlags(pg_sys::XLOG_INCLUDE_ORIGIN as u8);
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            pg_sys::XLogRegisterData(part.as_ptr().cast_mut().cast(), part.len() as _);
        }
        pg_sys::XLogInsert(RMGR_ID, 0);
    }
}

/// Lowers the delay flag again, also when an error unwinds.
struct DelayCheckpoint;

impl DelayCheckpoint {
    fn begin() -> Self {
        pg::change_delay_flags(pg::DELAY_START, 0);
        DelayCheckpoint
    }
}

impl Drop for DelayCheckpoint {
    fn drop(&mut self) {
        pg::change_delay_flags(0, pg::DELAY_START);
    }
}
