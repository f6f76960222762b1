//! Whether PostgreSQL's checkpointer takes its time.
//!
//! It spreads the writing of buffers over `checkpoint_completion_target` of `checkpoint_timeout` unless somebody waits for the checkpoint
//! (CHECKPOINT, a backup, a shutdown) or the WAL grows fast; no hook says which it is. But while it is ahead of its schedule it sleeps between
//! buffers, with a wait event of that name, and stops doing so as soon as somebody waits. That is what is looked at here.
use pgrx::pg_sys;
use std::ptr::NonNull;
use std::time::Duration;

unsafe extern "C" {
    static CheckPointTimeout: std::ffi::c_int;
    static CheckPointCompletionTarget: f64;
}

const WRITE_DELAY: u32 = pg_sys::WaitEventTimeout::WAIT_EVENT_CHECKPOINT_WRITE_DELAY;

/// The checkpointer's place among the processes.
#[derive(Clone, Copy)]
pub struct Checkpointer(NonNull<pg_sys::PGPROC>);

// SAFETY: the place is in shared memory and stays; one word of it is read.
unsafe impl Sync for Checkpointer {}

impl Checkpointer {
    /// None while there is none.
    pub fn find() -> Option<Checkpointer> {
        // SAFETY: the list of processes is set up before any process starts. The field is the checkpointer's own while it runs.
        unsafe { place(&*pg_sys::ProcGlobal).map(Checkpointer) }
    }

    /// Whether it sleeps between two buffers because it is ahead of its schedule. For any thread: it is a read of shared memory.
    pub fn takes_its_time(&self) -> bool {
        // SAFETY: `find` found the place; the word is written by its process alone, whole, and everybody may look (pg_stat_activity does).
        let waits_for = unsafe { (&raw const (*self.0.as_ptr()).wait_event_info).read_volatile() };
        waits_for == WRITE_DELAY
    }
}

/// The latch lies within the place.
#[cfg(not(feature = "pg18"))]
fn place(all: &pg_sys::PROC_HDR) -> Option<NonNull<pg_sys::PGPROC>> {
    let latch = NonNull::new(all.checkpointerLatch)?;
    let offset = std::mem::offset_of!(pg_sys::PGPROC, procLatch);
    // SAFETY: it is the latch of a place, at that offset.
    Some(unsafe { latch.byte_sub(offset).cast() })
}

#[cfg(feature = "pg18")]
fn place(all: &pg_sys::PROC_HDR) -> Option<NonNull<pg_sys::PGPROC>> {
    let number = usize::try_from(all.checkpointerProc).ok()?;
    // SAFETY: a number that is not negative is of a place in the list.
    NonNull::new(unsafe { all.allProcs.add(number) })
}

/// Over how long PostgreSQL spreads a checkpoint that it begins by the clock, by this process's settings.
pub fn spread() -> Duration {
    // SAFETY: plain settings of this process.
    unsafe { Duration::from_secs_f64(f64::from(CheckPointTimeout) * CheckPointCompletionTarget) }
}
