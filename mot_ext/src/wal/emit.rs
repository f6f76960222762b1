//! Writing records: the engine's `Log` over `XLogInsert`.
use super::RMGR_ID;
use mot_engine::limits::LOG_RECORD_BYTES_OF_LONG_ROW_MAX;
use mot_engine::log::LOG_RECORD_BYTES_MAX;
use mot_engine::{Log, Lsn};
use pgrx::pg_sys;

/// The server's WAL. PostgreSQL stamps each record with the current transaction's id, and with none in the reclaimer, which has no transaction.
pub struct WalLog;

/// Largest record. Only a single huge row comes near; the engine closes records at `LOG_RECORD_BYTES_MAX`.
const RECORD_BYTES_MAX: usize = LOG_RECORD_BYTES_OF_LONG_ROW_MAX;

/// After a record this long its transaction has, most likely, more to log: the WAL writer is told to begin. Else all of a COPY's WAL would be
/// written and flushed by the session, behind its last record. In bytes; also what lets the WAL writer flush, by default (`wal_writer_flush_after`).
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
        // SAFETY: outside a critical section; the record outlives the insertion, which copies it. Each call may raise, and
        // XLogBeginInsert's state is reset by PostgreSQL's abort, and by the reclaimer, which has no transaction to abort.
        let end = unsafe {
            pg_sys::XLogBeginInsert();
            pg_sys::XLogRegisterData(record.as_ptr().cast_mut().cast(), record.len() as _);
            pg_sys::XLogInsert(RMGR_ID, 0)
        };
        if record.len() >= WRITTEN_EARLY_BYTES {
            // SAFETY: sets a position that the WAL writer may write up to, and wakes it. WAL may be flushed at any time.
            unsafe { pg_sys::XLogSetAsyncXactLSN(end) };
        }
        Lsn(end)
    }
}
