//! The gate: how a worker makes sure, without any hook in the core, that no PostgreSQL checkpoint
//! completes before ours with the same redo position.
//!
//! PostgreSQL's checkpointer fixes its redo position R, waits until every virtual transaction that
//! had DELAY_CHKPT_START is gone or renewed, does its work, and waits likewise for
//! DELAY_CHKPT_COMPLETE before it completes. The worker
//!
//! - holds START all the time, and renews its virtual transaction id at each turn: the START wait
//!   ends only there;
//! - raises COMPLETE *before* it renews the id and lowers it only after it has read R and written
//!   the checkpoint.
//!
//! So a checkpoint that leaves its START wait does so while COMPLETE is up, and the R that the
//! worker reads next is that checkpoint's or a later one's: it cannot complete without us. Each
//! checkpoint waits at most one turn longer.
use crate::{pg, shared_memory};
use mot_engine::Lsn;
use pgrx::pg_sys;
use std::sync::atomic::Ordering;

/// Holds the gates; called once when the worker begins.
pub fn hold() {
    pg::enter_proc_array();
    pg::change_delay_flags(pg::DELAY_START | pg::DELAY_COMPLETE, 0);
    pg::renew_virtual_xid();
    shared_memory::control()
        .gate_is_held
        .store(true, Ordering::SeqCst);
}

/// Begins a turn: lets through the process that waits at the first gate, keeps the second shut, and
/// answers the redo position to cover.
pub fn open_turn() -> Lsn {
    pg::change_delay_flags(pg::DELAY_COMPLETE, 0);
    pg::renew_virtual_xid();
    // SAFETY: reads a shared position under a spinlock; never raises.
    Lsn(unsafe { pg_sys::GetRedoRecPtr() })
}

/// Ends a turn: a checkpoint that waits at the second gate may complete.
pub fn close_turn() {
    pg::change_delay_flags(0, pg::DELAY_COMPLETE);
}

/// Leaves the gates; PostgreSQL's checkpoints no longer wait for us.
pub fn leave() {
    shared_memory::control()
        .gate_is_held
        .store(false, Ordering::SeqCst);
    pg::change_delay_flags(0, pg::DELAY_START | pg::DELAY_COMPLETE);
    pg::clear_virtual_xid();
}
