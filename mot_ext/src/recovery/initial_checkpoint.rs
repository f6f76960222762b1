//! The empty checkpoint that a recovery writes before its first record, if there never was one. The
//! next start begins from it, unless there is a newer one by then.
use crate::checkpoint::files;
use crate::pg::text::show_lsn;
use crate::shared_memory;
use mot_engine::Lsn;
use pgrx::prelude::*;
use std::sync::atomic::Ordering;

/// There is no checkpoint, and there never was one: the server has no tables before the WAL that it
/// replays now, as one that was cloned from a primary before that had the library. So a checkpoint
/// without tables is written for where the replay begins, before the first record: PostgreSQL's
/// redo position may advance before there is another one (a standby that cannot be read;
/// checkpoints of ours that fail), and would then lie behind rows that a start which finds none
/// takes for rows that never were. With it there is something to hold the slot for, and a start
/// reads the WAL in between, or says what is missing.
///
/// It is right wherever there is none. On a server that began cleanly PostgreSQL's first
/// checkpoint, with the first rows before it, completes only after ours; of one that is copied the
/// copy has ours. The slot shows a directory that is lost altogether (`load`).
pub(super) fn begin_without_tables(to: Lsn) -> Result<(), String> {
    let redo = replay_begin(to);
    files::begin_empty(redo).map_err(|e| e.to_string())?;
    record_covered(redo);
    ereport!(
        PgLogLevel::LOG,
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!(
            "mot has found no checkpoint, and begins without tables; redo lsn={}",
            show_lsn(redo)
        )
    );
    Ok(())
}

/// Where the replay that continues from `to` begins: where a shutdown's checkpoint begins, rather
/// than where it ends, for there another timeline may begin.
pub(super) fn replay_begin(to: Lsn) -> Lsn {
    // SAFETY: reads a shared position; never raises.
    let begin = Lsn(unsafe { pg_sys::GetRedoRecPtr() });
    begin.min(to)
}

/// The checkpoint on disk covers `redo`, and is not a final one.
pub(super) fn record_covered(redo: Lsn) {
    let control = shared_memory::control();
    control.covered.store(redo.0, Ordering::SeqCst);
    control.gap_is_read.store(true, Ordering::SeqCst);
}
